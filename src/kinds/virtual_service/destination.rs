//! Rules about destinations and their weights.

use super::spec::RouteDestination;
use crate::config::{Field, Findings};
use crate::diag::Code;
use crate::kinds::rules;
use crate::kinds::values::Destination;
use std::net::IpAddr;

/// Destinations of a TLS or TCP rule.
pub(super) fn l4(list: &[RouteDestination], at: &Field<'_>, f: &mut Findings<'_>) {
    if list.is_empty() {
        f.error(at, Code::MissingField, "the rule has no `route`; say where connections go");
    }
    let at = at.key("route");
    for (index, route) in list.iter().enumerate() {
        one(&route.destination, &at.index(index).key("destination"), f);
    }
    let all: Vec<i32> = list.iter().map(|route| route.weight).collect();
    weights(&all, &at, f);
}

/// One destination.
pub(super) fn one(to: &Destination, at: &Field<'_>, f: &mut Findings<'_>) {
    let host = at.key("host");
    if to.host == "*" {
        f.error(&host, Code::InvalidValue, "`*` is no destination; name a service");
    } else if to.host.parse::<IpAddr>().is_ok() {
        let message =
            "an IP address is no destination; name the host of a ServiceEntry that has it";
        f.error(&host, Code::InvalidValue, message);
    } else {
        rules::wildcard_host(f, &host, &to.host);
    }
    if !to.subset.is_empty() {
        rules::dns_label(f, &at.key("subset"), "the name of a subset", &to.subset);
    }
    if let Some(port) = to.port {
        rules::port(f, &at.key("port").key("number"), port.number);
    }
}

/// The weights of one rule's destinations.
pub(super) fn weights(weights: &[i32], at: &Field<'_>, f: &mut Findings<'_>) {
    for (index, weight) in weights.iter().enumerate() {
        if *weight < 0 {
            let message = format!("a weight must not be negative, but this is {weight}");
            f.error(&at.index(index).key("weight"), Code::InvalidValue, message);
        }
    }
    let total: i64 = weights.iter().map(|weight| i64::from(*weight)).sum();
    if weights.len() > 1 && total == 0 {
        let message = "with several destinations, at least one needs a `weight` above 0";
        f.error(at, Code::InvalidValue, message);
    } else if total > i64::from(u32::MAX) {
        f.error(at, Code::InvalidValue, "the weights add up to more than 4294967295");
    }
}
