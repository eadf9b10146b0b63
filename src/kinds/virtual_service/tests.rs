//! One claim a rule of VirtualService, and the model of a full document.

use super::*;
use crate::diag::Code::{
    self, ConflictingFields, Deprecated, InvalidValue, MissingField, NoEffect, NotSupported,
    RegexTooLarge, Unreachable,
};
use crate::diag::Severity;
use crate::kinds::testing::{accepted, expect, read, refused, warned};
use crate::model::{
    AbortStatus, GatewayRef, HttpRule, ObjectName, PathMatch, PathRewrite, Percent, RedirectPath,
    RedirectPort, ResponseBody, StringMatch,
};
use std::time::Duration;

type Case<'c> = (&'c str, (&'c str, Code, &'c str));

/// The cases with the same text before each.
fn after(before: &str, cases: &[Case<'_>], check: impl Fn(&Kind, &[Case<'_>])) {
    let specs: Vec<String> = cases.iter().map(|(spec, _)| format!("{before}{spec}")).collect();
    let cases: Vec<Case<'_>> =
        specs.iter().zip(cases).map(|(spec, (_, found))| (spec.as_str(), *found)).collect();
    check(&KIND, &cases);
}

/// One HTTP rule that routes; the case's lines follow below it, from line 8, column 5.
const ROUTED: &str = "hosts: [a.com]\nhttp:\n- route: [destination: {host: b}]\n  ";

/// One match; its text starts in line 7, column 13.
const MATCHED: &str = "hosts: [a.com]\nhttp:\n- route: [destination: {host: b}]\n  match: [";

fn matches(cases: &[Case<'_>], check: impl Fn(&Kind, &[Case<'_>])) {
    let specs: Vec<String> = cases.iter().map(|(m, _)| format!("{MATCHED}{m}]")).collect();
    let cases: Vec<Case<'_>> =
        specs.iter().zip(cases).map(|(spec, (_, found))| (spec.as_str(), *found)).collect();
    check(&KIND, &cases);
}

fn service(spec: &str) -> VirtualService {
    match accepted(&KIND, spec).virtual_services.remove(0) {
        VirtualServiceDraft::Complete(service) => (*service).clone(),
        other => panic!("{other:?}"),
    }
}

fn rule(spec: &str) -> HttpRule {
    service(spec).http.remove(0)
}

#[test]
fn wrong_type_hides_nothing_else() {
    let spec = "hosts: [a.com]\nhttp:\n- timeout: 5\n  match: [{uri: {regex: '(['}}]\n  \
                retries: {attempts: -3}\n  route: [destination: {host: b}]\n- route:\n  - \
                destination: {host: b}\n    weight: x\n  - destination: {host: '*'}\n    \
                weight: -1\n- route: [{}, {destination: {host: '*'}}]\n";
    expect(
        &KIND,
        spec,
        Severity::Error,
        &[
            ("7:14", InvalidValue, "timeout: expected a duration"),
            ("8:27", InvalidValue, "http[0].match[0].uri.regex"),
            ("9:25", InvalidValue, "must not be negative"),
            ("13:15", InvalidValue, "expected a whole number, 0 or more, found"),
            ("14:27", InvalidValue, "http[1].route[1].destination.host"),
            ("15:15", InvalidValue, "http[1].route[1].weight"),
            ("16:13", MissingField, "http[2].route[0]: the required field"),
            ("16:38", InvalidValue, "http[2].route[1].destination.host"),
        ],
    );
}

#[test]
fn match_that_cannot_be_read_does_not_match_everything() {
    let spec = "hosts: [a.com]\nhttp:\n- match: [{uri: {exact: 7}}]\n  \
                route: [destination: {host: b}]\n- route: [destination: {host: c}]\n";
    let found = ("7:27", InvalidValue, "expected a string");
    expect(&KIND, spec, Severity::Error, &[found]);
}

