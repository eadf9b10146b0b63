//! Serves HTTP; the last filter of chains that do.

use super::{Decided, Extra, NetworkFilter, Site};
use crate::generate::envoy;
use crate::generate::filters::Settings;
use crate::generate::plan::listener::{Action, HttpManager};
use crate::xds::pb::{self, Any};
use std::sync::Arc;

pub(super) struct HttpConnectionManager;

impl NetworkFilter for HttpConnectionManager {
    fn name(&self) -> &'static str {
        "envoy.filters.network.http_connection_manager"
    }

    fn in_chain(&self, _: &Site<'_>, action: &Action, _: &mut Extra) -> Option<Decided> {
        match action {
            Action::Http(manager) => Some(manager.clone().into()),
            Action::Tcp(_) => None,
        }
    }
}

impl Settings for Arc<HttpManager> {
    fn spell(&self) -> Any {
        pb::any(&envoy::hcm::connection_manager(self))
    }
}
