//! Listeners: addresses, listener filters and filter chains.

use super::server_tls;
use crate::generate::filters::Filter;
use crate::generate::names::Direction;
use crate::generate::plan::listener::{
    Chain, ChainMatch, Intake, Listener, ListenerFilter, Transport,
};
use crate::xds::pb::{self, core, listener};
use ipnet::IpNet;
use std::collections::BTreeSet;

/// The mark that Istio's redirection rules know the proxy's own packets by.
const TPROXY_MARK: u32 = 1337;

/// The configuration of a listener.
pub fn listener(planned: &Listener) -> listener::Listener {
    let (transparent, hands_over) = match planned.intake {
        Intake::Redirected { transparent, hands_over } => (transparent, hands_over),
        Intake::Dialled | Intake::HandedOver => (false, false),
    };
    let opens_port = planned.intake != Intake::HandedOver;
    let direction = match planned.direction {
        Direction::Inbound => core::TrafficDirection::Inbound,
        Direction::Outbound => core::TrafficDirection::Outbound,
    };
    listener::Listener {
        name: planned.name.clone(),
        address: Some(address(&planned.bind, planned.port)),
        transparent: transparent.then(|| pb::bool_value(true)),
        use_original_dst: hands_over.then(|| pb::bool_value(true)),
        filter_chains: planned.chains.iter().map(chain).collect(),
        default_filter_chain: planned.default_chain.as_ref().map(chain),
        listener_filters: planned.filters.iter().map(listener_filter).collect(),
        listener_filters_timeout: planned.filters_timeout.map(pb::duration),
        continue_on_listener_filters_timeout: planned.filters_timeout.is_some(),
        traffic_direction: direction.into(),
        bind_to_port: (!opens_port).then(|| pb::bool_value(false)),
        max_connections_to_accept_per_socket_event: opens_port.then(|| pb::u32_value(1)),
        access_log: super::access_log::of_listener(planned.access_log.as_deref()),
        ..Default::default()
    }
}

fn chain(planned: &Chain) -> listener::FilterChain {
    listener::FilterChain {
        name: planned.name.clone(),
        filter_chain_match: chain_match(&planned.matches),
        filters: planned.filters.iter().map(network_filter).collect(),
        transport_socket: planned.tls.as_ref().map(server_tls::transport_socket),
        transport_socket_connect_timeout: planned.handshake_timeout.map(pb::duration),
        metadata: planned.document.clone().map(config_metadata),
        ..Default::default()
    }
}

fn network_filter(filter: &Filter) -> listener::Filter {
    listener::Filter {
        name: filter.name.to_owned(),
        config_type: Some(listener::filter::ConfigType::TypedConfig(filter.spell())),
    }
}

/// The conditions of a chain; none are left out altogether.
fn chain_match(matches: &ChainMatch) -> Option<listener::FilterChainMatch> {
    if matches.is_match_all() {
        return None;
    }
    let cidr = |network: &IpNet| core::CidrRange {
        address_prefix: network.addr().to_string(),
        prefix_len: Some(pb::u32_value(network.prefix_len().into())),
    };
    let transport = match matches.transport {
        None => "",
        Some(Transport::Plain) => "raw_buffer",
        Some(Transport::Tls) => "tls",
    };
    let protocols = matches.application_protocols.iter().map(|&p| p.to_owned());
    Some(listener::FilterChainMatch {
        destination_port: matches.destination_port.map(|port| pb::u32_value(port.into())),
        prefix_ranges: matches.destinations.iter().map(cidr).collect(),
        server_names: matches.server_names.clone(),
        transport_protocol: transport.to_owned(),
        application_protocols: protocols.collect(),
        ..Default::default()
    })
}

/// An address to listen on: `unix://` and a path, or an IP address and a port.
fn address(bind: &str, port: u16) -> core::Address {
    match bind.strip_prefix("unix://") {
        Some(path) => core::Address {
            address: Some(core::address::Address::Pipe(core::Pipe {
                path: path.to_owned(),
                ..Default::default()
            })),
        },
        None => pb::socket_address(bind, port.into()),
    }
}

fn listener_filter(filter: &ListenerFilter) -> listener::ListenerFilter {
    match filter {
        ListenerFilter::OriginalDestination => pb::listener_filter(
            "envoy.filters.listener.original_dst",
            &pb::original_dst::OriginalDst {},
        ),
        ListenerFilter::OriginalSource => pb::listener_filter(
            "envoy.filters.listener.original_src",
            &pb::original_src::OriginalSrc { mark: TPROXY_MARK, ..Default::default() },
        ),
        ListenerFilter::TlsInspector { only } => listener::ListenerFilter {
            filter_disabled: destination_ports(only).map(not),
            ..tls_inspector()
        },
        ListenerFilter::HttpInspector { except } => listener::ListenerFilter {
            filter_disabled: destination_ports(except),
            ..pb::listener_filter(
                "envoy.filters.listener.http_inspector",
                &pb::http_inspector::HttpInspector::default(),
            )
        },
    }
}

/// Reads the SNI. A client hello usually fits into the first buffer.
fn tls_inspector() -> listener::ListenerFilter {
    let config = pb::tls_inspector::TlsInspector {
        initial_read_buffer_size: Some(pb::u32_value(512)),
        ..Default::default()
    };
    pb::listener_filter("envoy.filters.listener.tls_inspector", &config)
}

/// "One of these destination ports"; `None` for no ports.
fn destination_ports(ports: &BTreeSet<u16>) -> Option<listener::ListenerFilterChainMatchPredicate> {
    use listener::listener_filter_chain_match_predicate::{MatchSet, Rule};
    let one = |port: &u16| listener::ListenerFilterChainMatchPredicate {
        rule: Some(Rule::DestinationPortRange(pb::range::Int32Range {
            start: (*port).into(),
            end: i32::from(*port) + 1,
        })),
    };
    let mut rules: Vec<_> = ports.iter().map(one).collect();
    // Envoy's constraints ask for two rules at least in a set; one stands alone.
    if rules.len() > 1 {
        let rule = Some(Rule::OrMatch(MatchSet { rules }));
        return Some(listener::ListenerFilterChainMatchPredicate { rule });
    }
    rules.pop()
}

/// "None of what the predicate says".
fn not(
    predicate: listener::ListenerFilterChainMatchPredicate,
) -> listener::ListenerFilterChainMatchPredicate {
    use listener::listener_filter_chain_match_predicate::Rule;
    listener::ListenerFilterChainMatchPredicate { rule: Some(Rule::NotMatch(Box::new(predicate))) }
}

/// The metadata by which istioctl and people find the document behind a filter chain.
fn config_metadata(path: String) -> core::Metadata {
    let config = pb::object([("config", pb::string(path))]);
    core::Metadata { filter_metadata: [("istio".to_owned(), config)].into(), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_of_one_port_stand_alone() {
        use listener::listener_filter_chain_match_predicate::Rule;
        assert!(destination_ports(&BTreeSet::new()).is_none());
        let one = destination_ports(&BTreeSet::from([80])).and_then(|p| p.rule);
        assert!(matches!(one, Some(Rule::DestinationPortRange(r)) if (r.start, r.end) == (80, 81)));
        let two = destination_ports(&BTreeSet::from([80, 90])).and_then(|p| p.rule);
        assert!(matches!(two, Some(Rule::OrMatch(set)) if set.rules.len() == 2));
    }
}
