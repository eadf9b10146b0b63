//! YAML to the located tree.

use super::{Extent, MAX_DEPTH, Node, Value, parse, split};
use crate::diag::Code;

/// Parses the first document.
fn tree(text: &str) -> Node {
    let chunks = split(text);
    parse(chunks[0]).unwrap().unwrap()
}

/// Code, `line:column` and message of the first problem.
fn problem(text: &str) -> (Code, String, String) {
    let chunks = split(text);
    let problems = parse(chunks[0]).expect_err(text);
    let first = &problems[0];
    let Extent { start, .. } = first.at;
    (first.code, format!("{}:{}", start.line, start.column), first.message.clone())
}

/// The tree as JSON, positions left out.
fn json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::String(text) => text.to_string().into(),
        Value::Sequence(items) => items.iter().map(json).collect(),
        Value::Mapping(entries) => serde_json::Value::Object(
            entries.iter().map(|(key, node)| (key.text.to_string(), json(node))).collect(),
        ),
    }
}

fn extent(node: &Node) -> String {
    let Extent { start, end } = node.span;
    format!("{}:{}-{}:{}", start.line, start.column, end.line, end.column)
}

#[test]
fn quoted_scalars_are_strings() {
    let text = "a: '80'\nb: \"true\"\nc: |\n  1\nd: >-\n  no\ne: ''\nf: 80\n";
    let expected = serde_json::json!({
        "a": "80", "b": "true", "c": "1\n", "d": "no", "e": "", "f": 80,
    });
    assert_eq!(json(&tree(text)), expected);
}

#[test]
fn tags_are_honoured() {
    let text = "a: !!str 80\nb: !!int '80'\nc: !!float 1\nd: ! 80\ne: !mine 80\nf: !!bool on\n";
    let expected = serde_json::json!({
        "a": "80", "b": 80, "c": 1.0, "d": "80", "e": 80, "f": true,
    });
    assert_eq!(json(&tree(text)), expected);
    assert_eq!(
        problem("a: !!int x\n"),
        (Code::YamlSyntax, "1:4".into(), "the tag `!!int` needs a whole number".into())
    );
}

#[test]
fn keys_become_strings_as_in_kubernetes() {
    let text = "80: a\n0x10: b\n1.50: c\ntrue: d\n'no': e\noff: f\n";
    let expected = serde_json::json!({
        "80": "a", "16": "b", "1.5": "c", "true": "d", "no": "e", "false": "f",
    });
    assert_eq!(json(&tree(text)), expected);
}

#[test]
fn merge_keys_fill_in_what_is_not_written() {
    let text = "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\n\
                one: {<<: *b, x: 9}\nmany:\n  <<: [*m, *b]\n  w: 0\nquoted: {'<<': 1}\n";
    let found = json(&tree(text));
    assert_eq!(found["one"], serde_json::json!({"x": 9, "true": 2}));
    assert_eq!(found["many"], serde_json::json!({"w": 0, "true": 3, "z": 4, "x": 1}));
    assert_eq!(found["quoted"], serde_json::json!({"<<": 1}));
    assert_eq!(problem("a:\n  <<: 1\n").1, "2:7");
}

#[test]
fn aliases_repeat_their_anchor() {
    let root = tree("a: &x [1, {b: 2}]\nc: *x\nd: &s text\ne: *s\n");
    let expected = serde_json::json!({
        "a": [1, {"b": 2}], "c": [1, {"b": 2}], "d": "text", "e": "text",
    });
    assert_eq!(json(&root), expected);
    assert_eq!(problem("a: *x\n").1, "1:4");
    assert_eq!(problem("a: &x [*x]\n").1, "1:8");
}

#[test]
fn alias_bomb_is_a_limit_with_a_place() {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..10 {
        let before = format!("*a{}", level - 1);
        let list = [before.as_str(); 9].join(",");
        text += &format!("a{level}: &a{level} [{list}]\n");
    }
    let (code, place, message) = problem(&text);
    assert_eq!(code, Code::YamlLimit);
    assert_eq!(place.split(':').next(), Some("6"), "{place}");
    assert!(message.contains("aliases"), "{message}");
}

#[test]
fn alias_bomb_of_text_is_a_limit_too() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), "*a, ".repeat(1000));
    assert_eq!(problem(&text).0, Code::YamlLimit);
}

#[test]
fn depth_is_limited_in_every_style() {
    let flow = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
    assert_eq!(problem(&flow).0, Code::YamlLimit);
    assert_eq!(problem(&flow).1, format!("1:{}", MAX_DEPTH + 1));
    assert_eq!(problem(&"[".repeat(100_000)).0, Code::YamlLimit);
    assert_eq!(problem(&"- ".repeat(100_000)).0, Code::YamlLimit);
    let just_right = "[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH);
    tree(&just_right);
    // Aliases count with what they bring.
    let mut deep = String::from("a0: &a0 x\n");
    for level in 1..=MAX_DEPTH {
        deep += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
    }
    assert_eq!(problem(&deep).0, Code::YamlLimit);
}