#[test]
fn one_host_and_one_destination_are_enough() {
    let service = service("hosts: [reviews]\nhttp:\n- route:\n  - destination: {host: reviews}");
    assert_eq!(&*service.hosts[0], "reviews.ns.svc.cluster.local");
    assert_eq!(service.gateways, [GatewayRef::Mesh]);
    assert_eq!(service.visibility, Visibility::Public);
    let rule = &service.http[0];
    assert_eq!((rule.matches.len(), rule.timeout, &rule.retries), (0, None, &None));
    let HttpAction::Route(to) = &rule.action else { panic!("{rule:?}") };
    assert_eq!(&*to[0].destination.host, "reviews.ns.svc.cluster.local");
    assert_eq!(to[0].destination.port, None);
    assert_eq!(to[0].destination.span.to_string(), "a.yaml:8:27");
    assert_eq!(rule.span.to_string(), "a.yaml:7:5");
}

#[test]
fn every_field_reaches_the_model() {
    let outcome = read(include_str!("every_field.yaml"));
    let lines: Vec<String> = outcome.found.iter().map(ToString::to_string).collect();
    assert_eq!(lines, Vec::<String>::new());
    let mut draft = outcome.draft.expect("the document is valid");
    let VirtualServiceDraft::Delegating { service, http } = draft.virtual_services.remove(0) else {
        panic!("it delegates")
    };

    let hosts: Vec<&str> = service.hosts.iter().map(|h| &**h).collect();
    assert_eq!(hosts, ["reviews.ns.svc.cluster.local", "*.example.com", "10.1.2.3"]);
    let gateway = |namespace, name| GatewayRef::whole(ObjectName::new(namespace, name));
    let gateways =
        [GatewayRef::Mesh, gateway("ns", "edge"), gateway("other", "edge"), gateway("ns", "near")];
    assert_eq!(service.gateways, gateways);
    assert_eq!(service.visibility, Visibility::Namespaces(["ns".into(), "other".into()].into()));
    first_rule(&http[0]);

    let DraftAction::Own(HttpAction::Redirect(redirect)) = &http[1].action else { panic!() };
    assert_eq!(redirect.path, Some(RedirectPath::Prefix("/new".into())));
    assert_eq!((redirect.port, redirect.code), (Some(RedirectPort::FromRequest), 308));
    let DraftAction::Own(HttpAction::DirectResponse(response)) = &http[2].action else { panic!() };
    assert_eq!(response.status, 418);
    assert_eq!(response.body, Some(ResponseBody::Bytes(b"hi".to_vec())));
    let DraftAction::Delegate(delegate) = &http[3].action else { panic!() };
    assert_eq!(delegate.name, ObjectName::new("other", "rest"));
    let last = &http[4];
    assert_eq!(last.mirrors[0].percent, Percent::Millionths(50_000));
    let rewrite = last.rewrite.as_ref().expect("it rewrites");
    assert_eq!(rewrite.path, Some(PathRewrite::Uri("/".into())));

    let tls = &service.tls[0];
    assert_eq!(&*tls.matches[0].sni_hosts[0], "tls.example.com");
    assert_eq!(tls.matches[0].l4.destination_subnets[0].to_string(), "10.1.0.0/16");
    assert_eq!(tls.matches[0].l4.port, Some(443));
    let tcp = &service.tcp[0];
    assert_eq!(tcp.matches[0].destination_subnets[0].to_string(), "10.2.0.1/32");
    assert_eq!(tcp.matches[0].gateways, [gateway("ns", "edge")]);
    let weights: Vec<u32> = tcp.destinations.iter().map(|d| d.weight).collect();
    assert_eq!(weights, [1, 0]);
    assert_eq!(&*tcp.destinations[1].destination.host, "mysql-next.ns.svc.cluster.local");
}

