//! The endpoints of one cluster, grouped by locality. EDS and the assignments that DNS clusters
//! carry are made of the same groups.
//!
//! Endpoints carry no metadata: Istio's `istio.workload` and `tlsMode` feed filters and socket
//! matches that stock Envoy and this version do not have.

use crate::model::{Endpoint, EndpointAddress, Health, Labels, Locality, Service};
use crate::xds::pb;
use std::collections::{BTreeMap, HashSet};

/// A service with this label keeps sending to draining endpoints those who are bound to them.
pub(super) const PERSISTENT_SESSION: &str = "istio.io/persistent-session";

/// How endpoints of a port are found.
#[derive(Debug, Clone, Copy)]
pub(super) enum PortKey<'a> {
    /// By the name of the service port (EDS).
    Name(&'a str),
    /// By its number (DNS).
    Number(u16),
}

/// The endpoints of one locality and priority.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group<'a> {
    /// Where they run.
    pub(super) locality: &'a Locality,
    /// Which, each with its weight.
    pub(super) members: Vec<(&'a Endpoint, u32)>,
    /// The weight of the group, at least 1.
    pub(super) weight: u32,
    /// 0 is tried first.
    pub(super) priority: u32,
}

impl<'a> Group<'a> {
    /// A group whose weight is that of its members.
    pub(super) fn new(locality: &'a Locality, members: Vec<(&'a Endpoint, u32)>) -> Group<'a> {
        let weight: u64 = members.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let weight = u32::try_from(weight).unwrap_or(u32::MAX).max(1);
        Group { locality, members, weight, priority: 0 }
    }
}

/// The endpoints of a port that may get traffic and have these labels, in pool order. Envoy keeps
/// one host for an address, so repeats are left out, with their weight.
pub(super) fn select<'a>(
    endpoints: &'a [Endpoint],
    service: &Service,
    port: PortKey<'_>,
    labels: Option<&Labels>,
) -> Vec<&'a Endpoint> {
    let keeps_draining = service.labels.get(PERSISTENT_SESSION).is_some_and(|l| !l.is_empty());
    let of_port = |e: &&Endpoint| match port {
        // A name or an empty address in EDS would be refused with the whole response.
        PortKey::Name(name) => {
            &*e.port_name == name && !matches!(e.address, EndpointAddress::Hostname(_))
        }
        PortKey::Number(number) => e.port_number == number,
    };
    let mut seen = HashSet::new();
    endpoints
        .iter()
        .filter(of_port)
        .filter(|e| labels.is_none_or(|wanted| e.labels.selected_by(wanted)))
        .filter(|e| match e.health {
            Health::Unknown => true,
            Health::Draining => keeps_draining,
        })
        .filter(|e| seen.insert((&e.address, e.target_port)))
        .collect()
}

/// Groups by locality, sorted by the locality's text.
pub(super) fn group<'a>(endpoints: &[&'a Endpoint]) -> Vec<Group<'a>> {
    let shift = weight_shift(endpoints);
    let mut by_locality: BTreeMap<&'a Locality, Vec<(&'a Endpoint, u32)>> = BTreeMap::new();
    for &endpoint in endpoints {
        let weight = (endpoint.weight >> shift).max(1);
        by_locality.entry(&endpoint.locality).or_default().push((endpoint, weight));
    }
    let mut groups: Vec<Group<'a>> =
        by_locality.into_iter().map(|(locality, members)| Group::new(locality, members)).collect();
    if groups.len() > 1 {
        groups.sort_by_cached_key(|g| g.locality.to_string());
    }
    groups
}

/// Envoy refuses an assignment whose weights add up to more than 32 bits; by how much to scale.
fn weight_shift(endpoints: &[&Endpoint]) -> u32 {
    let total = |shift: u32| -> u64 {
        endpoints.iter().map(|e| u64::from((e.weight >> shift).max(1))).sum()
    };
    (0..u32::BITS).find(|shift| total(*shift) <= u64::from(u32::MAX)).unwrap_or(u32::BITS - 1)
}

