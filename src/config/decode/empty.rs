//! `key:` with nothing behind it, and what was probably meant to stand below it.
//!
//! ```yaml
//! - destination:
//!   host: reviews
//! ```

use crate::config::yaml::{Key, Node, Value};

/// The keys right behind an empty one that nobody knows where they stand.
pub(super) fn astray<'t>(
    entries: &'t [(Key, Node)],
    empty: &Key,
    is_unknown: impl Fn(&Key) -> bool,
) -> Vec<&'t Key> {
    let behind = entries.iter().map(|(key, _)| key).skip_while(|key| key.span != empty.span);
    behind.skip(1).take_while(|key| is_unknown(key)).collect()
}

/// The empty key that an unknown one was probably meant to stand below.
pub(super) fn above<'t>(
    root: &'t Node,
    unknown: &Key,
    is_unknown: impl Fn(&Key) -> bool,
) -> Option<&'t Key> {
    let (entries, at) = siblings(root, unknown)?;
    let (key, node) = entries[..at].iter().rev().find(|(key, _)| !is_unknown(key))?;
    let on_lines = key.span.start.line < unknown.span.start.line;
    (on_lines && node.value == Value::Null).then_some(key)
}

/// The mapping that a key is in, and its index there.
fn siblings<'t>(node: &'t Node, wanted: &Key) -> Option<(&'t [(Key, Node)], usize)> {
    match &node.value {
        Value::Mapping(entries) => {
            match entries.iter().position(|(key, _)| key.span == wanted.span) {
                Some(at) => Some((entries, at)),
                None => entries.iter().find_map(|(_, value)| siblings(value, wanted)),
            }
        }
        Value::Sequence(items) => items.iter().find_map(|item| siblings(item, wanted)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => None,
    }
}
