//! Route configurations of sidecars: for each that an outbound listener names, the virtual hosts
//! of the services behind it.
//!
//! A service belongs to the first VirtualService that names it, else to the one with the longest
//! wildcard that covers it; rules of several are not merged (on gateways they are). Hosts that only
//! a VirtualService knows are served on port 80, and beside a service of the same document.

mod hosts;

use super::host_index::HostIndex;
use super::plan::listener::egress::RouteContent;
use super::route::{self, HostPort, Place, PortForm, Registry, Scheme};
use super::{EgressScope, Output, Plan, Scope, ScopedService, names};
use crate::diag::{Code, Diagnostic};
use crate::model::{GatewayRef, Hostname, OutboundMode, Protocol, Service, VirtualService};
use crate::proxy::Interception;
use crate::xds::pb::route as proto;
use hosts::VirtualHosts;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The port on which hosts that are no services are served.
const HTTP_PORT: u16 = 80;

/// Emits the route configurations of a sidecar. The plan is empty for a router.
pub fn generate(plan: &Plan<'_>, output: &mut Output) {
    let scope = &plan.scope;
    let egress: Vec<EgressRoutes> =
        scope.world.egress.iter().map(|egress| EgressRoutes::new(scope, egress)).collect();
    let mut findings = Vec::new();
    for (name, wanted) in &plan.egress.routes {
        let configuration = match wanted.egress.and_then(|position| egress.get(position)) {
            None => route::empty(name),
            Some(egress) => {
                let (host_port, virtual_hosts) = match &wanted.content {
                    RouteContent::Port(port) => {
                        (HostPort::Ignored, egress.of_port(*port, &mut findings))
                    }
                    RouteContent::Service(service, port) => {
                        (HostPort::Ignored, vec![egress.of_service(service, *port, &mut findings)])
                    }
                    RouteContent::Everything => {
                        (HostPort::Compared, egress.of_everything(&mut findings))
                    }
                };
                route::configuration(name, host_port, virtual_hosts)
            }
        };
        output.emit(name, &configuration);
    }
    for finding in findings.into_iter().chain(allowed_in_vain(scope)) {
        output.report(finding);
    }
}

/// Without interception nothing tells where an unknown host was meant to go. The mesh's default
/// allows all the same, so only a Sidecar that says so itself is told.
fn allowed_in_vain(scope: &Scope<'_>) -> Option<Diagnostic> {
    let sidecar = scope.world.sidecar.as_ref()?;
    let policy = sidecar.outbound_traffic_policy.as_ref()?;
    let in_vain = policy.mode == OutboundMode::AllowAny
        && policy.egress_proxy.is_none()
        && scope.view.interception() == Interception::None;
    in_vain.then(|| {
        sidecar
            .origin
            .diagnostic(
                Code::NoEffect,
                "outboundTrafficPolicy ALLOW_ANY needs traffic interception, which the proxy does \
                 not have; requests to unknown hosts get 502",
            )
            .help("describe the hosts in ServiceEntries, or name an egressProxy")
    })
}

/// What one egress listener imports, so arranged that each route configuration looks only at what
/// concerns it.
struct EgressRoutes<'s, 'a> {
    scope: &'s Scope<'a>,
    services: &'s [ScopedService],
    rules: &'s [Arc<VirtualService>],
    /// Positions of services by port.
    by_port: HashMap<u16, Vec<usize>>,
    /// Positions of VirtualServices by host.
    rule_hosts: HostIndex,
}

/// Which VirtualService a service belongs to.
enum Claim<'i> {
    /// The first of these that has routes.
    Named(&'i [usize]),
    /// This one or none.
    Wildcard(usize),
    /// None.
    Unclaimed,
}

/// The ports of a route configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// One; the listener has no other.
    One(u16),
    /// All ports of all services.
    All,
}

impl Ports {
    fn listen_port(self) -> u16 {
        match self {
            Ports::One(port) => port,
            Ports::All => 0,
        }
    }

    fn has(self, port: u16) -> bool {
        match self {
            Ports::One(only) => only == port,
            Ports::All => true,
        }
    }

    fn form(self, port: u16) -> PortForm {
        match self {
            Ports::One(_) => PortForm::Ignored,
            Ports::All => PortForm::of_shared(port),
        }
    }

    /// Whether hosts that are no services are served without one beside them.
    fn serves_unknown_hosts(self) -> bool {
        self == Ports::One(HTTP_PORT)
    }
}

