//! Listeners, decided: where each stands, what its chains take and what they do with it.
//!
//! `edge` plans those of routers, `egress` what a sidecar's workload sends, `inbound` what it gets.
//! Each of the three makes [`Draft`]s of chains, because chains may still get into each other's way;
//! the chains that are left are completed by the [`Builder`], which asks the filters.

mod access_log;
mod builder;
pub mod edge;
pub mod egress;
mod http;
pub mod inbound;
mod matches;
mod tcp;
#[cfg(test)]
mod tests;
mod tls;

pub use access_log::{AccessLog, LogFormat};
pub use builder::{Builder, Does, Draft, HttpWish, ListenerDefaults};
pub use http::{ClientCertificateHeader, Http1, HttpManager, InlineRoutes, Routes};
pub use matches::{ChainMatch, Claim, MatchTable, Transport};
pub use tcp::{TcpProxy, TcpTunnel};
pub use tls::{Authorities, Certificates, ClientCheck, TlsParameters, TlsTermination, Unusable};

use super::Because;
use crate::generate::filters::Filter;
use crate::generate::names::Direction;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// One listener.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// Address, or `unix://` and a path.
    pub bind: String,
    /// Port, 0 for a socket.
    pub port: u16,
    /// How connections come to it.
    pub intake: Intake,
    /// Which way they go.
    pub direction: Direction,
    /// What looks at a connection before a chain is chosen, in order.
    pub filters: Vec<ListenerFilter>,
    /// How long that may take before the connection goes on without; zero is without limit, `None`
    /// leaves it to Envoy.
    pub filters_timeout: Option<Duration>,
    /// Its chains; their matches are distinct.
    pub chains: Vec<Chain>,
    /// What takes the connections that no chain takes.
    pub default_chain: Option<Chain>,
    /// Where connections are logged that nothing takes.
    pub access_log: Option<Arc<AccessLog>>,
    /// Why it is there.
    pub because: Because,
}

/// How connections come to a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Intake {
    /// Clients dial it.
    Dialled,
    /// Clients dial something else and are redirected to it.
    Redirected {
        /// The redirection leaves addresses as they are.
        transparent: bool,
        /// Connections with a listener of their own are handed over to that.
        hands_over: bool,
    },
    /// A capture listener hands connections over; it opens no port.
    HandedOver,
}

/// What looks at a connection before a chain is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenerFilter {
    /// Restores where the client meant to go.
    OriginalDestination,
    /// Dials on with the client's address.
    OriginalSource,
    /// Reads the SNI; only of connections to these ports, when it names any.
    TlsInspector {
        /// The ports, empty for all.
        only: BTreeSet<u16>,
    },
    /// Finds out whether clear text is HTTP, unless it goes to one of these ports.
    HttpInspector {
        /// The ports.
        except: BTreeSet<u16>,
    },
}

/// One filter chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Chain {
    /// Its name, empty where Istio gives none.
    pub name: String,
    /// Which connections it takes.
    pub matches: ChainMatch,
    /// What it does with them.
    pub action: Action,
    /// The filters that do it, in order; the last one is the action's own.
    pub filters: Vec<Filter>,
    /// TLS that ends here.
    pub tls: Option<TlsTermination>,
    /// How long the TLS handshake may take; `None` leaves it to Envoy.
    pub handshake_timeout: Option<Duration>,
    /// The path of the document that its metadata names.
    pub document: Option<String>,
    /// Why it is there.
    pub because: Because,
}

/// What a filter chain does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Serves HTTP.
    Http(Arc<HttpManager>),
    /// Passes bytes on.
    Tcp(Arc<TcpProxy>),
}

/// The inspectors that chains need, so that what they match by is known when a chain is chosen.
fn inspectors(chains: &[Chain]) -> Vec<ListenerFilter> {
    let mut filters = Vec::new();
    if chains.iter().any(|chain| chain.matches.needs_tls_inspector()) {
        filters.push(ListenerFilter::TlsInspector { only: BTreeSet::new() });
    }
    if chains.iter().any(|chain| chain.matches.needs_http_inspector()) {
        filters.push(ListenerFilter::HttpInspector { except: BTreeSet::new() });
    }
    filters
}
