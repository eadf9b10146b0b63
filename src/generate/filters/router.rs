//! Sends the request on; the last filter of every chain.

use super::{FilterContext, HttpFilter};
use crate::model::HttpRule;
use crate::xds::pb::{self, Any};

pub(super) struct Router;

impl HttpFilter for Router {
    fn name(&self) -> &'static str {
        "envoy.filters.http.router"
    }

    fn in_chain(&self, _: &FilterContext) -> Option<Any> {
        Some(pb::any(&pb::router::Router::default()))
    }

    fn on_route(&self, _: &HttpRule) -> Option<Any> {
        None
    }
}
