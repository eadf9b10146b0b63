//! What proxies can see: the services, the VirtualServices and the DestinationRules of their scope.
//!
//! A sidecar's scope follows its Sidecar document (or the default `*/*`); a router sees everything
//! that is exported to its namespace. What is seen is a [`World`], a value of its own that all
//! proxies share who see the same: in most meshes that is everybody, because little is private.
//! Generators look services and rules up in a [`Scope`], a world with somebody looking at it, and
//! nowhere else.

use super::filters::Filters;
use super::inventory::Inventory;
use super::view::Viewer;
use super::visible::by_closeness;
use crate::model::{
    DestinationRule, EgressListener, Gateway, MeshSettings, ObjectName, OutboundTrafficPolicy,
    Routing, Service, ServiceId, ServicePort, Sidecar, VirtualService,
};
use crate::proxy::Role;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A service as a scope sees it: perhaps cut down to some of its ports.
#[derive(Debug, Clone)]
pub struct ScopedService {
    /// Its position among all services.
    pub id: ServiceId,
    /// The service.
    pub service: Arc<Service>,
    /// The ports that are visible; `None` is all.
    pub only_ports: Option<BTreeSet<u16>>,
}

impl ScopedService {
    pub(super) fn whole((id, service): (ServiceId, &Arc<Service>)) -> ScopedService {
        ScopedService { id, service: service.clone(), only_ports: None }
    }

    /// The visible ports that carry streams (UDP is left out).
    pub fn ports(&self) -> impl Iterator<Item = &ServicePort> {
        self.service
            .stream_ports()
            .filter(|p| self.only_ports.as_ref().is_none_or(|only| only.contains(&p.number)))
    }

    /// The visible port with this number.
    pub fn port(&self, number: u16) -> Option<&ServicePort> {
        self.ports().find(|p| p.number == number)
    }

    /// Sees what either sees.
    pub(super) fn widen(&mut self, other: &ScopedService) {
        self.only_ports = match (self.only_ports.take(), &other.only_ports) {
            (Some(mut mine), Some(theirs)) => {
                mine.extend(theirs);
                Some(mine)
            }
            _ => None,
        };
    }
}

/// One egress listener and what it imports.
#[derive(Debug)]
pub struct EgressScope {
    /// The Sidecar and the position of the listener in it; `None` for the default catch-all.
    pub(super) listener: Option<(Arc<Sidecar>, usize)>,
    /// The services that it imports, in precedence order, one a hostname.
    pub services: Vec<ScopedService>,
    /// The VirtualServices of the mesh that it imports: private ones, then exported, then public,
    /// each in precedence order.
    pub virtual_services: Vec<Arc<VirtualService>>,
}

impl EgressScope {
    /// The listener as written; `None` for the default catch-all.
    pub fn listener(&self) -> Option<&EgressListener> {
        let (sidecar, position) = self.listener.as_ref()?;
        sidecar.egress.get(*position)
    }
}

/// What all proxies see that see the same.
#[derive(Debug)]
pub struct World {
    /// The snapshot's routing half.
    pub routing: Arc<Routing>,
    /// The Sidecar that applies, if one does.
    pub sidecar: Option<Arc<Sidecar>>,
    /// Egress listeners in order; a router has one catch-all.
    pub egress: Vec<Arc<EgressScope>>,
    pub(super) inventory: Arc<Inventory>,
    /// The DestinationRule of each service, in the order of the inventory.
    pub(super) rules: Arc<[Option<Arc<DestinationRule>>]>,
}

impl World {
    /// Every service that gets clusters, with the DestinationRule that applies to it.
    pub fn services(
        &self,
    ) -> impl Iterator<Item = (&ScopedService, Option<&Arc<DestinationRule>>)> {
        self.inventory.services.iter().zip(self.rules.iter().map(Option::as_ref))
    }

    /// The visible service with exactly this hostname.
    pub fn find(&self, host: &str) -> Option<&ScopedService> {
        self.inventory.by_host.get(host).map(|&i| &self.inventory.services[i])
    }

    /// The DestinationRule that applies to the visible service with this hostname.
    pub fn destination_rule(&self, host: &str) -> Option<&Arc<DestinationRule>> {
        self.rules[*self.inventory.by_host.get(host)?].as_ref()
    }

    /// What happens to unknown destinations.
    pub fn outbound_policy(&self) -> &OutboundTrafficPolicy {
        self.sidecar
            .as_ref()
            .and_then(|s| s.outbound_traffic_policy.as_ref())
            .unwrap_or(&self.routing.mesh.outbound_traffic_policy)
    }

    /// Whether both are made of the same parts, so that one can stand for the other.
    pub fn is_same(&self, other: &World) -> bool {
        let same_sidecar = match (&self.sidecar, &other.sidecar) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same_sidecar
            && Arc::ptr_eq(&self.routing, &other.routing)
            && Arc::ptr_eq(&self.inventory, &other.inventory)
            && Arc::ptr_eq(&self.rules, &other.rules)
            && self.egress.len() == other.egress.len()
            && self.egress.iter().zip(&other.egress).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

/// A world with somebody looking at it.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// What is seen.
    pub world: &'a World,
    /// Who looks.
    pub view: &'a Viewer<'a>,
    /// The filters that chains and routes are made with.
    pub filters: Filters,
}

impl<'a> Scope<'a> {
    /// The mesh's settings.
    pub fn mesh(&self) -> &'a MeshSettings {
        &self.world.routing.mesh
    }

    /// The visible service with exactly this hostname.
    pub fn find(&self, host: &str) -> Option<&'a ScopedService> {
        self.world.find(host)
    }

    /// The DestinationRule that applies to a service, one that is not in the scope included.
    pub fn destination_rule(&self, service: &Service) -> Option<&'a Arc<DestinationRule>> {
        let Service { namespace, hostname, .. } = service;
        match self.world.find(hostname) {
            Some(known) if known.service.namespace == *namespace => {
                self.world.destination_rule(hostname)
            }
            _ => self.world.routing.destination_rules.find(
                self.view.namespace(),
                namespace,
                hostname,
                |selector| self.view.selected_by(selector),
            ),
        }
    }

    /// The Gateways that this router runs, in precedence order.
    pub fn gateways(&self) -> impl Iterator<Item = &'a Gateway> {
        let view = self.view;
        let all = match view.role() {
            Role::Router => &self.world.routing.gateways[..],
            Role::Sidecar => &[],
        };
        all.iter().map(|g| &**g).filter(move |gateway| {
            gateway.selector.as_ref().is_none_or(|selector| view.selected_by(selector))
        })
    }

    /// The VirtualServices bound to a Gateway that this proxy's namespace may see: private, then
    /// exported, then public, each in precedence order.
    pub fn virtual_services_of(&self, gateway: &ObjectName) -> Vec<&'a Arc<VirtualService>> {
        let bound = |v: &&Arc<VirtualService>| v.gateways.iter().any(|g| g.is_of(gateway));
        let all = self.world.routing.virtual_services.iter();
        by_closeness(all.filter(bound), self.view.namespace())
    }
}
