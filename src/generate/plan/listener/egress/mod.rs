//! Which listeners a sidecar has for what its workload sends.
//!
//! [`plan`] goes through the egress listeners and the services that they import, gives every
//! service port its address, and settles who shares a listener with whom. What is left is completed
//! in `finish`. The route configurations that the connection managers name come from the same
//! decision: [`EgressPlan::routes`].

mod conflict;
mod finish;
mod l4;
#[cfg(test)]
mod tests;

use super::{Builder, ChainMatch, Does, Draft, Listener};
use crate::diag::{Code, Diagnostic};
use crate::generate::filters::{Extra, Ground, Side};
use crate::generate::plan::Because;
use crate::generate::targets::TakenAddresses;
use crate::generate::{EgressScope, Scope, ScopedService, names};
use crate::model::{
    Address, CaptureMode, EgressListener, Protocol, Resolution, Service, ServicePort,
};
use crate::proxy::{Interception, Role};
use conflict::{Entry, Table};
use finish::Finish;
use ipnet::IpNet;
use l4::L4Rules;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The egress listeners of one sidecar.
#[derive(Debug, Default)]
pub struct EgressPlan {
    /// Listeners: that of redirected connections, then the others by address and port.
    pub listeners: Vec<Arc<Listener>>,
    /// The route configurations that they name.
    pub routes: BTreeMap<String, EgressRoute>,
    /// The addresses that they have: Envoy refuses a second listener there, whether or not they
    /// bind.
    pub taken: TakenAddresses,
    /// What their filters need.
    pub extra: Extra,
    /// What could not be served, and why.
    pub findings: Vec<Diagnostic>,
}

/// A route configuration that some listener names.
#[derive(Debug, Clone)]
pub struct EgressRoute {
    /// Position in [`World::egress`](crate::generate::World) of the listener whose services and
    /// VirtualServices it serves; `None` when the proxy has no listener that fits (the configuration
    /// is then empty).
    pub egress: Option<usize>,
    /// Which of them.
    pub content: RouteContent,
}

/// Which virtual hosts a route configuration has.
#[derive(Debug, Clone)]
pub enum RouteContent {
    /// Those of every service with this port.
    Port(u16),
    /// That of one service alone: its listener has the service's own address.
    Service(Arc<Service>, u16),
    /// Those of every service and port, told apart by `host:port`: forward proxies and sockets.
    Everything,
}

/// Plans the egress listeners of a sidecar. A router has none.
pub fn plan(scope: &Scope<'_>) -> EgressPlan {
    match scope.view.role() {
        Role::Router => return EgressPlan::default(),
        Role::Sidecar => {}
    }
    let Planner { builder, table, routes, findings, reserved, .. } = agree(scope);
    let shares = table.into_shares();
    let wildcard = || scope.view.ip_mode().wildcard().to_owned();
    let mut taken: TakenAddresses = shares.iter().map(|s| (s.bind.clone(), s.port)).collect();
    taken.extend(reserved.into_iter().map(|port| (wildcard(), port)));
    let mut finish = Finish::new(scope, builder);
    let mut listeners = Vec::with_capacity(shares.len() + 1);
    listeners.extend(finish.capture().map(Arc::new));
    listeners.extend(shares.into_iter().map(|share| Arc::new(finish.listener(share))));
    EgressPlan { listeners, routes, taken, extra: finish.into_extra(), findings }
}

/// Settles who shares a listener with whom.
fn agree<'s, 'a>(scope: &'s Scope<'a>) -> Planner<'s, 'a> {
    let mesh = scope.mesh();
    let capture_ports = [mesh.proxy_listen_port, mesh.proxy_inbound_listen_port];
    let reserved = match scope.view.interception() {
        Interception::Redirect | Interception::Tproxy => BTreeSet::from(capture_ports),
        Interception::None => BTreeSet::new(),
    };
    let mut planner = Planner {
        scope,
        builder: Builder::new(Ground::Shared(*scope), Side::Egress),
        table: Table::default(),
        routes: BTreeMap::new(),
        findings: Vec::new(),
        reserved,
    };
    planner.forward_proxy();
    for (position, egress) in scope.world.egress.iter().enumerate() {
        planner.egress(position, egress);
    }
    planner
}

