//! VirtualServices: which rules apply to which hosts, where.

use super::{Hostname, HttpRule, ObjectName, Origin, TcpRule, TlsRule, Visibility};
use crate::diag::Span;
use std::fmt;

/// Where a rule applies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GatewayRef {
    /// On sidecars (`mesh`).
    Mesh,
    /// On proxies that run this Gateway.
    Gateway(ObjectName),
}

impl fmt::Display for GatewayRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatewayRef::Mesh => f.write_str("mesh"),
            GatewayRef::Gateway(name) => name.fmt(f),
        }
    }
}

/// One VirtualService. In a [`super::Snapshot`] delegates are merged into their roots, so each
/// has hosts and no rule delegates.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualService {
    /// The document.
    pub origin: Origin,
    /// Hosts, short names expanded. Empty only for a delegate (before `compile`).
    pub hosts: Vec<Hostname>,
    /// Where it applies; an empty list in YAML is `[mesh]` here.
    pub gateways: Vec<GatewayRef>,
    /// Where each of them is named; empty when none is.
    pub gateway_spans: Vec<Span>,
    /// Who may see it.
    pub visibility: Visibility,
    /// HTTP rules in order.
    pub http: Vec<HttpRule>,
    /// TLS rules in order.
    pub tls: Vec<TlsRule>,
    /// TCP rules in order.
    pub tcp: Vec<TcpRule>,
}

impl VirtualService {
    /// Whether it is a fragment for others.
    pub fn is_delegate(&self) -> bool {
        self.hosts.is_empty()
    }
}
