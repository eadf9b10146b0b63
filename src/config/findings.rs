//! What validators use to speak about a document: they name fields, this finds the places.

use super::document::RawDocument;
use super::field::{Field, Step};
use super::node::Found;
use crate::diag::{Code, Diagnostic, Diagnostics, Severity, Span};

/// Collects findings about one document.
#[derive(Debug)]
pub struct Findings<'a> {
    document: &'a RawDocument,
    diags: &'a mut Diagnostics,
    object: String,
    refused: bool,
}

impl<'a> Findings<'a> {
    /// Findings about that document go into that collector.
    pub fn new(document: &'a RawDocument, diags: &'a mut Diagnostics) -> Findings<'a> {
        Findings { document, diags, object: document.header.object(), refused: false }
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
        if diagnostic.span.is_none() {
            diagnostic.span = Some(self.span(field));
        }
        diagnostic.object = Some(self.object.clone());
        let path = field.to_string();
        diagnostic.field = (!path.is_empty()).then_some(path);
        self.refused |= diagnostic.severity == Severity::Error;
        self.diags.push(diagnostic);
    }

    /// The place of the field's value, or of the nearest value above it when it is absent.
    pub fn span(&self, field: &Field<'_>) -> Span {
        self.document.span(field)
    }

    /// The place of the field's key ("this field is the trouble, whatever its value"); of its
    /// value where it has no key.
    pub fn key_span(&self, field: &Field<'_>) -> Span {
        self.document.key_span(field)
    }

    /// Whether an error was reported through this collector.
    pub fn has_errors(&self) -> bool {
        self.refused
    }
}

impl RawDocument {
    /// The place of the field's value, or of the nearest value above it when it is absent.
    pub fn span(&self, field: &Field<'_>) -> Span {
        let steps = field.steps();
        match self.root.find(&steps) {
            // A whole document is best shown by its name.
            Found::Value(..) if steps.is_empty() => self.header.span.clone(),
            Found::Value(_, node) => self.place(node.focus()),
            Found::Ancestor(None, node) if std::ptr::eq(node, &self.root) => {
                self.header.span.clone()
            }
            Found::Ancestor(key, node) => self.place(node.focus_above(key)),
        }
    }

    /// The place of the field's key, or of its value where it has no key.
    pub fn key_span(&self, field: &Field<'_>) -> Span {
        match self.root.find(&field.steps()) {
            Found::Value(Some(key), _) => self.place(key.span),
            Found::Value(None, _) | Found::Ancestor(..) => self.span(field),
        }
    }
}
