//! One document's tree to a typed value, with every error and every unknown field in one run.

use super::context::{Context, Ignored};
use super::deserializer::NodeDeserializer;
use super::document::RawDocument;
use super::empty;
use super::error::{Error, Values};
use super::field::Field;
use super::pruned::Pruned;
use super::suggest::nearest;
use crate::config::yaml::{Key, Node, Value};
use crate::diag::{Code, Diagnostic, Diagnostics, Excerpt};
use serde::de::DeserializeOwned;

/// After so many errors in one document, further ones are not looked for.
const MOST_ERRORS: usize = 25;

/// What every object has beside its section.
const OBJECT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Kubernetes' object metadata; what we do not use is accepted in silence, as in exports.
const METADATA: [&str; 16] = [
    "annotations",
    "clusterName",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Decodes a section of a document (`spec`), or with an empty section name everything beside
/// the object's own fields (a Secret's `type` and `data`).
///
/// `None` when the document is refused; the reasons are then in `diags`. Unknown fields are
/// warnings.
pub fn decode<T: DeserializeOwned>(
    document: &RawDocument,
    section: &str,
    diags: &mut Diagnostics,
) -> Option<T> {
    let (value, pruned) = decode_rest(document, section, diags);
    value.filter(|_| pruned.is_empty())
}

/// As [`decode`], but gives of a document with errors the part that is right, with what was taken
/// out of it: rules may look at that part, and the document stays refused.
///
/// serde stops at its first error, so what is wrong is taken out of sight and decoding repeated
/// until nothing is wrong any more: all errors of a document come out in one run.
pub fn decode_rest<T: DeserializeOwned>(
    document: &RawDocument,
    section: &str,
    diags: &mut Diagnostics,
) -> (Option<T>, Pruned) {
    let absent = Node { span: document.root.span, value: Value::Mapping(Vec::new()) };
    let rest;
    let node = if section.is_empty() {
        rest = without_object_fields(&document.root);
        &rest
    } else {
        match document.root.get(section) {
            None | Some(Node { value: Value::Null, .. }) => &absent,
            Some(node) => node,
        }
    };
    let object = document.header.object();
    check_object_fields(document, section, &object, diags);

    let path = Field::root(section);
    let mut context = Context::default();
    let mut errors = 0;
    let value = loop {
        let error = match T::deserialize(NodeDeserializer::new(node, &path, &context)) {
            Ok(value) => break Some(value),
            Err(error) => error,
        };
        let target = error.place().map_or(std::ptr::from_ref(node), |place| place.node);
        if !follows_from_pruning(&error, node, target, &context) {
            let found = diagnostic(&error, document, &object);
            diags.push(about_empty(found, &error, node, document, &context));
            errors += 1;
        }
        let is_new = context.pruned.insert(target);
        if std::ptr::eq(target, node) || !is_new || errors >= MOST_ERRORS {
            break None;
        }
    };

    let pruned = Pruned::of(section, node, &context.pruned);
    let mut ignored = context.ignored.into_inner();
    ignored.sort_by(|a, b| (a.key.span.start, &a.path).cmp(&(b.key.span.start, &b.path)));
    ignored.dedup_by(|a, b| a.path == b.path);
    for field in &ignored {
        let mut diagnostic =
            unknown(&object, field.path.clone()).at(document.place(field.key.span));
        let above = || empty::above(node, &field.key, |key| is_ignored(&ignored, key));
        diagnostic.help = match field.suggestion {
            Some(name) => Some(format!("did you mean `{name}`?")),
            None => above().map(|empty| deeper(&field.key.text, &empty.text)),
        };
        diags.push(diagnostic);
    }
    (value, pruned)
}

fn is_ignored(ignored: &[Ignored], key: &Key) -> bool {
    ignored.iter().any(|field| field.key.span == key.span)
}

fn deeper(what: &str, empty: &str) -> String {
    format!("`{empty}` above is empty; `{what}` probably belongs one level deeper, below it")
}

/// A required field that is there, but empty, is not missing.
fn about_empty(
    mut found: Diagnostic,
    error: &Error,
    root: &Node,
    document: &RawDocument,
    context: &Context,
) -> Diagnostic {
    let container = error.place().and_then(|place| find(root, place.node));
    let (Some(field), Some(container)) = (error.is_missing_field(), container) else {
        return found;
    };
    let Some((key, Node { value: Value::Null, .. })) = container.entry(field) else { return found };
    let Value::Mapping(entries) = &container.value else { return found };
    let astray = empty::astray(entries, key, |key| is_ignored(&context.ignored.borrow(), key));
    found.message = format!("the required field `{field}` is empty");
    found.field = Some(match found.field {
        Some(path) => format!("{path}.{field}"),
        None => field.to_owned(),
    });
    found.help = match astray.as_slice() {
        [] => found.help,
        [one] => Some(deeper_than(&[one], "belongs", field)),
        several => Some(deeper_than(several, "belong", field)),
    };
    found.at(document.place(key.span))
}

fn deeper_than(keys: &[&Key], belong: &str, field: &str) -> String {
    let names: Vec<String> = keys.iter().map(|key| format!("`{}`", key.text)).collect();
    format!("{} probably {belong} one level deeper, below `{field}`", names.join(" and "))
}

fn unknown(object: &str, path: String) -> Diagnostic {
    Diagnostic::new(Code::UnknownField, "unknown field").on(object).field(path)
}

fn diagnostic(error: &Error, document: &RawDocument, object: &str) -> Diagnostic {
    let span = match error.place() {
        Some(place) => document.place(place.at),
        None => document.header.span.clone(),
    };
    let values = match span.excerpt {
        Excerpt::Shown => Values::Shown,
        Excerpt::Withheld => Values::Withheld,
    };
    let mut diagnostic = Diagnostic::new(error.code(), error.message(values)).at(span).on(object);
    diagnostic.field = error.place().map(|place| place.path.clone()).filter(|p| !p.is_empty());
    diagnostic.help = error.help();
    diagnostic
}

/// Whether an error is only there because a wrong value was taken out of sight.
fn follows_from_pruning(
    error: &Error,
    root: &Node,
    target: *const Node,
    context: &Context,
) -> bool {
    if context.pruned.is_empty() || error.is_mismatch() {
        return false;
    }
    let Some(container) = find(root, target) else { return false };
    let pruned = |node: &Node| context.pruned.contains(&std::ptr::from_ref(node));
    match (&container.value, error.is_missing_field()) {
        (Value::Mapping(entries), Some(field)) => {
            entries.iter().any(|(key, node)| pruned(node) && nearest(&key.text, [field]).is_some())
        }
        (Value::Mapping(entries), None) => entries.iter().any(|(_, node)| pruned(node)),
        (Value::Sequence(items), _) => items.iter().any(pruned),
        _ => false,
    }
}

fn find(node: &Node, target: *const Node) -> Option<&Node> {
    if std::ptr::eq(node, target) {
        return Some(node);
    }
    match &node.value {
        Value::Sequence(items) => items.iter().find_map(|item| find(item, target)),
        Value::Mapping(entries) => entries.iter().find_map(|(_, value)| find(value, target)),
        _ => None,
    }
}

fn without_object_fields(root: &Node) -> Node {
    let entries: Vec<(Key, Node)> = match &root.value {
        Value::Mapping(entries) => {
            entries.iter().filter(|(key, _)| !OBJECT.contains(&&*key.text)).cloned().collect()
        }
        _ => Vec::new(),
    };
    Node { span: root.span, value: Value::Mapping(entries) }
}

/// Warns about fields beside the section and in the metadata that no object has.
fn check_object_fields(
    document: &RawDocument,
    section: &str,
    object: &str,
    diags: &mut Diagnostics,
) {
    let mut check = |node: &Node, parent: &Field<'_>, known: &[&str]| {
        let Value::Mapping(entries) = &node.value else { return };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&&*key.text)) {
            let mut diagnostic =
                unknown(object, parent.key(&key.text).to_string()).at(document.place(key.span));
            diagnostic.help = nearest(&key.text, known.iter().copied())
                .map(|name| format!("did you mean `{name}`?"));
            diags.push(diagnostic);
        }
    };
    if !section.is_empty() {
        let [a, b, c, d] = OBJECT;
        check(&document.root, &Field::DOCUMENT, &[a, b, c, d, section]);
    }
    if let Some(metadata) = document.root.get("metadata") {
        check(metadata, &Field::root("metadata"), &METADATA);
    }
}
