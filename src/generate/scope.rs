//! What proxies can see: the services, the VirtualServices and the DestinationRules of their scope.
//!
//! A sidecar's scope follows its Sidecar document (or the default `*/*`); a router sees everything
//! that is exported to its namespace. What is seen is a [`World`], a value of its own that all
//! proxies share who see the same: in most meshes that is everybody, because little is private.
//! Generators look services and rules up in a [`Scope`], a world with somebody looking at it, and
//! nowhere else.

use super::filters::Filters;
use super::imports::Imports;
use super::view::Viewer;
use crate::model::{
    DestinationRule, EgressListener, Gateway, GatewayRef, HostImport, Hostname, HttpAction,
    MeshSettings, Namespace, ObjectName, OutboundTrafficPolicy, Protocol, Routing, Service,
    ServiceId, ServicePort, Sidecar, VirtualService, Visibility, WeightedDestination,
};
use crate::proxy::Role;
use std::collections::{BTreeSet, HashMap, HashSet};
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
    fn whole((id, service): (ServiceId, &Arc<Service>)) -> ScopedService {
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
    fn widen(&mut self, other: &ScopedService) {
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
    listener: Option<(Arc<Sidecar>, usize)>,
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
    inventory: Arc<Inventory>,
    /// The DestinationRule of each service, in the order of the inventory.
    rules: Arc<[Option<Arc<DestinationRule>>]>,
}

/// Every service that gets clusters: the imports of all egress listeners, and what imported
/// VirtualServices send traffic to.
#[derive(Debug, Default)]
struct Inventory {
    services: Vec<ScopedService>,
    by_host: HashMap<Hostname, usize>,
}

/// What is the same for everybody, worked out once for a snapshot's routing half.
#[derive(Debug)]
pub struct Common {
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

impl Common {
    /// Works it out.
    pub fn new(routing: Arc<Routing>) -> Common {
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
        Common {
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

impl Inventory {
    fn of(egress: &[Arc<EgressScope>]) -> Inventory {
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
    fn add_destinations(
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

/// The Sidecar of a workload: in its namespace one with a fitting selector, then one without; else
/// one without a selector in the root namespace. Nothing is merged.
fn applicable_sidecar(routing: &Routing, viewer: &Viewer<'_>) -> Option<Arc<Sidecar>> {
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
fn by_closeness<'a>(
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
struct Visible<'a> {
    role: Role,
    namespace: &'a Namespace,
    services: Vec<(ServiceId, &'a Arc<Service>)>,
    mesh_rules: Vec<&'a Arc<VirtualService>>,
}

impl<'a> Visible<'a> {
    fn new(routing: &'a Routing, viewer: &Viewer<'a>) -> Visible<'a> {
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
    fn everything(&self) -> EgressScope {
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

    fn import(&self, sidecar: &Arc<Sidecar>, position: usize, hosts: &[HostImport]) -> EgressScope {
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

fn first_of_each_host(services: Vec<ScopedService>) -> Vec<ScopedService> {
    let mut seen = HashSet::with_capacity(services.len());
    services.into_iter().filter(|s| seen.insert(s.service.hostname.clone())).collect()
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
