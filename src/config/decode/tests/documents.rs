//! Files to documents: headers, lists, broken neighbours.

use super::{document, findings, reading};
use crate::config::PartialIdentity;
use crate::diag::{Code, Excerpt};

const GOOD: &str = "apiVersion: t/v1\nkind: Num\nmetadata:\n  name: x\n";

#[test]
fn header_says_who_the_document_is() {
    let document = document(
        "apiVersion: t/v1\nkind: Num\nmetadata:\n  name: x\n  namespace: ns\n  \
         creationTimestamp: 2026-01-31T12:00:00Z\n  labels: {app: a.b}\n  annotations: {k: }\n",
    );
    let header = &document.header;
    assert_eq!(header.object(), "Num ns/x");
    assert_eq!((header.group(), header.version()), ("t", "v1"));
    assert_eq!(header.span.to_string(), "f:4:9");
    assert_eq!(header.created, Some("2026-01-31T12:00:00Z".parse().unwrap()));
    assert_eq!(header.labels["app"], "a.b");
    assert_eq!(header.annotations["k"], "");
}

#[test]
fn namespace_defaults_and_core_kinds_have_no_group() {
    let document = document("apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: ''}\n");
    assert_eq!(document.header.object(), "Service default/x");
    assert_eq!((document.header.group(), document.header.version()), ("", "v1"));
}

#[test]
fn empty_documents_are_skipped_in_silence() {
    for text in ["", "\n", "# hi\n", "---\n", "---\n---\n# x\n...\n", "\u{feff}", "--- ~\n"] {
        let reading = reading(text);
        assert!(reading.documents.is_empty() && reading.broken.is_empty(), "{text:?}");
        assert!(reading.diagnostics.is_empty(), "{text:?}");
    }
}

#[test]
fn broken_document_does_not_take_its_neighbours_with_it() {
    let text = format!("{GOOD}---\nkind: Num\nmetadata:\n  name: [bad\n---\n{GOOD}");
    let reading = reading(&text);
    assert_eq!(reading.documents.len(), 2);
    assert_eq!(reading.documents[1].header.span.to_string(), "f:13:9");
    assert_eq!(reading.broken.len(), 1);
    assert_eq!(reading.broken[0].span.to_string(), "f:5:1");
    assert_eq!(reading.diagnostics.len(), 1);
}

#[test]
fn what_is_not_an_object_is_said_with_its_place() {
    for (text, expected) in [
        ("- a\n", "1:1: error[PF0105]: expected a configuration object"),
        ("just text\n", "1:1: error[PF0105]: expected a configuration object"),
        (
            "apiVersion: t/v1\nkind: Num\nmetadata:\n  name: ''\n",
            "4:9: error[PF0105]: metadata.name: the name must not be empty",
        ),
        (
            "apiVersion: t/v1\nkind: Num\nmetadata:\n  namespace: ns\n",
            "3:1: error[PF0105]: metadata: the object has no name",
        ),
        (
            "kind: Num\nmetadata: {name: x}\n",
            "1:1: error[PF0105]: the document has no apiVersion (Num default/x); a configuration \
             object starts with apiVersion, kind and metadata",
        ),
        (
            "apiVersion: t/v1\nkind: Num\nmetadata: {name: 80}\n",
            "3:18: error[PF0201]: metadata.name: expected a string, found a number; put the value in quotes",
        ),
        (
            "apiVersion: t/v1\nkind: Num\nmetadata: {name: x, labels: {a.b: 1}}\n",
            "3:35: error[PF0201]: metadata.labels[\"a.b\"]: expected a string, found a number (Num default/x); \
             put the value in quotes",
        ),
        (
            "apiVersion: t/v1\nkind: Num\nmetadata: {name: x, creationTimestamp: today}\n",
            "3:40: error[PF0201]: metadata.creationTimestamp: expected a time such as \
             \"2026-01-31T12:00:00Z\" (Num default/x)",
        ),
    ] {
        assert_eq!(findings(text), [expected], "{text}");
        assert_eq!(reading(text).broken.len(), 1, "{text}");
    }
}

