//! Rules about values that several kinds share: names, labels, ports, durations, headers.
//!
//! Each is told a field and a value and reports through [`Findings`]. The pure questions (`is_...`
//! and `..._problem`) are for kinds that need the answer and not the finding.

use super::{format_string, re2, values};
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Whether the text is a DNS label: letters, digits and inner hyphens, at most 63 characters.
/// Upper case is accepted, as Istio does.
pub fn is_dns_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether the text is a DNS label that may start with `*`, `*-` or be `*`.
fn is_wildcard_label(text: &str) -> bool {
    match text.strip_prefix('*') {
        None => is_dns_label(text),
        Some("") => true,
        Some(rest) => text.len() <= 63 && is_dns_label(rest.strip_prefix('-').unwrap_or(rest)),
    }
}

/// Why the text is no DNS name; a name may be short and may end with a dot.
pub fn fqdn_problem(text: &str) -> Option<String> {
    length_problem(text).or_else(|| labels_problem(text))
}

/// Why the text is neither a DNS name nor one with `*` at the start of its first label.
pub fn wildcard_problem(text: &str) -> Option<String> {
    if let Some(problem) = length_problem(text) {
        return Some(problem);
    }
    let (first, rest) = match text.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text, None),
    };
    if !is_wildcard_label(first) {
        return Some(bad_label(first));
    }
    rest.and_then(labels_problem)
}

fn length_problem(text: &str) -> Option<String> {
    match text.len() {
        0 => Some("it is empty".to_owned()),
        1..=255 => None,
        _ => Some("it is longer than 255 characters".to_owned()),
    }
}

fn labels_problem(text: &str) -> Option<String> {
    let relative = text.strip_suffix('.').unwrap_or(text);
    let last = relative.rsplit('.').next().unwrap_or(relative);
    if !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()) && !text.ends_with('.') {
        return Some(format!("its last part `{last}` must not be a number"));
    }
    relative.split('.').find(|label| !is_dns_label(label)).map(bad_label)
}

fn bad_label(label: &str) -> String {
    if label.is_empty() {
        return "a part between two dots is empty".to_owned();
    }
    if label.contains('*') {
        return "`*` may only stand at the start of the name".to_owned();
    }
    if label.len() > 63 {
        return format!("the part `{label}` is longer than 63 characters");
    }
    format!("the part `{label}` must be letters, digits and inner hyphens")
}

/// The field must be a DNS name.
pub fn fqdn(f: &mut Findings<'_>, at: &Field<'_>, text: &str) {
    if let Some(problem) = fqdn_problem(text) {
        f.error(at, Code::InvalidValue, format!("`{text}` is not a host name: {problem}"));
    }
}

/// The field must be a DNS name, or one that starts with `*`.
pub fn wildcard_host(f: &mut Findings<'_>, at: &Field<'_>, text: &str) {
    if let Some(problem) = wildcard_problem(text) {
        f.error(at, Code::InvalidValue, format!("`{text}` is not a host name: {problem}"));
    }
}

/// The field must be a DNS label (`what` names it: "a namespace").
pub fn dns_label(f: &mut Findings<'_>, at: &Field<'_>, what: &str, text: &str) {
    if !is_dns_label(text) {
        let message = format!(
            "`{text}` is not {what}: use letters, digits and inner hyphens, at most 63 characters"
        );
        f.error(at, Code::InvalidValue, message);
    }
}

/// The field must be an IP address.
pub fn ip_address(f: &mut Findings<'_>, at: &Field<'_>, text: &str) {
    if text.parse::<IpAddr>().is_err() {
        f.error(at, Code::InvalidValue, format!("`{text}` is not an IP address"));
    }
}

/// Keys and values must have Kubernetes' label syntax.
pub fn labels(f: &mut Findings<'_>, at: &Field<'_>, labels: &BTreeMap<String, String>) {
    for (key, value) in labels {
        let at = at.key(key);
        if let Some(problem) = label_key_problem(key) {
            f.error(&at, Code::InvalidValue, format!("`{key}` is not a label key: {problem}"));
        }
        if !value.is_empty() && !is_label_name(value) {
            let message = format!(
                "`{value}` is not a label value: use at most 63 letters, digits, `-`, `_` and `.`, \
                 with a letter or digit at both ends"
            );
            f.error(&at, Code::InvalidValue, message);
        }
    }
}

