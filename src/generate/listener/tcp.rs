//! TCP: where a connection goes, and the network filters that take it there.

use super::Writer;
use crate::generate::cluster::{self, Policy};
use crate::generate::{Scope, names};
use crate::model::{
    Destination, HashKey, Hostname, Protocol, Service, Tunnel, VirtualService, WeightedDestination,
};
use crate::proxy::Role;
use crate::xds::pb::{self, listener, mongo_proxy, percent, tcp_proxy};
use std::time::Duration;

/// Where the connections of a filter chain go.
#[derive(Debug, Clone)]
pub struct TcpRoute<'a> {
    /// Clusters with their weights; never empty.
    pub clusters: Vec<(String, u32)>,
    /// What the first destination's DestinationRule says about the connection.
    pub shape: Shape<'a>,
    /// The VirtualService behind it, if there is one.
    pub rule: Option<&'a VirtualService>,
    /// Whether the filter chain's metadata names the VirtualService.
    pub documented: bool,
    /// What is spoken.
    pub protocol: Protocol,
}

/// Two routes are equal when they do the same with a connection.
impl PartialEq for TcpRoute<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.clusters == other.clusters && self.protocol == other.protocol
    }
}

impl<'a> TcpRoute<'a> {
    /// To a cluster that is not of a service.
    pub fn to_cluster(name: impl Into<String>) -> TcpRoute<'a> {
        TcpRoute {
            clusters: vec![(name.into(), 1)],
            shape: Shape::default(),
            rule: None,
            documented: false,
            protocol: Protocol::Tcp,
        }
    }

    /// To a port of a service.
    pub fn to_service(
        scope: &Scope<'a>,
        service: &Service,
        port: u16,
        protocol: Protocol,
    ) -> TcpRoute<'a> {
        TcpRoute {
            shape: Shape::of(scope, service, port, ""),
            protocol,
            ..TcpRoute::to_cluster(names::outbound_cluster(port, "", &service.hostname))
        }
    }

    /// To the destinations of a `tcp` or `tls` rule. A single destination ignores its weight; of
    /// several, those without weight get nothing (Envoy refuses a weight of 0).
    pub fn of_rule(
        scope: &Scope<'a>,
        rule: &'a VirtualService,
        destinations: &'a [WeightedDestination],
        listen_port: u16,
    ) -> TcpRoute<'a> {
        let resolve = |destination: &'a Destination| {
            let service = service_of(scope, rule, &destination.host);
            let port = destination.port.or(service.and_then(|(_, port)| port));
            (service.map(|(service, _)| service), port.unwrap_or(listen_port))
        };
        let cluster = |destination: &'a Destination| {
            let (_, port) = resolve(destination);
            names::outbound_cluster(port, &destination.subset, &destination.host)
        };
        let clusters = match destinations {
            [only] => vec![(cluster(&only.destination), 1)],
            several => several
                .iter()
                .filter(|d| d.weight > 0)
                .map(|d| (cluster(&d.destination), d.weight))
                .collect(),
        };
        // Only a single destination's subset counts: Istio ignores subsets where there are several.
        let shape = destinations.first().and_then(|first| {
            let (service, port) = resolve(&first.destination);
            let subset = if destinations.len() == 1 { &*first.destination.subset } else { "" };
            Some(Shape::of(scope, service?, port, subset))
        });
        if clusters.is_empty() {
            return TcpRoute { rule: Some(rule), ..TcpRoute::to_cluster(names::BLACK_HOLE) };
        }
        let shape = shape.unwrap_or_default();
        TcpRoute { clusters, shape, rule: Some(rule), ..TcpRoute::to_cluster("") }
    }
}

/// The service that a destination means, and its port if it has only one.
fn service_of<'a>(
    scope: &Scope<'a>,
    rule: &VirtualService,
    host: &Hostname,
) -> Option<(&'a Service, Option<u16>)> {
    let namespace = &rule.origin.name.namespace;
    let near = match scope.view.role() {
        // On a gateway the VirtualService's own namespace comes first.
        Role::Router => {
            let mut of_host = scope.world.routing.services.of_host(host);
            of_host.find(|(_, s)| s.namespace == *namespace).map(|(_, s)| s)
        }
        Role::Sidecar => None,
    };
    if let Some(service) = near.filter(|s| s.visibility.includes(scope.view.namespace())) {
        return Some((service, only(service.stream_ports().map(|p| p.number))));
    }
    let scoped = scope.find(host)?;
    Some((&scoped.service, only(scoped.ports().map(|p| p.number))))
}

fn only(mut ports: impl Iterator<Item = u16>) -> Option<u16> {
    let first = ports.next();
    first.filter(|_| ports.next().is_none())
}

