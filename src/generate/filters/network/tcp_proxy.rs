//! Passes bytes on; the last filter of chains that do.

use super::{Decided, Extra, NetworkFilter, Site};
use crate::generate::envoy;
use crate::generate::filters::Settings;
use crate::generate::plan::listener::{self, Action};
use crate::xds::pb::{self, Any};
use std::sync::Arc;

pub(super) struct TcpProxy;

impl NetworkFilter for TcpProxy {
    fn name(&self) -> &'static str {
        "envoy.filters.network.tcp_proxy"
    }

    fn in_chain(&self, _: &Site<'_>, action: &Action, _: &mut Extra) -> Option<Decided> {
        match action {
            Action::Tcp(proxy) => Some(proxy.clone().into()),
            Action::Http(_) => None,
        }
    }
}

impl Settings for Arc<listener::TcpProxy> {
    fn spell(&self) -> Any {
        pb::any(&envoy::tcp_proxy::tcp_proxy(self))
    }
}
