//! Clusters.

use super::cluster::{self, for_each_upstream};
use super::{Output, Scope, names};
use crate::proxy::{Interception, Proxy, Role};

/// The clusters that lead out, and those that every proxy has.
pub(super) fn outbound(scope: &Scope<'_>, output: &mut Output) {
    for_each_upstream(scope, |upstream| match upstream {
        Ok(upstream) => {
            output.emit(upstream.name(), &cluster::cluster(scope, &upstream));
        }
        Err(finding) => output.report(finding),
    });
    let mesh = &scope.snapshot.mesh;
    output.emit(names::BLACK_HOLE, &cluster::black_hole(mesh));
    // Without interception there is no original destination to go on to.
    let intercepted = scope.view.interception != Interception::None;
    if scope.view.role == Role::Sidecar && intercepted {
        output.emit(names::PASSTHROUGH, &cluster::passthrough(mesh));
        let inbound = cluster::inbound_passthrough(mesh, scope.view);
        output.emit(names::INBOUND_PASSTHROUGH, &inbound);
    }
}

/// The clusters that lead to the proxy's own workload.
pub(super) fn inbound(scope: &Scope<'_>, proxy: &Proxy, output: &mut Output) {
    for cluster in cluster::inbound_clusters(scope, proxy) {
        output.emit(&cluster.name, &cluster);
    }
}
