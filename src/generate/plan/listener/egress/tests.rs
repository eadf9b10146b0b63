//! Who gets which outbound listener, told on small services.

use super::*;
use crate::generate::test_support::{
    Eyes, Facts, Parts, line, origin, service, sidecar, snapshot_with, virtual_service, weighted,
};
use crate::model::{
    HostImport, Hostname, L4Match, ListenerPort, Protocol, Selector, Service, Sidecar, TcpRule,
    TlsMatch, TlsRule, VirtualService,
};
use crate::proxy::Interception;

fn captured() -> Parts {
    sidecar()
}

fn uncaptured() -> Parts {
    Parts { interception: Interception::None, ..sidecar() }
}

/// A service with addresses.
fn at(addresses: &[&str], host: &str, ports: &[(u16, Protocol)]) -> Service {
    let address = |text: &&str| match text.parse() {
        Ok(ip) => Address::Ip(ip),
        Err(_) => Address::Cidr(text.parse().expect("an address or a network")),
    };
    Service { addresses: addresses.iter().map(address).collect(), ..service(host, ports) }
}

/// A listener as `name [!]: chain; chain`, with `!` when it binds.
fn share_text(share: &Share) -> String {
    let chain = |chain: &Draft| {
        let m = &chain.matches;
        let mut text = String::new();
        for name in &m.server_names {
            text.push_str(&format!("sni={name} "));
        }
        for network in &m.destinations {
            text.push_str(&format!("net={network} "));
        }
        if !m.application_protocols.is_empty() {
            text.push_str("http? ");
        }
        match &chain.does {
            Does::Http(_) => {
                text.push_str(&format!("rds {}", chain.does.route().unwrap_or_default()));
            }
            Does::Tcp(tcp) => {
                let names: Vec<&str> = tcp.clusters.iter().map(|c| c.0.as_str()).collect();
                text.push_str(&names.join("+"));
            }
        }
        text
    };
    let chains: Vec<String> = share.chains.iter().map(chain).collect();
    let mark = if share.binds { "!" } else { "" };
    format!("{}{mark}: {}", names::listener(&share.bind, share.port), chains.join("; "))
}

fn planned(snapshot: &Facts, view: &Parts) -> (Vec<String>, Vec<String>, Vec<String>) {
    let eyes = Eyes::new(snapshot, view);
    let viewer = eyes.viewer();
    let scope = eyes.scope(&viewer);
    let planner = agree(&scope);
    let findings = planner.findings.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    let routes = planner.routes.keys().cloned().collect();
    let shares = planner.table.into_shares();
    (shares.iter().map(share_text).collect(), routes, findings)
}

fn of_services(services: Vec<Service>, view: &Parts) -> (Vec<String>, Vec<String>, Vec<String>) {
    planned(&snapshot_with(|s| s.services = services), view)
}

fn l4_match() -> L4Match {
    L4Match {
        destination_subnets: Vec::new(),
        port: None,
        source_labels: Selector::default(),
        source_namespace: None,
        gateways: Vec::new(),
        span: line(1),
    }
}

fn tls_rule(sni: &[&str], to: &str) -> TlsRule {
    let sni_hosts = sni.iter().map(|&h| Hostname::from(h)).collect();
    TlsRule {
        matches: vec![TlsMatch { sni_hosts, l4: l4_match() }],
        destinations: vec![weighted(to, 0)],
        span: line(1),
    }
}

fn tcp_rule(matches: Vec<L4Match>, to: &str) -> TcpRule {
    TcpRule { matches, destinations: vec![weighted(to, 0)], span: line(1) }
}

#[test]
fn http_services_share_the_wildcard_listener_of_their_port() {
    let services =
        vec![service("a.b", &[(80, Protocol::Http)]), service("c.d", &[(80, Protocol::Http2)])];
    let (listeners, routes, findings) = of_services(services, &captured());
    assert_eq!(listeners, ["0.0.0.0_80: http? rds 80"]);
    assert_eq!(routes, ["80"]);
    assert!(findings.is_empty());
}

#[test]
fn tcp_services_with_addresses_have_listeners_of_their_own() {
    let services = vec![
        at(&["10.1.0.1", "10.1.0.2"], "a.b", &[(9000, Protocol::Tcp)]),
        at(&["10.2.0.0/16"], "c.d", &[(9000, Protocol::Tcp)]),
        service("e.f", &[(9000, Protocol::Tcp)]),
    ];
    let (listeners, routes, findings) = of_services(services, &captured());
    assert_eq!(
        listeners,
        [
            "0.0.0.0_9000: net=10.2.0.0/16 outbound|9000||c.d; outbound|9000||e.f",
            "10.1.0.1_9000: outbound|9000||a.b",
            "10.1.0.2_9000: outbound|9000||a.b",
        ]
    );
    assert!(routes.is_empty() && findings.is_empty());
}

