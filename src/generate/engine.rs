//! Who shares what: the parts of a proxy's configuration, each made once for all who would get the
//! same, and kept as long as nothing that it was made of differs.
//!
//! ```text
//! view, routing          -> World        what is seen                    (most proxies: the same)
//! service, rule, mesh    -> clusters     of one service
//! rules, targets         -> routes       of one document                 ([`RouteParts`])
//! names, routes          -> virtual host
//! world                  -> Shared       clusters, listeners, routes, secrets
//! planned listener       -> listener     sealed
//! clusters, endpoints    -> assignments  of one service
//! shared, endpoints      -> Complete     with the endpoints
//! workload               -> Inbound      what leads to the proxy's own workload
//! complete, inbound      -> Generated    what the proxy gets
//! ```
//!
//! Each arrow is a function that is handed nothing but its left side and a [`Viewer`], and each
//! result is kept under exactly that: what the left side holds, and what the viewer was asked.

use super::Generated;
use super::evolve::evolve;
use super::filters::Filters;
use super::listeners::SealedListener;
use super::memo::{Memo, Same, Uses};
use super::own::{self, Inbound};
use super::plan::listener::Listener;
use super::plan::route::RouteTable;
use super::routes::RouteParts;
use super::scope::{Scope, World};
use super::seal::Output;
use super::service::{ServiceClusters, ServiceEndpoints, ServiceInput};
use super::targets::{TakenAddresses, Workload};
use super::view::{Class, View, Viewer};
use super::worlds::Worlds;
use super::{GENERATORS, Plan};
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::{Endpoint, Endpoints, Namespace, Routing, ServiceId, Snapshot};
use crate::proxy::{Proxy, Role};
use crate::xds::{ResourceSet, TypeUrl};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Makes what proxies get, and remembers the parts. Snapshots may change from call to call; parts
/// that a change does not touch are used again.
#[derive(Debug, Default)]
pub struct Engine {
    filters: Filters,
    common: Mutex<Option<(Arc<Routing>, Arc<Worlds>)>>,
    /// Worlds that are there, so that equal ones are one.
    known: Mutex<Vec<Arc<World>>>,
    worlds: Memo<(Same<Routing>, Role, Namespace), Arc<World>>,
    clusters: Memo<ServiceInput, ServiceClusters>,
    routes: RouteParts,
    shared: Memo<Same<World>, Shared>,
    listeners: Memo<Arc<Listener>, SealedListener>,
    assignments: Memo<(Same<ServiceClusters>, Same<[Endpoint]>), ServiceEndpoints>,
    complete: Memo<(Same<Shared>, Same<Endpoints>), Complete>,
    inbound: Memo<Workload, Inbound>,
    generated: Memo<(Same<Complete>, Option<Same<Inbound>>), Generated>,
    /// What was made last for each class of proxies: what is made next will differ little.
    latest: Mutex<HashMap<Class, Weak<Complete>>>,
}

/// How much was made and how much shared, part by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Clusters of a service.
    pub clusters: Uses,
    /// Listeners that are spelled.
    pub listeners: Uses,
    /// All that proxies share who see the same, endpoints aside.
    pub shared: Uses,
    /// The endpoints of a service.
    pub assignments: Uses,
    /// The shared part with the endpoints.
    pub complete: Uses,
    /// What leads to a workload.
    pub inbound: Uses,
    /// What proxies get.
    pub generated: Uses,
}

/// What proxies with one view share, endpoints aside.
#[derive(Debug)]
struct Shared {
    set: ResourceSet,
    findings: Vec<Diagnostic>,
    services: Vec<(ServiceId, Arc<ServiceClusters>)>,
    /// Held so that they are not forgotten.
    _listeners: Vec<Arc<SealedListener>>,
    /// Held, so that their parts are not forgotten.
    _tables: Vec<Arc<RouteTable>>,
    /// Where egress listeners are, so that ingress listeners keep away from there.
    taken: Arc<TakenAddresses>,
}

/// The same with the endpoints.
#[derive(Debug)]
struct Complete {
    set: ResourceSet,
    findings: Vec<Diagnostic>,
    /// Held so that they are not forgotten.
    _assignments: Vec<Arc<ServiceEndpoints>>,
}

