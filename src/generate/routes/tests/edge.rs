//! Istio's sharp cases of gateway routes, told on small values.

use super::proto;
use crate::generate::test_support::*;
use crate::model::Protocol::{Grpc, Http, Https};
use crate::model::{
    Gateway, GatewayRef, HttpMatch, HttpRule, ListenerRef, ObjectName, PathMatch, Protocol,
    RuleOrder, Server, ServerTlsMode, Service, VirtualService,
};
use crate::xds::TypeUrl;
use crate::xds::pb::Message;

/// A VirtualService of namespace `namespace` that is bound to `n/g`.
fn bound(namespace: &str, name: &str, hosts: &[&str], http: Vec<HttpRule>) -> VirtualService {
    let gateway = ObjectName::new("n", "g");
    VirtualService {
        origin: origin("VirtualService", namespace, name),
        gateways: vec![GatewayRef::whole(gateway)],
        ..virtual_service(name, hosts, http)
    }
}

fn snapshot_of(
    gateways: Vec<Gateway>,
    rules: Vec<VirtualService>,
    services: Vec<Service>,
) -> Facts {
    snapshot_with(|s| {
        s.gateways = gateways;
        s.virtual_services = rules;
        s.services = services;
    })
}

fn configurations(snapshot: &Facts, view: &Parts) -> Vec<proto::RouteConfiguration> {
    shared(snapshot, view)
        .set
        .of_type(TypeUrl::Route)
        .map(|r| proto::RouteConfiguration::decode(&*r.body).unwrap())
        .collect()
}

/// Each virtual host as `name [domains] tls?: path -> cluster, …`.
fn described(gateways: Vec<Gateway>, rules: Vec<VirtualService>) -> Vec<String> {
    let snapshot = snapshot_of(gateways, rules, Vec::new());
    let mut configurations = configurations(&snapshot, &router());
    assert_eq!(configurations.len(), 1);
    describe(configurations.remove(0))
}

fn describe(configuration: proto::RouteConfiguration) -> Vec<String> {
    configuration
        .virtual_hosts
        .iter()
        .map(|host| {
            let tls = if host.require_tls == 2 { " tls" } else { "" };
            let routes: Vec<String> = host.routes.iter().map(describe_route).collect();
            format!("{} {:?}{tls}: {}", host.name, host.domains, routes.join(", "))
        })
        .collect()
}

