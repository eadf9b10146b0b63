//! Clusters that lead from a sidecar to its own workload.

use super::policy::Policy;
use super::protocol::HttpOptions;
use super::special::{inbound_source, original_dst, single_host};
use super::{endpoints, naming, pool};
use crate::generate::names;
use crate::generate::targets::{InboundSite, Ingress, ServiceTarget, by_target_port};
use crate::model::{
    ConnectionPool, DefaultEndpoint, InboundTrafficPolicy, IngressListener, Protocol,
};
use crate::proxy::{Interception, Role};
use crate::xds::pb;
use pb::cluster::cluster::CommonLbConfig;
use std::time::Duration;

/// Original destinations are the workload's own addresses, so they are never cleaned up (Istio's
/// value).
const NEVER: Duration = Duration::from_secs(9_223_372_035);

/// The inbound clusters of a sidecar, one for each port.
pub(crate) fn clusters(site: &InboundSite<'_>) -> Vec<pb::cluster::Cluster> {
    if let Some((_, listeners, ingress)) = site.workload.ingress() {
        return listeners.iter().map(|listener| of_listener(site, ingress, listener)).collect();
    }
    if site.view.interception() == Interception::None {
        return Vec::new();
    }
    let default_pool = site.workload.sidecar().and_then(|s| s.inbound_connection_pool.as_ref());
    by_target_port(&site.workload.targets)
        .iter()
        .map(|(port, targets)| of_targets(site, *port, targets, default_pool))
        .collect()
}

/// The cluster of a port that services lead to.
fn of_targets(
    site: &InboundSite<'_>,
    target_port: u16,
    targets: &[&ServiceTarget],
    own_pool: Option<&ConnectionPool>,
) -> pb::cluster::Cluster {
    let name = names::inbound_cluster(target_port);
    let base = match site.mesh().inbound_traffic_policy {
        InboundTrafficPolicy::Passthrough => to_original_destination(site),
        InboundTrafficPolicy::Localhost => {
            let localhost = site.view.ip_mode().localhost();
            single_host(&name, pb::socket_address(localhost, u32::from(target_port)))
        }
    };
    let protocol = targets.first().map_or(Protocol::Auto, |t| t.port().protocol);
    finish(site, name, base, protocol, targets, own_pool)
}

/// The cluster of a Sidecar's own listener.
fn of_listener(
    site: &InboundSite<'_>,
    ingress: &Ingress,
    listener: &IngressListener,
) -> pb::cluster::Cluster {
    let name = names::inbound_cluster(listener.port.number);
    let localhost = site.view.ip_mode().localhost();
    let source = Some(inbound_source(site.view.ip_mode()));
    let base = match &listener.default_endpoint {
        None => to_original_destination(site),
        Some(DefaultEndpoint::Loopback(_, port)) => {
            single_host(&name, pb::socket_address(localhost, u32::from(*port)))
        }
        Some(DefaultEndpoint::Instance(port)) => {
            let address = ingress.addresses.first().map(ToString::to_string);
            let address = address.unwrap_or_else(|| localhost.to_owned());
            pb::cluster::Cluster {
                upstream_bind_config: source,
                ..single_host(&name, pb::socket_address(address, u32::from(*port)))
            }
        }
        Some(DefaultEndpoint::Pipe(path)) => pb::cluster::Cluster {
            upstream_bind_config: source,
            ..single_host(&name, endpoints::pipe(path))
        },
    };
    let targets = site.workload.targets.iter();
    let here: Vec<&ServiceTarget> =
        targets.filter(|t| t.target_port == listener.port.number).collect();
    let own_pool = listener
        .connection_pool
        .as_ref()
        .or(site.workload.sidecar().and_then(|s| s.inbound_connection_pool.as_ref()));
    finish(site, name, base, listener.port.protocol, &here, own_pool)
}

fn to_original_destination(site: &InboundSite<'_>) -> pb::cluster::Cluster {
    pb::cluster::Cluster {
        cleanup_interval: Some(pb::duration(NEVER)),
        upstream_bind_config: Some(inbound_source(site.view.ip_mode())),
        ..original_dst()
    }
}

/// What all inbound clusters have. Of the policy only the connection pool and the retry budget
/// apply: there is one host, and nothing between it and the proxy.
fn finish(
    site: &InboundSite<'_>,
    name: String,
    base: pb::cluster::Cluster,
    protocol: Protocol,
    targets: &[&ServiceTarget],
    own_pool: Option<&ConnectionPool>,
) -> pb::cluster::Cluster {
    let mesh = site.mesh();
    let first = targets.first();
    let policy = first.map_or_else(Policy::default, |t| Policy::of_rule(t.rule(), t.port().number));
    let policy = policy.over_mesh(mesh);
    let pool = own_pool.or(policy.connection_pool);
    let mut http = HttpOptions::of_port(protocol, Role::Sidecar);
    http.apply_pool(pool);
    // Istio lists the services that have the port number of the first.
    let listed = targets
        .iter()
        .filter(|t| first.is_some_and(|f| f.port().number == t.port().number))
        .map(|t| t.service());
    let target = first.map(|t| (t.service(), t.port(), t.target_port));
    pb::cluster::Cluster {
        alt_stat_name: naming::inbound_stat_name(mesh, &name, target),
        name,
        connect_timeout: Some(pool::connect_timeout(mesh, pool)),
        circuit_breakers: Some(pool::circuit_breakers(pool, policy.retry_budget)),
        upstream_connection_options: pool::connection_options(mesh, pool),
        typed_extension_protocol_options: http.into_field(),
        common_lb_config: Some(CommonLbConfig::default()),
        metadata: first.map(|_| naming::inbound_metadata(listed)),
        ..base
    }
}
