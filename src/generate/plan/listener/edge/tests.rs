//! Who gets a port, told on small Gateways.

use super::merge::*;
use crate::diag::Diagnostic;
use crate::generate::test_support::{Eyes, gateway, router, server, server_tls, snapshot_with};
use crate::model::{Gateway, Protocol, Server, ServerTlsMode};

/// Listeners as `bind:port: kind gateway, …`, then findings as `code line`.
fn merged(gateways: Vec<Gateway>) -> (Vec<String>, Vec<String>) {
    let snapshot = snapshot_with(|s| s.gateways = gateways);
    let view = router();
    let eyes = Eyes::new(&snapshot, &view);
    let viewer = eyes.viewer();
    let merged = merge(&eyes.scope(&viewer));
    let listener = |l: &GatewayListener<'_>| {
        let servers: Vec<String> = l
            .servers
            .iter()
            .map(|s| format!("{:?} {}", s.kind, s.of.gateway.origin.name))
            .collect();
        format!("{}:{}: {}", l.bind, l.port, servers.join(", "))
    };
    let finding = |d: &Diagnostic| {
        format!("{} {}", d.code, d.span.as_ref().map_or(0, |span| span.start.line))
    };
    (merged.listeners.iter().map(listener).collect(), merged.findings.iter().map(finding).collect())
}

fn https(port_name: &str, hosts: &[&str]) -> Server {
    Server {
        port_name: port_name.into(),
        tls: Some(server_tls(ServerTlsMode::Simple)),
        ..server(443, Protocol::Https, hosts)
    }
}

#[test]
fn http_servers_share_a_listener_and_a_route() {
    let servers = || [server(80, Protocol::Http, &["a.com"])];
    let grpc = server(80, Protocol::Grpc, &["b.com"]);
    let (listeners, findings) =
        merged(vec![gateway("n", "a", servers()), gateway("n", "b", [grpc])]);
    assert_eq!(listeners, ["0.0.0.0:80: Http n/a, Http n/b"]);
    assert!(findings.is_empty());
}

#[test]
fn the_first_of_tcp_and_http_takes_the_port() {
    let tcp = || gateway("n", "a", [server(80, Protocol::Tcp, &["*"])]);
    let http = || gateway("n", "b", [server(80, Protocol::Http, &["*"])]);
    let (listeners, findings) = merged(vec![tcp(), http()]);
    assert_eq!(listeners, ["0.0.0.0:80: Tcp n/a"]);
    assert_eq!(findings, ["PF0401 80"]);
    let (listeners, findings) = merged(vec![http(), tcp()]);
    assert_eq!(listeners, ["0.0.0.0:80: Http n/b"]);
    assert_eq!(findings, ["PF0401 80"]);
}

#[test]
fn another_address_is_another_listener() {
    let bound = Server { bind: Some("10.0.0.1".into()), ..server(80, Protocol::Http, &["*"]) };
    let (listeners, findings) =
        merged(vec![gateway("n", "a", [server(80, Protocol::Tcp, &["*"]), bound])]);
    assert_eq!(listeners, ["0.0.0.0:80: Tcp n/a", "10.0.0.1:80: Http n/a"]);
    assert!(findings.is_empty());
}

#[test]
fn one_sni_host_is_served_once_whatever_its_namespace_and_case() {
    let first = gateway("n", "a", [https("https", &["ns-1/A.com"])]);
    let second = gateway("n", "b", [https("https", &["ns-2/a.com", "b.com"])]);
    let (listeners, findings) = merged(vec![first, second]);
    assert_eq!(listeners, ["0.0.0.0:443: Https n/a"]);
    assert_eq!(findings, ["PF0402 443"]);
}

#[test]
fn https_servers_of_one_gateway_need_port_names_of_their_own() {
    let (listeners, findings) =
        merged(vec![gateway("n", "a", [https("https", &["a.com"]), https("https", &["b.com"])])]);
    assert_eq!(listeners, ["0.0.0.0:443: Https n/a"]);
    assert_eq!(findings, ["PF0401 443"]);
}

#[test]
fn plain_text_after_tls_joins_unless_tls_takes_every_name() {
    let plain = || gateway("n", "b", [server(443, Protocol::Http, &["*"])]);
    let (listeners, findings) =
        merged(vec![gateway("n", "a", [https("https", &["a.com"])]), plain()]);
    assert_eq!(listeners, ["0.0.0.0:443: Https n/a, Http n/b"]);
    assert!(findings.is_empty());
    let (listeners, findings) = merged(vec![gateway("n", "a", [https("https", &["*"])]), plain()]);
    assert_eq!(listeners, ["0.0.0.0:443: Https n/a"]);
    assert_eq!(findings, ["PF0401 443"]);
}

#[test]
fn routes_are_named_by_the_resolved_port_and_servers_keep_the_declared_one() {
    let gateways =
        vec![gateway("n", "a", [server(80, Protocol::Http, &["*"]), https("s", &["*"])])];
    let snapshot = snapshot_with(|s| s.gateways = gateways);
    let mut view = router();
    view.gateway_ports.insert(80, 8080);
    let eyes = Eyes::new(&snapshot, &view);
    let viewer = eyes.viewer();
    let merged = merge(&eyes.scope(&viewer));
    let names: Vec<&str> = merged.routes.keys().map(String::as_str).collect();
    assert_eq!(names, ["http.8080", "https.443.s.a.n"]);
    assert_eq!(merged.routes["http.8080"][0].server.port, 80);
    assert_eq!(merged.listeners[0].port, 8080);
}
