//! What rules become, on a sidecar's port 80 unless a test says otherwise.

use super::*;
use crate::diag::Diagnostic;
use crate::generate::plan::route::{self as plan, Registry, RulesInput, Scheme, Served};
use crate::generate::test_support::*;
use crate::model::*;
use crate::xds::pb::{self, fault};
use proto::route_action::{ClusterSpecifier, HostRewriteSpecifier};
use std::sync::Arc;
use std::time::Duration;

/// The routes of these rules, and what is reported.
pub(super) fn translated(
    snapshot: &Facts,
    view: &Parts,
    scheme: Scheme,
    listen_port: u16,
    http: Vec<HttpRule>,
) -> (Vec<proto::Route>, Vec<Diagnostic>) {
    of_document(snapshot, view, scheme, listen_port, virtual_service("rules", &["a.b"], http))
}

fn of_document(
    snapshot: &Facts,
    view: &Parts,
    scheme: Scheme,
    listen_port: u16,
    document: VirtualService,
) -> (Vec<proto::Route>, Vec<Diagnostic>) {
    let (attachment, registry) = (Attachment::Mesh, Registry::ListenPort);
    let served = Served { attachment, listen_port, scheme, registry };
    Eyes::new(snapshot, view).look(|scope| {
        let input = RulesInput::new(scope, &Arc::new(document), served);
        let list = plan::Parts::routes(&RouteParts::default(), input, scope.view);
        let routes = list.routes.iter().map(|route| envoy::route::route(route)).collect();
        (routes, list.extra.findings.clone())
    })
}

fn routes_of(http: Vec<HttpRule>) -> Vec<proto::Route> {
    let (routes, found) =
        translated(&snapshot(Vec::new(), Vec::new()), &sidecar(), Scheme::Http, 80, http);
    assert_eq!(found, []);
    routes
}

fn only(rule: HttpRule) -> proto::Route {
    let mut routes = routes_of(vec![rule]);
    assert_eq!(routes.len(), 1);
    routes.remove(0)
}

pub(super) fn forwarded(route: &proto::Route) -> &proto::RouteAction {
    match &route.action {
        Some(proto::route::Action::Route(action)) => action,
        other => panic!("not forwarded: {other:?}"),
    }
}

fn redirected(redirect: Redirect, scheme: Scheme, port: u16) -> proto::RedirectAction {
    let rule = HttpRule { action: HttpAction::Redirect(redirect), ..http_rule() };
    let snapshot = snapshot(Vec::new(), Vec::new());
    let (mut routes, _) = translated(&snapshot, &sidecar(), scheme, port, vec![rule]);
    match routes.remove(0).action {
        Some(proto::route::Action::Redirect(action)) => action,
        other => panic!("not redirected: {other:?}"),
    }
}

fn redirect() -> Redirect {
    Redirect { authority: String::new(), path: None, scheme: String::new(), port: None, code: 301 }
}

fn set(key: &str, value: &str) -> Headers {
    let mut headers = Headers::default();
    headers.request.set.insert(key.into(), value.into());
    headers
}

#[test]
fn a_rule_without_matches_ends_the_virtual_service() {
    let routes = routes_of(vec![
        HttpRule { matches: vec![path("/x")], ..http_rule() },
        rule_to("b.b"),
        rule_to("c.b"),
    ]);
    assert_eq!(routes.len(), 2);
    assert_eq!(
        forwarded(&routes[1]).cluster_specifier,
        Some(ClusterSpecifier::Cluster("outbound|80||b.b".into()))
    );
}

#[test]
fn a_catch_all_match_ends_the_virtual_service_and_a_guarded_one_does_not() {
    let guarded = HttpMatch { method: Some(StringMatch::Exact("GET".into())), ..prefix("/") };
    let routes = routes_of(vec![
        HttpRule { matches: vec![guarded, prefix("/"), path("/never")], ..http_rule() },
        HttpRule { matches: vec![path("/never")], ..http_rule() },
    ]);
    assert_eq!(routes.len(), 2);
    let regex = HttpMatch { path: Some(PathMatch::Regex(".*".into())), ..http_match() };
    let behind = |first| {
        routes_of(vec![HttpRule { matches: vec![first, path("/x")], ..http_rule() }]).len() - 1
    };
    assert_eq!([behind(regex), behind(segments("/")), behind(prefix(""))], [0, 0, 1]);
}

