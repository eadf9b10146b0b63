//! Services: what traffic can be sent to.

use super::{Endpoint, Hostname, Labels, Namespace, Origin, Visibility};
use crate::diag::Span;
use std::net::IpAddr;
use std::sync::Arc;

/// One hostname of one namespace, with all that ServiceEntries of that namespace say about it.
///
/// ServiceEntries with the same namespace and host are merged by `compile` when they agree in
/// resolution, location, labels and visibility (ports united by number, the older one first);
/// otherwise the older one counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// The host, as written (a wildcard stays a wildcard).
    pub hostname: Hostname,
    /// The namespace of the document.
    pub namespace: Namespace,
    /// The (oldest) document behind it.
    pub origin: Origin,
    /// The labels of the document itself.
    pub labels: Labels,
    /// Ports in document order; numbers are unique.
    pub ports: Vec<ServicePort>,
    /// Virtual addresses; empty when the service has none.
    pub addresses: Vec<Address>,
    /// How addresses of endpoints are found.
    pub resolution: Resolution,
    /// Inside or outside the mesh.
    pub location: Location,
    /// Who may see it.
    pub visibility: Visibility,
    /// `spec.subjectAltNames`, sorted.
    pub subject_alt_names: Vec<String>,
    /// The endpoints that clusters and listeners are made of: those of every resolution but STATIC.
    /// The endpoints of STATIC services travel by EDS and stand apart, in [`super::Endpoints`],
    /// which has these too.
    pub endpoints: Arc<[Endpoint]>,
}

impl Service {
    /// The port with this number (UDP ports are not found: Envoy gets no cluster for them).
    pub fn port(&self, number: u16) -> Option<&ServicePort> {
        self.ports.iter().find(|p| p.number == number && p.protocol != Protocol::Udp)
    }

    /// The ports that become clusters and listeners.
    pub fn stream_ports(&self) -> impl Iterator<Item = &ServicePort> {
        self.ports.iter().filter(|p| p.protocol != Protocol::Udp)
    }
}

/// One port of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    /// The number that clients use.
    pub number: u16,
    /// Its name; endpoints refer to it.
    pub name: Arc<str>,
    /// What is spoken on it.
    pub protocol: Protocol,
    /// `targetPort` where it is written.
    pub target_port: Option<u16>,
    /// Where the port is defined.
    pub span: Span,
}

/// The protocol of a port, as Istio reads protocol names (case-insensitively).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// HTTP/1.1.
    Http,
    /// HTTP/2 in clear text.
    Http2,
    /// gRPC.
    Grpc,
    /// gRPC-Web.
    GrpcWeb,
    /// An HTTP forward proxy.
    HttpProxy,
    /// HTTPS: opaque TLS on services, terminated on gateways.
    Https,
    /// TLS.
    Tls,
    /// Plain TCP.
    Tcp,
    /// MongoDB.
    Mongo,
    /// Redis.
    Redis,
    /// MySQL.
    MySql,
    /// UDP: no configuration is generated.
    Udp,
    /// Not declared: sniffed.
    Auto,
}

impl Protocol {
    /// Reads a protocol name; empty and unknown names are [`Protocol::Auto`].
    pub fn parse(text: &str) -> Protocol {
        match text.to_ascii_lowercase().as_str() {
            "http" => Protocol::Http,
            "http2" => Protocol::Http2,
            "grpc" => Protocol::Grpc,
            "grpc-web" => Protocol::GrpcWeb,
            "http_proxy" => Protocol::HttpProxy,
            "https" => Protocol::Https,
            "tls" => Protocol::Tls,
            "tcp" => Protocol::Tcp,
            "mongo" => Protocol::Mongo,
            "redis" => Protocol::Redis,
            "mysql" => Protocol::MySql,
            "udp" => Protocol::Udp,
            _ => Protocol::Auto,
        }
    }

    /// Istio's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Http => "HTTP",
            Protocol::Http2 => "HTTP2",
            Protocol::Grpc => "GRPC",
            Protocol::GrpcWeb => "GRPC-Web",
            Protocol::HttpProxy => "HTTP_PROXY",
            Protocol::Https => "HTTPS",
            Protocol::Tls => "TLS",
            Protocol::Tcp => "TCP",
            Protocol::Mongo => "Mongo",
            Protocol::Redis => "Redis",
            Protocol::MySql => "MySQL",
            Protocol::Udp => "UDP",
            Protocol::Auto => "",
        }
    }

    /// HTTP that Envoy can read: an HTTP connection manager handles it.
    pub fn is_http(self) -> bool {
        match self {
            Protocol::Http
            | Protocol::Http2
            | Protocol::Grpc
            | Protocol::GrpcWeb
            | Protocol::HttpProxy => true,
            Protocol::Https
            | Protocol::Tls
            | Protocol::Tcp
            | Protocol::Mongo
            | Protocol::Redis
            | Protocol::MySql
            | Protocol::Udp
            | Protocol::Auto => false,
        }
    }

    /// HTTP over one multiplexed connection.
    pub fn is_http2(self) -> bool {
        matches!(self, Protocol::Http2 | Protocol::Grpc | Protocol::GrpcWeb)
    }

    /// TLS that is passed through with SNI visible.
    pub fn is_tls(self) -> bool {
        matches!(self, Protocol::Https | Protocol::Tls)
    }

    /// Bytes that a TCP proxy handles.
    pub fn is_tcp(self) -> bool {
        matches!(
            self,
            Protocol::Https
                | Protocol::Tls
                | Protocol::Tcp
                | Protocol::Mongo
                | Protocol::Redis
                | Protocol::MySql
        )
    }
}

/// A virtual address of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// One address.
    Ip(IpAddr),
    /// A network. Host networks (`/32`, `/128`) are [`Address::Ip`].
    Cidr(ipnet::IpNet),
}

/// `spec.resolution`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resolution {
    /// The connection's original destination.
    None,
    /// The endpoints written down.
    Static,
    /// DNS, all addresses.
    Dns,
    /// DNS, one address at a time.
    DnsRoundRobin,
    /// DNS of the requested name, at request time.
    DynamicDns,
}

/// `spec.location`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// Outside: no mutual TLS is assumed.
    MeshExternal,
    /// Inside.
    MeshInternal,
}
