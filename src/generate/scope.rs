//! What a proxy can see: the services and VirtualServices of its scope.
//!
//! A sidecar's scope follows its Sidecar document (or the default `*/*`); a router sees everything
//! that is exported to its namespace. Generators look services and rules up here and nowhere else.

use super::View;
use crate::model::{
    DestinationRule, EgressListener, EgressNamespace, Gateway, GatewayRef, HostImport, Hostname,
    HttpAction, Namespace, ObjectName, OutboundTrafficPolicy, Protocol, Service, ServicePort,
    Sidecar, Snapshot, VirtualService, WeightedDestination,
};
use crate::proxy::Role;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A service as a scope sees it: perhaps cut down to some of its ports.
#[derive(Debug, Clone)]
pub struct ScopedService<'a> {
    /// The service.
    pub service: &'a Service,
    /// The ports that are visible; `None` is all.
    pub only_ports: Option<BTreeSet<u16>>,
}

impl<'a> ScopedService<'a> {
    fn whole(service: &'a Service) -> ScopedService<'a> {
        ScopedService { service, only_ports: None }
    }

    /// The visible ports that carry streams (UDP is left out).
    pub fn ports(&self) -> impl Iterator<Item = &'a ServicePort> + '_ {
        self.service
            .stream_ports()
            .filter(|p| self.only_ports.as_ref().is_none_or(|only| only.contains(&p.number)))
    }

    /// The visible port with this number.
    pub fn port(&self, number: u16) -> Option<&'a ServicePort> {
        self.ports().find(|p| p.number == number)
    }

    /// Sees what either sees.
    fn widen(&mut self, other: &ScopedService<'a>) {
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
#[derive(Debug, Clone)]
pub struct EgressScope<'a> {
    /// The listener as written; `None` for the default catch-all.
    pub listener: Option<&'a EgressListener>,
    /// The services that it imports, in precedence order, one a hostname.
    pub services: Vec<ScopedService<'a>>,
    /// The VirtualServices of the mesh that it imports: private ones, then exported, then public,
    /// each in precedence order.
    pub virtual_services: Vec<&'a VirtualService>,
}

/// What one proxy can see.
#[derive(Debug)]
pub struct Scope<'a> {
    /// Everything.
    pub snapshot: &'a Snapshot,
    /// Who looks.
    pub view: &'a View,
    /// The Sidecar that applies, if one does.
    pub sidecar: Option<&'a Sidecar>,
    /// Egress listeners in order; a router has one catch-all.
    pub egress: Vec<EgressScope<'a>>,
    /// What happens to unknown destinations.
    pub outbound_policy: &'a OutboundTrafficPolicy,
    services: Vec<ScopedService<'a>>,
    by_host: HashMap<&'a str, usize>,
}