#[test]
fn matches_for_another_port_are_left_out() {
    let elsewhere = HttpMatch { port: Some(8080), ..prefix("/") };
    let routes = routes_of(vec![HttpRule { matches: vec![elsewhere, path("/x")], ..http_rule() }]);
    assert_eq!(routes.len(), 1);
}

#[test]
fn a_route_tells_where_it_comes_from() {
    let wanted = HttpMatch { name: "m".into(), stat_prefix: "s".into(), ..prefix("/p") };
    let rule = HttpRule { name: "r".into(), matches: vec![wanted], ..rule_to("b.b") };
    let route = only(rule.clone());
    assert_eq!(route.name, "r.m");
    assert_eq!(route.stat_prefix, "s");
    assert_eq!(route.decorator.as_ref().unwrap().operation, "b.b:80/p*");
    let metadata = &route.metadata.as_ref().unwrap().filter_metadata["istio"];
    assert_eq!(
        metadata.fields["config"],
        pb::string("/apis/networking.istio.io/v1/namespaces/default/virtual-service/rules")
    );
    let split = HttpAction::Route(vec![weighted("b.b", 1), weighted("c.b", 1)]);
    let route = only(HttpRule { action: split, ..rule });
    assert_eq!(route.decorator.unwrap().operation, "rules:80/p*");
}

#[test]
fn no_timeout_is_unlimited_and_grpc_timeouts_count() {
    for (timeout, expected) in [(None, 0), (Some(Duration::from_secs(7)), 7)] {
        let route = only(HttpRule { timeout, ..http_rule() });
        let action = forwarded(&route);
        assert_eq!(action.timeout.unwrap().seconds, expected);
        #[expect(deprecated, reason = "its successor switches the timeout of the route off")]
        let grpc = action.max_grpc_timeout.unwrap();
        assert_eq!(grpc.seconds, expected);
        // It would make Envoy ignore the timeout.
        assert_eq!(action.max_stream_duration, None);
    }
}

#[test]
fn zero_weights_are_dropped_and_a_single_survivor_stays_weighted() {
    let action = HttpAction::Route(vec![weighted("b.b", 0), weighted("c.b", 30)]);
    let route = only(HttpRule { action, ..http_rule() });
    let Some(ClusterSpecifier::WeightedClusters(split)) = &forwarded(&route).cluster_specifier
    else {
        panic!("not weighted")
    };
    assert_eq!(split.clusters.len(), 1);
    assert_eq!(split.clusters[0].name, "outbound|80||c.b");
    assert_eq!(split.clusters[0].weight, Some(pb::u32_value(30)));
}

#[test]
fn destinations_without_any_weight_are_unavailable() {
    let action = HttpAction::Route(vec![weighted("b.b", 0), weighted("c.b", 0)]);
    match only(HttpRule { action, ..http_rule() }).action {
        Some(proto::route::Action::DirectResponse(response)) => assert_eq!(response.status, 503),
        other => panic!("{other:?}"),
    }
}

#[test]
fn weights_beyond_what_envoy_adds_up_keep_their_shares() {
    let action = HttpAction::Route(vec![weighted("b.b", u32::MAX), weighted("c.b", u32::MAX)]);
    let route = only(HttpRule { action, ..http_rule() });
    let Some(ClusterSpecifier::WeightedClusters(split)) = &forwarded(&route).cluster_specifier
    else {
        panic!("not weighted")
    };
    let weights: Vec<u32> = split.clusters.iter().map(|c| c.weight.unwrap().value).collect();
    assert_eq!(weights[0], weights[1]);
    assert!(weights[0].checked_add(weights[1]).is_some());
}

