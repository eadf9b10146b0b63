//! The clusters that every proxy of a kind has, whatever is configured, and how to make one for
//! something else than a service.

use super::http::HttpOptions;
use super::load_balancer::{Algorithm, Balancing};
use super::pool::{self, Limits};
use super::{Cluster, Dns, HostAddress, Hosts, OriginalDst, Source};
use crate::generate::plan::Because;
use crate::generate::plan::assignment::Assignment;
use crate::generate::{Viewer, names};
use crate::model::{ConnectionPool, EndpointAddress, MeshSettings};
use crate::proxy::{Interception, IpMode, Role};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Idle timeout of connections to unknown destinations.
const PASSTHROUGH_IDLE: Duration = Duration::from_secs(300);
/// The source of connections to the workload: what comes from here is not captured again.
const INBOUND_SOURCE_V4: &str = "127.0.0.6";
const INBOUND_SOURCE_V6: &str = "::6";

/// The clusters that every proxy of a kind has.
pub fn of_every_proxy(mesh: &MeshSettings, view: &Viewer<'_>) -> Vec<Cluster> {
    let black_hole = Cluster::bare(
        names::BLACK_HOLE,
        Because::always("what every proxy has for traffic that must not go on"),
        Hosts::Static(Vec::new()),
        mesh,
        None,
    );
    let mut clusters = vec![Cluster { limits: None, keepalive: None, ..black_hole }];
    // Without interception there is no original destination to go on to.
    if view.role() == Role::Sidecar && view.interception() != Interception::None {
        let because =
            Because::always("what every intercepted sidecar has for unknown destinations");
        let outbound = passthrough(mesh, because);
        // Its statistics go by the name of the outbound one (Istio).
        let inbound = Cluster {
            name: names::INBOUND_PASSTHROUGH.into(),
            source: Some(inbound_source(view.ip_mode())),
            ..outbound.clone()
        };
        clusters.extend([outbound, inbound]);
    }
    clusters
}

/// The cluster that dials the original destination of outbound traffic.
fn passthrough(mesh: &MeshSettings, because: Because) -> Cluster {
    let pool = mesh.default_connection_pool.as_ref();
    let hosts = Hosts::OriginalDst(OriginalDst::default());
    Cluster {
        http: Some(HttpOptions::passthrough(PASSTHROUGH_IDLE)),
        ..Cluster::bare(names::PASSTHROUGH, because, hosts, mesh, pool)
    }
}

/// The source address of connections to the workload.
pub(super) fn inbound_source(ip_mode: IpMode) -> Source {
    match ip_mode {
        IpMode::V4 => Source { address: INBOUND_SOURCE_V4, extra: None },
        IpMode::V6 => Source { address: INBOUND_SOURCE_V6, extra: None },
        IpMode::Dual => Source { address: INBOUND_SOURCE_V4, extra: Some(INBOUND_SOURCE_V6) },
    }
}

impl Cluster {
    /// A cluster of these addresses, in plain text and HTTP/1.1, with the mesh's connection pool:
    /// for what is no service, such as something that a filter has to ask. Its fields can be changed
    /// before it is handed on ([`super::UpstreamTls::to_server`] is TLS with the system's roots).
    pub fn at_addresses(
        name: &str,
        because: Because,
        addresses: impl IntoIterator<Item = (IpAddr, u16)>,
        mesh: &MeshSettings,
    ) -> Cluster {
        let host =
            |(ip, port): (IpAddr, u16)| HostAddress { address: EndpointAddress::Ip(ip), port };
        let hosts = Hosts::Static(addresses.into_iter().map(host).collect());
        Cluster::bare(name, because, hosts, mesh, mesh.default_connection_pool.as_ref())
    }

    /// The same for names, which Envoy resolves, each address being a host.
    pub fn at_names(
        name: &str,
        because: Because,
        names: impl IntoIterator<Item = (Arc<str>, u16)>,
        mesh: &MeshSettings,
        view: &Viewer<'_>,
    ) -> Cluster {
        let cluster: Arc<str> = name.into();
        let host = |(name, port)| HostAddress { address: EndpointAddress::Hostname(name), port };
        let assignment = Assignment::of_hosts(&cluster, names.into_iter().map(host));
        let hosts = Hosts::Dns(Dns::of(mesh, view, assignment));
        Cluster::bare(name, because, hosts, mesh, mesh.default_connection_pool.as_ref())
    }

    /// What all clusters have.
    pub(super) fn bare(
        name: &str,
        because: Because,
        hosts: Hosts,
        mesh: &MeshSettings,
        pool: Option<&ConnectionPool>,
    ) -> Cluster {
        let algorithm = match hosts {
            Hosts::OriginalDst(_) => Algorithm::ByDestination,
            Hosts::Eds(_) | Hosts::Dns(_) | Hosts::Static(_) => Algorithm::RoundRobin(None),
        };
        Cluster {
            name: name.into(),
            because,
            stat_name: names::alt_stat_name(name),
            hosts,
            connect_timeout: pool::connect_timeout(mesh, pool),
            limits: Some(Limits::of(pool, None)),
            keepalive: pool::keepalive(mesh, pool),
            outlier: None,
            balancing: Balancing { algorithm, hosts: None },
            http: None,
            tls: None,
            proxy_protocol: None,
            source: None,
            about: None,
        }
    }
}
