//! Envoy's proto constraints: the `validate.rules` that annotate its API. Envoy checks them before
//! anything else, and one resource that breaks one takes the whole response down with it. So every
//! generated resource is checked here first, and an offender is left out alone.
//!
//! The rules are compiled into a table once per process, and the check walks the encoded bytes:
//! nothing is decoded, and message types without rules below them are skipped. `Any` values of
//! known types are entered; those of unknown types are not judged, because Envoy builds differ.

mod table;
mod value;

use super::descriptors::type_name;
use super::wire::{self, Malformed, Raw, any_parts};
use super::{Resource, TypeUrl};
use std::fmt;
use std::sync::LazyLock;
use table::{Field, Shape, Table};
use value::Value;

/// A rule that a message breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, as in `virtual_hosts[0].routes[2].match`; empty for the message itself.
    pub path: String,
    /// What must be different there.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// The rules that an encoded message breaks, in the order of the encoding. `type_url` may be a bare
/// type name; a type without rules breaks none.
pub fn check(type_url: &str, encoded: &[u8]) -> Vec<Violation> {
    let mut walk = Walk { table: &TABLE, found: Vec::new() };
    if let Some(index) = TABLE.by_name.get(type_name(type_url)) {
        walk.message(*index, encoded, &Path::Root);
    }
    walk.found
}

/// The rules that a resource breaks.
pub fn check_resource(type_url: TypeUrl, resource: &Resource) -> Vec<Violation> {
    check(type_url.as_str(), &resource.body)
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::compile);

/// Where the walk stands; written out only when there is something to say.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
    Key(&'a Path<'a>, &'a [u8]),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Path::Key(parent, key) => write!(f, "{parent}[{}]", String::from_utf8_lossy(key)),
        }
    }
}

struct Walk<'t> {
    table: &'t Table,
    found: Vec<Violation>,
}

