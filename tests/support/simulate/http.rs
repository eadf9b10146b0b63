//! What an HTTP connection manager does with a request: virtual host, route, action.

use super::matchers::{self, Asked};
use super::{Unknown, array, find, only, text, type_of};
use crate::support::requests::{Answer, Request, Seen};
use serde_json::Value;
use std::collections::BTreeSet;

/// Where the request ends.
pub fn answer(document: &Value, manager: &Value, request: &Request) -> Result<Answer, Unknown> {
    // What Envoy does to these before routing is not simulated.
    if ["//", "/.", "%", "\\", "#"].iter().any(|part| request.path.contains(part)) {
        return Err(format!("the path {} would be normalized", request.path));
    }
    for filter in array(manager, "http_filters") {
        match type_of(filter) {
            "Router" | "Cors" | "HTTPFault" | "GrpcWeb" | "FilterConfig" | "Config" => {}
            other => return Err(format!("HTTP filter {other} is not simulated")),
        }
    }
    let configuration = match manager.get("route_config") {
        Some(inline) => Some(inline),
        None => find(document, "routes", "name", text(&manager["rds"], "route_config_name")),
    };
    let not_found = Answer::Local { status: 404, location: None };
    let Some(configuration) = configuration else { return Ok(not_found) };
    let mut authority = request.authority();
    if manager["strip_any_host_port"] == true {
        authority = without_port(&authority).to_owned();
    }
    let asked = asked(request, &authority);
    let Some(host) = virtual_host(configuration, &authority)? else { return Ok(not_found) };
    if requires_tls(host, request)? {
        let location = Some(format!("https://{authority}{}", request.path));
        return Ok(Answer::Local { status: 301, location });
    }
    for route in array(host, "routes") {
        if matchers::route_match(&route["match"], &asked)? {
            let server = Server { document, host, route, request, asked: &asked };
            return server
                .answer(&authority)
                .map_err(|unknown| format!("route {}: {unknown}", text(route, "name")));
        }
    }
    Ok(not_found)
}

fn asked<'r>(request: &'r Request, authority: &str) -> Asked<'r> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let scheme = if request.tls.is_some() { "https" } else { "http" };
    let pseudo = [
        (":method", request.method.as_str()),
        (":authority", authority),
        (":scheme", scheme),
        (":path", request.path.as_str()),
    ];
    let sent = request.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    Asked {
        path,
        query: query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .collect(),
        headers: pseudo
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .chain(sent.map(|(name, value)| (name, value.clone())))
            .collect(),
    }
}

/// The virtual host of an authority: exact names first, then the longest `*suffix`, the longest
/// `prefix*`, and `*`.
fn virtual_host<'d>(
    configuration: &'d Value,
    authority: &str,
) -> Result<Option<&'d Value>, Unknown> {
    let ignores_port = configuration["ignore_port_in_host_matching"] == true;
    let wanted = if ignores_port { without_port(authority) } else { authority };
    let wanted = wanted.to_ascii_lowercase();
    let rank = |domain: &str| -> Option<(u8, usize)> {
        let domain = domain.to_ascii_lowercase();
        if domain == "*" {
            Some((0, 0))
        } else if let Some(suffix) = domain.strip_prefix('*') {
            let fits = wanted.ends_with(suffix) && wanted.len() > suffix.len();
            fits.then_some((2, suffix.len()))
        } else if let Some(prefix) = domain.strip_suffix('*') {
            let fits = wanted.starts_with(prefix) && wanted.len() > prefix.len();
            fits.then_some((1, prefix.len()))
        } else {
            (domain == wanted).then_some((3, 0))
        }
    };
    let mut best: Option<((u8, usize), &Value)> = None;
    for host in array(configuration, "virtual_hosts") {
        if host.get("matcher").is_some() {
            return Err("a virtual host with a matcher is not simulated".to_owned());
        }
        for domain in array(host, "domains").filter_map(Value::as_str) {
            if let Some(found) = rank(domain)
                && best.is_none_or(|(known, _)| found > known)
            {
                best = Some((found, host));
            }
        }
    }
    Ok(best.map(|(_, host)| host))
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn requires_tls(host: &Value, request: &Request) -> Result<bool, Unknown> {
    match text(host, "require_tls") {
        "" | "NONE" => Ok(false),
        "ALL" => Ok(request.tls.is_none()),
        other => Err(format!("require_tls {other} is not simulated")),
    }
}

