//! The snapshot: everything that all documents together mean, at one moment.

use super::{
    DestinationRules, Endpoint, EndpointAddress, Gateway, Hostname, MeshSettings, Namespace,
    ObjectName, Secret, SecretKey, Service, Sidecar, VirtualService, Workload,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

/// Immutable; shared by `Arc`. Lists are in Istio's precedence order.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Mesh-wide settings.
    pub mesh: MeshSettings,
    /// Services by creation, hostname, namespace; namespace and hostname are unique together.
    pub services: Vec<Service>,
    /// VirtualServices by creation, name, namespace, delegates merged.
    pub virtual_services: Vec<VirtualService>,
    /// DestinationRules by host.
    pub destination_rules: DestinationRules,
    /// Gateways by creation, name, namespace.
    pub gateways: Vec<Gateway>,
    /// Sidecars by creation, name, namespace.
    pub sidecars: Vec<Sidecar>,
    /// WorkloadEntries by namespace and name.
    pub workloads: BTreeMap<ObjectName, Workload>,
    /// Certificates and keys.
    pub secrets: BTreeMap<SecretKey, Secret>,
    /// Label keys that some selector or match asks a proxy for. Other labels of a proxy cannot
    /// change what it gets, so proxies that differ only in those share their resources.
    pub proxy_label_keys: BTreeSet<String>,
    /// Lookup tables over the lists; empty until [`Snapshot::indexed`].
    pub(crate) index: Index,
}

/// Derived from the lists; rebuilt by [`Snapshot::indexed`].
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_host: HashMap<Hostname, Vec<usize>>,
    /// Services that have an endpoint at this address.
    by_address: HashMap<IpAddr, Vec<usize>>,
    workload_by_address: HashMap<IpAddr, Vec<ObjectName>>,
}

impl Snapshot {
    /// Builds the lookup tables. `compile` calls it once, last.
    #[must_use]
    pub fn indexed(mut self) -> Snapshot {
        let mut index = Index::default();
        for (position, service) in self.services.iter().enumerate() {
            index.by_host.entry(service.hostname.clone()).or_default().push(position);
            let addresses: BTreeSet<IpAddr> =
                service.endpoints.iter().filter_map(Endpoint::ip).collect();
            for address in addresses {
                index.by_address.entry(address).or_default().push(position);
            }
        }
        for (name, workload) in &self.workloads {
            if let Some(EndpointAddress::Ip(ip)) = &workload.address {
                index.workload_by_address.entry(*ip).or_default().push(name.clone());
            }
        }
        self.index = index;
        self
    }

    /// The services with exactly this hostname, of any namespace, in precedence order.
    pub fn services_of_host<'a>(&'a self, host: &str) -> impl Iterator<Item = &'a Service> {
        self.index.by_host.get(host).into_iter().flatten().map(|&i| &self.services[i])
    }

    /// The service of one namespace and hostname.
    pub fn service(&self, namespace: &Namespace, host: &str) -> Option<&Service> {
        self.services_of_host(host).find(|s| s.namespace == *namespace)
    }

    /// The services that have an endpoint at this address, in precedence order.
    pub fn services_at(&self, address: IpAddr) -> impl Iterator<Item = &Service> {
        self.index.by_address.get(&address).into_iter().flatten().map(|&i| &self.services[i])
    }

    /// The WorkloadEntries with this address, by namespace and name.
    pub fn workloads_at(&self, address: IpAddr) -> impl Iterator<Item = &Workload> {
        let names = self.index.workload_by_address.get(&address).into_iter().flatten();
        names.filter_map(|name| self.workloads.get(name))
    }

    /// The secret that a document of this namespace means by `name`: a Secret document of the
    /// same namespace, else a directory below `--secrets-dir`.
    pub fn secret(&self, namespace: &Namespace, name: &str) -> Option<&Secret> {
        let key = |namespace| SecretKey { namespace, name: name.into() };
        self.secrets.get(&key(Some(namespace.clone()))).or_else(|| self.secrets.get(&key(None)))
    }

    /// The secret with the certificate authorities that a document of this namespace means by
    /// `name`: `<name>-cacert` when there is one, else the CA part of `name` itself (Istio reads
    /// both).
    pub fn ca_secret(&self, namespace: &Namespace, name: &str) -> Option<&Secret> {
        [format!("{name}-cacert").as_str(), name]
            .into_iter()
            .filter_map(|name| self.secret(namespace, name))
            .find(|secret| secret.ca.is_some())
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
