//! What a sidecar's own workload serves: the service ports whose endpoints are at the proxy's
//! addresses, and what its Sidecar says about inbound traffic. Inbound listeners and inbound
//! clusters are made of this and of nothing else, so workloads that serve the same share them.

use super::filters::Filters;
use super::memo::Same;
use super::scope::World;
use super::view::Viewer;
use crate::model::{
    DestinationRule, IngressListener, MeshSettings, Secrets, Service, ServicePort, Sidecar,
    Snapshot,
};
use crate::proxy::Proxy;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// One service port that the workload serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceTarget {
    service: Same<Service>,
    /// The position of the port in the service.
    port: usize,
    /// Where the workload serves it.
    pub target_port: u16,
    /// The DestinationRule of the service, as far as the proxy sees the service itself. Rules for
    /// selected workloads are for outbound traffic, so they do not count.
    rule: Option<Same<DestinationRule>>,
}

impl ServiceTarget {
    /// The service.
    pub fn service(&self) -> &Service {
        &self.service.0
    }

    /// Its port.
    pub fn port(&self) -> &ServicePort {
        &self.service.0.ports[self.port]
    }

    /// The rule for inbound traffic.
    pub fn rule(&self) -> Option<&DestinationRule> {
        self.rule.as_ref().map(|rule| &*rule.0)
    }
}

/// Addresses and ports that outbound listeners have.
pub type TakenAddresses = BTreeSet<(String, u16)>;

/// What the inbound part of a proxy is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Workload {
    mesh: Same<MeshSettings>,
    /// The targets, in the order of services and their ports.
    pub targets: Vec<ServiceTarget>,
    sidecar: Option<Same<Sidecar>>,
    ingress: Option<Ingress>,
}

/// What the ingress listeners of a Sidecar are made of beside the Sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ingress {
    /// The proxy's addresses.
    pub addresses: Vec<IpAddr>,
    /// What outbound listeners have.
    taken: Same<TakenAddresses>,
    secrets: Same<Secrets>,
}

impl Ingress {
    /// What outbound listeners have.
    pub fn taken(&self) -> &TakenAddresses {
        &self.taken.0
    }

    /// Certificates and keys.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets.0
    }
}

impl Workload {
    /// The workload at a proxy's addresses. As in Istio, only services of the proxy's own namespace
    /// count.
    pub fn of(
        snapshot: &Snapshot,
        world: &World,
        proxy: &Proxy,
        taken: &Arc<TakenAddresses>,
    ) -> Workload {
        let with_ingress = world.sidecar.as_ref().filter(|sidecar| !sidecar.ingress.is_empty());
        let ingress = with_ingress.map(|_| Ingress {
            addresses: proxy.addresses.clone(),
            taken: Same(taken.clone()),
            secrets: Same(snapshot.routing.secrets.clone()),
        });
        Workload {
            mesh: Same(snapshot.routing.mesh.clone()),
            targets: targets(snapshot, world, proxy),
            sidecar: world.sidecar.clone().map(Same),
            ingress,
        }
    }

    /// The mesh's settings.
    pub fn mesh(&self) -> &MeshSettings {
        &self.mesh.0
    }

    /// The Sidecar that applies.
    pub fn sidecar(&self) -> Option<&Sidecar> {
        self.sidecar.as_ref().map(|sidecar| &*sidecar.0)
    }

    /// The ingress listeners of the Sidecar, if it has any, with what else they are made of.
    pub fn ingress(&self) -> Option<(&Sidecar, &[IngressListener], &Ingress)> {
        let sidecar = self.sidecar()?;
        Some((sidecar, &sidecar.ingress, self.ingress.as_ref()?))
    }
}

/// A workload with the proxy that looks at it.
#[derive(Debug, Clone, Copy)]
pub struct InboundSite<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Who looks.
    pub view: &'a Viewer<'a>,
    /// The filters that chains are made with.
    pub filters: Filters,
}

