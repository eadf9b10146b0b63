//! One claim a rule of ServiceEntry, and the model of a full document.

use super::*;
use crate::diag::Severity;
use crate::kinds::testing::{accepted, document, expect, read, refused, warned};
use crate::model::{EndpointAddress, Locality};
use Code::{ConflictingFields, Doubtful, InvalidValue, MissingField, NoEffect, NotSupported};

/// A host, one port, and more lines after them.
fn http(more: &str) -> String {
    format!("hosts: [a.com]\nports: [{{number: 80, name: http, protocol: HTTP}}]\n{more}")
}

fn cases<'c>(
    cases: &'c [(String, (&'c str, Code, &'c str))],
) -> Vec<(&'c str, (&'c str, Code, &'c str))> {
    cases.iter().map(|(spec, expected)| (spec.as_str(), *expected)).collect()
}

#[test]
fn a_host_is_enough() {
    let draft = accepted(&KIND, "hosts: [a.com]");
    let [entry] = draft.service_entries.as_slice() else { panic!("one service entry") };
    assert_eq!(entry.hosts, [Hostname::from("a.com")]);
    assert_eq!(entry.resolution, Resolution::None);
    assert_eq!(entry.location, Location::MeshExternal);
    assert_eq!(entry.visibility, Visibility::Public);
    assert_eq!(entry.workload_selector, None);
    assert!(entry.ports.is_empty() && entry.addresses.is_empty() && entry.endpoints.is_empty());
}

