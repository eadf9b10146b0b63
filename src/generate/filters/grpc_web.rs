//! Translates gRPC-Web, on ports that are declared to speak it.

use super::{FilterContext, HttpFilter};
use crate::model::{HttpRule, Protocol};
use crate::xds::pb::{self, Any};

pub(super) struct GrpcWeb;

impl HttpFilter for GrpcWeb {
    fn name(&self) -> &'static str {
        "envoy.filters.http.grpc_web"
    }

    fn in_chain(&self, context: &FilterContext) -> Option<Any> {
        (context.protocol == Protocol::GrpcWeb).then(|| pb::any(&pb::grpc_web::GrpcWeb {}))
    }

    fn on_route(&self, _: &HttpRule) -> Option<Any> {
        None
    }
}