impl Engine {
    /// Everything that one proxy should have.
    pub fn generate(&self, snapshot: &Snapshot, proxy: &Proxy) -> Arc<Generated> {
        let view = Arc::new(View::of(snapshot, proxy));
        let viewer = Viewer::new(&view);
        let world = self.world(&snapshot.routing, &viewer);
        let shared = self
            .shared
            .get_once(Same(world.clone()), &viewer, |viewer| self.make_shared(&world, viewer));
        let key = (Same(shared.clone()), Same(snapshot.endpoints.clone()));
        let complete = self.complete.get_once(key, &viewer, |viewer| {
            self.make_complete(&shared, &snapshot.endpoints, viewer)
        });
        lock(&self.latest).insert(view.class(), Arc::downgrade(&complete));
        let inbound = match proxy.role {
            Role::Router => None,
            Role::Sidecar => {
                let workload = Workload::of(snapshot, &world, proxy, &shared.taken);
                let make = |viewer: &Viewer<'_>| own::inbound(&workload, viewer, self.filters);
                Some(self.inbound.get(workload.clone(), &viewer, make))
            }
        };
        let key = (Same(complete.clone()), inbound.clone().map(Same));
        self.generated.get(key, &viewer, |_| put_together(&complete, inbound.as_deref()))
    }

