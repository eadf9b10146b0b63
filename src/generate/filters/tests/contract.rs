//! A filter that exists only here brings a cluster, an extension configuration and findings, in
//! chains and on routes, and all of it is seen in what proxies get.

use super::*;
use crate::diag::{Code, Diagnostic};
use crate::generate::plan::cluster::Cluster;
use crate::generate::test_support::{
    Facts, decode, endpoint, gateway, line, proxy_at, rule_to, server, service, snapshot_with,
    virtual_service,
};
use crate::generate::{Engine, Generated};
use crate::model::{GatewayRef, HttpRule, MeshSettings, ObjectName, Service, VirtualService};
use crate::proxy::{Interception, Proxy, Role};
use crate::xds::TypeUrl;
use crate::xds::pb::{self, Message};
use std::net::{IpAddr, Ipv4Addr};

/// Asks somebody about each request, or about each connection.
struct Ask;

#[derive(Debug, PartialEq)]
struct Question(String);

impl Settings for Question {
    fn spell(&self) -> Any {
        pb::any(&pb::string_value(self.0.clone()))
    }
}

const NAME: &str = "test.ask";

/// The cluster of whom to ask.
fn whom(name: &str, because: &Because, mesh: &MeshSettings) -> Cluster {
    let address = (IpAddr::V4(Ipv4Addr::LOCALHOST), 9999);
    Cluster::at_addresses(name, because.clone(), [address], mesh)
}

fn ask(site: &Site<'_>, what: &str, extra: &mut Extra) -> Decided {
    let mesh = site.ground.mesh();
    extra.add_cluster(whom(&format!("whom-{what}-{:?}", site.side), site.because, mesh));
    let message = format!("asks about {what} in {} port {}", site.listener, site.port);
    extra.findings.push(Diagnostic::new(Code::NoEffect, message));
    Question(what.to_owned()).into()
}

impl HttpFilter for Ask {
    fn name(&self) -> &'static str {
        NAME
    }

    fn in_chain(&self, site: &Site<'_>, extra: &mut Extra) -> Option<Decided> {
        Some(ask(site, "requests", extra))
    }

    fn on_route(&self, site: &RouteSite<'_>, extra: &mut Extra) -> Option<Decided> {
        let RouteSite { document, rule, .. } = site;
        let because = Because::of("an HTTP rule", &document.origin, &rule.span);
        extra.add_cluster(whom(&format!("whom-route-{:?}", site.side), &because, site.mesh));
        let message = format!("asks about a route on port {}", site.port);
        extra.findings.push(document.origin.diagnostic_at(&rule.span, Code::NoEffect, message));
        Some(Question("route".to_owned()).into())
    }
}

impl NetworkFilter for Ask {
    fn name(&self) -> &'static str {
        "test.ask_network"
    }

    fn in_chain(&self, site: &Site<'_>, action: &Action, extra: &mut Extra) -> Option<Decided> {
        match action {
            Action::Tcp(_) if site.matches.destination_port == Some(90) => {
                let settings = Question("by name".to_owned());
                extra.extension_configs.push(ExtensionConfig {
                    name: "question".to_owned(),
                    filter: Filter::new(NAME, settings.into()),
                    because: site.because.clone(),
                });
                Some(ask(site, "connections", extra))
            }
            Action::Tcp(_) | Action::Http(_) => None,
        }
    }
}

const ASKING: Filters = Filters {
    http: &[&Ask, http::ORDER[http::ORDER.len() - 1]],
    network: &[
        &Ask,
        network::ORDER[network::ORDER.len() - 2],
        network::ORDER[network::ORDER.len() - 1],
    ],
};

/// What a proxy gets with the asking filter.
fn generated(facts: &Facts, proxy: &Proxy) -> Generated {
    (*Engine::with_filters(ASKING).generate(&facts.snapshot(), proxy)).clone()
}

fn has_cluster(generated: &Generated, name: &str) -> bool {
    generated.set.get(TypeUrl::Cluster, name).is_some()
}

fn says(generated: &Generated, code: Code, message: &str) -> bool {
    generated.diagnostics.iter().any(|d| d.code == code && d.message == message)
}

fn body<M: Message + Default>(generated: &Generated, type_url: TypeUrl, name: &str) -> M {
    let resource = generated.set.get(type_url, name).expect("it is there");
    M::decode(resource.body.clone()).expect("it is what its type says")
}

/// The settings of the asking filter on the first route of a route configuration.
fn question_on_route(generated: &Generated, table: &str) -> String {
    let table: pb::route::RouteConfiguration = body(generated, TypeUrl::Route, table);
    let routes = &table.virtual_hosts[0].routes;
    let question: pb::StringValue = decode(&routes[0].typed_per_filter_config[NAME]);
    question.value
}