#[test]
fn every_field_reaches_the_model() {
    let text = "
apiVersion: networking.istio.io/v1beta1
kind: ServiceEntry
metadata: {name: db, namespace: ns, labels: {team: a}}
spec:
  hosts: [db.example.com, '*.db.example.com']
  addresses: [192.0.2.1/32, 198.51.100.0/24, '2001:db8::1']
  ports:
  - number: 443
    name: tls
    protocol: tls
    targetPort: 8443
  - {number: 80, name: web, protocol: Http}
  location: MESH_INTERNAL
  resolution: STATIC
  endpoints:
  - address: 10.0.0.1
    ports: {tls: 9443}
    labels: {version: v1}
    network: n1
    locality: r/z
    weight: 3
    serviceAccount: sa
  - address: 10.0.0.2
  exportTo: ['.', other]
  subjectAltNames: [spiffe://cluster.local/ns/ns/sa/sa]
";
    let outcome = read(text);
    assert_eq!(outcome.found, []);
    let draft = outcome.draft.expect("the document is valid");
    let [entry] = draft.service_entries.as_slice() else { panic!("one service entry") };
    assert_eq!(entry.origin.name.to_string(), "ns/db");
    assert_eq!(entry.origin.kind, "ServiceEntry");
    assert_eq!(entry.labels.get("team"), Some("a"));
    assert_eq!(entry.hosts, [Hostname::from("db.example.com"), "*.db.example.com".into()]);
    let addresses = [
        Address::Ip([192, 0, 2, 1].into()),
        Address::Cidr("198.51.100.0/24".parse().expect("it is a network")),
        Address::Ip("2001:db8::1".parse().expect("it is an address")),
    ];
    assert_eq!(entry.addresses, addresses);
    let ports: Vec<_> = entry
        .ports
        .iter()
        .map(|p| (p.number, &*p.name, p.protocol, p.target_port, p.span.start.line))
        .collect();
    let expected =
        [(443, "tls", Protocol::Tls, Some(8443), 9), (80, "web", Protocol::Http, None, 13)];
    assert_eq!(ports, expected);
    assert_eq!((entry.location, entry.resolution), (Location::MeshInternal, Resolution::Static));
    let endpoint = &entry.endpoints[0];
    assert_eq!(endpoint.address, Some(EndpointAddress::Ip([10, 0, 0, 1].into())));
    assert_eq!(endpoint.ports, [("tls".to_owned(), 9443)].into());
    assert_eq!(endpoint.labels.get("version"), Some("v1"));
    assert_eq!(endpoint.labels.get("topology.kubernetes.io/zone"), Some("z"));
    assert_eq!(endpoint.labels.get("topology.istio.io/network"), Some("n1"));
    assert_eq!((endpoint.weight, &*endpoint.service_account), (3, "sa"));
    assert_eq!(endpoint.locality, Locality::parse("r/z"));
    assert_eq!(entry.endpoints[1].weight, 1);
    let seen_by = Visibility::Namespaces(["ns".into(), "other".into()].into());
    assert_eq!(entry.visibility, seen_by);
    assert_eq!(entry.subject_alt_names, ["spiffe://cluster.local/ns/ns/sa/sa"]);
    assert_eq!(entry.span.start.line, 6);
}

#[test]
fn a_selector_stands_for_endpoints() {
    let spec = http("resolution: STATIC\nworkloadSelector: {labels: {app: a}}");
    let draft = accepted(&KIND, &spec);
    let selector = draft.service_entries[0].workload_selector.as_ref();
    assert_eq!(selector.and_then(|labels| labels.get("app")), Some("a"));
}

#[test]
fn the_mesh_decides_who_sees_a_service_that_says_nothing() {
    let reading = crate::config::read(&crate::config::SourceFile::new(
        "a.yaml",
        document(&KIND, "hosts: [a.com]"),
    ));
    let decoded = KIND.decode(&reading.documents[0], &mut crate::diag::Diagnostics::new());
    let mesh = MeshSettings {
        default_service_visibility: vec![".".to_owned()],
        ..MeshSettings::default()
    };
    let mut draft = Draft::default();
    decoded.expect("it is valid").lower(&mesh, &mut draft);
    let own = Visibility::Namespaces(["ns".into()].into());
    assert_eq!(draft.service_entries[0].visibility, own);
}

#[test]
fn hosts_are_checked() {
    refused(
        &KIND,
        &[
            ("ports: []", ("5:3", MissingField, "`hosts` is missing")),
            ("hosts: []", ("5:10", MissingField, "at least one host")),
            ("hosts: ['*']", ("5:11", InvalidValue, "`*` alone")),
            ("hosts: [a.com, 'b*.com']", ("5:18", InvalidValue, "`*` may only stand")),
            ("hosts: ['']", ("5:11", InvalidValue, "it is empty")),
        ],
    );
    warned(&KIND, &[("hosts: ['*a.com']", ("5:11", Doubtful, "part of a label"))]);
}

#[test]
fn addresses_are_checked() {
    refused(
        &KIND,
        &cases(&[
            (http("addresses: [x]"), ("7:15", InvalidValue, "neither an IP address")),
            (http("addresses: [10.0.0.0/33]"), ("7:15", InvalidValue, "`10.0.0.0/33`")),
            (
                http("resolution: DNS\naddresses: [10.0.0.0/8]"),
                ("8:15", ConflictingFields, "a network needs"),
            ),
            (
                http("resolution: DNS\naddresses: [10.0.0.1/32]"),
                ("8:15", ConflictingFields, "a network needs"),
            ),
        ]),
    );
}

#[test]
fn ports_are_checked() {
    let ports = |ports: &str| format!("hosts: [a.com]\nports:\n{ports}");
    refused(
        &KIND,
        &cases(&[
            (ports("- {number: 0, name: a}"), ("7:14", InvalidValue, "1 to 65535")),
            (ports("- {number: 70000, name: a}"), ("7:14", InvalidValue, "65535")),
            (ports("- {number: 80, name: a_b}"), ("7:24", InvalidValue, "not a port name")),
            (ports("- {number: 80, name: ''}"), ("7:24", InvalidValue, "not a port name")),
            (ports("- {number: 80}"), ("7:5", MissingField, "`name` is missing")),
            (
                ports("- {number: 80, name: a, protocol: x}"),
                ("7:37", InvalidValue, "unknown protocol"),
            ),
            (ports("- null"), ("7:5", InvalidValue, "expected a mapping")),
            (
                ports("- {number: 80, name: a}\n- {number: 80, name: b}"),
                ("8:14", InvalidValue, "port 80 is defined twice"),
            ),
            (
                ports("- {number: 80, name: a}\n- {number: 81, name: a}"),
                ("8:24", InvalidValue, "two ports are named `a`"),
            ),
        ]),
    );
}

#[test]
fn endpoints_of_static_services_are_addresses_or_sockets() {
    let endpoint = |endpoint: &str| http(&format!("resolution: STATIC\nendpoints:\n- {endpoint}"));
    refused(
        &KIND,
        &cases(&[
            (endpoint("{address: a.com}"), ("9:15", InvalidValue, "is not an IP address")),
            (endpoint("{weight: 1}"), ("9:5", MissingField, "`address` is missing")),
            (
                endpoint("{address: 10.0.0.1, ports: {x: 1}}"),
                ("9:36", InvalidValue, "no port named `x`"),
            ),
            (
                endpoint("{address: 10.0.0.1}\nworkloadSelector: {labels: {a: b}}"),
                ("9:5", ConflictingFields, "exclude each other"),
            ),
            (
                "hosts: [a.com]\nports: [{number: 80, name: a, protocol: HTTP}, {number: 81, \
                 name: b}]\nresolution: STATIC\nendpoints: [{address: 'unix:///x'}]"
                    .to_owned(),
                ("8:25", ConflictingFields, "serves one port"),
            ),
        ]),
    );
    accepted(&KIND, &endpoint("{address: 'unix:///run/x.sock'}"));
    warned(
        &KIND,
        &cases(&[(endpoint("{network: n1}"), ("9:15", NotSupported, "network gateways"))]),
    );
}

#[test]
fn endpoints_of_dns_services_are_addresses_or_names() {
    let dns = |more: &str| http(&format!("resolution: DNS\n{more}"));
    let round_robin = |more: &str| http(&format!("resolution: DNS_ROUND_ROBIN\n{more}"));
    accepted(&KIND, &dns("endpoints: [{address: b.com}, {address: 10.0.0.1}]"));
    accepted(&KIND, &round_robin("endpoints: [{address: b.com}]"));
    refused(
        &KIND,
        &cases(&[
            (dns("endpoints: [{address: 'unix:///x'}]"), ("8:25", InvalidValue, "Unix socket")),
            (dns("endpoints: [{address: a_b.com}]"), ("8:25", InvalidValue, "neither an IP")),
            (
                round_robin("endpoints: [{address: b.com}, {address: c.com}]"),
                ("8:33", ConflictingFields, "at most one endpoint"),
            ),
            (
                "hosts: ['*.a.com']\nports: [{number: 80, name: http, protocol: HTTP}]\n\
                 resolution: DNS"
                    .to_owned(),
                ("5:11", ConflictingFields, "cannot be looked up"),
            ),
        ]),
    );
    expect(
        &KIND,
        "hosts: [a.com, b.com]\nports: [{number: 443, name: tls, protocol: TLS}]\n\
         resolution: DNS\naddresses: [10.0.0.1]",
        Severity::Warning,
        &[("6:11", Doubtful, "one ServiceEntry a host")],
    );
}

#[test]
fn services_without_resolution_have_no_endpoints() {
    refused(
        &KIND,
        &cases(&[(
            http("endpoints: [{address: 10.0.0.1}]"),
            ("7:14", ConflictingFields, "where the client wanted to go"),
        )]),
    );
    warned(
        &KIND,
        &cases(&[(
            http("workloadSelector: {labels: {a: b}}"),
            ("7:21", NoEffect, "whatever is selected"),
        )]),
    );
}

#[test]
fn dynamic_dns_needs_wildcards_and_a_protocol_that_names_the_host() {
    let dynamic = |hosts: &str, protocol: &str, more: &str| {
        format!(
            "resolution: DYNAMIC_DNS\nhosts: [{hosts}]\nports: [{{number: 80, name: a, protocol: \
             {protocol}}}]\n{more}"
        )
    };
    // Valid, but without effect yet.
    let unsupported = ("5:15", NotSupported, "no cluster");
    warned(
        &KIND,
        &cases(&[
            (dynamic("'*.a.com'", "HTTP", ""), unsupported),
            (dynamic("'*a.com'", "TLS", ""), unsupported),
        ]),
    );
    refused(
        &KIND,
        &cases(&[
            (dynamic("a.com", "HTTP", ""), ("6:11", ConflictingFields, "must be a wildcard")),
            (dynamic("'*.a.com'", "HTTPS", ""), ("7:43", ConflictingFields, "HTTP2, GRPC or TLS")),
            (
                dynamic("'*.a.com'", "HTTP", "addresses: [10.0.0.1]"),
                ("8:14", ConflictingFields, "addresses cannot be used"),
            ),
            (
                dynamic("'*.a.com'", "HTTP", "endpoints: [{address: 10.0.0.1}]"),
                ("8:14", ConflictingFields, "endpoints cannot be used"),
            ),
        ]),
    );
}

#[test]
fn several_hosts_need_a_protocol_that_names_the_host() {
    let hosts = |protocol: &str, resolution: &str| {
        format!(
            "hosts: [a.com, b.com]\nresolution: {resolution}\nports: [{{number: 80, name: a, \
             protocol: {protocol}}}]"
        )
    };
    for protocol in ["HTTP", "GRPC", "HTTPS", "TLS"] {
        accepted(&KIND, &hosts(protocol, "STATIC"));
    }
    accepted(&KIND, &hosts("TCP", "NONE"));
    refused(
        &KIND,
        &cases(&[(hosts("TCP", "STATIC"), ("7:11", ConflictingFields, "several hosts need"))]),
    );
}

#[test]
fn visibility_is_checked() {
    for list in ["['~']", "['*']", "[a, b]", "['.']"] {
        accepted(&KIND, &http(&format!("exportTo: {list}")));
    }
    refused(
        &KIND,
        &cases(&[
            (http("exportTo: [a, a]"), ("7:17", InvalidValue, "named twice")),
            (http("exportTo: ['.', ns]"), ("7:19", InvalidValue, "named twice")),
            (http("exportTo: ['*', a]"), ("7:14", ConflictingFields, "must stand alone")),
            (http("exportTo: ['~', a]"), ("7:14", ConflictingFields, "must stand alone")),
            (http("exportTo: [a_b]"), ("7:14", InvalidValue, "nor a namespace")),
        ]),
    );
}

#[test]
fn selectors_are_checked() {
    let selector =
        |labels: &str| http(&format!("resolution: STATIC\nworkloadSelector: {{labels: {labels}}}"));
    refused(
        &KIND,
        &cases(&[
            (selector("{a: '*'}"), ("8:34", InvalidValue, "`*`")),
            (selector("{'': b}"), ("8:35", InvalidValue, "empty keys")),
        ]),
    );
    warned(&KIND, &cases(&[(selector("{}"), ("8:21", NoEffect, "without labels"))]));
}

#[test]
fn without_a_virtual_address_of_its_own_tcp_takes_everything() {
    let text = document(&KIND, "hosts: [a.com]\nports: [{number: 80, name: a}]");
    let opted_out = text.replace(
        "namespace: ns}",
        "namespace: ns, labels: {networking.istio.io/enable-autoallocate-ip: 'false'}}",
    );
    assert_eq!(read(&text).found, []);
    let found = read(&opted_out).found;
    let [warning] = found.as_slice() else { panic!("one warning, not {found:?}") };
    assert!(warning.message.contains("all TCP traffic"));
}