/// An address and port with the chains that share it.
struct Share {
    /// Address, or `unix://` and a path.
    bind: String,
    /// Port, 0 for a socket.
    port: u16,
    /// Whether it binds; otherwise the capture listener hands connections over.
    binds: bool,
    /// Its chains, in order; their matches are distinct. Never empty.
    chains: Vec<Draft>,
    /// Why it is there.
    because: Because,
}

struct Planner<'s, 'a> {
    scope: &'s Scope<'a>,
    builder: Builder<'a>,
    table: Table<'a>,
    routes: BTreeMap<String, EgressRoute>,
    findings: Vec<Diagnostic>,
    /// Ports of the capture listeners, which have the wildcard address.
    reserved: BTreeSet<u16>,
}

/// One service port that wants to be on a listener.
#[derive(Clone)]
struct Request<'a> {
    scoped: &'a ScopedService,
    /// The port as the service has it, where findings point.
    declared: Option<&'a ServicePort>,
    /// What the listener speaks: the egress listener's protocol, else the port's own.
    protocol: Protocol,
    /// The listener's port, 0 for a socket.
    port: u16,
    binds: bool,
    egress: usize,
}

impl<'a> Request<'a> {
    fn service(&self) -> &'a Service {
        &self.scoped.service
    }

    /// The port of the service that traffic goes to: a service with one port leaves no doubt.
    fn target_port(&self) -> u16 {
        let mut ports = self.scoped.service.stream_ports();
        match (ports.next(), ports.next()) {
            (Some(only), None) => only.number,
            _ => self.port,
        }
    }

    fn owner(&self) -> Owner<'a> {
        Owner { service: Some(self.service()), port: self.declared, protocol: self.protocol }
    }

    fn because(&self) -> Because {
        let service = self.service();
        let span = self.declared.map_or(&service.origin.span, |port| &port.span);
        Because::of("a service port", &service.origin, span)
    }
}

/// Who has a listener or a part of it, for findings.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Owner<'a> {
    /// `None` for the forward proxy.
    service: Option<&'a Service>,
    port: Option<&'a ServicePort>,
    protocol: Protocol,
}

impl Owner<'_> {
    fn label(&self) -> String {
        let port = self.port.map_or(String::new(), |p| format!(" port {}", p.number));
        match self.service {
            Some(service) => format!("{}{port} of {}", service.hostname, service.origin.name),
            None => "the HTTP forward proxy".to_owned(),
        }
    }
}

/// The address that a service port asks for.
struct Spot {
    bind: String,
    /// Networks that tell the service apart on a shared address.
    networks: Vec<IpNet>,
    /// Whether the address is this service's alone.
    own: bool,
}

