//! Snapshot x Proxy -> resources. Pure, total, deterministic.
//!
//! [`GENERATORS`] is the one ordered table; its order is the push order. A *shared* generator reads
//! only the [`View`] of a proxy, so proxies with equal views share its encoded resources; an *own*
//! generator also reads the proxy's addresses.

mod cds;
mod cluster;
mod credentials;
mod eds;
pub mod filters;
mod gateway;
mod gateway_rds;
mod host_index;
mod lds;
mod listener;
mod matching;
mod names;
mod outbound;
mod output;
mod rds;
mod route;
mod scope;
mod sds;
mod targets;
#[cfg(test)]
mod test_support;
mod view;

pub use cluster::{Policy, tcp_idle_timeout, tunnel};
pub use names::{Direction, parse_cluster};
pub use output::Output;
pub use scope::{EgressScope, Scope, ScopedService};
pub use view::View;

use crate::diag::Diagnostic;
use crate::model::Snapshot;
use crate::proxy::{Proxy, Role};
use crate::xds::{ResourceSet, TypeUrl};
use std::sync::Arc;

/// One row of the table.
pub struct Generator {
    /// What it makes, for logs and metrics.
    pub name: &'static str,
    /// The type of its resources.
    pub type_url: TypeUrl,
    /// How.
    pub part: Part,
}

/// What a generator may read.
pub enum Part {
    /// The view only.
    Shared(fn(&Scope<'_>, &mut Output)),
    /// The proxy's addresses too.
    Own(fn(&Scope<'_>, &Proxy, &mut Output)),
}

/// Every generator, in push order.
pub const GENERATORS: &[Generator] = &[
    row("clusters", TypeUrl::Cluster, Part::Shared(cds::outbound)),
    row("inbound clusters", TypeUrl::Cluster, Part::Own(cds::inbound)),
    row("endpoints", TypeUrl::Endpoint, Part::Shared(eds::assignments)),
    row("listeners", TypeUrl::Listener, Part::Shared(lds::shared)),
    row("inbound listeners", TypeUrl::Listener, Part::Own(lds::inbound)),
    row("gateway routes", TypeUrl::Route, Part::Shared(gateway_rds::generate)),
    row("sidecar routes", TypeUrl::Route, Part::Shared(rds::generate)),
    row("cluster secrets", TypeUrl::Secret, Part::Shared(sds::secrets)),
    row("listener secrets", TypeUrl::Secret, Part::Shared(lds::secrets)),
];

const fn row(name: &'static str, type_url: TypeUrl, part: Part) -> Generator {
    Generator { name, type_url, part }
}

/// What generators made, and what is to be said about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generated {
    /// The resources.
    pub set: Arc<ResourceSet>,
    /// Findings about what this proxy gets, sorted.
    pub diagnostics: Vec<Diagnostic>,
}

/// The resources that depend on the view only.
pub fn shared(snapshot: &Snapshot, view: &View) -> Generated {
    let scope = Scope::new(snapshot, view);
    let mut output = Output::default();
    for generator in GENERATORS {
        match generator.part {
            Part::Shared(generate) => generate(&scope, output.of(generator.type_url)),
            Part::Own(_) => {}
        }
    }
    output.finish()
}

/// The shared resources and the proxy's own. Only the types that the own part touches are copied.
pub fn with_own(shared: &Generated, snapshot: &Snapshot, view: &View, proxy: &Proxy) -> Generated {
    let scope = Scope::new(snapshot, view);
    let mut output = Output::onto(shared);
    for generator in GENERATORS {
        match generator.part {
            Part::Shared(_) => {}
            Part::Own(generate) => generate(&scope, proxy, output.of(generator.type_url)),
        }
    }
    output.finish()
}

/// Whether proxies of this view have resources of their own, beside the shared ones.
pub fn has_own(view: &View) -> bool {
    match view.role {
        Role::Router => false,
        Role::Sidecar => true,
    }
}

/// Everything that one proxy should have.
pub fn all(snapshot: &Snapshot, proxy: &Proxy) -> Generated {
    let view = View::of(snapshot, proxy);
    let shared = shared(snapshot, &view);
    if has_own(&view) { with_own(&shared, snapshot, &view, proxy) } else { shared }
}