#[test]
fn headers_of_a_single_destination_follow_the_rules() {
    let destination = WeightedDestination { headers: set("b", "2"), ..weighted("b.b", 0) };
    let action = HttpAction::Route(vec![destination]);
    let route = only(HttpRule { headers: set("z", "1"), action, ..http_rule() });
    let keys: Vec<_> =
        route.request_headers_to_add.iter().map(|h| &h.header.as_ref().unwrap().key).collect();
    assert_eq!(keys, ["z", "b"]);
}

#[test]
fn headers_of_several_destinations_stay_with_them() {
    let destination = WeightedDestination { headers: set("host", "two"), ..weighted("b.b", 1) };
    let other = WeightedDestination { headers: set("b", "2"), ..weighted("c.b", 1) };
    let action = HttpAction::Route(vec![destination, other]);
    let route = only(HttpRule { headers: set("z", "1"), action, ..http_rule() });
    assert_eq!(route.request_headers_to_add.len(), 1);
    let Some(ClusterSpecifier::WeightedClusters(split)) = &forwarded(&route).cluster_specifier
    else {
        panic!("not weighted")
    };
    use proto::weighted_cluster::cluster_weight::HostRewriteSpecifier;
    assert_eq!(
        split.clusters[0].host_rewrite_specifier,
        Some(HostRewriteSpecifier::HostRewriteLiteral("two".into()))
    );
    assert_eq!(split.clusters[1].request_headers_to_add.len(), 1);
}

#[test]
fn the_authority_is_the_rewrites_then_the_rules_then_the_destinations() {
    let authority = |rewrite: &str, rule: &str, destination: &str| {
        let headers =
            |a: &str| if a.is_empty() { Headers::default() } else { set(":authority", a) };
        let to = WeightedDestination { headers: headers(destination), ..weighted("b.b", 0) };
        let route = only(HttpRule {
            headers: headers(rule),
            rewrite: Some(Rewrite { path: None, authority: rewrite.into() }),
            action: HttpAction::Route(vec![to]),
            ..http_rule()
        });
        assert!(route.request_headers_to_add.is_empty());
        match &forwarded(&route).host_rewrite_specifier {
            Some(HostRewriteSpecifier::HostRewriteLiteral(host)) => host.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(authority("w", "r", "d"), "w");
    assert_eq!(authority("", "r", "d"), "r");
    assert_eq!(authority("", "", "d"), "d");
}

#[test]
fn a_path_is_rewritten_by_prefix_or_by_regex() {
    let rewrite = |path| Some(Rewrite { path: Some(path), authority: String::new() });
    let route = only(HttpRule { rewrite: rewrite(PathRewrite::Uri("/n".into())), ..http_rule() });
    assert_eq!(forwarded(&route).prefix_rewrite, "/n");
    let regex = PathRewrite::Regex { pattern: "^/a(.*)".into(), substitution: "\\1".into() };
    let route = only(HttpRule { rewrite: rewrite(regex), ..http_rule() });
    let action = forwarded(&route);
    assert_eq!(action.prefix_rewrite, "");
    assert_eq!(action.regex_rewrite.as_ref().unwrap().substitution, "\\1");
}

#[test]
fn a_redirect_leaves_out_the_schemes_own_port() {
    let port = |port, scheme: &str, server, listen| {
        let wanted = Redirect { port: Some(port), scheme: scheme.into(), ..redirect() };
        redirected(wanted, server, listen).port_redirect
    };
    assert_eq!(port(RedirectPort::Number(443), "https", Scheme::Http, 80), 0);
    assert_eq!(port(RedirectPort::Number(443), "http", Scheme::Http, 80), 443);
    assert_eq!(port(RedirectPort::Number(8443), "https", Scheme::Http, 80), 8443);
    assert_eq!(port(RedirectPort::FromRequest, "", Scheme::Https, 443), 0);
    assert_eq!(port(RedirectPort::FromRequest, "", Scheme::Http, 8080), 8080);
    assert_eq!(port(RedirectPort::FromProtocol, "https", Scheme::Http, 8080), 0);
}

#[test]
fn a_redirect_keeps_what_it_does_not_name() {
    use proto::redirect_action::PathRewriteSpecifier;
    let kept = redirected(redirect(), Scheme::Http, 80);
    assert_eq!(kept.path_rewrite_specifier, Some(PathRewriteSpecifier::PathRedirect("".into())));
    assert_eq!(kept.scheme_rewrite_specifier, None);
    assert_eq!(kept.host_redirect, "");
    let path = Some(RedirectPath::Prefix("/new".into()));
    let moved = redirected(Redirect { path, code: 308, ..redirect() }, Scheme::Http, 80);
    assert_eq!(
        moved.path_rewrite_specifier,
        Some(PathRewriteSpecifier::PrefixRewrite("/new".into()))
    );
    assert_eq!(moved.response_code().as_str_name(), "PERMANENT_REDIRECT");
}

#[test]
fn a_redirect_that_envoy_cannot_send_is_left_out_and_reported() {
    let action = HttpAction::Redirect(Redirect { code: 305, ..redirect() });
    let rule = HttpRule { action, matches: vec![path("/x")], ..http_rule() };
    let snapshot = snapshot(Vec::new(), Vec::new());
    let (routes, found) =
        translated(&snapshot, &sidecar(), Scheme::Http, 80, vec![rule, rule_to("b.b")]);
    assert_eq!(routes.len(), 1);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code, crate::diag::Code::InvalidResource);
}

#[test]
fn a_route_that_envoy_would_refuse_leaves_its_siblings_served() {
    let nameless = HttpMatch { headers: [(String::new(), None)].into(), ..path("/x") };
    let rule = HttpRule { matches: vec![nameless, path("/y")], ..http_rule() };
    let snapshot = snapshot(Vec::new(), Vec::new());
    let (routes, found) = translated(&snapshot, &sidecar(), Scheme::Http, 80, vec![rule]);
    assert_eq!(routes.len(), 1);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code, crate::diag::Code::InvalidResource);
    assert!(found[0].span.is_some());
}

