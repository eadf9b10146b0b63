//! Trees to values: every error and every unknown field, with its place.

use super::{document, lines};
use crate::config::{Field, Findings, decode, decode_rest};
use crate::diag::{Code, Diagnostics};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize, PartialEq, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    hosts: Vec<String>,
    http: Vec<Http>,
    enabled: Option<bool>,
    ratio: Option<f64>,
    by_port: BTreeMap<u16, String>,
    mode: Option<Mode>,
    any: Option<serde_json::Value>,
    empty: Option<Empty>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Http {
    #[serde(default)]
    name: String,
    route: Destination,
    #[serde(default)]
    headers: BTreeMap<String, StringMatch>,
    timeout: Option<Seconds>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Destination {
    host: String,
    subset: String,
    port: Option<u16>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum StringMatch {
    Exact(String),
    Prefix(String),
    Present(Empty),
}

#[derive(Debug, Deserialize, PartialEq)]
struct Empty {}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Mode {
    Simple,
    Mutual,
}

#[derive(Debug, PartialEq)]
struct Seconds(u64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Seconds;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a duration such as \"5s\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Seconds, E> {
                let number = text.strip_suffix('s').and_then(|n| n.parse().ok());
                number
                    .map(Seconds)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

const HEAD: &str = "apiVersion: t/v1\nkind: Route\nmetadata: {name: x}\n";

/// The value and the findings of a document with that rest after its three lines of head.
fn decoded(rest: &str) -> (Option<Spec>, Vec<String>) {
    let mut diags = Diagnostics::new();
    let value = decode(&document(&format!("{HEAD}{rest}")), "spec", &mut diags);
    (value, lines(&diags.into_sorted()))
}

fn accepted(rest: &str) -> Spec {
    let (value, found) = decoded(rest);
    assert_eq!(found, [""; 0]);
    value.unwrap()
}

fn refused(rest: &str) -> Vec<String> {
    let (value, found) = decoded(rest);
    assert_eq!(value, None, "{found:?}");
    found
}

#[test]
fn values_fit_their_types() {
    let spec = accepted(
        "spec:\n  hosts: [a]\n  enabled: on\n  ratio: 3\n  byPort: {80: http}\n  mode: MUTUAL\n  \
         any: {a: [1, null]}\n  empty: {}\n  http:\n  - route: {host: h, subset: s, port: 8e1}\n    \
         headers: {x.y: {exact: e}, z: {present: {}}}\n    timeout: 5s\n",
    );
    assert_eq!((spec.enabled, spec.ratio, spec.mode), (Some(true), Some(3.0), Some(Mode::Mutual)));
    assert_eq!(spec.by_port[&80], "http");
    assert_eq!(spec.any, Some(serde_json::json!({"a": [1, null]})));
    assert_eq!(spec.http[0].route.port, Some(80));
    assert_eq!(spec.http[0].headers["x.y"], StringMatch::Exact("e".into()));
    assert_eq!(spec.http[0].headers["z"], StringMatch::Present(Empty {}));
    assert_eq!(spec.http[0].timeout, Some(Seconds(5)));
}

#[test]
fn null_is_the_same_as_absent() {
    let spec = accepted("spec:\n  hosts:\n  enabled: ~\n  mode: null\n  byPort:\n");
    assert_eq!(spec, Spec::default());
    assert_eq!(accepted("spec:\n"), Spec::default());
    assert_eq!(accepted(""), Spec::default());
}

#[test]
fn errors_have_place_path_and_words() {
    for (rest, expected) in [
        (
            "spec:\n  http:\n  - route: {host: h, subset: s, port: '80'}\n",
            "6:39: error[PF0201]: spec.http[0].route.port: expected a whole number from 0 to \
             65535, found the string \"80\" (Route default/x); remove the quotes",
        ),
        (
            "spec:\n  http:\n  - route: {host: h, subset: s, port: 70000}\n",
            "6:39: error[PF0201]: spec.http[0].route.port: expected a whole number from 0 to \
             65535, found the number 70000 (Route default/x)",
        ),
        (
            "spec: {hosts: [a, 1.10]}\n",
            "4:19: error[PF0201]: spec.hosts[1]: expected a string, found the number 1.1 (Route \
             default/x); put the value in quotes",
        ),
        (
            "spec: {enabled: 'yes'}\n",
            "4:17: error[PF0201]: spec.enabled: expected `true` or `false`, found the string \
             \"yes\" (Route default/x); remove the quotes",
        ),
        (
            "spec: {hosts: a}\n",
            "4:15: error[PF0201]: spec.hosts: expected a list, found the string \"a\" (Route \
             default/x)",
        ),
        (
            "spec: {mode: MUTAUL}\n",
            "4:14: error[PF0201]: spec.mode: unknown value `MUTAUL`, expected one of `SIMPLE`, \
             `MUTUAL` (Route default/x); did you mean `MUTUAL`?",
        ),
        (
            "spec: {http: [{route: {host: h, subset: s}, timeout: 5}]}\n",
            "4:54: error[PF0201]: spec.http[0].timeout: expected a duration such as \"5s\", found \
             the number 5 (Route default/x)",
        ),
        (
            "spec: {http: [{route: {host: h}}]}\n",
            "4:23: error[PF0203]: spec.http[0].route: the required field `subset` is missing \
             (Route default/x)",
        ),
        (
            "spec: {byPort: {80: a, x: b}}\n",
            "4:24: error[PF0201]: spec.byPort.x: expected a whole number from 0 to 65535, found \
             the string \"x\" (Route default/x)",
        ),
        (
            "spec: [1]\n",
            "4:7: error[PF0201]: spec: expected a mapping, found a list (Route default/x)",
        ),
    ] {
        assert_eq!(refused(rest), [expected], "{rest}");
    }
}

#[test]
fn enums_with_data_are_mappings_with_one_key() {
    let with = |value: &str| {
        refused(&format!(
            "spec: {{http: [{{route: {{host: h, subset: s}}, headers: {{k: {value}}}}}]}}\n"
        ))
    };
    let at = "spec.http[0].headers.k";
    let one = "one of `exact`, `prefix`, `present`";
    for (value, expected) in [
        (
            "{prefx: a}",
            format!(
                "4:59: error[PF0201]: {at}.prefx: unknown value `prefx`, expected {one} (Route default/x); did you mean `prefix`?"
            ),
        ),
        ("{}", format!("4:58: error[PF0201]: {at}: {one} must be set (Route default/x)")),
        ("{exact: ~}", format!("4:58: error[PF0201]: {at}: {one} must be set (Route default/x)")),
        (
            "{exact: a, prefix: b}",
            format!(
                "4:69: error[PF0201]: {at}.prefix: only one of the alternatives may be set, and `exact` is already (Route default/x)"
            ),
        ),
        (
            "[1]",
            format!("4:58: error[PF0201]: {at}: expected {one}, found a list (Route default/x)"),
        ),
        (
            "exact",
            format!(
                "4:58: error[PF0201]: {at}: `exact` needs a value (Route default/x); write it as a mapping: `exact: …`"
            ),
        ),
        (
            "{exact: 1}",
            format!(
                "4:66: error[PF0201]: {at}.exact: expected a string, found the number 1 (Route default/x); put the value in quotes"
            ),
        ),
    ] {
        assert_eq!(with(value), [expected], "{value}");
    }
    let (value, found) = decoded(
        "spec: {http: [{route: {host: h, subset: s}, headers: {k: {exact: a, exat: b}}}]}\n",
    );
    assert!(value.is_some());
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("k.exat: unknown field"), "{found:?}");
}

#[test]
fn all_errors_of_a_document_come_in_one_run() {
    let found = refused(
        "spec:\n  hosts: [1, ok, {}]\n  enabled: 5\n  mode: X\n  http:\n  - name: a\n    route: {host: 1, \
         subset: s, port: x}\n    timeout: 5x\n  - name: no-route\n  - route: {host: h}\n  - 7\n",
    );
    let places: Vec<_> = found.iter().map(|f| f.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        ["5:11", "5:18", "6:12", "7:9", "10:19", "10:39", "11:14", "12:5", "13:12", "14:5"],
        "{found:#?}"
    );
}

#[test]
fn pruned_error_does_not_bring_errors_of_its_own() {
    // `host` and `subset` are there, only wrong: they are not missing.
    let found = refused("spec: {http: [{route: {host: 1, subset: [2]}}]}\n");
    assert_eq!(found.len(), 2, "{found:#?}");
    let found =
        refused("spec: {http: [{route: {host: h, subset: s}, headers: {k: {exact: 1}}}]}\n");
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn empty_field_is_not_called_missing() {
    let found =
        refused("spec:\n  http:\n  - route:\n    host: h\n    subset: s\n    timeout: 5s\n");
    assert_eq!(
        found[0],
        "6:5: error[PF0203]: spec.http[0].route: the required field `route` is empty (Route \
         default/x); `host` and `subset` probably belong one level deeper, below `route`"
    );
    // Nothing behind it is astray.
    let found = refused("spec:\n  http:\n  - name: a\n    route:\n");
    assert_eq!(
        found,
        ["7:5: error[PF0203]: spec.http[0].route: the required field `route` is empty (Route \
          default/x)"]
    );
}

#[test]
fn unknown_field_behind_an_empty_one_probably_belongs_below_it() {
    let (value, found) =
        decoded("spec:\n  byPort:\n  '80': http\n  abcdef: 1\n  mode: SIMPLE\n  xyz: 1\n");
    assert!(value.is_some());
    assert_eq!(found.len(), 3, "{found:#?}");
    let help = |name| {
        format!("; `byPort` above is empty; `{name}` probably belongs one level deeper, below it")
    };
    assert!(found[0].ends_with(&help("80")) && found[1].ends_with(&help("abcdef")), "{found:#?}");
    assert!(found[2].ends_with("spec.xyz: unknown field (Route default/x)"), "{found:#?}");
}

#[test]
fn bounds_of_a_type_are_told_only_where_they_matter() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Numbers {
        a: i32,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Counts {
        a: u32,
    }
    fn message<T: serde::de::DeserializeOwned>(value: &str) -> String {
        let mut diags = Diagnostics::new();
        let text = format!("{HEAD}spec: {{a: {value}}}\n");
        assert!(decode::<T>(&document(&text), "spec", &mut diags).is_none());
        let found = diags.into_sorted();
        found[0].message.split(", found").next().unwrap_or_default().to_owned()
    }
    assert_eq!(message::<Numbers>("x"), "expected a whole number");
    assert_eq!(message::<Numbers>("1.5"), "expected a whole number");
    assert_eq!(message::<Numbers>("3000000000"), "expected a whole number of at most 2147483647");
    assert_eq!(message::<Counts>("-1"), "expected a whole number, 0 or more");
    assert_eq!(message::<Counts>("x"), "expected a whole number, 0 or more");
    assert_eq!(message::<Counts>("4294967296"), "expected a whole number of at most 4294967295");
}

#[test]
fn fields_of_the_rest_are_found_in_the_whole() {
    let document =
        document(&format!("{HEAD}spec:\n  hosts: [1, a, 2, b]\n  enabled: 7\n  mode: SIMPLE\n"));
    let mut diags = Diagnostics::new();
    let (value, pruned) = decode_rest::<Spec>(&document, "spec", &mut diags);
    assert_eq!(value.expect("the rest").hosts, ["a", "b"]);
    let mut diags = Diagnostics::new();
    let mut findings = Findings::about_rest(&document, &mut diags, pruned);
    let spec = Field::root("spec");
    let hosts = spec.key("hosts");
    findings.error(&hosts.index(0), Code::InvalidValue, "first");
    findings.error(&hosts.index(1), Code::InvalidValue, "second");
    findings.error(&spec.key("mode"), Code::InvalidValue, "mode");
    // These may be there only because of what is not.
    findings.error(&hosts, Code::InvalidValue, "too few");
    findings.error(&spec.key("enabled"), Code::InvalidValue, "at");
    findings.error(&spec.key("enabled").key("x"), Code::InvalidValue, "below");
    findings.error(&Field::DOCUMENT, Code::InvalidValue, "above");
    findings.error(&spec.key("mode"), Code::ConflictingFields, "beside");
    findings.warn(&spec.key("mode"), Code::Unreachable, "related");
    assert_eq!(
        lines(&diags.into_sorted()),
        [
            "5:14: error[PF0201]: spec.hosts[1]: first (Route default/x)",
            "5:20: error[PF0201]: spec.hosts[3]: second (Route default/x)",
            "7:9: error[PF0201]: spec.mode: mode (Route default/x)",
        ]
    );
}

#[test]
fn number_of_errors_is_bounded() {
    let ones = vec!["1"; 1000].join(", ");
    assert_eq!(refused(&format!("spec: {{hosts: [{ones}]}}\n")).len(), 25);
}

#[test]
fn unknown_fields_are_warnings_with_a_suggestion() {
    let (value, found) = decoded(
        "spec:\n  host: [a]\n  zzz: 1\n  http:\n  - route: {host: h, subset: s, x.y: {a: 1}}\n    \
         timeot: 5s\nsepc: 1\n",
    );
    assert!(value.is_some());
    assert_eq!(
        found,
        [
            "5:3: warning[PF0202]: spec.host: unknown field (Route default/x); did you mean `hosts`?",
            "6:3: warning[PF0202]: spec.zzz: unknown field (Route default/x)",
            "8:33: warning[PF0202]: spec.http[0].route[\"x.y\"]: unknown field (Route default/x)",
            "9:5: warning[PF0202]: spec.http[0].timeot: unknown field (Route default/x); did you \
             mean `timeout`?",
            "10:1: warning[PF0202]: sepc: unknown field (Route default/x); did you mean `spec`?",
        ]
    );
}

#[test]
fn unknown_fields_are_reported_once_beside_errors() {
    let found = refused("spec: {zzz: 1, hosts: [1, 2], http: [{route: {hots: h}}]}\n");
    let unknown: Vec<_> = found.iter().filter(|f| f.contains("PF0202")).collect();
    assert_eq!(unknown.len(), 2, "{found:#?}");
}

#[test]
fn unknown_metadata_is_a_warning() {
    let mut diags = Diagnostics::new();
    let text = "apiVersion: t/v1\nkind: Route\nmetadata: {name: x, lables: {}, uid: u}\n";
    assert_eq!(decode(&document(text), "spec", &mut diags), Some(Spec::default()));
    assert_eq!(
        lines(&diags.into_sorted()),
        ["3:21: warning[PF0202]: metadata.lables: unknown field (Route default/x); did you mean \
          `labels`?"]
    );
}

#[test]
fn whole_root_leaves_out_the_objects_own_fields() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Secret {
        r#type: String,
        data: BTreeMap<String, String>,
    }
    let text =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ntype: t\ndata: {a: YQ==}\nodd: 1\n";
    let mut diags = Diagnostics::new();
    let secret: Option<Secret> = decode(&document(text), "", &mut diags);
    assert_eq!(secret.unwrap().data["a"], "YQ==");
    assert_eq!(
        lines(&diags.into_sorted()),
        ["6:1: warning[PF0202]: odd: unknown field (Secret default/s)"]
    );
}

#[test]
fn values_of_a_secret_are_not_repeated() {
    #[derive(Debug, Deserialize)]
    struct Secret {
        #[expect(dead_code, reason = "never decoded")]
        data: BTreeMap<String, u32>,
    }
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {key: hush}\n";
    let mut diags = Diagnostics::new();
    assert!(decode::<Secret>(&document(text), "", &mut diags).is_none());
    let found = lines(&diags.into_sorted());
    assert!(found[0].contains("data.key") && !found[0].contains("hush"), "{found:?}");
}

#[test]
fn findings_turn_paths_into_places() {
    let document =
        document(&format!("{HEAD}spec:\n  http:\n  - route:\n      host: h\n  ports:\n  - 80\n"));
    let mut diags = Diagnostics::new();
    let mut findings = Findings::new(&document, &mut diags);
    let spec = Field::root("spec");
    let http = spec.key("http");
    let place = |findings: &Findings<'_>, field: &Field<'_>| {
        let span = findings.span(field);
        format!("{}:{}-{}:{}", span.start.line, span.start.column, span.end.line, span.end.column)
    };
    assert_eq!(place(&findings, &http.index(0).key("route").key("host")), "7:13-7:14");
    // Absent: the nearest value above, by its key.
    assert_eq!(place(&findings, &http.index(0).key("route").key("port").key("number")), "6:5-6:10");
    assert_eq!(place(&findings, &http.index(3)), "5:3-5:7");
    assert_eq!(place(&findings, &spec.key("ports").index(0)), "9:5-9:7");
    assert_eq!(place(&findings, &Field::DOCUMENT), "3:18-3:19");
    assert_eq!(place(&findings, &Field::root("status")), "3:18-3:19");
    assert_eq!(findings.key_span(&http).to_string(), "f:5:3");

    findings.unsupported(&http.index(0).key("route"));
    findings.warn(&http, Code::NoEffect, "nothing");
    assert!(!findings.has_errors());
    findings.error(&http.index(0), Code::ConflictingFields, "both");
    assert!(findings.has_errors());
    assert_eq!(
        lines(&diags.into_sorted()),
        [
            "6:5: warning[PF0207]: spec.http: nothing (Route default/x)",
            "6:5: error[PF0204]: spec.http[0]: both (Route default/x)",
            "6:5: warning[PF0205]: spec.http[0].route: `route` is not supported yet (Route default/x)",
        ]
    );
}
