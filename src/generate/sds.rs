//! Secrets: exactly those that the proxy's clusters and listeners refer to.

use super::cluster::for_each_upstream;
use super::{Output, Scope};
use crate::xds::pb;
use std::collections::BTreeMap;

/// The secrets of outbound clusters.
pub(super) fn secrets(scope: &Scope<'_>, output: &mut Output) {
    let mut used: BTreeMap<String, pb::tls::Secret> = BTreeMap::new();
    for_each_upstream(scope, |upstream| {
        if let Ok(upstream) = upstream {
            for secret in upstream.secrets() {
                used.entry(secret.name.clone()).or_insert_with(|| secret.resource());
            }
        }
    });
    for (name, secret) in &used {
        output.emit(name, secret);
    }
}