fn first_rule(rule: &HttpRule<DraftAction>) {
    assert_eq!(rule.name, "first");
    let m = &rule.matches[0];
    assert_eq!(m.path, Some(PathMatch::Prefix("/api".into())));
    assert_eq!(m.method, Some(StringMatch::Regex("GET|HEAD".into())));
    assert_eq!(m.headers["x-exact"], Some(StringMatch::Exact("a".into())));
    assert_eq!((&m.headers["x-present"], &m.without_headers["x-absent"]), (&None, &None));
    assert_eq!(m.query_params["q"], Some(StringMatch::Regex("[0-9]+".into())));
    assert_eq!((m.port, m.ignore_path_case), (Some(8080), true));
    assert_eq!(m.source_labels.get("app"), Some("client"));
    assert_eq!(m.source_namespace.as_deref(), Some("clients"));
    assert_eq!(m.stat_prefix, "api");
    assert!(m.gateways.is_empty() && rule.matches[1].gateways.len() == 1);

    let DraftAction::Own(HttpAction::Route(to)) = &rule.action else { panic!("{rule:?}") };
    assert_eq!((&*to[0].destination.subset, to[0].destination.port), ("v1", Some(9080)));
    assert_eq!((to[0].weight, to[1].weight), (75, 25));
    assert_eq!(to[0].headers.request.add["x-version"], "v1");
    assert_eq!(&*to[1].destination.host, "reviews.other.svc.cluster.local");

    assert_eq!(rule.timeout, Some(Duration::from_secs(5)));
    let retries = rule.retries.as_ref().expect("it retries");
    assert_eq!(retries.attempts, 3);
    assert_eq!(retries.retry_on, Some(vec!["connect-failure".into(), "503".into()]));
    assert_eq!(retries.backoff, Some(Duration::from_millis(30)));
    assert_eq!(retries.retry_remote_localities, Some(true));
    assert_eq!(retries.ignore_previous_hosts, Some(false));
    let fault = rule.fault.as_ref().expect("it fails");
    let delay = fault.delay.as_ref().expect("it delays");
    assert_eq!(delay.duration, Duration::from_secs(1));
    assert_eq!(delay.percent, Some(Percent::Millionths(5_000)));
    let abort = fault.abort.as_ref().expect("it aborts");
    assert_eq!(abort.status, AbortStatus::Grpc(14));
    let mirrors: Vec<&str> = rule.mirrors.iter().map(|m| &*m.destination.host).collect();
    assert_eq!(mirrors, ["shadow.ns.svc.cluster.local"]);
    let cors = rule.cors.as_ref().expect("it has a policy");
    assert_eq!(cors.max_age, Some(Duration::from_secs(86_400)));
    assert!(!cors.forward_not_matching_preflights);
    assert_eq!(cors.allow_origins.len(), 2);
    assert_eq!(rule.headers.request.set["x-id"], "%REQ(x-request-id)%");
    assert_eq!(rule.headers.request.remove, ["x-gone"]);
    assert_eq!(rule.headers.response.add["x-served"], "100%%");
}

#[test]
fn istios_names_for_gateways_are_resolved() {
    let own = Namespace::from("ns");
    for (text, expected) in [
        ("mesh", "mesh"),
        ("edge", "ns/edge"),
        ("./edge", "ns/edge"),
        ("other/edge", "other/edge"),
        ("edge.other", "other/edge"),
        ("edge.other.svc.cluster.local", "other/edge"),
    ] {
        assert_eq!(lower::gateway_ref(text, &own).to_string(), expected, "{text}");
    }
}

#[test]
fn a_document_without_hosts_is_a_delegate() {
    let delegate = accepted(&KIND, "http:\n- route: [destination: {host: b}]");
    let delegate = &delegate.virtual_services[0];
    assert!(matches!(delegate, VirtualServiceDraft::Delegate(_)));
    refused(
        &KIND,
        &[
            (
                "http: [route: [destination: {host: b}]]\ngateways: [edge]",
                ("6:3", ConflictingFields, "a delegate has no `gateways`"),
            ),
            (
                "tcp: [route: [destination: {host: b}]]",
                ("5:3", ConflictingFields, "a delegate has no `tcp`"),
            ),
            ("http:\n- delegate: {name: c}", ("6:5", ConflictingFields, "must not delegate")),
        ],
    );
}

#[test]
fn hosts_are_names_that_do_not_overlap() {
    let rules = "http: [route: [destination: {host: b}]]\nhosts: ";
    let cases = [
        ("[a_b.com]", ("6:11", InvalidValue, "`a_b`")),
        ("[\"a.*.com\"]", ("6:11", InvalidValue, "`*` may only stand at the start")),
        ("[\"*\"]", ("6:11", InvalidValue, "not allowed for sidecars")),
        ("[a.com, b.com, \"*.com\"]", ("6:25", ConflictingFields, "overlaps with `a.com`")),
        ("[a.com, a.com]", ("6:18", ConflictingFields, "overlaps")),
        ("[1.2.3]", ("6:11", InvalidValue, "must not be a number")),
    ];
    after(rules, &cases, refused);
    service(&format!("{rules}[\"*\"]\ngateways: [edge]"));
    service(&format!("{rules}[\"*.com\", \"*-x.org\", c, 10.0.0.1, \"fd00::1\"]"));
}

