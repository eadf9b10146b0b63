//! What a DestinationRule's `consistentHash` looks at in a request.

use crate::model::{ConsistentHash, Destination, DestinationRule, HashKey, TrafficPolicy};

/// What a destination is hashed by. Istio's precedence: the subset's port, the subset, the port,
/// the host; ports count only when the destination names one.
pub(super) fn of_destination(rule: &DestinationRule, to: &Destination) -> Option<HashKey> {
    let port = |policy: &'_ TrafficPolicy| of_port(policy, to.port?).cloned();
    let subset = rule.subset(&to.subset).and_then(|s| s.policy.as_ref());
    subset
        .and_then(port)
        .or_else(|| subset.and_then(of_policy).cloned())
        .or_else(|| rule.policy.as_ref().and_then(port))
        .or_else(|| rule.policy.as_ref().and_then(of_policy).cloned())?
        .key
}

/// What a service without rules is hashed by, on one of its ports.
pub(super) fn of_service_port(rule: &DestinationRule, port: u16) -> Option<HashKey> {
    let whole = rule.policy.as_ref()?;
    of_port(whole, port).or_else(|| of_policy(whole))?.key.clone()
}

fn of_policy(policy: &TrafficPolicy) -> Option<&ConsistentHash> {
    policy.load_balancer.as_ref()?.consistent_hash.as_ref()
}

fn of_port(policy: &TrafficPolicy, port: u16) -> Option<&ConsistentHash> {
    let settings = policy.ports.iter().find(|p| p.port == port)?;
    settings.load_balancer.as_ref()?.consistent_hash.as_ref()
}
