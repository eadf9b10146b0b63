//! Which consistent hash of a DestinationRule a destination gets.

use super::proto;
use super::rules::{forwarded, translated};
use crate::generate::plan::route::Scheme;
use crate::generate::test_support::*;
use crate::model::{
    ConsistentHash, Destination, DestinationRule, DestinationRules, HashAlgorithm, HashKey,
    Headers, Hostname, HttpAction, HttpRule, Labels, LoadBalancer, Namespace, PortPolicy, Protocol,
    Subset, TrafficPolicy, WeightedDestination,
};
use crate::xds::TypeUrl;
use crate::xds::pb::Message;
use proto::route_action::{ClusterSpecifier, hash_policy};
use std::sync::Arc;

/// A DestinationRule for `b.b` that hashes by a header of this name at each level.
fn hashing(
    whole: Option<&str>,
    port: Option<&str>,
    subset: Option<&str>,
    subset_port: Option<&str>,
) -> DestinationRule {
    let balancer = |header: Option<&str>| {
        header.map(|header| LoadBalancer {
            consistent_hash: Some(ConsistentHash {
                key: Some(HashKey::Header(header.into())),
                algorithm: HashAlgorithm::Default(1024),
            }),
            ..LoadBalancer::default()
        })
    };
    let policy = |whole, port| TrafficPolicy {
        load_balancer: balancer(whole),
        ports: vec![PortPolicy {
            port: 80,
            load_balancer: balancer(port),
            connection_pool: None,
            outlier_detection: None,
            tls: None,
        }],
        ..TrafficPolicy::default()
    };
    DestinationRule {
        origin: origin("DestinationRule", "default", "b"),
        host: Hostname::from("b.b"),
        host_span: span(),
        visibility: None,
        selector: None,
        policy: Some(policy(whole, port)),
        subsets: vec![Subset {
            name: Arc::from("v1"),
            labels: Labels::default(),
            policy: Some(policy(subset, subset_port)),
            span: span(),
        }],
    }
}

fn hashed_by(rule: DestinationRule, to: Destination) -> (Option<String>, usize) {
    let mut snapshot = snapshot(vec![service("b.b", &[(80, Protocol::Http)])], Vec::new());
    snapshot.destination_rules =
        DestinationRules::new([Arc::new(rule)], Namespace::from("root"), false);
    let to = WeightedDestination { destination: to, weight: 0, headers: Headers::default() };
    let rule = HttpRule { action: HttpAction::Route(vec![to]), ..http_rule() };
    let (routes, _) = translated(&snapshot, &sidecar(), Scheme::Http, 80, vec![rule]);
    let action = forwarded(&routes[0]);
    let header = action.hash_policy.first().map(|p| match &p.policy_specifier {
        Some(hash_policy::PolicySpecifier::Header(header)) => header.header_name.clone(),
        other => panic!("{other:?}"),
    });
    (header, action.retry_policy.as_ref().unwrap().retry_host_predicate.len())
}

#[test]
fn the_most_specific_consistent_hash_counts() {
    let to =
        |subset: &str, port| Destination { subset: Arc::from(subset), port, ..destination("b.b") };
    let by = |rule, to| hashed_by(rule, to).0.unwrap_or_default();
    let all = || hashing(Some("w"), Some("p"), Some("s"), Some("sp"));
    assert_eq!(by(all(), to("v1", Some(80))), "sp");
    assert_eq!(by(all(), to("v1", None)), "s");
    assert_eq!(by(all(), to("", Some(80))), "p");
    assert_eq!(by(all(), to("", None)), "w");
    assert_eq!(by(hashing(Some("w"), Some("p"), None, None), to("v1", Some(80))), "p");
    assert_eq!(by(hashing(None, None, None, None), to("v1", Some(80))), "");
}

#[test]
fn a_hashed_destination_may_be_tried_again() {
    let hashed = hashed_by(hashing(Some("w"), None, None, None), destination("b.b"));
    assert_eq!(hashed, (Some("w".into()), 0));
    let plain = hashed_by(hashing(None, None, None, None), destination("b.b"));
    assert_eq!(plain, (None, 1));
}

#[test]
fn a_service_without_rules_gets_istios_defaults() {
    let mut snapshot = snapshot(vec![service("b.b", &[(80, Protocol::Http)])], Vec::new());
    let rule = hashing(Some("w"), Some("p"), None, None);
    snapshot.destination_rules =
        DestinationRules::new([Arc::new(rule)], Namespace::from("root"), false);
    let made = shared(&snapshot, &sidecar());
    let resource = made.set.get(TypeUrl::Route, "80").unwrap();
    let table = proto::RouteConfiguration::decode(&*resource.body).unwrap();
    let route = &table.virtual_hosts[0].routes[0];
    assert_eq!(route.name, "default");
    assert_eq!(route.decorator.as_ref().unwrap().operation, "b.b:80/*");
    let action = forwarded(route);
    assert_eq!(
        action.cluster_specifier,
        Some(ClusterSpecifier::Cluster("outbound|80||b.b".into()))
    );
    assert_eq!(action.hash_policy.len(), 1);
    assert_eq!(action.retry_policy.as_ref().unwrap().retry_host_predicate.len(), 1);
}
