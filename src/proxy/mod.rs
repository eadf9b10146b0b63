//! Who is asking: an Envoy node, understood.

mod node;

pub use node::{NodeDescription, NodeError};

use crate::model::{Labels, Locality, Namespace};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What a proxy says about itself, and what its WorkloadEntry adds. It has no id: two proxies with
/// equal values get the same resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Edge or sidecar.
    pub role: Role,
    /// Namespace whose configuration it gets.
    pub namespace: Namespace,
    /// Workload labels.
    pub labels: Labels,
    /// Its addresses, the first is the main one. Empty when a plain node id gave none.
    pub addresses: Vec<IpAddr>,
    /// DNS domain of its namespace, `default.svc.cluster.local`.
    pub domain: Arc<str>,
    /// Where it runs.
    pub locality: Locality,
    /// Its network, empty when unknown.
    pub network: Arc<str>,
    /// How traffic gets to it.
    pub interception: Interception,
    /// The rest of the metadata that changes configuration.
    pub options: Options,
}

/// The kind of proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// An edge proxy (Istio's `router`): it runs Gateways.
    Router,
    /// A proxy beside a workload.
    Sidecar,
}

/// `INTERCEPTION_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interception {
    /// iptables redirects traffic to the capture listeners.
    Redirect,
    /// iptables hands traffic over transparently.
    Tproxy,
    /// Nothing is intercepted: listeners bind real ports.
    None,
}

/// The address families of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpMode {
    /// IPv4 only, also when no address is known.
    V4,
    /// IPv6 only.
    V6,
    /// Both.
    Dual,
}

impl IpMode {
    /// The address that stands for all addresses.
    pub fn wildcard(self) -> &'static str {
        match self {
            IpMode::V4 | IpMode::Dual => "0.0.0.0",
            IpMode::V6 => "::",
        }
    }

    /// The loopback address.
    pub fn localhost(self) -> &'static str {
        match self {
            IpMode::V4 | IpMode::Dual => "127.0.0.1",
            IpMode::V6 => "::1",
        }
    }
}

/// Node metadata that changes listeners or clusters and is neither identity nor place.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Options {
    /// `HTTP_PROXY_PORT`: port of the HTTP forward proxy listener.
    pub http_proxy_port: Option<u16>,
    /// `IDLE_TIMEOUT` of connections.
    pub idle_timeout: Option<Duration>,
    /// `HTTP10`: accept HTTP/1.0.
    pub http10: bool,
    /// `UNPRIVILEGED_POD`: ports below 1024 cannot be bound.
    pub unprivileged: bool,
    /// `TLS_CLIENT_CERT_CHAIN`, `TLS_CLIENT_KEY`, `TLS_CLIENT_ROOT_CERT`: the workload's own
    /// certificates, for mutual TLS inside the mesh.
    pub client_certificates: Option<ClientCertificates>,
}

/// Certificate files on the proxy's machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientCertificates {
    /// Certificate chain.
    pub chain: Arc<str>,
    /// Private key.
    pub key: Arc<str>,
    /// Certificate authorities, empty for the system's.
    pub root: Arc<str>,
}

impl Proxy {
    /// The address families of the proxy's addresses.
    pub fn ip_mode(&self) -> IpMode {
        let v4 = self.addresses.iter().any(IpAddr::is_ipv4);
        let v6 = self.addresses.iter().any(IpAddr::is_ipv6);
        match (v4, v6) {
            (_, false) => IpMode::V4,
            (false, true) => IpMode::V6,
            (true, true) => IpMode::Dual,
        }
    }
}
