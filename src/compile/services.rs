//! From ServiceEntries and WorkloadEntries to services and their endpoints.

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::kinds::{EndpointSpec, ServiceEntryDraft};
use crate::model::{
    Endpoint, EndpointAddress, Endpoints, Health, Hostname, Labels, Locality, MeshSettings,
    Namespace, Resolution, Service, ServicePort, Services, Workload, Workloads,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The services of the last snapshot, and what each was made of, so that the next one makes only
/// those again whose documents changed.
#[derive(Debug, Default)]
pub struct ServiceTable {
    mesh: Option<Arc<MeshSettings>>,
    groups: HashMap<(Namespace, Hostname), Group>,
    services: Arc<Services>,
    endpoints: Arc<Endpoints>,
}

/// One hostname of one namespace.
#[derive(Debug)]
struct Group {
    /// The documents about it by precedence, each with the WorkloadEntries that it selects.
    sources: Vec<Source>,
    service: Arc<Service>,
    endpoints: Arc<[Endpoint]>,
    findings: Vec<Diagnostic>,
}

#[derive(Debug, Clone)]
struct Source {
    entry: Arc<ServiceEntryDraft>,
    selected: Arc<[Arc<Workload>]>,
}

impl Source {
    fn is_same(&self, other: &Source) -> bool {
        let same = |(a, b): (&Arc<Workload>, &Arc<Workload>)| Arc::ptr_eq(a, b);
        Arc::ptr_eq(&self.entry, &other.entry)
            && self.selected.len() == other.selected.len()
            && self.selected.iter().zip(&*other.selected).all(same)
    }
}

impl ServiceTable {
    /// The services, sorted by creation, hostname and namespace, and their endpoints. `entries` are
    /// in order of precedence. What did not change is the same `Arc` as the last time.
    ///
    /// ServiceEntries of one namespace and host are one service: ports are united by number when the
    /// documents agree in everything else, and endpoints are pooled in any case (Istio keys its
    /// endpoint index by namespace and host).
    pub fn update(
        &mut self,
        entries: &[Arc<ServiceEntryDraft>],
        workloads: &Arc<Workloads>,
        mesh: &Arc<MeshSettings>,
        diags: &mut Diagnostics,
    ) -> (Arc<Services>, Arc<Endpoints>) {
        let same_mesh = self.mesh.as_ref().is_some_and(|known| Arc::ptr_eq(known, mesh));
        let mut known = std::mem::take(&mut self.groups);
        let mut groups = HashMap::with_capacity(known.len());
        for (key, sources) in sources(entries, workloads) {
            let before = known.remove(&key);
            let group = match before {
                Some(group) if same_mesh && same_sources(&group.sources, &sources) => group,
                before => Group::new(&key.1, sources, mesh, before),
            };
            diags.extend(group.findings.iter().cloned());
            groups.insert(key, group);
        }
        self.mesh = Some(mesh.clone());
        self.groups = groups;
        let services = self.sorted();
        let lists = services.iter().map(|(_, service)| self.endpoints_of(service)).collect();
        self.services = services;
        self.endpoints = self.with_endpoints(lists, workloads);
        (self.services.clone(), self.endpoints.clone())
    }

    fn group(&self, service: &Service) -> Option<&Group> {
        self.groups.get(&(service.namespace.clone(), service.hostname.clone()))
    }

    fn endpoints_of(&self, service: &Service) -> Arc<[Endpoint]> {
        self.group(service).map(|group| group.endpoints.clone()).unwrap_or_default()
    }

    /// The services in their order. As long as none comes, goes or changes its place, the order of
    /// the last time is right.
    fn sorted(&self) -> Arc<Services> {
        let now = |service: &Arc<Service>| {
            let now = &self.group(service)?.service;
            (now.origin.created == service.origin.created).then_some(now)
        };
        if self.services.len() == self.groups.len() {
            let now: Option<Vec<&Arc<Service>>> =
                self.services.iter().map(|(_, service)| now(service)).collect();
            if let Some(now) = now {
                let before = self.services.iter().map(|(_, service)| service);
                if before.zip(&now).all(|(before, now)| Arc::ptr_eq(before, now)) {
                    return self.services.clone();
                }
                return Arc::new(Services::new(now.into_iter().cloned().collect()));
            }
        }
        let mut services: Vec<Arc<Service>> =
            self.groups.values().map(|group| group.service.clone()).collect();
        services.sort_by(|a, b| {
            let created = a.origin.created.cmp(&b.origin.created);
            created
                .then_with(|| a.hostname.cmp(&b.hostname))
                .then_with(|| a.namespace.cmp(&b.namespace))
        });
        Arc::new(Services::new(services))
    }

    fn with_endpoints(
        &self,
        lists: Vec<Arc<[Endpoint]>>,
        workloads: &Arc<Workloads>,
    ) -> Arc<Endpoints> {
        let before = &self.endpoints;
        let same = before.lists().len() == lists.len()
            && before.lists().iter().zip(&lists).all(|(a, b)| Arc::ptr_eq(a, b))
            && Arc::ptr_eq(before.workloads(), workloads);
        if same { before.clone() } else { Arc::new(Endpoints::new(lists, workloads.clone())) }
    }
}

/// What there is about each hostname of each namespace.
fn sources(
    entries: &[Arc<ServiceEntryDraft>],
    workloads: &Workloads,
) -> HashMap<(Namespace, Hostname), Vec<Source>> {
    let selection = Selection::new(workloads);
    let mut sources: HashMap<(Namespace, Hostname), Vec<Source>> =
        HashMap::with_capacity(entries.len());
    for entry in entries {
        let namespace = &entry.origin.name.namespace;
        let selected = match &entry.workload_selector {
            Some(selector) => selection.of(namespace, selector).into_iter().cloned().collect(),
            None => Arc::default(),
        };
        let source = Source { entry: entry.clone(), selected };
        for (position, host) in entry.hosts.iter().enumerate() {
            if !entry.hosts[..position].contains(host) {
                let key = (namespace.clone(), host.clone());
                sources.entry(key).or_default().push(source.clone());
            }
        }
    }
    sources
}

fn same_sources(a: &[Source], b: &[Source]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
}

impl Group {
    /// Makes a service. Halves that are as they were before stay the same `Arc`.
    fn new(
        host: &Hostname,
        sources: Vec<Source>,
        mesh: &MeshSettings,
        before: Option<Group>,
    ) -> Group {
        let mut findings = Vec::new();
        let mut made: Option<Service> = None;
        let mut pool = Vec::new();
        for Source { entry, selected } in &sources {
            match &mut made {
                Some(service) => findings.extend(unite(service, entry, host)),
                None => made = Some(service(entry, host)),
            }
            pool.extend(endpoints(entry, host, &members(entry, selected)));
        }
        let made = made.expect("a group has a document");
        let (mut service, mut endpoints) = finish(made, pool, mesh);
        if let Some(before) = before {
            if before.endpoints == endpoints {
                endpoints = before.endpoints;
            }
            if before.service == service {
                service = before.service;
            }
        }
        Group { sources, service, endpoints, findings }
    }
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
fn unite(service: &mut Service, entry: &ServiceEntryDraft, host: &Hostname) -> Option<Diagnostic> {
    let agrees = service.resolution == entry.resolution
        && service.location == entry.location
        && service.labels == entry.labels
        && service.visibility == entry.visibility;
    if !agrees {
        let message = format!(
            "host '{host}' is also defined by {} with another resolution, location, labels or \
             exportTo; the ports of this document are left out",
            service.origin.name
        );
        let finding = entry.origin.diagnostic(Code::OverlappingHost, message);
        return Some(finding.related(service.origin.span.clone(), "this one is served"));
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
    None
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

fn members<'a>(entry: &'a ServiceEntryDraft, selected: &'a [Arc<Workload>]) -> Vec<Member<'a>> {
    if entry.workload_selector.is_some() {
        let by_name = entry.resolution == Resolution::Static;
        return selected
            .iter()
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
    by_namespace: HashMap<&'a Namespace, Vec<&'a Arc<Workload>>>,
    by_label: HashMap<(&'a Namespace, &'a str, &'a str), Vec<&'a Arc<Workload>>>,
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
    fn of(&self, namespace: &Namespace, selector: &Labels) -> Vec<&'a Arc<Workload>> {
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
