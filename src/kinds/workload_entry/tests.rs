//! Rules of WorkloadEntry, and the model of a full document.

use super::*;
use crate::kinds::testing::{accepted, document, read, refused, warned};

#[test]
fn an_address_is_enough() {
    let draft = accepted(&KIND, "address: 10.0.0.1");
    let [workload] = draft.workloads.as_slice() else { panic!("one workload") };
    assert_eq!(workload.name().to_string(), "ns/x");
    assert_eq!(workload.address, Some(EndpointAddress::Ip([10, 0, 0, 1].into())));
    assert_eq!((workload.weight, workload.health), (1, Health::Unknown));
    assert!(workload.labels.is_empty() && workload.ports.is_empty());
}

#[test]
fn every_field_reaches_the_model() {
    let text = "
apiVersion: networking.istio.io/v1alpha3
kind: WorkloadEntry
metadata:
  name: vm1
  namespace: ns
  creationTimestamp: '1970-01-01T00:00:01Z'
  labels: {app: from-metadata, istio.io/draining: 'true'}
spec:
  address: 2001:db8::1
  ports: {http: 8080, grpc: 9090}
  labels: {app: from-spec, version: v1}
  network: net-1
  locality: r/z/s
  weight: 7
  serviceAccount: sa
";
    let outcome = read(text);
    assert_eq!(outcome.found, []);
    let draft = outcome.draft.expect("the document is valid");
    let [workload] = draft.workloads.as_slice() else { panic!("one workload") };
    assert_eq!(workload.address.as_ref().map(ToString::to_string), Some("2001:db8::1".into()));
    assert_eq!(workload.ports, [("http".into(), 8080), ("grpc".into(), 9090)].into());
    let labels = [
        ("app", "from-metadata"),
        ("istio.io/draining", "true"),
        ("topology.istio.io/network", "net-1"),
        ("topology.istio.io/subzone", "s"),
        ("topology.kubernetes.io/region", "r"),
        ("topology.kubernetes.io/zone", "z"),
        ("version", "v1"),
    ];
    assert_eq!(workload.labels, labels.into_iter().collect());
    assert_eq!(workload.locality, Locality::parse("r/z/s"));
    assert_eq!((workload.weight, workload.health), (7, Health::Draining));
    assert_eq!((&*workload.network, &*workload.service_account), ("net-1", "sa"));
    assert_eq!(workload.origin.created, 1_000_000_000);
}

#[test]
fn the_locality_can_be_a_label_with_dots_for_slashes() {
    for (spec, locality) in [
        ("{address: a.b, labels: {istio-locality: r.z.s}}", "r/z/s"),
        ("{address: a.b, labels: {topology.istio.io/locality: r.z, istio-locality: x}}", "r/z"),
        ("{address: a.b, locality: l, labels: {istio-locality: r.z}}", "l"),
    ] {
        let draft = accepted(&KIND, spec);
        assert_eq!(draft.workloads[0].locality, Locality::parse(locality), "{spec}");
    }
}

#[test]
fn an_own_network_label_stays() {
    let spec = "{address: 10.0.0.1, network: a, labels: {topology.istio.io/network: b}}";
    let draft = accepted(&KIND, spec);
    assert_eq!(draft.workloads[0].labels.get("topology.istio.io/network"), Some("b"));
    assert_eq!(&*draft.workloads[0].network, "a");
}

#[test]
fn addresses_are_names_or_sockets_too() {
    for (address, expected) in [
        ("example.com", EndpointAddress::Hostname("example.com".into())),
        ("unix:///run/x", EndpointAddress::Pipe("/run/x".into())),
        ("unix://@x", EndpointAddress::Pipe("@x".into())),
    ] {
        let draft = accepted(&KIND, &format!("address: '{address}'"));
        assert_eq!(draft.workloads[0].address, Some(expected));
    }
}

#[test]
fn mistakes_are_refused_where_they_stand() {
    use Code::{ConflictingFields, InvalidValue, MissingField};
    refused(
        &KIND,
        &[
            ("weight: 1", ("5:3", MissingField, "`address` is missing")),
            ("address: -x", ("5:12", InvalidValue, "neither an IP address nor a DNS name")),
            ("address: 10.0.0.300", ("5:12", InvalidValue, "must not be a number")),
            ("address: unix://x", ("5:12", InvalidValue, "must be absolute")),
            ("address: unix:///x/", ("5:12", InvalidValue, "must not end with `/`")),
            ("address: unix://", ("5:12", InvalidValue, "path of the socket is missing")),
            (
                "address: unix:///x\nports: {a: 1}",
                ("6:10", ConflictingFields, "a Unix socket has no ports"),
            ),
            (
                "address: 10.0.0.1\nports: {a_b: 1}",
                ("6:16", InvalidValue, "`a_b` is not a port name"),
            ),
            ("address: 10.0.0.1\nports: {a: 0}", ("6:14", InvalidValue, "1 to 65535")),
            ("address: 10.0.0.1\nports: {a: 70000}", ("6:14", InvalidValue, "0 to 65535")),
            ("address: 10.0.0.1\nweight: -1", ("6:11", InvalidValue, "found the number -1")),
            (
                "address: 10.0.0.1\nlabels: {'a b': c}",
                ("6:19", InvalidValue, "`a b` is not a label key"),
            ),
            (
                "address: 10.0.0.1\nlabels: {a: '-'}",
                ("6:15", InvalidValue, "`-` is not a label value"),
            ),
        ],
    );
}

#[test]
fn a_network_without_an_address_is_not_supported() {
    let found = ("5:12", Code::NotSupported, "network gateways are not supported yet");
    warned(&KIND, &[("network: n1", found)]);
    let outcome = read(&document(&KIND, "network: n1"));
    assert_eq!(outcome.draft.expect("it is accepted").workloads[0].address, None);
}

#[test]
fn with_health_checks_only_a_healthy_workload_gets_traffic() {
    let text = |annotation: &str, status: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {{name: x, \
             annotations: {{proxy.istio.io/health-checks-enabled: '{annotation}'}}}}\nspec: \
             {{address: 10.0.0.1}}\nstatus: {status}\n"
        )
    };
    let healthy = "{conditions: [{type: Other}, {type: Healthy, status: 'True'}]}";
    let unhealthy = "{conditions: [{type: Healthy, status: 'False'}]}";
    for (annotation, status, workloads, findings) in [
        ("true", healthy, 1, 0),
        ("true", unhealthy, 0, 1),
        ("true", "{}", 0, 1),
        ("false", unhealthy, 1, 0),
    ] {
        let outcome = read(&text(annotation, status));
        let draft = outcome.draft.expect("it is accepted");
        assert_eq!(draft.workloads.len(), workloads, "{annotation} {status}");
        assert_eq!(outcome.found.len(), findings, "{annotation} {status}");
        assert!(outcome.found.iter().all(|d| d.severity == Severity::Info));
    }
}
