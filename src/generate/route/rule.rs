//! Rules of a VirtualService as routes, and the route of a service that has none.

use super::headers::{self, Changes};
use super::{Gap, Place, action, hash, matcher, retry};
use crate::diag::{Code, Diagnostic};
use crate::generate::filters::{self, Extra, RouteSite, Side};
use crate::generate::names;
use crate::model::{
    Destination, GatewayRef, HttpAction, HttpMatch, HttpRule, Service, VirtualService,
};
use crate::xds::pb::{self, Name, core, route};
use crate::xds::{canonical, constraints};
use route::route_match::PathSpecifier;

/// Istio's name for a route that no rule made.
const DEFAULT_ROUTE: &str = "default";

/// The routes of a VirtualService in a place: one for each match that can apply there, up to the
/// first that takes every request. A finding goes to `report` for each route that is left out.
pub fn routes(
    place: &Place<'_>,
    rules: &VirtualService,
    report: &mut dyn FnMut(Diagnostic),
) -> Vec<route::Route> {
    let mut made = Vec::new();
    for rule in &rules.http {
        if rule.matches.is_empty() {
            made.extend(translate(place, rules, rule, None, report));
            // Nothing can be reached behind a rule that takes everything.
            return made;
        }
        for wanted in rule.matches.iter().filter(|m| matcher::applies(place, m)) {
            let Some(route) = translate(place, rules, rule, Some(wanted), report) else { continue };
            let last = is_catch_all(&route);
            made.push(route);
            if last {
                return made;
            }
        }
    }
    made
}

/// Whether a route takes every request.
pub fn is_catch_all(route: &route::Route) -> bool {
    let Some(wanted) = &route.r#match else { return false };
    let path = match &wanted.path_specifier {
        Some(PathSpecifier::Prefix(prefix) | PathSpecifier::PathSeparatedPrefix(prefix)) => {
            prefix == "/"
        }
        Some(PathSpecifier::SafeRegex(regex)) => regex.regex == ".*",
        Some(
            PathSpecifier::Path(_)
            | PathSpecifier::ConnectMatcher(_)
            | PathSpecifier::PathMatchPolicy(_),
        )
        | None => false,
    };
    path && wanted.headers.is_empty()
        && wanted.query_parameters.is_empty()
        && wanted.dynamic_metadata.is_empty()
}

/// The route of a service's port that no VirtualService speaks about.
pub fn service_route(place: &Place<'_>, service: &Service, port: u16) -> route::Route {
    let mut forward = action::to_cluster(names::outbound_cluster(port, "", &service.hostname));
    // The policy avoids hosts that failed even when there is a consistent hash, as in Istio.
    forward.retry_policy = retry::policy(
        None,
        place.scope.mesh().default_http_retry.as_ref(),
        retry::PreviousHosts::Avoid,
    );
    let rule = place.scope.destination_rule(service);
    forward.hash_policy.extend(rule.and_then(|rule| hash::of_service_port(rule, port)));
    let mut route = route::Route {
        name: DEFAULT_ROUTE.to_owned(),
        r#match: Some(matcher::everything()),
        action: Some(route::route::Action::Route(forward)),
        ..Default::default()
    };
    route.decorator = Some(decorator(&route, &service.hostname, port));
    route
}

fn translate(
    place: &Place<'_>,
    rules: &VirtualService,
    rule: &HttpRule,
    wanted: Option<&HttpMatch>,
    report: &mut dyn FnMut(Diagnostic),
) -> Option<route::Route> {
    let mut changes = headers::changes(&rule.headers);
    let action = match &rule.action {
        HttpAction::Redirect(redirect) => {
            let action = action::redirect(place, redirect);
            if action.is_none() {
                let message = format!(
                    "Envoy cannot redirect with status {}; the route is left out",
                    redirect.code
                );
                report(rules.origin.diagnostic_at(&rule.span, Code::InvalidResource, message));
            }
            action?
        }
        HttpAction::DirectResponse(response) => action::direct_response(response),
        HttpAction::Route(destinations) => {
            let mirrors = rule.mirrors.iter().map(|m| &m.destination);
            for to in destinations.iter().map(|d| &d.destination).chain(mirrors) {
                if let Some(gap) = place.gap(to) {
                    report(missing(place, rules, to, &gap));
                }
            }
            action::forward(place, rule, destinations, &mut changes)
        }
        // `compile` has put the delegate's rules in its place.
        HttpAction::Delegate(_) => return None,
    };
    let site = RouteSite {
        mesh: place.scope.mesh(),
        view: place.scope.view,
        side: match place.gateway {
            GatewayRef::Mesh => Side::Egress,
            GatewayRef::Gateway(_) => Side::Edge,
        },
        port: place.listen_port,
        document: rules,
        rule,
    };
    let mut extra = Extra::default();
    let settings = place.scope.filters.on_route(&site, &mut extra);
    extra.findings().for_each(&mut *report);
    let Changes { request_add, request_remove, response_add, response_remove, authority: _ } =
        changes;
    let name = &rules.origin.name;
    let mut route = route::Route {
        name: route_name(rule, wanted),
        r#match: Some(wanted.map_or_else(matcher::everything, matcher::route_match)),
        metadata: Some(config_metadata(names::config_path(
            "virtual-service",
            &name.namespace,
            &name.name,
        ))),
        typed_per_filter_config: filters::route_config(&settings),
        request_headers_to_add: request_add,
        request_headers_to_remove: request_remove,
        response_headers_to_add: response_add,
        response_headers_to_remove: response_remove,
        stat_prefix: wanted.map(|w| w.stat_prefix.clone()).unwrap_or_default(),
        action: Some(action),
        ..Default::default()
    };
    route.decorator = Some(decorator(&route, &name.name, place.listen_port));
    let refused = constraints::check(&route::Route::type_url(), &canonical::bytes(&route));
    if let Some(first) = refused.first() {
        // Here only this route is lost; later Envoy would refuse every route of the proxy.
        let span = wanted.map_or(&rule.span, |w| &w.span);
        let message = format!("Envoy would refuse the route, so it is left out: {first}");
        report(rules.origin.diagnostic_at(span, Code::InvalidResource, message));
        return None;
    }
    Some(route)
}

