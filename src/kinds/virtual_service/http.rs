//! Istio's rules about what an HTTP rule does, and Envoy's where Istio has none.

use super::answer::{self, refuse};
use super::spec::{
    Abort, CorsPolicy, Delay, Delegate, HeaderOperations, Headers, HttpFaultInjection, HttpRetry,
    HttpRoute, Spec,
};
use super::{destination, matches, text};
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::kinds::rules;
use crate::kinds::values::StringMatch;

/// Checks one rule.
pub(super) fn rule(spec: &Spec, rule: &HttpRoute, at: &Field<'_>, f: &mut Findings<'_>) {
    action(spec, rule, at, f);
    for (index, m) in rule.r#match.iter().enumerate() {
        matches::http_match(spec, m, &at.key("match").index(index), f);
    }
    let mut weights = Vec::new();
    for (index, route) in rule.route.iter().enumerate() {
        let at = at.key("route");
        let at = at.index(index);
        destination::one(&route.destination, &at.key("destination"), f);
        if let Some(changes) = &route.headers {
            headers(changes, &at.key("headers"), f);
        }
        weights.push(route.weight);
    }
    destination::weights(&weights, &at.key("route"), f);
    if let Some(changes) = &rule.headers {
        headers(changes, &at.key("headers"), f);
    }
    one_authority(rule, at, f);
    if let Some(r) = &rule.redirect {
        answer::redirect(rule, r, &at.key("redirect"), f);
    }
    if let Some(response) = &rule.direct_response {
        answer::direct_response(response, &at.key("directResponse"), f);
    }
    if let Some(r) = &rule.rewrite {
        answer::rewrite(r, &at.key("rewrite"), f);
    }
    if let Some(timeout) = rule.timeout {
        rules::duration(f, &at.key("timeout"), timeout);
    }
    if let Some(r) = &rule.retries {
        retry(r, &at.key("retries"), f);
    }
    if let Some(faults) = &rule.fault {
        fault(faults, &at.key("fault"), f);
    }
    mirrors(rule, at, f);
    if let Some(policy) = &rule.cors_policy {
        cors(policy, &at.key("corsPolicy"), f);
    }
}

/// What excludes what.
fn action(spec: &Spec, rule: &HttpRoute, at: &Field<'_>, f: &mut Findings<'_>) {
    if let Some(delegate) = &rule.delegate {
        if spec.hosts.is_empty() {
            let message = "a delegate must not delegate further";
            refuse(&at.key("delegate"), message, f);
        }
        delegation(delegate, &at.key("delegate"), f);
        for (name, given) in
            [("route", !rule.route.is_empty()), ("redirect", rule.redirect.is_some())]
        {
            if given {
                let message =
                    format!("a rule that delegates has no `{name}`; remove one of the two");
                refuse(&at.key(name), &message, f);
            }
        }
    } else if rule.redirect.is_some() || rule.direct_response.is_some() {
        let what = if rule.redirect.is_some() { "redirect" } else { "directResponse" };
        let given = [
            ("directResponse", what == "redirect" && rule.direct_response.is_some()),
            ("route", !rule.route.is_empty()),
            ("fault", rule.fault.is_some()),
            ("rewrite", rule.rewrite.is_some()),
        ];
        for (name, _) in given.into_iter().filter(|(_, given)| *given) {
            let message = format!("a rule with `{what}` has no `{name}`; remove one of the two");
            refuse(&at.key(name), &message, f);
        }
    } else if rule.route.is_empty() {
        let message = "the rule says nothing to do; give `route`, `redirect`, `directResponse` or \
                       `delegate`";
        f.error(at, Code::MissingField, message);
    }
    if rule.mirror.is_some() && !rule.mirrors.is_empty() {
        let message = "`mirror` and `mirrors` exclude each other; put all into `mirrors`";
        refuse(&at.key("mirror"), message, f);
    }
}

