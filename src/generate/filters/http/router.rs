//! Sends the request on; the last filter of every chain.

use super::{Decided, Extra, HttpFilter, RouteSite, Site};
use crate::generate::filters::Settings;
use crate::xds::pb::{self, Any};

pub(super) struct Router;

impl HttpFilter for Router {
    fn name(&self) -> &'static str {
        "envoy.filters.http.router"
    }

    fn in_chain(&self, _: &Site<'_>, _: &mut Extra) -> Option<Decided> {
        Some(SendOn.into())
    }

    fn on_route(&self, _: &RouteSite<'_>, _: &mut Extra) -> Option<Decided> {
        None
    }
}

#[derive(Debug, PartialEq)]
struct SendOn;

impl Settings for SendOn {
    fn spell(&self) -> Any {
        pb::any(&pb::router::Router::default())
    }
}
