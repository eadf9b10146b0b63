//! Files to documents: who each document says it is, and what could not be read.

use super::document::RawDocument;
use super::header::{HeaderReader, Inherited, Names};
use super::place::{excerpt_of, explain, place};
use crate::config::source::SourceFile;
use crate::config::yaml::{
    Chunk, Extent, Node, PartialIdentity, Problem, Value, identities, may_be_secret, parse, point,
    split,
};
use crate::diag::{Diagnostic, Excerpt, Position, Span, lines};
use xxhash_rust::xxh3::Xxh3;

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

struct Reader<'s> {
    source: &'s SourceFile,
    reading: Reading,
    names: Names,
    /// Only of a chunk that is a list: where its lines start.
    chunk: Option<ListText<'s>>,
}

impl<'s> Reader<'s> {
    fn chunk(&mut self, chunk: Chunk<'s>) {
        self.chunk = None;
        match parse(chunk) {
            Ok(None) => {}
            // `---` with nothing below it.
            Ok(Some(Node { value: Value::Null, .. })) => {}
            Ok(Some(root)) => self.object(root, chunk, None),
            Err(problems) => self.unparsed(chunk, problems),
        }
    }

    fn unparsed(&mut self, chunk: Chunk<'s>, problems: Vec<Problem>) {
        let identities = identities(chunk.text);
        let excerpt = if may_be_secret(chunk.text) { Excerpt::Withheld } else { Excerpt::Shown };
        let object = match identities.as_slice() {
            [one] => one.object(),
            _ => None,
        };
        for problem in problems {
            let mut diagnostic = explain(self.source, problem, excerpt);
            diagnostic.object = object.clone();
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
        let text = self.chunk.as_ref().map_or(chunk.text, |list| list.slice(root.span));
        let excerpt = match kind {
            "" if may_be_secret(text) => Excerpt::Withheld,
            _ => excerpt_of(kind),
        };
        let header = HeaderReader::new(self.source, excerpt, &mut self.names);
        let (header, identity) = header.read(&root, inherited);
        match header {
            Ok(header) => {
                let hash = self.hash(text);
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

    /// A hash of what a document is made of: its text, and in a list with anchors the whole list,
    /// because the text of an item may refer to what is written elsewhere in it.
    fn hash(&self, text: &str) -> u128 {
        let mut hasher = Xxh3::new();
        hasher.update(text.as_bytes());
        if let Some(list) = self.chunk.as_ref().filter(|list| list.text.contains('&')) {
            hasher.update(list.text.as_bytes());
        }
        hasher.digest128()
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
