//! Who sees which [`World`]: what is the same for everybody is worked out once ([`Worlds`]), and who
//! sees nothing of its own shares it.

use super::inventory::Inventory;
use super::scope::{EgressScope, ScopedService, World};
use super::view::Viewer;
use super::visible::{Visible, applicable_sidecar, first_of_each_host};
use crate::model::{
    DestinationRule, EgressListener, GatewayRef, Namespace, Routing, Service, ServiceId,
    VirtualService, Visibility,
};
use crate::proxy::Role;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// What is the same for everybody, worked out once for a snapshot's routing half.
#[derive(Debug)]
pub struct Worlds {
    routing: Arc<Routing>,
    /// Services that are not public.
    guarded_services: Vec<ServiceId>,
    /// VirtualServices that are not public.
    guarded_rules: Vec<Arc<VirtualService>>,
    /// Namespaces with a public service whose hostname an older service of another has too.
    outdone: HashSet<Namespace>,
    /// What those see who see only what is public.
    public: Arc<EgressScope>,
    /// The same without VirtualServices: routers get theirs through Gateways.
    public_of_routers: Arc<EgressScope>,
    inventory: Arc<Inventory>,
    rules: Arc<[Option<Arc<DestinationRule>>]>,
    /// Positions in the inventory whose rule depends on the client's namespace.
    touchy: Vec<usize>,
}

impl Worlds {
    /// Works it out.
    pub fn new(routing: Arc<Routing>) -> Worlds {
        let public = |s: &(ServiceId, &Arc<Service>)| s.1.visibility == Visibility::Public;
        let all = || routing.services.iter();
        let guarded_services = all().filter(|s| !public(s)).map(|(id, _)| id).collect();
        let guarded_rules =
            routing.virtual_services.iter().filter(|v| v.visibility != Visibility::Public);
        let guarded_rules = guarded_rules.cloned().collect();
        let mut outdone = HashSet::new();
        for ids in routing.services.shared_hosts() {
            outdone.extend(ids.iter().map(|id| routing.services.get(*id).namespace.clone()));
        }
        let services = first_of_each_host(all().filter(public).map(ScopedService::whole).collect());
        let mesh =
            routing.virtual_services.iter().filter(|v| v.gateways.contains(&GatewayRef::Mesh));
        let mesh = mesh.filter(|v| v.visibility == Visibility::Public).cloned().collect();
        let egress = |services, virtual_services| {
            Arc::new(EgressScope { listener: None, services, virtual_services })
        };
        let public_of_routers = egress(services.clone(), Vec::new());
        let public = egress(services, mesh);
        let inventory = Inventory::of(std::slice::from_ref(&public_of_routers));
        let nowhere = Namespace::from("");
        let of = |s: &ScopedService| {
            let Service { namespace, hostname, .. } = &*s.service;
            routing.destination_rules.find(&nowhere, namespace, hostname, |_| false).cloned()
        };
        let rules = inventory.services.iter().map(of).collect();
        let touchy = |s: &ScopedService| {
            routing.destination_rules.depends_on_client(&s.service.namespace, &s.service.hostname)
        };
        let touchy = positions(&inventory.services, touchy);
        Worlds {
            guarded_services,
            guarded_rules,
            outdone,
            public,
            public_of_routers,
            inventory: Arc::new(inventory),
            rules,
            touchy,
            routing,
        }
    }

    /// The world that somebody sees.
    pub fn world(&self, viewer: &Viewer<'_>) -> World {
        let routing = &self.routing;
        let sidecar = match viewer.role() {
            Role::Router => None,
            Role::Sidecar => applicable_sidecar(routing, viewer),
        };
        let importing = sidecar.as_ref().filter(|sidecar| !sidecar.egress.is_empty());
        let egress = match importing {
            Some(sidecar) => {
                let visible = Visible::new(routing, viewer);
                let listeners = sidecar.egress.iter().enumerate();
                let import =
                    |(i, l): (usize, &EgressListener)| visible.import(sidecar, i, &l.hosts);
                listeners.map(|l| Arc::new(import(l))).collect()
            }
            None => vec![self.everything(viewer)],
        };
        let inventory = match egress.as_slice() {
            [all]
                if Arc::ptr_eq(all, &self.public) || Arc::ptr_eq(all, &self.public_of_routers) =>
            {
                self.inventory.clone()
            }
            _ => {
                let mut inventory = Inventory::of(&egress);
                if importing.is_some() {
                    inventory.add_destinations(routing, viewer.namespace(), &egress);
                }
                Arc::new(inventory)
            }
        };
        let rules = self.rules_for(&inventory, viewer);
        World { routing: routing.clone(), sidecar, egress, inventory, rules }
    }

    /// The default scope. Who sees nothing of its own shares that of everybody.
    fn everything(&self, viewer: &Viewer<'_>) -> Arc<EgressScope> {
        let namespace = viewer.namespace();
        let role = viewer.role();
        let services = &self.routing.services;
        let sees = |id: &ServiceId| services.get(*id).visibility.includes(namespace);
        let own_rules = || self.guarded_rules.iter().any(|v| v.visibility.includes(namespace));
        let special = self.guarded_services.iter().any(sees)
            || match role {
                Role::Router => false,
                Role::Sidecar => self.outdone.contains(namespace) || own_rules(),
            };
        match (special, role) {
            (false, Role::Sidecar) => self.public.clone(),
            (false, Role::Router) => self.public_of_routers.clone(),
            (true, _) => Arc::new(Visible::new(&self.routing, viewer).everything()),
        }
    }

    /// The rule of each service. Only rules of the client's own namespace, and those that name the
    /// namespaces that see them, can differ from what everybody gets.
    fn rules_for(
        &self,
        inventory: &Arc<Inventory>,
        viewer: &Viewer<'_>,
    ) -> Arc<[Option<Arc<DestinationRule>>]> {
        let all = &self.routing.destination_rules;
        let client = viewer.namespace();
        let find = |s: &ScopedService| {
            let Service { namespace, hostname, .. } = &*s.service;
            all.find(client, namespace, hostname, |selector| viewer.selected_by(selector))
        };
        if !Arc::ptr_eq(inventory, &self.inventory) {
            return inventory.services.iter().map(|s| find(s).cloned()).collect();
        }
        let mut candidates: BTreeSet<usize> = self.touchy.iter().copied().collect();
        for host in all.hosts_of(client) {
            if host.is_wildcard() {
                let covered = |s: &ScopedService| s.service.hostname.is_subset_of(host);
                candidates.extend(positions(&inventory.services, covered));
            } else {
                candidates.extend(inventory.by_host.get(host));
            }
        }
        let same = |a: &Option<Arc<DestinationRule>>, b: Option<&Arc<DestinationRule>>| match (a, b)
        {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let differing: Vec<(usize, Option<Arc<DestinationRule>>)> = candidates
            .into_iter()
            .map(|i| (i, find(&inventory.services[i])))
            .filter(|(i, rule)| !same(&self.rules[*i], *rule))
            .map(|(i, rule)| (i, rule.cloned()))
            .collect();
        if differing.is_empty() {
            return self.rules.clone();
        }
        let mut rules = self.rules.to_vec();
        for (position, rule) in differing {
            rules[position] = rule;
        }
        rules.into()
    }
}

fn positions(services: &[ScopedService], test: impl Fn(&ScopedService) -> bool) -> Vec<usize> {
    services.iter().enumerate().filter(|(_, s)| test(s)).map(|(i, _)| i).collect()
}
