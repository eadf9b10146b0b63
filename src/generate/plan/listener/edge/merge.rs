//! Which Gateway servers a router runs, and how they share ports.
//!
//! Several Gateways, of several namespaces, may ask for one port. [`merge()`] decides once who gets
//! it, for the listeners and for their route configurations alike: documents in precedence order,
//! servers in document order, the first wins and the others are told why. Istio's rules
//! (`pilot/pkg/model`, merging of gateways), kept per address and port so that two servers that
//! cannot share a listener never meet in one.

use crate::diag::{Code, Diagnostic};
use crate::generate::{Scope, names};
use crate::model::{Gateway, Protocol, Server, ServerTlsMode};
use std::collections::{BTreeMap, HashMap};

/// What the Gateways of one router add up to.
#[derive(Debug, Default)]
pub struct MergedGateways<'a> {
    /// The listeners to build, in order of their first server.
    pub listeners: Vec<GatewayListener<'a>>,
    /// The servers behind each route configuration, by its name, in merge order.
    pub routes: BTreeMap<String, Vec<GatewayServer<'a>>>,
    /// Servers that are left out, and why.
    pub findings: Vec<Diagnostic>,
}

/// One address and port, and the servers that share it.
#[derive(Debug)]
pub struct GatewayListener<'a> {
    /// The address to bind: the server's, else the proxy's wildcard; `unix://` for a socket.
    pub bind: &'a str,
    /// The port to bind. It differs from the declared ones when the router's own service maps it.
    pub port: u16,
    /// The servers in merge order. HTTP servers share one filter chain.
    pub servers: Vec<MergedServer<'a>>,
}

/// A server as part of a listener.
#[derive(Debug)]
pub struct MergedServer<'a> {
    /// The server and its Gateway.
    pub of: GatewayServer<'a>,
    /// Which filter chains it becomes.
    pub kind: ServerKind,
    /// The route configuration of its HTTP connection manager.
    pub route: Option<String>,
}

/// A server and the Gateway that it stands in.
#[derive(Debug, Clone, Copy)]
pub struct GatewayServer<'a> {
    /// The document.
    pub gateway: &'a Gateway,
    /// One of its servers.
    pub server: &'a Server,
}

impl GatewayServer<'_> {
    /// A finding at the server.
    pub fn finding(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        self.gateway.origin.diagnostic_at(&self.server.span, code, message)
    }

    /// How other findings speak of this server.
    pub fn label(&self) -> String {
        let server = self.server;
        format!(
            "{} server {} of Gateway {}",
            server.protocol.as_str(),
            if server.port_name.is_empty() { "without name" } else { &server.port_name },
            self.gateway.origin.name
        )
    }
}

/// Which filter chains a server becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// Plain HTTP: one chain and one route configuration for all servers of the listener.
    Http,
    /// Terminated HTTPS: a chain by SNI and a route configuration of its own.
    Https,
    /// Plain TCP: one chain.
    Tcp,
    /// Terminated TLS: a chain by SNI, routed by `tcp` rules.
    Tls,
    /// TLS passed through: a chain for each `tls` match.
    Passthrough,
}

impl ServerKind {
    /// The kind of a server; `None` for those that get no listener (their kind's own check has
    /// said so: UDP, AUTO_PASSTHROUGH and ISTIO_MUTUAL).
    fn of(server: &Server) -> Option<ServerKind> {
        match server.protocol {
            Protocol::Http
            | Protocol::Http2
            | Protocol::Grpc
            | Protocol::GrpcWeb
            | Protocol::HttpProxy => Some(ServerKind::Http),
            Protocol::Udp | Protocol::Auto => None,
            Protocol::Https
            | Protocol::Tls
            | Protocol::Tcp
            | Protocol::Mongo
            | Protocol::Redis
            | Protocol::MySql => match server.tls.as_ref().map(|tls| tls.mode) {
                None => Some(ServerKind::Tcp),
                Some(ServerTlsMode::Passthrough) => Some(ServerKind::Passthrough),
                Some(ServerTlsMode::AutoPassthrough | ServerTlsMode::IstioMutual) => None,
                Some(
                    ServerTlsMode::Simple | ServerTlsMode::Mutual | ServerTlsMode::OptionalMutual,
                ) if server.protocol == Protocol::Https => Some(ServerKind::Https),
                Some(
                    ServerTlsMode::Simple | ServerTlsMode::Mutual | ServerTlsMode::OptionalMutual,
                ) => Some(ServerKind::Tls),
            },
        }
    }
}

/// Merges the servers of every Gateway that the router runs.
pub fn merge<'a>(scope: &Scope<'a>) -> MergedGateways<'a> {
    let mut merge = Merge::default();
    for gateway in scope.gateways() {
        for server in &gateway.servers {
            if let Some(kind) = ServerKind::of(server) {
                merge.add(scope, GatewayServer { gateway, server }, kind);
            }
        }
    }
    merge.merged
}

#[derive(Default)]
struct Merge<'a> {
    merged: MergedGateways<'a>,
    /// Position of each listener by address and port.
    by_address: HashMap<(&'a str, u16), usize>,
    /// The plain-text server that has a listener's match-all chain, by listener: its position.
    plain: HashMap<usize, usize>,
    /// Who serves a host with TLS settings, by listener.
    hosts: HashMap<(usize, String), GatewayServer<'a>>,
}

