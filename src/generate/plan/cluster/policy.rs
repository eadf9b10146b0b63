//! Which blocks of a DestinationRule hold for one port of a host or of a subset.
//!
//! Blocks are never merged field by field: a block is the subset's, the rule's or the mesh's. A
//! port-level entry replaces the four blocks it can carry and inherits nothing (Istio).

use crate::model::{
    ClientTls, ConnectionPool, DestinationRule, LoadBalancer, MeshSettings, OutlierDetection,
    PortPolicy, ProxyProtocolVersion, RetryBudget, Subset, TrafficPolicy, Tunnel,
};
use std::time::Duration;

/// The blocks that hold, borrowed from where they are written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Policy<'a> {
    /// Load balancing.
    pub load_balancer: Option<&'a LoadBalancer>,
    /// Connection pool and circuit breakers.
    pub connection_pool: Option<&'a ConnectionPool>,
    /// Ejection of failing endpoints.
    pub outlier_detection: Option<&'a OutlierDetection>,
    /// TLS to the upstream.
    pub tls: Option<&'a ClientTls>,
    /// Tunnelling of TCP over HTTP.
    pub tunnel: Option<&'a Tunnel>,
    /// PROXY protocol header.
    pub proxy_protocol: Option<ProxyProtocolVersion>,
    /// Budget of concurrent retries.
    pub retry_budget: Option<&'a RetryBudget>,
}

