//! The TCP proxy.

use super::access_log;
use crate::generate::plan::listener::{TcpProxy, TcpTunnel};
use crate::xds::pb::{self, percent, tcp_proxy};
use tcp_proxy::tcp_proxy::{ClusterSpecifier, TunnelingConfig, WeightedCluster, weighted_cluster};

/// The configuration of a TCP proxy.
pub fn tcp_proxy(planned: &TcpProxy) -> tcp_proxy::TcpProxy {
    tcp_proxy::TcpProxy {
        stat_prefix: planned.stat_prefix.clone(),
        cluster_specifier: Some(match planned.clusters.as_slice() {
            [(only, _)] => ClusterSpecifier::Cluster(only.clone()),
            several => ClusterSpecifier::WeightedClusters(weighted(several)),
        }),
        access_log: access_log::loggers(planned.access_log.as_deref()),
        idle_timeout: planned.idle_timeout.map(pb::duration),
        max_downstream_connection_duration: planned.max_duration.map(pb::duration),
        hash_policy: if planned.hashes_source_ip { vec![source_ip()] } else { Vec::new() },
        tunneling_config: planned.tunnel.as_ref().map(tunnel),
        ..Default::default()
    }
}

fn weighted(clusters: &[(String, u32)]) -> WeightedCluster {
    let one = |(name, weight): &(String, u32)| weighted_cluster::ClusterWeight {
        name: name.clone(),
        weight: *weight,
        ..Default::default()
    };
    WeightedCluster { clusters: clusters.iter().map(one).collect() }
}

fn source_ip() -> percent::HashPolicy {
    percent::HashPolicy {
        policy_specifier: Some(percent::hash_policy::PolicySpecifier::SourceIp(
            percent::hash_policy::SourceIp {},
        )),
    }
}

fn tunnel(tunnel: &TcpTunnel) -> TunnelingConfig {
    TunnelingConfig {
        hostname: tunnel.target.clone(),
        use_post: tunnel.uses_post,
        ..Default::default()
    }
}
