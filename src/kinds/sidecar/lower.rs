//! What a checked Sidecar means.

use super::spec::{Capture, Egress, Ingress, OutboundPolicy, OutboundPolicyMode, Port, Spec};
use crate::config::{Field, RawDocument};
use crate::kinds::KindSpec;
use crate::model::{
    CaptureMode, DefaultEndpoint, Destination, EgressListener, EgressNamespace, HostImport,
    Hostname, IngressListener, ListenerPort, Namespace, OutboundMode, OutboundTrafficPolicy,
    Protocol, Selector, Sidecar,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The Sidecar.
pub(super) fn sidecar(spec: &Spec, document: &RawDocument) -> Sidecar {
    let at = Field::root("spec");
    let ingress = at.key("ingress");
    let egress = at.key("egress");
    Sidecar {
        origin: Spec::ABOUT.origin(&document.header),
        selector: spec.workload_selector.as_ref().map(|s| Selector::from(s.labels.clone())),
        egress: spec
            .egress
            .iter()
            .enumerate()
            .map(|(index, listener)| egress_listener(listener, &egress.index(index), document))
            .collect(),
        ingress: spec
            .ingress
            .iter()
            .enumerate()
            .map(|(index, listener)| ingress_listener(listener, &ingress.index(index), document))
            .collect(),
        outbound_traffic_policy: spec
            .outbound_traffic_policy
            .as_ref()
            .map(|policy| outbound_policy(policy, &at.key("outboundTrafficPolicy"), document)),
        inbound_connection_pool: spec.inbound_connection_pool.as_ref().map(|pool| pool.lower()),
    }
}

fn egress_listener(listener: &Egress, at: &Field<'_>, document: &RawDocument) -> EgressListener {
    EgressListener {
        port: listener.port.as_ref().map(port),
        bind: text(&listener.bind),
        capture_mode: capture(listener.capture_mode),
        hosts: listener.hosts.iter().map(|host| import(host)).collect(),
        span: document.span(at),
    }
}

fn ingress_listener(listener: &Ingress, at: &Field<'_>, document: &RawDocument) -> IngressListener {
    IngressListener {
        port: port(&listener.port),
        bind: text(&listener.bind),
        capture_mode: capture(listener.capture_mode),
        default_endpoint: match default_endpoint(&listener.default_endpoint) {
            Endpoint::Valid(endpoint) => Some(endpoint),
            Endpoint::Unset | Endpoint::Invalid => None,
        },
        tls: listener.tls.as_ref().map(|tls| tls.lower(&at.key("tls"), document)),
        connection_pool: listener.connection_pool.as_ref().map(|pool| pool.lower()),
        span: document.span(at),
    }
}

fn text(text: &str) -> Option<std::sync::Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}

fn port(port: &Port) -> ListenerPort {
    ListenerPort {
        number: port.number,
        protocol: Protocol::parse(&port.protocol),
        name: port.name.as_str().into(),
    }
}

fn capture(mode: Capture) -> CaptureMode {
    match mode {
        Capture::Default => CaptureMode::Default,
        Capture::Iptables => CaptureMode::Iptables,
        Capture::None => CaptureMode::None,
    }
}

/// `[~]namespace/host`; `~` alone stands for any namespace.
fn import(entry: &str) -> HostImport {
    let (namespace, host) = entry.split_once('/').unwrap_or(("*", entry));
    let (namespace, exclude) = match namespace.strip_prefix('~') {
        Some(rest) => (rest, true),
        None => (namespace, false),
    };
    HostImport {
        namespace: match namespace {
            "" | "*" => EgressNamespace::Any,
            "." => EgressNamespace::Own,
            name => EgressNamespace::Named(Namespace::from(name)),
        },
        host: Hostname::from(host),
        exclude,
    }
}

fn outbound_policy(
    policy: &OutboundPolicy,
    at: &Field<'_>,
    document: &RawDocument,
) -> OutboundTrafficPolicy {
    OutboundTrafficPolicy {
        mode: match policy.mode {
            OutboundPolicyMode::RegistryOnly => OutboundMode::RegistryOnly,
            OutboundPolicyMode::AllowAny => OutboundMode::AllowAny,
        },
        egress_proxy: policy.egress_proxy.as_ref().map(|proxy| {
            let at = at.key("egressProxy");
            Destination {
                host: Hostname::from(proxy.host.as_str()),
                subset: proxy.subset.as_str().into(),
                port: proxy.port.map(|port| port.number),
                span: document.span(&at.key("host")),
                subset_span: document.span(&at.key("subset")),
                port_span: document.span(&at.key("port").key("number")),
            }
        }),
    }
}

/// What a `defaultEndpoint` says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// Nothing.
    Unset,
    /// A place of the workload.
    Valid(DefaultEndpoint),
    /// Anything else.
    Invalid,
}

/// Reads a `defaultEndpoint`.
pub(super) fn default_endpoint(text: &str) -> Endpoint {
    if text.is_empty() {
        return Endpoint::Unset;
    }
    if let Some(path) = text.strip_prefix("unix://") {
        return if path.starts_with('@') || path.starts_with('/') && !path.ends_with('/') {
            Endpoint::Valid(DefaultEndpoint::Pipe(path.into()))
        } else {
            Endpoint::Invalid
        };
    }
    let Some((host, port)) = text.rsplit_once(':') else { return Endpoint::Invalid };
    let Some(port) = port.parse::<u16>().ok().filter(|port| *port > 0) else {
        return Endpoint::Invalid;
    };
    Endpoint::Valid(match host {
        "" | "127.0.0.1" => DefaultEndpoint::Loopback(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        "[::1]" => DefaultEndpoint::Loopback(IpAddr::V6(Ipv6Addr::LOCALHOST), port),
        "0.0.0.0" | "[::]" => DefaultEndpoint::Instance(port),
        _ => return Endpoint::Invalid,
    })
}
