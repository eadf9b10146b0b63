//! The virtual hosts of one route configuration while they are collected. Envoy refuses a whole
//! configuration in which two of them claim one domain, in whatever case, so the first that asks
//! gets it.

use crate::generate::{names, route};
use crate::model::Hostname;
use crate::xds::pb::route as proto;
use std::collections::HashSet;

pub(super) struct VirtualHosts {
    made: Vec<proto::VirtualHost>,
    names: HashSet<String>,
    domains: HashSet<String>,
    known: HashSet<String>,
}

impl VirtualHosts {
    /// None yet. `known` are the names that really are services.
    pub(super) fn new(known: impl IntoIterator<Item = route::Domain>) -> VirtualHosts {
        VirtualHosts {
            made: Vec::new(),
            names: HashSet::new(),
            domains: HashSet::new(),
            known: known.into_iter().map(|domain| domain.text).collect(),
        }
    }

    /// Adds what is said about a host on a port, unless something was said before.
    pub(super) fn add(
        &mut self,
        host: &Hostname,
        port: u16,
        domains: Vec<route::Domain>,
        routes: Vec<proto::Route>,
    ) {
        let name = names::virtual_host(&host.to_lowercase(), port);
        if !self.names.insert(name.clone()) {
            return;
        }
        let mut free = Vec::new();
        for domain in domains {
            let text = domain.text.to_ascii_lowercase();
            if domain.is_short && self.known.contains(&text) {
                continue;
            }
            if self.domains.insert(text.clone()) {
                free.push(text);
            }
        }
        if !free.is_empty() {
            self.made.push(route::virtual_host(name, free, routes));
        }
    }

    /// All of them by name, then the one for every other host.
    pub(super) fn finish(self, catch_all: proto::VirtualHost) -> Vec<proto::VirtualHost> {
        let mut made = self.made;
        made.sort_by(|a, b| a.name.cmp(&b.name));
        if !self.domains.contains("*") {
            made.push(catch_all);
        }
        made
    }
}
