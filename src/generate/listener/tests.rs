//! Listeners as they are sent, told on small documents.

use super::*;
use crate::diag::Diagnostic;
use crate::generate::outbound::plan;
use crate::generate::targets::InboundSite;
use crate::generate::test_support::{
    Eyes, Facts, Parts, decode, endpoint, gateway, line, origin, proxy_at, router, secret, server,
    server_tls, service, sidecar, snapshot_with, virtual_service, weighted, workload,
};
use crate::model::{
    AccessLog, AccessLogFormat, CaptureMode, CertificateSource, Gateway, Hostname, IngressListener,
    L4Match, ListenerPort, OutboundMode, Protocol, Selector, Server, ServerTlsMode, Sidecar,
    TcpRule, TlsMatch, TlsRule, VirtualService,
};
use crate::proxy::{Interception, Proxy, Role};
use crate::xds::pb::core;
use crate::xds::pb::hcm::http_connection_manager as manager;
use crate::xds::pb::listener::Listener;
use std::sync::Arc;

fn packed(filter: &listener::Filter) -> &pb::Any {
    match &filter.config_type {
        Some(listener::filter::ConfigType::TypedConfig(any)) => any,
        other => panic!("a packed configuration was expected: {other:?}"),
    }
}

fn hcm_of(chain: &listener::FilterChain) -> pb::hcm::HttpConnectionManager {
    decode(packed(chain.filters.last().expect("a filter")))
}

fn tcp_of(chain: &listener::FilterChain) -> pb::tcp_proxy::TcpProxy {
    decode(packed(chain.filters.last().expect("a filter")))
}

fn tls_of(chain: &listener::FilterChain) -> pb::tls::DownstreamTlsContext {
    let socket = chain.transport_socket.as_ref().expect("a transport socket");
    match &socket.config_type {
        Some(core::transport_socket::ConfigType::TypedConfig(any)) => decode(any),
        None => panic!("a packed configuration was expected"),
    }
}

/// `sni … port … http? -> what the last filter does`.
fn chain_text(chain: &listener::FilterChain) -> String {
    let mut text = String::new();
    if !chain.name.is_empty() {
        text.push_str(&format!("[{}] ", chain.name));
    }
    if let Some(m) = &chain.filter_chain_match {
        if let Some(port) = &m.destination_port {
            text.push_str(&format!("port={} ", port.value));
        }
        if !m.server_names.is_empty() {
            text.push_str(&format!("sni={} ", m.server_names.join(",")));
        }
        if !m.transport_protocol.is_empty() {
            text.push_str(&format!("{} ", m.transport_protocol));
        }
        if !m.application_protocols.is_empty() {
            text.push_str("http? ");
        }
    }
    if chain.transport_socket.is_some() {
        text.push_str("tls ");
    }
    let last = chain.filters.last().expect("a filter");
    if last.name.ends_with("tcp_proxy") {
        use pb::tcp_proxy::tcp_proxy::ClusterSpecifier;
        match tcp_of(chain).cluster_specifier {
            Some(ClusterSpecifier::Cluster(name)) => text.push_str(&name),
            Some(ClusterSpecifier::WeightedClusters(list)) => {
                let parts: Vec<String> =
                    list.clusters.iter().map(|c| format!("{}={}", c.name, c.weight)).collect();
                text.push_str(&parts.join("+"));
            }
            None => text.push_str("nowhere"),
        }
    } else {
        match hcm_of(chain).route_specifier {
            Some(manager::RouteSpecifier::Rds(rds)) => {
                text.push_str(&format!("rds {}", rds.route_config_name));
            }
            Some(manager::RouteSpecifier::RouteConfig(routes)) => {
                text.push_str(&format!("routes {}", routes.name));
            }
            other => panic!("routes were expected: {other:?}"),
        }
    }
    text
}

fn chains(listener: &Listener) -> Vec<String> {
    let default = listener.default_filter_chain.iter().map(|c| format!("else {}", chain_text(c)));
    listener.filter_chains.iter().map(chain_text).chain(default).collect()
}

fn filters(listener: &Listener) -> Vec<&str> {
    let short = |f: &'_ str| f.len() - f.rsplit('.').next().map_or(0, str::len);
    listener.listener_filters.iter().map(|f| &f.name[short(&f.name)..]).collect()
}

fn names(listeners: &[Listener]) -> Vec<&str> {
    listeners.iter().map(|l| l.name.as_str()).collect()
}

