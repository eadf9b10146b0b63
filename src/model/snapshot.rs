//! The snapshot: everything that all documents together mean, at one moment.
//!
//! It has two halves that change at different speeds. [`Routing`] is what clusters, listeners and
//! routes are made of; [`Endpoints`] is where services run. A change of endpoints leaves the
//! routing half the very same `Arc`, so whoever made something of that half need not look again.
//! Inside the halves everything is shared too: what did not change from one snapshot to the next is
//! the same `Arc`.

use super::{
    DestinationRules, Endpoint, EndpointAddress, Gateway, Hostname, MeshSettings, Namespace,
    ObjectName, Secret, SecretKey, Service, Sidecar, VirtualService, Workload,
};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

/// Immutable; shared by `Arc`. Lists are in Istio's precedence order.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// What traffic is allowed to do, and where it goes.
    pub routing: Arc<Routing>,
    /// Where services run.
    pub endpoints: Arc<Endpoints>,
}

/// Everything but the endpoints of services that EDS serves.
#[derive(Debug, Clone, Default)]
pub struct Routing {
    /// Mesh-wide settings.
    pub mesh: Arc<MeshSettings>,
    /// Services by creation, hostname, namespace; namespace and hostname are unique together.
    pub services: Arc<Services>,
    /// VirtualServices by creation, name, namespace, delegates merged.
    pub virtual_services: Arc<[Arc<VirtualService>]>,
    /// DestinationRules by host.
    pub destination_rules: Arc<DestinationRules>,
    /// Gateways by creation, name, namespace.
    pub gateways: Arc<[Arc<Gateway>]>,
    /// Sidecars by creation, name, namespace.
    pub sidecars: Arc<[Arc<Sidecar>]>,
    /// Certificates and keys.
    pub secrets: Arc<Secrets>,
}

/// The position of a service in [`Services`], by which its endpoints are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(u32);

/// All services, found by position and by hostname.
#[derive(Debug, Default)]
pub struct Services {
    list: Vec<Arc<Service>>,
    by_host: HashMap<Hostname, Vec<ServiceId>>,
}

/// The endpoints of every service, and the workloads behind them.
#[derive(Debug, Default)]
pub struct Endpoints {
    of_service: Vec<Arc<[Endpoint]>>,
    /// Services that have an endpoint at this address.
    by_address: HashMap<IpAddr, Vec<ServiceId>>,
    workloads: Arc<Workloads>,
}

/// WorkloadEntries, found by name and by address.
#[derive(Debug, Default)]
pub struct Workloads {
    by_name: BTreeMap<ObjectName, Arc<Workload>>,
    by_address: HashMap<IpAddr, Vec<Arc<Workload>>>,
}

/// Certificates and keys by where they are looked up.
#[derive(Debug, Default, PartialEq)]
pub struct Secrets(BTreeMap<SecretKey, Arc<Secret>>);