/// What a DestinationRule says about connections on their way in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shape<'a> {
    idle_timeout: Option<Duration>,
    max_duration: Option<Duration>,
    hash_source_ip: bool,
    tunnel: Option<&'a Tunnel>,
}

impl<'a> Shape<'a> {
    /// What holds for a port of a service, and perhaps a subset.
    fn of(scope: &Scope<'a>, service: &Service, port: u16, subset: &str) -> Shape<'a> {
        let Some(rule) = scope.destination_rule(service).map(|rule| &**rule) else {
            return Shape::default();
        };
        let policy = Policy::of_rule(Some(rule), port);
        let policy = match rule.subset(subset) {
            Some(subset) => policy.of_subset(subset, port),
            None => policy,
        };
        let hash = policy.load_balancer.and_then(|lb| lb.consistent_hash.as_ref());
        // As with the idle timeout, only the rule's top level counts.
        let pool = rule.policy.as_ref().and_then(|p| p.connection_pool.as_ref());
        Shape {
            idle_timeout: cluster::tcp_idle_timeout(Some(rule)),
            max_duration: pool.and_then(|pool| pool.tcp.max_connection_duration),
            hash_source_ip: hash.is_some_and(|h| h.key == Some(HashKey::SourceIp(true))),
            tunnel: cluster::tunnel(Some(rule), port, subset),
        }
    }
}

impl Writer<'_> {
    /// The network filters of a TCP chain, the terminal one last.
    pub fn tcp_filters(&self, route: &TcpRoute<'_>) -> Vec<listener::Filter> {
        let (stat_prefix, specifier) = match route.clusters.as_slice() {
            [(only, _)] => {
                (only.clone(), tcp_proxy::tcp_proxy::ClusterSpecifier::Cluster(only.clone()))
            }
            several => {
                let name = route.rule.map(|rule| &rule.origin.name);
                let prefix = name.map_or_else(
                    || several[0].0.clone(),
                    |name| format!("{}.{}", name.name, name.namespace),
                );
                (
                    prefix,
                    tcp_proxy::tcp_proxy::ClusterSpecifier::WeightedClusters(weighted(several)),
                )
            }
        };
        let shape = route.shape;
        let proxy = tcp_proxy::TcpProxy {
            stat_prefix: stat_prefix.clone(),
            cluster_specifier: Some(specifier),
            access_log: self.access_log.clone(),
            idle_timeout: shape.idle_timeout.or(self.view.options().idle_timeout).map(pb::duration),
            max_downstream_connection_duration: shape.max_duration.map(pb::duration),
            hash_policy: if shape.hash_source_ip { vec![source_ip()] } else { Vec::new() },
            tunneling_config: shape.tunnel.map(tunnel),
            ..Default::default()
        };
        let mut filters = Vec::with_capacity(2);
        if route.protocol == Protocol::Mongo {
            let mongo = mongo_proxy::MongoProxy { stat_prefix, ..Default::default() };
            filters.push(pb::network_filter("envoy.filters.network.mongo_proxy", &mongo));
        }
        filters.push(pb::network_filter("envoy.filters.network.tcp_proxy", &proxy));
        filters
    }

    /// A TCP proxy without access log, to the cluster that has no hosts.
    pub fn black_hole(&self) -> Vec<listener::Filter> {
        let proxy = tcp_proxy::TcpProxy {
            stat_prefix: names::BLACK_HOLE.to_owned(),
            cluster_specifier: Some(tcp_proxy::tcp_proxy::ClusterSpecifier::Cluster(
                names::BLACK_HOLE.to_owned(),
            )),
            ..Default::default()
        };
        vec![pb::network_filter("envoy.filters.network.tcp_proxy", &proxy)]
    }
}

fn weighted(clusters: &[(String, u32)]) -> tcp_proxy::tcp_proxy::WeightedCluster {
    let one =
        |(name, weight): &(String, u32)| tcp_proxy::tcp_proxy::weighted_cluster::ClusterWeight {
            name: name.clone(),
            weight: *weight,
            ..Default::default()
        };
    tcp_proxy::tcp_proxy::WeightedCluster { clusters: clusters.iter().map(one).collect() }
}

fn source_ip() -> percent::HashPolicy {
    percent::HashPolicy {
        policy_specifier: Some(percent::hash_policy::PolicySpecifier::SourceIp(
            percent::hash_policy::SourceIp {},
        )),
    }
}

fn tunnel(tunnel: &Tunnel) -> tcp_proxy::tcp_proxy::TunnelingConfig {
    tcp_proxy::tcp_proxy::TunnelingConfig {
        hostname: format!("{}:{}", tunnel.target_host, tunnel.target_port),
        use_post: tunnel.use_post,
        ..Default::default()
    }
}