fn codes(findings: &[Diagnostic]) -> Vec<String> {
    findings.iter().map(|d| d.code.to_string()).collect()
}

fn named<'l>(listeners: &'l [Listener], name: &str) -> &'l Listener {
    listeners.iter().find(|l| l.name == name).expect("the listener is there")
}

/// A snapshot of these Gateways and rules with the credential `n/cert`.
fn edge(gateways: Vec<Gateway>, rules: Vec<VirtualService>) -> Facts {
    snapshot_with(|s| {
        s.gateways = gateways;
        s.virtual_services = rules;
        s.secrets = [secret("n", "cert")].into();
    })
}

fn edge_listeners(snapshot: &Facts) -> (Vec<Listener>, Vec<String>) {
    let view = router();
    let (listeners, findings) = Eyes::new(snapshot, &view).look(gateway_listeners);
    (listeners, codes(&findings))
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
        gateways: vec![crate::model::GatewayRef::Gateway(crate::model::ObjectName::new("n", "g"))],
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
    let manager = hcm_of(&listeners[0].filter_chains[0]);
    assert_eq!(manager.stat_prefix, "outbound_0.0.0.0_80;");
    assert_eq!(manager.use_remote_address, Some(pb::bool_value(true)));
    assert_eq!(manager.server_name, "istio-envoy");
    assert_eq!(manager.normalize_path, Some(pb::bool_value(true)));
    assert!(manager.http_protocol_options.is_some());
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
    let simple = tls_of(&listeners[0].filter_chains[0]);
    assert_eq!(simple.require_client_certificate, Some(pb::bool_value(false)));
    let common = simple.common_tls_context.expect("a context");
    assert_eq!(common.alpn_protocols, ["h2", "http/1.1"]);
    assert_eq!(common.tls_certificate_sds_secret_configs[0].name, "kubernetes-gateway://n/cert");
    assert!(common.validation_context_type.is_none());
    let mutual = tls_of(&listeners[0].filter_chains[1]);
    assert_eq!(mutual.require_client_certificate, Some(pb::bool_value(true)));
    let common = mutual.common_tls_context.expect("a context");
    match common.validation_context_type {
        Some(pb::tls::common_tls_context::ValidationContextType::CombinedValidationContext(c)) => {
            let ca = c.validation_context_sds_secret_config.expect("a CA");
            assert_eq!(ca.name, "kubernetes-gateway://n/cert-cacert");
        }
        other => panic!("a combined context was expected: {other:?}"),
    }
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
    let view = router();
    let secrets = Eyes::new(&snapshot, &view).look(gateway_secrets);
    let names: Vec<&str> = secrets.iter().map(|s| s.name.as_str()).collect();
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
    assert_eq!(tcp_of(&listeners[0].filter_chains[0]).stat_prefix, "one.default");
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
    let common = tls_of(&listeners[0].filter_chains[0]).common_tls_context.expect("a context");
    assert!(common.tls_certificate_sds_secret_configs.is_empty());
    assert_eq!(common.tls_certificates.len(), 1);
    assert_eq!(common.tls_params.expect("parameters").tls_minimum_protocol_version, 3);
    match common.validation_context_type {
        Some(pb::tls::common_tls_context::ValidationContextType::ValidationContext(context)) => {
            assert!(context.trusted_ca.is_some());
            assert_eq!(context.match_typed_subject_alt_names.len(), 1);
        }
        other => panic!("a plain context was expected: {other:?}"),
    }
}

#[test]
fn an_unprivileged_router_keeps_away_from_low_ports() {
    let snapshot = edge(vec![gateway("n", "g", [server(80, Protocol::Http, &["*"])])], Vec::new());
    let mut view = router();
    view.options.unprivileged = true;
    let (listeners, findings) = Eyes::new(&snapshot, &view).look(gateway_listeners);
    assert!(listeners.is_empty());
    assert_eq!(codes(&findings), ["PF0408"]);
}

fn outbound(snapshot: &Facts, view: &Parts) -> Vec<Listener> {
    Eyes::new(snapshot, view).look(|scope| outbound_listeners(scope, &plan(scope)))
}