fn delegation(delegate: &Delegate, at: &Field<'_>, f: &mut Findings<'_>) {
    if delegate.name.is_empty() {
        f.error(at, Code::MissingField, "the delegate has no `name`");
    }
    if !delegate.namespace.is_empty() {
        rules::dns_label(f, &at.key("namespace"), "a namespace", &delegate.namespace);
    }
}

fn headers(headers: &Headers, at: &Field<'_>, f: &mut Findings<'_>) {
    if let Some(operations) = &headers.request {
        header_operations(operations, Authority::Allowed, &at.key("request"), f);
    }
    if let Some(operations) = &headers.response {
        header_operations(operations, Authority::Refused, &at.key("response"), f);
    }
}

/// Whether the authority may be changed by its header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Authority {
    Allowed,
    Refused,
}

fn is_authority(name: &str) -> bool {
    name.eq_ignore_ascii_case("host") || name.eq_ignore_ascii_case(":authority")
}

/// Envoy's limit on a header value.
const MAX_HEADER_VALUE: usize = 16_384;

fn header_operations(
    operations: &HeaderOperations,
    authority: Authority,
    at: &Field<'_>,
    f: &mut Findings<'_>,
) {
    for (what, map) in [("set", &operations.set), ("add", &operations.add)] {
        let at = at.key(what);
        for (name, value) in map {
            let at = at.key(name);
            header_name(name, authority, &at, f);
            rules::header_value(f, &at, value);
            if value.len() > MAX_HEADER_VALUE {
                let message = format!(
                    "the value has more than the {MAX_HEADER_VALUE} bytes that Envoy takes"
                );
                f.error(&at, Code::InvalidValue, message);
            }
        }
    }
    for (index, name) in operations.remove.iter().enumerate() {
        header_name(name, Authority::Refused, &at.key("remove").index(index), f);
    }
}

fn header_name(name: &str, authority: Authority, at: &Field<'_>, f: &mut Findings<'_>) {
    let message = if is_authority(name) {
        if authority == Authority::Allowed {
            return;
        }
        format!("`{name}` can only be set or added on requests")
    } else if name.starts_with(':') {
        format!("`{name}` is a pseudo header and cannot be changed")
    } else if !rules::is_header_name(name) {
        format!("`{name}` is not a header name")
    } else {
        return;
    };
    let span = f.key_span(at);
    f.report(at, Diagnostic::new(Code::InvalidValue, message).at(span));
}

/// The authority can be rewritten once.
fn one_authority(rule: &HttpRoute, at: &Field<'_>, f: &mut Findings<'_>) {
    let mut first = rule.rewrite.as_ref().is_some_and(|rewrite| !rewrite.authority.is_empty());
    let Some(request) = rule.headers.as_ref().and_then(|headers| headers.request.as_ref()) else {
        return;
    };
    let at = at.key("headers");
    let at = at.key("request");
    for (what, map) in [("set", &request.set), ("add", &request.add)] {
        for name in map.keys().filter(|name| is_authority(name)) {
            if first {
                let message = "the authority is changed twice; keep one of the changes";
                refuse(&at.key(what).key(name), message, f);
            }
            first = true;
        }
    }
}

/// What Envoy understands as a reason to retry.
const RETRY_ON: [&str; 16] = [
    "5xx",
    "gateway-error",
    "reset",
    "reset-before-request",
    "connect-failure",
    "retriable-4xx",
    "refused-stream",
    "retriable-status-codes",
    "retriable-headers",
    "envoy-ratelimited",
    "http3-post-connect-failure",
    "cancelled",
    "deadline-exceeded",
    "internal",
    "resource-exhausted",
    "unavailable",
];

