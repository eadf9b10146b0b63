//! Values that were taken out of sight because they are wrong, and what may still be said about
//! the rest.
//!
//! Rules that look at the rest must not blame it for what is missing there: a rule whose only
//! match cannot be read is no rule that matches everything.

use super::field::Step;
use crate::config::yaml::{Node, Value};
use crate::diag::Code;
use std::collections::HashSet;

/// The places of the values that were taken out of a document.
#[derive(Debug, Clone, Default)]
pub struct Pruned {
    paths: Vec<Vec<Own>>,
}

/// A [`Step`] that owns its key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Own {
    Key(Box<str>),
    Index(usize),
}

impl Own {
    fn is(&self, step: &Step<'_>) -> bool {
        match (self, step) {
            (Own::Key(own), Step::Key(key)) => **own == **key,
            (Own::Index(own), Step::Index(index)) => own == index,
            (Own::Key(_), Step::Index(_) | Step::Document)
            | (Own::Index(_), Step::Key(_) | Step::Document) => false,
        }
    }
}

/// Whether one of the paths leads through the other.
fn on_one_way(path: &[Own], steps: &[Step<'_>]) -> bool {
    path.iter().zip(steps).all(|(own, step)| own.is(step))
}

/// The mapping that a value, or the list that it is in, belongs to.
fn container(path: &[Own]) -> &[Own] {
    let field = path.iter().rposition(|step| matches!(step, Own::Key(_)));
    &path[..field.unwrap_or(0)]
}

impl Pruned {
    /// The paths of those values of a section.
    pub(super) fn of(section: &str, node: &Node, pruned: &HashSet<*const Node>) -> Pruned {
        let mut found = Pruned::default();
        if !pruned.is_empty() {
            let mut path = Vec::new();
            if !section.is_empty() {
                path.push(Own::Key(section.into()));
            }
            found.collect(node, &mut path, pruned);
        }
        found
    }

    fn collect(&mut self, node: &Node, path: &mut Vec<Own>, pruned: &HashSet<*const Node>) {
        if pruned.contains(&std::ptr::from_ref(node)) {
            self.paths.push(path.clone());
            return;
        }
        match &node.value {
            Value::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push(Own::Index(index));
                    self.collect(item, path, pruned);
                    path.pop();
                }
            }
            Value::Mapping(entries) => {
                for (key, value) in entries {
                    path.push(Own::Key(key.text.clone()));
                    self.collect(value, path, pruned);
                    path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {}
        }
    }

    /// Whether nothing was taken out.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The path in the document of a field of the rest: elements that were taken out of a list
    /// count there.
    pub(super) fn original<'s>(&self, steps: Vec<Step<'s>>) -> Vec<Step<'s>> {
        if self.paths.is_empty() {
            return steps;
        }
        let mut original: Vec<Step<'s>> = Vec::with_capacity(steps.len());
        for step in steps {
            let step = match step {
                Step::Index(index) => Step::Index(self.original_index(&original, index)),
                Step::Key(_) | Step::Document => step,
            };
            original.push(step);
        }
        original
    }

    fn original_index(&self, list: &[Step<'_>], mut index: usize) -> usize {
        // In document order, so ascending.
        for path in &self.paths {
            if let Some((Own::Index(gone), above)) = path.split_last()
                && above.len() == list.len()
                && on_one_way(above, list)
                && *gone <= index
            {
                index += 1;
            }
        }
        index
    }

    /// Whether nothing was taken out at, above or below a field.
    pub(super) fn spares(&self, steps: &[Step<'_>]) -> bool {
        !self.paths.iter().any(|path| on_one_way(path, steps))
    }

    /// Whether a finding may be there only because of what was taken out.
    pub(super) fn may_explain(&self, steps: &[Step<'_>], code: Code) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        // These compare a value with everything around it.
        if matches!(code, Code::Unreachable | Code::NoEffect) {
            return true;
        }
        let is_relation = matches!(code, Code::MissingField | Code::ConflictingFields);
        self.paths.iter().any(|path| {
            on_one_way(path, steps) || (is_relation && on_one_way(container(path), steps))
        })
    }
}
