//! Counts gRPC messages, in every chain as in Istio; it does nothing for other requests.

use super::{Decided, Extra, HttpFilter, RouteSite, Site};
use crate::generate::filters::Settings;
use crate::xds::pb::{self, Any, grpc_stats};

pub(super) struct GrpcStats;

impl HttpFilter for GrpcStats {
    fn name(&self) -> &'static str {
        "envoy.filters.http.grpc_stats"
    }

    fn in_chain(&self, _: &Site<'_>, _: &mut Extra) -> Option<Decided> {
        Some(Count.into())
    }

    fn on_route(&self, _: &RouteSite<'_>, _: &mut Extra) -> Option<Decided> {
        None
    }
}

#[derive(Debug, PartialEq)]
struct Count;

impl Settings for Count {
    fn spell(&self) -> Any {
        // A statistic for every method that a client names would grow without bound.
        let per_method = grpc_stats::filter_config::PerMethodStatSpecifier::StatsForAllMethods(
            pb::bool_value(false),
        );
        pb::any(&grpc_stats::FilterConfig {
            emit_filter_state: true,
            per_method_stat_specifier: Some(per_method),
            ..Default::default()
        })
    }
}
