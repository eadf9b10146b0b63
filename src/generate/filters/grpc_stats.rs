//! Counts gRPC messages, in every chain as in Istio; it does nothing for other requests.

use super::{FilterContext, HttpFilter};
use crate::model::HttpRule;
use crate::xds::pb::{self, Any, grpc_stats};

pub(super) struct GrpcStats;

impl HttpFilter for GrpcStats {
    fn name(&self) -> &'static str {
        "envoy.filters.http.grpc_stats"
    }

    fn in_chain(&self, _: &FilterContext) -> Option<Any> {
        // A statistic for every method that a client names would grow without bound.
        let per_method = grpc_stats::filter_config::PerMethodStatSpecifier::StatsForAllMethods(
            pb::bool_value(false),
        );
        Some(pb::any(&grpc_stats::FilterConfig {
            emit_filter_state: true,
            per_method_stat_specifier: Some(per_method),
            ..Default::default()
        }))
    }

    fn on_route(&self, _: &HttpRule) -> Option<Any> {
        None
    }
}
