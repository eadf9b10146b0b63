//! Istio's sharp cases of sidecar routes, told on small values.

use super::proto;
use crate::diag::Code;
use crate::generate::test_support::*;
use crate::model::Protocol::{Auto, Http, Tcp};
use crate::model::{
    Address, Destination, HttpAction, HttpRule, Namespace, OutboundMode, OutboundTrafficPolicy,
    Sidecar, Visibility,
};
use crate::proxy::Interception;
use crate::xds::TypeUrl;
use crate::xds::pb::Message;

fn made(snapshot: &Facts, view: &Parts, name: &str) -> proto::RouteConfiguration {
    let generated = shared(snapshot, view);
    let resource = generated.set.get(TypeUrl::Route, name);
    let resource = resource.unwrap_or_else(|| panic!("{name} is missing"));
    proto::RouteConfiguration::decode(&*resource.body).unwrap()
}

fn names_of(snapshot: &Facts, view: &Parts) -> Vec<String> {
    shared(snapshot, view).set.of_type(TypeUrl::Route).map(|r| r.name.to_string()).collect()
}

/// Virtual hosts as `name: first domain, … -> what the first route does`.
fn hosts(snapshot: &Facts, view: &Parts, name: &str) -> Vec<String> {
    made(snapshot, view, name)
        .virtual_hosts
        .iter()
        .map(|h| format!("{} -> {}", h.name, target(&h.routes[0])))
        .collect()
}

fn domains(snapshot: &Facts, view: &Parts, route: &str, host: &str) -> Vec<String> {
    let configuration = made(snapshot, view, route);
    let found = configuration.virtual_hosts.into_iter().find(|h| h.name == host);
    found.unwrap_or_else(|| panic!("{host} is missing")).domains
}

fn target(route: &proto::Route) -> String {
    use proto::route_action::ClusterSpecifier;
    match &route.action {
        Some(proto::route::Action::Route(action)) => match &action.cluster_specifier {
            Some(ClusterSpecifier::Cluster(name)) => name.clone(),
            other => panic!("{other:?}"),
        },
        Some(proto::route::Action::DirectResponse(response)) => response.status.to_string(),
        other => panic!("{other:?}"),
    }
}

const PASS: &str = "allow_any -> PassthroughCluster";

#[test]
fn services_without_rules_get_default_hosts_by_name_and_a_catch_all() {
    let snapshot = snapshot(
        vec![
            service("b.com", &[(80, Http)]),
            service("a.com", &[(80, Http), (8080, Http)]),
            service("tcp.com", &[(80, Tcp)]),
        ],
        Vec::new(),
    );
    let view = sidecar();
    assert_eq!(
        hosts(&snapshot, &view, "80"),
        ["a.com:80 -> outbound|80||a.com", "b.com:80 -> outbound|80||b.com", PASS]
    );
    assert_eq!(hosts(&snapshot, &view, "8080"), ["a.com:8080 -> outbound|8080||a.com", PASS]);
    let configuration = made(&snapshot, &view, "80");
    assert!(configuration.ignore_port_in_host_matching);
    assert!(!configuration.validate_clusters.unwrap().value);
    assert!(configuration.virtual_hosts.iter().all(|h| h.include_request_attempt_count));
}

#[test]
fn the_first_virtual_service_of_a_host_owns_it() {
    let rules = vec![
        virtual_service("old", &["a.com"], vec![rule_to("old.com")]),
        virtual_service("new", &["A.com"], vec![rule_to("new.com")]),
    ];
    let snapshot = snapshot(vec![service("a.com", &[(80, Http)])], rules);
    assert_eq!(hosts(&snapshot, &sidecar(), "80"), ["a.com:80 -> outbound|80||old.com", PASS]);
}

