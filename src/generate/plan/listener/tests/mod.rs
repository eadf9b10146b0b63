//! Listeners as they are planned, told on small documents.

mod edge;
mod egress;
mod inbound;

use super::{Action, Chain, HttpManager, Listener, ListenerFilter, Routes, TcpProxy, Transport};
use crate::diag::Diagnostic;
use std::sync::Arc;

fn manager_of(chain: &Chain) -> &HttpManager {
    match &chain.action {
        Action::Http(manager) => manager,
        Action::Tcp(_) => panic!("a connection manager was expected: {chain:?}"),
    }
}

fn proxy_of(chain: &Chain) -> &TcpProxy {
    match &chain.action {
        Action::Tcp(proxy) => proxy,
        Action::Http(_) => panic!("a TCP proxy was expected: {chain:?}"),
    }
}

/// `[name] port=… sni=… plain http? tls -> what it does`.
fn chain_text(chain: &Chain) -> String {
    let mut text = String::new();
    if !chain.name.is_empty() {
        text.push_str(&format!("[{}] ", chain.name));
    }
    let m = &chain.matches;
    if let Some(port) = m.destination_port {
        text.push_str(&format!("port={port} "));
    }
    if !m.server_names.is_empty() {
        text.push_str(&format!("sni={} ", m.server_names.join(",")));
    }
    match m.transport {
        None => {}
        Some(Transport::Plain) => text.push_str("plain "),
        Some(Transport::Tls) => text.push_str("tls? "),
    }
    if !m.application_protocols.is_empty() {
        text.push_str("http? ");
    }
    if chain.tls.is_some() {
        text.push_str("tls ");
    }
    text.push_str(&match &chain.action {
        Action::Tcp(proxy) => match proxy.clusters.as_slice() {
            [(only, _)] => only.clone(),
            several => {
                let parts: Vec<String> =
                    several.iter().map(|(name, weight)| format!("{name}={weight}")).collect();
                parts.join("+")
            }
        },
        Action::Http(manager) => match &manager.routes {
            Routes::Named(name) => format!("rds {name}"),
            Routes::Inline(routes) => format!("routes {}", routes.cluster),
        },
    });
    text
}

fn chains(listener: &Listener) -> Vec<String> {
    let default = listener.default_chain.iter().map(|c| format!("else {}", chain_text(c)));
    listener.chains.iter().map(chain_text).chain(default).collect()
}

fn filters(listener: &Listener) -> Vec<&'static str> {
    let name = |filter: &ListenerFilter| match filter {
        ListenerFilter::OriginalDestination => "original_dst",
        ListenerFilter::OriginalSource => "original_src",
        ListenerFilter::TlsInspector { .. } => "tls_inspector",
        ListenerFilter::HttpInspector { .. } => "http_inspector",
    };
    listener.filters.iter().map(name).collect()
}

fn names(listeners: &[Arc<Listener>]) -> Vec<&str> {
    listeners.iter().map(|l| l.name.as_str()).collect()
}

fn named<'l>(listeners: &'l [Arc<Listener>], name: &str) -> &'l Listener {
    listeners.iter().find(|l| l.name == name).expect("the listener is there")
}

fn codes(findings: &[Diagnostic]) -> Vec<String> {
    findings.iter().map(|d| d.code.to_string()).collect()
}