impl<'a> Policy<'a> {
    /// What a rule says about one port of its host.
    pub fn of_rule(rule: Option<&'a DestinationRule>, port: u16) -> Policy<'a> {
        rule.and_then(|rule| rule.policy.as_ref())
            .map_or_else(Policy::default, |policy| Policy::of_port(policy, port))
    }

    /// Fills in the mesh's connection pool and outlier detection where the rule has none.
    #[must_use]
    pub fn over_mesh(self, mesh: &'a MeshSettings) -> Policy<'a> {
        Policy {
            connection_pool: self.connection_pool.or(mesh.default_connection_pool.as_ref()),
            outlier_detection: self.outlier_detection.or(mesh.default_outlier_detection.as_ref()),
            ..self
        }
    }

    /// What holds for a subset when `self` holds for the port of its host. An entry of the subset
    /// for the port resets even what the mesh says.
    #[must_use]
    pub fn of_subset(self, subset: &'a Subset, port: u16) -> Policy<'a> {
        let Some(policy) = &subset.policy else { return self };
        match port_entry(policy, port) {
            Some(entry) => Policy {
                tunnel: self.tunnel,
                proxy_protocol: self.proxy_protocol,
                retry_budget: self.retry_budget,
                ..Policy::of_entry(entry)
            },
            None => Policy {
                load_balancer: policy.load_balancer.as_ref().or(self.load_balancer),
                connection_pool: policy.connection_pool.as_ref().or(self.connection_pool),
                outlier_detection: policy.outlier_detection.as_ref().or(self.outlier_detection),
                tls: policy.tls.as_ref().or(self.tls),
                tunnel: policy.tunnel.as_ref().or(self.tunnel),
                proxy_protocol: policy.proxy_protocol.or(self.proxy_protocol),
                retry_budget: policy.retry_budget.as_ref().or(self.retry_budget),
            },
        }
    }

    fn of_port(policy: &'a TrafficPolicy, port: u16) -> Policy<'a> {
        match port_entry(policy, port) {
            Some(entry) => Policy::of_entry(entry),
            None => Policy {
                load_balancer: policy.load_balancer.as_ref(),
                connection_pool: policy.connection_pool.as_ref(),
                outlier_detection: policy.outlier_detection.as_ref(),
                tls: policy.tls.as_ref(),
                tunnel: policy.tunnel.as_ref(),
                proxy_protocol: policy.proxy_protocol,
                retry_budget: policy.retry_budget.as_ref(),
            },
        }
    }

    fn of_entry(entry: &'a PortPolicy) -> Policy<'a> {
        Policy {
            load_balancer: entry.load_balancer.as_ref(),
            connection_pool: entry.connection_pool.as_ref(),
            outlier_detection: entry.outlier_detection.as_ref(),
            tls: entry.tls.as_ref(),
            ..Policy::default()
        }
    }
}

/// The entry of a port; the first of a number counts.
fn port_entry(policy: &TrafficPolicy, port: u16) -> Option<&PortPolicy> {
    policy.ports.iter().find(|p| p.port == port)
}

/// How TCP to a destination is tunnelled. A subset uses its own setting only, it does not inherit
/// the host's (Istio). Listeners ask for this: a cluster is the same with and without a tunnel.
pub fn tunnel<'a>(
    rule: Option<&'a DestinationRule>,
    port: u16,
    subset: &str,
) -> Option<&'a Tunnel> {
    if subset.is_empty() {
        return Policy::of_rule(rule, port).tunnel;
    }
    let policy = rule?.subset(subset)?.policy.as_ref()?;
    Policy::of_port(policy, port).tunnel
}

/// The idle timeout of TCP proxies to a host: only that of the rule's top level counts (Istio).
pub fn tcp_idle_timeout(rule: Option<&DestinationRule>) -> Option<Duration> {
    rule?.policy.as_ref()?.connection_pool.as_ref()?.tcp.idle_timeout
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::{destination_rule, subset};
    use crate::model::{SimpleLb, TcpPool};

    fn lb(simple: SimpleLb) -> Option<LoadBalancer> {
        Some(LoadBalancer { simple, ..Default::default() })
    }

    fn pool(max_connections: u32) -> Option<ConnectionPool> {
        let tcp = TcpPool { max_connections, ..Default::default() };
        Some(ConnectionPool { tcp, ..Default::default() })
    }

    fn budget() -> Option<RetryBudget> {
        Some(RetryBudget { percent: 20.0, min_retry_concurrency: 3, interval: None })
    }

    fn entry(port: u16) -> PortPolicy {
        PortPolicy {
            port,
            load_balancer: None,
            connection_pool: None,
            outlier_detection: Some(OutlierDetection::default()),
            tls: None,
        }
    }

    fn full() -> TrafficPolicy {
        TrafficPolicy {
            load_balancer: lb(SimpleLb::Random),
            connection_pool: pool(7),
            outlier_detection: Some(OutlierDetection::default()),
            retry_budget: budget(),
            ..Default::default()
        }
    }

    #[test]
    fn a_port_entry_resets_what_it_leaves_out() {
        let policy = TrafficPolicy {
            ports: vec![PortPolicy { outlier_detection: None, ..entry(80) }],
            ..full()
        };
        let rule = destination_rule("a.b", policy);
        assert_eq!(Policy::of_rule(Some(&rule), 80), Policy::default());
        let other = Policy::of_rule(Some(&rule), 81);
        assert!(other.load_balancer.is_some() && other.connection_pool.is_some());
        assert!(other.retry_budget.is_some());
    }

    #[test]
    fn a_port_entry_of_a_subset_resets_the_rule_and_the_mesh() {
        let rule = destination_rule("a.b", full());
        let policy = TrafficPolicy {
            load_balancer: lb(SimpleLb::RoundRobin),
            ports: vec![entry(8080)],
            ..Default::default()
        };
        let v1 = subset("v1", Some(policy));
        let mesh = MeshSettings { default_connection_pool: pool(1), ..MeshSettings::default() };
        let of = |port| Policy::of_rule(Some(&rule), port).over_mesh(&mesh).of_subset(&v1, port);

        let with_entry = of(8080);
        assert_eq!((with_entry.load_balancer, with_entry.connection_pool), (None, None));
        assert!(with_entry.outlier_detection.is_some());
        assert!(with_entry.retry_budget.is_some(), "an entry cannot carry it, so it stays");
        let without = of(80);
        assert_eq!(without.load_balancer.map(|lb| lb.simple), Some(SimpleLb::RoundRobin));
        assert_eq!(without.connection_pool.map(|p| p.tcp.max_connections), Some(7));
    }

    #[test]
    fn the_mesh_fills_in_whole_blocks_only() {
        let mesh = MeshSettings {
            default_connection_pool: pool(1),
            default_outlier_detection: Some(OutlierDetection::default()),
            ..MeshSettings::default()
        };
        let policy = TrafficPolicy { connection_pool: pool(7), ..Default::default() };
        let rule = destination_rule("a.b", policy);
        let merged = Policy::of_rule(Some(&rule), 80).over_mesh(&mesh);
        assert_eq!(merged.connection_pool.map(|p| p.tcp.max_connections), Some(7));
        assert!(merged.outlier_detection.is_some());
    }

    #[test]
    fn a_subset_does_not_inherit_the_tunnel_of_its_host() {
        let with = |host: &str| {
            let tunnel = Tunnel { use_post: false, target_host: host.into(), target_port: 443 };
            TrafficPolicy { tunnel: Some(tunnel), ..Default::default() }
        };
        let mut rule = destination_rule("a.b", with("top"));
        rule.subsets = vec![subset("own", Some(with("own"))), subset("none", None)];
        let target = |subset: &str| tunnel(Some(&rule), 80, subset).map(|t| &*t.target_host);
        assert_eq!((target(""), target("own"), target("none")), (Some("top"), Some("own"), None));
    }
}
