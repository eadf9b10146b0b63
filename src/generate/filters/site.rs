//! Where a filter stands: all that it may go by.

use super::Filters;
use crate::generate::plan::Because;
use crate::generate::plan::listener::{ChainMatch, TlsTermination};
use crate::generate::targets::InboundSite;
use crate::generate::{Scope, Viewer};
use crate::model::{HttpRule, MeshSettings, Protocol, VirtualService};

/// A filter chain.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// What is known there.
    pub ground: Ground<'a>,
    /// The side of the proxy.
    pub side: Side,
    /// The name of the listener.
    pub listener: &'a str,
    /// The port that clients mean: of the listener, or of the workload behind it.
    pub port: u16,
    /// What is spoken.
    pub protocol: Protocol,
    /// Which connections the chain takes.
    pub matches: &'a ChainMatch,
    /// TLS that ends there.
    pub tls: Option<&'a TlsTermination>,
    /// Why the chain is there.
    pub because: &'a Because,
}

/// The routes of an HTTP rule in one place. They are shared by all chains and configurations that
/// they are in, so nothing of those is known here.
#[derive(Debug, Clone, Copy)]
pub struct RouteSite<'a> {
    /// The mesh's settings.
    pub mesh: &'a MeshSettings,
    /// Who looks.
    pub view: &'a Viewer<'a>,
    /// The side of the proxy.
    pub side: Side,
    /// The port of the listener, 0 for several.
    pub port: u16,
    /// The document.
    pub document: &'a VirtualService,
    /// Its rule.
    pub rule: &'a HttpRule,
}

/// The side of a proxy on which traffic passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Of a router: traffic from outside.
    Edge,
    /// Of a sidecar: what its workload sends.
    Egress,
    /// Of a sidecar: what its workload gets.
    Inbound,
}

/// What is known where a filter stands. What proxies share is decided without their workloads.
#[derive(Debug, Clone, Copy)]
pub enum Ground<'a> {
    /// What is seen, on the edge and on a sidecar's egress.
    Shared(Scope<'a>),
    /// The workload behind a sidecar.
    Own(InboundSite<'a>),
}

impl<'a> Ground<'a> {
    /// The mesh's settings.
    pub fn mesh(&self) -> &'a MeshSettings {
        match self {
            Ground::Shared(scope) => scope.mesh(),
            Ground::Own(site) => site.mesh(),
        }
    }

    /// Who looks.
    pub fn view(&self) -> &'a Viewer<'a> {
        match self {
            Ground::Shared(scope) => scope.view,
            Ground::Own(site) => site.view,
        }
    }

    /// The filters to be asked.
    pub fn filters(&self) -> Filters {
        match self {
            Ground::Shared(scope) => scope.filters,
            Ground::Own(site) => site.filters,
        }
    }
}
