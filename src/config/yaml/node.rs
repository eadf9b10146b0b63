//! The located tree: YAML values that know where they stand in their file.

use crate::diag::Position;
use xxhash_rust::xxh3::Xxh3;

/// A range of a file; `end` is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First character.
    pub start: Position,
    /// One past the last character.
    pub end: Position,
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where the value stands. For a block collection: from its first to its last child.
    pub span: Extent,
    /// The value.
    pub value: Value,
}

/// A YAML value, read as Kubernetes tooling reads it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true`, `yes`, `on` and their kin.
    Bool(bool),
    /// A whole number that fits 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    String(Box<str>),
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values in the order of the file; no key occurs twice.
    Mapping(Vec<(Key, Node)>),
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key as a string, also where it was written as a number.
    pub text: Box<str>,
    /// Where it stands.
    pub span: Extent,
}

impl Node {
    /// The value of a key, when this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, node)| node)
    }

    /// The key and value of a key, when this is a mapping that has it.
    pub fn entry(&self, key: &str) -> Option<(&Key, &Node)> {
        match &self.value {
            Value::Mapping(entries) => {
                entries.iter().find(|(k, _)| &*k.text == key).map(|(k, node)| (k, node))
            }
            _ => None,
        }
    }

    /// The text, when this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The part of the value that a finding should point at: all of it when it is on one
    /// line, else its first key or character, so that an excerpt stays one line.
    pub fn focus(&self) -> Extent {
        if self.span.start.line == self.span.end.line {
            return self.span;
        }
        match &self.value {
            // The keys of a merged mapping may stand elsewhere.
            Value::Mapping(entries) => match entries.first() {
                Some((key, _)) if key.span.start == self.span.start => key.span,
                _ => point(self.span.start),
            },
            _ => point(self.span.start),
        }
    }

    /// Hashes what the value says: its type and content, not its place. Depth is bounded, so
    /// recursion is safe.
    pub fn hash_into(&self, hasher: &mut Xxh3) {
        fn text(hasher: &mut Xxh3, text: &str) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        match &self.value {
            Value::Null => hasher.update(b"n"),
            Value::Bool(value) => hasher.update(&[b'b', u8::from(*value)]),
            Value::Int(value) => {
                hasher.update(b"i");
                hasher.update(&value.to_le_bytes());
            }
            Value::Float(value) => {
                hasher.update(b"f");
                hasher.update(&value.to_bits().to_le_bytes());
            }
            Value::String(value) => {
                hasher.update(b"s");
                text(hasher, value);
            }
            Value::Sequence(items) => {
                hasher.update(b"l");
                hasher.update(&(items.len() as u64).to_le_bytes());
                items.iter().for_each(|item| item.hash_into(hasher));
            }
            Value::Mapping(entries) => {
                hasher.update(b"m");
                hasher.update(&(entries.len() as u64).to_le_bytes());
                for (key, value) in entries {
                    text(hasher, &key.text);
                    value.hash_into(hasher);
                }
            }
        }
    }

    /// Weight, as [`MAX_ALIAS_WEIGHT`](super::MAX_ALIAS_WEIGHT) counts it, and height. Depth is
    /// bounded, so recursion is safe.
    pub(super) fn measure(&self) -> (usize, usize) {
        let mut weight = 1;
        let mut height = 0;
        let mut add = |child: &Node, key: usize| {
            let (w, h) = child.measure();
            weight += w + key / 32;
            height = height.max(h);
        };
        match &self.value {
            Value::Sequence(items) => items.iter().for_each(|item| add(item, 0)),
            Value::Mapping(entries) => entries.iter().for_each(|(k, v)| add(v, k.text.len())),
            Value::String(text) => return (1 + text.len() / 32, 0),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => return (1, 0),
        }
        (weight, height + 1)
    }

    /// Where to point when something is missing in this value: the value, or its key when that
    /// is on a line of its own.
    pub fn focus_above(&self, key: Option<&Key>) -> Extent {
        match key {
            Some(key) if key.span.start.line != self.span.start.line => key.span,
            _ => self.focus(),
        }
    }
}

/// One character at a place.
pub(in crate::config) fn point(start: Position) -> Extent {
    Extent { start, end: Position { line: start.line, column: start.column.saturating_add(1) } }
}
