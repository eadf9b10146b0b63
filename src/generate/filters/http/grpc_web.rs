//! Translates gRPC-Web, on ports that are declared to speak it.

use super::{Decided, Extra, HttpFilter, RouteSite, Site};
use crate::generate::filters::Settings;
use crate::model::Protocol;
use crate::xds::pb::{self, Any};

pub(super) struct GrpcWeb;

impl HttpFilter for GrpcWeb {
    fn name(&self) -> &'static str {
        "envoy.filters.http.grpc_web"
    }

    fn in_chain(&self, site: &Site<'_>, _: &mut Extra) -> Option<Decided> {
        (site.protocol == Protocol::GrpcWeb).then(|| Translate.into())
    }

    fn on_route(&self, _: &RouteSite<'_>, _: &mut Extra) -> Option<Decided> {
        None
    }
}

#[derive(Debug, PartialEq)]
struct Translate;

impl Settings for Translate {
    fn spell(&self) -> Any {
        pb::any(&pb::grpc_web::GrpcWeb {})
    }
}
