//! The route tables of sidecars: for each that an outbound listener names, the virtual hosts of the
//! services behind it.
//!
//! A service belongs to the first VirtualService that names it, else to the one with the longest
//! wildcard that covers it; rules of several are not merged (on gateways they are). Hosts that only
//! a VirtualService knows are served on port 80, and beside a service of the same document.

mod hosts;
mod index;

use super::domains::{PortForm, ShortForm};
use super::host::{HostInput, Names, Routes};
use super::rules::{RouteList, RulesInput, Served};
use super::target::Registry;
use super::{HostPort, Parts, RouteTable, Scheme, TableInput, VirtualHost};
use crate::diag::{Code, Diagnostic};
use crate::generate::filters::Extra;
use crate::generate::memo::Same;
use crate::generate::plan::Because;
use crate::generate::plan::listener::egress::{EgressPlan, RouteContent};
use crate::generate::{EgressScope, Scope, ScopedService, names};
use crate::model::{Attachment, Hostname, OutboundMode, VirtualService};
use crate::proxy::Interception;
use hosts::Hosts;
pub use index::EgressIndex;
use index::{Claim, http_ports};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The port on which hosts that are no services are served.
const HTTP_PORT: u16 = 80;

/// The tables that outbound listeners name, and what is to be said about them.
pub(super) fn tables(
    scope: &Scope<'_>,
    parts: &dyn Parts,
    plan: &EgressPlan,
) -> (Vec<Arc<RouteTable>>, Extra) {
    let egress = |egress| EgressRoutes::new(scope, parts, egress);
    let egress: Vec<EgressRoutes<'_, '_>> = scope.world.egress.iter().map(egress).collect();
    let mut extra = Extra::default();
    let mut tables = Vec::new();
    for (name, wanted) in &plan.routes {
        let (host_port, hosts, because) = match wanted.egress.and_then(|i| egress.get(i)) {
            None => (HostPort::NoHosts, Vec::new(), Because::always("a listener without services")),
            Some(egress) => match &wanted.content {
                RouteContent::Port(port) => (
                    HostPort::Ignored,
                    egress.hosts(Ports::One(*port), &mut extra),
                    Because::always("the services with this port"),
                ),
                RouteContent::Service(service, port) => (
                    HostPort::Ignored,
                    egress.only_service(&service.hostname, *port, &mut extra),
                    Because::of(
                        "a service with an address of its own",
                        &service.origin,
                        service.port(*port).map_or(&service.origin.span, |port| &port.span),
                    ),
                ),
                RouteContent::Everything => (
                    HostPort::Compared,
                    egress.hosts(Ports::All, &mut extra),
                    Because::always("a listener that serves every port"),
                ),
            },
        };
        let input = TableInput { name: name.as_str().into(), host_port, hosts };
        tables.push(parts.table(input, because, scope.view));
    }
    extra.findings.extend(allowed_in_vain(scope));
    (tables, extra)
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

/// The virtual host of requests to unknown hosts. Without interception there is no original
/// destination to go on to (Envoy's ORIGINAL_DST clusters answer 503), so there only an egress
/// proxy can take them.
fn others(scope: &Scope<'_>) -> HostInput {
    let policy = scope.world.outbound_policy();
    let cluster = match (policy.mode, &policy.egress_proxy) {
        (OutboundMode::AllowAny, Some(to)) => {
            let port = to.port.unwrap_or_default();
            Some(names::outbound_cluster(port, &to.subset, &to.host))
        }
        (OutboundMode::AllowAny, None) => match scope.view.interception() {
            Interception::Redirect | Interception::Tproxy => Some(names::PASSTHROUGH.to_owned()),
            Interception::None => None,
        },
        (OutboundMode::RegistryOnly, _) => None,
    };
    let name = if cluster.is_some() { "allow_any" } else { "block_all" };
    let sidecar = scope.world.sidecar.as_ref();
    let sidecar = sidecar.filter(|sidecar| sidecar.outbound_traffic_policy.is_some());
    let sidecar = sidecar.cloned().map(Same);
    HostInput::new(Names::Others { name }, Routes::Unknown { cluster, sidecar })
}

/// The ports of a route table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// One; the listener has no other.
    One(u16),
    /// All ports of all services.
    All,
}

