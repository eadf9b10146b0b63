//! Listeners of routers.

use super::{chains, codes, filters, manager_of, names, proxy_of};
use crate::generate::plan::listener::edge::plan;
use crate::generate::plan::listener::{Authorities, Certificates, Listener};
use crate::generate::test_support::{
    Eyes, Facts, Parts, gateway, line, router, secret, server, server_tls, snapshot_with,
    virtual_service, weighted,
};
use crate::model::{
    CertificateSource, Gateway, Hostname, L4Match, PathNormalization, Protocol, Selector, Server,
    ServerTlsMode, TcpRule, TlsMatch, TlsRule, VirtualService,
};
use std::sync::Arc;

/// A snapshot of these Gateways and rules with the credential `n/cert`.
fn edge(gateways: Vec<Gateway>, rules: Vec<VirtualService>) -> Facts {
    snapshot_with(|s| {
        s.gateways = gateways;
        s.virtual_services = rules;
        s.secrets = [secret("n", "cert")].into();
    })
}

fn edge_listeners(snapshot: &Facts) -> (Vec<Arc<Listener>>, Vec<String>) {
    listeners_of(snapshot, &router())
}

fn listeners_of(snapshot: &Facts, who: &Parts) -> (Vec<Arc<Listener>>, Vec<String>) {
    Eyes::new(snapshot, who).look(|scope| {
        let plan = plan(scope);
        (plan.listeners, codes(&plan.findings))
    })
}

fn tls_server(port_name: &str, protocol: Protocol, mode: ServerTlsMode, hosts: &[&str]) -> Server {
    Server {
        port_name: port_name.into(),
        tls: Some(server_tls(mode)),
        ..server(443, protocol, hosts)
    }
}

fn l4_match() -> L4Match {
    L4Match {
        destination_subnets: Vec::new(),
        port: None,
        source_labels: Selector::default(),
        source_namespace: None,
        gateways: Vec::new(),
        span: line(7),
    }
}

fn of_gateway(name: &str, hosts: &[&str]) -> VirtualService {
    VirtualService {
        gateways: vec![crate::model::GatewayRef::whole(crate::model::ObjectName::new("n", "g"))],
        ..virtual_service(name, hosts, Vec::new())
    }
}

fn tls_rule(line_number: u32, sni: &[&str], to: &str) -> TlsRule {
    let sni_hosts = sni.iter().map(|&h| Hostname::from(h)).collect();
    let l4 = L4Match { span: line(line_number), ..l4_match() };
    TlsRule {
        matches: vec![TlsMatch { sni_hosts, l4 }],
        destinations: vec![weighted(to, 0)],
        span: line(line_number),
    }
}

#[test]
fn a_plain_http_server_is_served_without_any_rule() {
    let snapshot =
        edge(vec![gateway("n", "g", [server(80, Protocol::Http, &["foo.bar"])])], Vec::new());
    let (listeners, findings) = edge_listeners(&snapshot);
    assert_eq!(names(&listeners), ["0.0.0.0_80"]);
    assert_eq!(chains(&listeners[0]), ["rds http.80"]);
    assert!(findings.is_empty());
    let manager = manager_of(&listeners[0].chains[0]);
    assert_eq!(manager.stat_prefix, "outbound_0.0.0.0_80;");
    assert!(manager.peer_is_client);
    assert_eq!(manager.server_name, Some("istio-envoy"));
    assert_eq!(manager.paths, PathNormalization::Base);
    assert!(manager.http1.is_some());
}

#[test]
fn https_servers_are_told_apart_by_sni() {
    let servers = [
        tls_server("one", Protocol::Https, ServerTlsMode::Simple, &["B.com", "a.com"]),
        tls_server("two", Protocol::Https, ServerTlsMode::Mutual, &["*"]),
    ];
    let (listeners, findings) = edge_listeners(&edge(vec![gateway("n", "g", servers)], Vec::new()));
    assert_eq!(
        chains(&listeners[0]),
        ["sni=b.com,a.com tls rds https.443.one.g.n", "tls rds https.443.two.g.n"]
    );
    assert_eq!(filters(&listeners[0]), ["tls_inspector"]);
    assert!(findings.is_empty());
    let tls = |chain: usize| listeners[0].chains[chain].tls.as_ref().expect("TLS ends here");
    let simple = tls(0);
    assert!(!simple.requires_client_certificate);
    assert_eq!(simple.clients, None);
    let certificate = || vec![Arc::from("kubernetes-gateway://n/cert")];
    assert_eq!(simple.certificates, Certificates::Secrets(certificate()));
    let mutual = tls(1);
    assert!(mutual.requires_client_certificate);
    let authorities = mutual.clients.as_ref().map(|clients| &clients.authorities);
    let ca = Authorities::Secret("kubernetes-gateway://n/cert-cacert".into());
    assert_eq!(authorities, Some(&ca));
}

