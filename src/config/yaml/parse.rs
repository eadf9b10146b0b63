//! One document's text to a located tree, over saphyr-parser's events.
//!
//! The tree is built without recursion and within limits, so no text can exhaust stack or
//! memory: not deep nesting, not aliases that multiply ("billion laughs").

use super::lenient;
use super::node::{Extent, Key, Node, Value, point};
use super::problem::{Places, Problem, syntax_error};
use super::scalar;
use super::split::Chunk;
use crate::diag::{Code, Position};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The largest document that is read, in bytes. A `List` of ten thousand objects has about six
/// million.
pub const MAX_DOCUMENT_BYTES: usize = 32 << 20;

/// How deep mappings and sequences may nest. Istio's deepest field is at about 20.
pub const MAX_DEPTH: usize = 128;

/// How much anchors and aliases may copy within one document: one per value, and one more per
/// 32 bytes of text.
pub const MAX_ALIAS_WEIGHT: usize = 250_000;

/// Parses one document; `None` when there is nothing in it but comments.
pub(in crate::config) fn parse(chunk: Chunk<'_>) -> Result<Option<Node>, Vec<Problem>> {
    if chunk.text.len() > MAX_DOCUMENT_BYTES {
        let at = point(Position { line: chunk.line, column: 1 });
        let message = format!(
            "the document has {} bytes; the limit is {MAX_DOCUMENT_BYTES}",
            chunk.text.len()
        );
        return Err(vec![Problem::new(Code::YamlLimit, at, message)]);
    }
    let strict = parse_strictly(chunk.text, &Places::new(chunk));
    let Err(problems) = &strict else { return strict };
    if !problems.iter().any(|problem| problem.is_indentation) {
        return strict;
    }
    let Some(indented) = lenient::indent(chunk.text) else { return strict };
    let places = Places::new(chunk).with_pads(&indented.pads);
    let again = parse_strictly(&indented.text, &places);
    // What still is wrong is said about the text as it is, unless the new complaint is earlier.
    match (&again, problems.first()) {
        (Err(new), Some(first)) if new.iter().any(|n| n.at.start <= first.at.start) => strict,
        _ => again,
    }
}

fn parse_strictly(text: &str, places: &Places<'_>) -> Result<Option<Node>, Vec<Problem>> {
    let mut builder = Builder::new(places);
    for event in Parser::new_from_str(text) {
        let step = match event {
            Ok((event, span)) => builder.event(event, span),
            Err(error) => Err(Box::new(syntax_error(&error, places))),
        };
        if let Err(problem) = step {
            builder.problems.push(*problem);
            break;
        }
    }
    if builder.problems.is_empty() { Ok(builder.root) } else { Err(builder.problems) }
}

type Step = Result<(), Box<Problem>>;

fn fail(code: Code, at: Extent, message: impl Into<String>) -> Box<Problem> {
    Box::new(Problem::new(code, at, message))
}

/// A collection that is still open.
struct Frame {
    start: Extent,
    anchor: usize,
    kind: Open,
}

enum Open {
    Sequence(Vec<Node>),
    Mapping { entries: Vec<(Key, Node)>, key: Option<PendingKey>, merges: Vec<Node> },
}

enum PendingKey {
    Plain(Key),
    Merge,
}

struct Anchored {
    node: Node,
    weight: usize,
    height: usize,
}

struct Builder<'p> {
    places: &'p Places<'p>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Anchored>,
    alias_weight: usize,
    documents: usize,
    root: Option<Node>,
    problems: Vec<Problem>,
}