impl<'s, 'a> EgressRoutes<'s, 'a> {
    fn new(scope: &'s Scope<'a>, egress: &'s EgressScope) -> EgressRoutes<'s, 'a> {
        let mut by_port: HashMap<u16, Vec<usize>> = HashMap::new();
        for (position, scoped) in egress.services.iter().enumerate() {
            for port in scoped.ports() {
                by_port.entry(port.number).or_default().push(position);
            }
        }
        let rules = &egress.virtual_services;
        let hosts =
            rules.iter().enumerate().flat_map(|(i, rules)| rules.hosts.iter().map(move |h| (i, h)));
        EgressRoutes {
            scope,
            services: &egress.services,
            rules,
            by_port,
            rule_hosts: HostIndex::new(hosts),
        }
    }

    fn of_port(&self, port: u16, findings: &mut Vec<Diagnostic>) -> Vec<proto::VirtualHost> {
        let positions = self.by_port.get(&port).map_or(&[][..], Vec::as_slice);
        let members: Vec<&ScopedService> = positions.iter().map(|&i| &self.services[i]).collect();
        self.virtual_hosts(&members, Ports::One(port), findings)
    }

    fn of_everything(&self, findings: &mut Vec<Diagnostic>) -> Vec<proto::VirtualHost> {
        let members: Vec<&ScopedService> = self.services.iter().collect();
        self.virtual_hosts(&members, Ports::All, findings)
    }

    /// The only virtual host of a listener that has a service's own address: whatever host a client
    /// asks for there, the service is meant.
    fn of_service(
        &self,
        service: &Service,
        port: u16,
        findings: &mut Vec<Diagnostic>,
    ) -> proto::VirtualHost {
        let candidates = match self.claim(&service.hostname) {
            Claim::Named(list) => list.to_vec(),
            Claim::Wildcard(position) => vec![position],
            Claim::Unclaimed => Vec::new(),
        };
        let place = self.place(Ports::One(port), port);
        let routes = candidates
            .into_iter()
            .map(|i| route::routes(&place, &self.rules[i], &mut |finding| findings.push(finding)))
            .find(|routes| !routes.is_empty())
            .unwrap_or_else(|| vec![route::service_route(&place, service, port)]);
        let name = names::virtual_host(&service.hostname.to_lowercase(), port);
        route::virtual_host(name, vec!["*".to_owned()], routes)
    }

    fn virtual_hosts(
        &self,
        members: &[&ScopedService],
        ports: Ports,
        findings: &mut Vec<Diagnostic>,
    ) -> Vec<proto::VirtualHost> {
        let index =
            HostIndex::new(members.iter().enumerate().map(|(i, s)| (i, &s.service.hostname)));
        let mut hosts = VirtualHosts::new(known_names(members, ports));
        let mut claimed = vec![false; members.len()];
        let (candidates, by_wildcard) = self.candidates(members, ports);
        for position in candidates {
            let rules = &*self.rules[position];
            let owned = by_wildcard.get(&position).map_or(&[][..], Vec::as_slice);
            let (matched, unknown) = split_hosts(rules, &index, members, owned);
            let mut groups: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
            for &member in &matched {
                for port in http_ports(members[member], ports) {
                    groups.entry(port).or_default().push(member);
                }
            }
            if groups.is_empty() && ports.serves_unknown_hosts() && !unknown.is_empty() {
                groups.insert(HTTP_PORT, Vec::new());
            }
            for (port, group) in groups {
                let place = self.place(ports, port);
                let by_accident = group.is_empty()
                    && unknown.iter().all(|host| self.scope.world.find(host).is_some());
                let mut found = Vec::new();
                let routes = route::routes(&place, rules, &mut |finding| found.push(finding));
                if by_accident && routes.iter().all(|route| leads_nowhere(self.scope, route)) {
                    continue;
                }
                findings.append(&mut found);
                if routes.is_empty() {
                    continue;
                }
                for host in &unknown {
                    let domains = route::of_host(&host.to_lowercase(), ports.form(port));
                    hosts.add(host, port, domains, routes.clone());
                }
                for &member in &group {
                    claimed[member] = true;
                    let service = &*members[member].service;
                    let domains = self.service_domains(service, ports, port);
                    hosts.add(&service.hostname, port, domains, routes.clone());
                }
            }
        }
        let mut rest: Vec<usize> = (0..members.len()).filter(|&i| !claimed[i]).collect();
        rest.sort_by_key(|&i| &members[i].service.hostname);
        for member in rest {
            let service = &*members[member].service;
            for port in http_ports(members[member], ports) {
                let route = route::service_route(&self.place(ports, port), service, port);
                let domains = self.service_domains(service, ports, port);
                hosts.add(&service.hostname, port, domains, vec![route]);
            }
        }
        hosts.finish(route::catch_all(
            self.scope.world.outbound_policy(),
            self.scope.view.interception(),
        ))
    }