impl Walk<'_> {
    fn report(&mut self, path: &Path<'_>, message: impl Into<String>) {
        self.found.push(Violation { path: path.to_string(), message: message.into() });
    }

    fn malformed(&mut self, path: &Path<'_>) {
        self.report(path, "is not a valid encoding");
    }

    fn message(&mut self, index: usize, encoded: &[u8], path: &Path<'_>) {
        let rules = &self.table.types[index];
        let mut counts = vec![0usize; rules.fields.len()];
        let mut at = 0;
        loop {
            let field = match wire::field(encoded, at) {
                Ok(Some(field)) => field,
                Ok(None) => break,
                Err(Malformed) => return self.malformed(path),
            };
            at = field.whole.end;
            let Ok(i) = rules.fields.binary_search_by_key(&field.number, |f| f.number) else {
                continue;
            };
            let rule = &rules.fields[i];
            let here = Path::Field(path, &rule.name);
            match &rule.shape {
                Shape::One { value, .. } => {
                    counts[i] += 1;
                    self.value(value, &field.value, encoded, &here);
                }
                Shape::List { item, .. } => match self.items(item, &field.value, encoded) {
                    Ok(items) => {
                        for raw in items {
                            let here = Path::Index(&here, counts[i]);
                            counts[i] += 1;
                            self.value(item, &raw, encoded, &here);
                        }
                    }
                    Err(Malformed) => self.malformed(&here),
                },
                Shape::Map { key, value, .. } => {
                    counts[i] += 1;
                    if self.entry(key, value, &field.value, encoded, &here) == Err(Malformed) {
                        self.malformed(&here);
                    }
                }
            }
        }
        for (rule, count) in rules.fields.iter().zip(&counts) {
            if let Some(complaint) = rule.complaint_about_count(*count) {
                self.report(&Path::Field(path, &rule.name), complaint);
            }
            if let Shape::List { unique: true, item, .. } = &rule.shape
                && *count > 1
                && self.has_duplicates(rule, item, encoded)
            {
                self.report(&Path::Field(path, &rule.name), "must not have the same item twice");
            }
        }
        for oneof in &rules.required_oneofs {
            if oneof.members.iter().all(|member| counts[*member] == 0) {
                let names = oneof.members.iter().map(|member| rules.fields[*member].name.as_str());
                let names: Vec<&str> = names.collect();
                self.report(path, format!("must have one of {}", names.join(", ")));
            }
        }
    }

    /// The items that one occurrence of a repeated field stands for: several if it is packed.
    fn items(&self, item: &Value, raw: &Raw, encoded: &[u8]) -> Result<Vec<Raw>, Malformed> {
        match raw {
            Raw::Bytes(range) => match item.packed() {
                Some(scalar) => wire::packed(encoded, range.clone(), scalar),
                None => Ok(vec![raw.clone()]),
            },
            raw => Ok(vec![raw.clone()]),
        }
    }

    fn value(&mut self, value: &Value, raw: &Raw, encoded: &[u8], path: &Path<'_>) {
        match (value, raw) {
            (Value::Free(_), _) => {}
            (Value::Message(index), Raw::Bytes(range)) => {
                self.message(*index, &encoded[range.clone()], path);
            }
            (Value::Any, Raw::Bytes(range)) => self.any(&encoded[range.clone()], path),
            (Value::Message(_) | Value::Any, _) => self.malformed(path),
            (Value::Leaf(leaf), raw) => match leaf.complaint(raw, encoded) {
                Ok(None) => {}
                Ok(Some(complaint)) => self.report(path, complaint),
                Err(Malformed) => self.malformed(path),
            },
        }
    }

    fn any(&mut self, any: &[u8], path: &Path<'_>) {
        let Ok((type_url, value)) = any_parts(any) else { return self.malformed(path) };
        let name = std::str::from_utf8(&any[type_url]).map(type_name);
        if let Some(index) = name.ok().and_then(|name| self.table.by_name.get(name)) {
            self.message(*index, &any[value], path);
        }
    }

    fn entry(
        &mut self,
        key: &Value,
        value: &Value,
        raw: &Raw,
        encoded: &[u8],
        path: &Path<'_>,
    ) -> Result<(), Malformed> {
        let Raw::Bytes(range) = raw else { return Err(Malformed) };
        let entry = &encoded[range.clone()];
        let (mut raw_key, mut raw_value) = (None, None);
        let mut at = 0;
        while let Some(field) = wire::field(entry, at)? {
            at = field.whole.end;
            match field.number {
                1 => raw_key = Some(field.value),
                2 => raw_value = Some(field.value),
                _ => {}
            }
        }
        let text = match &raw_key {
            Some(Raw::Bytes(range)) => &entry[range.clone()],
            _ => &[],
        };
        let path = Path::Key(path, text);
        for (value, raw) in [(key, raw_key), (value, raw_value)] {
            match raw {
                Some(raw) => self.value(value, &raw, entry, &path),
                None => {
                    if let Some(complaint) = value.complaint_about_default() {
                        self.report(&path, complaint);
                    }
                }
            }
        }
        Ok(())
    }

    fn has_duplicates(&self, rule: &Field, item: &Value, encoded: &[u8]) -> bool {
        let mut seen = std::collections::HashSet::new();
        let mut at = 0;
        // The walk before has found the bytes to be well-formed.
        while let Ok(Some(field)) = wire::field(encoded, at) {
            at = field.whole.end;
            if field.number != rule.number {
                continue;
            }
            for raw in self.items(item, &field.value, encoded).into_iter().flatten() {
                let content = match raw {
                    Raw::Varint(n) | Raw::Fixed64(n) => n.to_le_bytes().to_vec(),
                    Raw::Fixed32(n) => n.to_le_bytes().to_vec(),
                    Raw::Bytes(range) => encoded[range].to_vec(),
                };
                if !seen.insert(content) {
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
