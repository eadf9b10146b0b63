//! Filters of requests: one file each, one line in [`ORDER`].
//!
//! A filter has two duties, and both are beside each other in its file: what it puts into the chain
//! of a connection manager, and what it puts on a route. Envoy loads a route with the second where the
//! first is missing, and silently ignores it.

mod cors;
mod fault;
mod grpc_stats;
mod grpc_web;
mod router;

use super::{Decided, Extra, RouteSite, Site};

/// A filter of requests.
pub trait HttpFilter: Sync {
    /// Envoy's name of it, also the key of its configuration on routes.
    fn name(&self) -> &'static str;

    /// Its settings in a chain, `None` where it does not belong.
    fn in_chain(&self, site: &Site<'_>, extra: &mut Extra) -> Option<Decided>;

    /// Its settings for the routes of a rule, `None` when the rule does not ask for it.
    fn on_route(&self, site: &RouteSite<'_>, extra: &mut Extra) -> Option<Decided>;
}

/// Every filter of requests, in chain order. Istio's order without the filters of its own Envoy
/// build; fault comes before cors as there. The router ends the chain.
pub const ORDER: &[&dyn HttpFilter] =
    &[&grpc_web::GrpcWeb, &grpc_stats::GrpcStats, &fault::Fault, &cors::Cors, &router::Router];