    /// How much was made since the beginning.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            clusters: self.clusters.uses(),
            listeners: self.listeners.uses(),
            shared: self.shared.uses(),
            assignments: self.assignments.uses(),
            complete: self.complete.uses(),
            inbound: self.inbound.uses(),
            generated: self.generated.uses(),
        }
    }

    /// One that makes chains and routes with other filters.
    #[cfg(test)]
    pub(super) fn with_filters(filters: Filters) -> Engine {
        Engine { filters, ..Engine::default() }
    }

    /// What all proxies of a view share.
    #[cfg(test)]
    pub(super) fn generate_shared(&self, snapshot: &Snapshot, view: &View) -> Generated {
        let view = Arc::new(view.clone());
        let viewer = Viewer::new(&view);
        let world = self.world(&snapshot.routing, &viewer);
        let shared = self.make_shared(&world, &viewer);
        put_together(&self.make_complete(&shared, &snapshot.endpoints, &viewer), None)
    }

    /// Forgets what belongs to none of these snapshots. Parts of theirs that others had too stay.
    pub fn keep(&self, snapshots: &[&Snapshot]) {
        let is_kept = |routing: &Arc<Routing>| {
            snapshots.iter().any(|snapshot| Arc::ptr_eq(&snapshot.routing, routing))
        };
        let has_endpoints = |endpoints: &Arc<Endpoints>| {
            snapshots.iter().any(|snapshot| Arc::ptr_eq(&snapshot.endpoints, endpoints))
        };
        let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
        common.take_if(|(of, _)| !is_kept(of));
        drop(common);
        self.worlds.retain(|(of, _, _), _| is_kept(&of.0));
        lock(&self.known).retain(|world| is_kept(&world.routing));
        self.shared.retain(|world, _| is_kept(&world.0.routing));
        // What is left of a forgotten part is the key that it was.
        self.complete.retain(|(shared, endpoints), _| {
            Arc::strong_count(&shared.0) > 1 && has_endpoints(&endpoints.0)
        });
        self.generated.retain(|(complete, _), _| Arc::strong_count(&complete.0) > 1);
        self.inbound.sweep();
        self.listeners.sweep();
        self.routes.sweep();
        // Assignments hold the clusters that they belong to.
        self.assignments.sweep();
        self.clusters.sweep();
        lock(&self.latest).retain(|_, complete| complete.strong_count() > 0);
    }

    /// The set that was made last for proxies like this, if it is still there.
    fn before(&self, view: &View) -> ResourceSet {
        let latest = lock(&self.latest).get(&view.class()).and_then(Weak::upgrade);
        latest.map(|complete| complete.set.clone()).unwrap_or_default()
    }

    fn common(&self, routing: &Arc<Routing>) -> Arc<Worlds> {
        let mut common = lock(&self.common);
        match common.as_ref().filter(|(of, _)| Arc::ptr_eq(of, routing)) {
            Some((_, known)) => known.clone(),
            None => {
                let made = Arc::new(Worlds::new(routing.clone()));
                *common = Some((routing.clone(), made.clone()));
                made
            }
        }
    }

    fn world(&self, routing: &Arc<Routing>, viewer: &Viewer<'_>) -> Arc<World> {
        let (role, namespace) = viewer.view().class();
        let key = (Same(routing.clone()), role, namespace);
        let found = self.worlds.get(key, viewer, |viewer| {
            let world = self.common(routing).world(viewer);
            let mut known = lock(&self.known);
            if let Some(same) = known.iter().find(|other| other.is_same(&world)) {
                return same.clone();
            }
            let world = Arc::new(world);
            known.push(world.clone());
            world
        });
        Arc::clone(&found)
    }

    fn make_shared(&self, world: &World, viewer: &Viewer<'_>) -> Shared {
        let mut output = Output::default();
        let mut services = Vec::new();
        for (scoped, rule) in world.services() {
            let input = ServiceInput::of(world, scoped, rule);
            let make = |viewer: &Viewer<'_>| input.clusters(viewer);
            let clusters = self.clusters.get(input.clone(), viewer, make);
            output.add(&clusters.resources, &clusters.findings);
            services.push((scoped.id, clusters));
        }
        let plan = Plan::new(Scope { world, view: viewer, filters: self.filters }, &self.routes);
        let seal = |listener: &Arc<Listener>| {
            self.listeners.get(listener.clone(), viewer, |_| SealedListener::of(listener))
        };
        let listeners: Vec<Arc<SealedListener>> = plan.listeners().map(seal).collect();
        for listener in &listeners {
            output.add(&listener.resources, &listener.findings);
        }
        for generator in GENERATORS {
            (generator.generate)(&plan, &mut output);
        }
        let tables = plan.tables;
        let taken = Arc::new(plan.egress.taken);
        let (resources, findings) = output.into_parts();
        let resources: Vec<_> = resources.iter().map(|(of, resource)| (*of, resource)).collect();
        let types = TypeUrl::ALL.into_iter().filter(|of| *of != TypeUrl::Endpoint);
        let set = evolve(&self.before(viewer.view()), types, &resources);
        Shared { set, findings, services, _listeners: listeners, _tables: tables, taken }
    }

    fn make_complete(
        &self,
        shared: &Shared,
        endpoints: &Endpoints,
        viewer: &Viewer<'_>,
    ) -> Complete {
        let mut findings = shared.findings.clone();
        let mut all = Vec::with_capacity(shared.services.len());
        for (id, clusters) in shared.services.iter().filter(|(_, c)| c.has_endpoints) {
            let own = endpoints.of(*id);
            let key = (Same(clusters.clone()), Same(own.clone()));
            let make = |viewer: &Viewer<'_>| clusters.endpoints(own, viewer);
            let assignments = self.assignments.get(key, viewer, make);
            findings.extend(assignments.findings.iter().cloned());
            all.push(assignments);
        }
        let resources = all.iter().flat_map(|of_service| &of_service.resources);
        let resources: Vec<_> = resources.map(|r| (TypeUrl::Endpoint, r)).collect();
        let assignments = evolve(&self.before(viewer.view()), [TypeUrl::Endpoint], &resources);
        let mut set = shared.set.clone();
        *set.map_mut(TypeUrl::Endpoint) = assignments.map(TypeUrl::Endpoint).clone();
        Complete { set, findings, _assignments: all }
    }
}

/// Locks. What is behind these locks is whole at any moment, so it is good after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn put_together(complete: &Complete, inbound: Option<&Inbound>) -> Generated {
    let mut set = complete.set.clone();
    let mut diags = Diagnostics::new();
    diags.extend(complete.findings.iter().cloned());
    if let Some(inbound) = inbound {
        for (type_url, resource) in &inbound.resources {
            set.insert(*type_url, resource.clone());
        }
        diags.extend(inbound.findings.iter().cloned());
    }
    Generated { set: set.into(), diagnostics: diags.into_sorted() }
}