#[test]
fn captured_traffic_falls_through_to_where_unknown_traffic_goes() {
    let mut snapshot = snapshot_with(|s| {
        s.services = vec![service("a.x", &[(80, Protocol::Http), (443, Protocol::Tls)])];
    });
    let listeners = outbound(&snapshot, &sidecar());
    assert_eq!(names(&listeners), ["virtualOutbound", "0.0.0.0_80", "0.0.0.0_443"]);
    assert_eq!(
        chains(&listeners[0]),
        [
            "[virtualOutbound-blackhole] port=15001 BlackHoleCluster",
            "[virtualOutbound-catchall-tcp] PassthroughCluster"
        ]
    );
    assert_eq!(listeners[0].use_original_dst, Some(pb::bool_value(true)));
    let http = &listeners[1];
    assert_eq!(
        chains(http),
        ["raw_buffer http? rds 80", "else [PassthroughFilterChain] PassthroughCluster"]
    );
    assert_eq!(filters(http), ["http_inspector"]);
    assert_eq!(http.bind_to_port, Some(pb::bool_value(false)));
    assert!(http.continue_on_listener_filters_timeout);
    assert_eq!(filters(&listeners[2]), ["tls_inspector"]);
    snapshot.mesh.outbound_traffic_policy.mode = OutboundMode::RegistryOnly;
    let listeners = outbound(&snapshot, &sidecar());
    assert_eq!(chains(&listeners[1])[1], "else [PassthroughFilterChain] BlackHoleCluster");
}

#[test]
fn a_match_all_chain_is_the_default_unless_it_is_alone() {
    let services = vec![
        service("t.x", &[(9000, Protocol::Tcp), (9001, Protocol::Tcp)]),
        service("h.x", &[(9001, Protocol::Http)]),
    ];
    let snapshot = snapshot_with(|s| s.services = services);
    let listeners = outbound(&snapshot, &sidecar());
    assert_eq!(chains(named(&listeners, "0.0.0.0_9000")), ["outbound|9000||t.x"]);
    assert_eq!(
        chains(named(&listeners, "0.0.0.0_9001")),
        ["raw_buffer http? rds 9001", "else outbound|9001||t.x"]
    );
}

#[test]
fn without_interception_listeners_bind_and_nothing_falls_through() {
    let services = vec![service("a.x", &[(8080, Protocol::Http), (8443, Protocol::Tls)])];
    let snapshot = snapshot_with(|s| s.services = services);
    let view = Parts { interception: Interception::None, ..sidecar() };
    let listeners = outbound(&snapshot, &view);
    assert_eq!(names(&listeners), ["127.0.0.1_8080", "127.0.0.1_8443"]);
    assert_eq!(chains(&listeners[0]), ["rds 8080"]);
    assert_eq!(chains(&listeners[1]), ["sni=a.x outbound|8443||a.x"]);
    assert_eq!(listeners[0].bind_to_port, None);
    assert!(filters(&listeners[0]).is_empty());
}

fn inbound(snapshot: &Facts, proxy: &Proxy) -> (Vec<Listener>, Vec<String>) {
    let (workload, view) = workload(snapshot, proxy);
    let site = InboundSite { workload: &workload, view: &Viewer::new(&view) };
    let (listeners, findings) = inbound_listeners(&site);
    (listeners, codes(&findings))
}

fn captured() -> Proxy {
    Proxy { role: Role::Sidecar, interception: Interception::Redirect, ..proxy_at("10.0.0.1") }
}