impl Ports {
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

/// What one egress listener imports, with somebody who looks at it.
struct EgressRoutes<'s, 'a> {
    scope: &'s Scope<'a>,
    parts: &'s dyn Parts,
    services: &'s [ScopedService],
    rules: &'s [Arc<VirtualService>],
    index: Arc<EgressIndex>,
}

impl<'s, 'a> EgressRoutes<'s, 'a> {
    fn new(
        scope: &'s Scope<'a>,
        parts: &'s dyn Parts,
        egress: &'s Arc<EgressScope>,
    ) -> EgressRoutes<'s, 'a> {
        EgressRoutes {
            scope,
            parts,
            services: &egress.services,
            rules: &egress.virtual_services,
            index: parts.index(egress, scope.view),
        }
    }

    /// The only virtual host of a listener that has a service's own address: whatever host a client
    /// asks for there, the service is meant.
    fn only_service(&self, host: &str, port: u16, extra: &mut Extra) -> Vec<Same<VirtualHost>> {
        let position =
            self.index.named(host).iter().find(|&&i| *self.services[i].service.hostname == *host);
        let Some(&position) = position else { return Vec::new() };
        let candidates = match self.index.claim(position) {
            Claim::Named(list) => list.as_slice(),
            Claim::Wildcard(position) => std::slice::from_ref(position),
            Claim::Unclaimed => &[],
        };
        let mut list = None;
        for &candidate in candidates {
            let routes = self.routes(Ports::One(port), port, candidate);
            extra.append(&routes.extra);
            if !routes.routes.is_empty() {
                list = Some(routes);
                break;
            }
        }
        let scoped = &self.services[position];
        let routes = match list {
            Some(list) => Routes::Lists(vec![Same(list)]),
            None => self.service_routes(scoped),
        };
        let names = Names::OnlyService { service: Same(scoped.service.clone()), port };
        vec![Same(self.parts.host(&HostInput::new(names, routes), self.scope.view))]
    }

    fn hosts(&self, ports: Ports, extra: &mut Extra) -> Vec<Same<VirtualHost>> {
        let all: Vec<usize>;
        let members: &[usize] = match ports {
            Ports::One(port) => self.index.of_port(port),
            Ports::All => {
                all = (0..self.services.len()).collect();
                &all
            }
        };
        let mut hosts = Hosts::new(self.parts, self.scope.view);
        let mut claimed = vec![false; self.services.len()];
        let (candidates, by_wildcard) = self.candidates(members, ports);
        for position in candidates {
            let owned = by_wildcard.get(&position).map_or(&[][..], Vec::as_slice);
            let (matched, unknown) = self.split_hosts(&self.rules[position], ports, owned);
            let mut groups: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
            for &member in &matched {
                for port in http_ports(&self.services[member]).filter(|&port| ports.has(port)) {
                    groups.entry(port).or_default().push(member);
                }
            }
            if groups.is_empty() && ports.serves_unknown_hosts() && !unknown.is_empty() {
                groups.insert(HTTP_PORT, Vec::new());
            }
            for (port, group) in groups {
                let list = self.routes(ports, port, position);
                // The usual VirtualService of a service that has no port 80: nobody asks for it on
                // that port, so it is neither served nor reported.
                let by_accident = group.is_empty()
                    && list.routes.iter().all(|route| route.leads_nowhere)
                    && unknown.iter().all(|host| self.scope.world.find(host).is_some());
                if by_accident {
                    continue;
                }
                extra.append(&list.extra);
                if list.routes.is_empty() {
                    continue;
                }
                let routes = Routes::Lists(vec![Same(list)]);
                let is_service = |host: &str| self.is_service(host, port, ports);
                for &host in &unknown {
                    let form = ports.form(port);
                    let names = Names::Host { host: host.to_lowercase(), port, form };
                    hosts.add(HostInput::new(names, routes.clone()), is_service);
                }
                for &member in &group {
                    claimed[member] = true;
                    let names = self.names(&self.services[member], ports, port);
                    hosts.add(HostInput::new(names, routes.clone()), is_service);
                }
            }
        }
        let mut rest: Vec<usize> = members.iter().copied().filter(|&i| !claimed[i]).collect();
        rest.sort_unstable_by_key(|&i| self.index.rank(i));
        for member in rest {
            let scoped = &self.services[member];
            for port in http_ports(scoped).filter(|&port| ports.has(port)) {
                let names = self.names(scoped, ports, port);
                let input = HostInput::new(names, self.service_routes(scoped));
                hosts.add(input, |host| self.is_service(host, port, ports));
            }
        }
        hosts.finish(others(self.scope))
    }

