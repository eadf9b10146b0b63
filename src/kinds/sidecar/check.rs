//! Istio's rules about a Sidecar on its own.

use super::lower::{Endpoint, default_endpoint};
use super::spec::{Capture, Egress, Ingress, OutboundPolicy, OutboundPolicyMode, Port, Spec};
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::kinds::rules;
use crate::kinds::server_tls::{Mode, ServerTlsSettings};
use crate::kinds::traffic_policy::ConnectionPool;
use crate::model::Protocol;
use std::collections::{BTreeMap, BTreeSet};

/// Checks the whole document.
pub(super) fn spec(spec: &Spec, f: &mut Findings<'_>) {
    let at = Field::root("spec");
    let empty = spec.ingress.is_empty()
        && spec.egress.is_empty()
        && spec.inbound_connection_pool.is_none()
        && spec.outbound_traffic_policy.is_none();
    if empty {
        let message = "the Sidecar says nothing; give `egress`, `ingress`, `outboundTrafficPolicy` \
                       or `inboundConnectionPool`";
        f.error(&at, Code::MissingField, message);
    }
    if let Some(selector) = &spec.workload_selector {
        let at = at.key("workloadSelector");
        rules::selector_labels(f, &at.key("labels"), &selector.labels);
        if selector.labels.is_empty() {
            let message = "a selector without labels selects all workloads of the namespace";
            f.warn(&at, Code::NoEffect, message);
        }
    }
    ingress(&spec.ingress, &at.key("ingress"), f);
    egress(&spec.egress, &at.key("egress"), f);
    if let Some(pool) = &spec.inbound_connection_pool {
        pool.check(&at.key("inboundConnectionPool"), f);
    }
    if let Some(policy) = &spec.outbound_traffic_policy {
        outbound_policy(policy, &at.key("outboundTrafficPolicy"), f);
    }
}

/// Listeners by what may occur once only; complains about the second.
#[derive(Default)]
struct Unique<'s> {
    seen: BTreeMap<&'s str, usize>,
    ports: BTreeMap<u16, usize>,
}

impl<'s> Unique<'s> {
    fn port(&mut self, number: u16, index: usize, list: &Field<'_>, f: &mut Findings<'_>) {
        if number == 0 {
            return;
        }
        let first = *self.ports.entry(number).or_insert(index);
        if first != index {
            let place = |index: usize| (index, "port", "number");
            twice(list, place(first), place(index), &format!("the port {number}"), f);
        }
    }

    fn socket(&mut self, path: &'s str, index: usize, list: &Field<'_>, f: &mut Findings<'_>) {
        let first = *self.seen.entry(path).or_insert(index);
        if first != index {
            let place = |index: usize| (index, "bind", "");
            twice(list, place(first), place(index), &format!("the socket `{path}`"), f);
        }
    }
}

fn twice(
    list: &Field<'_>,
    first: (usize, &str, &str),
    second: (usize, &str, &str),
    what: &str,
    f: &mut Findings<'_>,
) {
    let span = f.span(&list.index(first.0).key(first.1));
    let message = format!("{what} is used twice; give each listener its own");
    let diagnostic =
        Diagnostic::new(Code::ConflictingFields, message).related(span, "first used here");
    let listener = list.index(second.0);
    let field = listener.key(second.1);
    if second.2.is_empty() {
        f.report(&field, diagnostic);
    } else {
        f.report(&field.key(second.2), diagnostic);
    }
}

fn port(port: &Port, at: &Field<'_>, f: &mut Findings<'_>) {
    if !port.name.is_empty() {
        rules::dns_label(f, &at.key("name"), "the name of a port", &port.name);
    }
    if !port.protocol.is_empty() {
        rules::protocol(f, &at.key("protocol"), &port.protocol);
    }
    if port.target_port != 0 {
        let message = "`targetPort` has no effect on Sidecars; remove it";
        f.error(&at.key("targetPort"), Code::InvalidValue, message);
    }
}

