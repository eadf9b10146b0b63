//! Snapshot x Proxy -> resources. Pure, total, deterministic.
//!
//! What a proxy gets is put together from parts that are each made once for everybody who would
//! get the same ([`Engine`] says which, and what each may read). [`GENERATORS`] is the one ordered
//! table of the types; its order is the push order.

mod clusters;
mod engine;
pub mod envoy;
mod evolve;
pub mod filters;
mod host_index;
mod imports;
mod inventory;
mod listeners;
mod memo;
mod names;
pub mod own;
pub mod plan;
mod routes;
mod scope;
pub mod seal;
pub mod service;
mod targets;
#[cfg(test)]
mod test_support;
mod view;
mod visible;
mod worlds;

pub use engine::{Engine, Statistics};
pub use memo::Uses;
pub use names::{Direction, parse_cluster};
pub use plan::cluster::{Policy, tcp_idle_timeout, tunnel};
pub use scope::{EgressScope, Scope, ScopedService, World};
pub use seal::Output;
pub use view::{View, Viewer};

use crate::diag::Diagnostic;
use crate::model::Snapshot;
use crate::proxy::Proxy;
use crate::xds::{ResourceSet, TypeUrl};
use filters::Extra;
use plan::listener::edge::{self, EdgePlan};
use plan::listener::egress::{self, EgressPlan};
use plan::route::RouteTable;
use routes::RouteParts;
use std::sync::Arc;

/// What was decided about a view, once for all types.
pub struct Plan<'a> {
    /// What is seen, and who looks.
    pub scope: Scope<'a>,
    /// The listeners of a router and what they refer to.
    pub edge: EdgePlan<'a>,
    /// The egress listeners of a sidecar and the route configurations that they name.
    pub egress: EgressPlan,
    /// The route tables that listeners name.
    tables: Vec<Arc<RouteTable>>,
    /// What is to be said about them, and what filters on routes need.
    route_extra: Extra,
    /// Where their parts are kept.
    parts: &'a RouteParts,
}

/// One row of the table.
pub struct Generator {
    /// What it makes, for logs and metrics.
    pub name: &'static str,
    /// The type of its resources.
    pub type_url: TypeUrl,
    /// How.
    pub generate: fn(&Plan<'_>, &mut Output),
}

/// What is made of a plan, in push order. Clusters of services and their endpoints are made
/// service by service ([`service`]), listeners one by one ([`listeners`]), inbound parts workload by
/// workload ([`own`]).
pub const GENERATORS: &[Generator] = &[
    row("clusters", TypeUrl::Cluster, clusters::every_proxy_has),
    row("extras of listeners", TypeUrl::Listener, listeners::extras),
    row("routes", TypeUrl::Route, routes::generate),
    row("listener secrets", TypeUrl::Secret, listeners::secrets),
];

const fn row(
    name: &'static str,
    type_url: TypeUrl,
    generate: fn(&Plan<'_>, &mut Output),
) -> Generator {
    Generator { name, type_url, generate }
}

/// What generators made, and what is to be said about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generated {
    /// The resources.
    pub set: Arc<ResourceSet>,
    /// Findings about what this proxy gets, sorted.
    pub diagnostics: Vec<Diagnostic>,
}

impl<'a> Plan<'a> {
    fn new(scope: Scope<'a>, parts: &'a RouteParts) -> Plan<'a> {
        let (edge, egress) = (edge::plan(&scope), egress::plan(&scope));
        let (tables, route_extra) = plan::route::tables(&scope, parts, &edge, &egress);
        Plan { scope, edge, egress, tables, route_extra, parts }
    }
}

/// Everything that one proxy should have.
pub fn all(snapshot: &Snapshot, proxy: &Proxy) -> Generated {
    (*Engine::default().generate(snapshot, proxy)).clone()
}
