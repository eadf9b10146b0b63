//! What is done with a request.

use super::{additions, retry};
use crate::generate::envoy::matching;
use crate::generate::plan::route::{
    Action, Cluster, Clusters, Forward, Mirror, Redirect, RedirectCode, RedirectPath,
};
use crate::model::{DirectResponse, HashKey, PathRewrite, ResponseBody};
use crate::xds::pb::{self, core, matcher, route};
use route::redirect_action::{PathRewriteSpecifier, RedirectResponseCode, SchemeRewriteSpecifier};
use route::route_action::{
    ClusterSpecifier, HashPolicy, HostRewriteSpecifier, RequestMirrorPolicy, hash_policy,
};
use route::weighted_cluster::{ClusterWeight, cluster_weight};

/// The action of a route.
pub(super) fn action(planned: &Action) -> route::route::Action {
    match planned {
        Action::Forward(forward) => route::route::Action::Route(forwarding(forward)),
        Action::Redirect(redirect) => route::route::Action::Redirect(redirecting(redirect)),
        Action::Answer(response) => route::route::Action::DirectResponse(answering(response)),
    }
}

/// A `grpc-timeout` header is honoured up to the route's timeout.
///
/// Istio and we say so with a field that Envoy calls deprecated, `max_grpc_timeout`. Its successor
/// `max_stream_duration` will not do: a route that has one is judged by it alone, and its `timeout`
/// means nothing any more (seen on Envoy 1.40).
#[expect(deprecated, reason = "its successor switches the timeout of the route off")]
fn forwarding(planned: &Forward) -> route::RouteAction {
    let timeout = pb::duration(planned.timeout.unwrap_or_default());
    let mut action = route::RouteAction {
        cluster_specifier: Some(match &planned.clusters {
            Clusters::One(name) => ClusterSpecifier::Cluster(name.clone()),
            Clusters::Weighted(clusters) => {
                ClusterSpecifier::WeightedClusters(route::WeightedCluster {
                    clusters: clusters.iter().map(weighted).collect(),
                    ..Default::default()
                })
            }
        }),
        timeout: Some(timeout),
        max_grpc_timeout: Some(timeout),
        host_rewrite_specifier: planned
            .authority
            .clone()
            .map(HostRewriteSpecifier::HostRewriteLiteral),
        request_mirror_policies: planned.mirrors.iter().map(mirror).collect(),
        hash_policy: planned.hash.iter().map(hash).collect(),
        retry_policy: planned.retry.as_ref().map(retry::policy),
        ..Default::default()
    };
    match &planned.path {
        None => {}
        Some(PathRewrite::Uri(uri)) => action.prefix_rewrite = uri.clone(),
        Some(PathRewrite::Regex { pattern, substitution }) => {
            action.regex_rewrite = Some(substituted(pattern, substitution));
        }
    }
    action
}

fn weighted(cluster: &Cluster) -> ClusterWeight {
    use cluster_weight::HostRewriteSpecifier;
    let authority = cluster.authority.clone();
    ClusterWeight {
        name: cluster.name.clone(),
        weight: Some(pb::u32_value(cluster.weight)),
        request_headers_to_add: additions(&cluster.request_headers.add),
        request_headers_to_remove: cluster.request_headers.remove.clone(),
        response_headers_to_add: additions(&cluster.response_headers.add),
        response_headers_to_remove: cluster.response_headers.remove.clone(),
        host_rewrite_specifier: authority.map(HostRewriteSpecifier::HostRewriteLiteral),
        ..Default::default()
    }
}

fn substituted(pattern: &str, substitution: &str) -> matcher::RegexMatchAndSubstitute {
    matcher::RegexMatchAndSubstitute {
        pattern: Some(matching::regex(pattern)),
        substitution: substitution.to_owned(),
    }
}

fn mirror(mirror: &Mirror) -> RequestMirrorPolicy {
    RequestMirrorPolicy {
        cluster: mirror.cluster.clone(),
        runtime_fraction: Some(matching::runtime_fraction(mirror.percent)),
        trace_sampled: Some(pb::bool_value(false)),
        disable_shadow_host_suffix_append: true,
        ..Default::default()
    }
}

fn hash(key: &HashKey) -> HashPolicy {
    use hash_policy::PolicySpecifier;
    let specifier = match key {
        HashKey::Header(name) => PolicySpecifier::Header(hash_policy::Header {
            header_name: name.clone(),
            ..Default::default()
        }),
        HashKey::Cookie(cookie) => PolicySpecifier::Cookie(hash_policy::Cookie {
            name: cookie.name.clone(),
            ttl: cookie.ttl.map(pb::duration),
            path: cookie.path.clone(),
            attributes: cookie
                .attributes
                .iter()
                .map(|(name, value)| hash_policy::CookieAttribute {
                    name: name.clone(),
                    value: value.clone(),
                })
                .collect(),
        }),
        HashKey::SourceIp(source_ip) => {
            PolicySpecifier::ConnectionProperties(hash_policy::ConnectionProperties {
                source_ip: *source_ip,
            })
        }
        HashKey::QueryParameter(name) => {
            PolicySpecifier::QueryParameter(hash_policy::QueryParameter { name: name.clone() })
        }
    };
    HashPolicy { policy_specifier: Some(specifier), terminal: false }
}

fn redirecting(redirect: &Redirect) -> route::RedirectAction {
    let code = match redirect.code {
        RedirectCode::MovedPermanently => RedirectResponseCode::MovedPermanently,
        RedirectCode::Found => RedirectResponseCode::Found,
        RedirectCode::SeeOther => RedirectResponseCode::SeeOther,
        RedirectCode::TemporaryRedirect => RedirectResponseCode::TemporaryRedirect,
        RedirectCode::PermanentRedirect => RedirectResponseCode::PermanentRedirect,
    };
    let path = match &redirect.path {
        // An empty path keeps the request's.
        None => PathRewriteSpecifier::PathRedirect(String::new()),
        Some(RedirectPath::Full(path)) => PathRewriteSpecifier::PathRedirect(path.clone()),
        Some(RedirectPath::Prefix(prefix)) => PathRewriteSpecifier::PrefixRewrite(prefix.clone()),
        Some(RedirectPath::Regex { pattern, substitution }) => {
            PathRewriteSpecifier::RegexRewrite(substituted(pattern, substitution))
        }
    };
    let scheme = Some(redirect.scheme.clone()).filter(|scheme| !scheme.is_empty());
    route::RedirectAction {
        host_redirect: redirect.authority.clone(),
        port_redirect: redirect.port.unwrap_or_default().into(),
        response_code: code.into(),
        path_rewrite_specifier: Some(path),
        scheme_rewrite_specifier: scheme.map(SchemeRewriteSpecifier::SchemeRedirect),
        ..Default::default()
    }
}

fn answering(response: &DirectResponse) -> route::DirectResponseAction {
    use core::data_source::Specifier;
    let body = response.body.as_ref().map(|body| match body {
        ResponseBody::Text(text) => Specifier::InlineString(text.clone()),
        ResponseBody::Bytes(bytes) => Specifier::InlineBytes(bytes.clone()),
    });
    route::DirectResponseAction {
        status: response.status.into(),
        body: body
            .map(|specifier| core::DataSource { specifier: Some(specifier), ..Default::default() }),
        ..Default::default()
    }
}