#[test]
fn a_document_has_rules_and_gateways_with_names() {
    refused(
        &KIND,
        &[
            ("hosts: [a.com]", ("5:3", MissingField, "no rules")),
            ("hosts: [a.com]\nhttp: [{}]", ("6:10", MissingField, "says nothing to do")),
            (
                "hosts: [a.com]\nhttp: [route: [destination: {host: b}]]\ngateways: [a/b/c]",
                ("7:14", InvalidValue, "names no Gateway"),
            ),
            (
                "hosts: [a.com]\nhttp: [route: [destination: {host: b}]]\nexportTo: [\"~\"]",
                ("7:14", InvalidValue, "only for ServiceEntry"),
            ),
        ],
    );
    let old = "hosts: [a.com]\nhttp: [route: [destination: {host: b}]]\ngateways: [edge.other]";
    warned(&KIND, &[(old, ("7:14", Deprecated, "`other/edge`"))]);
}

#[test]
fn a_rule_does_one_thing() {
    let cases = [
        ("redirect: {uri: /x}", ("7:5", ConflictingFields, "has no `route`")),
        ("directResponse: {status: 200}", ("7:5", ConflictingFields, "has no `route`")),
        ("delegate: {name: x}", ("7:5", ConflictingFields, "has no `route`")),
        (
            "mirror: {host: c}\n  mirrors: [destination: {host: d}]",
            ("8:5", ConflictingFields, "`mirrors`"),
        ),
    ];
    after(ROUTED, &cases, refused);
    let cases = [
        ("redirect: {uri: /x}\n  rewrite: {uri: /}", ("8:5", ConflictingFields, "`rewrite`")),
        (
            "directResponse: {status: 200}\n  fault: {abort: {httpStatus: 500, percentage: {value: 1}}}",
            ("8:5", ConflictingFields, "`fault`"),
        ),
    ];
    after("hosts: [a.com]\nhttp:\n- ", &cases, refused);
}

#[test]
fn matches_are_valid_conditions() {
    matches(
        &[
            ("{uri: {exact: /a, prefix: /b}}", ("8:31", InvalidValue, "`exact` is already")),
            ("{uri: {prefx: /a}}", ("8:20", InvalidValue, "did you mean `prefix`?")),
            ("{uri: {regex: \"(?=a)\"}}", ("8:27", InvalidValue, "look-around")),
            ("{headers: {x: {prefix: \"\"}}}", ("8:36", InvalidValue, "prefix is empty")),
            ("{headers: {x: {regex: \"*\"}}}", ("8:35", InvalidValue, "no regular expression")),
            ("{headers: {x: null}}", ("8:27", InvalidValue, "found null")),
            ("{headers: {\"a b\": {}}}", ("8:24", InvalidValue, "not a header name")),
            ("{method: {prefix: \"\"}}", ("8:31", InvalidValue, "prefix is empty")),
            ("{queryParams: {\"\": {}}}", ("8:28", InvalidValue, "1 to 1024")),
            ("{sourceNamespace: a.b}", ("8:31", InvalidValue, "a namespace")),
            ("{sourceLabels: {a: \"-\"}}", ("8:32", InvalidValue, "label value")),
            ("{port: 70000}", ("8:20", InvalidValue, "0 to 65535")),
            ("{gateways: [a/]}", ("8:25", InvalidValue, "names no Gateway")),
            (
                "{headers: {\"@request.auth.claims.sub\": {exact: a}}}",
                ("8:24", InvalidValue, "only work on Gateways"),
            ),
        ],
        |kind, cases| {
            for (spec, (place, code, fragment)) in cases {
                let found = read(&crate::kinds::testing::document(kind, spec)).found;
                let errors: Vec<_> =
                    found.iter().filter(|d| d.severity == Severity::Error).collect();
                let [error] = errors.as_slice() else { panic!("{spec}: {found:#?}") };
                let text = error.to_string();
                assert!(error.code == *code && text.contains(fragment), "{spec}: {text}");
                assert!(text.starts_with(&format!("a.yaml:{place}:")), "{spec}: {place} {text}");
            }
        },
    );
}

