//! Istio's rules about a VirtualService on its own: hosts, gateways, destinations. `matches` has
//! those about conditions, `http` those about what an HTTP rule does.

use super::matches::{applies_to_mesh, gateways, l4_match, tls_match};
use super::spec::{Spec, TcpRoute, TlsRoute};
use super::text::is_outbound_sni;
use super::{destination, http};
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::kinds::rules;
use crate::model::Hostname;
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

fn tls(spec: &Spec, rule: &TlsRoute, at: &Field<'_>, f: &mut Findings<'_>) {
    if rule.r#match.is_empty() {
        f.error(at, Code::MissingField, "a TLS rule needs a `match` with `sniHosts`");
    }
    for (index, m) in rule.r#match.iter().enumerate() {
        tls_match(spec, m, &at.key("match").index(index), f);
    }
    destination::l4(&rule.route, at, f);
}

fn tcp(rule: &TcpRoute, at: &Field<'_>, f: &mut Findings<'_>) {
    for (index, m) in rule.r#match.iter().enumerate() {
        l4_match(m, &at.key("match").index(index), f);
    }
    destination::l4(&rule.route, at, f);
}
