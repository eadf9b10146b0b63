//! A document: who it says it is, and its tree, in which fields have places.

use super::field::{Field, Found, Step, find};
use super::place::{excerpt_of, place};
use crate::config::source::SourceFile;
use crate::config::yaml::{Extent, Node, PartialIdentity};
use crate::diag::Span;
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The namespace of a document that names none.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// Who a document says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// `networking.istio.io/v1`.
    pub api_version: Arc<str>,
    /// `VirtualService`.
    pub kind: Arc<str>,
    /// The namespace; `default` when the document names none.
    pub namespace: Arc<str>,
    /// The name; empty only in a document of [`read_nameless`](super::read_nameless).
    pub name: Arc<str>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// `metadata.creationTimestamp`, which decides precedence where documents compete.
    pub created: Option<jiff::Timestamp>,
    /// The place of the name.
    pub span: Span,
}

impl Header {
    /// `VirtualService default/reviews`; the kind alone where a document has no name.
    pub fn object(&self) -> String {
        if self.name.is_empty() {
            return self.kind.to_string();
        }
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    /// The part of `apiVersion` before the slash; empty for Kubernetes' core kinds.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The part of `apiVersion` after the slash.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }
}

/// One document: who it is and its located tree.
#[derive(Debug, Clone, PartialEq)]
pub struct RawDocument {
    /// Who it is.
    pub header: Header,
    /// The whole document.
    pub root: Node,
    /// The file that it is in.
    pub source: SourceFile,
    /// A hash of the document's text; equal texts give equal hashes on every machine.
    pub hash: u128,
}

impl RawDocument {
    /// A hash of what the document says. What an item of a list inherits counts, comments, spaces
    /// and places do not.
    pub fn meaning(&self) -> u128 {
        let mut hasher = Xxh3::new();
        for inherited in [&self.header.api_version, &self.header.kind, &self.header.namespace] {
            hasher.update(&(inherited.len() as u64).to_le_bytes());
            hasher.update(inherited.as_bytes());
        }
        self.root.hash_into(&mut hasher);
        hasher.digest128()
    }

    /// The place of a range of this document.
    pub fn place(&self, extent: Extent) -> Span {
        place(&self.source, extent, excerpt_of(&self.header.kind))
    }

    /// The place of the field's value, or of the nearest value above it when it is absent.
    pub fn span(&self, field: &Field<'_>) -> Span {
        self.span_at(&field.steps())
    }

    pub(super) fn span_at(&self, steps: &[Step<'_>]) -> Span {
        match find(&self.root, steps) {
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
        self.key_span_at(&field.steps())
    }

    pub(super) fn key_span_at(&self, steps: &[Step<'_>]) -> Span {
        match find(&self.root, steps) {
            Found::Value(Some(key), _) => self.place(key.span),
            Found::Value(None, _) | Found::Ancestor(..) => self.span_at(steps),
        }
    }
}

impl PartialIdentity {
    /// `VirtualService default/reviews`, when the text tells at least kind and name.
    pub fn object(&self) -> Option<String> {
        let (kind, name) = (self.kind.as_ref()?, self.name.as_ref()?);
        let namespace = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        Some(format!("{kind} {namespace}/{name}"))
    }
}