    fn names(&self, scoped: &ScopedService, ports: Ports, port: u16) -> Names {
        Names::Service {
            service: Same(scoped.service.clone()),
            port,
            short: ShortForm::of(&scoped.service.hostname, self.scope.view),
            form: ports.form(port),
        }
    }

    fn service_routes(&self, scoped: &ScopedService) -> Routes {
        Routes::Service {
            rule: self.scope.destination_rule(&scoped.service).cloned().map(Same),
            mesh: Same(self.scope.world.routing.mesh.clone()),
        }
    }

    /// The routes of a VirtualService on a port.
    fn routes(&self, ports: Ports, port: u16, rules: usize) -> Arc<RouteList> {
        let rules = &self.rules[rules];
        let (listen_port, registry) = match ports {
            Ports::One(port) => (port, Registry::ListenPort),
            Ports::All => (0, Registry::OnlyPortOr(port)),
        };
        let (attachment, scheme) = (Attachment::Mesh, Scheme::Http);
        let served = Served { attachment, listen_port, scheme, registry };
        self.parts.routes(RulesInput::new(self.scope, rules, served), self.scope.view)
    }

    /// The VirtualServices that may have a say about these services, in order of precedence, and
    /// the services that each has through a wildcard.
    fn candidates(
        &self,
        members: &[usize],
        ports: Ports,
    ) -> (BTreeSet<usize>, HashMap<usize, Vec<usize>>) {
        let mut candidates = BTreeSet::new();
        if ports.serves_unknown_hosts() {
            candidates.extend(0..self.rules.len());
        }
        let mut by_wildcard: HashMap<usize, Vec<usize>> = HashMap::new();
        for &member in members {
            match self.index.claim(member) {
                Claim::Named(list) => candidates.extend(list),
                Claim::Wildcard(position) => {
                    candidates.insert(*position);
                    by_wildcard.entry(*position).or_default().push(member);
                }
                Claim::Unclaimed => {}
            }
        }
        (candidates, by_wildcard)
    }

    /// The services that the hosts of a VirtualService mean, and the hosts that mean none.
    fn split_hosts<'r>(
        &self,
        rules: &'r VirtualService,
        ports: Ports,
        owned: &[usize],
    ) -> (Vec<usize>, Vec<&'r Hostname>) {
        let is_member = |member: usize| match ports {
            Ports::One(port) => self.services[member].port(port).is_some(),
            Ports::All => true,
        };
        let mut matched = Vec::new();
        let mut unknown = Vec::new();
        for host in &rules.hosts {
            if host.is_wildcard() {
                if self.index.overlaps(host, is_member) {
                    let host = host.to_lowercase();
                    let covered = |&member: &usize| {
                        let service = self.services[member].service.hostname.to_lowercase();
                        service.is_subset_of(&host)
                    };
                    matched.extend(owned.iter().copied().filter(covered));
                } else {
                    unknown.push(host);
                }
            } else {
                let named = self.index.named(host).iter().copied();
                let before = matched.len();
                matched.extend(named.filter(|&member| is_member(member)));
                if matched.len() == before {
                    unknown.push(host);
                }
            }
        }
        (matched, unknown)
    }

    /// Whether a service that is served on this port really has this name.
    fn is_service(&self, host: &str, port: u16, ports: Ports) -> bool {
        let serves = |&i: &usize| http_ports(&self.services[i]).any(|number| number == port);
        ports.has(port) && self.index.named(host).iter().any(serves)
    }
}