fn ingress(list: &[Ingress], at: &Field<'_>, f: &mut Findings<'_>) {
    let mut unique = Unique::default();
    for (index, listener) in list.iter().enumerate() {
        unique.port(listener.port.number, index, at, f);
        let at = at.index(index);
        port(&listener.port, &at.key("port"), f);
        rules::port(f, &at.key("port").key("number"), listener.port.number);
        if !listener.bind.is_empty() {
            rules::ip_address(f, &at.key("bind"), &listener.bind);
        }
        match default_endpoint(&listener.default_endpoint) {
            Endpoint::Invalid => {
                let message = format!(
                    "`{}` is no place of the workload; write `127.0.0.1:PORT`, `[::1]:PORT`, \
                     `0.0.0.0:PORT` (the workload's own address), `[::]:PORT` or `unix:///PATH`",
                    listener.default_endpoint
                );
                f.error(&at.key("defaultEndpoint"), Code::InvalidValue, message);
            }
            Endpoint::Unset | Endpoint::Valid(_) => {}
        }
        let protocol = Protocol::parse(&listener.port.protocol);
        if let Some(tls) = &listener.tls {
            ingress_tls(tls, protocol, &at.key("tls"), f);
        }
        if let Some(pool) = &listener.connection_pool {
            connection_pool(pool, protocol, &at.key("connectionPool"), f);
        }
    }
}

fn connection_pool(
    pool: &ConnectionPool,
    protocol: Protocol,
    at: &Field<'_>,
    f: &mut Findings<'_>,
) {
    pool.check(at, f);
    if pool.http.is_some() && !protocol.is_http() && protocol != Protocol::Auto {
        let message = format!(
            "a listener for {} does not read HTTP, so `http` has no effect",
            protocol.as_str()
        );
        f.warn(&at.key("http"), Code::NoEffect, message);
    }
}

fn ingress_tls(tls: &ServerTlsSettings, protocol: Protocol, at: &Field<'_>, f: &mut Findings<'_>) {
    tls.check(at, f);
    let refused = [
        ("subjectAltNames", !tls.subject_alt_names.is_empty()),
        ("httpsRedirect", tls.https_redirect),
        ("credentialName", !tls.credential_name.is_empty()),
        ("credentialNames", !tls.credential_names.is_empty()),
        ("tlsCertificates", !tls.tls_certificates.is_empty()),
    ];
    for (name, _) in refused.into_iter().filter(|(_, set)| *set) {
        let field = at.key(name);
        let span = f.key_span(&field);
        let message = format!("the TLS of a Sidecar has no `{name}`; remove it");
        f.report(&field, Diagnostic::new(Code::ConflictingFields, message).at(span));
    }
    if matches!(tls.mode, Mode::IstioMutual | Mode::AutoPassthrough) {
        let message = "the mode of a Sidecar's TLS must be SIMPLE, MUTUAL, OPTIONAL_MUTUAL or \
                       PASSTHROUGH";
        f.error(&at.key("mode"), Code::InvalidValue, message);
    }
    if !protocol.is_tls() {
        let message = "`tls` needs a port with the protocol HTTPS or TLS";
        let span = f.key_span(at);
        f.report(at, Diagnostic::new(Code::ConflictingFields, message).at(span));
    }
}

fn egress(list: &[Egress], at: &Field<'_>, f: &mut Findings<'_>) {
    let mut unique = Unique::default();
    for (index, listener) in list.iter().enumerate() {
        match &listener.port {
            Some(p) => {
                if p.number == 0 && listener.bind.starts_with("unix://") {
                    unique.socket(&listener.bind, index, at, f);
                } else {
                    unique.port(p.number, index, at, f);
                }
                let at = at.index(index);
                port(p, &at.key("port"), f);
                egress_bind(p.number, listener, &at, f);
            }
            None if index + 1 == list.len() => {}
            None => {
                let message =
                    "the listener without a port is for all other ports and must come last";
                f.error(&at.index(index), Code::InvalidValue, message);
            }
        }
        egress_hosts(&listener.hosts, &at.index(index), f);
    }
}

