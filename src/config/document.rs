//! Files to documents: who each document says it is, and what could not be read.

use super::node::{Extent, Node, Value, point};
use super::recover::{self, PartialIdentity};
use super::source::SourceFile;
use super::split::{Chunk, split};
use super::yaml::{self, Problem};
use crate::diag::{Code, Diagnostic, Excerpt, Position, Span, lines};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

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
    /// The name, never empty.
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
    /// `VirtualService default/reviews`.
    pub fn object(&self) -> String {
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
    /// The place of a range of this document.
    pub fn place(&self, extent: Extent) -> Span {
        place(&self.source, extent, excerpt_of(&self.header.kind))
    }
}

/// A document that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Where it starts.
    pub span: Span,
    /// Which documents it may have been, as far as its text tells; never empty.
    pub identities: Vec<PartialIdentity>,
}

/// What a file holds.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The documents that could be read, in file order.
    pub documents: Vec<RawDocument>,
    /// Those that could not.
    pub broken: Vec<Broken>,
    /// Why not.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads all documents of a file. A broken one does not take its neighbours with it; empty ones
/// are skipped; a `List` is read as its items.
pub fn read(source: &SourceFile) -> Reading {
    let mut reader =
        Reader { source, reading: Reading::default(), names: Names::default(), chunk: None };
    for chunk in split(&source.text) {
        reader.chunk(chunk);
    }
    reader.reading
}

fn place(source: &SourceFile, extent: Extent, excerpt: Excerpt) -> Span {
    Span { file: source.path.clone(), start: extent.start, end: extent.end, excerpt }
}

fn excerpt_of(kind: &str) -> Excerpt {
    if kind == "Secret" { Excerpt::Withheld } else { Excerpt::Shown }
}

struct Reader<'s> {
    source: &'s SourceFile,
    reading: Reading,
    names: Names,
    /// Only of a chunk that is a list: where its lines start.
    chunk: Option<ListText<'s>>,
}

/// What an item of a typed list may leave out.
#[derive(Clone, Copy)]
struct Inherited<'i> {
    api_version: &'i str,
    kind: &'i str,
}

impl<'s> Reader<'s> {
    fn chunk(&mut self, chunk: Chunk<'s>) {
        self.chunk = None;
        match yaml::parse(chunk) {
            Ok(None) => {}
            // `---` with nothing below it.
            Ok(Some(Node { value: Value::Null, .. })) => {}
            Ok(Some(root)) => self.object(root, chunk, None),
            Err(problems) => self.unparsed(chunk, problems),
        }
    }

    fn unparsed(&mut self, chunk: Chunk<'s>, problems: Vec<Problem>) {
        let identities = recover::identities(chunk.text);
        let excerpt =
            if recover::may_be_secret(chunk.text) { Excerpt::Withheld } else { Excerpt::Shown };
        let object = match identities.as_slice() {
            [one] => one.object(),
            _ => None,
        };
        for problem in problems {
            let mut diagnostic = Diagnostic::new(problem.code, problem.message).at(place(
                self.source,
                problem.at,
                excerpt,
            ));
            diagnostic.object = object.clone();
            diagnostic.help = problem.help;
            if let Some((extent, message)) = problem.related {
                diagnostic = diagnostic.related(place(self.source, extent, excerpt), message);
            }
            self.reading.diagnostics.push(diagnostic);
        }
        let start = point(Position { line: chunk.line, column: 1 });
        let span = place(self.source, start, excerpt);
        self.reading.broken.push(Broken { span, identities });
    }

    fn object(&mut self, root: Node, chunk: Chunk<'s>, inherited: Option<Inherited<'_>>) {
        let kind = root.get("kind").and_then(Node::as_str).unwrap_or_default();
        if let Some(item_kind) = kind.strip_suffix("List")
            && let Some(Node { value: Value::Sequence(_), .. }) = root.get("items")
        {
            let item_kind = item_kind.to_owned();
            self.list(root, &item_kind, chunk);
            return;
        }
        let mut header = HeaderReader {
            source: self.source,
            excerpt: excerpt_of(kind),
            names: &mut self.names,
            diagnostics: Vec::new(),
        };
        let (header, identity) = header.read(&root, inherited);
        match header {
            Ok(header) => {
                let text = match &self.chunk {
                    Some(list) => list.slice(root.span),
                    None => chunk.text,
                };
                let hash = xxh3_128(text.as_bytes());
                let source = self.source.clone();
                self.reading.documents.push(RawDocument { header, root, source, hash });
            }
            Err(diagnostics) => {
                let span = diagnostics.first().and_then(|d| d.span.clone()).unwrap_or_else(|| {
                    place(self.source, point(root.span.start), Excerpt::Withheld)
                });
                self.reading.broken.push(Broken { span, identities: vec![identity] });
                self.reading.diagnostics.extend(diagnostics);
            }
        }
    }