#[test]
fn a_virtual_service_without_routes_here_leaves_the_host_to_others() {
    let elsewhere = HttpRule {
        matches: vec![crate::model::HttpMatch { port: Some(9), ..http_match() }],
        ..rule_to("old.com")
    };
    let rules = |second| {
        let mut rules = vec![virtual_service("old", &["a.com"], vec![elsewhere.clone()])];
        rules.extend(second);
        snapshot(vec![service("a.com", &[(80, Http)])], rules)
    };
    let alone = rules(None);
    assert_eq!(hosts(&alone, &sidecar(), "80"), ["a.com:80 -> outbound|80||a.com", PASS]);
    let second = virtual_service("new", &["a.com"], vec![rule_to("new.com")]);
    let both = rules(Some(second));
    assert_eq!(hosts(&both, &sidecar(), "80"), ["a.com:80 -> outbound|80||new.com", PASS]);
}

#[test]
fn hosts_that_are_no_services_are_served_on_port_80_only() {
    let rules = vec![virtual_service("v", &["foo.com"], vec![rule_to("a.com")])];
    let services = vec![service("a.com", &[(80, Http), (8080, Http)])];
    let snapshot = snapshot(services, rules);
    assert_eq!(
        hosts(&snapshot, &sidecar(), "80"),
        ["a.com:80 -> outbound|80||a.com", "foo.com:80 -> outbound|80||a.com", PASS]
    );
    assert_eq!(hosts(&snapshot, &sidecar(), "8080"), ["a.com:8080 -> outbound|8080||a.com", PASS]);
}

#[test]
fn a_host_beside_a_service_of_the_same_document_is_served_on_its_port() {
    let rules = vec![virtual_service("v", &["a.com", "foo.com"], vec![rule_to("x.com")])];
    let snapshot = snapshot(vec![service("a.com", &[(8080, Http)])], rules);
    assert_eq!(
        hosts(&snapshot, &sidecar(), "8080"),
        ["a.com:8080 -> outbound|8080||x.com", "foo.com:8080 -> outbound|8080||x.com", PASS]
    );
}

#[test]
fn exact_hosts_beat_wildcards_whatever_their_age_and_longer_wildcards_shorter_ones() {
    let rules = vec![
        virtual_service("wild", &["*.com"], vec![rule_to("wild")]),
        virtual_service("longer", &["*.b.com"], vec![rule_to("longer")]),
        virtual_service("exact", &["a.com"], vec![rule_to("exact")]),
        virtual_service("nobody", &["*.tld"], vec![rule_to("nobody")]),
    ];
    let services = ["a.com", "x.com", "x.b.com"].map(|h| service(h, &[(80, Http)]));
    let snapshot = snapshot(services.to_vec(), rules);
    assert_eq!(
        hosts(&snapshot, &sidecar(), "80"),
        [
            "*.tld:80 -> outbound|80||nobody",
            "a.com:80 -> outbound|80||exact",
            "x.b.com:80 -> outbound|80||longer",
            "x.com:80 -> outbound|80||wild",
            PASS
        ]
    );
}

#[test]
fn a_service_that_really_has_a_short_name_gets_it() {
    let snapshot = snapshot(
        vec![
            service("test.default.svc.cluster.local", &[(80, Http)]),
            service("test", &[(80, Http)]),
        ],
        vec![virtual_service("v", &["test.default"], vec![rule_to("x")])],
    );
    let view = sidecar();
    assert_eq!(domains(&snapshot, &view, "80", "test:80"), ["test", "test."]);
    assert_eq!(domains(&snapshot, &view, "80", "test.default:80"), ["test.default"]);
    assert_eq!(
        domains(&snapshot, &view, "80", "test.default.svc.cluster.local:80"),
        ["test.default.svc.cluster.local", "test.default.svc.cluster.local.", "test.default.svc"]
    );
}

#[test]
fn no_domain_is_claimed_twice() {
    let mut one = service("one.com", &[(80, Http)]);
    one.addresses = vec![Address::Ip("10.0.0.1".parse().unwrap())];
    let mut two = service("two.com", &[(80, Http)]);
    two.addresses = one.addresses.clone();
    let snapshot = snapshot(
        vec![one, two],
        vec![virtual_service("v", &["ONE.com", "Two.com", "three.com"], vec![rule_to("x")])],
    );
    let mut seen = std::collections::HashSet::new();
    for host in made(&snapshot, &sidecar(), "80").virtual_hosts {
        for domain in host.domains {
            assert!(seen.insert(domain.to_ascii_lowercase()), "{domain} is claimed twice");
        }
    }
    assert!(seen.contains("10.0.0.1"));
}

