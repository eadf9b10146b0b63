//! Virtual hosts and the route configurations that they stand in.

use super::action;
use crate::generate::names;
use crate::model::{Destination, OutboundMode, OutboundTrafficPolicy};
use crate::proxy::Interception;
use crate::xds::pb::{self, route};

/// Istio's limit of the body of a direct response.
const MAX_DIRECT_RESPONSE: u32 = 1024 * 1024;

/// What a route configuration makes of a port in the `Host` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPort {
    /// It does not matter: all requests come to one port.
    Ignored,
    /// It is part of the domains. `ignore_port_in_host_matching` must then be off, as in Istio:
    /// where it is on, Envoy takes the port off the request and finds no domain that has one.
    Compared,
}

/// A route configuration. Clusters are not validated: a missing one is a 503, not a refusal of
/// everything.
pub fn configuration(
    name: &str,
    host_port: HostPort,
    virtual_hosts: Vec<route::VirtualHost>,
) -> route::RouteConfiguration {
    route::RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts,
        validate_clusters: Some(pb::bool_value(false)),
        max_direct_response_body_size_bytes: Some(pb::u32_value(MAX_DIRECT_RESPONSE)),
        ignore_port_in_host_matching: match host_port {
            HostPort::Ignored => true,
            HostPort::Compared => false,
        },
        ..Default::default()
    }
}

/// The answer to a name that nothing is known about. Envoy may ask for one while a listener drains.
/// Told that there is none (`removed_resources`), it never becomes ready: even the timeout of the
/// first fetch is cancelled then. An empty table frees it at once.
pub fn empty(name: &str) -> route::RouteConfiguration {
    route::RouteConfiguration {
        name: name.to_owned(),
        validate_clusters: Some(pb::bool_value(false)),
        ..Default::default()
    }
}

/// A virtual host. Upstreams learn which attempt a request is, as in Istio.
pub fn virtual_host(
    name: String,
    domains: Vec<String>,
    routes: Vec<route::Route>,
) -> route::VirtualHost {
    route::VirtualHost {
        name,
        domains,
        routes,
        include_request_attempt_count: true,
        ..Default::default()
    }
}

/// The virtual host of requests to unknown hosts. Without interception there is no original
/// destination to go on to (Envoy's ORIGINAL_DST clusters answer 503), so there only an egress
/// proxy can take them.
pub fn catch_all(policy: &OutboundTrafficPolicy, interception: Interception) -> route::VirtualHost {
    match (policy.mode, &policy.egress_proxy, interception) {
        (OutboundMode::AllowAny, Some(proxy), _) => allow_any(proxy_cluster(proxy)),
        (OutboundMode::AllowAny, None, Interception::Redirect | Interception::Tproxy) => {
            allow_any(names::PASSTHROUGH.to_owned())
        }
        (OutboundMode::AllowAny, None, Interception::None) | (OutboundMode::RegistryOnly, _, _) => {
            block_all()
        }
    }
}

fn proxy_cluster(proxy: &Destination) -> String {
    names::outbound_cluster(proxy.port.unwrap_or_default(), &proxy.subset, &proxy.host)
}

fn allow_any(cluster: String) -> route::VirtualHost {
    let action = route::route::Action::Route(action::to_cluster(cluster));
    for_every_request("allow_any", action)
}

fn block_all() -> route::VirtualHost {
    let action = route::route::Action::DirectResponse(route::DirectResponseAction {
        status: 502,
        ..Default::default()
    });
    for_every_request("block_all", action)
}

fn for_every_request(name: &str, action: route::route::Action) -> route::VirtualHost {
    let route = route::Route {
        name: name.to_owned(),
        r#match: Some(super::matcher::everything()),
        action: Some(action),
        ..Default::default()
    };
    virtual_host(name.to_owned(), vec!["*".to_owned()], vec![route])
}
