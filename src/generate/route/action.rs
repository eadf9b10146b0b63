//! What a route does with a request: sends it on, redirects it, or answers it.

use super::headers::{self, Changes};
use super::retry::{self, PreviousHosts};
use super::{Place, hash};
use crate::generate::matching;
use crate::model::{
    DirectResponse, HttpRule, Mirror, PathRewrite, Redirect, RedirectPath, RedirectPort,
    ResponseBody, Rewrite, WeightedDestination,
};
use crate::xds::pb::{self, core, matcher, route};
use route::redirect_action::{PathRewriteSpecifier, RedirectResponseCode, SchemeRewriteSpecifier};
use route::route_action::{ClusterSpecifier, HostRewriteSpecifier};
use route::weighted_cluster::{ClusterWeight, cluster_weight};
use std::time::Duration;

/// Sends requests to one cluster: Istio's action without any rule, with no timeout at all.
pub fn to_cluster(cluster: String) -> route::RouteAction {
    route::RouteAction {
        cluster_specifier: Some(ClusterSpecifier::Cluster(cluster)),
        ..forwarding(None)
    }
}

/// What every forwarding action has. A `grpc-timeout` header is honoured up to the rule's timeout.
///
/// Istio and we say so with a field that Envoy calls deprecated, `max_grpc_timeout`. Its successor
/// `max_stream_duration` will not do: a route that has one is judged by it alone, and its `timeout`
/// means nothing any more (seen on Envoy 1.40).
#[expect(deprecated, reason = "its successor switches the timeout of the route off")]
fn forwarding(timeout: Option<Duration>) -> route::RouteAction {
    let timeout = pb::duration(timeout.unwrap_or_default());
    route::RouteAction {
        timeout: Some(timeout),
        max_grpc_timeout: Some(timeout),
        ..Default::default()
    }
}

/// Sends requests to the destinations of a rule. `changes` are the rule's header changes; those of
/// a single destination are appended to them.
pub fn forward(
    place: &Place<'_>,
    rule: &HttpRule,
    destinations: &[WeightedDestination],
    changes: &mut Changes,
) -> route::route::Action {
    let mut action = forwarding(rule.timeout);
    if let Some(rewrite) = &rule.rewrite {
        rewrite_path(&mut action, rewrite);
    }
    let rewritten = rule.rewrite.as_ref().map(|r| r.authority.clone()).filter(|a| !a.is_empty());
    let mut authority = rewritten.or_else(|| changes.authority.take());
    action.request_mirror_policies = rule.mirrors.iter().map(|m| mirror(place, m)).collect();
    action.hash_policy =
        destinations.iter().filter_map(|d| hash::of_destination(place, &d.destination)).collect();
    let mut previous_hosts = PreviousHosts::Avoid;
    match destinations {
        [only] => {
            if !action.hash_policy.is_empty() {
                previous_hosts = PreviousHosts::Allow;
            }
            let own = headers::changes(&only.headers);
            authority = authority.or(own.authority);
            changes.request_add.extend(own.request_add);
            changes.request_remove.extend(own.request_remove);
            changes.response_add.extend(own.response_add);
            changes.response_remove.extend(own.response_remove);
            action.cluster_specifier =
                Some(ClusterSpecifier::Cluster(place.cluster(&only.destination)));
        }
        several => {
            let clusters = weighted(place, several);
            if clusters.is_empty() {
                // Envoy refuses the whole route table when weights add up to nothing.
                return unavailable();
            }
            action.cluster_specifier =
                Some(ClusterSpecifier::WeightedClusters(route::WeightedCluster {
                    clusters,
                    ..Default::default()
                }));
        }
    }
    action.host_rewrite_specifier = authority.map(HostRewriteSpecifier::HostRewriteLiteral);
    action.retry_policy = retry::policy(
        rule.retries.as_ref(),
        place.scope.mesh().default_http_retry.as_ref(),
        previous_hosts,
    );
    route::route::Action::Route(action)
}

