//! From ServiceEntries and WorkloadEntries to services and their endpoints.

use crate::diag::{Code, Diagnostics};
use crate::kinds::{EndpointSpec, ServiceEntryDraft};
use crate::model::{
    Endpoint, EndpointAddress, Health, Hostname, Labels, Locality, MeshSettings, Namespace, Origin,
    Resolution, Service, ServicePort, Workload, Workloads,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Builds the services, sorted by creation, hostname and namespace.
///
/// ServiceEntries of one namespace and host are one service: ports are united by number when the
/// documents agree in everything else, and endpoints are pooled in any case (Istio keys its
/// endpoint index by namespace and host).
pub fn build(
    mut entries: Vec<ServiceEntryDraft>,
    workloads: &Workloads,
    mesh: &MeshSettings,
    diags: &mut Diagnostics,
) -> (Vec<Arc<Service>>, Vec<Arc<[Endpoint]>>) {
    entries.sort_by(|a, b| Origin::precedence(&a.origin, &b.origin));
    let selection = Selection::new(workloads);
    let mut services: Vec<(Service, Vec<Endpoint>)> = Vec::new();
    let mut known: HashMap<(Namespace, Hostname), usize> = HashMap::new();
    for entry in &entries {
        let members = members(entry, &selection);
        let mut own_hosts = HashSet::new();
        for host in entry.hosts.iter().filter(|host| own_hosts.insert(*host)) {
            let key = (entry.origin.name.namespace.clone(), host.clone());
            let own = endpoints(entry, host, &members);
            match known.get(&key) {
                Some(&position) => {
                    let (service, pool) = &mut services[position];
                    unite(service, entry, host, diags);
                    pool.extend(own);
                }
                None => {
                    known.insert(key, services.len());
                    services.push((service(entry, host), own));
                }
            }
        }
    }
    services.sort_by(|(a, _), (b, _)| {
        let created = a.origin.created.cmp(&b.origin.created);
        created
            .then_with(|| a.hostname.cmp(&b.hostname))
            .then_with(|| a.namespace.cmp(&b.namespace))
    });
    services.into_iter().map(|(service, pool)| finish(service, pool, mesh)).unzip()
}

fn service(entry: &ServiceEntryDraft, host: &Hostname) -> Service {
    Service {
        hostname: host.clone(),
        namespace: entry.origin.name.namespace.clone(),
        origin: entry.origin.clone(),
        labels: entry.labels.clone(),
        ports: entry.ports.clone(),
        addresses: entry.addresses.clone(),
        resolution: entry.resolution,
        location: entry.location,
        visibility: entry.visibility.clone(),
        subject_alt_names: entry.subject_alt_names.clone(),
        endpoints: Arc::default(),
    }
}

/// Adds a younger document's share to a service.
fn unite(
    service: &mut Service,
    entry: &ServiceEntryDraft,
    host: &Hostname,
    diags: &mut Diagnostics,
) {
    let agrees = service.resolution == entry.resolution
        && service.location == entry.location
        && service.labels == entry.labels
        && service.visibility == entry.visibility;
    if !agrees {
        diags.push(
            entry
                .origin
                .diagnostic(
                    Code::OverlappingHost,
                    format!(
                        "host '{host}' is also defined by {} with another resolution, location, \
                         labels or exportTo; the ports of this document are left out",
                        service.origin.name
                    ),
                )
                .related(service.origin.span.clone(), "this one is served"),
        );
        return;
    }
    for port in &entry.ports {
        if service.ports.iter().all(|p| p.number != port.number) {
            service.ports.push(port.clone());
        }
    }
    for address in &entry.addresses {
        if !service.addresses.contains(address) {
            service.addresses.push(*address);
        }
    }
    service.subject_alt_names.extend(entry.subject_alt_names.iter().cloned());
}

/// An endpoint of a ServiceEntry before it is spread over ports.
struct Member<'a> {
    address: &'a EndpointAddress,
    ports: &'a BTreeMap<String, u16>,
    labels: &'a Labels,
    locality: &'a Locality,
    weight: u32,
    network: &'a Arc<str>,
    service_account: &'a Arc<str>,
    workload: Arc<str>,
    health: Health,
}

fn members<'a>(entry: &'a ServiceEntryDraft, selection: &Selection<'a>) -> Vec<Member<'a>> {
    if let Some(selector) = &entry.workload_selector {
        let by_name = entry.resolution == Resolution::Static;
        let selected = selection.of(&entry.origin.name.namespace, selector);
        return selected
            .into_iter()
            .filter_map(|workload| {
                let address = workload.address.as_ref()?;
                // A STATIC service cannot use names or sockets of WorkloadEntries (Istio).
                if by_name && !matches!(address, EndpointAddress::Ip(_)) {
                    return None;
                }
                Some(Member {
                    address,
                    ports: &workload.ports,
                    labels: &workload.labels,
                    locality: &workload.locality,
                    weight: workload.weight,
                    network: &workload.network,
                    service_account: &workload.service_account,
                    workload: workload.name().name.clone(),
                    health: workload.health,
                })
            })
            .collect();
    }
    entry
        .endpoints
        .iter()
        .enumerate()
        .filter_map(|(index, spec)| inline_member(entry, index, spec))
        .collect()
}

fn inline_member<'a>(
    entry: &ServiceEntryDraft,
    index: usize,
    spec: &'a EndpointSpec,
) -> Option<Member<'a>> {
    Some(Member {
        address: spec.address.as_ref()?,
        ports: &spec.ports,
        labels: &spec.labels,
        locality: &spec.locality,
        weight: spec.weight,
        network: &spec.network,
        service_account: &spec.service_account,
        workload: Arc::from(format!("{}-{index}", entry.origin.name.name)),
        health: Health::of(&spec.labels),
    })
}