fn named_filters(filters: &[pb::hcm::HttpFilter]) -> Vec<&str> {
    filters.iter().map(|filter| filter.name.as_str()).collect()
}

fn manager_of(chain: &pb::listener::FilterChain) -> pb::hcm::HttpConnectionManager {
    let last = chain.filters.last().expect("a filter");
    match &last.config_type {
        Some(pb::listener::filter::ConfigType::TypedConfig(any)) => decode(any),
        other => panic!("a packed configuration was expected: {other:?}"),
    }
}

fn asked_rule() -> HttpRule {
    HttpRule { span: line(7), ..rule_to("a.x") }
}

fn http_service() -> Service {
    service("a.x", &[(80, Protocol::Http)])
}

#[test]
fn a_filter_brings_its_cluster_and_finding_on_an_egress_chain_and_on_a_route() {
    let facts = snapshot_with(|s| {
        s.services = vec![http_service()];
        s.virtual_services = vec![virtual_service("v", &["a.x"], vec![asked_rule()])];
    });
    let made = generated(&facts, &proxy_at("10.0.0.9"));
    assert!(has_cluster(&made, "whom-requests-Egress"));
    assert!(says(&made, Code::NoEffect, "asks about requests in 0.0.0.0_80 port 80"));
    let listener: pb::listener::Listener = body(&made, TypeUrl::Listener, "0.0.0.0_80");
    let manager = manager_of(&listener.filter_chains[0]);
    assert_eq!(named_filters(&manager.http_filters), [NAME, "envoy.filters.http.router"]);

    assert_eq!(question_on_route(&made, "80"), "route");
    assert!(has_cluster(&made, "whom-route-Egress"));
    let told = made.diagnostics.iter().find(|d| d.message == "asks about a route on port 80");
    let span = told.and_then(|d| d.span.as_ref()).expect("it has a place");
    assert_eq!(span.start.line, 7);
}

#[test]
fn a_filter_brings_its_cluster_and_finding_on_the_edge() {
    let rule = VirtualService {
        gateways: vec![GatewayRef::whole(ObjectName::new("default", "g"))],
        ..virtual_service("v", &["a.x"], vec![asked_rule()])
    };
    let facts = snapshot_with(|s| {
        s.services = vec![http_service()];
        s.gateways = vec![gateway("default", "g", [server(8080, Protocol::Http, &["*"])])];
        s.virtual_services = vec![rule];
    });
    let router =
        Proxy { role: Role::Router, interception: Interception::None, ..proxy_at("10.0.0.9") };
    let made = generated(&facts, &router);
    assert!(has_cluster(&made, "whom-requests-Edge"));
    assert!(says(&made, Code::NoEffect, "asks about requests in 0.0.0.0_8080 port 8080"));
    assert_eq!(question_on_route(&made, "http.8080"), "route");
    assert!(has_cluster(&made, "whom-route-Edge"));
}

#[test]
fn a_filter_of_connections_brings_what_it_needs_to_the_chain_of_a_workload() {
    let mut own = service("own.default", &[(90, Protocol::Tcp)]);
    own.endpoints = [endpoint("10.0.0.9", 90)].into();
    own.ports[0].span = line(12);
    let facts = snapshot_with(|s| s.services = vec![own]);
    let made = generated(&facts, &proxy_at("10.0.0.9"));
    assert!(has_cluster(&made, "whom-connections-Inbound"));
    assert!(says(&made, Code::NoEffect, "asks about connections in virtualInbound port 90"));
    let listener: pb::listener::Listener = body(&made, TypeUrl::Listener, "virtualInbound");
    let chain = listener.filter_chains.iter().find(|c| c.name == "0.0.0.0_90").expect("a chain");
    let names: Vec<&str> = chain.filters.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["test.ask_network", "envoy.filters.network.tcp_proxy"]);

    // What cannot be served yet is told at the document that asks for it.
    let told = made.diagnostics.iter().find(|d| d.code == Code::NotSupported);
    let told = told.expect("the extension configuration is told");
    assert!(told.message.contains("'question'"), "{}", told.message);
    assert_eq!(told.span.as_ref().map(|span| span.start.line), Some(12));
}

#[test]
fn what_a_filter_brings_is_not_there_without_it() {
    let facts = snapshot_with(|s| s.services = vec![http_service()]);
    let made = Engine::default().generate(&facts.snapshot(), &proxy_at("10.0.0.9"));
    assert!(!has_cluster(&made, "whom-requests-Egress"));
    assert!(made.diagnostics.is_empty(), "{:?}", made.diagnostics);
}