/// A destination that this proxy has no cluster for.
fn missing(place: &Place<'_>, rules: &VirtualService, to: &Destination, gap: &Gap) -> Diagnostic {
    let host = &to.host;
    let numbers = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let (code, message, help) = match gap {
        Gap::Hidden => (
            Code::UnknownHost,
            format!(
                "proxies of namespace '{}' do not see the service '{host}'; requests get 503",
                place.scope.view.namespace()
            ),
            "export the service to that namespace".to_owned(),
        ),
        // Istio's trap: a sidecar takes such a destination for one on the client's port.
        Gap::NoDefaultPort { port, ports } => (
            Code::UnknownPort,
            format!(
                "the destination names no port, which means {port} for requests to port {}, and \
                 '{host}' does not have it; they get 503",
                place.listen_port
            ),
            format!("write destination.port.number; the service has {}", numbers(ports)),
        ),
        Gap::NoPort { port, ports } => (
            Code::UnknownPort,
            format!("the proxy does not see port {port} of '{host}'; requests get 503"),
            format!("it sees {}", numbers(ports)),
        ),
        Gap::NoSubset => (
            Code::UnknownSubset,
            format!(
                "the DestinationRule with subset '{}' of '{host}' does not count for proxies of \
                 namespace '{}'; requests get 503",
                to.subset,
                place.scope.view.namespace()
            ),
            "define it in the namespace of the proxy, of the service, or in the root namespace"
                .to_owned(),
        ),
    };
    rules.origin.diagnostic_at(&to.span, code, message).help(help)
}

fn route_name(rule: &HttpRule, wanted: Option<&HttpMatch>) -> String {
    match wanted.map(|w| w.name.as_str()).filter(|name| !name.is_empty()) {
        None => rule.name.clone(),
        Some(name) => format!("{}.{name}", rule.name),
    }
}

/// The operation name of traces: host, port and path of the only destination, else of the
/// VirtualService.
fn decorator(route: &route::Route, fallback_host: &str, fallback_port: u16) -> route::Decorator {
    let path = match route.r#match.as_ref().and_then(|m| m.path_specifier.as_ref()) {
        Some(PathSpecifier::Prefix(prefix)) => format!("{prefix}*"),
        Some(PathSpecifier::Path(path)) => path.clone(),
        Some(PathSpecifier::SafeRegex(regex)) => regex.regex.clone(),
        Some(
            PathSpecifier::PathSeparatedPrefix(_)
            | PathSpecifier::ConnectMatcher(_)
            | PathSpecifier::PathMatchPolicy(_),
        )
        | None => "/*".to_owned(),
    };
    let cluster = match &route.action {
        Some(route::route::Action::Route(forward)) => match &forward.cluster_specifier {
            Some(route::route_action::ClusterSpecifier::Cluster(name)) => {
                names::parse_cluster(name)
            }
            _ => None,
        },
        _ => None,
    };
    let (host, port) = match cluster {
        Some((_, port, _, host)) => (host, port),
        None => (fallback_host, fallback_port),
    };
    route::Decorator { operation: format!("{host}:{port}{path}"), propagate: None }
}

/// The metadata that tells which document a route comes from.
fn config_metadata(path: String) -> core::Metadata {
    let config = pb::object([("config", pb::string(path))]);
    core::Metadata { filter_metadata: [("istio".to_owned(), config)].into(), ..Default::default() }
}