/// Rules of a retry policy; the mesh has a default one too.
pub(in crate::kinds) fn retry(retry: &HttpRetry, at: &Field<'_>, f: &mut Findings<'_>) {
    if retry.attempts < 0 {
        let message =
            format!("the number of retries must not be negative, but is {}", retry.attempts);
        f.error(&at.key("attempts"), Code::InvalidValue, message);
    }
    let set = retry.per_try_timeout.is_some()
        || !retry.retry_on.is_empty()
        || retry.retry_remote_localities.is_some();
    if retry.attempts == 0 && set {
        let message = "without `attempts` retries are off, so the other settings contradict it; \
                       set `attempts`";
        f.error(at, Code::ConflictingFields, message);
    }
    for (name, duration) in [("perTryTimeout", retry.per_try_timeout), ("backoff", retry.backoff)] {
        if let Some(duration) = duration {
            rules::duration(f, &at.key(name), duration);
        }
    }
    if retry.retry_on.is_empty() {
        return;
    }
    for part in retry.retry_on.split(',') {
        let status = part.parse::<u16>().is_ok_and(is_known_status);
        if !status && !RETRY_ON.contains(&part) {
            let message = format!(
                "`{part}` is no reason to retry; expected a status number or one of {}, separated \
                 by commas without spaces",
                RETRY_ON.join(", ")
            );
            f.error(&at.key("retryOn"), Code::InvalidValue, message);
        }
    }
}

/// The status numbers that HTTP defines.
fn is_known_status(status: u16) -> bool {
    http::StatusCode::from_u16(status).is_ok_and(|status| status.canonical_reason().is_some())
}

fn fault(fault: &HttpFaultInjection, at: &Field<'_>, f: &mut Findings<'_>) {
    if fault.delay.is_none() && fault.abort.is_none() {
        f.error(at, Code::MissingField, "a fault needs a `delay` or an `abort`");
    }
    if let Some(d) = &fault.delay {
        delay(d, &at.key("delay"), f);
    }
    if let Some(a) = &fault.abort {
        abort(a, &at.key("abort"), f);
    }
}

fn delay(delay: &Delay, at: &Field<'_>, f: &mut Findings<'_>) {
    if let Some(duration) = delay.fixed_delay {
        rules::duration(f, &at.key("fixedDelay"), duration);
    }
    if delay.exponential_delay.is_some() {
        let message = "Envoy has no exponential delay; use `fixedDelay`";
        refuse(&at.key("exponentialDelay"), message, f);
    } else if delay.fixed_delay.is_none() {
        f.warn(at, Code::NoEffect, "without `fixedDelay` nothing is delayed");
    }
    if let Some(percentage) = delay.percentage {
        rules::percent(f, &at.key("percentage"), percentage);
    } else if delay.percent == 0 {
        f.warn(at, Code::NoEffect, "without `percentage` no request is delayed");
    }
    if !(0..=100).contains(&delay.percent) {
        let message = format!("the percentage must be from 0 to 100, not {}", delay.percent);
        f.error(&at.key("percent"), Code::InvalidValue, message);
    } else if delay.percent != 0 {
        f.warn(&at.key("percent"), Code::Deprecated, "`percent` is old; use `percentage.value`");
    }
}

fn abort(abort: &Abort, at: &Field<'_>, f: &mut Findings<'_>) {
    if let Some(status) = abort.http_status
        && !(200..600).contains(&status)
    {
        let message = format!("the status must be from 200 to 599, not {status}");
        f.error(&at.key("httpStatus"), Code::InvalidValue, message);
    }
    if let Some(name) = &abort.grpc_status {
        if text::grpc_status(name).is_none() {
            let message = format!(
                "`{name}` is no gRPC status, expected one of {}",
                text::GRPC_STATUSES.join(", ")
            );
            f.error(&at.key("grpcStatus"), Code::InvalidValue, message);
        }
        if abort.http_status.is_some() {
            let message = "`httpStatus` and `grpcStatus` exclude each other; remove one of the two";
            refuse(&at.key("grpcStatus"), message, f);
        }
    }
    if abort.http2_error.is_some() {
        let message = "Envoy cannot abort with an HTTP/2 error; use `httpStatus` or `grpcStatus`";
        refuse(&at.key("http2Error"), message, f);
    } else if abort.http_status.is_none() && abort.grpc_status.is_none() {
        let message = "without `httpStatus` or `grpcStatus` nothing is aborted";
        f.warn(at, Code::NoEffect, message);
    }
    match abort.percentage {
        Some(percentage) => rules::percent(f, &at.key("percentage"), percentage),
        None => f.warn(at, Code::NoEffect, "without `percentage` no request is aborted"),
    }
}