#[test]
fn duplicate_keys_name_the_first_line() {
    let (code, place, message) = problem("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n");
    assert_eq!((code, place.as_str()), (Code::YamlDuplicateKey, "5:3"));
    assert_eq!(message, "the key `c` is already used on line 3");
    // The same key in another spelling.
    assert_eq!(problem("80: 1\n'80': 2\n").0, Code::YamlDuplicateKey);
}

#[test]
fn duplicates_are_found_in_large_mappings_quickly() {
    let mut text: String = (0..50_000).map(|n| format!("k{n}: 1\n")).collect();
    tree(&text);
    text += "k7: 2\n";
    assert_eq!(problem(&text).1, "50001:1");
}

#[test]
fn spans_cover_what_was_written() {
    let root = tree("# c\na: one\nb:\n  - {x: 1}\n  - \"q r\"\nc: [1,\n  2]\n");
    assert_eq!(extent(&root), "2:1-7:5");
    assert_eq!(extent(root.get("a").unwrap()), "2:4-2:7");
    assert_eq!(extent(root.get("b").unwrap()), "4:3-5:10");
    let Value::Sequence(items) = &root.get("b").unwrap().value else { panic!() };
    assert_eq!(extent(&items[0]), "4:5-4:11");
    assert_eq!(extent(&items[1]), "5:5-5:10");
    assert_eq!(extent(root.get("c").unwrap()), "6:4-7:5");
}

#[test]
fn json_is_read_by_the_same_rules() {
    let text = "{\n\t\"a\": [1, -2.5e3, \"x\\u00e9\\n\", null, true],\n\t\"b\": {\"c\":{}}\n}\n";
    let expected = serde_json::json!({
        "a": [1, -2500.0, "x\u{e9}\n", null, true], "b": {"c": {}},
    });
    assert_eq!(json(&tree(text)), expected);
}

#[test]
fn syntax_errors_are_explained_where_they_are() {
    for (text, place, part) in [
        ("a:\n\t- b\n", "2:1", "tab"),
        ("a:\n  b:\n \t \t c: 1\n", "3:2", "tab"),
        ("a: b: c\n", "1:5", "`:`"),
        ("a: 1\n b: 2\n", "2:3", "`:`"),
        ("a: 1\nb\nc: 2\n", "3:1", "no `:`"),
        ("a:\n  - b\n c: d\n", "3:2", "indentation"),
        ("a: {b: 1\n", "2:1", "not closed"),
        ("a: [1, 2\n", "2:1", "not closed"),
        ("a: 'x\n", "1:4", "quoted"),
        ("a: @x\n", "1:4", "start with this"),
        ("a: {{ b }}\n", "1:5", "where a key is expected"),
        ("? [a]\n: b\n", "1:3", "where a key is expected"),
        ("~: b\n", "1:1", "key must not be empty"),
    ] {
        let (code, at, message) = problem(text);
        assert_eq!((code, at.as_str()), (Code::YamlSyntax, place), "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
}

#[test]
fn brackets_may_close_where_kubernetes_lets_them() {
    let text = "- a:\n    b: [\n    1, {\n  x: \"y\n z\"\n  }\n    ]\n    c: 'p\nq'\n  d: 5x\n";
    let root = tree(text);
    let expected = serde_json::json!([{"a": {"b": [1, {"x": "y z"}], "c": "p q"}, "d": "5x"}]);
    assert_eq!(json(&root), expected);
    let Value::Sequence(items) = &root.value else { panic!() };
    assert_eq!(extent(items[0].get("d").unwrap()), "10:6-10:8");
    let b = items[0].get("a").unwrap().get("b").unwrap();
    assert_eq!(extent(b), "2:8-7:6");
    let Value::Sequence(numbers) = &b.value else { panic!() };
    assert_eq!(extent(&numbers[0]), "3:5-3:6");
    // Faults elsewhere keep their places.
    assert_eq!(problem("a: &x\n  b: [\n  1\n  ]\n  c: d: e\n").1, "5:7");
    assert_eq!(problem("a:\n  b: [\n  1: 2: 3\n  ]\n").0, Code::YamlSyntax);
}

#[test]
fn forgotten_separator_is_recognised() {
    let chunks = split("apiVersion: a\nkind: b\nmetadata: {}\napiVersion: a\nkind: c\n");
    let problems = parse(chunks[0]).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].help.as_ref().unwrap().contains("`---`"));
}

#[test]
fn errors_at_the_end_stay_inside_the_text() {
    assert_eq!(problem("a: {b: 1").1, "1:9");
    assert_eq!(problem("a: [").1, "1:5");
}