#[test]
fn matches_that_do_less_than_they_seem_are_told() {
    let long = "{uri: {regex: \"/api/v[0-9]+/customers/[a-zA-Z0-9_-]{1,36}/orders\"}}";
    matches(
        &[
            ("{uri: {exact: /a?b=c}}", ("8:27", NoEffect, "without query")),
            (long, ("8:27", RegexTooLarge, "Envoy's own limit is 100")),
            ("{gateways: [mesh], sourceNamespace: x}", ("8:49", NoEffect, "not looked at")),
        ],
        warned,
    );
}

#[test]
fn jwt_claims_never_hold() {
    let spec = "hosts: [a.com]\ngateways: [edge]\nhttp:\n- route: [destination: {host: b}]\n  \
                match:\n  - withoutHeaders: {\"@request.auth.claims.sub\": {exact: a}}";
    warned(&KIND, &[(spec, ("10:24", NotSupported, "the match never holds"))]);
    let text = crate::kinds::testing::document(&KIND, spec);
    let draft = read(&text).draft.expect("a warning does not refuse");
    let VirtualServiceDraft::Complete(service) = &draft.virtual_services[0] else { panic!() };
    let m = &service.http[0].matches[0];
    assert!(m.without_headers.is_empty());
    assert_eq!(m.headers["@request.auth.claims.sub"], None);
}

#[test]
fn destinations_are_services() {
    let cases = [
        ("{host: \"*\"}", ("7:33", InvalidValue, "no destination")),
        ("{host: 10.0.0.1}", ("7:33", InvalidValue, "IP address")),
        ("{host: \"a b\"}", ("7:33", InvalidValue, "`a b`")),
        ("{host: b, subset: v.1}", ("7:44", InvalidValue, "subset")),
        ("{host: b, port: {}}", ("7:42", InvalidValue, "1 to 65535")),
        ("{name: b}", ("7:26", MissingField, "`host` is missing")),
    ];
    for (destination, (place, code, fragment)) in cases {
        let spec = format!("hosts: [a.com]\nhttp:\n- route: [destination: {destination}]");
        let found = read(&crate::kinds::testing::document(&KIND, &spec)).found;
        let error = found.iter().find(|d| d.severity == Severity::Error).expect(destination);
        let text = error.to_string();
        assert!(error.code == code && text.contains(fragment), "{text}");
        assert!(text.starts_with(&format!("a.yaml:{place}:")), "{destination}: {place} {text}");
    }
}

#[test]
fn weights_give_someone_a_share() {
    let two =
        "hosts: [a.com]\nhttp:\n- route:\n  - destination: {host: b}\n  - destination: {host: c}\n";
    refused(&KIND, &[(two, ("8:7", InvalidValue, "`weight` above 0"))]);
    let cases = [("    weight: -1", ("10:15", InvalidValue, "negative"))];
    after(two, &cases, refused);
    rule(&format!("{two}    weight: 1"));
}

#[test]
fn header_changes_are_ones_that_envoy_takes() {
    let cases = [
        ("request: {set: {x: \"50%\"}}", ("9:26", InvalidValue, "write `%%`")),
        ("request: {set: {x: \"%NOPE%\"}}", ("9:26", InvalidValue, "`%NOPE%`")),
        ("request: {set: {x: \"a\\nb\"}}", ("9:26", InvalidValue, "control characters")),
        ("request: {add: {\":path\": /}}", ("9:23", InvalidValue, "pseudo header")),
        ("request: {add: {\"a b\": c}}", ("9:23", InvalidValue, "not a header name")),
        ("request: {remove: [host]}", ("9:26", InvalidValue, "only be set or added")),
        ("response: {set: {host: a}}", ("9:24", InvalidValue, "on requests")),
        (
            "request: {set: {host: a}, add: {\":authority\": b}}",
            ("9:39", ConflictingFields, "changed twice"),
        ),
    ];
    after(&format!("{ROUTED}headers:\n    "), &cases, refused);
    rule(&format!("{ROUTED}headers: {{request: {{set: {{Host: a}}}}}}"));
}