/// As [`labels`], for labels that select: a `*` gets a message of its own.
pub fn selector_labels(f: &mut Findings<'_>, at: &Field<'_>, selector: &BTreeMap<String, String>) {
    let mut rest = selector.clone();
    for (key, value) in selector {
        if key.is_empty() || key.contains('*') || value.contains('*') {
            let message =
                "a selector compares labels as they are; `*` and empty keys select nothing";
            f.error(&at.key(key), Code::InvalidValue, message);
            rest.remove(key);
        }
    }
    labels(f, at, &rest);
}

fn label_key_problem(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|p| p.len() > 253 || p.split('.').any(|label| !is_dns_label(label))) {
        return Some("what is before the `/` must be a DNS name");
    }
    (!is_label_name(name)).then_some(
        "use at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
    )
}

fn is_label_name(text: &str) -> bool {
    let end = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && end(bytes.first())
        && end(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// Whether `exportTo` may hide a document from everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tilde {
    /// `~` is allowed (ServiceEntry).
    Allowed,
    /// `~` is an error.
    Refused,
}

/// The rules of `exportTo`.
pub fn export_to(f: &mut Findings<'_>, at: &Field<'_>, list: &[String], tilde: Tilde) {
    let own = f.document().header.namespace.clone();
    let mut seen = BTreeSet::new();
    for (index, entry) in list.iter().enumerate() {
        let at = at.index(index);
        match entry.as_str() {
            "." | "*" => {}
            "~" if tilde == Tilde::Allowed => {}
            "~" => {
                let message = "`~` is only for ServiceEntry; use `.` to keep the document to its \
                               own namespace";
                f.error(&at, Code::InvalidValue, message);
                continue;
            }
            name if is_dns_label(name) => {}
            name => {
                let message = format!("`{name}` is neither `.`, `*` nor a namespace");
                f.error(&at, Code::InvalidValue, message);
                continue;
            }
        }
        let key = if entry == "." { &*own } else { entry.as_str() };
        if !seen.insert(key.to_owned()) {
            f.error(&at, Code::InvalidValue, format!("`{entry}` is named twice; remove one"));
        }
    }
    for alone in ["*", "~"] {
        let place = list.iter().position(|entry| entry == alone);
        if let Some(place) = place.filter(|_| seen.len() > 1 && seen.contains(alone)) {
            let message =
                format!("`{alone}` must stand alone: it already says who sees everything");
            f.error(&at.index(place), Code::ConflictingFields, message);
        }
    }
}

/// A port from 1 to 65535.
pub fn port(f: &mut Findings<'_>, at: &Field<'_>, number: u16) {
    if number == 0 {
        f.error(at, Code::InvalidValue, "a port from 1 to 65535 is needed");
    }
}

/// A port's protocol must be one that Istio knows.
pub fn protocol(f: &mut Findings<'_>, at: &Field<'_>, name: &str) {
    let known = !matches!(crate::model::Protocol::parse(name), crate::model::Protocol::Auto);
    if !known {
        let message = format!(
            "unknown protocol `{name}`, expected one of HTTP, HTTPS, HTTP2, GRPC, GRPC-Web, TLS, \
             TCP, HTTP_PROXY, Mongo, MySQL, Redis, UDP"
        );
        f.error(at, Code::InvalidValue, message);
    }
}

/// At least a millisecond, and whole milliseconds.
pub fn duration(f: &mut Findings<'_>, at: &Field<'_>, duration: values::Duration) {
    if duration.0 < Duration::from_millis(1) {
        f.error(at, Code::InvalidValue, "the duration must be at least 1ms");
    } else if !duration.0.subsec_nanos().is_multiple_of(1_000_000) {
        f.error(at, Code::InvalidValue, "the duration must be in whole milliseconds");
    }
}

/// 0, or 0.0001 to 100.
pub fn percent(f: &mut Findings<'_>, at: &Field<'_>, percent: values::Percent) {
    let value = percent.value;
    if value.is_nan() || !(0.0..=100.0).contains(&value) {
        let message = format!("the percentage must be from 0 to 100, not {value}");
        f.error(&at.key("value"), Code::InvalidValue, message);
    } else if value > 0.0 && value < 0.0001 {
        let message = "the smallest percentage that works is 0.0001; use 0 for none";
        f.error(&at.key("value"), Code::InvalidValue, message);
    }
}

/// A regular expression in RE2's syntax that stock Envoy takes.
pub fn regex(f: &mut Findings<'_>, at: &Field<'_>, pattern: &str) {
    match re2::check(pattern) {
        Ok(size) if size > re2::ENVOY_DEFAULT_LIMIT => {
            let message = format!(
                "the regular expression compiles to about {size} instructions; Envoy's own limit \
                 is {}",
                re2::ENVOY_DEFAULT_LIMIT
            );
            let diagnostic = Diagnostic::new(Code::RegexTooLarge, message).help(
                "set `re2.max_program_size.error_level` in the proxy's bootstrap, as \
                 `pilotfish bootstrap` does, or make it smaller",
            );
            f.report(at, diagnostic);
        }
        Ok(_) => {}
        Err(problem) => f.error(at, Code::InvalidValue, problem),
    }
}

/// A header name: what HTTP calls a token.
pub fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// A header value that is sent: no control characters, and a format string that Envoy takes.
pub fn header_value(f: &mut Findings<'_>, at: &Field<'_>, value: &str) {
    if value.chars().any(|c| c.is_control() && c != '\t') {
        f.error(at, Code::InvalidValue, "a header value must not hold control characters");
    }
    if let Err(problem) = format_string::check(value) {
        let diagnostic = Diagnostic::new(Code::InvalidValue, problem.message).help(problem.help);
        f.report(at, diagnostic);
    }
}

/// Cipher suites of TLS 1.2 and below that Envoy (BoringSSL) knows.
pub const CIPHER_SUITES: [&str; 15] = [
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA",
    "AES256-SHA",
    "DES-CBC3-SHA",
];

/// Warns about cipher suites that are unknown or named twice; both are left out.
pub fn cipher_suites(f: &mut Findings<'_>, at: &Field<'_>, suites: &[String]) {
    let mut seen = BTreeSet::new();
    for (index, suite) in suites.iter().enumerate() {
        let at = at.index(index);
        if !is_cipher_suite(suite) {
            let message = format!("the cipher suite `{suite}` is unknown and left out");
            let expected = format!("expected one of {}", CIPHER_SUITES.join(", "));
            f.report(&at, Diagnostic::new(Code::NoEffect, message).help(expected));
        } else if !seen.insert(suite) {
            let message = format!("the cipher suite `{suite}` is named twice; once is enough");
            f.warn(&at, Code::NoEffect, message);
        }
    }
}

/// Whether Envoy knows the cipher suite. Groups of equal preference (`[A|B]`) are accepted.
pub fn is_cipher_suite(suite: &str) -> bool {
    match suite.strip_prefix('[').and_then(|s| s.strip_suffix(']')) {
        Some(group) => group.split('|').all(|s| CIPHER_SUITES.contains(&s)),
        None => CIPHER_SUITES.contains(&suite),
    }
}

/// The rules of a selector over `labels`.
pub fn workload_selector(
    f: &mut Findings<'_>,
    at: &Field<'_>,
    selector: &values::WorkloadSelector,
) {
    selector_labels(f, &at.key("labels"), &selector.labels);
    if selector.labels.is_empty() {
        f.warn(at, Code::NoEffect, "a selector without labels selects everything in its namespace");
    }
}

/// A host that must have a dot, where only a whole first label may be `*`.
pub fn qualified_host(f: &mut Findings<'_>, at: &Field<'_>, host: &str) {
    if host.is_empty() {
        f.error(at, Code::InvalidValue, "the host is empty; `*` stands for all");
    } else if let Some(problem) = wildcard_problem(host) {
        f.error(at, Code::InvalidValue, format!("`{host}` is not a host name: {problem}"));
    } else if !host.contains('.') {
        let message = format!("`{host}` is a short name; write the whole name");
        f.error(at, Code::InvalidValue, message);
    } else if host.starts_with('*') && !host.starts_with("*.") {
        let message = format!("`{host}` has a partial wildcard; `*` must be followed by a dot");
        f.error(at, Code::InvalidValue, message);
    }
}

/// An address to listen on: an IP address or a Unix socket.
pub fn bind(f: &mut Findings<'_>, at: &Field<'_>, text: &str) {
    match text.strip_prefix("unix://") {
        Some(path) => unix_path(f, at, path),
        None => ip_address(f, at, text),
    }
}

/// The path of a Unix socket: absolute, or abstract with a leading `@`.
pub fn unix_path(f: &mut Findings<'_>, at: &Field<'_>, path: &str) {
    let ok = path.starts_with('@') || path.starts_with('/') && !path.ends_with('/');
    if !ok {
        let message =
            format!("`unix://{path}` needs an absolute path of a socket, or `@` and a name");
        f.error(at, Code::InvalidValue, message);
    }
}
