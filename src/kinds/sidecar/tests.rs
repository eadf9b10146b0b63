//! One claim a rule of Sidecar, and the model of a full document.

use super::*;
use crate::diag::Code::{self, ConflictingFields, InvalidValue, MissingField, NoEffect};
use crate::kinds::testing::{accepted, document, read, refused, warned};
use crate::model::{
    CaptureMode, DefaultEndpoint, EgressNamespace, OutboundMode, Protocol, ServerTlsMode,
};

type Case<'c> = (&'c str, (&'c str, Code, &'c str));

fn after(before: &str, cases: &[Case<'_>], check: impl Fn(&Kind, &[Case<'_>])) {
    let specs: Vec<String> = cases.iter().map(|(spec, _)| format!("{before}{spec}")).collect();
    let cases: Vec<Case<'_>> =
        specs.iter().zip(cases).map(|(spec, (_, found))| (spec.as_str(), *found)).collect();
    check(&KIND, &cases);
}

fn sidecar(spec: &str) -> model::Sidecar {
    accepted(&KIND, spec).sidecars.remove(0)
}

#[test]
fn one_import_is_enough() {
    let sidecar = sidecar("egress:\n- hosts: [\"./*\"]");
    assert_eq!((&sidecar.selector, &sidecar.outbound_traffic_policy), (&None, &None));
    assert!(sidecar.ingress.is_empty());
    let listener = &sidecar.egress[0];
    assert_eq!((&listener.port, &listener.bind), (&None, &None));
    assert_eq!(listener.hosts[0].namespace, EgressNamespace::Own);
    assert_eq!(listener.span.to_string(), "a.yaml:6:5");
}

#[test]
fn every_field_reaches_the_model() {
    let outcome = read(include_str!("every_field.yaml"));
    let lines: Vec<String> = outcome.found.iter().map(ToString::to_string).collect();
    assert_eq!(lines, Vec::<String>::new());
    let sidecar = outcome.draft.expect("the document is valid").sidecars.remove(0);
    assert_eq!(sidecar.selector.as_ref().and_then(|s| s.get("app")), Some("client"));

    let web = &sidecar.ingress[0];
    assert_eq!((web.port.number, web.port.protocol), (9080, Protocol::Http));
    assert_eq!((web.bind.as_deref(), web.capture_mode), (Some("172.16.1.32"), CaptureMode::None));
    assert_eq!(web.default_endpoint, Some(DefaultEndpoint::Pipe("/run/app.sock".into())));
    let pool = web.connection_pool.as_ref().expect("it has limits");
    assert_eq!(pool.http.http2_max_requests, 10);
    assert_eq!(sidecar.ingress[1].default_endpoint, Some(DefaultEndpoint::Instance(8081)));
    let loopback = DefaultEndpoint::Loopback("::1".parse().expect("an address"), 8082);
    assert_eq!(sidecar.ingress[2].default_endpoint, Some(loopback));
    assert_eq!(sidecar.ingress[2].port.protocol, Protocol::Auto);

    let mysql = &sidecar.egress[0];
    let port = mysql.port.as_ref().expect("it has a port");
    assert_eq!((port.number, port.protocol, &*port.name), (3306, Protocol::MySql, "egressmysql"));
    assert_eq!(mysql.capture_mode, CaptureMode::Iptables);
    assert_eq!(mysql.hosts[0].namespace, EgressNamespace::Any);
    assert_eq!(sidecar.egress[1].bind.as_deref(), Some("unix:///run/out.sock"));
    let rest: Vec<(&EgressNamespace, &str, bool)> =
        sidecar.egress[2].hosts.iter().map(|h| (&h.namespace, &*h.host, h.exclude)).collect();
    let other = EgressNamespace::Named("other".into());
    assert_eq!(
        rest,
        [
            (&other, "*", false),
            (&other, "secret.example.com", true),
            (&EgressNamespace::Any, "*.gone.example.com", true),
        ]
    );

    let inbound = sidecar.inbound_connection_pool.as_ref().expect("it has limits");
    assert_eq!(inbound.tcp.max_connections, 100);
    let policy = sidecar.outbound_traffic_policy.as_ref().expect("it has a policy");
    assert_eq!(policy.mode, OutboundMode::AllowAny);
    let proxy = policy.egress_proxy.as_ref().expect("it has a proxy");
    assert_eq!((&*proxy.host, &*proxy.subset, proxy.port), ("proxy.example.com", "v1", Some(8080)));
}

#[test]
fn an_empty_policy_is_registry_only() {
    let policy = sidecar("outboundTrafficPolicy: {}").outbound_traffic_policy;
    assert_eq!(policy.map(|policy| policy.mode), Some(OutboundMode::RegistryOnly));
}

#[test]
fn a_sidecar_says_something() {
    refused(&KIND, &[("workloadSelector: {labels: {a: b}}", ("5:3", MissingField, "nothing"))]);
    let text = document(&KIND, "").replace("spec:", "spec: {}");
    assert!(read(&text).draft.is_none());
    let egress = "egress: [hosts: [\"*/*\"]]\nworkloadSelector: ";
    let cases = [("{labels: {a: \"*\"}}", ("6:34", InvalidValue, "as they are"))];
    after(egress, &cases, refused);
    let cases = [("{}", ("6:21", NoEffect, "all workloads"))];
    after(egress, &cases, warned);
}

