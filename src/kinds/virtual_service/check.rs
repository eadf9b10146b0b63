//! Istio's rules about a VirtualService on its own: hosts, gateways, matches, destinations.
//! `http` has those about what an HTTP rule does.

use super::lower::is_claim;
use super::spec::{
    HttpMatchRequest, L4MatchAttributes, Spec, TcpRoute, TlsMatchAttributes, TlsRoute,
};
use super::{destination, http};
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::kinds::rules;
use crate::kinds::values::StringMatch;
use crate::model::Hostname;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Checks the whole document.
pub(super) fn spec(spec: &Spec, f: &mut Findings<'_>) {
    let at = Field::root("spec");
    if spec.hosts.is_empty() {
        delegate(spec, &at, f);
    }
    gateways(&spec.gateways, &at.key("gateways"), f);
    hosts(spec, &at.key("hosts"), f);
    if spec.http.is_empty() && spec.tls.is_empty() && spec.tcp.is_empty() {
        f.error(&at, Code::MissingField, "the document has no rules; give `http`, `tls` or `tcp`");
    }
    for (index, rule) in spec.http.iter().enumerate() {
        http::rule(spec, rule, &at.key("http").index(index), f);
    }
    for (index, rule) in spec.tls.iter().enumerate() {
        tls(spec, rule, &at.key("tls").index(index), f);
    }
    for (index, rule) in spec.tcp.iter().enumerate() {
        tcp(rule, &at.key("tcp").index(index), f);
    }
    rules::export_to(f, &at.key("exportTo"), &spec.export_to, rules::Tilde::Refused);
}

/// A document without hosts is a fragment for others.
fn delegate(spec: &Spec, at: &Field<'_>, f: &mut Findings<'_>) {
    let given = [
        ("gateways", !spec.gateways.is_empty()),
        ("tls", !spec.tls.is_empty()),
        ("tcp", !spec.tcp.is_empty()),
    ];
    for (name, _) in given.into_iter().filter(|(_, given)| *given) {
        let message = format!(
            "a VirtualService without hosts is a delegate, and a delegate has no `{name}`; add \
             `hosts` or remove it"
        );
        let field = at.key(name);
        let span = f.key_span(&field);
        f.report(&field, Diagnostic::new(Code::ConflictingFields, message).at(span));
    }
}

/// Whether sidecars apply the document.
fn applies_to_mesh(spec: &Spec) -> bool {
    spec.gateways.is_empty() || spec.gateways.iter().any(|gateway| gateway == "mesh")
}

/// References to Gateways.
pub(super) fn gateways(list: &[String], at: &Field<'_>, f: &mut Findings<'_>) {
    for (index, text) in list.iter().enumerate() {
        let at = at.index(index);
        match text.split_once('/') {
            Some((namespace, name)) => {
                let own = namespace == ".";
                if !(own || rules::is_dns_label(namespace)) || !rules::is_dns_label(name) {
                    let message = format!(
                        "`{text}` names no Gateway; write `NAME` or `NAMESPACE/NAME`, both of \
                         letters, digits and inner hyphens"
                    );
                    f.error(&at, Code::InvalidValue, message);
                }
            }
            None => {
                if let Some(problem) = rules::fqdn_problem(text) {
                    let message = format!("`{text}` names no Gateway: {problem}");
                    f.error(&at, Code::InvalidValue, message);
                } else if let Some((name, rest)) = text.split_once('.') {
                    let namespace = rest.split('.').next().unwrap_or(rest);
                    let message =
                        format!("the dotted form is old; write `{namespace}/{name}` instead");
                    f.warn(&at, Code::Deprecated, message);
                }
            }
        }
    }
}

fn hosts(spec: &Spec, at: &Field<'_>, f: &mut Findings<'_>) {
    let mesh = applies_to_mesh(spec);
    let mut valid: Vec<(usize, Hostname)> = Vec::new();
    for (index, host) in spec.hosts.iter().enumerate() {
        let at = at.index(index);
        if let Some(problem) = rules::wildcard_problem(host) {
            let passthrough = !spec.tls.is_empty() && !spec.gateways.is_empty();
            if host.parse::<IpAddr>().is_err() && !(passthrough && is_outbound_sni(host)) {
                let message = format!("`{host}` is not a host name: {problem}");
                f.error(&at, Code::InvalidValue, message);
                continue;
            }
        } else if mesh && host == "*" {
            let message = "`*` is not allowed for sidecars, which take over every request then; \
                           name the hosts, or name Gateways only";
            f.error(&at, Code::InvalidValue, message);
            continue;
        }
        let host = Hostname::from(host.as_str());
        if let Some((first, other)) = valid.iter().find(|(_, other)| other.overlaps(&host)) {
            let message = format!("the host overlaps with `{other}`; keep one of the two");
            let span = f.span(&Field::root("spec").key("hosts").index(*first));
            let diagnostic =
                Diagnostic::new(Code::ConflictingFields, message).related(span, "the other host");
            f.report(&at, diagnostic);
        }
        valid.push((index, host));
    }
}

