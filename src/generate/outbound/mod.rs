//! Which outbound listeners a sidecar has, decided before anything is written in Envoy's terms.
//!
//! [`plan`] goes through the egress listeners and the services that they import, gives every
//! service port its address, and settles who shares a listener with whom. The listeners are then
//! written by `listener::outbound`, and the route configurations that their HTTP connection
//! managers name are made by the route generator from [`OutboundPlan::routes`]: one decision for
//! both.

mod conflict;
mod l4;
#[cfg(test)]
mod tests;

use super::listener::matches::{ChainMatch, PLAIN_HTTP, PLAIN_HTTP_WITH_1_0};
use super::listener::tcp::TcpRoute;
use super::targets::TakenAddresses;
use super::{EgressScope, Scope, ScopedService, names};
use crate::diag::{Code, Diagnostic};
use crate::model::{
    Address, CaptureMode, EgressListener, Protocol, Resolution, Service, ServicePort,
};
use crate::proxy::{Interception, Role};
use conflict::{Entry, Table};
use ipnet::IpNet;
use l4::L4Rules;
use std::collections::{BTreeMap, BTreeSet};

/// The outbound listeners of one sidecar.
#[derive(Debug, Default)]
pub struct OutboundPlan<'a> {
    /// Listeners by address and port, without the capture listener. None is empty.
    pub listeners: Vec<PlannedListener<'a>>,
    /// The route configurations that they name.
    pub routes: BTreeMap<String, OutboundRoute<'a>>,
    /// What could not be served, and why. The listener generator reports it.
    pub findings: Vec<Diagnostic>,
}

/// One listener.
#[derive(Debug)]
pub struct PlannedListener<'a> {
    /// Address, or `unix://` and a path.
    pub bind: String,
    /// Port, 0 for a socket.
    pub port: u16,
    /// Whether it binds; otherwise the capture listener hands connections over.
    pub binds: bool,
    /// What its chains are, in order; their matches are distinct.
    pub chains: Vec<PlannedChain<'a>>,
}

/// One filter chain.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedChain<'a> {
    /// Which connections it takes.
    pub matches: ChainMatch,
    /// What it does with them.
    pub action: ChainAction<'a>,
}

/// What a filter chain does.
#[derive(Debug, Clone, PartialEq)]
pub enum ChainAction<'a> {
    /// An HTTP connection manager.
    Http {
        /// The name of its route configuration.
        route: String,
        /// What the port is declared to speak.
        protocol: Protocol,
    },
    /// A TCP proxy.
    Tcp(TcpRoute<'a>),
}

/// A route configuration that some listener names.
#[derive(Debug, Clone, Copy)]
pub struct OutboundRoute<'a> {
    /// Position in [`Scope::egress`] of the listener whose services and VirtualServices it serves;
    /// `None` when the proxy has no listener that fits (the configuration is then empty).
    pub egress: Option<usize>,
    /// Which of them.
    pub content: RouteContent<'a>,
}

/// Which virtual hosts a route configuration has.
#[derive(Debug, Clone, Copy)]
pub enum RouteContent<'a> {
    /// Those of every service with this port.
    Port(u16),
    /// That of one service alone: its listener has the service's own address.
    Service(&'a Service, u16),
    /// Those of every service and port, told apart by `host:port`: forward proxies and sockets.
    Everything,
}

impl OutboundPlan<'_> {
    /// The addresses that outbound listeners have: Envoy refuses a second listener there, whether
    /// or not they bind.
    pub fn addresses(&self, scope: &Scope<'_>) -> TakenAddresses {
        let mut taken: TakenAddresses =
            self.listeners.iter().map(|l| (l.bind.clone(), l.port)).collect();
        if scope.view.role() == Role::Sidecar && scope.view.interception() != Interception::None {
            let wildcard = || scope.view.ip_mode().wildcard().to_owned();
            taken.insert((wildcard(), scope.mesh().proxy_listen_port));
            taken.insert((wildcard(), scope.mesh().proxy_inbound_listen_port));
        }
        taken
    }
}

/// Plans the outbound listeners of a sidecar. A router has none.
pub fn plan<'a>(scope: &Scope<'a>) -> OutboundPlan<'a> {
    if scope.view.role() == Role::Router {
        return OutboundPlan::default();
    }
    let mut planner = Planner {
        scope,
        table: Table::default(),
        routes: BTreeMap::new(),
        findings: Vec::new(),
        plain_http: match scope.view.options().http10 {
            true => PLAIN_HTTP_WITH_1_0,
            false => PLAIN_HTTP,
        },
        reserved: match scope.view.interception() {
            Interception::Redirect | Interception::Tproxy => {
                let mesh = &scope.mesh();
                BTreeSet::from([mesh.proxy_listen_port, mesh.proxy_inbound_listen_port])
            }
            Interception::None => BTreeSet::new(),
        },
    };
    planner.forward_proxy();
    for (position, egress) in scope.world.egress.iter().enumerate() {
        planner.egress(position, egress);
    }
    OutboundPlan {
        listeners: planner.table.into_listeners(),
        routes: planner.routes,
        findings: planner.findings,
    }
}

