//! The head of a document: apiVersion, kind and metadata, with everything that is wrong in them.

use super::document::{DEFAULT_NAMESPACE, Header};
use super::field::Field;
use super::place::place;
use crate::config::source::SourceFile;
use crate::config::yaml::{Key, Node, PartialIdentity, Value, point};
use crate::diag::{Code, Diagnostic, Excerpt};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an item of a typed list may leave out.
#[derive(Clone, Copy)]
pub(super) struct Inherited<'i> {
    pub api_version: &'i str,
    pub kind: &'i str,
}

/// Shares the few strings that most headers of a file have in common.
#[derive(Default)]
pub(super) struct Names {
    seen: Vec<Arc<str>>,
}

impl Names {
    const MOST: usize = 24;

    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.seen.iter().find(|known| &***known == text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        if self.seen.len() < Self::MOST {
            self.seen.push(new.clone());
        }
        new
    }
}

/// Reads one header and collects what is wrong with it.
pub(super) struct HeaderReader<'r> {
    source: &'r SourceFile,
    excerpt: Excerpt,
    names: &'r mut Names,
    diagnostics: Vec<Diagnostic>,
}

impl<'r> HeaderReader<'r> {
    pub fn new(source: &'r SourceFile, excerpt: Excerpt, names: &'r mut Names) -> Self {
        HeaderReader { source, excerpt, names, diagnostics: Vec::new() }
    }

