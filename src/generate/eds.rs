//! Endpoints: one assignment for each cluster that asks for one, also when it is empty. An empty
//! assignment is the only way to take endpoints away from Envoy.

use super::cluster::{self, for_each_upstream};
use super::{Output, Scope};

/// The assignments of all EDS clusters.
pub(super) fn assignments(scope: &Scope<'_>, output: &mut Output) {
    // What had to be left out is reported once, with the clusters.
    for_each_upstream(scope, |upstream| {
        if let Ok(upstream) = upstream
            && upstream.is_eds()
        {
            output.emit(upstream.name(), &cluster::assignment(scope, &upstream));
        }
    });
}