impl<'a> Scope<'a> {
    /// The scope of a view.
    pub fn new(snapshot: &'a Snapshot, view: &'a View) -> Scope<'a> {
        let sidecar = match view.role {
            Role::Router => None,
            Role::Sidecar => applicable_sidecar(snapshot, view),
        };
        let visible = Visible::new(snapshot, &view.namespace);
        let egress = match sidecar {
            Some(sidecar) if !sidecar.egress.is_empty() => sidecar
                .egress
                .iter()
                .map(|listener| visible.import(view, Some(listener), &listener.hosts))
                .collect(),
            _ => vec![visible.everything(view)],
        };
        let outbound_policy = sidecar
            .and_then(|s| s.outbound_traffic_policy.as_ref())
            .unwrap_or(&snapshot.mesh.outbound_traffic_policy);
        let mut scope = Scope {
            snapshot,
            view,
            sidecar,
            egress,
            outbound_policy,
            services: Vec::new(),
            by_host: HashMap::new(),
        };
        scope.collect_services();
        scope
    }

    /// Every service that gets clusters: the imports of all egress listeners, and what imported
    /// VirtualServices send traffic to.
    pub fn services(&self) -> &[ScopedService<'a>] {
        &self.services
    }

    /// The visible service with exactly this hostname.
    pub fn find(&self, host: &str) -> Option<&ScopedService<'a>> {
        self.by_host.get(host).map(|&i| &self.services[i])
    }

    /// The DestinationRule that applies to a service.
    pub fn destination_rule(&self, service: &Service) -> Option<&'a Arc<DestinationRule>> {
        self.snapshot.destination_rules.find(
            &self.view.namespace,
            &service.namespace,
            &service.hostname,
            &self.view.labels,
        )
    }

    /// The Gateways that this router runs, in precedence order.
    pub fn gateways(&self) -> impl Iterator<Item = &'a Gateway> {
        let view = self.view;
        self.snapshot.gateways.iter().filter(move |gateway| match view.role {
            Role::Router => {
                gateway.selector.as_ref().is_none_or(|selector| view.labels.selected_by(selector))
            }
            Role::Sidecar => false,
        })
    }

    /// The VirtualServices bound to a Gateway that this proxy's namespace may see: private, then
    /// exported, then public, each in precedence order.
    pub fn virtual_services_of(&self, gateway: &ObjectName) -> Vec<&'a VirtualService> {
        let bound = GatewayRef::Gateway(gateway.clone());
        by_closeness(self.snapshot.virtual_services.iter(), &self.view.namespace)
            .into_iter()
            .filter(|v| v.gateways.contains(&bound))
            .collect()
    }

    fn collect_services(&mut self) {
        let Scope { egress, services, by_host, .. } = self;
        for scoped in egress.iter().flat_map(|e| &e.services) {
            match by_host.get(&*scoped.service.hostname) {
                Some(&i) => {
                    if services[i].service.namespace == scoped.service.namespace {
                        services[i].widen(scoped);
                    }
                }
                None => {
                    by_host.insert(&scoped.service.hostname, services.len());
                    services.push(scoped.clone());
                }
            }
        }
        // A service that was imported on purpose is never replaced or narrowed by a destination.
        let explicit = services.len();
        let rules: Vec<&VirtualService> =
            egress.iter().flat_map(|e| e.virtual_services.iter().copied()).collect();
        for rule in rules {
            for destination in destinations(rule, &self.view.namespace) {
                let (host, port) = destination;
                let known = self.by_host.get(&**host).copied();
                if known.is_some_and(|i| i < explicit) {
                    continue;
                }
                let Some(service) = best_service(self.snapshot, self.view, host) else { continue };
                let only_ports = port.map(|p| BTreeSet::from([p]));
                if let Some(port) = port
                    && service.port(port).is_none()
                {
                    continue;
                }
                let scoped = ScopedService { service, only_ports };
                match known {
                    Some(i) => self.services[i].widen(&scoped),
                    None => {
                        self.by_host.insert(&service.hostname, self.services.len());
                        self.services.push(scoped);
                    }
                }
            }
        }
    }
}

/// The Sidecar of a workload: in its namespace one with a fitting selector, then one without; else
/// one without a selector in the root namespace. Nothing is merged.
fn applicable_sidecar<'a>(snapshot: &'a Snapshot, view: &View) -> Option<&'a Sidecar> {
    let of = |namespace: &'a Namespace| {
        snapshot.sidecars.iter().filter(move |s| s.origin.name.namespace == *namespace)
    };
    let own = || snapshot.sidecars.iter().filter(|s| s.origin.name.namespace == view.namespace);
    own()
        .find(|s| s.selector.as_ref().is_some_and(|selector| view.labels.selected_by(selector)))
        .or_else(|| own().find(|s| s.selector.is_none()))
        .or_else(|| of(&snapshot.mesh.root_namespace).find(|s| s.selector.is_none()))
}

/// VirtualServices that a namespace may see: its own private ones, those exported to it by name,
/// public ones; Istio keeps precedence only inside each of the three.
fn by_closeness<'a>(
    rules: impl Iterator<Item = &'a VirtualService>,
    namespace: &Namespace,
) -> Vec<&'a VirtualService> {
    use crate::model::Visibility;
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
    services: Vec<&'a Service>,
    mesh_rules: Vec<&'a VirtualService>,
}

impl<'a> Visible<'a> {
    fn new(snapshot: &'a Snapshot, namespace: &Namespace) -> Visible<'a> {
        use crate::model::Visibility;
        // Services exported to the namespace by name come before public ones (Istio).
        let seen = || snapshot.services.iter().filter(|s| s.visibility.includes(namespace));
        let is_public = |s: &&Service| s.visibility == Visibility::Public;
        let named = seen().filter(|s| !is_public(s));
        let services = named.chain(seen().filter(is_public)).collect();
        let mesh =
            snapshot.virtual_services.iter().filter(|v| v.gateways.contains(&GatewayRef::Mesh));
        Visible { services, mesh_rules: by_closeness(mesh, namespace) }
    }

    /// The default scope. A router takes the first service of a hostname, a sidecar prefers its
    /// own namespace's.
    fn everything(&self, view: &View) -> EgressScope<'a> {
        let services = self.services.iter().map(|s| ScopedService::whole(s)).collect();
        EgressScope {
            listener: None,
            services: one_per_host(services, view),
            virtual_services: match view.role {
                Role::Sidecar => self.mesh_rules.clone(),
                Role::Router => Vec::new(),
            },
        }
    }