    fn list(&mut self, root: Node, item_kind: &str, chunk: Chunk<'s>) {
        if self.chunk.is_none() {
            self.chunk = Some(ListText::new(chunk));
        }
        let api_version =
            root.get("apiVersion").and_then(Node::as_str).unwrap_or_default().to_owned();
        let inherited = (!item_kind.is_empty())
            .then_some(Inherited { api_version: &api_version, kind: item_kind });
        let Value::Mapping(entries) = root.value else { return };
        for (key, node) in entries {
            if &*key.text != "items" {
                continue;
            }
            let Value::Sequence(items) = node.value else { continue };
            for item in items {
                self.object(item, chunk, inherited);
            }
        }
    }
}

/// The text of a list, to find the text of its items.
struct ListText<'t> {
    text: &'t str,
    first_line: u32,
    starts: Vec<usize>,
}

impl<'t> ListText<'t> {
    fn new(chunk: Chunk<'t>) -> ListText<'t> {
        let mut at = 0;
        let mut starts = Vec::new();
        for line in lines(chunk.text) {
            starts.push(at);
            at += line.len();
        }
        ListText { text: chunk.text, first_line: chunk.line, starts }
    }

    fn offset(&self, position: Position) -> usize {
        let line = position.line.saturating_sub(self.first_line) as usize;
        let Some(&start) = self.starts.get(line) else { return self.text.len() };
        let skipped = position.column.saturating_sub(1) as usize;
        self.text[start..]
            .char_indices()
            .nth(skipped)
            .map_or(self.text.len(), |(offset, _)| start + offset)
    }

    fn slice(&self, extent: Extent) -> &'t str {
        let (start, end) = (self.offset(extent.start), self.offset(extent.end));
        self.text.get(start..end).unwrap_or(self.text)
    }
}

/// Shares the few strings that most headers of a file have in common.
#[derive(Default)]
struct Names {
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

struct HeaderReader<'r> {
    source: &'r SourceFile,
    excerpt: Excerpt,
    names: &'r mut Names,
    diagnostics: Vec<Diagnostic>,
}

impl HeaderReader<'_> {
    /// The header, or why there is none; and what is known about the identity in any case.
    fn read(
        &mut self,
        root: &Node,
        inherited: Option<Inherited<'_>>,
    ) -> (Result<Header, Vec<Diagnostic>>, PartialIdentity) {
        if !matches!(root.value, Value::Mapping(_)) {
            self.error(Code::NotAnObject, "", root, "expected a configuration object", None);
            return (Err(std::mem::take(&mut self.diagnostics)), PartialIdentity::default());
        }
        let api_version = self.required(root, "apiVersion", inherited.map(|i| i.api_version));
        let kind = self.required(root, "kind", inherited.map(|i| i.kind));
        let metadata = root.entry("metadata").map(|(_, node)| node);
        let (mut name, mut namespace, mut created) = (None, None, None);
        let (mut labels, mut annotations) = (BTreeMap::new(), BTreeMap::new());
        let mut span = None;
        match metadata {
            Some(node) if matches!(node.value, Value::Mapping(_)) => {
                name = self.name(node);
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
            Some(_) | None => {
                let help = Some("a configuration object starts with apiVersion, kind and metadata");
                self.error(Code::NotAnObject, "", root, "the document has no metadata.name", help);
            }
        }
        let identity = PartialIdentity {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
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

    fn required(&mut self, root: &Node, key: &str, inherited: Option<&str>) -> Option<String> {
        match root.get(key) {
            Some(node) => match node.as_str() {
                Some(text) if !text.is_empty() => return Some(text.to_owned()),
                _ => self.error(Code::NotAnObject, key, node, "expected a string", None),
            },
            None => match inherited {
                Some(text) => return Some(text.to_owned()),
                None => {
                    let message = format!("the document has no {key}");
                    let help = "a configuration object starts with apiVersion, kind and metadata";
                    self.error(Code::NotAnObject, "", root, &message, Some(help));
                }
            },
        }
        None
    }

    fn name(&mut self, metadata: &Node) -> Option<String> {
        let Some(node) = metadata.get("name") else {
            self.error(Code::NotAnObject, "metadata", metadata, "the object has no name", None);
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
                            let section = super::Field::root("metadata");
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
        let help = match node.value {
            Value::Mapping(_) | Value::Sequence(_) => None,
            _ => Some("put the value in quotes"),
        };
        self.error(Code::InvalidValue, field, node, "expected a string", help);
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