impl<'p> Builder<'p> {
    fn new(places: &'p Places<'p>) -> Builder<'p> {
        Builder {
            places,
            stack: Vec::new(),
            anchors: HashMap::new(),
            alias_weight: 0,
            documents: 0,
            root: None,
            problems: Vec::new(),
        }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Step {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let at = point(self.places.position(span.start));
                    return Err(fail(
                        Code::YamlSyntax,
                        at,
                        "a second document starts here without a `---` line",
                    ));
                }
                Ok(())
            }
            Event::Alias(id) => self.alias(id, span),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_ref(), span)
            }
            Event::SequenceStart(anchor, _) => self.open(anchor, span, Open::Sequence(Vec::new())),
            Event::MappingStart(anchor, _) => self.open(
                anchor,
                span,
                Open::Mapping { entries: Vec::new(), key: None, merges: Vec::new() },
            ),
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
        }
    }

    fn open(&mut self, anchor: usize, span: Span, kind: Open) -> Step {
        let start = self.places.extent(span);
        if self.wants_key() {
            return Err(Box::new(
                Problem::new(
                    Code::YamlSyntax,
                    point(start.start),
                    "a mapping or list stands where a key is expected",
                )
                .help("text in double curly braces must be quoted"),
            ));
        }
        if self.stack.len() >= MAX_DEPTH {
            return Err(fail(
                Code::YamlLimit,
                point(start.start),
                format!("the document nests deeper than {MAX_DEPTH} levels"),
            ));
        }
        self.stack.push(Frame { start, anchor, kind });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Step {
        // The parser balances its events.
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let value = match frame.kind {
            Open::Sequence(items) => Value::Sequence(items),
            Open::Mapping { mut entries, key: _, merges } => {
                self.report_duplicates(&entries);
                if !merges.is_empty() {
                    merge(&mut entries, merges);
                }
                Value::Mapping(entries)
            }
        };
        // A bracket is a place of its own; the end of a block is where its last child ends.
        let end = if span.is_empty() {
            match &value {
                Value::Sequence(items) => items.last().map(|node| node.span.end),
                Value::Mapping(entries) => entries.last().map(|(_, node)| node.span.end),
                _ => None,
            }
        } else {
            Some(self.places.position(span.end))
        };
        let start = frame.start.start;
        let end = end.map_or(frame.start.end, |end| end.max(start));
        let node = Node { span: Extent { start, end }, value };
        self.remember(frame.anchor, &node)?;
        self.push(node, None)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Cow<'_, Tag>>,
        span: Span,
    ) -> Step {
        let extent = self.places.extent(span);
        let value = match tag {
            None if style == ScalarStyle::Plain => scalar::plain(text),
            None => Value::String(text.into()),
            Some(tag) if tag.is_yaml_core_schema() => {
                scalar::tagged(&tag.suffix, text).map_err(|wanted| {
                    let message = format!("the tag `!!{}` needs {wanted}", tag.suffix);
                    fail(Code::YamlSyntax, extent, message)
                })?
            }
            // An application's own tag says nothing to us; `!` alone means a string.
            Some(tag) if tag.handle.is_empty() || style != ScalarStyle::Plain => {
                Value::String(text.into())
            }
            Some(_) => scalar::plain(text),
        };
        let node = Node { span: extent, value };
        self.remember(anchor, &node)?;
        let is_merge = tag.is_none() && style == ScalarStyle::Plain && text == "<<";
        self.push(node, is_merge.then_some(PendingKey::Merge))
    }

    fn alias(&mut self, id: usize, span: Span) -> Step {
        let at = self.places.extent(span);
        let Some(anchored) = self.anchors.get(&id) else {
            return Err(fail(Code::YamlSyntax, at, "the alias stands inside its own anchor"));
        };
        if self.stack.len() + anchored.height > MAX_DEPTH {
            return Err(fail(
                Code::YamlLimit,
                at,
                format!("with this alias the document nests deeper than {MAX_DEPTH} levels"),
            ));
        }
        let weight = anchored.weight;
        let node = if self.alias_weight + weight <= MAX_ALIAS_WEIGHT {
            anchored.node.clone()
        } else {
            return Err(too_many_copies(at));
        };
        self.alias_weight += weight;
        self.push(node, None)
    }

    /// Keeps a copy of an anchored value for its aliases.
    fn remember(&mut self, anchor: usize, node: &Node) -> Step {
        if anchor == 0 {
            return Ok(());
        }
        let (weight, height) = node.measure();
        self.alias_weight += weight;
        if self.alias_weight > MAX_ALIAS_WEIGHT {
            return Err(too_many_copies(point(node.span.start)));
        }
        self.anchors.insert(anchor, Anchored { node: node.clone(), weight, height });
        Ok(())
    }

    fn wants_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { kind: Open::Mapping { key: None, .. }, .. }))
    }

    /// Puts a finished value where it belongs.
    fn push(&mut self, node: Node, merge_key: Option<PendingKey>) -> Step {
        match self.stack.last_mut().map(|frame| &mut frame.kind) {
            None => self.root = Some(node),
            Some(Open::Sequence(items)) => items.push(node),
            Some(Open::Mapping { entries, key, merges }) => match key.take() {
                None => {
                    *key = Some(match merge_key {
                        Some(merge) => merge,
                        None => PendingKey::Plain(key_of(node)?),
                    });
                }
                Some(PendingKey::Plain(key)) => entries.push((key, node)),
                Some(PendingKey::Merge) => match node.value {
                    Value::Mapping(_) => merges.push(node),
                    Value::Sequence(items)
                        if items.iter().all(|i| matches!(i.value, Value::Mapping(_))) =>
                    {
                        merges.extend(items);
                    }
                    _ => {
                        return Err(fail(
                            Code::YamlSyntax,
                            point(node.span.start),
                            "`<<` needs a mapping or a list of mappings",
                        ));
                    }
                },
            },
        }
        Ok(())
    }

    fn report_duplicates(&mut self, entries: &[(Key, Node)]) {
        // Quadratic is quickest for the sizes that occur; sorting keeps the rest harmless.
        let mut doubles: Vec<(usize, usize)> = Vec::new();
        if entries.len() <= 12 {
            for (later, (key, _)) in entries.iter().enumerate() {
                if let Some(first) = entries[..later].iter().position(|(k, _)| k.text == key.text) {
                    doubles.push((first, later));
                }
            }
        } else {
            let mut order: Vec<usize> = (0..entries.len()).collect();
            order.sort_by_key(|&index| (&entries[index].0.text, index));
            for run in order.chunk_by(|&a, &b| entries[a].0.text == entries[b].0.text) {
                doubles.extend(run[1..].iter().map(|&later| (run[0], later)));
            }
            doubles.sort_by_key(|&(_, later)| later);
        }
        let at_root = self.stack.is_empty();
        for (first, later) in doubles {
            let (first, later) = (&entries[first].0, &entries[later].0);
            let is_new_object = at_root && matches!(&*later.text, "apiVersion" | "kind");
            let help = match is_new_object {
                true => "if another object starts here, put a `---` line above it",
                false => "keep one of the two",
            };
            let message = format!(
                "the key `{}` is already used on line {}",
                later.text, first.span.start.line
            );
            let mut problem = Problem::new(Code::YamlDuplicateKey, later.span, message).help(help);
            problem.related = Some((first.span, "first used here"));
            self.problems.push(problem);
            if is_new_object {
                break;
            }
        }
    }
}

