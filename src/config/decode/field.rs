//! The path of a field, built on the stack while a validator or decoder walks a value.
//!
//! Validators speak in paths and never in positions; the located tree turns a path into a place.

use crate::config::yaml::{Key, Node, Value};
use std::fmt;

/// The path of one field, linked to its parents on the stack.
///
/// ```
/// use pilotfish::config::Field;
/// let spec = Field::root("spec");
/// let http = spec.key("http");
/// assert_eq!(http.index(0).key("match").to_string(), "spec.http[0].match");
/// assert_eq!(spec.key("headers").key("x.y").to_string(), r#"spec.headers["x.y"]"#);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    parent: Option<&'a Field<'a>>,
    step: Step<'a>,
}

/// One step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The document itself; only ever the first step.
    Document,
    /// The value of a key in a mapping.
    Key(&'a str),
    /// An element of a sequence.
    Index(usize),
}

impl<'a> Field<'a> {
    /// The path of the whole document.
    pub const DOCUMENT: Field<'static> = Field { parent: None, step: Step::Document };

    /// A path that starts at a section of the document, such as `spec`; an empty name is the
    /// whole document.
    pub const fn root(section: &'a str) -> Field<'a> {
        let step = if section.is_empty() { Step::Document } else { Step::Key(section) };
        Field { parent: None, step }
    }

    /// The field `key` of this one.
    pub fn key<'b>(&'b self, key: &'b str) -> Field<'b> {
        Field { parent: Some(self), step: Step::Key(key) }
    }

    /// Element `index` of this field, from 0.
    pub fn index(&self, index: usize) -> Field<'_> {
        Field { parent: Some(self), step: Step::Index(index) }
    }

    /// The steps from the document down to this field; the document itself has none.
    pub fn steps(&self) -> Vec<Step<'a>> {
        let mut steps = Vec::new();
        let mut field = Some(self);
        while let Some(at) = field {
            if at.step != Step::Document {
                steps.push(at.step);
            }
            field = at.parent;
        }
        steps.reverse();
        steps
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Path(&self.steps()).fmt(f)
    }
}

/// Steps from the document down, as users write them.
pub(super) struct Path<'s>(pub &'s [Step<'s>]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Document => {}
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if !is_simple(key) => write!(f, "[{key:?}]")?,
                Step::Key(key) if at == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

/// What a path leads to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'t> {
    /// The value itself, with its key when it is in a mapping.
    Value(Option<&'t Key>, &'t Node),
    /// The nearest value above, because the path ends there.
    Ancestor(Option<&'t Key>, &'t Node),
}

/// Follows a path as far as it leads.
pub(super) fn find<'t>(root: &'t Node, steps: &[Step<'_>]) -> Found<'t> {
    let (mut key, mut node) = (None, root);
    for step in steps {
        let next = match (step, &node.value) {
            (Step::Document, _) => Some((key, node)),
            (Step::Key(name), _) => node.entry(name).map(|(k, n)| (Some(k), n)),
            (Step::Index(index), Value::Sequence(items)) => {
                items.get(*index).map(|item| (None, item))
            }
            (Step::Index(_), _) => None,
        };
        match next {
            Some(found) => (key, node) = found,
            None => return Found::Ancestor(key, node),
        }
    }
    Found::Value(key, node)
}

/// Whether a key can stand in a path without quotes.
fn is_simple(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::{Field, Step};

    #[test]
    fn paths_read_as_users_write_them() {
        let spec = Field::root("spec");
        let http = spec.key("http");
        let first = http.index(0);
        let uri = first.key("match");
        assert_eq!(uri.index(1).key("uri").to_string(), "spec.http[0].match[1].uri");
        assert_eq!(Field::DOCUMENT.to_string(), "");
        assert_eq!(Field::DOCUMENT.key("spec").key("hosts").to_string(), "spec.hosts");
    }

    #[test]
    fn odd_keys_are_quoted() {
        let headers = Field::root("headers");
        assert_eq!(headers.key("x.y").to_string(), "headers[\"x.y\"]");
        assert_eq!(headers.key("").to_string(), "headers[\"\"]");
        assert_eq!(headers.key("a\"b").key("exact").to_string(), "headers[\"a\\\"b\"].exact");
    }

    #[test]
    fn steps_run_from_the_document_down() {
        let data = Field::DOCUMENT.key("data");
        assert_eq!(data.index(2).steps(), [Step::Key("data"), Step::Index(2)]);
        assert!(Field::root("").steps().is_empty());
    }
}