#[test]
fn ingress_listeners_have_ports_of_their_own() {
    let cases = [
        ("[{}]", ("5:13", MissingField, "`port` is missing")),
        ("[port: {number: 0}]", ("5:28", InvalidValue, "1 to 65535")),
        ("[port: {number: 1, protocol: SPDY}]", ("5:41", InvalidValue, "`SPDY`")),
        ("[port: {number: 1, targetPort: 2}]", ("5:43", InvalidValue, "no effect on Sidecars")),
        ("[port: {number: 1, name: a.b}]", ("5:37", InvalidValue, "name of a port")),
        ("[{port: {number: 1}, bind: here}]", ("5:39", InvalidValue, "not an IP address")),
        (
            "[{port: {number: 1}, defaultEndpoint: \"10.0.0.1:80\"}]",
            ("5:50", InvalidValue, "no place of the workload"),
        ),
        (
            "[{port: {number: 1}, defaultEndpoint: \"127.0.0.1:0\"}]",
            ("5:50", InvalidValue, "no place of the workload"),
        ),
        (
            "[{port: {number: 1}}, {port: {number: 1}}]",
            ("5:50", ConflictingFields, "the port 1 is used twice"),
        ),
    ];
    after("ingress: ", &cases, refused);
    let cases = [(
        "[{port: {number: 1, protocol: TCP}, connectionPool: {http: {http2MaxRequests: 1}}}]",
        ("5:71", NoEffect, "does not read HTTP"),
    )];
    after("ingress: ", &cases, warned);
}

#[test]
fn ingress_tls_has_certificates_in_files() {
    let port = "ingress:\n- port: {number: 1, protocol: HTTPS}\n  tls: ";
    let certificate = "serverCertificate: a, privateKey: b";
    let spec = format!("{port}{{mode: SIMPLE, {certificate}}}");
    let tls = sidecar(&spec).ingress.remove(0).tls.expect("it has TLS");
    assert_eq!(tls.mode, ServerTlsMode::Simple);
    for (tls, place, fragment) in [
        ("{mode: SIMPLE, credentialName: a}", "7:25", "has no `credentialName`"),
        ("{mode: ISTIO_MUTUAL}", "7:17", "must be SIMPLE"),
    ] {
        let found = read(&document(&KIND, &format!("{port}{tls}"))).found;
        let hit = found.iter().any(|d| {
            let text = d.to_string();
            text.starts_with(&format!("a.yaml:{place}: error")) && text.contains(fragment)
        });
        assert!(hit, "{tls}: {found:#?}");
    }
}

#[test]
fn only_the_last_egress_listener_has_no_port() {
    let cases = [
        ("[{hosts: [\"*/*\"]}, {hosts: [\"*/*\"]}]", ("5:12", InvalidValue, "must come last")),
        (
            "[{port: {number: 1}, hosts: [\"*/*\"]}, {port: {number: 1}, hosts: [\"*/*\"]}]",
            ("5:65", ConflictingFields, "used twice"),
        ),
        ("[{port: {number: 0}, hosts: [\"*/*\"]}]", ("5:28", InvalidValue, "only a Unix socket")),
        (
            "[{port: {number: 0}, bind: \"unix:///a\", captureMode: IPTABLES, hosts: [\"*/*\"]}]",
            ("5:64", InvalidValue, "DEFAULT or NONE"),
        ),
        (
            "[{port: {number: 1}, bind: \"unix:///a\", hosts: [\"*/*\"]}]",
            ("5:38", InvalidValue, "not an IP address"),
        ),
    ];
    after("egress: ", &cases, refused);
    let sockets = "egress:\n- {port: {number: 0}, bind: \"unix:///a\", hosts: [\"*/*\"]}\n\
                   - {port: {number: 0}, bind: \"unix:///a\", hosts: [\"*/*\"]}";
    refused(&KIND, &[(sockets, ("7:31", ConflictingFields, "the socket"))]);
}

#[test]
fn egress_hosts_have_a_namespace() {
    let cases = [
        ("[]", ("6:5", MissingField, "needs `hosts`")),
        ("[a.com]", ("6:13", InvalidValue, "`./a.com`")),
        ("[./short]", ("6:13", InvalidValue, "short name")),
        ("[a_b/c.com]", ("6:13", InvalidValue, "no namespace")),
        ("[\"./*a.com\"]", ("6:13", InvalidValue, "partial wildcard")),
    ];
    after("egress:\n- hosts: ", &cases, refused);
    let cases = [
        ("[./a.com, ./a.com]", ("6:22", NoEffect, "named twice")),
        ("[\"*/*\", ./a.com]", ("6:13", NoEffect, "everything already")),
    ];
    after("egress:\n- hosts: ", &cases, warned);
    sidecar("egress:\n- hosts: [\"*/*\", \"~ns/a.com\"]");
    sidecar("egress:\n- hosts: [\"~/*\"]");
}

#[test]
fn egress_proxies_are_complete() {
    let cases = [
        (
            "{egressProxy: {host: a.com, port: {number: 1}}}",
            ("5:27", ConflictingFields, "ALLOW_ANY"),
        ),
        ("{mode: ALLOW_ANY, egressProxy: {host: a.com}}", ("5:57", MissingField, "needs a `port`")),
        (
            "{mode: ALLOW_ANY, egressProxy: {host: \"*.com\", port: {number: 1}}}",
            ("5:64", InvalidValue, "`*.com`"),
        ),
        ("{mode: ALLOW_ANY_DYNAMIC_DNS}", ("5:33", InvalidValue, "`ALLOW_ANY`")),
    ];
    after("outboundTrafficPolicy: ", &cases, refused);
}
