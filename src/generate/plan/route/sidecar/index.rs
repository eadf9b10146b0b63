//! What an egress listener imports, arranged so that each table looks only at what concerns it. It
//! depends on nothing else, so whoever imports the same shares it.

use crate::generate::host_index::HostIndex;
use crate::generate::{EgressScope, ScopedService};
use crate::model::Hostname;
use std::collections::HashMap;

/// Services and VirtualServices of an egress listener by what asks for them. Both are known by their
/// positions.
#[derive(Debug)]
pub struct EgressIndex {
    by_port: HashMap<u16, Vec<usize>>,
    /// Services by host.
    hosts: HostIndex,
    claims: Vec<Claim>,
    /// Where a service stands when they are sorted by name.
    ranks: Vec<usize>,
}

/// Which VirtualService a service belongs to.
#[derive(Debug)]
pub(super) enum Claim {
    /// The first of these that has routes.
    Named(Vec<usize>),
    /// This one or none.
    Wildcard(usize),
    /// None.
    Unclaimed,
}

impl EgressIndex {
    /// The index.
    pub fn new(egress: &EgressScope) -> EgressIndex {
        let services = &egress.services;
        let mut by_port: HashMap<u16, Vec<usize>> = HashMap::new();
        for (position, scoped) in services.iter().enumerate() {
            for port in scoped.ports() {
                by_port.entry(port.number).or_default().push(position);
            }
        }
        let rules = egress.virtual_services.iter().enumerate();
        let rule_hosts =
            HostIndex::new(rules.flat_map(|(i, rules)| rules.hosts.iter().map(move |h| (i, h))));
        let mut sorted: Vec<usize> = (0..services.len()).collect();
        sorted.sort_by_key(|&i| &services[i].service.hostname);
        let mut ranks = vec![0; services.len()];
        for (rank, position) in sorted.into_iter().enumerate() {
            ranks[position] = rank;
        }
        EgressIndex {
            by_port,
            hosts: HostIndex::new(services.iter().map(|s| &s.service.hostname).enumerate()),
            claims: services.iter().map(|s| claim(&rule_hosts, &s.service.hostname)).collect(),
            ranks,
        }
    }

    /// The services with a port of this number.
    pub(super) fn of_port(&self, port: u16) -> &[usize] {
        self.by_port.get(&port).map_or(&[], Vec::as_slice)
    }

    /// Who has a say about a service.
    pub(super) fn claim(&self, service: usize) -> &Claim {
        &self.claims[service]
    }

    /// Where a service stands when they are sorted by name.
    pub(super) fn rank(&self, service: usize) -> usize {
        self.ranks[service]
    }

    /// The services with exactly this host.
    pub(super) fn named(&self, host: &str) -> &[usize] {
        self.hosts.exact(host)
    }

    /// Whether a host overlaps with that of a service for which `test` holds.
    pub(super) fn overlaps(&self, host: &Hostname, test: impl FnMut(usize) -> bool) -> bool {
        self.hosts.any_overlapping(host, test)
    }
}

fn claim(rule_hosts: &HostIndex, host: &Hostname) -> Claim {
    if !host.is_wildcard() {
        let named = rule_hosts.exact(host);
        if !named.is_empty() {
            return Claim::Named(named.to_vec());
        }
    }
    match rule_hosts.longest_wildcard(host).first() {
        Some(&position) => Claim::Wildcard(position),
        None => Claim::Unclaimed,
    }
}

/// The ports of a service that a connection manager can serve.
pub(super) fn http_ports(scoped: &ScopedService) -> impl Iterator<Item = u16> {
    use crate::model::Protocol;
    let can = |protocol: Protocol| protocol.is_http() || protocol == Protocol::Auto;
    scoped.ports().filter(move |p| can(p.protocol)).map(|p| p.number)
}
