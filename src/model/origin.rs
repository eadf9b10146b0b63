//! Where a model value comes from, and the precedence that follows from it.

use super::ObjectName;
use crate::diag::{Code, Diagnostic, Span};
use std::cmp::Ordering;

/// The document behind a model value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The kind, `VirtualService`.
    pub kind: &'static str,
    /// Namespace and name.
    pub name: ObjectName,
    /// `metadata.creationTimestamp` in nanoseconds since 1970, 0 when there is none: files
    /// rarely carry one, and then name and namespace decide.
    pub created: i128,
    /// Where the document's name stands.
    pub span: Span,
}

impl Origin {
    /// Istio's precedence for configuration: older first, then by name, then by namespace
    /// (name first; `pilot/pkg/model`: configs are sorted by creation time).
    pub fn precedence(a: &Origin, b: &Origin) -> Ordering {
        a.created
            .cmp(&b.created)
            .then_with(|| a.name.name.cmp(&b.name.name))
            .then_with(|| a.name.namespace.cmp(&b.name.namespace))
    }

    /// A finding about this document, at its name.
    pub fn diagnostic(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        self.diagnostic_at(&self.span, code, message)
    }

    /// A finding about a part of this document.
    pub fn diagnostic_at(&self, span: &Span, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, message).at(span.clone()).on(format!("{} {}", self.kind, self.name))
    }
}
