//! Clusters, assignments and secrets on their way from the plan to resources: each is spelled and
//! sealed here, whoever planned it.

#[cfg(test)]
mod tests;

use super::plan::Because;
use super::plan::assignment::Assignment;
use super::plan::cluster::{self, Cluster};
use super::plan::secret::Secret;
use super::seal::Output;
use super::{Plan, envoy};
use crate::xds::TypeUrl;

/// The clusters that every proxy of a kind has.
pub(super) fn every_proxy_has(plan: &Plan<'_>, output: &mut Output) {
    for cluster in cluster::of_every_proxy(plan.scope.mesh(), plan.scope.view) {
        seal(&cluster, output);
    }
}

/// Adds a cluster. The secrets that it names are resources of their own ([`Cluster::secrets`]).
pub(super) fn seal(cluster: &Cluster, output: &mut Output) {
    let message = envoy::cluster(cluster);
    output.seal(TypeUrl::Cluster, &cluster.name, &cluster.because, message);
}

/// Adds a secret.
pub(super) fn seal_secret(secret: &Secret, output: &mut Output) {
    let message = envoy::secret::secret(secret);
    output.seal(TypeUrl::Secret, &secret.name, &secret.because, message);
}

/// Adds an assignment, which is there because its cluster is.
pub(super) fn seal_assignment(assignment: &Assignment, because: &Because, output: &mut Output) {
    let message = envoy::assignment(assignment);
    output.seal(TypeUrl::Endpoint, &assignment.cluster, because, message);
}
