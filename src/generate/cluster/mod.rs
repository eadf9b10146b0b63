//! What clusters are made of. `outbound` decides which there are and what holds for them, `build`
//! makes Envoy's message, `special` and `inbound` make the rest; each other module is one concern
//! of a cluster.

mod build;
mod endpoints;
mod inbound;
mod load_balancer;
mod locality;
mod naming;
mod outbound;
mod outlier;
mod policy;
mod pool;
mod protocol;
mod san;
mod special;
#[cfg(test)]
mod tests;
mod tls;

pub(super) use build::{assignment, cluster};
pub(super) use inbound::clusters as inbound_clusters;
pub(super) use outbound::{Upstream, for_each_upstream};
pub use policy::{Policy, tcp_idle_timeout, tunnel};
pub(super) use san::matcher as subject_alt_name;

use super::{Output, Plan, Viewer, names};
use crate::model::{MeshSettings, Secrets};
use crate::proxy::{Interception, Role};
use locality::FailoverOn;

/// What a cluster may depend on beside its service and the rule for that.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The mesh's settings.
    pub mesh: &'a MeshSettings,
    /// Who gets the cluster.
    pub view: &'a Viewer<'a>,
    /// Certificates and keys.
    pub secrets: &'a Secrets,
}

/// The clusters that every proxy of a kind has.
pub(super) fn every_proxy_has(plan: &Plan<'_>, output: &mut Output) {
    let (mesh, view) = (plan.scope.mesh(), plan.scope.view);
    output.emit(names::BLACK_HOLE, &special::black_hole(mesh));
    // Without interception there is no original destination to go on to.
    if view.role() == Role::Sidecar && view.interception() != Interception::None {
        output.emit(names::PASSTHROUGH, &special::passthrough(mesh));
        output.emit(names::INBOUND_PASSTHROUGH, &special::inbound_passthrough(mesh, view));
    }
}

/// Whether priorities make sense under a policy.
fn failover_on(policy: &Policy<'_>) -> FailoverOn {
    match policy.outlier_detection {
        Some(_) => FailoverOn::Unhealthy,
        None => FailoverOn::Nothing,
    }
}
