//! Clusters, decided. `service` says which lead out of a proxy and what holds for them, `inbound`
//! which lead to its own workload, `common` which every proxy has and how to make one for
//! something else; each other module decides one concern of a cluster.
//!
//! Policies are looked at here and nowhere else: what a cluster holds is what is to be spelled.

mod about;
mod common;
mod http;
mod inbound;
mod load_balancer;
mod outlier;
mod policy;
mod pool;
mod service;
mod tls;

pub use about::About;
pub use common::of_every_proxy;
pub use http::{HostTls, HttpOptions, HttpProtocol};
pub use inbound::clusters as inbound_clusters;
pub use load_balancer::{Algorithm, Balancing, HostBalancing, LocalityUse, SlowStart};
pub use outlier::{LocalErrors, Outlier};
pub use policy::{Policy, tcp_idle_timeout, tunnel};
pub use pool::{Keepalive, Limits, Percent, RetryBudget};
pub use service::clusters as service_clusters;
pub use tls::{Identity, Trust, UpstreamTls};

use super::assignment::{Assignment, Recipe};
use super::{Because, secret};
use crate::generate::Viewer;
use crate::model::{EndpointAddress, MeshSettings, ProxyProtocolVersion, Secrets};
use std::sync::Arc;
use std::time::Duration;

/// What a cluster may depend on beside its service and the rule for that.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The mesh's settings.
    pub mesh: &'a MeshSettings,
    /// Who gets the cluster.
    pub view: &'a Viewer<'a>,
    /// Certificates and keys.
    pub secrets: &'a Secrets,
}

/// One cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Its name.
    pub name: Arc<str>,
    /// Why it is there.
    pub because: Because,
    /// Its name in statistics.
    pub stat_name: String,
    /// Where its hosts come from.
    pub hosts: Hosts,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// Circuit breakers; without any, Envoy's default limits hold.
    pub limits: Option<Limits>,
    /// TCP keepalive, where it is on.
    pub keepalive: Option<Keepalive>,
    /// Ejection of failing hosts.
    pub outlier: Option<Outlier>,
    /// How hosts are chosen.
    pub balancing: Balancing,
    /// What is spoken, where Envoy is told anything about it.
    pub http: Option<HttpOptions>,
    /// TLS to the hosts; `None` is plain text.
    pub tls: Option<Box<UpstreamTls>>,
    /// The PROXY protocol header before everything else.
    pub proxy_protocol: Option<ProxyProtocolVersion>,
    /// Where connections come from, where it matters.
    pub source: Option<Source>,
    /// What the cluster says about itself.
    pub about: Option<About>,
}

/// How Envoy finds the hosts of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Hosts {
    /// By EDS, which makes them of the endpoints of the service after this recipe.
    Eds(Recipe),
    /// By the original destination of each connection.
    OriginalDst(OriginalDst),
    /// By DNS.
    Dns(Dns),
    /// These; none is a cluster that swallows what comes.
    Static(Vec<HostAddress>),
}

/// Hosts that are original destinations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OriginalDst {
    /// The port to connect to in place of the original one.
    pub port: Option<u16>,
    /// After what time a host that is not used is forgotten, if not after Envoy's default.
    pub forgotten_after: Option<Duration>,
}

/// Hosts that are resolved by DNS.
#[derive(Debug, Clone, PartialEq)]
pub struct Dns {
    /// Which addresses are asked for.
    pub family: DnsFamily,
    /// How often, where the answer says nothing about it.
    pub refresh: Duration,
    /// Whether all addresses of the only name are one host.
    pub one_host: bool,
    /// The names.
    pub assignment: Assignment,
}

/// Which addresses are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// An address to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostAddress {
    /// An IP address, a name, or a socket.
    pub address: EndpointAddress,
    /// The port, 0 for a socket.
    pub port: u16,
}

/// Local addresses of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The address.
    pub address: &'static str,
    /// One of the other family.
    pub extra: Option<&'static str>,
}

impl Cluster {
    /// The recipe of its assignments, if its endpoints come by EDS.
    pub fn recipe(&self) -> Option<&Recipe> {
        match &self.hosts {
            Hosts::Eds(recipe) => Some(recipe),
            Hosts::OriginalDst(_) | Hosts::Dns(_) | Hosts::Static(_) => None,
        }
    }

    /// The secrets that its TLS context refers to.
    pub fn secrets(&self) -> impl Iterator<Item = &secret::Secret> {
        self.tls.iter().flat_map(|tls| tls.secrets())
    }
}
