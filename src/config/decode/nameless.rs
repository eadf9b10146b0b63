//! Files that hold one value without `apiVersion`, `kind` and a name, such as Istio's mesh
//! configuration.

use super::document::{DEFAULT_NAMESPACE, Header, RawDocument};
use super::place::{explain, place};
use crate::config::source::SourceFile;
use crate::config::yaml::{Node, Value, parse, point, split};
use crate::diag::{Code, Diagnostic, Excerpt, Position};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Reads a file that is one mapping; `kind` is what findings call it. An empty file is an empty
/// mapping.
pub fn read_nameless(source: &SourceFile, kind: &str) -> Result<RawDocument, Vec<Diagnostic>> {
    let mut found: Option<Node> = None;
    let mut diagnostics = Vec::new();
    for chunk in split(&source.text) {
        match parse(chunk) {
            Ok(None | Some(Node { value: Value::Null, .. })) => {}
            Ok(Some(node)) if !matches!(node.value, Value::Mapping(_)) => {
                let message = "expected a mapping";
                diagnostics.push(Diagnostic::new(Code::InvalidValue, message).at(place(
                    source,
                    node.focus(),
                    Excerpt::Shown,
                )));
            }
            Ok(Some(node)) if found.is_some() => {
                let message = "the file may hold only one document; remove the others";
                diagnostics.push(Diagnostic::new(Code::InvalidValue, message).at(place(
                    source,
                    node.focus(),
                    Excerpt::Shown,
                )));
            }
            Ok(Some(node)) => found = Some(node),
            Err(problems) => {
                let explained = problems.into_iter().map(|p| explain(source, p, Excerpt::Shown));
                diagnostics.extend(explained);
            }
        }
    }
    if !diagnostics.is_empty() {
        for diagnostic in &mut diagnostics {
            diagnostic.object = Some(kind.to_owned());
        }
        return Err(diagnostics);
    }
    let start = point(Position { line: 1, column: 1 });
    let root = found.unwrap_or(Node { span: start, value: Value::Mapping(Vec::new()) });
    let header = Header {
        api_version: Arc::default(),
        kind: kind.into(),
        namespace: DEFAULT_NAMESPACE.into(),
        name: Arc::default(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        created: None,
        span: place(source, root.focus(), Excerpt::Shown),
    };
    let hash = xxh3_128(source.text.as_bytes());
    Ok(RawDocument { header, root, source: source.clone(), hash })
}

#[cfg(test)]
mod tests {
    use super::read_nameless;
    use crate::config::{SourceFile, Value};

    fn read(text: &str) -> Result<Vec<String>, Vec<String>> {
        match read_nameless(&SourceFile::new("mesh.yaml", text), "MeshConfig") {
            Ok(document) => match document.root.value {
                Value::Mapping(entries) => {
                    Ok(entries.into_iter().map(|(key, _)| key.text.to_string()).collect())
                }
                other => panic!("a mapping, not {other:?}"),
            },
            Err(found) => Err(found.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn a_file_is_one_mapping() {
        assert_eq!(read("a: 1\nb: 2\n"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        for empty in ["", "# nothing\n", "---\n", "---\nnull\n"] {
            assert_eq!(read(empty), Ok(Vec::new()), "{empty:?}");
        }
    }

    #[test]
    fn everything_else_is_an_error_with_a_place() {
        for (text, start) in [
            ("- a\n", "mesh.yaml:1:1: error[PF0201]: expected a mapping (MeshConfig)"),
            ("a: 1\n---\nb: 2\n", "mesh.yaml:3:1: error[PF0201]: the file may hold only one"),
            ("a: 1\na: 2\n", "mesh.yaml:2:1: error[PF0103]"),
            ("a: [\n", "mesh.yaml:"),
        ] {
            let found = read(text).expect_err("it is wrong");
            assert!(found[0].starts_with(start), "{text:?}: {found:?}");
        }
    }
}
