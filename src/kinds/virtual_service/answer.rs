//! Rules about answers and changes: redirects, fixed responses, rewrites.

use super::spec::{HttpDirectResponse, HttpRedirect, HttpRewrite, HttpRoute};
use super::text::decode_base64;
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic, Severity};
use crate::kinds::rules;
use crate::kinds::values::StringMatch;

/// A redirect; the rule is what it stands in.
pub(super) fn redirect(
    rule: &HttpRoute,
    redirect: &HttpRedirect,
    at: &Field<'_>,
    f: &mut Findings<'_>,
) {
    let HttpRedirect { uri, authority, port, derive_port, scheme, redirect_code, prefix_rewrite } =
        redirect;
    let nothing = [uri, authority, scheme, prefix_rewrite].iter().all(|text| text.is_empty());
    if nothing && port.is_none() && derive_port.is_none() {
        let message = "the redirect changes nothing; give `uri`, `prefixRewrite`, `authority`, \
                       `scheme` or a port";
        f.error(at, Code::MissingField, message);
    }
    for (name, text) in [("uri", uri), ("authority", authority), ("prefixRewrite", prefix_rewrite)]
    {
        no_control(text, &at.key(name), f);
    }
    if !uri.is_empty() && !prefix_rewrite.is_empty() {
        let message = "`uri` and `prefixRewrite` exclude each other; remove one of the two";
        refuse(&at.key("prefixRewrite"), message, f);
    }
    let other = |m: &StringMatch| matches!(m, StringMatch::Exact(_) | StringMatch::Regex(_));
    if !prefix_rewrite.is_empty() && rule.r#match.iter().any(|m| m.uri.as_ref().is_some_and(other))
    {
        let message = "a prefix can only be replaced where all matches of the rule have a `prefix`";
        refuse(&at.key("prefixRewrite"), message, f);
    }
    if let Some(port) = port {
        rules::port(f, &at.key("port"), *port);
        if derive_port.is_some() {
            let message = "`port` and `derivePort` exclude each other; remove one of the two";
            refuse(&at.key("derivePort"), message, f);
        }
    }
    if !matches!(scheme.as_str(), "" | "http" | "https") {
        let message = format!("the scheme must be `http` or `https`, not `{scheme}`");
        f.error(&at.key("scheme"), Code::InvalidValue, message);
    }
    if !matches!(redirect_code, 0 | 301 | 302 | 303 | 307 | 308) {
        let message = format!(
            "Envoy cannot redirect with status {redirect_code}; use 301, 302, 303, 307 or 308"
        );
        f.error(&at.key("redirectCode"), Code::InvalidValue, message);
    }
}

/// Istio warns above this size of a body.
const LARGE_BODY: usize = 100 * 1024;
/// Istio refuses a body above this size.
const MAX_BODY: usize = 1024 * 1024;

/// A fixed response.
pub(super) fn direct_response(response: &HttpDirectResponse, at: &Field<'_>, f: &mut Findings<'_>) {
    if !(200..600).contains(&response.status) {
        let message = format!("the status must be from 200 to 599, not {}", response.status);
        f.error(&at.key("status"), Code::InvalidValue, message);
    }
    let Some(body) = &response.body else { return };
    let at = at.key("body");
    let size = match (&body.string, &body.bytes) {
        (Some(_), Some(_)) => {
            let message = "`string` and `bytes` exclude each other; remove one of the two";
            refuse(&at.key("bytes"), message, f);
            return;
        }
        (Some(text), None) => text.len(),
        (None, Some(bytes)) => match decode_base64(bytes) {
            Some(bytes) => bytes.len(),
            None => {
                f.error(&at.key("bytes"), Code::InvalidValue, "the bytes must be in base64");
                return;
            }
        },
        (None, None) => 0,
    };
    if size > MAX_BODY {
        let message = format!("the body has {size} bytes; at most {MAX_BODY} are possible");
        f.error(&at, Code::InvalidValue, message);
    } else if size > LARGE_BODY {
        let message =
            format!("the body has {size} bytes, and every proxy holds it; serve it from elsewhere");
        let diagnostic = Diagnostic::new(Code::InvalidValue, message);
        let severity = Severity::Warning;
        f.report(&at, Diagnostic { severity, ..diagnostic });
    }
}

/// A rewrite.
pub(super) fn rewrite(rewrite: &HttpRewrite, at: &Field<'_>, f: &mut Findings<'_>) {
    let HttpRewrite { uri, authority, uri_regex_rewrite } = rewrite;
    if uri.is_empty() && authority.is_empty() && uri_regex_rewrite.is_none() {
        let message = "the rewrite changes nothing; give `uri`, `authority` or `uriRegexRewrite`";
        f.error(at, Code::MissingField, message);
    }
    no_control(uri, &at.key("uri"), f);
    no_control(authority, &at.key("authority"), f);
    let Some(regex) = uri_regex_rewrite else { return };
    let at = at.key("uriRegexRewrite");
    if !uri.is_empty() {
        let message = "`uri` and `uriRegexRewrite` exclude each other; remove one of the two";
        refuse(&at, message, f);
    }
    if regex.r#match.is_empty() || regex.rewrite.is_empty() {
        f.error(&at, Code::MissingField, "both `match` and `rewrite` are needed");
        return;
    }
    no_control(&regex.rewrite, &at.key("rewrite"), f);
    rules::regex(f, &at.key("match"), &regex.r#match);
    let groups = regex::Regex::new(&regex.r#match).map_or(9, |regex| regex.captures_len() - 1);
    if let Some(group) = highest_group(&regex.rewrite).filter(|group| *group > groups) {
        let message = format!(
            "`\\{group}` names a group that the pattern does not have ({groups} groups), so the \
             path stays as it is"
        );
        f.warn(&at.key("rewrite"), Code::NoEffect, message);
    }
}

/// The highest `\N` of a substitution.
fn highest_group(substitution: &str) -> Option<usize> {
    let mut highest = None;
    let mut chars = substitution.chars();
    while let Some(c) = chars.next() {
        if c == '\\'
            && let Some(digit) = chars.next().and_then(|c| c.to_digit(10))
        {
            highest = highest.max(Some(digit as usize));
        }
    }
    highest
}

/// What becomes part of a header must not break it.
fn no_control(text: &str, at: &Field<'_>, f: &mut Findings<'_>) {
    if text.chars().any(char::is_control) {
        f.error(at, Code::InvalidValue, "control characters are not allowed here");
    }
}

/// The field must not stand here; points at its key.
pub(super) fn refuse(at: &Field<'_>, message: &str, f: &mut Findings<'_>) {
    let span = f.key_span(at);
    f.report(at, Diagnostic::new(Code::ConflictingFields, message).at(span));
}