/// Istio's names between clusters: `outbound_.PORT_.SUBSET_.HOST`.
fn is_outbound_sni(host: &str) -> bool {
    let parts: Vec<&str> = host.splitn(4, "_.").collect();
    match parts.as_slice() {
        ["outbound", port, subset, host] => {
            port.parse::<u16>().is_ok_and(|port| port > 0)
                && (subset.is_empty() || rules::is_dns_label(subset))
                && rules::fqdn_problem(host).is_none()
        }
        _ => false,
    }
}

/// Conditions on a request.
pub(super) fn http_match(spec: &Spec, m: &HttpMatchRequest, at: &Field<'_>, f: &mut Findings<'_>) {
    if let Some(uri) = &m.uri {
        path(uri, &at.key("uri"), f);
    }
    for (name, condition) in
        [("scheme", &m.scheme), ("method", &m.method), ("authority", &m.authority)]
    {
        if let Some(condition) = condition {
            string_match(condition, &at.key(name), f);
        }
    }
    for (name, condition) in &m.headers {
        let at = at.key("headers");
        header_name(spec, name, &at.key(name), f);
        string_match(condition, &at.key(name), f);
    }
    for (name, condition) in &m.without_headers {
        let at = at.key("withoutHeaders");
        header_name(spec, name, &at.key(name), f);
        // Not RE2, but an old way to ask for absence.
        if !matches!(condition, StringMatch::Regex(text) if text == "*") {
            string_match(condition, &at.key(name), f);
        }
    }
    for (name, condition) in &m.query_params {
        let at = at.key("queryParams");
        if name.is_empty() || name.len() > 1024 {
            let message = "the name of a query parameter must have 1 to 1024 bytes";
            let span = f.key_span(&at.key(name));
            f.report(&at.key(name), Diagnostic::new(Code::InvalidValue, message).at(span));
        }
        string_match(condition, &at.key(name), f);
    }
    let source =
        Source { labels: &m.source_labels, namespace: &m.source_namespace, gateways: &m.gateways };
    source.check(at, f);
}

/// Envoy compares the path without the query.
fn path(uri: &StringMatch, at: &Field<'_>, f: &mut Findings<'_>) {
    match uri {
        StringMatch::Present => {}
        StringMatch::Regex(pattern) => rules::regex(f, &at.key("regex"), pattern),
        StringMatch::Exact(text) | StringMatch::Prefix(text) => {
            if text.contains(['?', '#']) {
                let message = "no request can match: the path is compared without query and \
                               fragment; use `queryParams`";
                f.warn(&uri.field(at), Code::NoEffect, message);
            }
        }
    }
}

fn string_match(condition: &StringMatch, at: &Field<'_>, f: &mut Findings<'_>) {
    match condition {
        StringMatch::Present | StringMatch::Exact(_) => {}
        StringMatch::Prefix(text) => {
            if text.is_empty() {
                let message = "the prefix is empty; use `{}` to ask for presence";
                f.error(&at.key("prefix"), Code::InvalidValue, message);
            }
        }
        StringMatch::Regex(pattern) if pattern == "*" => {
            let message = "`*` is no regular expression; use `{}` to ask for presence";
            f.error(&at.key("regex"), Code::InvalidValue, message);
        }
        StringMatch::Regex(pattern) => rules::regex(f, &at.key("regex"), pattern),
    }
}

fn header_name(spec: &Spec, name: &str, at: &Field<'_>, f: &mut Findings<'_>) {
    let message = if is_claim(name) {
        if !applies_to_mesh(spec) {
            return;
        }
        "conditions on JWT claims only work on Gateways; name Gateways only".to_owned()
    } else if !rules::is_header_name(name.strip_prefix(':').unwrap_or(name)) {
        format!("`{name}` is not a header name")
    } else {
        return;
    };
    let span = f.key_span(at);
    f.report(at, Diagnostic::new(Code::InvalidValue, message).at(span));
}

/// Conditions on where a request comes from.
struct Source<'s> {
    labels: &'s BTreeMap<String, String>,
    namespace: &'s str,
    gateways: &'s [String],
}