fn egress_bind(number: u16, listener: &Egress, at: &Field<'_>, f: &mut Findings<'_>) {
    let bind = at.key("bind");
    if number != 0 {
        if !listener.bind.is_empty() {
            rules::ip_address(f, &bind, &listener.bind);
        }
        return;
    }
    match listener.bind.strip_prefix("unix://") {
        Some(path) => rules::unix_path(f, &bind, path),
        None => {
            let message = "a port from 1 to 65535 is needed; only a Unix socket (`bind: \
                           unix:///PATH`) has port 0";
            f.error(&at.key("port").key("number"), Code::InvalidValue, message);
        }
    }
    if listener.capture_mode == Capture::Iptables {
        let message = "nothing is redirected to a Unix socket; use DEFAULT or NONE";
        f.error(&at.key("captureMode"), Code::InvalidValue, message);
    }
}

fn egress_hosts(hosts: &[String], at: &Field<'_>, f: &mut Findings<'_>) {
    if hosts.is_empty() {
        let message = "the listener needs `hosts`; `*/*` is everything, `~/*` nothing";
        f.error(at, Code::MissingField, message);
    }
    let at = at.key("hosts");
    let mut seen = BTreeSet::new();
    for (index, host) in hosts.iter().enumerate() {
        let place = at.index(index);
        egress_host(host, &place, f);
        if !seen.insert(host) {
            f.warn(&place, Code::NoEffect, format!("`{host}` is named twice; once is enough"));
        }
    }
    let exclude = |host: &String| host.starts_with('~');
    if let Some(index) = hosts.iter().position(|host| host == "*/*")
        && hosts.iter().filter(|host| !exclude(host)).any(|host| host != "*/*")
    {
        let message = "`*/*` is everything already, so the others have no effect";
        f.warn(&at.index(index), Code::NoEffect, message);
    }
}

/// `[~]namespace/host`.
fn egress_host(text: &str, at: &Field<'_>, f: &mut Findings<'_>) {
    let Some((namespace, host)) = text.split_once('/') else {
        let message =
            format!("`{text}` must be `NAMESPACE/HOST`, such as `./{text}` or `*/{text}`");
        f.error(at, Code::InvalidValue, message);
        return;
    };
    let name = namespace.strip_prefix('~').unwrap_or(namespace);
    let bare = name.is_empty() && namespace == "~";
    if !bare && !matches!(name, "*" | ".") && !rules::is_dns_label(name) {
        let message = format!(
            "`{namespace}` is no namespace; write a name, `.` for the own one, `*` for all, with \
             `~` in front to take out"
        );
        f.error(at, Code::InvalidValue, message);
        return;
    }
    if host != "*" {
        rules::qualified_host(f, at, host);
    }
}

fn outbound_policy(policy: &OutboundPolicy, at: &Field<'_>, f: &mut Findings<'_>) {
    let Some(proxy) = &policy.egress_proxy else { return };
    let at_proxy = at.key("egressProxy");
    if policy.mode != OutboundPolicyMode::AllowAny {
        let message = "`egressProxy` needs the mode ALLOW_ANY";
        let span = f.key_span(&at_proxy);
        f.report(&at_proxy, Diagnostic::new(Code::ConflictingFields, message).at(span));
    }
    rules::fqdn(f, &at_proxy.key("host"), &proxy.host);
    if !proxy.subset.is_empty() {
        rules::dns_label(f, &at_proxy.key("subset"), "the name of a subset", &proxy.subset);
    }
    match proxy.port {
        Some(port) => rules::port(f, &at_proxy.key("port").key("number"), port.number),
        None => f.error(&at_proxy, Code::MissingField, "the egress proxy needs a `port`"),
    }
}
