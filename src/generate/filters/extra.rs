//! What filters need beside their configuration.

use super::Filter;
use crate::diag::{Code, Diagnostic};
use crate::generate::plan::Because;

/// What a filter hands back beside its settings.
#[derive(Debug, Clone, Default, PartialEq)]
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

impl Extra {
    /// Takes over what another one holds.
    pub fn append(&mut self, other: Extra) {
        let Extra { extension_configs, findings } = other;
        self.extension_configs.extend(extension_configs);
        self.findings.extend(findings);
    }

    /// What is to be said, also about what cannot be served.
    pub fn findings(&self) -> impl Iterator<Item = Diagnostic> {
        let unserved = self.extension_configs.iter().map(ExtensionConfig::unserved);
        self.findings.iter().cloned().chain(unserved)
    }
}

impl ExtensionConfig {
    /// Extension configurations are not served yet, and a chain that waits for one takes no
    /// connection.
    fn unserved(&self) -> Diagnostic {
        let message = format!(
            "the configuration '{}' of filter {} is not served: extension discovery is not \
             supported yet",
            self.name, self.filter.name
        );
        let finding = Diagnostic::new(Code::NotSupported, message);
        match self.because.sources.first() {
            Some(source) => {
                finding.at(source.span.clone()).on(format!("{} {}", source.kind, source.name))
            }
            None => finding,
        }
    }
}