#[test]
fn http_tcp_and_tls_meet_on_one_listener_in_any_order() {
    let http = || service("h.x", &[(443, Protocol::Http)]);
    let tcp = || service("t.x", &[(443, Protocol::Tcp)]);
    let tls = || service("s.x", &[(443, Protocol::Tls)]);
    let auto = || service("a.x", &[(443, Protocol::Auto)]);
    for services in [
        vec![http(), tcp(), tls(), auto()],
        vec![tcp(), tls(), http(), auto()],
        vec![auto(), tls(), http()],
        vec![tls(), auto(), http()],
    ] {
        let first_plain = services
            .iter()
            .map(|s| &s.hostname)
            .find(|h| h.as_str() == "t.x" || h.as_str() == "a.x");
        let plain = format!("outbound|443||{}", first_plain.expect("one is there"));
        let (listeners, routes, _) = of_services(services, &captured());
        assert_eq!(listeners.len(), 1, "{listeners:?}");
        let chains: BTreeSet<&str> =
            listeners[0].trim_start_matches("0.0.0.0_443: ").split("; ").collect();
        let wanted = ["http? rds 443", plain.as_str(), "sni=s.x outbound|443||s.x"];
        assert_eq!(chains, BTreeSet::from(wanted));
        assert_eq!(routes, ["443"]);
    }
}

#[test]
fn the_second_tcp_service_of_an_address_is_told_who_has_it() {
    let services =
        vec![service("a.b", &[(5432, Protocol::Tcp)]), service("c.d", &[(5432, Protocol::Tcp)])];
    let (listeners, _, findings) = of_services(services, &captured());
    assert_eq!(listeners, ["0.0.0.0_5432: outbound|5432||a.b"]);
    assert_eq!(
        findings,
        [
            "PF0403 c.d port 5432 of default/c.d is not reachable through 0.0.0.0_5432: a.b port 5432 of default/a.b has it already"
        ]
    );
}

#[test]
fn protocols_where_the_server_speaks_first_share_with_nobody() {
    let services =
        vec![service("a.b", &[(3306, Protocol::MySql)]), service("c.d", &[(3306, Protocol::Tls)])];
    let (listeners, _, findings) = of_services(services, &captured());
    assert_eq!(listeners, ["0.0.0.0_3306: outbound|3306||a.b"]);
    assert_eq!(findings.len(), 1);
}

#[test]
fn a_sniffed_service_with_its_own_address_has_its_own_routes() {
    let services = vec![at(&["1.2.3.4"], "test-private.com", &[(70, Protocol::Auto)])];
    let snapshot = snapshot_with(|s| s.services = services);
    let (listeners, routes, _) = planned(&snapshot, &captured());
    assert_eq!(
        listeners,
        ["1.2.3.4_70: outbound|70||test-private.com; http? rds test-private.com:70"]
    );
    assert_eq!(routes, ["test-private.com:70"]);
}

#[test]
fn without_interception_listeners_bind_localhost_and_sni_tells_tls_services_apart() {
    let services = vec![
        at(&["1.1.1.1"], "a.x", &[(443, Protocol::Tls)]),
        at(&["1.1.1.2"], "b.x", &[(443, Protocol::Https)]),
        service("h.x", &[(80, Protocol::Http)]),
        at(&["1.1.1.3"], "auto.x", &[(80, Protocol::Auto)]),
        service("auto2.x", &[(81, Protocol::Auto)]),
    ];
    let (listeners, routes, findings) = of_services(services, &uncaptured());
    assert_eq!(
        listeners,
        [
            "127.0.0.1_80!: rds 80",
            "127.0.0.1_81!: outbound|81||auto2.x; http? rds 81",
            "127.0.0.1_443!: sni=a.x outbound|443||a.x; sni=b.x outbound|443||b.x",
        ]
    );
    assert_eq!(routes, ["80", "81"]);
    assert!(findings[0].contains("unless it speaks HTTP"), "{findings:?}");
}

#[test]
fn an_endpoint_of_a_headless_service_is_an_address() {
    let mut headless = service("db.x", &[(5432, Protocol::Tcp)]);
    headless.resolution = Resolution::None;
    let (listeners, _, _) = of_services(vec![headless.clone()], &captured());
    assert_eq!(listeners, ["0.0.0.0_5432: outbound|5432||db.x"]);
    headless.endpoints = [crate::generate::test_support::endpoint("10.0.0.7", 5432)].into();
    let (listeners, _, _) = of_services(vec![headless], &captured());
    assert_eq!(listeners, ["10.0.0.7_5432: outbound|5432||db.x"]);
}