#[test]
fn a_sniffed_service_with_an_address_has_routes_of_its_own() {
    let mut sniffed = service("a.com", &[(70, Auto)]);
    sniffed.addresses = vec![Address::Ip("1.2.3.4".parse().unwrap())];
    let rules = vec![virtual_service("v", &["*.com"], vec![rule_to("x")])];
    let plain = snapshot(vec![sniffed.clone()], Vec::new());
    let ruled = snapshot(vec![sniffed], rules);
    let view = sidecar();
    assert_eq!(hosts(&plain, &view, "a.com:70"), ["a.com:70 -> outbound|70||a.com"]);
    assert_eq!(domains(&plain, &view, "a.com:70", "a.com:70"), ["*"]);
    assert_eq!(hosts(&ruled, &view, "a.com:70"), ["a.com:70 -> outbound|70||x"]);
}

#[test]
fn without_interception_sniffed_services_share_the_ports_routes() {
    let mut sniffed = service("a.com", &[(70, Auto)]);
    sniffed.addresses = vec![Address::Ip("1.2.3.4".parse().unwrap())];
    let snapshot = snapshot(vec![sniffed, service("b.com", &[(70, Http)])], Vec::new());
    let view = Parts { interception: Interception::None, ..sidecar() };
    assert_eq!(
        hosts(&snapshot, &view, "70"),
        ["a.com:70 -> outbound|70||a.com", "b.com:70 -> outbound|70||b.com", "block_all -> 502"]
    );
}

#[test]
fn unknown_hosts_follow_the_outbound_policy() {
    let mut snapshot = snapshot(vec![service("a.com", &[(80, Http)])], Vec::new());
    let last = |snapshot: &Facts, interception| {
        let view = Parts { interception, ..sidecar() };
        hosts(snapshot, &view, "80").pop().unwrap()
    };
    let policy = |mode, egress_proxy| OutboundTrafficPolicy { mode, egress_proxy };
    assert_eq!(last(&snapshot, Interception::Tproxy), PASS);
    assert_eq!(last(&snapshot, Interception::None), "block_all -> 502");
    snapshot.mesh.outbound_traffic_policy = policy(OutboundMode::RegistryOnly, None);
    assert_eq!(last(&snapshot, Interception::Redirect), "block_all -> 502");
    let proxy = Destination { port: Some(3128), ..destination("proxy.com") };
    snapshot.mesh.outbound_traffic_policy = policy(OutboundMode::AllowAny, Some(proxy));
    for interception in [Interception::Redirect, Interception::None] {
        assert_eq!(last(&snapshot, interception), "allow_any -> outbound|3128||proxy.com");
    }
}

#[test]
fn a_forward_proxy_tells_services_apart_by_host_and_port() {
    let services = vec![
        service("a.com", &[(80, Http), (8080, Http)]),
        service("b.com", &[(9000, Http), (9001, Http)]),
    ];
    let rules = vec![virtual_service("v", &["b.com"], vec![rule_to("b.com")])];
    let mut snapshot = snapshot(services, rules);
    snapshot.mesh.proxy_http_port = 15080;
    let view = sidecar();
    let configuration = made(&snapshot, &view, "http_proxy");
    assert!(!configuration.ignore_port_in_host_matching);
    assert_eq!(
        hosts(&snapshot, &view, "http_proxy"),
        [
            "a.com:80 -> outbound|80||a.com",
            "a.com:8080 -> outbound|8080||a.com",
            "b.com:9000 -> outbound|9000||b.com",
            "b.com:9001 -> outbound|9001||b.com",
            PASS
        ]
    );
    assert_eq!(
        domains(&snapshot, &view, "http_proxy", "a.com:80"),
        ["a.com", "a.com:80", "a.com.", "a.com.:80"]
    );
    assert_eq!(
        domains(&snapshot, &view, "http_proxy", "a.com:8080"),
        ["a.com:8080", "a.com.:8080"]
    );
}

