//! From a decided outbound cluster to Envoy's message.

use super::Site;
use super::endpoints::{self, PERSISTENT_SESSION};
use super::outbound::{Discovery, Upstream};
use super::protocol::HttpOptions;
use super::tls::{UpstreamTls, behind_proxy_protocol};
use super::{failover_on, load_balancer, locality, naming, outlier, pool};
use crate::generate::credentials;
use crate::model::{Endpoint, MeshSettings, Resolution};
use crate::proxy::IpMode;
use crate::xds::pb;
use pb::cluster::cluster::{
    ClusterDiscoveryType, CommonLbConfig, CustomClusterType, DiscoveryType, EdsClusterConfig,
    LbConfig, LbPolicy, OriginalDstLbConfig,
};
use std::time::Duration;

/// Istio's cap on the queries of one UDP socket of the resolver.
const MAX_UDP_QUERIES: u32 = 100;
/// Istio's spread of DNS refreshes.
const DNS_JITTER: Duration = Duration::from_millis(100);

/// The cluster.
pub(crate) fn cluster(site: &Site<'_>, upstream: &Upstream<'_>) -> pb::cluster::Cluster {
    let mesh = site.mesh;
    let policy = &upstream.policy;
    let mut http = HttpOptions::of_port(upstream.port.protocol, site.view.role());
    http.upgrade(mesh, policy.connection_pool, upstream.port.protocol);
    http.apply_pool(policy.connection_pool);
    http.apply_outlier_detection(policy.outlier_detection);

    let mut cluster = pb::cluster::Cluster {
        name: upstream.name.clone(),
        alt_stat_name: naming::outbound_stat_name(mesh, upstream),
        connect_timeout: Some(pool::connect_timeout(mesh, policy.connection_pool)),
        circuit_breakers: Some(pool::circuit_breakers(policy.connection_pool, policy.retry_budget)),
        upstream_connection_options: pool::connection_options(mesh, policy.connection_pool),
        outlier_detection: policy.outlier_detection.map(outlier::outlier_detection),
        metadata: Some(naming::outbound_metadata(upstream)),
        ..Default::default()
    };
    set_discovery(&mut cluster, site, upstream);
    set_load_balancer(&mut cluster, mesh, upstream);
    cluster.transport_socket = transport_socket(mesh, upstream, &mut http);
    cluster.typed_extension_protocol_options = http.into_field();
    cluster
}

/// The endpoints of an EDS cluster, out of those of its service.
pub(crate) fn assignment(
    site: &Site<'_>,
    upstream: &Upstream<'_>,
    endpoints: &[Endpoint],
) -> pb::endpoint::ClusterLoadAssignment {
    arranged(site, upstream, &upstream.rule_policy, endpoints)
}

fn arranged(
    site: &Site<'_>,
    upstream: &Upstream<'_>,
    policy: &super::Policy<'_>,
    endpoints: &[Endpoint],
) -> pb::endpoint::ClusterLoadAssignment {
    let mut groups = upstream.groups(endpoints);
    let setting = locality::LocalitySetting::effective(policy.load_balancer, site.mesh);
    locality::arrange(&mut groups, setting, failover_on(policy), site.view);
    endpoints::assignment(&upstream.name, &groups)
}

fn set_discovery(cluster: &mut pb::cluster::Cluster, site: &Site<'_>, upstream: &Upstream<'_>) {
    let (kind, assignment) = match upstream.discovery {
        Discovery::Eds => {
            // The service name is the cluster's name always: Envoy does not ask twice for one.
            cluster.eds_cluster_config = Some(EdsClusterConfig {
                eds_config: Some(credentials::ads()),
                service_name: upstream.name.clone(),
            });
            (ClusterDiscoveryType::Type(DiscoveryType::Eds.into()), None)
        }
        Discovery::OriginalDst => {
            (ClusterDiscoveryType::Type(DiscoveryType::OriginalDst.into()), None)
        }
        Discovery::StrictDns | Discovery::LogicalDns => {
            let one = upstream.discovery == Discovery::LogicalDns;
            let custom = CustomClusterType {
                name: "envoy.clusters.dns".to_owned(),
                typed_config: Some(pb::any(&dns(site.view.ip_mode(), site.mesh, one))),
            };
            let assignment =
                arranged(site, upstream, &upstream.policy, &upstream.service.endpoints);
            (ClusterDiscoveryType::ClusterType(custom), Some(assignment))
        }
    };
    cluster.cluster_discovery_type = Some(kind);
    cluster.load_assignment = assignment;
}

