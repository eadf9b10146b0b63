//! What a sidecar's own workload serves: the service ports whose endpoints are at the proxy's
//! addresses. Inbound listeners and inbound clusters are made of these.

use crate::model::{Service, ServicePort, Snapshot};
use crate::proxy::Proxy;
use std::collections::BTreeMap;

/// One service port that the workload serves.
#[derive(Debug, Clone, Copy)]
pub struct ServiceTarget<'a> {
    /// The service.
    pub service: &'a Service,
    /// Its port.
    pub port: &'a ServicePort,
    /// Where the workload serves it.
    pub target_port: u16,
}

/// The targets of a proxy, in the order of services and their ports. As in Istio, only services of
/// the proxy's own namespace count.
pub fn service_targets<'a>(snapshot: &'a Snapshot, proxy: &Proxy) -> Vec<ServiceTarget<'a>> {
    let mut targets = Vec::new();
    for service in own_services(snapshot, proxy) {
        let here = service
            .endpoints
            .iter()
            .filter(|e| e.ip().is_some_and(|ip| proxy.addresses.contains(&ip)));
        let mut of_service: Vec<ServiceTarget<'a>> = Vec::new();
        for endpoint in here {
            let Some(port) = service.port(endpoint.port_number) else { continue };
            let target_port = endpoint.target_port;
            let known = |t: &ServiceTarget<'_>| {
                t.port.number == port.number && t.target_port == target_port
            };
            if !of_service.iter().any(known) {
                of_service.push(ServiceTarget { service, port, target_port });
            }
        }
        targets.append(&mut of_service);
    }
    targets
}

/// The first target of each target port decides how it is served; the others are listed with it.
pub fn by_target_port<'a>(targets: &[ServiceTarget<'a>]) -> BTreeMap<u16, Vec<ServiceTarget<'a>>> {
    let mut ports: BTreeMap<u16, Vec<ServiceTarget<'a>>> = BTreeMap::new();
    for target in targets {
        ports.entry(target.target_port).or_default().push(*target);
    }
    ports
}

fn own_services<'a>(snapshot: &'a Snapshot, proxy: &Proxy) -> Vec<&'a Service> {
    let mut services: Vec<&'a Service> = proxy
        .addresses
        .iter()
        .flat_map(|address| snapshot.services_at(*address))
        .filter(|service| service.namespace == proxy.namespace)
        .collect();
    let order = |s: &&Service| (s.origin.created, s.hostname.clone());
    services.sort_by_key(order);
    services.dedup_by(|a, b| a.hostname == b.hostname);
    services
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::{endpoint, proxy_at, service, snapshot};
    use crate::model::Protocol;

    #[test]
    fn services_of_the_own_namespace_with_an_endpoint_here_are_targets() {
        let mut here = service("a.default", &[(80, Protocol::Http), (81, Protocol::Tcp)]);
        here.endpoints = vec![endpoint("10.0.0.1", 80), endpoint("10.0.0.2", 81)];
        let mut also = service("b.default", &[(8080, Protocol::Grpc)]);
        also.endpoints = vec![endpoint("10.0.0.1", 8080)];
        also.endpoints[0].target_port = 80;
        let mut foreign = service("c.other", &[(80, Protocol::Http)]);
        foreign.namespace = "other".into();
        foreign.endpoints = vec![endpoint("10.0.0.1", 80)];
        let snapshot = snapshot(vec![here, also, foreign], Vec::new());

        let targets = service_targets(&snapshot, &proxy_at("10.0.0.1"));
        let ports = by_target_port(&targets);
        assert_eq!(ports.keys().copied().collect::<Vec<_>>(), [80]);
        let hosts: Vec<&str> = ports[&80].iter().map(|t| t.service.hostname.as_str()).collect();
        assert_eq!(hosts, ["a.default", "b.default"]);
    }
}
