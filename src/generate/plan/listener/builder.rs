//! From drafts of chains to chains: the filters are asked, what they bring is collected, and what all
//! listeners of one proxy have in common is put in.

use super::matches::plain_http;
use super::{AccessLog, Action, Chain, ChainMatch, HttpManager, Routes, TcpProxy, TlsTermination};
use crate::generate::Viewer;
use crate::generate::filters::{Extra, Ground, Side, Site};
use crate::generate::plan::Because;
use crate::model::{MeshSettings, Protocol};
use std::sync::Arc;
use std::time::Duration;

/// How long a TLS handshake may take on edge and egress chains (Istio's default).
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);

/// What the listeners of one proxy have in common, decided once.
#[derive(Debug, Clone)]
pub struct ListenerDefaults<'a> {
    /// The mesh's settings.
    pub mesh: &'a MeshSettings,
    /// Whose listeners they are.
    pub view: &'a Viewer<'a>,
    /// Where connections and requests are logged.
    pub access_log: Option<Arc<AccessLog>>,
}

impl<'a> ListenerDefaults<'a> {
    /// What listeners have in common in this mesh, for whoever looks.
    pub fn new(mesh: &'a MeshSettings, view: &'a Viewer<'a>) -> ListenerDefaults<'a> {
        let access_log = mesh.access_log.as_ref().map(|log| Arc::new(AccessLog::of(log)));
        ListenerDefaults { mesh, view, access_log }
    }

    /// What HTTP in clear text looks like to the HTTP inspector.
    pub fn plain_http(&self) -> &'static [&'static str] {
        plain_http(self.view.options().http10)
    }
}

/// A chain that may still get into the way of others.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Its name, empty where Istio gives none.
    pub name: String,
    /// Which connections it takes.
    pub matches: ChainMatch,
    /// What it does with them.
    pub does: Does,
    /// TLS that ends here.
    pub tls: Option<TlsTermination>,
    /// The path of the document that its metadata names.
    pub document: Option<String>,
    /// Why it is there.
    pub because: Because,
}

impl Draft {
    /// A chain without name, TLS and document.
    pub fn new(matches: ChainMatch, does: Does, because: Because) -> Draft {
        Draft { name: String::new(), matches, does, tls: None, document: None, because }
    }

    /// With a name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Draft {
        Draft { name: name.into(), ..self }
    }

    /// With TLS that ends here.
    #[must_use]
    pub fn ending(self, tls: Option<TlsTermination>) -> Draft {
        Draft { tls, ..self }
    }

    /// With metadata that names a document.
    #[must_use]
    pub fn documented(self, document: Option<String>) -> Draft {
        Draft { document, ..self }
    }
}

/// What a draft does with connections.
#[derive(Debug, Clone)]
pub enum Does {
    /// Serves HTTP.
    Http(HttpWish),
    /// Passes bytes on.
    Tcp(TcpProxy),
}

/// A connection manager as far as it depends on its chain.
#[derive(Debug, Clone)]
pub struct HttpWish {
    /// Prefix of its statistics.
    pub stat_prefix: String,
    /// What the port is declared to speak.
    pub protocol: Protocol,
    /// Where its routes come from.
    pub routes: Routes,
}

impl Does {
    /// HTTP with a route configuration of this name.
    pub fn http(stat_prefix: String, protocol: Protocol, route: String) -> Does {
        Does::Http(HttpWish { stat_prefix, protocol, routes: Routes::Named(route) })
    }

    /// Whether both do the same with a connection.
    pub(super) fn is_same(&self, other: &Does) -> bool {
        match (self, other) {
            (Does::Http(a), Does::Http(b)) => a.routes == b.routes && a.protocol == b.protocol,
            (Does::Tcp(a), Does::Tcp(b)) => a.leads_where(b),
            (Does::Http(_), Does::Tcp(_)) | (Does::Tcp(_), Does::Http(_)) => false,
        }
    }

    /// The name of the route configuration that is asked for.
    pub(super) fn route(&self) -> Option<&str> {
        match self {
            Does::Http(HttpWish { routes: Routes::Named(name), .. }) => Some(name),
            Does::Http(HttpWish { routes: Routes::Inline(_), .. }) | Does::Tcp(_) => None,
        }
    }

    /// What is spoken on it.
    fn protocol(&self) -> Protocol {
        match self {
            Does::Http(wish) => wish.protocol,
            Does::Tcp(proxy) => proxy.protocol,
        }
    }
}

/// Completes the chains of one proxy's listeners.
pub struct Builder<'a> {
    ground: Ground<'a>,
    side: Side,
    /// What they have in common.
    pub defaults: ListenerDefaults<'a>,
    /// What filters brought so far.
    pub extra: Extra,
}

impl<'a> Builder<'a> {
    /// A builder for this side of a proxy.
    pub fn new(ground: Ground<'a>, side: Side) -> Builder<'a> {
        let defaults = ListenerDefaults::new(ground.mesh(), ground.view());
        Builder { ground, side, defaults, extra: Extra::default() }
    }

    /// The chain of a draft, on the listener with this name and port.
    pub fn chain(&mut self, listener: &str, port: u16, draft: Draft) -> Chain {
        let Draft { name, matches, does, tls, document, because } = draft;
        let site = Site {
            ground: self.ground,
            side: self.side,
            listener,
            port,
            protocol: does.protocol(),
            matches: &matches,
            tls: tls.as_ref(),
            because: &because,
        };
        let filters = self.ground.filters();
        let action = match does {
            Does::Tcp(proxy) => Action::Tcp(Arc::new(proxy)),
            Does::Http(wish) => {
                let of_requests = filters.of_requests(&site, &mut self.extra);
                let manager = HttpManager::new(wish, self.side, of_requests, &self.defaults);
                Action::Http(Arc::new(manager))
            }
        };
        let filters = filters.of_connections(&site, &action, &mut self.extra);
        let handshake_timeout = match self.side {
            Side::Edge | Side::Egress => Some(HANDSHAKE_TIMEOUT),
            Side::Inbound => None,
        };
        Chain { name, matches, action, filters, tls, handshake_timeout, document, because }
    }
}