#[test]
fn all_that_is_wrong_with_a_header_is_said_at_once() {
    let found = findings("metadata: {name: 1, namespace: 2}\n");
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn identity_of_a_nameless_document_is_what_is_left() {
    let reading = reading("apiVersion: t/v1\nkind: Num\nmetadata: {namespace: ns}\n");
    let expected = PartialIdentity {
        api_version: Some("t/v1".into()),
        kind: Some("Num".into()),
        namespace: Some("ns".into()),
        name: None,
    };
    assert_eq!(reading.broken[0].identities, [expected]);
}

#[test]
fn lists_are_read_as_their_items() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: t/v1\n  kind: Num\n  metadata: \
                {name: x}\n- apiVersion: t/v1\n  kind: Num\n  metadata: {}\n- apiVersion: v1\n  \
                kind: List\n  items:\n  - apiVersion: t/v1\n    kind: Num\n    metadata: {name: z}\n";
    let reading = reading(text);
    let names: Vec<_> = reading.documents.iter().map(|d| d.header.span.to_string()).collect();
    assert_eq!(names, ["f:6:20", "f:15:22"]);
    assert_eq!(reading.broken.len(), 1);
    assert_eq!(reading.diagnostics[0].span.as_ref().unwrap().to_string(), "f:9:13");
}

#[test]
fn items_of_a_typed_list_may_leave_out_their_kind() {
    let document = document("apiVersion: t/v1\nkind: NumList\nitems:\n- metadata: {name: x}\n");
    assert_eq!(document.header.object(), "Num default/x");
    assert_eq!(&*document.header.api_version, "t/v1");
}

#[test]
fn hash_is_of_the_documents_own_text() {
    let one = reading(&format!("{GOOD}---\n{GOOD}# more\n"));
    let other = reading(&format!("{GOOD}---\n\n{GOOD}"));
    assert_eq!(one.documents[0].hash, other.documents[0].hash);
    assert_ne!(one.documents[1].hash, other.documents[1].hash);

    let item = |name: &str| format!("{{apiVersion: t/v1, kind: Num, metadata: {{name: {name}}}}}");
    let list = |a: &str, b: &str| format!("{{kind: List, items: [{}, {}]}}", item(a), item(b));
    let (one, other) = (reading(&list("äö", "x")), reading(&list("äöü", "x")));
    assert_ne!(one.documents[0].hash, other.documents[0].hash);
    assert_eq!(one.documents[1].hash, other.documents[1].hash);
}

#[test]
fn secrets_withhold_their_text_broken_or_not() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  tls.key: abc\n";
    assert_eq!(document(secret).header.span.excerpt, Excerpt::Withheld);
    let list = "kind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: s}}]";
    assert_eq!(document(list).header.span.excerpt, Excerpt::Withheld);
    for broken in [
        secret.replace("abc", "abc: d"),
        secret.replace("kind: Secret", "kin: Secret"),
        secret.replace("name: s", "name: 1"),
        secret.replace("  tls.key", "\ttls.key").replace("Secret", "Secre"),
    ] {
        let reading = reading(&broken);
        assert!(!reading.diagnostics.is_empty());
        for diagnostic in &reading.diagnostics {
            let span = diagnostic.span.as_ref().unwrap();
            assert_eq!(span.excerpt, Excerpt::Withheld, "{broken}: {diagnostic}");
        }
    }
    assert_eq!(document(GOOD).header.span.excerpt, Excerpt::Shown);
}

#[test]
fn duplicate_key_is_related_to_the_first() {
    let reading = reading(&format!("{GOOD}spec:\n  a: 1\n  a: 2\n"));
    let [finding] = reading.diagnostics.as_slice() else { panic!() };
    assert_eq!(finding.code, Code::YamlDuplicateKey);
    assert_eq!(finding.object.as_deref(), Some("Num default/x"));
    assert_eq!(finding.related[0].span.to_string(), "f:6:3");
}