#[test]
fn redirects_are_ones_that_envoy_can_make() {
    let cases = [
        ("{}", ("7:15", MissingField, "changes nothing")),
        ("{uri: /a, prefixRewrite: /b}", ("7:25", ConflictingFields, "exclude each other")),
        ("{uri: /a, redirectCode: 304}", ("7:39", InvalidValue, "status 304")),
        ("{uri: /a, scheme: ftp}", ("7:33", InvalidValue, "`ftp`")),
        ("{port: 0}", ("7:22", InvalidValue, "1 to 65535")),
        (
            "{port: 1, derivePort: FROM_REQUEST_PORT}",
            ("7:25", ConflictingFields, "exclude each other"),
        ),
        ("{derivePort: FROM_MARS}", ("7:28", InvalidValue, "`FROM_REQUEST_PORT`")),
        (
            "{prefixRewrite: /b}\n  match: [uri: {exact: /a}]",
            ("7:16", ConflictingFields, "all matches of the rule"),
        ),
    ];
    after("hosts: [a.com]\nhttp:\n- redirect: ", &cases, refused);
}

#[test]
fn answers_fit_into_a_proxy() {
    let cases = [
        ("{status: 199}", ("7:30", InvalidValue, "200 to 599")),
        ("{body: {string: a}}", ("7:21", MissingField, "`status` is missing")),
        ("{status: 200, body: {string: a, bytes: YQ==}}", ("7:53", ConflictingFields, "exclude")),
        ("{status: 200, body: {bytes: \"?\"}}", ("7:49", InvalidValue, "base64")),
    ];
    after("hosts: [a.com]\nhttp:\n- directResponse: ", &cases, refused);
    let body = |size| {
        format!(
            "hosts: [a.com]\nhttp:\n- directResponse: {{status: 200, body: {{string: {}}}}}",
            "x".repeat(size)
        )
    };
    rule(&body(100 * 1024));
    warned(&KIND, &[(&body(100 * 1024 + 1), ("7:41", InvalidValue, "102401 bytes"))]);
    refused(&KIND, &[(&body(1024 * 1024 + 1), ("7:41", InvalidValue, "at most 1048576"))]);
}

#[test]
fn rewrites_change_something() {
    let cases = [
        ("rewrite: {}", ("8:14", MissingField, "changes nothing")),
        (
            "rewrite: {uri: /, uriRegexRewrite: {match: a, rewrite: b}}",
            ("8:23", ConflictingFields, "exclude each other"),
        ),
        ("rewrite: {uriRegexRewrite: {match: a}}", ("8:32", MissingField, "both")),
        (
            "rewrite: {uriRegexRewrite: {match: \"(\", rewrite: b}}",
            ("8:40", InvalidValue, "no RE2"),
        ),
    ];
    after(ROUTED, &cases, refused);
    let cases = [(
        "rewrite: {uriRegexRewrite: {match: (a)b, rewrite: \\2}}",
        ("8:55", NoEffect, "does not have (1 groups)"),
    )];
    after(ROUTED, &cases, warned);
}

#[test]
fn timeouts_and_retries_are_consistent() {
    let cases = [
        ("timeout: 0s", ("8:14", InvalidValue, "at least 1ms")),
        ("timeout: 1500us", ("8:14", InvalidValue, "whole milliseconds")),
        ("timeout: 5", ("8:14", InvalidValue, "a duration such as")),
        ("retries: {attempts: -1}", ("8:25", InvalidValue, "negative")),
        ("retries: {retryOn: 5xx}", ("8:14", ConflictingFields, "set `attempts`")),
        ("retries: {attempts: 1, retryOn: \"5xx, reset\"}", ("8:37", InvalidValue, "` reset`")),
        ("retries: {attempts: 1, retryOn: \"599\"}", ("8:37", InvalidValue, "`599`")),
        ("retries: {attempts: 1, backoff: 0s}", ("8:37", InvalidValue, "at least 1ms")),
        ("retries: {attempts: 1, perTryTimeout: 0s}", ("8:43", InvalidValue, "at least 1ms")),
    ];
    after(ROUTED, &cases, refused);
    let off = rule(&format!("{ROUTED}retries: {{attempts: 0}}"));
    assert_eq!(off.retries.map(|r| (r.attempts, r.retry_on)), Some((0, None)));
}

