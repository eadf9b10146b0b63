//! Clusters that lead from a sidecar to its own workload.

use super::about::{self, About};
use super::common::inbound_source;
use super::http::HttpOptions;
use super::load_balancer::{Balancing, HostBalancing};
use super::policy::Policy;
use super::pool::Limits;
use super::{Cluster, HostAddress, Hosts, OriginalDst, Source};
use crate::generate::names;
use crate::generate::plan::Because;
use crate::generate::targets::{InboundSite, Ingress, ServiceTarget, by_target_port};
use crate::model::{
    ConnectionPool, DefaultEndpoint, EndpointAddress, InboundTrafficPolicy, IngressListener,
    Protocol, Sidecar,
};
use crate::proxy::{Interception, IpMode};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Original destinations are the workload's own addresses, so they are never cleaned up (Istio's
/// value).
const NEVER: Duration = Duration::from_secs(9_223_372_035);

/// The inbound clusters of a sidecar, one for each port.
pub fn clusters(site: &InboundSite<'_>) -> Vec<Cluster> {
    if let Some((sidecar, listeners, ingress)) = site.workload.ingress() {
        let of = |listener| of_listener(site, sidecar, ingress, listener);
        return listeners.iter().map(of).collect();
    }
    if site.view.interception() == Interception::None {
        return Vec::new();
    }
    let default_pool = site.workload.sidecar().and_then(|s| s.inbound_connection_pool.as_ref());
    by_target_port(&site.workload.targets)
        .iter()
        .filter_map(|(port, targets)| of_targets(site, *port, targets, default_pool))
        .collect()
}

/// Where an inbound cluster leads.
struct Way {
    hosts: Hosts,
    source: Option<Source>,
}

/// The cluster of a port that services lead to.
fn of_targets(
    site: &InboundSite<'_>,
    target_port: u16,
    targets: &[&ServiceTarget],
    own_pool: Option<&ConnectionPool>,
) -> Option<Cluster> {
    let first = targets.first()?;
    let way = match site.mesh().inbound_traffic_policy {
        InboundTrafficPolicy::Passthrough => to_original_destination(site),
        InboundTrafficPolicy::Localhost => {
            let localhost = EndpointAddress::Ip(localhost(site));
            Way { hosts: one_host(localhost, target_port), source: None }
        }
    };
    let origin = &first.service().origin;
    let mut because = Because::of("a port that the workload serves", origin, &first.port().span);
    if let Some(rule) = first.rule() {
        because = because.and(&rule.origin, &rule.host_span);
    }
    Some(finish(site, target_port, because, way, first.port().protocol, targets, own_pool))
}

/// The cluster of a Sidecar's own listener.
fn of_listener(
    site: &InboundSite<'_>,
    sidecar: &Sidecar,
    ingress: &Ingress,
    listener: &IngressListener,
) -> Cluster {
    let source = Some(inbound_source(site.view.ip_mode()));
    let way = match &listener.default_endpoint {
        None => to_original_destination(site),
        Some(DefaultEndpoint::Loopback(_, port)) => {
            Way { hosts: one_host(EndpointAddress::Ip(localhost(site)), *port), source: None }
        }
        Some(DefaultEndpoint::Instance(port)) => {
            let ip = ingress.addresses.first().copied().unwrap_or_else(|| localhost(site));
            Way { hosts: one_host(EndpointAddress::Ip(ip), *port), source }
        }
        Some(DefaultEndpoint::Pipe(path)) => {
            Way { hosts: one_host(EndpointAddress::Pipe(path.clone()), 0), source }
        }
    };
    let targets = site.workload.targets.iter();
    let here: Vec<&ServiceTarget> =
        targets.filter(|t| t.target_port == listener.port.number).collect();
    let own_pool = listener
        .connection_pool
        .as_ref()
        .or(site.workload.sidecar().and_then(|s| s.inbound_connection_pool.as_ref()));
    let because = Because::of("an ingress listener", &sidecar.origin, &listener.span);
    finish(site, listener.port.number, because, way, listener.port.protocol, &here, own_pool)
}

fn to_original_destination(site: &InboundSite<'_>) -> Way {
    Way {
        hosts: Hosts::OriginalDst(OriginalDst { port: None, forgotten_after: Some(NEVER) }),
        source: Some(inbound_source(site.view.ip_mode())),
    }
}

fn one_host(address: EndpointAddress, port: u16) -> Hosts {
    Hosts::Static(vec![HostAddress { address, port }])
}

fn localhost(site: &InboundSite<'_>) -> IpAddr {
    match site.view.ip_mode() {
        IpMode::V4 | IpMode::Dual => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpMode::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
    }
}

/// What all inbound clusters have. Of the policy only the connection pool and the retry budget
/// apply: there is one host, and nothing between it and the proxy.
fn finish(
    site: &InboundSite<'_>,
    target_port: u16,
    because: Because,
    way: Way,
    protocol: Protocol,
    targets: &[&ServiceTarget],
    own_pool: Option<&ConnectionPool>,
) -> Cluster {
    let name = names::inbound_cluster(target_port);
    let mesh = site.mesh();
    let first = targets.first();
    let policy = first.map_or_else(Policy::default, |t| Policy::of_rule(t.rule(), t.port().number));
    let policy = policy.over_mesh(mesh);
    let pool = own_pool.or(policy.connection_pool);
    // Istio lists the services that have the port number of the first.
    let listed = targets
        .iter()
        .filter(|t| first.is_some_and(|f| f.port().number == t.port().number))
        .map(|t| t.service());
    let target = first.map(|t| (t.service(), t.port(), t.target_port));
    let bare = Cluster::bare(&name, because, way.hosts, mesh, pool);
    Cluster {
        stat_name: about::inbound_stat_name(mesh, &name, target),
        limits: Some(Limits::of(pool, policy.retry_budget)),
        balancing: Balancing { hosts: Some(HostBalancing::default()), ..bare.balancing },
        http: HttpOptions::inbound(pool, protocol).if_any(),
        source: way.source,
        about: first.map(|_| About::inbound(listed)),
        ..bare
    }
}
