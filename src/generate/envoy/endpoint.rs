//! Endpoints and their addresses.

use crate::generate::plan::assignment::{Assignment, Group, Member};
use crate::generate::plan::cluster::HostAddress;
use crate::model::{EndpointAddress, Health};
use crate::xds::pb::{self, core, endpoint};

/// The hosts of a cluster, as EDS and DNS clusters have them.
pub fn assignment(planned: &Assignment) -> endpoint::ClusterLoadAssignment {
    endpoint::ClusterLoadAssignment {
        cluster_name: planned.cluster.to_string(),
        endpoints: planned.groups.iter().map(locality_endpoints).collect(),
        ..Default::default()
    }
}

/// Hosts of which there is nothing to say but where they are.
pub(super) fn plain_assignment(
    cluster: &str,
    hosts: &[HostAddress],
) -> endpoint::ClusterLoadAssignment {
    let locality = endpoint::LocalityLbEndpoints {
        lb_endpoints: hosts.iter().map(lb_endpoint).collect(),
        ..Default::default()
    };
    endpoint::ClusterLoadAssignment {
        cluster_name: cluster.to_owned(),
        endpoints: vec![locality],
        ..Default::default()
    }
}

fn locality_endpoints(group: &Group) -> endpoint::LocalityLbEndpoints {
    endpoint::LocalityLbEndpoints {
        locality: Some(core::Locality {
            region: group.locality.region.to_string(),
            zone: group.locality.zone.to_string(),
            sub_zone: group.locality.subzone.to_string(),
        }),
        lb_endpoints: group.members.iter().map(weighted).collect(),
        load_balancing_weight: Some(pb::u32_value(group.weight)),
        priority: group.priority,
        ..Default::default()
    }
}

fn weighted(member: &Member) -> endpoint::LbEndpoint {
    let health = match member.health {
        Health::Unknown => core::HealthStatus::Unknown,
        Health::Draining => core::HealthStatus::Draining,
    };
    endpoint::LbEndpoint {
        health_status: health.into(),
        load_balancing_weight: Some(pb::u32_value(member.weight)),
        ..lb_endpoint(&member.at)
    }
}

fn lb_endpoint(host: &HostAddress) -> endpoint::LbEndpoint {
    use endpoint::lb_endpoint::HostIdentifier;
    endpoint::LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(endpoint::Endpoint {
            address: Some(address(host)),
            ..Default::default()
        })),
        ..Default::default()
    }
}

fn address(host: &HostAddress) -> core::Address {
    let port = u32::from(host.port);
    match &host.address {
        EndpointAddress::Ip(ip) => pb::socket_address(ip.to_string(), port),
        EndpointAddress::Hostname(name) => pb::socket_address(name.to_string(), port),
        EndpointAddress::Pipe(path) => {
            let pipe = core::Pipe { path: path.to_string(), ..Default::default() };
            core::Address { address: Some(core::address::Address::Pipe(pipe)) }
        }
    }
}