impl Source<'_> {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        rules::labels(f, &at.key("sourceLabels"), self.labels);
        if !self.namespace.is_empty() {
            rules::dns_label(f, &at.key("sourceNamespace"), "a namespace", self.namespace);
        }
        gateways(self.gateways, &at.key("gateways"), f);
        if !self.gateways.is_empty() {
            let set = [
                ("sourceLabels", !self.labels.is_empty()),
                ("sourceNamespace", !self.namespace.is_empty()),
            ];
            for (name, _) in set.into_iter().filter(|(_, set)| *set) {
                let message = format!("`{name}` is not looked at in a match that names gateways");
                f.warn(&at.key(name), Code::NoEffect, message);
            }
        }
    }
}

fn tls(spec: &Spec, rule: &TlsRoute, at: &Field<'_>, f: &mut Findings<'_>) {
    if rule.r#match.is_empty() {
        f.error(at, Code::MissingField, "a TLS rule needs a `match` with `sniHosts`");
    }
    for (index, m) in rule.r#match.iter().enumerate() {
        tls_match(spec, m, &at.key("match").index(index), f);
    }
    destination::l4(&rule.route, at, f);
}

fn tls_match(spec: &Spec, m: &TlsMatchAttributes, at: &Field<'_>, f: &mut Findings<'_>) {
    if m.sni_hosts.is_empty() {
        f.error(at, Code::MissingField, "the match names no server; give `sniHosts`");
    }
    for (index, sni) in m.sni_hosts.iter().enumerate() {
        let at = at.key("sniHosts");
        let at = at.index(index);
        if sni.parse::<IpAddr>().is_ok() {
            let message = "clients do not send IP addresses as server names (SNI)";
            f.warn(&at, Code::NoEffect, message);
        } else if let Some(problem) = rules::wildcard_problem(sni)
            && !is_outbound_sni(sni)
        {
            let message = format!("`{sni}` is not a server name: {problem}");
            f.error(&at, Code::InvalidValue, message);
            continue;
        }
        let name = Hostname::from(sni.as_str());
        let covered = |host: &String| name.is_subset_of(&Hostname::from(host.as_str()));
        if !spec.hosts.is_empty() && !spec.hosts.iter().any(covered) {
            let message = format!(
                "`{sni}` is not covered by the document's hosts ({})",
                spec.hosts.join(", ")
            );
            let diagnostic = Diagnostic::new(Code::InvalidValue, message)
                .help("add it to `hosts`, or name a server below one of them");
            f.report(&at, diagnostic);
        }
    }
    subnets(&m.destination_subnets, &at.key("destinationSubnets"), f);
    let source =
        Source { labels: &m.source_labels, namespace: &m.source_namespace, gateways: &m.gateways };
    source.check(at, f);
}

fn tcp(rule: &TcpRoute, at: &Field<'_>, f: &mut Findings<'_>) {
    for (index, m) in rule.r#match.iter().enumerate() {
        l4_match(m, &at.key("match").index(index), f);
    }
    destination::l4(&rule.route, at, f);
}

fn l4_match(m: &L4MatchAttributes, at: &Field<'_>, f: &mut Findings<'_>) {
    subnets(&m.destination_subnets, &at.key("destinationSubnets"), f);
    if !m.source_subnet.is_empty() {
        let field = at.key("sourceSubnet");
        if subnet(&m.source_subnet).is_none() {
            f.error(&field, Code::InvalidValue, not_a_subnet(&m.source_subnet));
        } else {
            let message = "`sourceSubnet` is never looked at, in Istio neither; use `sourceLabels`";
            f.warn(&field, Code::NoEffect, message);
        }
    }
    let source =
        Source { labels: &m.source_labels, namespace: &m.source_namespace, gateways: &m.gateways };
    source.check(at, f);
}

/// Reads a network or a single address.
pub(super) fn subnet(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

fn not_a_subnet(text: &str) -> String {
    format!("`{text}` is neither an IP address nor a network such as `10.1.0.0/16`")
}

fn subnets(list: &[String], at: &Field<'_>, f: &mut Findings<'_>) {
    for (index, text) in list.iter().enumerate() {
        if subnet(text).is_none() {
            f.error(&at.index(index), Code::InvalidValue, not_a_subnet(text));
        }
    }
}

/// The number of a gRPC status, by its name.
pub(super) fn grpc_status(name: &str) -> Option<u32> {
    let at = GRPC_STATUSES.iter().position(|status| *status == name)?;
    u32::try_from(at).ok()
}

/// gRPC's statuses by number.
pub(super) const GRPC_STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
