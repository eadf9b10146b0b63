//! Sidecars: what a workload's proxy sees and listens on.

use super::{
    ConnectionPool, Hostname, Namespace, Origin, OutboundTrafficPolicy, Protocol, Selector,
    ServerTls,
};
use crate::diag::Span;
use std::net::IpAddr;
use std::sync::Arc;

/// One Sidecar document.
#[derive(Debug, Clone, PartialEq)]
pub struct Sidecar {
    /// The document.
    pub origin: Origin,
    /// Labels of the workloads it is for; `None` is the whole namespace.
    pub selector: Option<Selector>,
    /// Outbound listeners; empty behaves as one catch-all with `*/*`.
    pub egress: Vec<EgressListener>,
    /// Inbound listeners; when there are any they replace those of the services.
    pub ingress: Vec<IngressListener>,
    /// What happens to unknown destinations; `None` is the mesh's policy.
    pub outbound_traffic_policy: Option<OutboundTrafficPolicy>,
    /// Connection pool of the inbound clusters.
    pub inbound_connection_pool: Option<ConnectionPool>,
}

/// The port of a Sidecar listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerPort {
    /// Number; 0 with a Unix socket.
    pub number: u16,
    /// What is spoken.
    pub protocol: Protocol,
    /// Its name.
    pub name: Arc<str>,
}

/// `captureMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaptureMode {
    /// What the proxy's interception mode says.
    Default,
    /// Traffic is redirected to the proxy.
    Iptables,
    /// The listener binds its address itself.
    None,
}

/// One egress listener.
#[derive(Debug, Clone, PartialEq)]
pub struct EgressListener {
    /// Its port; `None` for the catch-all, which comes last.
    pub port: Option<ListenerPort>,
    /// Address or `unix://` path to bind.
    pub bind: Option<Arc<str>>,
    /// How traffic gets there.
    pub capture_mode: CaptureMode,
    /// What it imports, in order.
    pub hosts: Vec<HostImport>,
    /// Where it stands.
    pub span: Span,
}

/// One entry of `egress[].hosts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostImport {
    /// Which namespace.
    pub namespace: EgressNamespace,
    /// Which hosts.
    pub host: Hostname,
    /// Whether the entry takes out (`~ns/host`) instead of in.
    pub exclude: bool,
}

/// The namespace part of a host import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EgressNamespace {
    /// `*`.
    Any,
    /// `.`: the namespace of the scope, which for an inherited root Sidecar is the proxy's.
    Own,
    /// A name.
    Named(Namespace),
}

/// One ingress listener.
#[derive(Debug, Clone, PartialEq)]
pub struct IngressListener {
    /// Its port.
    pub port: ListenerPort,
    /// Address to bind.
    pub bind: Option<Arc<str>>,
    /// How traffic gets there.
    pub capture_mode: CaptureMode,
    /// Where the application listens; `None` is the same port.
    pub default_endpoint: Option<DefaultEndpoint>,
    /// TLS termination at the sidecar.
    pub tls: Option<ServerTls>,
    /// Connection pool of its cluster.
    pub connection_pool: Option<ConnectionPool>,
    /// Where it stands.
    pub span: Span,
}

/// `defaultEndpoint`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultEndpoint {
    /// A loopback address and port.
    Loopback(IpAddr, u16),
    /// The workload's own address (`0.0.0.0:p`, `[::]:p`).
    Instance(u16),
    /// A Unix socket path.
    Pipe(Arc<str>),
}