impl ServiceId {
    /// The id of a position. There are never as many services as 32 bits can count.
    fn at(position: usize) -> ServiceId {
        ServiceId(u32::try_from(position).unwrap_or(u32::MAX))
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl Services {
    /// Services in precedence order.
    pub fn new(list: Vec<Arc<Service>>) -> Services {
        let mut by_host: HashMap<Hostname, Vec<ServiceId>> = HashMap::with_capacity(list.len());
        for (position, service) in list.iter().enumerate() {
            let ids = by_host.entry(service.hostname.clone()).or_default();
            ids.push(ServiceId::at(position));
        }
        Services { list, by_host }
    }

    /// All of them with their positions.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ServiceId, &Arc<Service>)> {
        self.list.iter().enumerate().map(|(i, s)| (ServiceId::at(i), s))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The service at a position.
    pub fn get(&self, id: ServiceId) -> &Arc<Service> {
        &self.list[id.index()]
    }

    /// The services with exactly this hostname, of any namespace, in precedence order.
    pub fn of_host(&self, host: &str) -> impl Iterator<Item = (ServiceId, &Arc<Service>)> {
        let found = self.by_host.get(host).into_iter().flatten();
        found.map(|&id| (id, self.get(id)))
    }

    /// The hostnames that more than one service has.
    pub fn shared_hosts(&self) -> impl Iterator<Item = &[ServiceId]> {
        self.by_host.values().map(Vec::as_slice).filter(|ids| ids.len() > 1)
    }
}

impl Endpoints {
    /// The endpoints of services in the order of [`Services`].
    pub fn new(of_service: Vec<Arc<[Endpoint]>>, workloads: Arc<Workloads>) -> Endpoints {
        let mut by_address: HashMap<IpAddr, Vec<ServiceId>> = HashMap::new();
        for (position, endpoints) in of_service.iter().enumerate() {
            let id = ServiceId::at(position);
            for address in endpoints.iter().filter_map(Endpoint::ip) {
                let services = by_address.entry(address).or_default();
                // Endpoints of one service come one after the other.
                if services.last() != Some(&id) {
                    services.push(id);
                }
            }
        }
        Endpoints { of_service, by_address, workloads }
    }

    /// The endpoints of a service, in pool order: documents by precedence, then the order in the
    /// document, ports in service order. Selected WorkloadEntries come by namespace, name.
    pub fn of(&self, service: ServiceId) -> &Arc<[Endpoint]> {
        &self.of_service[service.index()]
    }

    /// The endpoints of all services, in the order of [`Services`].
    pub fn lists(&self) -> &[Arc<[Endpoint]>] {
        &self.of_service
    }

    /// The services that have an endpoint at this address, in precedence order.
    pub fn services_at(&self, address: IpAddr) -> &[ServiceId] {
        self.by_address.get(&address).map_or(&[], Vec::as_slice)
    }

    /// The WorkloadEntries.
    pub fn workloads(&self) -> &Arc<Workloads> {
        &self.workloads
    }
}

impl Workloads {
    /// WorkloadEntries in any order.
    pub fn new(workloads: impl IntoIterator<Item = Arc<Workload>>) -> Workloads {
        let by_name: BTreeMap<ObjectName, Arc<Workload>> =
            workloads.into_iter().map(|w| (w.name().clone(), w)).collect();
        let mut by_address: HashMap<IpAddr, Vec<Arc<Workload>>> = HashMap::new();
        for workload in by_name.values() {
            if let Some(EndpointAddress::Ip(ip)) = &workload.address {
                by_address.entry(*ip).or_default().push(workload.clone());
            }
        }
        Workloads { by_name, by_address }
    }

    /// The WorkloadEntry of this name.
    pub fn get(&self, name: &ObjectName) -> Option<&Arc<Workload>> {
        self.by_name.get(name)
    }

    /// The WorkloadEntries with this address, by namespace and name.
    pub fn at(&self, address: IpAddr) -> &[Arc<Workload>] {
        self.by_address.get(&address).map_or(&[], Vec::as_slice)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// All of them by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Workload>> {
        self.by_name.values()
    }
}

impl Secrets {
    /// Secrets in any order; the last of a key counts.
    pub fn new(secrets: impl IntoIterator<Item = (SecretKey, Arc<Secret>)>) -> Secrets {
        Secrets(secrets.into_iter().collect())
    }

    /// The secret that a document of this namespace means by `name`: a Secret document of the
    /// same namespace, else a directory below `--secrets-dir`.
    pub fn get(&self, namespace: &Namespace, name: &str) -> Option<&Arc<Secret>> {
        let key = |namespace| SecretKey { namespace, name: name.into() };
        self.0.get(&key(Some(namespace.clone()))).or_else(|| self.0.get(&key(None)))
    }

    /// The secret with the certificate authorities that a document of this namespace means by
    /// `name`: `<name>-cacert` when there is one, else the CA part of `name` itself (Istio reads
    /// both).
    pub fn ca(&self, namespace: &Namespace, name: &str) -> Option<&Arc<Secret>> {
        [format!("{name}-cacert").as_str(), name]
            .into_iter()
            .filter_map(|name| self.get(namespace, name))
            .find(|secret| secret.ca.is_some())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&SecretKey, &Arc<Secret>)> {
        self.0.iter()
    }
}

impl Snapshot {
    /// Whether both halves are the same.
    pub fn is_same(&self, other: &Snapshot) -> bool {
        Arc::ptr_eq(&self.routing, &other.routing) && Arc::ptr_eq(&self.endpoints, &other.endpoints)
    }

    /// The services that have an endpoint at this address, in precedence order.
    pub fn services_at(&self, address: IpAddr) -> impl Iterator<Item = (ServiceId, &Arc<Service>)> {
        let services = &self.routing.services;
        self.endpoints.services_at(address).iter().map(|&id| (id, services.get(id)))
    }
}

impl Endpoint {
    /// The IP address, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.address {
            EndpointAddress::Ip(ip) => Some(ip),
            EndpointAddress::Hostname(_) | EndpointAddress::Pipe(_) => None,
        }
    }
}
