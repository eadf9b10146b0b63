//! Whatever the text, the reader neither panics nor points outside it.

use super::reading;
use crate::config::yaml::plain;
use crate::config::{Extent, Node, Value, decode};
use crate::diag::{Diagnostics, Position, Span};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Text made of what matters in YAML.
fn yamlish() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b: ",
        "- ",
        "\n",
        "\r\n",
        "\r",
        "  ",
        "\t",
        "---\n",
        "...\n",
        ": ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "'",
        "\"",
        "|\n",
        ">-\n",
        "&a ",
        "*a",
        "!!int ",
        "! ",
        "? ",
        "# c\n",
        "%YAML 1.1\n",
        "é",
        "😀",
        "\u{feff}",
        "\u{85}",
        "\u{0}",
        "\\",
        "<<: ",
        "1",
        "null",
        "apiVersion: t/v1\n",
        "kind: List\n",
        "kind: X\n",
        "metadata: {name: x}\n",
        "metadata:\n  name: x\n",
        "items:\n",
        "spec:\n  a: 1\n",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// The lines of a text, as characters without breaks.
fn columns(text: &str) -> Vec<u32> {
    let text = crate::diag::without_mark(text);
    let mut columns: Vec<u32> = crate::diag::lines(text)
        .map(|line| u32::try_from(line.trim_end_matches(['\r', '\n']).chars().count()).unwrap())
        .collect();
    if text.is_empty() || text.ends_with(['\n', '\r']) {
        columns.push(0);
    }
    columns
}

fn check(columns: &[u32], position: Position, slack: u32) {
    assert!(position.line >= 1 && position.column >= 1, "{position:?}");
    let width = columns.get(position.line as usize - 1);
    let width = width.unwrap_or_else(|| panic!("{position:?} is below the text"));
    assert!(position.column <= width + 1 + slack, "{position:?} is beside the text ({width})");
}

fn check_span(columns: &[u32], span: &Span) {
    check(columns, span.start, 0);
    // The caret of a finding at the very end of a line is one wide.
    check(columns, span.end, 1);
    assert!(span.start <= span.end);
}

fn check_node(columns: &[u32], node: &Node) {
    let extent = |extent: Extent| {
        check(columns, extent.start, 0);
        check(columns, extent.end, 0);
        assert!(extent.start <= extent.end);
    };
    extent(node.span);
    match &node.value {
        Value::Sequence(items) => items.iter().for_each(|item| check_node(columns, item)),
        Value::Mapping(entries) => {
            for (key, value) in entries {
                extent(key.span);
                check_node(columns, value);
            }
        }
        _ => {}
    }
}

fn check_text(text: &str) {
    let columns = columns(text);
    let reading = reading(text);
    for document in &reading.documents {
        check_node(&columns, &document.root);
        let mut diags = Diagnostics::new();
        let _: Option<BTreeMap<String, Vec<u8>>> = decode(document, "spec", &mut diags);
        for diagnostic in diags.as_slice() {
            check_span(&columns, diagnostic.span.as_ref().unwrap());
        }
    }
    for broken in &reading.broken {
        check_span(&columns, &broken.span);
    }
    for diagnostic in &reading.diagnostics {
        check_span(&columns, diagnostic.span.as_ref().unwrap());
    }
    assert_eq!(reading.broken.is_empty(), reading.diagnostics.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn yaml_like_text_is_read_without_harm(text in yamlish()) {
        check_text(&text);
    }

    #[test]
    fn any_text_is_read_without_harm(text in any::<String>()) {
        check_text(&text);
    }

    #[test]
    fn scalars_written_by_serde_yaml_are_read_back(value in "[ -~äé\t\n]{0,20}", number in any::<i64>()) {
        // The writer quotes for YAML 1.2; what 1.1 reads differently is not its fault.
        prop_assume!(matches!(plain(&value), Value::String(_)));
        let map = BTreeMap::from([("text", serde_json::json!(value)), ("number", number.into())]);
        let yaml = serde_yaml::to_string(&map).unwrap();
        let text = format!("apiVersion: t/v1\nkind: X\nmetadata: {{name: x}}\nspec:\n{}",
            yaml.lines().map(|l| format!("  {l}\n")).collect::<String>());
        let reading = reading(&text);
        prop_assume!(reading.diagnostics.is_empty());
        let spec = reading.documents[0].root.get("spec").unwrap();
        prop_assert_eq!(&spec.get("number").unwrap().value, &Value::Int(number));
        prop_assert_eq!(spec.get("text").unwrap().as_str(), Some(&*value));
    }
}
