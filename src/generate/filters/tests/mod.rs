//! The tables, and what filters may hand back.

mod contract;

use super::*;
use crate::generate::plan::Because;
use crate::generate::plan::listener::ChainMatch;
use crate::generate::test_support::{Eyes, sidecar, snapshot};
use crate::model::Protocol;
use std::collections::BTreeSet;

fn names(protocol: Protocol) -> Vec<&'static str> {
    let eyes = Eyes::new(&snapshot(Vec::new(), Vec::new()), &sidecar());
    let viewer = eyes.viewer();
    let site = Site {
        ground: Ground::Shared(eyes.scope(&viewer)),
        side: Side::Egress,
        listener: "0.0.0.0_80",
        port: 80,
        protocol,
        matches: &ChainMatch::default(),
        tls: None,
        because: &Because::always("a test"),
    };
    let filters = Filters::default().of_requests(&site, &mut Extra::default());
    filters.into_iter().map(|filter| filter.name).collect()
}

#[test]
fn the_last_filter_of_each_table_is_the_one_that_sends_on_and_names_are_unique() {
    assert_eq!(http::ORDER.last().map(|f| f.name()), Some("envoy.filters.http.router"));
    assert_eq!(network::ORDER.last().map(|f| f.name()), Some("envoy.filters.network.tcp_proxy"));
    let names = || {
        let http = http::ORDER.iter().map(|f| f.name());
        http.chain(network::ORDER.iter().map(|f| f.name()))
    };
    assert_eq!(names().collect::<BTreeSet<_>>().len(), names().count());
}

#[test]
fn a_chain_keeps_the_order_of_the_table() {
    assert_eq!(
        names(Protocol::Http),
        [
            "envoy.filters.http.grpc_stats",
            "envoy.filters.http.fault",
            "envoy.filters.http.cors",
            "envoy.filters.http.router"
        ]
    );
}

#[test]
fn only_grpc_web_ports_translate_grpc_web() {
    assert_eq!(names(Protocol::GrpcWeb)[0], "envoy.filters.http.grpc_web");
    assert!(!names(Protocol::Grpc).contains(&"envoy.filters.http.grpc_web"));
}