impl<'a> Merge<'a> {
    fn add(&mut self, scope: &Scope<'a>, of: GatewayServer<'a>, kind: ServerKind) {
        let server = of.server;
        let bind = server.bind.as_deref().unwrap_or(scope.view.ip_mode().wildcard());
        let port = scope.view.gateway_port(server.port);
        let position = self.by_address.get(&(bind, port)).copied();
        let hosts = tls_hosts(of, kind);
        if let Some(position) = position
            && let Some(finding) = self.objection(position, of, kind, &hosts)
        {
            self.merged.findings.push(finding);
            return;
        }
        let route = match kind {
            ServerKind::Http => {
                let shared = position.and_then(|p| self.plain(p));
                Some(
                    shared
                        .and_then(|s| s.route.clone())
                        .unwrap_or_else(|| names::gateway_http_route(port, server.bind.as_deref())),
                )
            }
            ServerKind::Https => Some(https_route(of)),
            ServerKind::Tcp | ServerKind::Tls | ServerKind::Passthrough => None,
        };
        if kind == ServerKind::Https
            && let Some(other) = route.as_ref().and_then(|r| self.merged.routes.get(r)?.first())
        {
            let message = format!(
                "the {} is left out: the {} has the same port name and number, which name its routes",
                of.label(),
                other.label()
            );
            let finding = of
                .finding(Code::PortConflict, message)
                .help("give each server of a Gateway a port name of its own")
                .related(other.server.span.clone(), "the server that is served");
            self.merged.findings.push(finding);
            return;
        }
        let position = position.unwrap_or_else(|| {
            let position = self.merged.listeners.len();
            self.merged.listeners.push(GatewayListener { bind, port, servers: Vec::new() });
            self.by_address.insert((bind, port), position);
            position
        });
        for host in hosts {
            self.hosts.entry((position, host)).or_insert(of);
        }
        if let Some(route) = &route {
            self.merged.routes.entry(route.clone()).or_default().push(of);
        }
        let servers = &mut self.merged.listeners[position].servers;
        if matches!(kind, ServerKind::Http | ServerKind::Tcp) {
            self.plain.entry(position).or_insert(servers.len());
        }
        servers.push(MergedServer { of, kind, route });
    }

    fn plain(&self, listener: usize) -> Option<&MergedServer<'a>> {
        self.plain.get(&listener).map(|&server| &self.merged.listeners[listener].servers[server])
    }

    /// Why the server does not fit into a listener that others have already.
    fn objection(
        &self,
        position: usize,
        of: GatewayServer<'a>,
        kind: ServerKind,
        hosts: &[String],
    ) -> Option<Diagnostic> {
        let duplicate =
            hosts.iter().find_map(|h| Some((h, self.hosts.get(&(position, h.clone()))?)));
        if let Some((host, other)) = duplicate {
            let message = format!(
                "the {} is left out: the {} serves host {host} on port {} already",
                of.label(),
                other.label(),
                self.merged.listeners[position].port
            );
            return Some(
                of.finding(Code::DuplicateSni, message)
                    .help("serve a host in one server only; VirtualServices can share it")
                    .related(other.server.span.clone(), "the server that is served"),
            );
        }
        let listener = &self.merged.listeners[position];
        let in_the_way = match (self.plain(position), kind) {
            // Plain HTTP servers share their chain.
            (Some(plain), ServerKind::Http) if plain.kind == ServerKind::Http => None,
            // A plain-text server takes the whole port. (Istio lets TLS servers that come before it
            // stay, and refuses those that come after.)
            (Some(plain), _) => Some(plain),
            // Host `*` terminates whatever SNI comes, so nothing is left for plain text.
            (None, ServerKind::Http | ServerKind::Tcp) => {
                self.hosts.get(&(position, "*".to_owned())).and_then(|other| {
                    listener.servers.iter().find(|s| std::ptr::eq(s.of.server, other.server))
                })
            }
            (None, ServerKind::Https | ServerKind::Tls | ServerKind::Passthrough) => None,
        };
        let other = in_the_way?;
        let message = format!(
            "the {} is left out: the {} has port {} already",
            of.label(),
            other.of.label(),
            listener.port
        );
        Some(
            of.finding(Code::PortConflict, message)
                .help("use another port or another bind address")
                .related(other.of.server.span.clone(), "the server that is served"),
        )
    }
}

/// What a server with TLS settings claims for itself on its listener. SNI has no namespaces and no
/// case, so hosts of terminated and passed-through TLS are compared without either; Envoy refuses
/// the whole listener when two chains claim one SNI. Plain HTTP servers with a redirect are
/// compared as they are written, as Istio does.
fn tls_hosts(of: GatewayServer<'_>, kind: ServerKind) -> Vec<String> {
    if of.server.tls.is_none() {
        return Vec::new();
    }
    let hosts = of.server.hosts.iter();
    match kind {
        ServerKind::Http => hosts
            .map(|h| match &h.namespace {
                Some(namespace) => format!("{namespace}/{}", h.host),
                None => h.host.to_string(),
            })
            .collect(),
        ServerKind::Https | ServerKind::Tcp | ServerKind::Tls | ServerKind::Passthrough => {
            hosts.map(|h| h.host.to_ascii_lowercase()).collect()
        }
    }
}

fn https_route(of: GatewayServer<'_>) -> String {
    let GatewayServer { gateway, server } = of;
    names::gateway_https_route(
        server.port,
        &server.port_name,
        &gateway.origin.name.name,
        &gateway.origin.name.namespace,
        server.bind.as_deref(),
    )
}
