//! What filters need beside their configuration.

use super::Filter;
use crate::diag::Diagnostic;
use crate::generate::plan::Because;

/// What a filter hands back beside its settings.
#[derive(Debug, Default)]
pub struct Extra {
    /// Extension configurations that chains refer to by name.
    pub extension_configs: Vec<ExtensionConfig>,
    /// What is to be said.
    pub findings: Vec<Diagnostic>,
}

/// A filter's configuration that is served by itself, under a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExtensionConfig {
    /// The name that chains refer to.
    pub name: String,
    /// The filter and its settings.
    pub filter: Filter,
    /// Why it is there.
    pub because: Because,
}
