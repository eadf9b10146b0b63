//! Route configurations, virtual hosts and routes as Envoy has them.

mod action;
mod matcher;
mod retry;

use crate::generate::filters;
use crate::generate::plan::route::{
    HeaderAddition, HostPort, Route, RouteTable, RuleRef, VirtualHost,
};
use crate::xds::pb::{self, core, route};

/// Istio's limit of the body of a direct response.
const MAX_DIRECT_RESPONSE: u32 = 1024 * 1024;

/// A route configuration without its virtual hosts. Clusters are not validated: a missing one is a
/// 503, not a refusal of everything.
///
/// Where domains have ports, `ignore_port_in_host_matching` must be off, as in Istio: where it is on,
/// Envoy takes the port off the request and finds no domain that has one. A table without virtual
/// hosts answers to a name that nothing is known about: Envoy may ask for one while a listener
/// drains. Told that there is none (`removed_resources`), it never becomes ready: even the timeout of
/// the first fetch is cancelled then. An empty table frees it at once.
pub fn configuration(table: &RouteTable) -> route::RouteConfiguration {
    let has_hosts = table.host_port != HostPort::NoHosts;
    route::RouteConfiguration {
        name: table.name.to_string(),
        validate_clusters: Some(pb::bool_value(false)),
        max_direct_response_body_size_bytes: has_hosts.then(|| pb::u32_value(MAX_DIRECT_RESPONSE)),
        ignore_port_in_host_matching: table.host_port == HostPort::Ignored,
        ..Default::default()
    }
}

/// A virtual host without its routes. Upstreams learn which attempt a request is, as in Istio.
pub fn virtual_host(host: &VirtualHost) -> route::VirtualHost {
    use route::virtual_host::TlsRequirementType;
    let require_tls =
        if host.require_tls { TlsRequirementType::All } else { TlsRequirementType::None };
    route::VirtualHost {
        name: host.name.to_string(),
        domains: host.domains.iter().map(|domain| domain.text.to_string()).collect(),
        require_tls: require_tls.into(),
        include_request_attempt_count: true,
        ..Default::default()
    }
}

/// A route.
pub fn route(planned: &Route) -> route::Route {
    let wanted = planned.rule.as_ref().and_then(RuleRef::wanted);
    route::Route {
        name: planned.name.clone(),
        r#match: Some(wanted.map_or_else(matcher::everything, matcher::route_match)),
        metadata: planned.document.clone().map(config_metadata),
        decorator: planned
            .operation
            .clone()
            .map(|operation| route::Decorator { operation, propagate: None }),
        typed_per_filter_config: filters::route_config(&planned.filters),
        request_headers_to_add: additions(&planned.request_headers.add),
        request_headers_to_remove: planned.request_headers.remove.clone(),
        response_headers_to_add: additions(&planned.response_headers.add),
        response_headers_to_remove: planned.response_headers.remove.clone(),
        stat_prefix: wanted.map_or_else(String::new, |wanted| wanted.stat_prefix.clone()),
        action: Some(action::action(&planned.action)),
        ..Default::default()
    }
}

fn additions(list: &[HeaderAddition]) -> Vec<core::HeaderValueOption> {
    use core::header_value_option::HeaderAppendAction;
    let option = |addition: &HeaderAddition| core::HeaderValueOption {
        header: Some(core::HeaderValue {
            key: addition.name.clone(),
            value: addition.value.clone(),
            ..Default::default()
        }),
        append_action: match addition.append {
            true => HeaderAppendAction::AppendIfExistsOrAdd,
            false => HeaderAppendAction::OverwriteIfExistsOrAdd,
        }
        .into(),
        ..Default::default()
    };
    list.iter().map(option).collect()
}

/// The metadata that tells which document a route comes from.
fn config_metadata(path: String) -> core::Metadata {
    let config = pb::object([("config", pb::string(path))]);
    core::Metadata { filter_metadata: [("istio".to_owned(), config)].into(), ..Default::default() }
}