#[test]
fn faults_are_ones_that_envoy_can_inject() {
    let cases = [
        ("fault: {}", ("8:12", MissingField, "`delay` or an `abort`")),
        (
            "fault: {delay: {exponentialDelay: 1s, percentage: {value: 1}}}",
            ("8:21", ConflictingFields, "use `fixedDelay`"),
        ),
        (
            "fault: {delay: {fixedDelay: 1s, percentage: {value: 101}}}",
            ("8:57", InvalidValue, "from 0 to 100"),
        ),
        (
            "fault: {delay: {fixedDelay: 1s, percentage: {value: 0.00001}}}",
            ("8:57", InvalidValue, "0.0001"),
        ),
        (
            "fault: {abort: {httpStatus: 700, percentage: {value: 1}}}",
            ("8:33", InvalidValue, "200 to 599"),
        ),
        (
            "fault: {abort: {grpcStatus: NOPE, percentage: {value: 1}}}",
            ("8:33", InvalidValue, "`NOPE`"),
        ),
        (
            "fault: {abort: {http2Error: X, percentage: {value: 1}}}",
            ("8:21", ConflictingFields, "HTTP/2"),
        ),
    ];
    after(ROUTED, &cases, refused);
    let cases = [
        ("fault: {abort: {httpStatus: 500}}", ("8:20", NoEffect, "no request is aborted")),
        ("fault: {abort: {percentage: {value: 1}}}", ("8:20", NoEffect, "nothing is aborted")),
        ("fault: {delay: {fixedDelay: 1s}}", ("8:20", NoEffect, "no request is delayed")),
        ("fault: {delay: {fixedDelay: 1s, percent: 5}}", ("8:46", Deprecated, "percentage.value")),
    ];
    after(ROUTED, &cases, warned);
}

#[test]
fn mirrors_say_where_to_and_how_much() {
    let cases = [
        ("mirrors: [{}]", ("8:15", MissingField, "`destination` is missing")),
        ("mirror: {host: c}\n  mirrorPercent: 101", ("9:20", InvalidValue, "from 0 to 100")),
        ("mirror: {host: \"*\"}", ("8:20", InvalidValue, "no destination")),
    ];
    after(ROUTED, &cases, refused);
    let cases = [
        ("mirror: {host: c}\n  mirrorPercent: 7", ("9:20", Deprecated, "mirrorPercentage")),
        ("mirrorPercentage: {value: 5}", ("8:23", NoEffect, "only about `mirror`")),
    ];
    after(ROUTED, &cases, warned);
    let all = rule(&format!("{ROUTED}mirror: {{host: c}}"));
    assert_eq!(all.mirrors[0].percent, Percent::Hundredths(100));
    let none = rule(&format!("{ROUTED}mirror: {{host: c}}\n  mirrorPercentage: {{}}"));
    assert!(none.mirrors.is_empty());
}

#[test]
fn cors_policies_are_checked() {
    let cases = [
        ("corsPolicy: {allowOrigins: [{}]}", ("8:33", InvalidValue, "origin is empty")),
        ("corsPolicy: {allowMethods: [get]}", ("8:33", InvalidValue, "`get`")),
        ("corsPolicy: {allowHeaders: [\"a b\"]}", ("8:33", InvalidValue, "not a header name")),
        ("corsPolicy: {maxAge: 1500ms}", ("8:26", InvalidValue, "whole seconds")),
        ("corsPolicy: {unmatchedPreflights: DROP}", ("8:39", InvalidValue, "`IGNORE`")),
    ];
    after(ROUTED, &cases, refused);
    let cases = [("corsPolicy: {allowOrigin: [\"*\"]}", ("8:31", Deprecated, "allowOrigins"))];
    after(ROUTED, &cases, warned);
}