fn dns(ip_mode: IpMode, mesh: &MeshSettings, one_endpoint: bool) -> pb::dns_cluster::DnsCluster {
    use pb::dns_common::DnsLookupFamily;
    // Always explicit: Envoy's own default takes IPv6 first.
    let family = match ip_mode {
        IpMode::V4 | IpMode::Dual => DnsLookupFamily::V4Only,
        IpMode::V6 => DnsLookupFamily::V6Only,
    };
    let resolver = pb::cares::CaresDnsResolverConfig {
        udp_max_queries: Some(pb::u32_value(MAX_UDP_QUERIES)),
        ..Default::default()
    };
    // Envoy wants more than a millisecond.
    let refresh = mesh.dns_refresh_rate.max(Duration::from_millis(2));
    pb::dns_cluster::DnsCluster {
        dns_refresh_rate: Some(pb::duration(refresh)),
        respect_dns_ttl: true,
        dns_jitter: Some(pb::duration(DNS_JITTER)),
        typed_dns_resolver_config: Some(pb::typed_extension(
            "envoy.network.dns_resolver.cares",
            &resolver,
        )),
        dns_lookup_family: family.into(),
        all_addresses_in_single_endpoint: one_endpoint,
        ..Default::default()
    }
}

fn set_load_balancer(
    cluster: &mut pb::cluster::Cluster,
    mesh: &MeshSettings,
    upstream: &Upstream<'_>,
) {
    let policy = &upstream.policy;
    let persistent = upstream.service.labels.get(PERSISTENT_SESSION);
    let mut common = CommonLbConfig {
        healthy_panic_threshold: Some(load_balancer::panic_threshold(policy)),
        override_host_status: persistent.filter(|l| !l.is_empty()).map(|_| session_states()),
        ..Default::default()
    };
    match upstream.discovery {
        Discovery::OriginalDst => {
            cluster.lb_policy = LbPolicy::ClusterProvided.into();
            let port = match upstream.service.resolution {
                Resolution::None => upstream.port.target_port,
                Resolution::Static
                | Resolution::Dns
                | Resolution::DnsRoundRobin
                | Resolution::DynamicDns => None,
            };
            cluster.lb_config = port.map(|port| {
                LbConfig::OriginalDstLbConfig(OriginalDstLbConfig {
                    upstream_port_override: Some(pb::u32_value(u32::from(port))),
                    ..Default::default()
                })
            });
        }
        Discovery::Eds | Discovery::StrictDns | Discovery::LogicalDns => {
            load_balancer::apply(cluster, &mut common, policy, mesh);
        }
    }
    cluster.common_lb_config = Some(common);
}

/// The states of hosts that a request which is bound to them may still go to.
fn session_states() -> pb::core::HealthStatusSet {
    use pb::core::HealthStatus::{Degraded, Draining, Healthy, Unknown};
    let statuses = [Healthy, Draining, Unknown, Degraded].map(i32::from).to_vec();
    pb::core::HealthStatusSet { statuses }
}

fn transport_socket(
    mesh: &MeshSettings,
    upstream: &Upstream<'_>,
    http: &mut HttpOptions,
) -> Option<pb::core::TransportSocket> {
    let socket = match &upstream.tls {
        UpstreamTls::Plain => None,
        UpstreamTls::Tls(settings) => {
            let accepted = settings.accepted(upstream.service, mesh);
            http.set_host_tls(settings.host(&accepted));
            let alpn: &[&str] = if http.is_http2() { &["h2"] } else { &[] };
            Some(settings.socket(accepted, mesh, alpn))
        }
    };
    match upstream.policy.proxy_protocol {
        None => socket,
        Some(version) => Some(behind_proxy_protocol(socket, version)),
    }
}
