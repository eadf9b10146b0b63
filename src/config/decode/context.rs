//! What one run of decoding knows and learns beside the value.

use super::field::Field;
use super::suggest::nearest;
use crate::config::yaml::{Key, Node};
use std::cell::RefCell;
use std::collections::HashSet;

/// The names that a struct or enum knows.
pub(super) type Names = &'static [&'static str];

/// What one run of decoding knows and learns beside the value.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// Values to treat as absent, because they are known to be wrong.
    pub pruned: HashSet<*const Node>,
    /// Fields that the type does not have.
    pub ignored: RefCell<Vec<Ignored>>,
}

/// A field that the type does not have.
#[derive(Debug)]
pub(super) struct Ignored {
    pub path: String,
    pub key: Key,
    pub suggestion: Option<&'static str>,
}

impl Context {
    pub fn is_pruned(&self, node: &Node) -> bool {
        !self.pruned.is_empty() && self.pruned.contains(&std::ptr::from_ref(node))
    }

    pub fn ignore(&self, path: &Field<'_>, key: &Key, fields: Names) {
        let suggestion = nearest(&key.text, fields.iter().copied());
        let ignored = Ignored { path: path.to_string(), key: key.clone(), suggestion };
        self.ignored.borrow_mut().push(ignored);
    }
}