#[test]
fn tls_and_tcp_rules_are_checked() {
    let route = "route: [destination: {host: b}]";
    refused(
        &KIND,
        &[
            (&format!("hosts: [a.com]\ntls: [{{{route}}}]"), ("6:9", MissingField, "`sniHosts`")),
            (
                &format!("hosts: [a.com]\ntls: [{{match: [{{}}], {route}}}]"),
                ("6:18", MissingField, "names no server"),
            ),
            (
                &format!("hosts: [a.com]\ntls: [{{match: [sniHosts: [b.com]], {route}}}]"),
                ("6:29", InvalidValue, "not covered"),
            ),
            (
                "hosts: [a.com]\ntls: [match: [sniHosts: [a.com]]]",
                ("6:9", MissingField, "no `route`"),
            ),
            (
                &format!("hosts: [a.com]\ntcp: [{{match: [destinationSubnets: [x]], {route}}}]"),
                ("6:39", InvalidValue, "neither an IP address nor a network"),
            ),
            ("hosts: [a.com]\ntcp: [{}]", ("6:9", MissingField, "no `route`")),
        ],
    );
    warned(
        &KIND,
        &[
            (
                &format!("hosts: [10.0.0.1]\ntls: [{{match: [sniHosts: [10.0.0.1]], {route}}}]"),
                ("6:29", NoEffect, "(SNI)"),
            ),
            (
                &format!("hosts: [a.com]\ntcp: [{{match: [sourceSubnet: 10.0.0.0/8], {route}}}]"),
                ("6:32", NoEffect, "never looked at"),
            ),
        ],
    );
    let between = "hosts: [outbound_.80_.v1_.a.com]\ngateways: [edge]\n\
                   tls: [{match: [sniHosts: [outbound_.80_.v1_.a.com]], route: [destination: {host: b}]}]";
    service(between);
}

#[test]
fn rules_that_nothing_reaches_are_told() {
    let rules = |matches: &[&str]| {
        let mut spec = "hosts: [a.com]\nhttp:\n".to_owned();
        for m in matches {
            spec.push_str(&format!("- match: [{m}]\n  route: [destination: {{host: b}}]\n"));
        }
        spec
    };
    for (matches, place, fragment) in [
        (["", "{uri: {exact: /a}}"], "9:5", "`spec.http[0]`"),
        (["{uri: {prefix: /}}", ""], "9:5", "the rule is never reached"),
        (["{uri: {prefix: /a}}", "{uri: {exact: /ab}}"], "9:5", "the rule"),
        (["{headers: {x: {}}}", "{headers: {x: {}}, port: 80}"], "9:5", "the rule"),
        (
            ["{uri: {prefix: /a}}", "{uri: {prefix: /a}}, {uri: {exact: /b}}"],
            "9:13",
            "http[0].match[0]",
        ),
        (["{uri: {prefix: /a}}, {uri: {prefix: /a/b}}", "{uri: {exact: /c}}"], "7:34", "match[0]"),
    ] {
        warned(&KIND, &[(&rules(&matches), (place, Unreachable, fragment))]);
    }
    for matches in [
        ["{uri: {exact: /a}}", "{uri: {prefix: /a}}"],
        ["{uri: {prefix: /a}, method: {exact: GET}}", "{uri: {prefix: /a}}"],
        ["{uri: {prefix: /a}, gateways: [mesh]}", "{uri: {prefix: /a}}"],
        ["{uri: {prefix: /a}, sourceLabels: {a: b}}", "{uri: {prefix: /a}}"],
        ["{uri: {prefix: /a}, ignoreUriCase: true}", "{uri: {prefix: /a}}"],
    ] {
        service(&rules(&matches));
    }
}

#[test]
fn all_errors_come_out_in_one_run() {
    let spec = "hosts: [a_b]\nhttp:\n- route: [destination: {host: \"*\"}]\n  timeout: 5x\n";
    expect(
        &KIND,
        spec,
        Severity::Error,
        &[
            ("5:11", InvalidValue, "`a_b`"),
            ("7:33", InvalidValue, "no destination"),
            ("8:14", InvalidValue, "a duration such as"),
        ],
    );
    let spec = "hosts: [a_b]\nhttp:\n- route: [destination: {host: \"*\"}]\n  timeout: 0s\n";
    expect(
        &KIND,
        spec,
        Severity::Error,
        &[
            ("5:11", InvalidValue, "`a_b`"),
            ("7:33", InvalidValue, "no destination"),
            ("8:14", InvalidValue, "1ms"),
        ],
    );
}