impl<'a> Planner<'_, 'a> {
    /// The HTTP forward proxy listener. It comes first, so that a service on its port is told.
    fn forward_proxy(&mut self) {
        let mesh = self.scope.mesh().proxy_http_port;
        let port = self.scope.view.options().http_proxy_port.unwrap_or(mesh);
        if port == 0 {
            return;
        }
        let route = names::HTTP_PROXY_ROUTE.to_owned();
        let egress = self.scope.world.egress.iter().position(|e| port_of(e.listener()).is_none());
        let content = RouteContent::Everything;
        self.routes.insert(route.clone(), EgressRoute { egress, content });
        let owner = Owner { service: None, port: None, protocol: Protocol::HttpProxy };
        let localhost = self.scope.view.ip_mode().localhost().to_owned();
        let does = Does::http(stat_prefix(&localhost, port), Protocol::HttpProxy, route);
        let because = Because::always("the HTTP forward proxy of the mesh");
        let chain = Draft::new(ChainMatch::default(), does, because.clone());
        self.table.insert(localhost, port, Entry::locked(owner, chain, because));
    }

    fn egress(&mut self, position: usize, egress: &'a EgressScope) {
        let listener = egress.listener();
        let bind = listener.and_then(|l| l.bind.as_deref());
        let socket = bind.is_some_and(|b| b.starts_with("unix://"));
        let binds = socket
            || self.scope.view.interception() == Interception::None
            || listener.is_some_and(|l| l.capture_mode == CaptureMode::None);
        let rules = L4Rules::new(&egress.virtual_services);
        for scoped in &egress.services {
            match port_of(listener) {
                Some(port) => {
                    let request = Request {
                        scoped,
                        declared: scoped.port(port.number).or_else(|| scoped.ports().next()),
                        protocol: port.protocol,
                        port: if socket { 0 } else { port.number },
                        binds,
                        egress: position,
                    };
                    self.place(&request, bind, &rules);
                }
                None => {
                    for port in scoped.ports() {
                        let request = Request {
                            scoped,
                            declared: Some(port),
                            protocol: port.protocol,
                            port: port.number,
                            binds,
                            egress: position,
                        };
                        self.place(&request, bind, &rules);
                    }
                }
            }
        }
    }

    /// Finds the addresses of a service port and adds it there.
    fn place(&mut self, request: &Request<'a>, bind: Option<&str>, rules: &L4Rules<'a>) {
        if request.protocol == Protocol::Udp {
            return;
        }
        if request.binds
            && self.scope.view.options().unprivileged
            && (1..1024).contains(&request.port)
        {
            let port = request.port;
            self.finding(request, Code::PrivilegedPort, |label| {
                format!("{label} gets no listener: the proxy may not bind port {port}")
            });
            return;
        }
        for spot in self.spots(request, bind) {
            if spot.bind == self.scope.view.ip_mode().wildcard()
                && self.reserved.contains(&request.port)
            {
                let port = request.port;
                self.finding(request, Code::ListenerConflict, |label| {
                    format!("{label} gets no listener: port {port} is that of a capture listener")
                });
                continue;
            }
            self.add(request, &spot, rules);
        }
    }

    fn spots(&self, request: &Request<'a>, bind: Option<&str>) -> Vec<Spot> {
        let shared = |bind: &str| Spot { bind: bind.to_owned(), networks: Vec::new(), own: false };
        let wildcard = self.scope.view.ip_mode().wildcard();
        if let Some(bind) = bind {
            return vec![shared(bind)];
        }
        if request.binds {
            return vec![shared(self.scope.view.ip_mode().localhost())];
        }
        if request.protocol.is_http() {
            return vec![shared(wildcard)];
        }
        let service = request.service();
        if service.addresses.is_empty() {
            return self.headless(request).unwrap_or_else(|| vec![shared(wildcard)]);
        }
        let networks = |addresses: &[Address]| -> Vec<IpNet> {
            addresses.iter().map(|&a| network(a)).collect()
        };
        // As in Istio, a network in the first place makes all addresses networks.
        if let [Address::Cidr(_), ..] = service.addresses[..] {
            let networks = networks(&service.addresses);
            return vec![Spot { bind: wildcard.to_owned(), networks, own: false }];
        }
        let mut spots = Vec::new();
        let mut cidrs = Vec::new();
        for address in &service.addresses {
            match address {
                Address::Ip(ip) if ip.is_unspecified() => spots.push(shared(wildcard)),
                Address::Ip(ip) => {
                    spots.push(Spot { bind: ip.to_string(), networks: Vec::new(), own: true });
                }
                Address::Cidr(cidr) => cidrs.push(*cidr),
            }
        }
        if !cidrs.is_empty() {
            spots.push(Spot { bind: wildcard.to_owned(), networks: cidrs, own: false });
        }
        spots
    }

    /// A service without an address whose clients dial its endpoints gets a listener for each.
    /// (Istio leaves out the proxy's own address; what we share between proxies cannot know it, and
    /// a connection to oneself through the proxy works.)
    fn headless(&self, request: &Request<'a>) -> Option<Vec<Spot>> {
        let service = request.service();
        if service.resolution != Resolution::None {
            return None;
        }
        let number = request.declared.map_or(request.port, |p| p.number);
        let addresses: BTreeSet<_> = service
            .endpoints
            .iter()
            .filter(|e| e.port_number == number)
            .filter_map(crate::model::Endpoint::ip)
            .collect();
        if addresses.is_empty() && service.endpoints.is_empty() {
            return None;
        }
        let own =
            |ip: std::net::IpAddr| Spot { bind: ip.to_string(), networks: Vec::new(), own: true };
        Some(addresses.into_iter().map(own).collect())
    }

    fn add(&mut self, request: &Request<'a>, spot: &Spot, rules: &L4Rules<'a>) {
        let route = self.route_name(request, spot);
        let http = |matches| {
            let stat_prefix = stat_prefix(&spot.bind, request.port);
            let does = Does::http(stat_prefix, request.protocol, route.clone());
            Draft::new(matches, does, request.because())
        };
        let l4 = || rules.chains(self.scope, &self.builder.defaults, request, spot);
        let plain_http = || ChainMatch::plain_http(self.builder.defaults.plain_http());
        let wildcard = spot.bind == self.scope.view.ip_mode().wildcard();
        let owner = request.owner();
        let because = request.because();
        let mut entry = match request.protocol {
            protocol if protocol.is_http() => match protocol {
                // What is not HTTP falls through to its original destination, which a listener that
                // binds does not have.
                Protocol::HttpProxy => Entry::http(owner, http(ChainMatch::default()), because),
                _ if wildcard && !request.binds => {
                    Entry::sniffed(owner, vec![http(plain_http())], because)
                }
                _ => Entry::http(owner, http(ChainMatch::default()), because),
            },
            Protocol::Auto => {
                let mut chains = l4();
                chains.push(http(plain_http()));
                Entry::sniffed(owner, chains, because)
            }
            _ => Entry::tcp(owner, l4(), because),
        };
        entry.egress = Some(request.egress);
        entry.binds = request.binds;
        let outcome = self.table.add(spot.bind.clone(), request.port, entry);
        if outcome.has_http {
            let content = match request.protocol {
                Protocol::HttpProxy => RouteContent::Everything,
                _ if request.port == 0 => RouteContent::Everything,
                Protocol::Auto if spot.own => {
                    RouteContent::Service(request.scoped.service.clone(), request.port)
                }
                _ => RouteContent::Port(request.port),
            };
            let egress = Some(request.egress);
            self.routes.entry(route).or_insert(EgressRoute { egress, content });
        }
        if let Some(conflict) = outcome.conflict {
            self.conflict(request, &spot.bind, &conflict);
        }
    }

    fn route_name(&self, request: &Request<'a>, spot: &Spot) -> String {
        if request.port == 0 {
            return spot.bind.clone();
        }
        match request.protocol {
            // The listener is this service's alone, so its routes are too.
            Protocol::Auto if spot.own => {
                format!("{}:{}", request.service().hostname, request.port)
            }
            _ => request.port.to_string(),
        }
    }

    fn conflict(&mut self, request: &Request<'a>, bind: &str, conflict: &conflict::Conflict<'a>) {
        let address = names::listener(bind, request.port);
        let other = conflict.with;
        let what = &conflict.what;
        let message = format!(
            "{} is not reachable through {address}{what}: {} has it already",
            request.owner().label(),
            other.label()
        );
        let service = request.service();
        let span = request.declared.map_or(&service.origin.span, |p| &p.span);
        let mut finding = service
            .origin
            .diagnostic_at(span, Code::ListenerConflict, message)
            .help("give the services addresses or ports of their own, or separate them by SNI");
        if let Some(span) = other.port.map(|p| &p.span) {
            finding = finding.related(span.clone(), "the port that is served");
        }
        self.findings.push(finding);
    }

    fn finding(&mut self, request: &Request<'a>, code: Code, message: impl FnOnce(&str) -> String) {
        let service = request.service();
        let span = request.declared.map_or(&service.origin.span, |p| &p.span);
        let message = message(&request.owner().label());
        self.findings.push(service.origin.diagnostic_at(span, code, message));
    }
}

/// Prefix of the statistics of a connection manager on this listener.
fn stat_prefix(bind: &str, port: u16) -> String {
    format!("outbound_{};", names::listener(bind, port))
}

/// The port of an egress listener that has one.
fn port_of(listener: Option<&EgressListener>) -> Option<&crate::model::ListenerPort> {
    listener.and_then(|l| l.port.as_ref())
}

fn network(address: Address) -> IpNet {
    match address {
        Address::Ip(ip) => IpNet::from(ip),
        Address::Cidr(cidr) => cidr,
    }
}
