//! Every service that gets clusters, and how destinations add to them.

use super::scope::{EgressScope, ScopedService};
use crate::model::{
    Hostname, HttpAction, Namespace, Routing, Service, ServiceId, VirtualService,
    WeightedDestination,
};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Every service that gets clusters: the imports of all egress listeners, and what imported
/// VirtualServices send traffic to.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    pub(super) services: Vec<ScopedService>,
    pub(super) by_host: HashMap<Hostname, usize>,
}

impl Inventory {
    pub(super) fn of(egress: &[Arc<EgressScope>]) -> Inventory {
        let mut inventory = Inventory::default();
        for scoped in egress.iter().flat_map(|e| &e.services) {
            match inventory.by_host.get(&scoped.service.hostname) {
                Some(&i) => {
                    let known = &mut inventory.services[i];
                    if known.service.namespace == scoped.service.namespace {
                        known.widen(scoped);
                    }
                }
                None => inventory.push(scoped.clone()),
            }
        }
        inventory
    }

    fn push(&mut self, scoped: ScopedService) {
        self.by_host.insert(scoped.service.hostname.clone(), self.services.len());
        self.services.push(scoped);
    }

    /// Adds what imported VirtualServices send traffic to. A service that was imported on purpose
    /// is never replaced or narrowed by a destination. (Who imports everything has it all already.)
    pub(super) fn add_destinations(
        &mut self,
        routing: &Routing,
        namespace: &Namespace,
        egress: &[Arc<EgressScope>],
    ) {
        let explicit = self.services.len();
        for rule in egress.iter().flat_map(|e| &e.virtual_services) {
            for (host, port) in destinations(rule, namespace) {
                let known = self.by_host.get(host).copied();
                if known.is_some_and(|i| i < explicit) {
                    continue;
                }
                let Some((id, service)) = best_service(routing, namespace, host) else { continue };
                if port.is_some_and(|port| service.port(port).is_none()) {
                    continue;
                }
                let only_ports = port.map(|p| BTreeSet::from([p]));
                let scoped = ScopedService { id, service: service.clone(), only_ports };
                match known {
                    Some(i) => self.services[i].widen(&scoped),
                    None => self.push(scoped),
                }
            }
        }
    }
}

/// The hosts and ports that a VirtualService sends traffic of this namespace to.
fn destinations<'a>(
    rule: &'a VirtualService,
    namespace: &Namespace,
) -> Vec<(&'a Hostname, Option<u16>)> {
    let mut found = Vec::new();
    let mut add = |list: &'a [WeightedDestination]| {
        found.extend(list.iter().map(|d| (&d.destination.host, d.destination.port)));
    };
    for http in &rule.http {
        // A rule that is only for other namespaces does not pull its destinations in.
        let foreign = !http.matches.is_empty()
            && http
                .matches
                .iter()
                .all(|m| m.source_namespace.as_ref().is_some_and(|n| n != namespace));
        if foreign {
            continue;
        }
        if let HttpAction::Route(list) = &http.action {
            add(list);
        }
    }
    for tls in &rule.tls {
        add(&tls.destinations);
    }
    for tcp in &rule.tcp {
        add(&tcp.destinations);
    }
    let mirrors = rule.http.iter().flat_map(|http| &http.mirrors);
    found.extend(mirrors.map(|m| (&m.destination.host, m.destination.port)));
    found
}

/// The service that a destination means: that of the own namespace, else the oldest visible one.
fn best_service<'a>(
    routing: &'a Routing,
    namespace: &Namespace,
    host: &str,
) -> Option<(ServiceId, &'a Arc<Service>)> {
    let visible =
        || routing.services.of_host(host).filter(|(_, s)| s.visibility.includes(namespace));
    visible().find(|(_, s)| s.namespace == *namespace).or_else(|| visible().next())
}
