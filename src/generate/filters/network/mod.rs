//! Filters of connections: one file each, one line in [`ORDER`].

mod http_connection_manager;
mod mongo_proxy;
mod tcp_proxy;

use super::{Decided, Extra, Site};
use crate::generate::plan::listener::Action;

/// A filter of connections.
pub trait NetworkFilter: Sync {
    /// Envoy's name of it.
    fn name(&self) -> &'static str;

    /// Its settings in a chain that does this with its connections, `None` where it does not
    /// belong.
    fn in_chain(&self, site: &Site<'_>, action: &Action, extra: &mut Extra) -> Option<Decided>;
}

/// Every filter of connections, in chain order. A chain ends with what its action is: the HTTP
/// connection manager or the TCP proxy.
pub const ORDER: &[&dyn NetworkFilter] = &[
    &mongo_proxy::MongoProxy,
    &http_connection_manager::HttpConnectionManager,
    &tcp_proxy::TcpProxy,
];