fn too_many_copies(at: Extent) -> Box<Problem> {
    fail(Code::YamlLimit, at, "anchors and aliases expand the document too far")
}

/// A key as a string, written as Kubernetes tooling would.
fn key_of(node: Node) -> Result<Key, Box<Problem>> {
    let span = node.span;
    let text: Box<str> = match node.value {
        Value::String(text) => text,
        Value::Bool(value) => value.to_string().into(),
        Value::Int(value) => value.to_string().into(),
        Value::Float(value) if value.is_nan() => ".nan".into(),
        Value::Float(value) if value.is_infinite() => {
            if value > 0.0 {
                ".inf".into()
            } else {
                "-.inf".into()
            }
        }
        Value::Float(value) => value.to_string().into(),
        Value::Null => {
            return Err(fail(Code::YamlSyntax, span, "a key must not be empty or null"));
        }
        Value::Sequence(_) | Value::Mapping(_) => {
            return Err(fail(Code::YamlSyntax, span, "a key must be a single word"));
        }
    };
    Ok(Key { text, span })
}

/// What `<<` brings in never replaces what is written out, and an earlier source beats a later.
fn merge(entries: &mut Vec<(Key, Node)>, sources: Vec<Node>) {
    let mut known: HashSet<Box<str>> = entries.iter().map(|(key, _)| key.text.clone()).collect();
    for source in sources {
        let Value::Mapping(incoming) = source.value else { continue };
        for (key, node) in incoming {
            if known.insert(key.text.clone()) {
                entries.push((key, node));
            }
        }
    }
}