#[test]
fn a_direct_response_has_status_and_body() {
    use pb::core::data_source::Specifier;
    for (body, expected) in [
        (ResponseBody::Text("hi".into()), Specifier::InlineString("hi".into())),
        (ResponseBody::Bytes(vec![0, 1]), Specifier::InlineBytes(vec![0, 1])),
    ] {
        let response = DirectResponse { status: 418, body: Some(body) };
        let rule = HttpRule { action: HttpAction::DirectResponse(response), ..http_rule() };
        match only(HttpRule { headers: set("a", "b"), ..rule }).action {
            Some(proto::route::Action::DirectResponse(made)) => {
                assert_eq!(made.status, 418);
                assert_eq!(made.body.unwrap().specifier, Some(expected));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn mirrors_keep_their_order_and_the_host() {
    let mirror = |host: &str, percent| Mirror { destination: destination(host), percent };
    let mirrors =
        vec![mirror("m.b", Percent::Millionths(125_000)), mirror("n.b", Percent::Hundredths(100))];
    let route = only(HttpRule { mirrors, ..http_rule() });
    let policies = &forwarded(&route).request_mirror_policies;
    assert_eq!(policies[0].cluster, "outbound|80||m.b");
    assert_eq!(policies[1].cluster, "outbound|80||n.b");
    assert!(policies.iter().all(|p| p.disable_shadow_host_suffix_append));
    let share = policies[0].runtime_fraction.as_ref().unwrap().default_value.unwrap();
    assert_eq!((share.numerator, share.denominator().as_str_name()), (125_000, "MILLION"));
}

#[test]
fn a_fault_goes_to_the_filter_on_its_route() {
    let abort = Abort { status: AbortStatus::Http(500), percent: Some(Percent::Hundredths(10)) };
    let route =
        only(HttpRule { fault: Some(Fault { delay: None, abort: Some(abort) }), ..http_rule() });
    assert_eq!(route.typed_per_filter_config.len(), 1);
    let made: fault::HttpFault = decode(&route.typed_per_filter_config["envoy.filters.http.fault"]);
    assert!(made.abort.is_some());
}

#[test]
fn static_conditions_are_decided_by_port_gateway_and_source() {
    let mut view = sidecar();
    view.labels = Labels::from_iter([("app", "a")]);
    let gateway = || GatewayRef::whole(ObjectName::new("n", "g"));
    let other_labels = || Selector::from_iter([("app", "b")]);
    let namespace = |name: &str| Some(Namespace::from(name));
    for (wanted, expected) in [
        (http_match(), 1),
        (HttpMatch { port: Some(80), ..http_match() }, 1),
        (HttpMatch { port: Some(81), ..http_match() }, 0),
        (HttpMatch { gateways: vec![gateway()], ..http_match() }, 0),
        (HttpMatch { source_labels: other_labels(), ..http_match() }, 0),
        (HttpMatch { source_namespace: namespace("x"), ..http_match() }, 0),
        (HttpMatch { source_namespace: namespace("default"), ..http_match() }, 1),
        // Named gateways switch the source conditions off.
        (
            HttpMatch {
                gateways: vec![gateway(), GatewayRef::Mesh],
                source_labels: other_labels(),
                ..http_match()
            },
            1,
        ),
    ] {
        let rule = HttpRule { matches: vec![wanted.clone()], ..http_rule() };
        let facts = snapshot(Vec::new(), Vec::new());
        let (routes, _) = translated(&facts, &view, Scheme::Http, 80, vec![rule]);
        assert_eq!(routes.len(), expected, "{wanted:?}");
    }
}

fn segments(prefix: &str) -> HttpMatch {
    HttpMatch { path: Some(PathMatch::SegmentPrefix(prefix.into())), ..http_match() }
}

#[test]
fn segments_reach_envoy_and_are_rewritten_without_a_slash_too_many() {
    let rewritten = |prefix: &str, uri: &str| {
        let path = Some(PathRewrite::Uri(uri.into()));
        let rewrite = Some(Rewrite { path, authority: String::new() });
        let route = only(HttpRule { matches: vec![segments(prefix)], rewrite, ..http_rule() });
        let action = forwarded(&route);
        let regex = action.regex_rewrite.as_ref();
        let pattern = regex.map(|r| (r.pattern.clone().unwrap().regex, r.substitution.clone()));
        let path = route.r#match.as_ref().unwrap().path_specifier.clone().unwrap();
        (path, action.prefix_rewrite.clone(), pattern)
    };
    use proto::route_match::PathSpecifier::{PathSeparatedPrefix, Prefix};
    let separated = || PathSeparatedPrefix("/a".into());
    assert_eq!(rewritten("/a", "/b"), (separated(), "/b".into(), None));
    assert_eq!(rewritten("/a/", "/b/"), (separated(), "/b".into(), None));
    let away = Some(("^/a/*".to_owned(), "/".to_owned()));
    assert_eq!(rewritten("/a", "/"), (separated(), String::new(), away));
    assert_eq!(rewritten("/", "/b"), (Prefix("/".into()), "/b".into(), None));
}

#[test]
fn where_a_document_says_so_the_more_specific_match_comes_first() {
    let header = HttpMatch { headers: [("h".to_owned(), None)].into(), ..segments("/a") };
    let matches = vec![segments("/a"), prefix("/"), header, segments("/a/b"), path("/z")];
    let document = |order| VirtualService {
        order,
        ..virtual_service(
            "rules",
            &["a.b"],
            vec![rule_to("all.b"), HttpRule { matches: matches.clone(), ..http_rule() }],
        )
    };
    let names = |order| -> Vec<String> {
        let facts = snapshot(Vec::new(), Vec::new());
        let (routes, _) = of_document(&facts, &sidecar(), Scheme::Http, 80, document(order));
        let matched = |route: &proto::Route| {
            use proto::route_match::PathSpecifier::*;
            let wanted = route.r#match.as_ref().unwrap();
            let path = match wanted.path_specifier.as_ref().unwrap() {
                Prefix(path) | Path(path) | PathSeparatedPrefix(path) => path.clone(),
                other => panic!("{other:?}"),
            };
            format!("{path}{}", "+h".repeat(wanted.headers.len()))
        };
        routes.iter().map(matched).collect()
    };
    assert_eq!(names(RuleOrder::AsWritten), ["/"]);
    assert_eq!(names(RuleOrder::MostSpecific), ["/z", "/a/b", "/a+h", "/a", "/"]);
}
