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
pub(super) use outbound::for_each_upstream;
pub use policy::{Policy, tcp_idle_timeout, tunnel};
pub(super) use san::matcher as subject_alt_name;
pub(super) use special::{black_hole, inbound_passthrough, passthrough};

use locality::FailoverOn;

/// Whether priorities make sense under a policy.
fn failover_on(policy: &Policy<'_>) -> FailoverOn {
    match policy.outlier_detection {
        Some(_) => FailoverOn::Unhealthy,
        None => FailoverOn::Nothing,
    }
}