#[test]
fn a_destination_on_another_port_than_the_clients_is_reported() {
    let portless = virtual_service("v", &["foo.com"], vec![rule_to("a.com")]);
    let services = || vec![service("a.com", &[(9080, Http)]), service("b.com", &[(80, Http)])];
    let found = |rules| shared(&snapshot(services(), rules), &sidecar()).diagnostics;
    let findings = found(vec![portless]);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].code, Code::UnknownPort);
    // The usual document: its host is the service, which nobody asks for on port 80.
    assert_eq!(found(vec![virtual_service("v", &["a.com"], vec![rule_to("a.com")])]), []);
    let mut named = rule_to("a.com");
    if let HttpAction::Route(list) = &mut named.action {
        list[0].destination.port = Some(9080);
    }
    assert_eq!(found(vec![virtual_service("v", &["foo.com"], vec![named])]), []);
}

#[test]
fn a_service_on_other_ports_is_served_on_port_80_only_when_that_leads_somewhere() {
    let services = || vec![service("a.com", &[(9080, Http)]), service("b.com", &[(80, Http)])];
    let usual = virtual_service("v", &["a.com"], vec![rule_to("a.com")]);
    let served = |rules| hosts(&snapshot(services(), rules), &sidecar(), "80");
    assert_eq!(served(vec![usual]), ["b.com:80 -> outbound|80||b.com", PASS]);
    let mut named = rule_to("a.com");
    if let HttpAction::Route(list) = &mut named.action {
        list[0].destination.port = Some(9080);
    }
    assert_eq!(
        served(vec![virtual_service("v", &["a.com"], vec![named])]),
        ["a.com:80 -> outbound|9080||a.com", "b.com:80 -> outbound|80||b.com", PASS]
    );
}

#[test]
fn a_destination_that_the_proxy_may_not_see_is_reported() {
    let mut hidden = service("hidden.com", &[(80, Http)]);
    hidden.namespace = Namespace::from("other");
    hidden.visibility = Visibility::Namespaces([Namespace::from("other")].into());
    let rules = vec![virtual_service("v", &["a.com"], vec![rule_to("hidden.com")])];
    let snapshot = snapshot(vec![hidden, service("a.com", &[(80, Http)])], rules);
    let findings = shared(&snapshot, &sidecar()).diagnostics;
    assert_eq!(findings.iter().map(|f| f.code).collect::<Vec<_>>(), [Code::UnknownHost]);
}

#[test]
fn a_sidecar_that_allows_what_cannot_be_is_told() {
    let mut snapshot = snapshot(vec![service("a.com", &[(80, Http)])], Vec::new());
    snapshot.sidecars = vec![Sidecar {
        origin: origin("Sidecar", "default", "s"),
        selector: None,
        egress: Vec::new(),
        ingress: Vec::new(),
        outbound_traffic_policy: Some(OutboundTrafficPolicy {
            mode: OutboundMode::AllowAny,
            egress_proxy: None,
        }),
        inbound_connection_pool: None,
    }];
    let codes = |interception| -> Vec<Code> {
        let view = Parts { interception, ..sidecar() };
        shared(&snapshot, &view).diagnostics.iter().map(|f| f.code).collect()
    };
    assert_eq!(codes(Interception::None), [Code::NoEffect]);
    assert_eq!(codes(Interception::Redirect), []);
}

#[test]
fn a_router_has_no_sidecar_routes() {
    let snapshot = snapshot(vec![service("a.com", &[(80, Http)])], Vec::new());
    assert_eq!(names_of(&snapshot, &router()), Vec::<String>::new());
    let mut other = sidecar();
    other.namespace = Namespace::from("elsewhere");
    assert_eq!(names_of(&snapshot, &other), ["80"]);
}
