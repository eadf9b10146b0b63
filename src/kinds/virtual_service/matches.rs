//! Rules about the conditions of a VirtualService: on requests, on server names, on connections.

use super::spec::{HttpMatchRequest, L4MatchAttributes, Spec, TlsMatchAttributes};
use super::text::{is_claim, is_outbound_sni, subnet};
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::kinds::rules;
use crate::kinds::values::StringMatch;
use crate::model::Hostname;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Whether sidecars apply the document.
pub(super) fn applies_to_mesh(spec: &Spec) -> bool {
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

/// Conditions on a connection whose server name is read.
pub(super) fn tls_match(spec: &Spec, m: &TlsMatchAttributes, at: &Field<'_>, f: &mut Findings<'_>) {
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

/// Conditions on a connection.
pub(super) fn l4_match(m: &L4MatchAttributes, at: &Field<'_>, f: &mut Findings<'_>) {
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