#[test]
fn a_chain_without_its_secret_is_left_out_and_the_others_stay() {
    let mut missing = tls_server("one", Protocol::Https, ServerTlsMode::Simple, &["a.com"]);
    if let Some(tls) = &mut missing.tls {
        tls.certificates = CertificateSource::Credentials(vec!["gone".into()]);
    }
    let there = tls_server("two", Protocol::Https, ServerTlsMode::OptionalMutual, &["b.com"]);
    let snapshot = edge(vec![gateway("n", "g", [missing, there])], Vec::new());
    let (listeners, findings) = edge_listeners(&snapshot);
    assert_eq!(chains(&listeners[0]), ["sni=b.com tls rds https.443.two.g.n"]);
    // `compile` has said what is missing.
    assert!(findings.is_empty(), "{findings:?}");
    let names = Eyes::new(&snapshot, &router())
        .look(|scope| plan(scope).secrets.keys().cloned().collect::<Vec<_>>());
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    assert_eq!(names, ["kubernetes-gateway://n/cert", "kubernetes-gateway://n/cert-cacert"]);
}

#[test]
fn passthrough_follows_tls_rules_and_the_older_one_keeps_a_name() {
    let servers =
        [tls_server("tls", Protocol::Tls, ServerTlsMode::Passthrough, &["*.x.com", "y.com"])];
    let rules = vec![
        VirtualService {
            tls: vec![tls_rule(10, &["a.x.com", "b.x.com"], "a.b")],
            ..of_gateway("one", &["*.x.com"])
        },
        VirtualService {
            tls: vec![tls_rule(20, &["b.x.com"], "c.d"), tls_rule(21, &["d.x.com"], "c.d")],
            ..of_gateway("two", &["*.x.com"])
        },
    ];
    let (listeners, findings) = edge_listeners(&edge(vec![gateway("n", "g", servers)], rules));
    assert_eq!(
        chains(&listeners[0]),
        ["sni=a.x.com,b.x.com outbound|443||a.b", "sni=d.x.com outbound|443||c.d"]
    );
    assert_eq!(findings, ["PF0402"]);
}

#[test]
fn the_same_rule_through_two_servers_is_no_conflict() {
    let servers = [
        tls_server("tls", Protocol::Tls, ServerTlsMode::Passthrough, &["*.x.com"]),
        tls_server("tls2", Protocol::Tls, ServerTlsMode::Passthrough, &["a.x.com"]),
    ];
    let rules = vec![VirtualService {
        tls: vec![tls_rule(10, &["a.x.com"], "a.b")],
        ..of_gateway("one", &["a.x.com"])
    }];
    let (listeners, findings) = edge_listeners(&edge(vec![gateway("n", "g", servers)], rules));
    assert_eq!(chains(&listeners[0]), ["sni=a.x.com outbound|443||a.b"]);
    assert!(findings.is_empty());
}

#[test]
fn a_terminated_and_a_passed_through_chain_never_share_a_name() {
    let servers = [
        tls_server("pass", Protocol::Tls, ServerTlsMode::Passthrough, &["*.x.com"]),
        tls_server("end", Protocol::Https, ServerTlsMode::Simple, &["a.x.com", "e.x.com"]),
    ];
    let rules = vec![VirtualService {
        tls: vec![tls_rule(10, &["A.x.com"], "a.b")],
        ..of_gateway("one", &["*.x.com"])
    }];
    let (listeners, findings) = edge_listeners(&edge(vec![gateway("n", "g", servers)], rules));
    assert_eq!(
        chains(&listeners[0]),
        ["sni=a.x.com outbound|443||a.b", "sni=e.x.com tls rds https.443.end.g.n"]
    );
    assert_eq!(findings, ["PF0402"]);
}