#[test]
fn tls_rules_replace_the_default_chain_of_their_service() {
    let rule = |name, sni: &[&str], to| VirtualService {
        tls: vec![tls_rule(sni, to)],
        ..virtual_service(name, &["a.x"], Vec::new())
    };
    let snapshot = snapshot_with(|s| {
        s.services =
            vec![service("a.x", &[(443, Protocol::Tls)]), service("b.x", &[(443, Protocol::Tls)])];
        s.virtual_services = vec![rule("one", &["A.x"], "b.x"), rule("two", &["a.x"], "c.x")];
    });
    let (listeners, _, _) = planned(&snapshot, &captured());
    assert_eq!(listeners, ["0.0.0.0_443: sni=a.x outbound|443||b.x; sni=b.x outbound|443||b.x"]);
}

#[test]
fn a_tcp_rule_for_the_services_own_network_leaves_no_default_chain() {
    let subnets = |text: &str| L4Match {
        destination_subnets: vec![text.parse().expect("a network")],
        ..l4_match()
    };
    let with = |matches: Vec<L4Match>| {
        snapshot_with(|s| {
            s.services = vec![at(&["10.1.0.0/16"], "a.x", &[(9000, Protocol::Tcp)])];
            s.virtual_services = vec![VirtualService {
                tcp: vec![tcp_rule(matches, "b.x")],
                ..virtual_service("v", &["a.x"], Vec::new())
            }];
        })
    };
    let (same, _, _) = planned(&with(vec![subnets("10.1.0.0/16")]), &captured());
    assert_eq!(same, ["0.0.0.0_9000: net=10.1.0.0/16 outbound|9000||b.x"]);
    let (part, _, _) = planned(&with(vec![subnets("10.1.1.0/24")]), &captured());
    assert_eq!(
        part,
        ["0.0.0.0_9000: net=10.1.1.0/24 outbound|9000||b.x; net=10.1.0.0/16 outbound|9000||a.x"]
    );
    let (all, _, _) = planned(&with(Vec::new()), &captured());
    assert_eq!(all, ["0.0.0.0_9000: net=10.1.0.0/16 outbound|9000||b.x"]);
}

fn egress(port: Option<(u16, Protocol)>, bind: Option<&str>, host: &str) -> EgressListener {
    EgressListener {
        port: port.map(|(number, protocol)| ListenerPort { number, protocol, name: "p".into() }),
        bind: bind.map(Into::into),
        capture_mode: CaptureMode::Default,
        hosts: vec![HostImport {
            namespace: crate::model::EgressNamespace::Any,
            host: host.into(),
            exclude: false,
        }],
        span: line(1),
    }
}

fn sidecar_document(egress: Vec<EgressListener>) -> Sidecar {
    Sidecar {
        origin: origin("Sidecar", "default", "s"),
        selector: None,
        egress,
        ingress: Vec::new(),
        outbound_traffic_policy: None,
        inbound_connection_pool: None,
    }
}

#[test]
fn an_egress_listener_with_a_port_keeps_exactly_its_own_services() {
    let snapshot = snapshot_with(|s| {
        s.services =
            vec![service("a.x", &[(80, Protocol::Http)]), service("b.x", &[(80, Protocol::Tcp)])];
        s.sidecars = vec![sidecar_document(vec![
            egress(Some((80, Protocol::Http)), None, "a.x"),
            egress(None, None, "*"),
        ])];
    });
    let (listeners, routes, findings) = planned(&snapshot, &captured());
    assert_eq!(listeners, ["0.0.0.0_80: http? rds 80"]);
    assert_eq!(routes, ["80"]);
    assert!(findings.is_empty());
}

#[test]
fn a_socket_and_a_forward_proxy_serve_everything_by_host_and_port() {
    let mut snapshot = snapshot_with(|s| {
        s.services = vec![service("a.x", &[(80, Protocol::Http)])];
        s.sidecars = vec![sidecar_document(vec![
            egress(Some((0, Protocol::Http)), Some("unix:///run/a.sock"), "*"),
            egress(None, None, "*"),
        ])];
    });
    snapshot.mesh.proxy_http_port = 15080;
    let (listeners, routes, findings) = planned(&snapshot, &captured());
    assert_eq!(
        listeners,
        [
            "0.0.0.0_80: http? rds 80",
            "127.0.0.1_15080!: rds http_proxy",
            "unix:///run/a.sock_0!: rds unix:///run/a.sock",
        ]
    );
    assert_eq!(routes, ["80", "http_proxy", "unix:///run/a.sock"]);
    assert!(findings.is_empty());
}

#[test]
fn capture_ports_and_privileged_ports_are_left_alone() {
    let services = || vec![service("a.x", &[(15001, Protocol::Http), (80, Protocol::Http)])];
    let (listeners, _, findings) = of_services(services(), &captured());
    assert_eq!(listeners, ["0.0.0.0_80: http? rds 80"]);
    assert!(findings[0].starts_with("PF0403"));
    let mut view = uncaptured();
    view.options.unprivileged = true;
    let (listeners, _, findings) = of_services(services(), &view);
    assert_eq!(listeners, ["127.0.0.1_15001!: rds 15001"]);
    assert!(findings[0].starts_with("PF0408"));
}