fn endpoints(entry: &ServiceEntryDraft, host: &Hostname, members: &[Member<'_>]) -> Vec<Endpoint> {
    let by_dns = matches!(entry.resolution, Resolution::Dns | Resolution::DnsRoundRobin);
    if by_dns && members.is_empty() && entry.workload_selector.is_none() {
        return entry.ports.iter().map(|port| own_name(entry, host, port)).collect();
    }
    let spread = |member: &Member<'_>| -> Vec<Endpoint> {
        entry.ports.iter().map(|port| endpoint(entry, member, port)).collect()
    };
    members.iter().flat_map(spread).collect()
}

/// Without endpoints a DNS service is its own name.
fn own_name(entry: &ServiceEntryDraft, host: &Hostname, port: &ServicePort) -> Endpoint {
    Endpoint {
        port_name: port.name.clone(),
        port_number: port.number,
        address: match host.parse() {
            Ok(ip) => EndpointAddress::Ip(ip),
            Err(_) => EndpointAddress::Hostname(Arc::from(host.as_str())),
        },
        target_port: port.target_port.unwrap_or(port.number),
        labels: Labels::default(),
        locality: Locality::default(),
        weight: 1,
        network: Arc::default(),
        service_account: Arc::default(),
        tls_mode: Arc::from("disabled"),
        workload: entry.origin.name.name.clone(),
        namespace: entry.origin.name.namespace.clone(),
        health: Health::Unknown,
    }
}

fn endpoint(entry: &ServiceEntryDraft, member: &Member<'_>, port: &ServicePort) -> Endpoint {
    let target_port = match member.address {
        EndpointAddress::Pipe(_) => 0,
        EndpointAddress::Ip(_) | EndpointAddress::Hostname(_) => member
            .ports
            .get(&*port.name)
            .copied()
            .filter(|p| *p > 0)
            .or(port.target_port)
            .unwrap_or(port.number),
    };
    let tls_mode = match member.labels.get("security.istio.io/tlsMode") {
        Some(mode) => Arc::from(mode),
        None if member.service_account.is_empty() => Arc::from("disabled"),
        None => Arc::from("istio"),
    };
    Endpoint {
        port_name: port.name.clone(),
        port_number: port.number,
        address: member.address.clone(),
        target_port,
        labels: member.labels.clone(),
        locality: member.locality.clone(),
        weight: member.weight,
        network: member.network.clone(),
        service_account: member.service_account.clone(),
        tls_mode,
        workload: member.workload.clone(),
        namespace: entry.origin.name.namespace.clone(),
        health: member.health,
    }
}

/// What can only be said once all documents of a host are in.
fn finish(
    mut service: Service,
    mut endpoints: Vec<Endpoint>,
    mesh: &MeshSettings,
) -> (Arc<Service>, Arc<[Endpoint]>) {
    let mut seen = HashSet::new();
    endpoints.retain(|e| {
        seen.insert((
            e.address.clone(),
            e.target_port,
            e.port_name.clone(),
            e.port_number,
            e.workload.clone(),
        ))
    });
    if service.resolution == Resolution::DnsRoundRobin {
        // One name a port: the oldest document's first endpoint (Istio).
        let mut ports = HashSet::new();
        endpoints.retain(|e| ports.insert(e.port_number));
    }
    let mut names: BTreeSet<String> =
        std::mem::take(&mut service.subject_alt_names).into_iter().collect();
    for endpoint in endpoints.iter().filter(|e| !e.service_account.is_empty()) {
        let domains = std::iter::once(&mesh.trust_domain).chain(&mesh.trust_domain_aliases);
        names.extend(domains.map(|domain| {
            format!("spiffe://{domain}/ns/{}/sa/{}", endpoint.namespace, endpoint.service_account)
        }));
    }
    service.subject_alt_names = names.into_iter().collect();
    let endpoints: Arc<[Endpoint]> = endpoints.into();
    service.endpoints = match service.resolution {
        Resolution::Static => Arc::default(),
        Resolution::None | Resolution::Dns | Resolution::DnsRoundRobin | Resolution::DynamicDns => {
            endpoints.clone()
        }
    };
    (Arc::new(service), endpoints)
}

/// WorkloadEntries by namespace and label, so that a selector looks only at candidates.
struct Selection<'a> {
    by_namespace: HashMap<&'a Namespace, Vec<&'a Workload>>,
    by_label: HashMap<(&'a Namespace, &'a str, &'a str), Vec<&'a Workload>>,
}

impl<'a> Selection<'a> {
    fn new(workloads: &'a Workloads) -> Selection<'a> {
        let mut selection = Selection { by_namespace: HashMap::new(), by_label: HashMap::new() };
        for workload in workloads.iter() {
            let namespace = &workload.name().namespace;
            selection.by_namespace.entry(namespace).or_default().push(workload);
            for (key, value) in &workload.labels.0 {
                let label = (namespace, key.as_str(), value.as_str());
                selection.by_label.entry(label).or_default().push(workload);
            }
        }
        selection
    }

    /// The workloads that a selector selects, by name. An empty selector selects all of the
    /// namespace.
    fn of(&self, namespace: &Namespace, selector: &Labels) -> Vec<&'a Workload> {
        let candidates = selector
            .0
            .iter()
            .map(|(key, value)| {
                self.by_label.get(&(namespace, key.as_str(), value.as_str())).map_or(&[][..], |v| v)
            })
            .min_by_key(|list| list.len())
            .or_else(|| self.by_namespace.get(namespace).map(Vec::as_slice))
            .unwrap_or_default();
        candidates.iter().copied().filter(|w| w.labels.selected_by(selector)).collect()
    }
}