#[test]
fn the_first_tcp_rule_that_fits_takes_the_server() {
    let servers = [server(9000, Protocol::Tcp, &["*"])];
    let rule = |port, to: &[(&str, u32)]| TcpRule {
        matches: vec![L4Match { port, ..l4_match() }],
        destinations: to.iter().map(|(host, weight)| weighted(host, *weight)).collect(),
        span: line(1),
    };
    let rules = vec![
        VirtualService {
            tcp: vec![
                rule(Some(1), &[("x.y", 0)]),
                rule(Some(9000), &[("a.b", 1), ("c.d", 0), ("e.f", 3)]),
            ],
            ..of_gateway("one", &["any"])
        },
        VirtualService { tcp: vec![rule(None, &[("x.y", 0)])], ..of_gateway("two", &["any"]) },
    ];
    let (listeners, findings) = edge_listeners(&edge(vec![gateway("n", "g", servers)], rules));
    assert_eq!(chains(&listeners[0]), ["outbound|9000||a.b=1+outbound|9000||e.f=3"]);
    assert_eq!(proxy_of(&listeners[0].chains[0]).stat_prefix, "one.default");
    assert!(findings.is_empty());
}

#[test]
fn a_tcp_server_without_a_rule_gets_no_listener_and_is_told() {
    let servers = [server(9000, Protocol::Tcp, &["*"])];
    let (listeners, findings) = edge_listeners(&edge(vec![gateway("n", "g", servers)], Vec::new()));
    assert!(listeners.is_empty());
    assert_eq!(findings, ["PF0312"]);
}

#[test]
fn terminated_tls_is_routed_by_tcp_rules() {
    let servers = [tls_server("tls", Protocol::Tls, ServerTlsMode::Simple, &["db.com"])];
    let rules = vec![VirtualService {
        tcp: vec![TcpRule {
            matches: Vec::new(),
            destinations: vec![weighted("db.x", 0)],
            span: line(1),
        }],
        ..of_gateway("one", &["db.com"])
    }];
    let (listeners, _) = edge_listeners(&edge(vec![gateway("n", "g", servers)], rules));
    assert_eq!(chains(&listeners[0]), ["sni=db.com tls outbound|443||db.x"]);
}

#[test]
fn certificates_in_files_are_named_as_the_proxy_sees_them() {
    let mut files = tls_server("one", Protocol::Https, ServerTlsMode::Mutual, &["a.com"]);
    if let Some(tls) = &mut files.tls {
        tls.certificates =
            CertificateSource::Files(vec![("/etc/tls.crt".into(), "/etc/tls.key".into())]);
        tls.ca = crate::model::CaSource::File("/etc/ca.crt".into());
        tls.subject_alt_names = vec!["client.x".into()];
        tls.min_version = Some(crate::model::TlsVersion::V1_2);
    }
    let (listeners, findings) = edge_listeners(&edge(vec![gateway("n", "g", [files])], Vec::new()));
    assert!(findings.is_empty());
    let tls = listeners[0].chains[0].tls.as_ref().expect("TLS ends here");
    let files = vec![("/etc/tls.crt".into(), "/etc/tls.key".into())];
    assert_eq!(tls.certificates, Certificates::Files(files));
    assert_eq!(tls.parameters.min_version, Some(crate::model::TlsVersion::V1_2));
    let clients = tls.clients.as_ref().expect("clients are checked");
    let authorities = Authorities::File { ca: "/etc/ca.crt".into(), crl: None };
    assert_eq!(clients.authorities, authorities);
    assert_eq!(clients.subject_alt_names, ["client.x"]);
}

#[test]
fn an_unprivileged_router_keeps_away_from_low_ports() {
    let snapshot = edge(vec![gateway("n", "g", [server(80, Protocol::Http, &["*"])])], Vec::new());
    let mut view = router();
    view.options.unprivileged = true;
    let (listeners, findings) = listeners_of(&snapshot, &view);
    assert!(listeners.is_empty());
    assert_eq!(findings, ["PF0408"]);
}