impl<'a> InboundSite<'a> {
    /// The mesh's settings.
    pub fn mesh(&self) -> &'a MeshSettings {
        self.workload.mesh()
    }
}

fn targets(snapshot: &Snapshot, world: &World, proxy: &Proxy) -> Vec<ServiceTarget> {
    let mut services: Vec<_> = proxy
        .addresses
        .iter()
        .flat_map(|address| snapshot.services_at(*address))
        .filter(|(_, service)| service.namespace == proxy.namespace)
        .collect();
    services.sort_by_key(|(_, service)| (service.origin.created, service.hostname.clone()));
    services.dedup_by(|(_, a), (_, b)| a.hostname == b.hostname);
    let mut targets: Vec<ServiceTarget> = Vec::new();
    for (id, service) in services {
        let rule = rule_of(snapshot, world, proxy, service);
        let begin = targets.len();
        let endpoints = snapshot.endpoints.of(id).iter();
        for endpoint in endpoints.filter(|e| e.ip().is_some_and(|ip| proxy.addresses.contains(&ip)))
        {
            let number = endpoint.port_number;
            let Some(port) = service.stream_ports().find(|p| p.number == number) else { continue };
            let Some(port) = service.ports.iter().position(|p| std::ptr::eq(p, port)) else {
                continue;
            };
            let target_port = endpoint.target_port;
            let known = |t: &ServiceTarget| {
                t.port().number == service.ports[port].number && t.target_port == target_port
            };
            if !targets[begin..].iter().any(known) {
                let (service, rule) = (Same(service.clone()), rule.clone().map(Same));
                targets.push(ServiceTarget { service, port, target_port, rule });
            }
        }
    }
    targets
}

fn rule_of(
    snapshot: &Snapshot,
    world: &World,
    proxy: &Proxy,
    service: &Service,
) -> Option<Arc<DestinationRule>> {
    let Service { namespace, hostname, .. } = service;
    let visible = world.find(hostname).is_some_and(|s| s.service.namespace == *namespace);
    let rules = &snapshot.routing.destination_rules;
    let found = || rules.find(&proxy.namespace, namespace, hostname, |asked| asked.is_empty());
    if visible { found().cloned() } else { None }
}

/// The first target of each target port decides how it is served; the others are listed with it.
pub fn by_target_port(targets: &[ServiceTarget]) -> BTreeMap<u16, Vec<&ServiceTarget>> {
    let mut ports: BTreeMap<u16, Vec<&ServiceTarget>> = BTreeMap::new();
    for target in targets {
        ports.entry(target.target_port).or_default().push(target);
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::{endpoint, proxy_at, service, snapshot, workload};
    use crate::model::{Endpoint, Protocol};

    #[test]
    fn services_of_the_own_namespace_with_an_endpoint_here_are_targets() {
        let mut here = service("a.default", &[(80, Protocol::Http), (81, Protocol::Tcp)]);
        here.endpoints = [endpoint("10.0.0.1", 80), endpoint("10.0.0.2", 81)].into();
        let mut also = service("b.default", &[(8080, Protocol::Grpc)]);
        also.endpoints = [Endpoint { target_port: 80, ..endpoint("10.0.0.1", 8080) }].into();
        let mut foreign = service("c.other", &[(80, Protocol::Http)]);
        foreign.namespace = "other".into();
        foreign.endpoints = [endpoint("10.0.0.1", 80)].into();
        let snapshot = snapshot(vec![here, also, foreign], Vec::new());

        let (workload, _) = workload(&snapshot, &proxy_at("10.0.0.1"));
        let ports = by_target_port(&workload.targets);
        assert_eq!(ports.keys().copied().collect::<Vec<_>>(), [80]);
        let hosts: Vec<&str> = ports[&80].iter().map(|t| t.service().hostname.as_str()).collect();
        assert_eq!(hosts, ["a.default", "b.default"]);
    }
}