fn weighted(place: &Place<'_>, destinations: &[WeightedDestination]) -> Vec<ClusterWeight> {
    let sum: u64 = destinations.iter().map(|d| u64::from(d.weight)).sum();
    // Envoy adds weights in 32 bits and refuses more; shares stay as they are when all shrink.
    let divisor = u32::try_from(sum / u64::from(u32::MAX / 2) + 1).unwrap_or(u32::MAX);
    let divisor = if u32::try_from(sum).is_ok() { 1 } else { divisor };
    destinations
        .iter()
        .filter(|d| d.weight > 0)
        .map(|d| {
            let own = headers::changes(&d.headers);
            ClusterWeight {
                name: place.cluster(&d.destination),
                weight: Some(pb::u32_value((d.weight / divisor).max(1))),
                request_headers_to_add: own.request_add,
                request_headers_to_remove: own.request_remove,
                response_headers_to_add: own.response_add,
                response_headers_to_remove: own.response_remove,
                host_rewrite_specifier: own
                    .authority
                    .map(cluster_weight::HostRewriteSpecifier::HostRewriteLiteral),
                ..Default::default()
            }
        })
        .collect()
}

fn unavailable() -> route::route::Action {
    route::route::Action::DirectResponse(route::DirectResponseAction {
        status: 503,
        ..Default::default()
    })
}

fn rewrite_path(action: &mut route::RouteAction, rewrite: &Rewrite) {
    match &rewrite.path {
        None => {}
        Some(PathRewrite::Uri(uri)) => action.prefix_rewrite = uri.clone(),
        Some(PathRewrite::Regex { pattern, substitution }) => {
            action.regex_rewrite = Some(matcher::RegexMatchAndSubstitute {
                pattern: Some(matching::regex(pattern)),
                substitution: substitution.clone(),
            });
        }
    }
}

fn mirror(place: &Place<'_>, mirror: &Mirror) -> route::route_action::RequestMirrorPolicy {
    route::route_action::RequestMirrorPolicy {
        cluster: place.cluster(&mirror.destination),
        runtime_fraction: Some(matching::runtime_fraction(mirror.percent)),
        trace_sampled: Some(pb::bool_value(false)),
        disable_shadow_host_suffix_append: true,
        ..Default::default()
    }
}

/// A redirect; `None` for a status that Envoy cannot send.
pub fn redirect(place: &Place<'_>, redirect: &Redirect) -> Option<route::route::Action> {
    let code = match redirect.code {
        301 => RedirectResponseCode::MovedPermanently,
        302 => RedirectResponseCode::Found,
        303 => RedirectResponseCode::SeeOther,
        307 => RedirectResponseCode::TemporaryRedirect,
        308 => RedirectResponseCode::PermanentRedirect,
        _ => return None,
    };
    let path = match &redirect.path {
        // An empty path keeps the request's.
        None => PathRewriteSpecifier::PathRedirect(String::new()),
        Some(RedirectPath::Full(path)) => PathRewriteSpecifier::PathRedirect(path.clone()),
        Some(RedirectPath::Prefix(prefix)) => PathRewriteSpecifier::PrefixRewrite(prefix.clone()),
    };
    let scheme = Some(redirect.scheme.clone()).filter(|scheme| !scheme.is_empty());
    Some(route::route::Action::Redirect(route::RedirectAction {
        host_redirect: redirect.authority.clone(),
        port_redirect: redirect_port(place, redirect),
        response_code: code.into(),
        path_rewrite_specifier: Some(path),
        scheme_rewrite_specifier: scheme.map(SchemeRewriteSpecifier::SchemeRedirect),
        ..Default::default()
    }))
}

/// The port of a redirect, 0 for none. Envoy prints whatever port it is told, also 443 behind
/// `https`, so a scheme's own port is left out here.
fn redirect_port(place: &Place<'_>, redirect: &Redirect) -> u32 {
    let port = match redirect.port {
        None | Some(RedirectPort::FromProtocol) => return 0,
        Some(RedirectPort::Number(port)) => port,
        Some(RedirectPort::FromRequest) => place.listen_port,
    };
    let scheme = match redirect.scheme.as_str() {
        "" => place.scheme.as_str(),
        scheme => scheme,
    };
    match (scheme, port) {
        ("http", 80) | ("https", 443) => 0,
        _ => port.into(),
    }
}

/// An answer without any upstream.
pub fn direct_response(response: &DirectResponse) -> route::route::Action {
    use core::data_source::Specifier;
    let body = response.body.as_ref().map(|body| match body {
        ResponseBody::Text(text) => Specifier::InlineString(text.clone()),
        ResponseBody::Bytes(bytes) => Specifier::InlineBytes(bytes.clone()),
    });
    route::route::Action::DirectResponse(route::DirectResponseAction {
        status: response.status.into(),
        body: body
            .map(|specifier| core::DataSource { specifier: Some(specifier), ..Default::default() }),
        ..Default::default()
    })
}
