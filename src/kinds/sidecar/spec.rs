//! Sidecar as users write it.

use crate::kinds::server_tls::ServerTlsSettings;
use crate::kinds::traffic_policy::ConnectionPool;
use crate::kinds::values::{Destination, WorkloadSelector};
use schemars::JsonSchema;
use serde::Deserialize;

/// What the proxies of workloads see and listen on.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "Sidecar")]
pub struct Spec {
    /// Workloads of the namespace that it is for; all when unset.
    pub workload_selector: Option<WorkloadSelector>,
    /// Inbound listeners; they replace those of the workload's services.
    pub ingress: Vec<Ingress>,
    /// Outbound listeners and what they see; everything when there are none.
    pub egress: Vec<Egress>,
    /// Limits of connections to the workload.
    pub inbound_connection_pool: Option<ConnectionPool>,
    /// What happens to unknown destinations.
    pub outbound_traffic_policy: Option<OutboundPolicy>,
}

/// An inbound listener.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    /// Its port.
    pub port: Port,
    /// IP address to bind.
    #[serde(default)]
    pub bind: String,
    /// How traffic gets to the listener.
    #[serde(default)]
    pub capture_mode: Capture,
    /// Where the workload itself listens: an address of the workload and a port, or `unix://` and
    /// a path; the same port when unset.
    #[serde(default)]
    pub default_endpoint: String,
    /// TLS that the proxy ends for the workload.
    pub tls: Option<ServerTlsSettings>,
    /// Limits of connections to the workload.
    pub connection_pool: Option<ConnectionPool>,
}

/// An outbound listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Egress {
    /// Its port; the listener without one comes last and is for all other ports.
    pub port: Option<Port>,
    /// Address to bind, or `unix://` and a path.
    pub bind: String,
    /// How traffic gets to the listener.
    pub capture_mode: Capture,
    /// Services that are seen: `namespace/host`; `.` is the own namespace, `*` any, and a leading
    /// `~` takes out.
    #[schemars(required)]
    pub hosts: Vec<String>,
}

/// The port of a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "SidecarPort")]
pub struct Port {
    /// Its number; 0 with a Unix socket.
    pub number: u16,
    /// What is spoken; sniffed when unset.
    pub protocol: String,
    /// Its name.
    pub name: String,
    /// Not allowed on Sidecars.
    #[schemars(extend("deprecated" = true))]
    pub target_port: u32,
}

/// How traffic gets to a listener.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Capture {
    /// As the proxy is set up.
    #[default]
    Default,
    /// Traffic is redirected by iptables.
    Iptables,
    /// Clients connect to the listener itself.
    None,
}

/// What happens to unknown destinations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OutboundPolicy {
    /// Whether they can be reached.
    pub mode: OutboundPolicyMode,
    /// Where traffic to them goes instead.
    pub egress_proxy: Option<Destination>,
}

/// Whether unknown destinations can be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OutboundPolicyMode {
    /// Only known services can be reached.
    #[default]
    RegistryOnly,
    /// Unknown destinations are dialled as they are.
    AllowAny,
}
