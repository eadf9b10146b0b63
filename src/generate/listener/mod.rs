//! Listeners in Envoy's terms. What listeners there are, and who shares them, is decided by
//! `gateway` and `outbound`; here each is written.

mod access_log;
mod gateway;
mod hcm;
mod inbound;
pub mod matches;
mod outbound;
pub mod tcp;
mod tls;

pub(super) use gateway::{gateway_listeners, gateway_routes, gateway_secrets};
pub(super) use inbound::inbound_listeners;
pub(super) use outbound::outbound_listeners;

use super::Viewer;
use crate::model::MeshSettings;
use crate::xds::pb::{self, accesslog, core, listener};
use matches::{ChainMatch, Transport};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a TLS handshake may take on gateway and outbound chains (Istio's default).
const TRANSPORT_SOCKET_TIMEOUT: Duration = Duration::from_secs(15);

/// What the listeners of one proxy have in common, made once.
pub struct Writer<'s> {
    mesh: &'s MeshSettings,
    view: &'s Viewer<'s>,
    /// The loggers of connections and requests.
    access_log: Vec<accesslog::AccessLog>,
    /// The same for connections that no filter chain takes.
    listener_access_log: Vec<accesslog::AccessLog>,
}

/// A filter chain with the match that it was planned with.
#[derive(Debug)]
struct Chain {
    matches: ChainMatch,
    proto: listener::FilterChain,
}

impl Chain {
    fn new(name: impl Into<String>, matches: ChainMatch, filters: Vec<listener::Filter>) -> Chain {
        let proto = listener::FilterChain {
            name: name.into(),
            filter_chain_match: matches.to_proto(),
            filters,
            ..Default::default()
        };
        Chain { matches, proto }
    }

    /// With a limit for the TLS handshake.
    fn timed(mut self) -> Chain {
        self.proto.transport_socket_connect_timeout = Some(pb::duration(TRANSPORT_SOCKET_TIMEOUT));
        self
    }

    fn with_socket(mut self, socket: core::TransportSocket) -> Chain {
        self.proto.transport_socket = Some(socket);
        self
    }

    /// Whether the match can only hold after the TLS inspector has looked.
    fn needs_tls_inspector(&self) -> bool {
        !self.matches.server_names.is_empty() || self.matches.transport == Some(Transport::Tls)
    }

    /// Whether the match can only hold after the HTTP inspector has looked.
    fn needs_http_inspector(&self) -> bool {
        !self.matches.application_protocols.is_empty()
    }
}

impl<'s> Writer<'s> {
    fn new(mesh: &'s MeshSettings, view: &'s Viewer<'s>) -> Writer<'s> {
        let access_log = access_log::loggers(mesh.access_log.as_ref());
        let listener_access_log = access_log::of_listener(&access_log);
        Writer { mesh, view, access_log, listener_access_log }
    }

    /// How long looking at the first bytes may take.
    fn detection_timeout(&self) -> pb::Duration {
        pb::duration(self.mesh.protocol_detection_timeout)
    }
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

/// Reads the SNI. A client hello usually fits into the first buffer.
fn tls_inspector() -> listener::ListenerFilter {
    let config = pb::tls_inspector::TlsInspector {
        initial_read_buffer_size: Some(pb::u32_value(512)),
        ..Default::default()
    };
    pb::listener_filter("envoy.filters.listener.tls_inspector", &config)
}

/// Finds out whether clear text is HTTP.
fn http_inspector() -> listener::ListenerFilter {
    pb::listener_filter(
        "envoy.filters.listener.http_inspector",
        &pb::http_inspector::HttpInspector::default(),
    )
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
mod tests;