    fn import(
        &self,
        view: &View,
        listener: Option<&'a EgressListener>,
        hosts: &[HostImport],
    ) -> EgressScope<'a> {
        let imports = Imports::new(hosts, &view.namespace);
        let port = listener
            .and_then(|l| l.port.as_ref())
            .filter(|p| p.protocol != Protocol::HttpProxy && p.number != 0)
            .map(|p| p.number);
        let services = self
            .services
            .iter()
            .filter(|s| imports.covers_service(&s.namespace, &s.hostname))
            .filter(|s| port.is_none_or(|number| s.port(number).is_some()))
            .map(|service| ScopedService {
                service,
                only_ports: port.filter(|_| service.ports.len() > 1).map(|p| BTreeSet::from([p])),
            })
            .collect();
        let virtual_services = self
            .mesh_rules
            .iter()
            .copied()
            .filter(|rule| imports.covers_rule(&rule.origin.name.namespace, &rule.hosts))
            .collect();
        EgressScope { listener, services: one_per_host(services, view), virtual_services }
    }
}

/// Keeps one service of each hostname: the first, but for a sidecar its own namespace's.
fn one_per_host<'a>(services: Vec<ScopedService<'a>>, view: &View) -> Vec<ScopedService<'a>> {
    let mut chosen: HashMap<&'a str, &'a Namespace> = HashMap::new();
    for scoped in &services {
        let namespace = chosen.entry(&scoped.service.hostname).or_insert(&scoped.service.namespace);
        if view.role == Role::Sidecar && scoped.service.namespace == view.namespace {
            *namespace = &scoped.service.namespace;
        }
    }
    let mut seen = HashSet::new();
    services
        .into_iter()
        .filter(|s| chosen.get(&*s.service.hostname) == Some(&&s.service.namespace))
        .filter(|s| seen.insert(&s.service.hostname))
        .collect()
}

/// The `hosts` of an egress listener, by namespace, for quick tests.
struct Imports<'h> {
    takes: HostsByNamespace<'h>,
    leaves_out: HostsByNamespace<'h>,
}

#[derive(Default)]
struct HostsByNamespace<'h> {
    any: HostSet<'h>,
    named: HashMap<Namespace, HostSet<'h>>,
}

#[derive(Default)]
struct HostSet<'h> {
    exact: HashSet<&'h Hostname>,
    wildcards: Vec<&'h Hostname>,
}

impl<'h> HostSet<'h> {
    fn add(&mut self, host: &'h Hostname) {
        if host.is_wildcard() {
            self.wildcards.push(host);
        } else {
            self.exact.insert(host);
        }
    }

    fn contains_all_of(&self, host: &Hostname) -> bool {
        self.exact.contains(host) || self.wildcards.iter().any(|w| host.is_subset_of(w))
    }

    fn overlaps(&self, host: &Hostname) -> bool {
        if self.exact.contains(host) || self.wildcards.iter().any(|w| host.overlaps(w)) {
            return true;
        }
        host.is_wildcard() && self.exact.iter().any(|e| host.overlaps(e))
    }
}

impl<'h> HostsByNamespace<'h> {
    fn any_of(&self, namespace: &Namespace, test: impl Fn(&HostSet<'h>) -> bool) -> bool {
        test(&self.any) || self.named.get(namespace).is_some_and(test)
    }
}

impl<'h> Imports<'h> {
    fn new(hosts: &'h [HostImport], own: &Namespace) -> Imports<'h> {
        let mut imports =
            Imports { takes: HostsByNamespace::default(), leaves_out: HostsByNamespace::default() };
        for entry in hosts {
            let list = if entry.exclude { &mut imports.leaves_out } else { &mut imports.takes };
            match &entry.namespace {
                EgressNamespace::Any => list.any.add(&entry.host),
                EgressNamespace::Own => list.named.entry(own.clone()).or_default().add(&entry.host),
                EgressNamespace::Named(name) => {
                    list.named.entry(name.clone()).or_default().add(&entry.host);
                }
            }
        }
        imports
    }

    fn excluded(&self, namespace: &Namespace, host: &Hostname) -> bool {
        self.leaves_out.any_of(namespace, |set| set.contains_all_of(host))
    }

    fn covers_service(&self, namespace: &Namespace, host: &Hostname) -> bool {
        self.takes.any_of(namespace, |set| set.contains_all_of(host))
            && !self.excluded(namespace, host)
    }

    /// A VirtualService is imported with all its hosts when one of them is.
    fn covers_rule(&self, namespace: &Namespace, hosts: &[Hostname]) -> bool {
        hosts.iter().any(|host| {
            self.takes.any_of(namespace, |set| set.overlaps(host))
                && !self.excluded(namespace, host)
        })
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
fn best_service<'a>(snapshot: &'a Snapshot, view: &View, host: &str) -> Option<&'a Service> {
    let visible =
        || snapshot.services_of_host(host).filter(|s| s.visibility.includes(&view.namespace));
    visible().find(|s| s.namespace == view.namespace).or_else(|| visible().next())
}