fn mirrors(rule: &HttpRoute, at: &Field<'_>, f: &mut Findings<'_>) {
    if let Some(mirror) = &rule.mirror {
        destination::one(mirror, &at.key("mirror"), f);
    }
    for (index, mirror) in rule.mirrors.iter().enumerate() {
        let at = at.key("mirrors");
        let at = at.index(index);
        destination::one(&mirror.destination, &at.key("destination"), f);
        if let Some(percentage) = mirror.percentage {
            rules::percent(f, &at.key("percentage"), percentage);
        }
    }
    if let Some(percent) = rule.mirror_percent {
        let at = at.key("mirrorPercent");
        if percent > 100 {
            let message = format!("the percentage must be from 0 to 100, not {percent}");
            f.error(&at, Code::InvalidValue, message);
        } else {
            let message = "`mirrorPercent` is old; use `mirrorPercentage.value`";
            f.warn(&at, Code::Deprecated, message);
        }
    }
    if let Some(percentage) = rule.mirror_percentage {
        rules::percent(f, &at.key("mirrorPercentage"), percentage);
    }
    if rule.mirror.is_none() {
        let set = [
            ("mirrorPercent", rule.mirror_percent.is_some()),
            ("mirrorPercentage", rule.mirror_percentage.is_some()),
        ];
        for (name, _) in set.into_iter().filter(|(_, set)| *set) {
            f.warn(&at.key(name), Code::NoEffect, format!("`{name}` is only about `mirror`"));
        }
    }
}

const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "*"];

fn cors(cors: &CorsPolicy, at: &Field<'_>, f: &mut Findings<'_>) {
    for (index, origin) in cors.allow_origins.iter().enumerate() {
        let at = at.key("allowOrigins");
        let at = at.index(index);
        match origin {
            StringMatch::Regex(pattern) => rules::regex(f, &at.key("regex"), pattern),
            StringMatch::Exact(text) | StringMatch::Prefix(text) if !text.is_empty() => {}
            StringMatch::Present | StringMatch::Exact(_) | StringMatch::Prefix(_) => {
                let message = "the origin is empty; give `exact`, `prefix` or `regex` a value";
                f.error(&at, Code::InvalidValue, message);
            }
        }
    }
    if !cors.allow_origin.is_empty() {
        let at = at.key("allowOrigin");
        let message = "`allowOrigin` is old; use `allowOrigins` with `exact`";
        f.warn(&at, Code::Deprecated, message);
        if !cors.allow_origins.is_empty() {
            f.warn(&at, Code::NoEffect, "`allowOrigins` takes the place of `allowOrigin`");
        }
    }
    for (index, method) in cors.allow_methods.iter().enumerate() {
        if !METHODS.contains(&method.as_str()) {
            let message =
                format!("`{method}` is no method, expected one of {}", METHODS.join(", "));
            f.error(&at.key("allowMethods").index(index), Code::InvalidValue, message);
        }
    }
    for (name, list) in
        [("allowHeaders", &cors.allow_headers), ("exposeHeaders", &cors.expose_headers)]
    {
        for (index, header) in list.iter().enumerate() {
            if !rules::is_header_name(header) {
                let message = format!("`{header}` is not a header name");
                f.error(&at.key(name).index(index), Code::InvalidValue, message);
            }
        }
    }
    if let Some(age) = cors.max_age {
        let at = at.key("maxAge");
        rules::duration(f, &at, age);
        if age.0.subsec_nanos() != 0 {
            f.error(&at, Code::InvalidValue, "the duration must be in whole seconds");
        }
    }
}
