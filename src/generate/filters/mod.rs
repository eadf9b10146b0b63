//! Filters of requests and of connections: one file each, and one line in [`http::ORDER`] or
//! [`network::ORDER`]. The order of a table is the order in which traffic passes its filters.
//!
//! A filter looks at its site and decides there; what it decided is a value that can spell itself
//! ([`Settings`]). So planned chains and routes carry filters without seeing protobuf, and what a
//! filter decides and how Envoy spells that stand beside each other in one file. What a filter needs
//! elsewhere (a cluster, a secret, an extension configuration), and what is to be said about it, it
//! hands back as [`Extra`].

mod extra;
pub mod http;
pub mod network;
mod site;
#[cfg(test)]
mod tests;

pub use extra::{ExtensionConfig, Extra};
pub use http::HttpFilter;
pub use network::NetworkFilter;
pub use site::{Ground, RouteSite, Side, Site};

use super::plan::listener::Action;
use crate::xds::pb::Any;
use std::any;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What a filter decided. Equal settings are spelled alike.
pub trait Settings: fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The configuration in Envoy's terms.
    fn spell(&self) -> Any;
}

/// Settings of any filter.
trait AnySettings: fmt::Debug + Send + Sync {
    fn spell(&self) -> Any;
    fn is_same(&self, other: &dyn AnySettings) -> bool;
    fn as_any(&self) -> &dyn any::Any;
}

impl<T: Settings> AnySettings for T {
    fn spell(&self) -> Any {
        Settings::spell(self)
    }

    fn is_same(&self, other: &dyn AnySettings) -> bool {
        other.as_any().downcast_ref::<T>().is_some_and(|other| self == other)
    }

    fn as_any(&self) -> &dyn any::Any {
        self
    }
}

/// A filter in a chain, or its settings on a route.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Envoy's name of it.
    pub name: &'static str,
    settings: Arc<dyn AnySettings>,
}

impl Filter {
    fn new(name: &'static str, settings: Decided) -> Filter {
        Filter { name, settings: settings.0 }
    }

    /// The configuration in Envoy's terms.
    pub fn spell(&self) -> Any {
        self.settings.spell()
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        self.name == other.name && self.settings.is_same(&*other.settings)
    }
}

impl Eq for Filter {}

impl Hash for Filter {
    /// The name stands for the settings: equal filters have equal names, which is all that a hash
    /// must keep to.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Settings that a filter hands back.
#[derive(Debug)]
pub struct Decided(Arc<dyn AnySettings>);

impl<T: Settings> From<T> for Decided {
    fn from(settings: T) -> Decided {
        Decided(Arc::new(settings))
    }
}

/// The filters that chains and routes are made with.
#[derive(Clone, Copy)]
pub struct Filters {
    /// Filters of requests, in chain order.
    pub http: &'static [&'static dyn HttpFilter],
    /// Filters of connections, in chain order.
    pub network: &'static [&'static dyn NetworkFilter],
}

impl Default for Filters {
    fn default() -> Filters {
        Filters { http: http::ORDER, network: network::ORDER }
    }
}

impl PartialEq for Filters {
    fn eq(&self, other: &Filters) -> bool {
        std::ptr::eq(self.http, other.http) && std::ptr::eq(self.network, other.network)
    }
}

impl Eq for Filters {}

impl Hash for Filters {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.http.as_ptr().hash(state);
        self.network.as_ptr().hash(state);
    }
}

impl fmt::Debug for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let http = self.http.iter().map(|filter| filter.name());
        f.debug_list().entries(http.chain(self.network.iter().map(|filter| filter.name()))).finish()
    }
}

impl Filters {
    /// The HTTP filters of a connection manager.
    pub fn of_requests(&self, site: &Site<'_>, extra: &mut Extra) -> Vec<Filter> {
        let decide = |f: &&dyn HttpFilter| Some(Filter::new(f.name(), f.in_chain(site, extra)?));
        self.http.iter().filter_map(decide).collect()
    }

    /// The network filters of a chain.
    pub fn of_connections(
        &self,
        site: &Site<'_>,
        action: &Action,
        extra: &mut Extra,
    ) -> Vec<Filter> {
        let decide =
            |f: &&dyn NetworkFilter| Some(Filter::new(f.name(), f.in_chain(site, action, extra)?));
        self.network.iter().filter_map(decide).collect()
    }

    /// The settings of HTTP filters for the routes of a rule.
    pub fn on_route(&self, site: &RouteSite<'_>, extra: &mut Extra) -> Vec<Filter> {
        let decide = |f: &&dyn HttpFilter| Some(Filter::new(f.name(), f.on_route(site, extra)?));
        self.http.iter().filter_map(decide).collect()
    }
}

/// The `typed_per_filter_config` of a route with these settings.
pub fn route_config(settings: &[Filter]) -> HashMap<String, Any> {
    settings.iter().map(|filter| (filter.name.to_owned(), filter.spell())).collect()
}
