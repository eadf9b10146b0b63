//! Hash policies: what a DestinationRule's `consistentHash` looks at in a request.

use super::Place;
use crate::model::{ConsistentHash, Destination, DestinationRule, HashKey, TrafficPolicy};
use crate::xds::pb::{self, route};
use route::route_action::{HashPolicy, hash_policy};

/// The hash policy of a destination. Istio's precedence: the subset's port, the subset, the port,
/// the host; ports count only when the destination names one.
pub fn of_destination(place: &Place<'_>, destination: &Destination) -> Option<HashPolicy> {
    let rule = place.destination_rule(&destination.host)?;
    let port = |policy: &'_ TrafficPolicy| of_port(policy, destination.port?).cloned();
    let subset = rule.subset(&destination.subset).and_then(|s| s.policy.as_ref());
    subset
        .and_then(port)
        .or_else(|| subset.and_then(of_policy).cloned())
        .or_else(|| rule.policy.as_ref().and_then(port))
        .or_else(|| rule.policy.as_ref().and_then(of_policy).cloned())
        .and_then(|hash| policy(&hash))
}

/// The hash policy of a service without rules, on one of its ports.
pub fn of_service_port(rule: &DestinationRule, port: u16) -> Option<HashPolicy> {
    let whole = rule.policy.as_ref()?;
    policy(of_port(whole, port).or_else(|| of_policy(whole))?)
}

fn of_policy(policy: &TrafficPolicy) -> Option<&ConsistentHash> {
    policy.load_balancer.as_ref()?.consistent_hash.as_ref()
}

fn of_port(policy: &TrafficPolicy, port: u16) -> Option<&ConsistentHash> {
    let settings = policy.ports.iter().find(|p| p.port == port)?;
    settings.load_balancer.as_ref()?.consistent_hash.as_ref()
}

fn policy(hash: &ConsistentHash) -> Option<HashPolicy> {
    use hash_policy::PolicySpecifier;
    let specifier = match hash.key.as_ref()? {
        HashKey::Header(name) => PolicySpecifier::Header(hash_policy::Header {
            header_name: name.clone(),
            ..Default::default()
        }),
        HashKey::Cookie(cookie) => PolicySpecifier::Cookie(hash_policy::Cookie {
            name: cookie.name.clone(),
            ttl: cookie.ttl.map(pb::duration),
            path: cookie.path.clone(),
            attributes: cookie
                .attributes
                .iter()
                .map(|(name, value)| hash_policy::CookieAttribute {
                    name: name.clone(),
                    value: value.clone(),
                })
                .collect(),
        }),
        HashKey::SourceIp(source_ip) => {
            PolicySpecifier::ConnectionProperties(hash_policy::ConnectionProperties {
                source_ip: *source_ip,
            })
        }
        HashKey::QueryParameter(name) => {
            PolicySpecifier::QueryParameter(hash_policy::QueryParameter { name: name.clone() })
        }
    };
    Some(HashPolicy { policy_specifier: Some(specifier), terminal: false })
}
