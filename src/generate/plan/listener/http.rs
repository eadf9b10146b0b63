//! The HTTP connection manager: its settings by where it stands.

use super::{AccessLog, HttpWish, ListenerDefaults};
use crate::generate::filters::{Filter, Side};
use crate::model::{PathNormalization, Protocol};
use std::sync::Arc;
use std::time::Duration;

/// The name that Istio's proxies answer with on the way in and on gateways.
const SERVER_NAME: &str = "istio-envoy";

/// An HTTP connection manager.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HttpManager {
    /// Prefix of its statistics.
    pub stat_prefix: String,
    /// Where its routes come from.
    pub routes: Routes,
    /// Its HTTP filters, in order.
    pub filters: Vec<Filter>,
    /// Where requests are logged.
    pub access_log: Option<Arc<AccessLog>>,
    /// How long a connection may be idle; `None` leaves it to Envoy.
    pub idle_timeout: Option<Duration>,
    /// What paths are normalised to before they are matched.
    pub paths: PathNormalization,
    /// Settings of HTTP/1.1, where there are any.
    pub http1: Option<Http1>,
    /// Whether settings of HTTP/2 are written out.
    pub http2: bool,
    /// The name that it answers with; `None` leaves it to Envoy.
    pub server_name: Option<&'static str>,
    /// Whether the peer's address is that of the client.
    pub peer_is_client: bool,
    /// Trusted proxies in front of it.
    pub trusted_hops: u32,
    /// What it tells upstreams about client certificates, where it tells anything.
    pub client_certificate: Option<ClientCertificateHeader>,
}

/// Settings of HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Http1 {
    /// Whether HTTP/1.0 is served too.
    pub accepts_http10: bool,
    /// Whether a client may ask for a whole URL, as clients of a forward proxy do.
    pub takes_absolute_urls: bool,
}

/// What upstreams are told about the client's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientCertificateHeader {
    /// Its names, behind what others have said.
    Append,
    /// Its names and the certificate itself, instead of what others have said.
    Replace,
}

/// Where the routes of a connection manager come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Routes {
    /// A route configuration of this name, by RDS.
    Named(String),
    /// These.
    Inline(InlineRoutes),
}

/// Routes that send everything to the workload; VirtualServices have no say there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InlineRoutes {
    /// The cluster, also the name of the routes.
    pub cluster: String,
    /// The name of the virtual host.
    pub virtual_host: String,
    /// The operation in traces.
    pub operation: String,
    /// Whether a request that the workload cannot have seen is sent again.
    pub retries: bool,
}

impl HttpManager {
    /// The connection manager that is wished for, on this side.
    pub fn new(
        wish: HttpWish,
        side: Side,
        filters: Vec<Filter>,
        defaults: &ListenerDefaults<'_>,
    ) -> HttpManager {
        let HttpWish { stat_prefix, protocol, routes } = wish;
        let options = defaults.view.options();
        let forward_proxy = protocol == Protocol::HttpProxy;
        let with_http1 = options.http10 || side == Side::Edge || forward_proxy;
        HttpManager {
            stat_prefix,
            routes,
            filters,
            access_log: defaults.access_log.clone(),
            idle_timeout: options.idle_timeout,
            paths: defaults.mesh.path_normalization,
            http1: with_http1.then_some(Http1 {
                accepts_http10: options.http10,
                takes_absolute_urls: forward_proxy,
            }),
            http2: side == Side::Inbound && protocol.is_http2(),
            server_name: match side {
                Side::Egress => None,
                Side::Inbound | Side::Edge => Some(SERVER_NAME),
            },
            peer_is_client: side == Side::Edge,
            trusted_hops: match side {
                Side::Egress | Side::Inbound => 0,
                Side::Edge => defaults.mesh.num_trusted_proxies,
            },
            client_certificate: match side {
                Side::Egress => None,
                Side::Inbound => Some(ClientCertificateHeader::Append),
                Side::Edge => Some(ClientCertificateHeader::Replace),
            },
        }
    }
}
