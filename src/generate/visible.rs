//! What a namespace may see, and what a Sidecar lets in of it.

use super::imports::Imports;
use super::scope::{EgressScope, ScopedService};
use super::view::Viewer;
use crate::model::{
    GatewayRef, HostImport, Hostname, Namespace, Protocol, Routing, Service, ServiceId, Sidecar,
    VirtualService, Visibility,
};
use crate::proxy::Role;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// The Sidecar of a workload: in its namespace one with a fitting selector, then one without; else
/// one without a selector in the root namespace. Nothing is merged.
pub(super) fn applicable_sidecar(routing: &Routing, viewer: &Viewer<'_>) -> Option<Arc<Sidecar>> {
    let of = |namespace: &Namespace| {
        let own = |s: &&Arc<Sidecar>| s.origin.name.namespace == *namespace;
        routing.sidecars.iter().filter(own).collect::<Vec<_>>()
    };
    let own = of(viewer.namespace());
    let fits = |s: &&&Arc<Sidecar>| s.selector.as_ref().is_some_and(|l| viewer.selected_by(l));
    let general = |s: &&&Arc<Sidecar>| s.selector.is_none();
    own.iter()
        .find(fits)
        .or_else(|| own.iter().find(general))
        .copied()
        .or_else(|| of(&routing.mesh.root_namespace).into_iter().find(|s| s.selector.is_none()))
        .cloned()
}

/// VirtualServices that a namespace may see: its own private ones, those exported to it by name,
/// public ones; Istio keeps precedence only inside each of the three.
pub(super) fn by_closeness<'a>(
    rules: impl Iterator<Item = &'a Arc<VirtualService>>,
    namespace: &Namespace,
) -> Vec<&'a Arc<VirtualService>> {
    let mut private = Vec::new();
    let mut exported = Vec::new();
    let mut public = Vec::new();
    for rule in rules {
        match &rule.visibility {
            Visibility::Public => public.push(rule),
            Visibility::Nobody => {}
            Visibility::Namespaces(list) if list.contains(namespace) => {
                if rule.origin.name.namespace == *namespace {
                    private.push(rule);
                } else {
                    exported.push(rule);
                }
            }
            Visibility::Namespaces(_) => {}
        }
    }
    private.append(&mut exported);
    private.append(&mut public);
    private
}

/// What a namespace may see, before a Sidecar narrows it.
pub(super) struct Visible<'a> {
    role: Role,
    namespace: &'a Namespace,
    services: Vec<(ServiceId, &'a Arc<Service>)>,
    mesh_rules: Vec<&'a Arc<VirtualService>>,
}

impl<'a> Visible<'a> {
    pub(super) fn new(routing: &'a Routing, viewer: &Viewer<'a>) -> Visible<'a> {
        let namespace = viewer.namespace();
        // Services exported to the namespace by name come before public ones (Istio).
        let seen = || routing.services.iter().filter(|(_, s)| s.visibility.includes(namespace));
        let public = |s: &(ServiceId, &Arc<Service>)| s.1.visibility == Visibility::Public;
        let named = seen().filter(|s| !public(s));
        let services = named.chain(seen().filter(public)).collect();
        let mesh =
            routing.virtual_services.iter().filter(|v| v.gateways.contains(&GatewayRef::Mesh));
        let mesh_rules = by_closeness(mesh, namespace);
        Visible { role: viewer.role(), namespace, services, mesh_rules }
    }

    /// The default scope. A router takes the first service of a hostname, a sidecar prefers its
    /// own namespace's.
    pub(super) fn everything(&self) -> EgressScope {
        let services = self.services.iter().map(|s| ScopedService::whole(*s)).collect();
        EgressScope {
            listener: None,
            services: self.one_per_host(services),
            virtual_services: match self.role {
                Role::Sidecar => self.mesh_rules.iter().map(|rule| (*rule).clone()).collect(),
                Role::Router => Vec::new(),
            },
        }
    }

    pub(super) fn import(
        &self,
        sidecar: &Arc<Sidecar>,
        position: usize,
        hosts: &[HostImport],
    ) -> EgressScope {
        let imports = Imports::new(hosts, self.namespace);
        let port = sidecar
            .egress
            .get(position)
            .and_then(|l| l.port.as_ref())
            .filter(|p| p.protocol != Protocol::HttpProxy && p.number != 0)
            .map(|p| p.number);
        let services = self
            .services
            .iter()
            .filter(|(_, s)| imports.covers_service(&s.namespace, &s.hostname))
            .filter(|(_, s)| port.is_none_or(|number| s.port(number).is_some()))
            .map(|(id, service)| ScopedService {
                id: *id,
                service: (*service).clone(),
                only_ports: port.filter(|_| service.ports.len() > 1).map(|p| BTreeSet::from([p])),
            })
            .collect();
        let virtual_services = self
            .mesh_rules
            .iter()
            .filter(|rule| imports.covers_rule(&rule.origin.name.namespace, &rule.hosts))
            .map(|rule| (*rule).clone())
            .collect();
        EgressScope {
            listener: Some((sidecar.clone(), position)),
            services: self.one_per_host(services),
            virtual_services,
        }
    }

    /// Keeps one service of each hostname: the first, but for a sidecar its own namespace's.
    fn one_per_host(&self, services: Vec<ScopedService>) -> Vec<ScopedService> {
        let own: HashSet<Hostname> = match self.role {
            Role::Router => HashSet::new(),
            Role::Sidecar => services
                .iter()
                .filter(|s| s.service.namespace == *self.namespace)
                .map(|s| s.service.hostname.clone())
                .collect(),
        };
        let is_outdone = |s: &ScopedService| {
            s.service.namespace != *self.namespace && own.contains(&s.service.hostname)
        };
        first_of_each_host(services.into_iter().filter(|s| !is_outdone(s)).collect())
    }
}

pub(super) fn first_of_each_host(services: Vec<ScopedService>) -> Vec<ScopedService> {
    let mut seen = HashSet::with_capacity(services.len());
    services.into_iter().filter(|s| seen.insert(s.service.hostname.clone())).collect()
}
