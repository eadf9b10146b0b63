//! Which labels of a proxy can change what it gets.

use crate::model::{Labels, LocalityLb, Snapshot, TrafficPolicy};
use std::collections::BTreeSet;

/// The label keys that some selector, match or failover rule of the snapshot looks at.
pub fn asked_of_proxies(snapshot: &Snapshot) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut selector = |labels: Option<&Labels>| {
        keys.extend(labels.into_iter().flat_map(|l| l.0.keys().cloned()));
    };
    for gateway in &snapshot.gateways {
        selector(gateway.selector.as_ref());
    }
    for sidecar in &snapshot.sidecars {
        selector(sidecar.selector.as_ref());
    }
    for rule in snapshot.destination_rules.iter() {
        selector(rule.selector.as_ref());
    }
    for rule in &snapshot.virtual_services {
        for m in rule.http.iter().flat_map(|r| &r.matches) {
            selector(Some(&m.source_labels));
        }
        for m in rule.tls.iter().flat_map(|r| &r.matches) {
            selector(Some(&m.l4.source_labels));
        }
        for m in rule.tcp.iter().flat_map(|r| &r.matches) {
            selector(Some(&m.source_labels));
        }
    }
    keys.extend(snapshot.mesh.locality_lb.iter().flat_map(failover_keys));
    for rule in snapshot.destination_rules.iter() {
        let subsets = rule.subsets.iter().filter_map(|s| s.policy.as_ref());
        for policy in rule.policy.iter().chain(subsets) {
            keys.extend(policy_keys(policy));
        }
    }
    keys
}

fn policy_keys(policy: &TrafficPolicy) -> Vec<String> {
    let ports = policy.ports.iter().filter_map(|p| p.load_balancer.as_ref());
    let balancers = policy.load_balancer.iter().chain(ports);
    balancers.filter_map(|b| b.locality.as_ref()).flat_map(failover_keys).collect()
}

/// `key=value` compares endpoints with the value, so the proxy's own label does not matter then.
fn failover_keys(locality: &LocalityLb) -> Vec<String> {
    locality.failover_priority.iter().filter(|key| !key.contains('=')).cloned().collect()
}