struct Planner<'s, 'a> {
    scope: &'s Scope<'a>,
    table: Table<'a>,
    routes: BTreeMap<String, OutboundRoute<'a>>,
    findings: Vec<Diagnostic>,
    plain_http: &'static [&'static str],
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
struct Place {
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
        self.routes.insert(route.clone(), OutboundRoute { egress, content });
        let owner = Owner { service: None, port: None, protocol: Protocol::HttpProxy };
        let chain = PlannedChain {
            matches: ChainMatch::default(),
            action: ChainAction::Http { route, protocol: Protocol::HttpProxy },
        };
        let localhost = self.scope.view.ip_mode().localhost().to_owned();
        self.table.insert(localhost, port, Entry::locked(owner, chain));
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
        for place in self.places(request, bind) {
            if place.bind == self.scope.view.ip_mode().wildcard()
                && self.reserved.contains(&request.port)
            {
                let port = request.port;
                self.finding(request, Code::ListenerConflict, |label| {
                    format!("{label} gets no listener: port {port} is that of a capture listener")
                });
                continue;
            }
            self.add(request, &place, rules);
        }
    }

    fn places(&self, request: &Request<'a>, bind: Option<&str>) -> Vec<Place> {
        let shared = |bind: &str| Place { bind: bind.to_owned(), networks: Vec::new(), own: false };
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
            return vec![Place { bind: wildcard.to_owned(), networks, own: false }];
        }
        let mut places = Vec::new();
        let mut cidrs = Vec::new();
        for address in &service.addresses {
            match address {
                Address::Ip(ip) if ip.is_unspecified() => places.push(shared(wildcard)),
                Address::Ip(ip) => {
                    places.push(Place { bind: ip.to_string(), networks: Vec::new(), own: true });
                }
                Address::Cidr(cidr) => cidrs.push(*cidr),
            }
        }
        if !cidrs.is_empty() {
            places.push(Place { bind: wildcard.to_owned(), networks: cidrs, own: false });
        }
        places
    }

    /// A service without an address whose clients dial its endpoints gets a listener for each.
    /// (Istio leaves out the proxy's own address; what we share between proxies cannot know it, and
    /// a connection to oneself through the proxy works.)
    fn headless(&self, request: &Request<'a>) -> Option<Vec<Place>> {
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
            |ip: std::net::IpAddr| Place { bind: ip.to_string(), networks: Vec::new(), own: true };
        Some(addresses.into_iter().map(own).collect())
    }

    fn add(&mut self, request: &Request<'a>, place: &Place, rules: &L4Rules<'a>) {
        let route = self.route_name(request, place);
        let http = |matches| PlannedChain {
            matches,
            action: ChainAction::Http { route: route.clone(), protocol: request.protocol },
        };
        let wildcard = place.bind == self.scope.view.ip_mode().wildcard();
        let owner = request.owner();
        let mut entry = match request.protocol {
            protocol if protocol.is_http() => match protocol {
                // What is not HTTP falls through to its original destination, which a listener that
                // binds does not have.
                Protocol::HttpProxy => Entry::http(owner, http(ChainMatch::default())),
                _ if wildcard && !request.binds => {
                    Entry::sniffed(owner, vec![http(ChainMatch::plain_http(self.plain_http))])
                }
                _ => Entry::http(owner, http(ChainMatch::default())),
            },
            Protocol::Auto => {
                let mut chains = rules.chains(self.scope, request, place);
                chains.push(http(ChainMatch::plain_http(self.plain_http)));
                Entry::sniffed(owner, chains)
            }
            _ => Entry::tcp(owner, rules.chains(self.scope, request, place)),
        };
        entry.egress = Some(request.egress);
        entry.binds = request.binds;
        let outcome = self.table.add(place.bind.clone(), request.port, entry);
        if outcome.has_http {
            let content = match request.protocol {
                Protocol::HttpProxy => RouteContent::Everything,
                _ if request.port == 0 => RouteContent::Everything,
                Protocol::Auto if place.own => {
                    RouteContent::Service(request.service(), request.port)
                }
                _ => RouteContent::Port(request.port),
            };
            let egress = Some(request.egress);
            self.routes.entry(route).or_insert(OutboundRoute { egress, content });
        }
        if let Some(conflict) = outcome.conflict {
            self.conflict(request, &place.bind, &conflict);
        }
    }

    fn route_name(&self, request: &Request<'a>, place: &Place) -> String {
        if request.port == 0 {
            return place.bind.clone();
        }
        match request.protocol {
            // The listener is this service's alone, so its routes are too.
            Protocol::Auto if place.own => {
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