#[test]
fn a_workload_is_reached_on_the_ports_of_its_services() {
    let mut a =
        service("a.default", &[(80, Protocol::Grpc), (81, Protocol::Tcp), (82, Protocol::Auto)]);
    a.endpoints =
        [endpoint("10.0.0.1", 80), endpoint("10.0.0.1", 81), endpoint("10.0.0.1", 82)].into();
    Arc::make_mut(&mut a.endpoints)[0].target_port = 8080;
    let mut b = service("b.default", &[(90, Protocol::Tcp)]);
    b.endpoints = [endpoint("10.0.0.1", 90)].into();
    Arc::make_mut(&mut b.endpoints)[0].target_port = 8080;
    let snapshot = snapshot_with(|s| s.services = vec![a, b]);
    let (listeners, findings) = inbound(&snapshot, &captured());
    assert_eq!(names(&listeners), ["virtualInbound"]);
    assert_eq!(
        chains(&listeners[0]),
        [
            "[virtualInbound-blackhole] port=15006 BlackHoleCluster",
            "[virtualInbound-catchall-http] raw_buffer http? routes InboundPassthroughCluster",
            "[virtualInbound] raw_buffer InboundPassthroughCluster",
            "[0.0.0.0_81] port=81 raw_buffer inbound|81||",
            "[0.0.0.0_82] port=82 raw_buffer http? routes inbound|82||",
            "[0.0.0.0_82] port=82 raw_buffer inbound|82||",
            "[0.0.0.0_8080] port=8080 raw_buffer routes inbound|8080||",
        ]
    );
    assert_eq!(filters(&listeners[0]), ["original_dst", "http_inspector"]);
    assert!(listeners[0].default_filter_chain.is_none());
    assert_eq!(findings, ["PF0403"]);
    let manager = hcm_of(&listeners[0].filter_chains[6]);
    assert_eq!(manager.stat_prefix, "inbound_0.0.0.0_8080;");
    assert!(manager.http2_protocol_options.is_some());
    let Some(manager::RouteSpecifier::RouteConfig(routes)) = manager.route_specifier else {
        panic!("inline routes were expected")
    };
    assert_eq!(routes.virtual_hosts[0].name, "inbound|http|80");
    assert_eq!(
        routes.virtual_hosts[0].routes[0].decorator.as_ref().map(|d| d.operation.as_str()),
        Some("a.default:80/*")
    );
}

#[test]
fn without_interception_only_ingress_listeners_exist_and_they_bind() {
    let ingress = |number, protocol, bind: Option<&str>, capture_mode| IngressListener {
        port: ListenerPort { number, protocol, name: "p".into() },
        bind: bind.map(Into::into),
        capture_mode,
        default_endpoint: None,
        tls: None,
        connection_pool: None,
        span: line(5),
    };
    let mut a = service("a.default", &[(80, Protocol::Http), (8080, Protocol::Http)]);
    a.endpoints = [endpoint("10.0.0.1", 80)].into();
    let mut snapshot = snapshot_with(|s| s.services = vec![a]);
    let proxy = Proxy { interception: Interception::None, ..captured() };
    assert!(inbound(&snapshot, &proxy).0.is_empty());
    snapshot.sidecars = vec![Sidecar {
        origin: origin("Sidecar", "default", "s"),
        selector: None,
        egress: Vec::new(),
        ingress: vec![
            ingress(9080, Protocol::Http, None, CaptureMode::Default),
            ingress(8080, Protocol::Http, Some("127.0.0.1"), CaptureMode::Default),
            ingress(9081, Protocol::Tcp, None, CaptureMode::Iptables),
        ],
        outbound_traffic_policy: None,
        inbound_connection_pool: None,
    }];
    let (listeners, findings) = inbound(&snapshot, &proxy);
    assert_eq!(names(&listeners), ["10.0.0.1_9080"]);
    assert_eq!(
        chains(&listeners[0]),
        ["[10.0.0.1_9080] port=9080 raw_buffer routes inbound|9080||"]
    );
    assert_eq!(findings, ["PF0403", "PF0207"]);
}

#[test]
fn the_access_log_is_on_chains_and_on_listeners_that_may_refuse() {
    let mut snapshot =
        snapshot_with(|s| s.services = vec![service("a.x", &[(80, Protocol::Http)])]);
    snapshot.mesh.access_log =
        Some(AccessLog { path: "/dev/stdout".into(), format: AccessLogFormat::Json(None) });
    let listeners = outbound(&snapshot, &sidecar());
    assert_eq!(listeners[0].access_log.len(), 1);
    assert_eq!(tcp_of(&listeners[0].filter_chains[0]).access_log.len(), 0);
    assert_eq!(tcp_of(&listeners[0].filter_chains[1]).access_log.len(), 1);
    assert!(listeners[1].access_log.is_empty());
    assert_eq!(hcm_of(&listeners[1].filter_chains[0]).access_log.len(), 1);
}

#[test]
fn predicates_of_one_port_stand_alone() {
    use listener::listener_filter_chain_match_predicate::Rule;
    assert!(destination_ports(&BTreeSet::new()).is_none());
    let one = destination_ports(&BTreeSet::from([80])).and_then(|p| p.rule);
    assert!(matches!(one, Some(Rule::DestinationPortRange(r)) if (r.start, r.end) == (80, 81)));
    let two = destination_ports(&BTreeSet::from([80, 90])).and_then(|p| p.rule);
    assert!(matches!(two, Some(Rule::OrMatch(set)) if set.rules.len() == 2));
}