    /// The VirtualServices that may have a say about these services, in order of precedence, and
    /// the services that each has through a wildcard.
    fn candidates(
        &self,
        members: &[&ScopedService],
        ports: Ports,
    ) -> (BTreeSet<usize>, HashMap<usize, Vec<usize>>) {
        let mut candidates = BTreeSet::new();
        if ports.serves_unknown_hosts() {
            candidates.extend(0..self.rules.len());
        }
        let mut by_wildcard: HashMap<usize, Vec<usize>> = HashMap::new();
        for (member, scoped) in members.iter().enumerate() {
            match self.claim(&scoped.service.hostname) {
                Claim::Named(list) => candidates.extend(list),
                Claim::Wildcard(position) => {
                    candidates.insert(position);
                    by_wildcard.entry(position).or_default().push(member);
                }
                Claim::Unclaimed => {}
            }
        }
        (candidates, by_wildcard)
    }

    fn claim(&self, host: &Hostname) -> Claim<'_> {
        if !host.is_wildcard() {
            let named = self.rule_hosts.exact(host);
            if !named.is_empty() {
                return Claim::Named(named);
            }
        }
        match self.rule_hosts.longest_wildcard(host).first() {
            Some(&position) => Claim::Wildcard(position),
            None => Claim::Unclaimed,
        }
    }

    fn service_domains(&self, service: &Service, ports: Ports, port: u16) -> Vec<route::Domain> {
        route::of_service(service, self.scope.view, ports.form(port))
    }

    fn place(&self, ports: Ports, port: u16) -> Place<'_> {
        Place {
            scope: self.scope,
            gateway: GatewayRef::Mesh,
            listen_port: ports.listen_port(),
            scheme: Scheme::Http,
            registry: match ports {
                Ports::One(_) => Registry::ListenPort,
                Ports::All => Registry::OnlyPortOr(port),
            },
        }
    }
}

/// The names that really are services: none of them may be taken as short form of another.
fn known_names(members: &[&ScopedService], ports: Ports) -> Vec<route::Domain> {
    let mut known = Vec::new();
    for scoped in members {
        let host = scoped.service.hostname.to_lowercase();
        for port in http_ports(scoped, ports) {
            known.extend(route::of_host(&host, ports.form(port)));
        }
    }
    known
}

/// The ports of a service that a connection manager can serve.
fn http_ports(scoped: &ScopedService, ports: Ports) -> Vec<u16> {
    scoped
        .ports()
        .filter(|p| p.protocol.is_http() || p.protocol == Protocol::Auto)
        .map(|p| p.number)
        .filter(|&number| ports.has(number))
        .collect()
}

/// Whether a route only names clusters that the proxy does not have. The usual VirtualService of a
/// service that has no port 80 has only such routes there: nobody asks for it on that port, so it
/// is neither served nor reported.
fn leads_nowhere(scope: &Scope<'_>, route: &proto::Route) -> bool {
    use proto::route_action::ClusterSpecifier;
    let missing = |cluster: &str| {
        names::parse_cluster(cluster).is_some_and(|(_, port, _, host)| {
            scope.world.find(host).is_none_or(|s| s.port(port).is_none())
        })
    };
    let Some(proto::route::Action::Route(action)) = &route.action else { return false };
    match &action.cluster_specifier {
        Some(ClusterSpecifier::Cluster(name)) => missing(name),
        Some(ClusterSpecifier::WeightedClusters(split)) => {
            split.clusters.iter().all(|cluster| missing(&cluster.name))
        }
        _ => false,
    }
}

/// The services that the hosts of a VirtualService mean, and the hosts that mean none.
fn split_hosts<'r>(
    rules: &'r VirtualService,
    index: &HostIndex,
    members: &[&ScopedService],
    owned: &[usize],
) -> (Vec<usize>, Vec<&'r Hostname>) {
    let mut matched = Vec::new();
    let mut unknown = Vec::new();
    for host in &rules.hosts {
        if host.is_wildcard() {
            if index.overlaps(host) {
                let host = host.to_lowercase();
                let covered = |&member: &usize| {
                    members[member].service.hostname.to_lowercase().is_subset_of(&host)
                };
                matched.extend(owned.iter().copied().filter(covered));
            } else {
                unknown.push(host);
            }
        } else {
            match index.exact(host) {
                [] => unknown.push(host),
                found => matched.extend(found),
            }
        }
    }
    (matched, unknown)
}

#[cfg(test)]
mod tests;