/// The assignment of a cluster.
pub(super) fn assignment(
    cluster: &str,
    groups: &[Group<'_>],
) -> pb::endpoint::ClusterLoadAssignment {
    pb::endpoint::ClusterLoadAssignment {
        cluster_name: cluster.to_owned(),
        endpoints: groups.iter().map(locality_endpoints).collect(),
        ..Default::default()
    }
}

fn locality_endpoints(group: &Group<'_>) -> pb::endpoint::LocalityLbEndpoints {
    let Locality { region, zone, subzone } = group.locality;
    pb::endpoint::LocalityLbEndpoints {
        locality: Some(pb::core::Locality {
            region: region.to_string(),
            zone: zone.to_string(),
            sub_zone: subzone.to_string(),
        }),
        lb_endpoints: group.members.iter().map(|(e, weight)| lb_endpoint(e, *weight)).collect(),
        load_balancing_weight: Some(pb::u32_value(group.weight)),
        priority: group.priority,
        ..Default::default()
    }
}

fn lb_endpoint(endpoint: &Endpoint, weight: u32) -> pb::endpoint::LbEndpoint {
    let health = match endpoint.health {
        Health::Unknown => pb::core::HealthStatus::Unknown,
        Health::Draining => pb::core::HealthStatus::Draining,
    };
    pb::endpoint::LbEndpoint {
        health_status: health.into(),
        load_balancing_weight: Some(pb::u32_value(weight)),
        ..to_address(address(endpoint))
    }
}

/// An endpoint of this address and nothing else.
pub(super) fn to_address(address: pb::core::Address) -> pb::endpoint::LbEndpoint {
    use pb::endpoint::lb_endpoint::HostIdentifier;
    pb::endpoint::LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(pb::endpoint::Endpoint {
            address: Some(address),
            ..Default::default()
        })),
        ..Default::default()
    }
}

fn address(endpoint: &Endpoint) -> pb::core::Address {
    let port = u32::from(endpoint.target_port);
    match &endpoint.address {
        EndpointAddress::Ip(ip) => pb::socket_address(ip.to_string(), port),
        EndpointAddress::Hostname(name) => pb::socket_address(name.to_string(), port),
        EndpointAddress::Pipe(path) => pipe(path),
    }
}

/// The address of a Unix socket.
pub(super) fn pipe(path: &str) -> pb::core::Address {
    let pipe = pb::core::Pipe { path: path.to_owned(), ..Default::default() };
    pb::core::Address { address: Some(pb::core::address::Address::Pipe(pipe)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::{endpoint, service};
    use crate::model::Protocol;

    fn with(endpoints: Vec<Endpoint>) -> Service {
        Service { endpoints: endpoints.into(), ..service("a.b", &[(80, Protocol::Http)]) }
    }

    fn addresses(endpoints: &[&Endpoint]) -> Vec<String> {
        endpoints.iter().map(|e| e.address.to_string()).collect()
    }

    #[test]
    fn eds_takes_addresses_and_sockets_but_no_names() {
        let service = with(vec![
            endpoint("10.0.0.1", 80),
            endpoint("unix:///run/a", 80),
            endpoint("name.example", 80),
            endpoint("10.0.0.2", 81),
        ]);
        let eds = select(&service.endpoints, &service, PortKey::Name("p80"), None);
        assert_eq!(addresses(&eds), ["10.0.0.1", "unix:///run/a"]);
        let dns = select(&service.endpoints, &service, PortKey::Number(80), None);
        assert_eq!(addresses(&dns), ["10.0.0.1", "unix:///run/a", "name.example"]);
    }

    #[test]
    fn repeated_addresses_count_once() {
        let service = with(vec![endpoint("10.0.0.1", 80), endpoint("10.0.0.1", 80)]);
        let groups_of = select(&service.endpoints, &service, PortKey::Number(80), None);
        assert_eq!(group(&groups_of)[0].weight, 1);
    }

    #[test]
    fn draining_endpoints_are_for_persistent_sessions() {
        let mut service =
            with(vec![Endpoint { health: Health::Draining, ..endpoint("10.0.0.1", 80) }]);
        assert!(select(&service.endpoints, &service, PortKey::Number(80), None).is_empty());
        service.labels = [(PERSISTENT_SESSION, "cookie")].into_iter().collect();
        assert_eq!(select(&service.endpoints, &service, PortKey::Number(80), None).len(), 1);
    }

    #[test]
    fn groups_are_in_the_order_of_their_text() {
        let at = |address: &str, locality: &str| Endpoint {
            locality: Locality::parse(locality),
            ..endpoint(address, 80)
        };
        let service = with(vec![at("1.1.1.1", "a/z"), at("1.1.1.2", "a-b/z"), at("1.1.1.3", "")]);
        let selected = select(&service.endpoints, &service, PortKey::Number(80), None);
        let order: Vec<String> = group(&selected).iter().map(|g| g.locality.to_string()).collect();
        assert_eq!(order, ["", "a-b/z", "a/z"]);
    }

    #[test]
    fn weights_never_add_up_to_more_than_envoy_takes() {
        let heavy = |address: &str, weight| Endpoint { weight, ..endpoint(address, 80) };
        let service =
            with(vec![heavy("1.1.1.1", u32::MAX), heavy("1.1.1.2", u32::MAX), heavy("1.1.1.3", 1)]);
        let groups_of = select(&service.endpoints, &service, PortKey::Number(80), None);
        let members = &group(&groups_of)[0].members;
        let total: u64 = members.iter().map(|(_, weight)| u64::from(*weight)).sum();
        assert!(total <= u64::from(u32::MAX), "{total}");
        assert!(members.iter().all(|(_, weight)| *weight >= 1));
    }
}
