//! The clusters that every proxy of a kind has, whatever is configured.

use super::protocol::HttpOptions;
use super::{endpoints, pool};
use crate::generate::{Viewer, names};
use crate::model::MeshSettings;
use crate::proxy::IpMode;
use crate::xds::pb;
use pb::cluster::cluster::{ClusterDiscoveryType, DiscoveryType, LbPolicy};
use std::time::Duration;

/// Idle timeout of connections to unknown destinations.
const PASSTHROUGH_IDLE: Duration = Duration::from_secs(300);
/// The source of connections to the workload: what comes from here is not captured again.
const INBOUND_SOURCE_V4: &str = "127.0.0.6";
const INBOUND_SOURCE_V6: &str = "::6";

/// The cluster without hosts.
pub(crate) fn black_hole(mesh: &MeshSettings) -> pb::cluster::Cluster {
    pb::cluster::Cluster {
        name: names::BLACK_HOLE.to_owned(),
        alt_stat_name: names::alt_stat_name(names::BLACK_HOLE),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Static.into())),
        connect_timeout: Some(pool::connect_timeout(mesh, None)),
        lb_policy: LbPolicy::RoundRobin.into(),
        ..Default::default()
    }
}

/// The cluster that dials the original destination of outbound traffic.
pub(crate) fn passthrough(mesh: &MeshSettings) -> pb::cluster::Cluster {
    let pool = mesh.default_connection_pool.as_ref();
    pb::cluster::Cluster {
        name: names::PASSTHROUGH.to_owned(),
        alt_stat_name: names::alt_stat_name(names::PASSTHROUGH),
        connect_timeout: Some(pool::connect_timeout(mesh, pool)),
        circuit_breakers: Some(pool::circuit_breakers(pool, None)),
        upstream_connection_options: pool::connection_options(mesh, pool),
        typed_extension_protocol_options: HttpOptions::passthrough(PASSTHROUGH_IDLE).into_field(),
        ..original_dst()
    }
}

/// The cluster that dials the original destination of inbound traffic. Its statistics go by the
/// name of the outbound one (Istio).
pub(crate) fn inbound_passthrough(mesh: &MeshSettings, view: &Viewer<'_>) -> pb::cluster::Cluster {
    pb::cluster::Cluster {
        name: names::INBOUND_PASSTHROUGH.to_owned(),
        upstream_bind_config: Some(inbound_source(view.ip_mode())),
        ..passthrough(mesh)
    }
}

/// A cluster whose hosts are original destinations.
pub(super) fn original_dst() -> pb::cluster::Cluster {
    pb::cluster::Cluster {
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::OriginalDst.into())),
        lb_policy: LbPolicy::ClusterProvided.into(),
        ..Default::default()
    }
}

/// A cluster of one host.
pub(super) fn single_host(name: &str, address: pb::core::Address) -> pb::cluster::Cluster {
    let locality = pb::endpoint::LocalityLbEndpoints {
        lb_endpoints: vec![endpoints::to_address(address)],
        ..Default::default()
    };
    pb::cluster::Cluster {
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Static.into())),
        load_assignment: Some(pb::endpoint::ClusterLoadAssignment {
            cluster_name: name.to_owned(),
            endpoints: vec![locality],
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The source address of connections to the workload.
pub(super) fn inbound_source(ip_mode: IpMode) -> pb::core::BindConfig {
    let at = |address: &str| {
        let socket = pb::socket_address(address, 0).address;
        match socket {
            Some(pb::core::address::Address::SocketAddress(address)) => Some(address),
            Some(_) | None => None,
        }
    };
    let (main, extra) = match ip_mode {
        IpMode::V4 => (INBOUND_SOURCE_V4, None),
        IpMode::V6 => (INBOUND_SOURCE_V6, None),
        IpMode::Dual => (INBOUND_SOURCE_V4, Some(INBOUND_SOURCE_V6)),
    };
    let extra = extra
        .map(|address| pb::core::ExtraSourceAddress { address: at(address), ..Default::default() });
    pb::core::BindConfig {
        source_address: at(main),
        extra_source_addresses: extra.into_iter().collect(),
        ..Default::default()
    }
}
