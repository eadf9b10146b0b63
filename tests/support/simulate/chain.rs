//! Which filter chain of a listener takes a connection.
//!
//! Envoy looks at one property after the other; among the chains that are left, those with the most
//! specific fitting value stay, and there is no way back when a later property fits none of them.

use super::{Unknown, array, only, text, type_of};
use crate::support::requests::Request;
use ipnet::IpNet;
use serde_json::Value;

/// What the listener's filters find out about a connection.
struct Seen<'r> {
    request: &'r Request,
    server_name: Option<String>,
    transport: &'static str,
    protocols: Vec<String>,
}

/// The chain, or the default one; `None` when the connection is closed.
pub fn select<'d>(listener: &'d Value, request: &Request) -> Result<Option<&'d Value>, Unknown> {
    let seen = inspect(listener, request)?;
    let mut chains: Vec<&Value> = array(listener, "filter_chains").collect();
    for chain in &chains {
        only(
            "filter_chain_match",
            &chain["filter_chain_match"],
            &[
                "destination_port",
                "prefix_ranges",
                "server_names",
                "transport_protocol",
                "application_protocols",
            ],
        )?;
    }
    for rank in [destination_port, prefix_ranges, server_names, transport, protocols] {
        let ranked: Vec<(Option<usize>, &Value)> =
            chains.iter().map(|c| (rank(&c["filter_chain_match"], &seen), *c)).collect();
        let best = ranked.iter().filter_map(|(rank, _)| *rank).max();
        let kept = ranked.into_iter().filter(|(rank, _)| rank.is_some() && *rank == best);
        chains = kept.map(|(_, chain)| chain).collect();
    }
    match chains[..] {
        [] => Ok(listener.get("default_filter_chain")),
        [only] => Ok(Some(only)),
        _ => Err(format!("{} chains fit equally", chains.len())),
    }
}

fn inspect<'r>(listener: &Value, request: &'r Request) -> Result<Seen<'r>, Unknown> {
    let mut seen =
        Seen { request, server_name: None, transport: "raw_buffer", protocols: Vec::new() };
    for filter in array(listener, "listener_filters") {
        if let Some(predicate) = filter.get("filter_disabled")
            && disabled(predicate, request.port)?
        {
            continue;
        }
        match (type_of(filter), &request.tls) {
            ("TlsInspector", Some(tls)) => {
                seen.transport = "tls";
                seen.server_name = tls.sni.as_ref().map(|name| name.to_ascii_lowercase());
                seen.protocols = tls.alpn.clone();
            }
            ("HttpInspector", None) if !request.tcp => {
                seen.protocols = vec!["http/1.1".to_owned()];
            }
            ("TlsInspector" | "HttpInspector" | "OriginalDst" | "OriginalSrc", _) => {}
            (other, _) => return Err(format!("listener filter {other} is not simulated")),
        }
    }
    Ok(seen)
}

/// Whether a predicate of a listener filter holds for a port.
fn disabled(predicate: &Value, port: u16) -> Result<bool, Unknown> {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    if let Some(range) = predicate.get("destination_port_range") {
        return Ok((number(&range["start"])..number(&range["end"])).contains(&u64::from(port)));
    }
    if let Some(inner) = predicate.get("not_match") {
        return Ok(!disabled(inner, port)?);
    }
    for (key, decides) in [("or_match", true), ("and_match", false)] {
        if let Some(rules) = predicate[key]["rules"].as_array() {
            for rule in rules {
                if disabled(rule, port)? == decides {
                    return Ok(decides);
                }
            }
            return Ok(!decides);
        }
    }
    match predicate["any_match"] == true {
        true => Ok(true),
        false => Err(format!("the predicate {predicate} is not simulated")),
    }
}

// Each rank is `None` when the chain does not fit, 0 when it does not care, and the higher the more
// specific otherwise.

fn destination_port(wanted: &Value, seen: &Seen<'_>) -> Option<usize> {
    match wanted["destination_port"].as_u64() {
        None => Some(0),
        Some(port) => (port == u64::from(seen.request.port)).then_some(1),
    }
}

fn prefix_ranges(wanted: &Value, seen: &Seen<'_>) -> Option<usize> {
    let mut ranges = array(wanted, "prefix_ranges").peekable();
    if ranges.peek().is_none() {
        return Some(0);
    }
    let networks = ranges.filter_map(|range| {
        let length = u8::try_from(range["prefix_len"].as_u64().unwrap_or_default()).ok()?;
        IpNet::new(text(range, "address_prefix").parse().ok()?, length).ok()
    });
    networks
        .filter(|network| network.contains(&seen.request.address))
        .map(|network| 1 + usize::from(network.prefix_len()))
        .max()
}

fn server_names(wanted: &Value, seen: &Seen<'_>) -> Option<usize> {
    let mut names = array(wanted, "server_names").filter_map(Value::as_str).peekable();
    if names.peek().is_none() {
        return Some(0);
    }
    let actual = seen.server_name.as_deref()?;
    names
        .filter_map(|name| match name.strip_prefix('*') {
            Some(suffix) => actual.ends_with(suffix).then_some(suffix.len()),
            None => (name == actual).then_some(usize::MAX),
        })
        .max()
}

fn transport(wanted: &Value, seen: &Seen<'_>) -> Option<usize> {
    match text(wanted, "transport_protocol") {
        "" => Some(0),
        protocol => (protocol == seen.transport).then_some(1),
    }
}

fn protocols(wanted: &Value, seen: &Seen<'_>) -> Option<usize> {
    let mut wanted = array(wanted, "application_protocols").filter_map(Value::as_str).peekable();
    if wanted.peek().is_none() {
        return Some(0);
    }
    // The client's order counts: what it offers first weighs most.
    wanted
        .filter_map(|name| seen.protocols.iter().rev().position(|p| p == name))
        .map(|position| position + 1)
        .max()
}
