//! Fields that are valid but mean nothing to pilotfish yet: one table a kind, from which both the
//! warnings and `examples/SUPPORTED.md` are made.

use crate::config::{Field, Findings, Node, Value};
use crate::diag::{Code, Diagnostic};

/// A field whose use gives a "not supported yet" warning.
#[derive(Debug, Clone, Copy)]
pub struct Unsupported {
    /// Path pattern: `spec.http[].match[].headers`. `[]` stands for any index, `{}` for any key,
    /// `{x*}` for any key that begins with `x` (in any case).
    pub path: &'static str,
    /// The value that is not supported; `None` is any value that is not null.
    pub value: Option<&'static str>,
    /// What happens instead, as half a sentence ("the default balancer is used").
    pub instead: &'static str,
}

/// Warns about each use of the table's fields.
pub(super) fn warn(table: &[Unsupported], f: &mut Findings<'_>) {
    let root = &f.document().root;
    for row in table {
        let steps: Vec<Pattern> = parse(row.path);
        walk(row, &steps, &Field::DOCUMENT, root, f);
    }
}

/// One step of a path pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Key(&'static str),
    /// Any key that begins so.
    AnyKey(&'static str),
    AnyIndex,
}

fn parse(path: &'static str) -> Vec<Pattern> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[]") {
            steps.push(Pattern::AnyIndex);
            rest = after;
        } else if let Some((inside, after)) =
            rest.strip_prefix('{').and_then(|inside| inside.split_once('}'))
        {
            steps.push(Pattern::AnyKey(inside.trim_end_matches('*')));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            steps.push(Pattern::Key(name));
            rest = after;
        }
    }
    steps
}

fn walk(row: &Unsupported, steps: &[Pattern], at: &Field<'_>, node: &Node, f: &mut Findings<'_>) {
    match (steps.split_first(), &node.value) {
        (None, value) => {
            if uses(row, value) {
                found(row, at, f);
            }
        }
        (Some((Pattern::Key(name), rest)), _) => {
            if let Some(next) = node.get(name) {
                walk(row, rest, &at.key(name), next, f);
            }
        }
        (Some((Pattern::AnyKey(start), rest)), Value::Mapping(entries)) => {
            let fits = |key: &str| {
                key.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
            };
            for (key, next) in entries.iter().filter(|(key, _)| fits(&key.text)) {
                walk(row, rest, &at.key(&key.text), next, f);
            }
        }
        (Some((Pattern::AnyIndex, rest)), Value::Sequence(items)) => {
            for (index, next) in items.iter().enumerate() {
                walk(row, rest, &at.index(index), next, f);
            }
        }
        (Some((Pattern::AnyKey(_) | Pattern::AnyIndex, _)), _) => {}
    }
}

fn uses(row: &Unsupported, value: &Value) -> bool {
    match (row.value, value) {
        (_, Value::Null) => false,
        (None, _) => true,
        (Some(wanted), Value::String(text)) => **text == *wanted,
        (Some(wanted), Value::Bool(value)) => wanted == if *value { "true" } else { "false" },
        (Some(_), _) => false,
    }
}

fn found(row: &Unsupported, at: &Field<'_>, f: &mut Findings<'_>) {
    let (what, span) = match row.value {
        Some(value) => (format!("`{value}` is not supported yet"), f.span(at)),
        None => ("the field is not supported yet".to_owned(), f.key_span(at)),
    };
    let message = format!("{what}: {}", row.instead);
    f.report(at, Diagnostic::new(Code::NotSupported, message).at(span));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SourceFile, read};
    use crate::diag::Diagnostics;

    fn findings(table: &[Unsupported], spec: &str) -> Vec<String> {
        let text = format!("apiVersion: v1\nkind: K\nmetadata: {{name: x}}\nspec:\n{spec}");
        let reading = read(&SourceFile::new("f.yaml", text));
        let document = reading.documents.first().expect("the document can be read");
        let mut diags = Diagnostics::new();
        warn(table, &mut Findings::new(document, &mut diags));
        diags.into_sorted().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_use_is_found_where_it_stands() {
        let table = [
            Unsupported { path: "spec.a[].b", value: None, instead: "it is ignored" },
            Unsupported { path: "spec.m.{}.c", value: Some("X"), instead: "Y is used" },
            Unsupported { path: "spec.h.{@a.b*}", value: None, instead: "it is ignored" },
        ];
        let spec = "  a:\n  - b: 1\n  - c: 2\n  - b: null\n  - b: {}\n  m: {k: {c: X}, l: {c: Y}}\n  h: {'@A.b.c': 1, b: 2}\n";
        assert_eq!(
            findings(&table, spec),
            [
                "f.yaml:6:5: warning[PF0205]: spec.a[0].b: the field is not supported yet: it is \
                 ignored (K default/x)",
                "f.yaml:9:5: warning[PF0205]: spec.a[3].b: the field is not supported yet: it is \
                 ignored (K default/x)",
                "f.yaml:10:14: warning[PF0205]: spec.m.k.c: `X` is not supported yet: Y is used \
                 (K default/x)",
                "f.yaml:11:7: warning[PF0205]: spec.h[\"@A.b.c\"]: the field is not supported yet: it \
                 is ignored (K default/x)",
            ]
        );
    }

    #[test]
    fn other_shapes_are_left_alone() {
        let table = [Unsupported { path: "spec.a[].b", value: None, instead: "" }];
        for spec in ["  a: {b: 1}\n", "  a: [1, []]\n", "  b: 1\n"] {
            assert_eq!(findings(&table, spec), Vec::<String>::new(), "{spec}");
        }
    }
}