fn describe_route(route: &proto::Route) -> String {
    use proto::route_action::ClusterSpecifier;
    use proto::route_match::PathSpecifier;
    let path = match route.r#match.as_ref().and_then(|m| m.path_specifier.clone()) {
        Some(PathSpecifier::Path(path)) => path,
        Some(PathSpecifier::Prefix(prefix)) => format!("{prefix}*"),
        other => panic!("{other:?}"),
    };
    match &route.action {
        Some(proto::route::Action::Route(action)) => match &action.cluster_specifier {
            Some(ClusterSpecifier::Cluster(name)) => format!("{path} -> {name}"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn on(paths: &[&str], to: &str) -> HttpRule {
    HttpRule { matches: paths.iter().map(|p| path(p)).collect(), ..rule_to(to) }
}

fn http(hosts: &[&str]) -> Server {
    server(80, Http, hosts)
}

fn redirecting(hosts: &[&str]) -> Server {
    let mut tls = server_tls(ServerTlsMode::Passthrough);
    tls.https_redirect = true;
    Server { tls: Some(tls), ..http(hosts) }
}

#[test]
fn a_server_without_rules_answers_404_to_everything() {
    assert_eq!(
        described(vec![gateway("n", "g", [http(&["*"])])], Vec::new()),
        [r#"blackhole:80 ["*"]: "#]
    );
}

#[test]
fn the_more_specific_of_server_and_rule_host_is_served() {
    let server = |host: &str| vec![gateway("n", "g", [http(&[host])])];
    let rules = |host: &str| vec![bound("n", "v", &[host], vec![on(&["/p"], "b")])];
    let expected = [r#"foo.bar:80 ["foo.bar"]: /p -> outbound|80||b"#];
    assert_eq!(described(server("foo.bar"), rules("*")), expected);
    assert_eq!(described(server("*.bar"), rules("foo.bar")), expected);
    assert_eq!(described(server("FOO.bar"), rules("foo.BAR")), expected);
    assert_eq!(described(server("foo.bar"), rules("bar.foo")), [r#"blackhole:80 ["*"]: "#]);
}

#[test]
fn a_redirect_to_https_needs_no_rules_and_sticks_to_the_host() {
    let first = gateway("n", "g", [redirecting(&["n/a.com"])]);
    assert_eq!(described(vec![first.clone()], Vec::new()), [r#"a.com:80 ["a.com"] tls: "#]);
    let second = Gateway {
        origin: origin("Gateway", "n", "h"),
        ..gateway("n", "h", [http(&["a.com", "b.com"])])
    };
    let rules = VirtualService {
        gateways: vec![GatewayRef::whole(ObjectName::new("n", "h"))],
        ..bound("n", "v", &["*"], vec![on(&["/p"], "b")])
    };
    assert_eq!(
        described(vec![first, second], vec![rules]),
        [
            r#"a.com:80 ["a.com"] tls: /p -> outbound|80||b"#,
            r#"b.com:80 ["b.com"]: /p -> outbound|80||b"#
        ]
    );
}

#[test]
fn an_https_server_has_routes_of_its_own_and_its_declared_port() {
    let server = Server {
        tls: Some(server_tls(ServerTlsMode::Simple)),
        ..server(443, Https, &["*.default"])
    };
    let rules = bound("default", "v", &["a.default"], vec![rule_to("b.default")]);
    let mut snapshot = snapshot_of(vec![gateway("n", "g", [server])], vec![rules], Vec::new());
    // Without its certificate the server has no listener, and so no routes.
    assert!(configurations(&snapshot, &router()).is_empty());
    snapshot.secrets = [secret("n", "cert")].into();
    let mut made = configurations(&snapshot, &router());
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].name, "https.443.https.g.n");
    assert_eq!(
        describe(made.remove(0)),
        [r#"a.default:443 ["a.default"]: /* -> outbound|443||b.default"#]
    );
}

#[test]
fn a_namespace_on_a_server_host_lets_in_that_namespace_only() {
    let gateways = vec![gateway("n", "g", [http(&["ns-1/*.example.com", "ns-2/*.example.org"])])];
    let rules = vec![
        bound("ns-1", "one", &["a.example.com", "a.example.org"], vec![rule_to("one")]),
        bound("ns-2", "two", &["*"], vec![rule_to("two")]),
    ];
    assert_eq!(
        described(gateways, rules),
        [
            r#"*.example.org:80 ["*.example.org"]: /* -> outbound|80||two"#,
            r#"a.example.com:80 ["a.example.com"]: /* -> outbound|80||one"#
        ]
    );
}

#[test]
fn rules_of_several_documents_follow_each_other_and_hosts_stay_apart() {
    let gateways = vec![gateway("n", "g", [http(&["*"])])];
    let rules = vec![
        bound("n", "both", &["foo", "bar"], vec![on(&["/1", "/2"], "x")]),
        bound("n", "foo", &["foo"], vec![on(&["/foo"], "x")]),
        bound("n", "more", &["bar"], vec![on(&["/bar"], "x")]),
    ];
    assert_eq!(
        described(gateways, rules),
        [
            r#"bar:80 ["bar"]: /1 -> outbound|80||x, /2 -> outbound|80||x, /bar -> outbound|80||x"#,
            r#"foo:80 ["foo"]: /1 -> outbound|80||x, /2 -> outbound|80||x, /foo -> outbound|80||x"#
        ]
    );
}

#[test]
fn hosts_of_one_document_share_a_virtual_host() {
    let gateways = vec![gateway("n", "g", [http(&["*"])])];
    let rules = vec![bound("n", "v", &["a.com", "long.com", "*.com"], vec![rule_to("x")])];
    assert_eq!(
        described(gateways, rules),
        [r#"long.com:80 ["long.com", "a.com", "*.com"]: /* -> outbound|80||x"#]
    );
}

#[test]
fn an_old_catch_all_does_not_hide_newer_rules() {
    let gateways = vec![gateway("n", "g", [http(&["*"])])];
    let rules = vec![
        bound("n", "old", &["a"], vec![rule_to("old")]),
        bound("n", "new", &["a"], vec![on(&["/x"], "new"), rule_to("unreachable")]),
    ];
    assert_eq!(
        described(gateways, rules),
        [
            r#"a:80 ["a"]: /x -> outbound|80||new, /* -> outbound|80||old, /* -> outbound|80||unreachable"#
        ]
    );
}

#[test]
fn the_declared_port_counts_and_the_resolved_one_names() {
    let gateways = vec![gateway("n", "g", [http(&["*"])])];
    let port = |port, p| HttpMatch { port: Some(port), ..path(p) };
    let rule = HttpRule { matches: vec![port(80, "/80"), port(8080, "/8080")], ..rule_to("b") };
    let snapshot =
        snapshot_of(gateways, vec![bound("n", "v", &["example.com"], vec![rule])], Vec::new());
    let mut view = router();
    view.gateway_ports.insert(80, 8080);
    let mut made = configurations(&snapshot, &view);
    assert_eq!(made[0].name, "http.8080");
    assert_eq!(
        describe(made.remove(0)),
        [r#"example.com:80 ["example.com"]: /80 -> outbound|80||b"#]
    );
}

#[test]
fn a_match_of_another_gateway_does_not_apply() {
    let gateways = vec![gateway("n", "g", [http(&["*"])])];
    let of = |gateway| HttpMatch { gateways: vec![gateway], ..path("/x") };
    let rule = HttpRule {
        matches: vec![of(GatewayRef::Mesh), of(GatewayRef::whole(ObjectName::new("n", "g")))],
        ..rule_to("b")
    };
    let made = described(gateways, vec![bound("n", "v", &["a"], vec![rule])]);
    assert_eq!(made, [r#"a:80 ["a"]: /x -> outbound|80||b"#]);
}

#[test]
fn the_settings_that_every_route_configuration_has() {
    let servers = [http(&["a.com"]), server(80, Grpc, &["b.com"])];
    let snapshot = snapshot_of(
        vec![gateway("n", "g", servers)],
        vec![bound("n", "v", &["a.com"], vec![rule_to("b")])],
        vec![service("b", &[(8080, Protocol::Http)])],
    );
    let made = configurations(&snapshot, &router());
    assert_eq!(made.len(), 1);
    let configuration = &made[0];
    assert!(configuration.ignore_port_in_host_matching);
    assert!(!configuration.validate_clusters.unwrap().value);
    assert_eq!(configuration.max_direct_response_body_size_bytes.unwrap().value, 1_048_576);
    assert!(configuration.virtual_hosts[0].include_request_attempt_count);
    // The only port of the service is meant when the rule names none.
    assert_eq!(describe_route(&configuration.virtual_hosts[0].routes[0]), "/* -> outbound|8080||b");
}

#[test]
fn rules_may_be_for_one_listener_or_one_port_of_a_gateway() {
    let listener =
        |name: &str, host: &str, port| Server { name: name.into(), ..server(port, Http, &[host]) };
    let servers = || [listener("a", "a.com", 80), listener("b", "b.com", 80)];
    let only = |section: Option<&str>, port| VirtualService {
        gateways: vec![GatewayRef::Gateway(ListenerRef {
            gateway: ObjectName::new("n", "g"),
            section: section.map(Into::into),
            port,
        })],
        ..bound("n", "v", &["*"], vec![on(&["/p"], "b")])
    };
    let served = |rules| described(vec![gateway("n", "g", servers())], vec![rules]);
    assert_eq!(served(only(Some("b"), None)), [r#"b.com:80 ["b.com"]: /p -> outbound|80||b"#]);
    assert_eq!(served(only(None, Some(80))).len(), 1);
    assert_eq!(served(only(None, Some(81))), [r#"blackhole:80 ["*"]: "#]);
    // A match may be for one listener of those that the document is bound to.
    let mut rules = only(None, None);
    rules.http[0].matches[0].gateways = only(Some("a"), None).gateways;
    assert_eq!(served(rules), [r#"a.com:80 ["a.com"]: /p -> outbound|80||b"#]);
}

#[test]
fn among_documents_that_want_it_so_the_more_specific_match_comes_first() {
    let specific = |name: &str, prefix: &str, to: &str| VirtualService {
        order: RuleOrder::MostSpecific,
        ..bound(
            "n",
            name,
            &["a"],
            vec![HttpRule {
                matches: vec![HttpMatch {
                    path: Some(PathMatch::Prefix(prefix.into())),
                    ..http_match()
                }],
                ..rule_to(to)
            }],
        )
    };
    let rules = vec![
        specific("oldest", "/", "oldest"),
        bound("n", "written", &["a"], vec![on(&["/x"], "written"), rule_to("rest")]),
        specific("newest", "/long", "newest"),
    ];
    assert_eq!(
        described(vec![gateway("n", "g", [http(&["*"])])], rules),
        [
            r#"a:80 ["a"]: /x -> outbound|80||written, /long* -> outbound|80||newest, /* -> outbound|80||oldest, /* -> outbound|80||rest"#
        ]
    );
}
