//! What validators use to speak about a document: they name fields, this finds the places.

use super::document::RawDocument;
use super::field::{Field, Path, Step};
use super::pruned::Pruned;
use crate::diag::{Code, Diagnostic, Diagnostics, Severity, Span};

/// Collects findings about one document.
#[derive(Debug)]
pub struct Findings<'a> {
    document: &'a RawDocument,
    diags: &'a mut Diagnostics,
    object: String,
    refused: bool,
    pruned: Pruned,
}

impl<'a> Findings<'a> {
    /// Findings about that document go into that collector.
    pub fn new(document: &'a RawDocument, diags: &'a mut Diagnostics) -> Findings<'a> {
        Findings::about_rest(document, diags, Pruned::default())
    }

    /// Findings about what is left of that document without the values that were taken out.
    /// Fields are those of the rest; what the gaps may explain is not reported.
    pub fn about_rest(
        document: &'a RawDocument,
        diags: &'a mut Diagnostics,
        pruned: Pruned,
    ) -> Findings<'a> {
        Findings { document, diags, object: document.header.object(), refused: false, pruned }
    }

    /// The document under examination.
    pub fn document(&self) -> &'a RawDocument {
        self.document
    }

    /// The field is wrong, and the document is refused.
    pub fn error(&mut self, field: &Field<'_>, code: Code, message: impl Into<String>) {
        let diagnostic = Diagnostic { severity: Severity::Error, ..Diagnostic::new(code, message) };
        self.report(field, diagnostic);
    }

    /// The field is suspicious; the document is served all the same.
    pub fn warn(&mut self, field: &Field<'_>, code: Code, message: impl Into<String>) {
        let diagnostic =
            Diagnostic { severity: Severity::Warning, ..Diagnostic::new(code, message) };
        self.report(field, diagnostic);
    }

    /// The field is valid, but pilotfish does not implement it yet. Points at the key.
    pub fn unsupported(&mut self, field: &Field<'_>) {
        let steps = field.steps();
        let name = steps.iter().rev().find_map(|step| match step {
            Step::Key(key) => Some(*key),
            Step::Document | Step::Index(_) => None,
        });
        let name = name.unwrap_or(&self.document.header.kind);
        let diagnostic =
            Diagnostic::new(Code::NotSupported, format!("`{name}` is not supported yet"))
                .at(self.key_span(field));
        self.report(field, diagnostic);
    }

    /// Any other finding: place (unless it has one), document and field are filled in here.
    pub fn report(&mut self, field: &Field<'_>, mut diagnostic: Diagnostic) {
        let steps = self.pruned.original(field.steps());
        if self.pruned.may_explain(&steps, diagnostic.code) {
            return;
        }
        if diagnostic.span.is_none() {
            diagnostic.span = Some(self.document.span_at(&steps));
        }
        diagnostic.object = Some(self.object.clone());
        let path = Path(&steps).to_string();
        diagnostic.field = (!path.is_empty()).then_some(path);
        self.refused |= diagnostic.severity == Severity::Error;
        self.diags.push(diagnostic);
    }

    /// The place of the field's value, or of the nearest value above it when it is absent.
    pub fn span(&self, field: &Field<'_>) -> Span {
        self.document.span_at(&self.pruned.original(field.steps()))
    }

    /// The place of the field's key ("this field is the trouble, whatever its value"); of its
    /// value where it has no key.
    pub fn key_span(&self, field: &Field<'_>) -> Span {
        self.document.key_span_at(&self.pruned.original(field.steps()))
    }

    /// Whether the field could be read as a whole. Where it could not, nothing is known about
    /// what is missing in it.
    pub fn is_whole(&self, field: &Field<'_>) -> bool {
        self.pruned.spares(&self.pruned.original(field.steps()))
    }

    /// Whether an error was reported through this collector.
    pub fn has_errors(&self) -> bool {
        self.refused
    }
}
