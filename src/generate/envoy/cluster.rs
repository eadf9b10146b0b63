//! Clusters.

use super::{balancing, endpoint, outlier, secret, tls, upstream_http};
use crate::generate::plan::cluster::{
    About, Cluster, Dns, DnsFamily, Hosts, Keepalive, Limits, OriginalDst, RetryBudget, Source,
};
use crate::xds::pb::{self, cluster as proto, core};
use proto::circuit_breakers::{Thresholds, thresholds};
use proto::cluster::{
    ClusterDiscoveryType, CustomClusterType, DiscoveryType, EdsClusterConfig, LbConfig,
    OriginalDstLbConfig,
};
use std::collections::HashMap;
use std::time::Duration;

/// Istio's cap on the queries of one UDP socket of the resolver.
const MAX_UDP_QUERIES: u32 = 100;
/// Istio's spread of DNS refreshes.
const DNS_JITTER: Duration = Duration::from_millis(100);

/// The cluster.
pub fn cluster(planned: &Cluster) -> proto::Cluster {
    let mut cluster = proto::Cluster {
        name: planned.name.to_string(),
        alt_stat_name: planned.stat_name.clone(),
        connect_timeout: Some(pb::duration(planned.connect_timeout)),
        circuit_breakers: planned.limits.as_ref().map(circuit_breakers),
        upstream_connection_options: planned.keepalive.as_ref().map(keepalive),
        outlier_detection: planned.outlier.as_ref().map(outlier::outlier_detection),
        metadata: planned.about.as_ref().map(metadata),
        typed_extension_protocol_options: planned
            .http
            .as_ref()
            .map(upstream_http::options)
            .unwrap_or_default(),
        transport_socket: tls::upstream_socket(planned.tls.as_deref(), planned.proxy_protocol),
        upstream_bind_config: planned.source.as_ref().map(bind_config),
        ..balancing::balanced(&planned.balancing)
    };
    set_hosts(&mut cluster, planned);
    cluster
}

fn set_hosts(cluster: &mut proto::Cluster, planned: &Cluster) {
    let kind = |kind: DiscoveryType| Some(ClusterDiscoveryType::Type(kind.into()));
    match &planned.hosts {
        Hosts::Eds(_) => {
            cluster.cluster_discovery_type = kind(DiscoveryType::Eds);
            // The service name is the cluster's name always: Envoy does not ask twice for one.
            cluster.eds_cluster_config = Some(EdsClusterConfig {
                eds_config: Some(secret::ads()),
                service_name: planned.name.to_string(),
            });
        }
        Hosts::OriginalDst(OriginalDst { port, forgotten_after }) => {
            cluster.cluster_discovery_type = kind(DiscoveryType::OriginalDst);
            cluster.cleanup_interval = forgotten_after.map(pb::duration);
            if let Some(port) = port {
                cluster.lb_config = Some(LbConfig::OriginalDstLbConfig(OriginalDstLbConfig {
                    upstream_port_override: Some(pb::u32_value(u32::from(*port))),
                    ..Default::default()
                }));
            }
        }
        Hosts::Dns(dns) => {
            cluster.cluster_discovery_type =
                Some(ClusterDiscoveryType::ClusterType(CustomClusterType {
                    name: "envoy.clusters.dns".to_owned(),
                    typed_config: Some(pb::any(&dns_cluster(dns))),
                }));
            cluster.load_assignment = Some(endpoint::assignment(&dns.assignment));
        }
        Hosts::Static(hosts) => {
            cluster.cluster_discovery_type = kind(DiscoveryType::Static);
            if !hosts.is_empty() {
                let assignment = endpoint::plain_assignment(&planned.name, hosts);
                cluster.load_assignment = Some(assignment);
            }
        }
    }
}

fn dns_cluster(dns: &Dns) -> pb::dns_cluster::DnsCluster {
    use pb::dns_common::DnsLookupFamily;
    let family = match dns.family {
        DnsFamily::V4 => DnsLookupFamily::V4Only,
        DnsFamily::V6 => DnsLookupFamily::V6Only,
    };
    let resolver = pb::cares::CaresDnsResolverConfig {
        udp_max_queries: Some(pb::u32_value(MAX_UDP_QUERIES)),
        ..Default::default()
    };
    pb::dns_cluster::DnsCluster {
        dns_refresh_rate: Some(pb::duration(dns.refresh)),
        respect_dns_ttl: true,
        dns_jitter: Some(pb::duration(DNS_JITTER)),
        typed_dns_resolver_config: Some(pb::typed_extension(
            "envoy.network.dns_resolver.cares",
            &resolver,
        )),
        dns_lookup_family: family.into(),
        all_addresses_in_single_endpoint: dns.one_host,
        ..Default::default()
    }
}

/// One entry, for the default priority.
fn circuit_breakers(limits: &Limits) -> proto::CircuitBreakers {
    let thresholds = Thresholds {
        max_connections: Some(pb::u32_value(limits.connections)),
        max_pending_requests: Some(pb::u32_value(limits.pending_requests)),
        max_requests: Some(pb::u32_value(limits.requests)),
        max_retries: Some(pb::u32_value(limits.retries)),
        retry_budget: limits.retry_budget.as_ref().map(retry_budget),
        ..Default::default()
    };
    proto::CircuitBreakers { thresholds: vec![thresholds], ..Default::default() }
}

fn retry_budget(budget: &RetryBudget) -> thresholds::RetryBudget {
    thresholds::RetryBudget {
        budget_percent: Some(balancing::percent(budget.share)),
        min_retry_concurrency: Some(pb::u32_value(budget.min_concurrency)),
        budget_interval: budget.interval.map(pb::duration),
    }
}

fn keepalive(keepalive: &Keepalive) -> proto::UpstreamConnectionOptions {
    proto::UpstreamConnectionOptions {
        tcp_keepalive: Some(core::TcpKeepalive {
            keepalive_probes: keepalive.probes.map(pb::u32_value),
            keepalive_time: keepalive.time.map(pb::u32_value),
            keepalive_interval: keepalive.interval.map(pb::u32_value),
        }),
        ..Default::default()
    }
}

fn bind_config(source: &Source) -> core::BindConfig {
    let at = |address: &str| core::SocketAddress {
        protocol: core::socket_address::Protocol::Tcp.into(),
        address: address.to_owned(),
        port_specifier: Some(core::socket_address::PortSpecifier::PortValue(0)),
        ..Default::default()
    };
    let extra = source.extra.map(|address| core::ExtraSourceAddress {
        address: Some(at(address)),
        ..Default::default()
    });
    core::BindConfig {
        source_address: Some(at(source.address)),
        extra_source_addresses: extra.into_iter().collect(),
        ..Default::default()
    }
}

/// Istio's metadata of clusters.
fn metadata(about: &About) -> core::Metadata {
    let services = about.services.iter().map(|(host, namespace)| {
        pb::nested(pb::object([
            ("host", pb::string(host.as_str())),
            ("name", pb::string(host.as_str())),
            ("namespace", pb::string(namespace.as_str())),
        ]))
    });
    let mut fields = vec![("services", pb::list(services))];
    if about.is_external {
        fields.push(("external", pb::boolean(true)));
    }
    if let Some(path) = &about.config {
        fields.push(("config", pb::string(path)));
    }
    if let Some(subset) = &about.subset {
        fields.push(("subset", pb::string(&**subset)));
    }
    if about.keeps_alpn {
        fields.push(("alpn_override", pb::string("false")));
    }
    core::Metadata {
        filter_metadata: HashMap::from([("istio".to_owned(), pb::object(fields))]),
        ..Default::default()
    }
}