/// A route that has been chosen.
struct Server<'a> {
    document: &'a Value,
    host: &'a Value,
    route: &'a Value,
    request: &'a Request,
    asked: &'a Asked<'a>,
}

impl Server<'_> {
    fn answer(&self, authority: &str) -> Result<Answer, Unknown> {
        if let Some(status) = self.preflight()?.or(self.abort()?) {
            return Ok(Answer::Local { status, location: None });
        }
        if let Some(response) = self.route.get("direct_response") {
            let status = number(&response["status"])?;
            // Envoy says where a created thing is, or a moved one: where it was asked for.
            let places = status == 201 || (300..400).contains(&status);
            let location = places.then(|| self.here(authority));
            return Ok(Answer::Local { status, location });
        }
        if let Some(redirect) = self.route.get("redirect") {
            return self.redirect(redirect, authority);
        }
        let action = self.route.get("route").ok_or("an action that is not simulated")?;
        self.forward(action, authority)
    }

    /// The URL of the request.
    fn here(&self, authority: &str) -> String {
        let scheme = if self.request.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{authority}{}", self.request.path)
    }

    fn forward(&self, action: &Value, authority: &str) -> Result<Answer, Unknown> {
        const SILENT: &[&str] = &[
            "cluster",
            "weighted_clusters",
            "host_rewrite_literal",
            "prefix_rewrite",
            "regex_rewrite",
            "timeout",
            "idle_timeout",
            "retry_policy",
            "hash_policy",
            "max_grpc_timeout",
            "max_stream_duration",
            "request_mirror_policies",
        ];
        only("route", action, SILENT)?;
        let path = self.rewritten(action, self.asked.path)?;
        let query = self.request.path.split_once('?').map(|(_, query)| format!("?{query}"));
        let path = format!("{path}{}", query.unwrap_or_default());
        let literal = action["host_rewrite_literal"].as_str().map(str::to_owned);
        let (clusters, hosts): (BTreeSet<String>, BTreeSet<String>) =
            match action.get("weighted_clusters") {
                Some(weighted) => array(weighted, "clusters")
                    .filter(|part| part["weight"].as_u64() != Some(0))
                    .map(|part| {
                        let own = part["host_rewrite_literal"].as_str().unwrap_or(authority);
                        (text(part, "name").to_owned(), own.to_owned())
                    })
                    .unzip(),
                None => ([text(action, "cluster").to_owned()].into(), [authority.into()].into()),
            };
        let missing = |c: &String| find(self.document, "clusters", "name", c).is_none();
        if clusters.iter().all(missing) {
            return Ok(Answer::Local { status: 503, location: None });
        }
        let only_host = hosts.first().filter(|_| hosts.len() == 1).cloned();
        Ok(Answer::Upstream { clusters, seen: Some(Seen { path, host: literal.or(only_host) }) })
    }

    /// The path without its query, rewritten.
    fn rewritten(&self, action: &Value, path: &str) -> Result<String, Unknown> {
        if let Some(rewrite) = action.get("regex_rewrite") {
            return matchers::substitute(rewrite, path);
        }
        let Some(new) = action["prefix_rewrite"].as_str().filter(|new| !new.is_empty()) else {
            return Ok(path.to_owned());
        };
        let wanted = &self.route["match"];
        let prefix = wanted["prefix"].as_str().or(wanted["path_separated_prefix"].as_str());
        // What is matched as a whole is replaced as a whole.
        let kept = prefix.map_or("", |prefix| path.get(prefix.len()..).unwrap_or_default());
        Ok(format!("{new}{kept}"))
    }

    fn redirect(&self, redirect: &Value, authority: &str) -> Result<Answer, Unknown> {
        const KNOWN: &[&str] = &[
            "https_redirect",
            "scheme_redirect",
            "host_redirect",
            "port_redirect",
            "path_redirect",
            "prefix_rewrite",
            "regex_rewrite",
            "response_code",
            "strip_query",
        ];
        only("redirect", redirect, KNOWN)?;
        let current = if self.request.tls.is_some() { "https" } else { "http" };
        let scheme = match (text(redirect, "scheme_redirect"), &redirect["https_redirect"]) {
            ("", https) if *https == true => "https",
            ("", _) => current,
            (scheme, _) => scheme,
        };
        let port = redirect["port_redirect"].as_u64().filter(|port| *port != 0);
        let host = match text(redirect, "host_redirect") {
            "" => {
                let bare = without_port(authority);
                let own = &authority[bare.len()..];
                let default = matches!((current, own), ("http", ":80") | ("https", ":443"));
                if port.is_some() || (current != scheme && default) { bare } else { authority }
            }
            host => host,
        };
        let query = self.request.path.split_once('?').map(|(_, query)| query);
        let query = query.filter(|_| redirect["strip_query"] != true);
        let path = match text(redirect, "path_redirect") {
            "" => self.rewritten(redirect, self.asked.path)?,
            path => path.to_owned(),
        };
        let query = match query {
            Some(query) if !path.contains('?') => format!("?{query}"),
            _ => String::new(),
        };
        let status = match text(redirect, "response_code") {
            "" | "MOVED_PERMANENTLY" => 301,
            "FOUND" => 302,
            "SEE_OTHER" => 303,
            "TEMPORARY_REDIRECT" => 307,
            "PERMANENT_REDIRECT" => 308,
            other => return Err(format!("redirect code {other}")),
        };
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let location = Some(format!("{scheme}://{host}{port}{path}{query}"));
        Ok(Answer::Local { status, location })
    }

    /// The status of a fault that is injected into each request.
    fn abort(&self) -> Result<Option<u16>, Unknown> {
        let Some(fault) = self.filter("HTTPFault") else { return Ok(None) };
        let Some(abort) = fault.get("abort") else { return Ok(None) };
        for header in array(fault, "headers") {
            if !matchers::header(header, self.asked)? {
                return Ok(None);
            }
        }
        let share = &abort["percentage"];
        let whole = match text(share, "denominator") {
            "" | "HUNDRED" => 100,
            "TEN_THOUSAND" => 10_000,
            _ => 1_000_000,
        };
        match share["numerator"].as_u64().unwrap_or_default() {
            0 => Ok(None),
            n if n >= whole => Ok(Some(match abort.get("http_status") {
                Some(status) => number(status)?,
                // A gRPC status comes with HTTP status 200.
                None => 200,
            })),
            _ => Err("some requests are aborted and some are not".to_owned()),
        }
    }

    /// The status of a preflight that the CORS filter answers.
    fn preflight(&self) -> Result<Option<u16>, Unknown> {
        let (Some(policy), Some(origin)) = (self.filter("CorsPolicy"), self.asked.header("origin"))
        else {
            return Ok(None);
        };
        let asks = self.asked.header("access-control-request-method").is_some();
        if self.request.method != "OPTIONS" || !asks {
            return Ok(None);
        }
        for allowed in array(policy, "allow_origin_string_match") {
            if matchers::string(allowed, origin)? {
                return Ok(Some(200));
            }
        }
        Ok((policy["forward_not_matching_preflights"] == false).then_some(200))
    }

    /// The configuration of a filter on the route, or else on the virtual host.
    fn filter(&self, kind: &str) -> Option<&Value> {
        [self.route, self.host].into_iter().find_map(|level| {
            let configurations = level["typed_per_filter_config"].as_object()?;
            configurations.values().find(|c| text(c, "@type").ends_with(&format!(".{kind}")))
        })
    }
}

fn number(value: &Value) -> Result<u16, Unknown> {
    value.as_u64().and_then(|n| u16::try_from(n).ok()).ok_or(format!("{value} is no status"))
}
