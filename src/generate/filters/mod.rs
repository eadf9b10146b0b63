//! HTTP filters: one file each, one line in [`HTTP_FILTERS`]. The table's order is the order in
//! which a request passes them.
//!
//! A filter has two duties, and both are beside each other in its file: what it puts into the
//! chain of a connection manager, and what it puts on a route. Envoy loads a route with the second
//! where the first is missing, and silently ignores it.

mod cors;
mod fault;
mod grpc_stats;
mod grpc_web;
mod router;

use super::Direction;
use crate::model::{HttpRule, Protocol};
use crate::xds::pb::{Any, hcm};
use std::collections::HashMap;

/// An HTTP filter of stock Envoy.
trait HttpFilter: Sync {
    /// Envoy's name of it, also the key of its configuration on routes.
    fn name(&self) -> &'static str;

    /// Its configuration in a chain, `None` where it does not belong.
    fn in_chain(&self, context: &FilterContext) -> Option<Any>;

    /// Its configuration for the routes of a rule, `None` when the rule does not ask for it.
    fn on_route(&self, rule: &HttpRule) -> Option<Any>;
}

/// What a filter may know about the connection manager that it goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterContext {
    /// Which way the requests go.
    pub direction: Direction,
    /// What the port speaks.
    pub protocol: Protocol,
}

/// Every HTTP filter, in chain order. Istio's order without the filters of its own Envoy build;
/// fault comes before cors as there. The router ends the chain.
const HTTP_FILTERS: &[&dyn HttpFilter] =
    &[&grpc_web::GrpcWeb, &grpc_stats::GrpcStats, &fault::Fault, &cors::Cors, &router::Router];

/// The filters of a connection manager.
pub fn chain(context: &FilterContext) -> Vec<hcm::HttpFilter> {
    HTTP_FILTERS
        .iter()
        .filter_map(|filter| {
            Some(hcm::HttpFilter {
                name: filter.name().to_owned(),
                config_type: Some(hcm::http_filter::ConfigType::TypedConfig(
                    filter.in_chain(context)?,
                )),
                ..Default::default()
            })
        })
        .collect()
}

/// The `typed_per_filter_config` of the routes of a rule.
pub fn route_config(rule: &HttpRule) -> HashMap<String, Any> {
    HTTP_FILTERS.iter().filter_map(|f| Some((f.name().to_owned(), f.on_route(rule)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn names(protocol: Protocol) -> Vec<String> {
        let context = FilterContext { direction: Direction::Outbound, protocol };
        chain(&context).into_iter().map(|f| f.name).collect()
    }

    #[test]
    fn the_router_is_last_and_names_are_unique() {
        assert_eq!(HTTP_FILTERS.last().map(|f| f.name()), Some("envoy.filters.http.router"));
        let unique: BTreeSet<_> = HTTP_FILTERS.iter().map(|f| f.name()).collect();
        assert_eq!(unique.len(), HTTP_FILTERS.len());
    }

    #[test]
    fn a_chain_keeps_the_order_of_the_table() {
        assert_eq!(
            names(Protocol::Http),
            [
                "envoy.filters.http.grpc_stats",
                "envoy.filters.http.fault",
                "envoy.filters.http.cors",
                "envoy.filters.http.router"
            ]
        );
    }

    #[test]
    fn only_grpc_web_ports_translate_grpc_web() {
        assert_eq!(names(Protocol::GrpcWeb)[0], "envoy.filters.http.grpc_web");
        assert!(!names(Protocol::Grpc).contains(&"envoy.filters.http.grpc_web".to_owned()));
    }
}
