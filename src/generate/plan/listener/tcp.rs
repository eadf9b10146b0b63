//! TCP: where a connection goes, and what holds for it on the way.

use super::{AccessLog, ListenerDefaults};
use crate::generate::{Policy, Scope, names, tcp_idle_timeout, tunnel};
use crate::model::{
    Destination, HashKey, Hostname, Protocol, Service, VirtualService, WeightedDestination,
};
use crate::proxy::Role;
use std::sync::Arc;
use std::time::Duration;

/// A TCP proxy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TcpProxy {
    /// Prefix of its statistics.
    pub stat_prefix: String,
    /// Clusters with their weights; never empty.
    pub clusters: Vec<(String, u32)>,
    /// How long a connection may be idle; `None` leaves it to Envoy.
    pub idle_timeout: Option<Duration>,
    /// How long a connection may last.
    pub max_duration: Option<Duration>,
    /// Whether the client's address decides which host it gets.
    pub hashes_source_ip: bool,
    /// How the bytes are tunnelled over HTTP, if they are.
    pub tunnel: Option<TcpTunnel>,
    /// Where connections are logged.
    pub access_log: Option<Arc<AccessLog>>,
    /// What is spoken.
    pub protocol: Protocol,
}

/// A tunnel over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TcpTunnel {
    /// Where it ends, `host:port`.
    pub target: String,
    /// Whether POST is used instead of CONNECT.
    pub uses_post: bool,
}

impl TcpProxy {
    /// Swallows connections, which nobody needs to hear of.
    pub fn black_hole() -> TcpProxy {
        TcpProxy::to(vec![(names::BLACK_HOLE.to_owned(), 1)], Protocol::Tcp)
    }

    /// To clusters, with what holds for all connections of the proxy.
    fn new(
        defaults: &ListenerDefaults<'_>,
        clusters: Vec<(String, u32)>,
        protocol: Protocol,
    ) -> TcpProxy {
        TcpProxy {
            idle_timeout: defaults.view.options().idle_timeout,
            access_log: defaults.access_log.clone(),
            ..TcpProxy::to(clusters, protocol)
        }
    }

    fn to(clusters: Vec<(String, u32)>, protocol: Protocol) -> TcpProxy {
        TcpProxy {
            stat_prefix: clusters.first().map_or_else(String::new, |(name, _)| name.clone()),
            clusters,
            idle_timeout: None,
            max_duration: None,
            hashes_source_ip: false,
            tunnel: None,
            access_log: None,
            protocol,
        }
    }

    /// To a cluster that is not of a service.
    pub fn to_cluster(defaults: &ListenerDefaults<'_>, name: impl Into<String>) -> TcpProxy {
        TcpProxy::new(defaults, vec![(name.into(), 1)], Protocol::Tcp)
    }

    /// The same for another protocol.
    #[must_use]
    pub fn speaking(self, protocol: Protocol) -> TcpProxy {
        TcpProxy { protocol, ..self }
    }

    /// To a port of a service.
    pub fn to_service(
        defaults: &ListenerDefaults<'_>,
        scope: &Scope<'_>,
        service: &Service,
        port: u16,
        protocol: Protocol,
    ) -> TcpProxy {
        let cluster = names::outbound_cluster(port, "", &service.hostname);
        TcpProxy::new(defaults, vec![(cluster, 1)], protocol).shaped(scope, service, port, "")
    }

    /// To the destinations of a `tcp` or `tls` rule. A single destination ignores its weight; of
    /// several, those without weight get nothing (Envoy refuses a weight of 0).
    pub fn of_rule(
        defaults: &ListenerDefaults<'_>,
        scope: &Scope<'_>,
        rule: &VirtualService,
        destinations: &[WeightedDestination],
        listen_port: u16,
    ) -> TcpProxy {
        let resolve = |destination: &Destination| {
            let service = service_of(scope, rule, &destination.host);
            let port = destination.port.or(service.and_then(|(_, port)| port));
            (service.map(|(service, _)| service), port.unwrap_or(listen_port))
        };
        let cluster = |destination: &Destination| {
            let (_, port) = resolve(destination);
            names::outbound_cluster(port, &destination.subset, &destination.host)
        };
        let clusters: Vec<(String, u32)> = match destinations {
            [only] => vec![(cluster(&only.destination), 1)],
            several => several
                .iter()
                .filter(|d| d.weight > 0)
                .map(|d| (cluster(&d.destination), d.weight))
                .collect(),
        };
        if clusters.is_empty() {
            return TcpProxy::to_cluster(defaults, names::BLACK_HOLE);
        }
        let splits = clusters.len() > 1;
        let mut proxy = TcpProxy::new(defaults, clusters, Protocol::Tcp);
        if splits {
            proxy.stat_prefix = format!("{}.{}", rule.origin.name.name, rule.origin.name.namespace);
        }
        let Some(first) = destinations.first().map(|first| &first.destination) else {
            return proxy;
        };
        // Only a single destination's subset counts: Istio ignores subsets where there are several.
        let subset = if destinations.len() == 1 { &*first.subset } else { "" };
        match resolve(first) {
            (Some(service), port) => proxy.shaped(scope, service, port, subset),
            (None, _) => proxy,
        }
    }

    /// With what the DestinationRule of a service says about connections on their way in.
    fn shaped(self, scope: &Scope<'_>, service: &Service, port: u16, subset: &str) -> TcpProxy {
        let Some(rule) = scope.destination_rule(service).map(|rule| &**rule) else { return self };
        let policy = Policy::of_rule(Some(rule), port);
        let policy = match rule.subset(subset) {
            Some(subset) => policy.of_subset(subset, port),
            None => policy,
        };
        let hash = policy.load_balancer.and_then(|lb| lb.consistent_hash.as_ref());
        // As with the idle timeout, only the rule's top level counts.
        let pool = rule.policy.as_ref().and_then(|p| p.connection_pool.as_ref());
        TcpProxy {
            idle_timeout: tcp_idle_timeout(Some(rule)).or(self.idle_timeout),
            max_duration: pool.and_then(|pool| pool.tcp.max_connection_duration),
            hashes_source_ip: hash.is_some_and(|h| h.key == Some(HashKey::SourceIp(true))),
            tunnel: tunnel(Some(rule), port, subset).map(|tunnel| TcpTunnel {
                target: format!("{}:{}", tunnel.target_host, tunnel.target_port),
                uses_post: tunnel.use_post,
            }),
            ..self
        }
    }

    /// Whether both take connections to the same place.
    pub(super) fn leads_where(&self, other: &TcpProxy) -> bool {
        self.clusters == other.clusters && self.protocol == other.protocol
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