    /// The header, or why there is none; and what is known about the identity in any case.
    pub fn read(
        mut self,
        root: &Node,
        inherited: Option<Inherited<'_>>,
    ) -> (Result<Header, Vec<Diagnostic>>, PartialIdentity) {
        if !matches!(root.value, Value::Mapping(_)) {
            self.error(Code::NotAnObject, "", root, "expected a configuration object", None);
            return (Err(self.diagnostics), PartialIdentity::default());
        }
        let mut missing = Vec::new();
        let mut required = |key: &'static str, inherited: Option<&str>| match root.get(key) {
            Some(node) => self.text(key, node),
            None if inherited.is_some() => inherited.map(str::to_owned),
            None => {
                missing.push(key);
                None
            }
        };
        let api_version = required("apiVersion", inherited.map(|i| i.api_version));
        let kind = required("kind", inherited.map(|i| i.kind));
        let (metadata_key, metadata) = root.entry("metadata").unzip();
        let (mut name, mut namespace, mut created) = (None, None, None);
        let (mut labels, mut annotations) = (BTreeMap::new(), BTreeMap::new());
        let mut span = None;
        match metadata {
            Some(node) if matches!(node.value, Value::Mapping(_)) => {
                name = self.name(metadata_key, node);
                span = node.get("name").map(|n| place(self.source, n.focus(), self.excerpt));
                namespace = self.optional(node, "namespace");
                labels = self.strings(node, "labels");
                annotations = self.strings(node, "annotations");
                created = self.created(node);
            }
            Some(node) if node.value != Value::Null => {
                let message = "expected a mapping with the object's name";
                self.error(Code::NotAnObject, "metadata", node, message, None);
            }
            Some(_) | None => missing.push("metadata.name"),
        }
        if !missing.is_empty() {
            let message = format!("the document has no {}", missing.join(" and no "));
            let help = Some("a configuration object starts with apiVersion, kind and metadata");
            self.error(Code::NotAnObject, "", root, &message, help);
        }
        let identity = PartialIdentity {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        let mut diagnostics = self.diagnostics;
        let header = match (api_version, kind, name) {
            (Some(api_version), Some(kind), Some(name)) if diagnostics.is_empty() => Ok(Header {
                api_version: self.names.share(&api_version),
                kind: self.names.share(&kind),
                namespace: self.names.share(namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)),
                name: name.into(),
                labels,
                annotations,
                created,
                span: span
                    .unwrap_or_else(|| place(self.source, point(root.span.start), self.excerpt)),
            }),
            _ => {
                for diagnostic in &mut diagnostics {
                    diagnostic.object = identity.object();
                }
                Err(diagnostics)
            }
        };
        (header, identity)
    }

    fn error(&mut self, code: Code, field: &str, at: &Node, message: &str, help: Option<&str>) {
        let span = place(self.source, at.focus(), self.excerpt);
        let mut diagnostic = Diagnostic::new(code, message).at(span);
        diagnostic.field = (!field.is_empty()).then(|| field.to_owned());
        diagnostic.help = help.map(str::to_owned);
        self.diagnostics.push(diagnostic);
    }

    fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        match node.as_str() {
            Some(text) if !text.is_empty() => Some(text.to_owned()),
            _ => {
                self.error(Code::NotAnObject, key, node, "expected a string", None);
                None
            }
        }
    }

    fn name(&mut self, key: Option<&Key>, metadata: &Node) -> Option<String> {
        let Some(node) = metadata.get("name") else {
            let span = place(self.source, metadata.focus_above(key), self.excerpt);
            let diagnostic = Diagnostic::new(Code::NotAnObject, "the object has no name");
            self.diagnostics.push(diagnostic.at(span).field("metadata"));
            return None;
        };
        match &node.value {
            Value::String(text) if !text.is_empty() => return Some(text.to_string()),
            Value::String(_) | Value::Null => {
                let message = "the name must not be empty";
                self.error(Code::NotAnObject, "metadata.name", node, message, None);
            }
            _ => self.not_text("metadata.name", node),
        }
        None
    }

    fn optional(&mut self, metadata: &Node, key: &str) -> Option<String> {
        let node = metadata.get(key)?;
        match &node.value {
            Value::Null => None,
            Value::String(text) => (!text.is_empty()).then(|| text.to_string()),
            _ => {
                self.not_text(&format!("metadata.{key}"), node);
                None
            }
        }
    }

    fn strings(&mut self, metadata: &Node, key: &str) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        match metadata.get(key) {
            None | Some(Node { value: Value::Null, .. }) => {}
            Some(Node { value: Value::Mapping(entries), .. }) => {
                for (name, node) in entries {
                    match &node.value {
                        Value::String(text) => {
                            found.insert(name.text.to_string(), text.to_string());
                        }
                        // As Kubernetes does: no value is the empty value.
                        Value::Null => {
                            found.insert(name.text.to_string(), String::new());
                        }
                        _ => {
                            let section = Field::root("metadata");
                            let field = section.key(key);
                            let field = field.key(&name.text).to_string();
                            self.not_text(&field, node);
                        }
                    }
                }
            }
            Some(node) => {
                let field = format!("metadata.{key}");
                let message = "expected a mapping of strings";
                self.error(Code::InvalidValue, &field, node, message, None);
            }
        }
        found
    }

    fn not_text(&mut self, field: &str, node: &Node) {
        let quotes = Some("put the value in quotes");
        let (message, help) = match node.value {
            Value::Mapping(_) => ("expected a string, found a mapping", None),
            Value::Sequence(_) => ("expected a string, found a list", None),
            Value::Bool(_) => ("expected a string, found a boolean", quotes),
            Value::Int(_) | Value::Float(_) => ("expected a string, found a number", quotes),
            Value::Null | Value::String(_) => ("expected a string", None),
        };
        self.error(Code::InvalidValue, field, node, message, help);
    }

    fn created(&mut self, metadata: &Node) -> Option<jiff::Timestamp> {
        let node = metadata.get("creationTimestamp")?;
        if node.value == Value::Null {
            return None;
        }
        let created = node.as_str().and_then(|text| text.parse().ok());
        if created.is_none() {
            let message = "expected a time such as \"2026-01-31T12:00:00Z\"";
            self.error(Code::InvalidValue, "metadata.creationTimestamp", node, message, None);
        }
        created
    }
}
