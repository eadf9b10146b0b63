//! Listeners of edge proxies: one for each address and port of the merged Gateways.

use super::hcm::{Manager, Place, Routes};
use super::matches::{ChainMatch, Claim, MatchTable};
use super::tcp::TcpRoute;
use super::tls::{ServerContext, Unusable};
use super::{Chain, Writer, address, tls_inspector};
use crate::diag::{Code, Diagnostic, Span};
use crate::generate::gateway::{GatewayListener, GatewayServer, MergedServer, ServerKind, merge};
use crate::generate::host_index::HostIndex;
use crate::generate::{Scope, names};
use crate::model::{GatewayRef, L4Match, ObjectName, Origin, Protocol, VirtualService};
use crate::xds::pb::{self, core, listener};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// The listeners of a router, by name, and what is to be said about them.
pub fn gateway_listeners(scope: &Scope<'_>) -> (Vec<listener::Listener>, Vec<Diagnostic>) {
    let merged = merge(scope);
    let mut gateways = Gateways {
        scope: *scope,
        writer: Writer::new(scope.mesh(), scope.view),
        findings: merged.findings,
        bound: HashMap::new(),
    };
    let listeners = merged.listeners.iter().filter_map(|l| gateways.listener(l)).collect();
    (listeners, gateways.findings)
}

/// The secrets that the listeners of a router name.
pub fn gateway_secrets(scope: &Scope<'_>) -> Vec<pb::tls::Secret> {
    let mut secrets = Vec::new();
    for server in served(scope) {
        if let Some(Ok(context)) = context(scope, &server) {
            secrets.extend(context.secrets().map(|secret| secret.resource()));
        }
    }
    secrets
}

/// The route configurations that the listeners of a router name.
pub fn gateway_routes(scope: &Scope<'_>) -> BTreeSet<String> {
    served(scope).filter_map(|server| server.route).collect()
}

/// The servers that get a listener. Only these count for what listeners refer to: a proxy is given
/// nothing that it does not use.
fn served<'s>(scope: &Scope<'s>) -> impl Iterator<Item = MergedServer<'s>> {
    let listeners = merge(scope).listeners.into_iter();
    let allowed = listeners.filter(|listener| !is_privileged(scope, listener));
    let servers = allowed.flat_map(|listener| listener.servers);
    servers.filter(|server| !matches!(context(scope, server), Some(Err(_))))
}

/// Whether the proxy may not bind the port.
fn is_privileged(scope: &Scope<'_>, listener: &GatewayListener<'_>) -> bool {
    scope.view.options().unprivileged && (1..1024).contains(&listener.port)
}

/// The TLS context of a server that ends TLS; an error when its secrets are not there.
fn context<'a>(
    scope: &Scope<'a>,
    server: &MergedServer<'a>,
) -> Option<Result<ServerContext<'a>, Unusable>> {
    match server.kind {
        ServerKind::Https | ServerKind::Tls => {
            let settings = server.of.server.tls.as_ref()?;
            Some(ServerContext::new(
                &scope.world.routing.secrets,
                scope.view.namespace(),
                &server.of.gateway.origin,
                settings,
            ))
        }
        ServerKind::Http | ServerKind::Tcp | ServerKind::Passthrough => None,
    }
}

struct Gateways<'s> {
    scope: Scope<'s>,
    writer: Writer<'s>,
    findings: Vec<Diagnostic>,
    /// The VirtualServices of each Gateway, looked up once.
    bound: HashMap<ObjectName, Rc<BoundRules<'s>>>,
}

/// The VirtualServices of one Gateway, by host.
struct BoundRules<'s> {
    list: Vec<&'s VirtualService>,
    hosts: HostIndex,
}

/// Who has claimed a match on a listener.
#[derive(Clone, Copy)]
struct Owner<'s> {
    origin: &'s Origin,
    span: &'s Span,
}

/// The filter chains of one listener so far.
#[derive(Default)]
struct Chains<'s> {
    list: Vec<Chain>,
    matches: MatchTable<Owner<'s>>,
}

impl<'s> Gateways<'s> {
    fn scope(&self) -> &Scope<'s> {
        &self.scope
    }

    fn listener(&mut self, planned: &GatewayListener<'s>) -> Option<listener::Listener> {
        let name = names::listener(planned.bind, planned.port);
        if is_privileged(self.scope(), planned) {
            for server in &planned.servers {
                let message = format!(
                    "the {} gets no listener: the proxy may not bind port {}",
                    server.of.label(),
                    planned.port
                );
                self.findings.push(server.of.finding(Code::PrivilegedPort, message));
            }
            return None;
        }
        let mut chains = Chains::default();
        let mut http_is_there = false;
        for server in &planned.servers {
            match server.kind {
                // All HTTP servers of a listener share the first one's chain and routes.
                ServerKind::Http if http_is_there => {}
                ServerKind::Http => {
                    self.http(&mut chains, server, &name);
                    http_is_there = true;
                }
                ServerKind::Https => self.https(&mut chains, server, &name),
                ServerKind::Tcp | ServerKind::Tls => self.tcp(&mut chains, server),
                ServerKind::Passthrough => self.passthrough(&mut chains, server.of),
            }
        }
        if chains.list.is_empty() {
            return None;
        }
        let mut listener_filters = Vec::new();
        if chains.list.iter().any(|c| c.needs_tls_inspector() || c.proto.transport_socket.is_some())
        {
            listener_filters.push(tls_inspector());
        }
        Some(listener::Listener {
            name,
            address: Some(address(planned.bind, planned.port)),
            filter_chains: chains.list.into_iter().map(|chain| chain.proto).collect(),
            listener_filters,
            traffic_direction: core::TrafficDirection::Outbound.into(),
            max_connections_to_accept_per_socket_event: Some(pb::u32_value(1)),
            access_log: self.writer.listener_access_log.clone(),
            ..Default::default()
        })
    }

    fn http(&mut self, chains: &mut Chains<'s>, server: &MergedServer<'s>, listener: &str) {
        let manager = Manager {
            place: Place::Gateway,
            stat_prefix: format!("outbound_{listener};"),
            protocol: server.of.server.protocol,
            routes: Routes::Named(server.route.clone().unwrap_or_default()),
        };
        let filters = self.writer.http_filters(manager);
        self.add_server(chains, server.of, ChainMatch::default(), |matches| {
            Chain::new("", matches, filters)
        });
    }

    fn https(&mut self, chains: &mut Chains<'s>, server: &MergedServer<'s>, listener: &str) {
        let Some(socket) = self.transport_socket(server) else { return };
        let named = &server.of.server.name;
        let manager = Manager {
            place: Place::Gateway,
            stat_prefix: match named.is_empty() {
                true => format!("outbound_{listener};"),
                false => named.clone(),
            },
            protocol: server.of.server.protocol,
            routes: Routes::Named(server.route.clone().unwrap_or_default()),
        };
        let filters = self.writer.http_filters(manager);
        self.add_server(chains, server.of, sni(server.of), |matches| {
            Chain::new("", matches, filters).with_socket(socket)
        });
    }

    /// Plain TCP, and TLS that ends here: the first `tcp` rule that fits takes it all.
    fn tcp(&mut self, chains: &mut Chains<'s>, server: &MergedServer<'s>) {
        let of = server.of;
        let rule = self.rules_of(of).into_iter().find_map(|rule| {
            let tcp = rule.tcp.iter().find(|tcp| {
                let fits = |m: &L4Match| applies(m, of);
                !tcp.destinations.is_empty()
                    && (tcp.matches.is_empty() || tcp.matches.iter().any(fits))
            })?;
            Some((rule, tcp))
        });
        let Some((rule, tcp)) = rule else {
            let message = format!(
                "the {} gets no listener: no tcp rule of a VirtualService says where to",
                of.label()
            );
            self.findings.push(of.finding(Code::UnusedDocument, message).help(format!(
                "bind a VirtualService with a tcp rule to gateway '{}'",
                of.gateway.origin.name
            )));
            return;
        };
        let route = TcpRoute {
            protocol: of.server.protocol,
            ..TcpRoute::of_rule(self.scope(), rule, &tcp.destinations, of.server.port)
        };
        let filters = self.writer.tcp_filters(&route);
        match server.kind {
            ServerKind::Tls => {
                let Some(socket) = self.transport_socket(server) else { return };
                self.add_server(chains, of, sni(of), |matches| {
                    Chain::new("", matches, filters).with_socket(socket)
                });
            }
            ServerKind::Tcp | ServerKind::Http | ServerKind::Https | ServerKind::Passthrough => {
                self.add_server(chains, of, ChainMatch::default(), |matches| {
                    Chain::new("", matches, filters)
                });
            }
        }
    }

    /// TLS that is passed through: every `tls` match that fits is a chain.
    fn passthrough(&mut self, chains: &mut Chains<'s>, of: GatewayServer<'s>) {
        for rule in self.rules_of(of) {
            for tls in rule.tls.iter().filter(|tls| !tls.destinations.is_empty()) {
                for wanted in tls.matches.iter().filter(|m| applies(&m.l4, of)) {
                    let mut matches = ChainMatch::default()
                        .with_server_names(wanted.sni_hosts.iter().map(|h| h.as_str()));
                    let owner = Owner { origin: &rule.origin, span: &wanted.l4.span };
                    let claim = chains.matches.claim(&mut matches, owner);
                    if let Some(finding) = sni_finding(&claim, owner, &wanted.sni_hosts) {
                        self.findings.push(finding);
                    }
                    if matches!(claim, Claim::Nothing { .. }) {
                        continue;
                    }
                    let route = TcpRoute {
                        protocol: Protocol::Tls,
                        ..TcpRoute::of_rule(self.scope(), rule, &tls.destinations, of.server.port)
                    };
                    let filters = self.writer.tcp_filters(&route);
                    chains.list.push(Chain::new("", matches, filters).timed());
                }
            }
        }
    }

    /// Adds the chain of a server unless others have all of its match.
    fn add_server(
        &mut self,
        chains: &mut Chains<'s>,
        of: GatewayServer<'s>,
        mut matches: ChainMatch,
        chain: impl FnOnce(ChainMatch) -> Chain,
    ) {
        let owner = Owner { origin: &of.gateway.origin, span: &of.server.span };
        let claim = chains.matches.claim(&mut matches, owner);
        let hosts: Vec<_> = of.server.hosts.iter().map(|h| h.host.clone()).collect();
        if let Some(finding) = sni_finding(&claim, owner, &hosts) {
            self.findings.push(finding);
        }
        match claim {
            Claim::Whole | Claim::Without { .. } => chains.list.push(chain(matches).timed()),
            Claim::Nothing { .. } => {}
        }
    }

    fn transport_socket(&mut self, server: &MergedServer<'s>) -> Option<core::TransportSocket> {
        match context(self.scope(), server)? {
            Ok(context) => Some(context.transport_socket(&self.scope().mesh().tls_defaults)),
            Err(Unusable::Credential) => None,
            Err(Unusable::Settings(finding)) => {
                self.findings.push(*finding);
                None
            }
        }
    }

    /// The VirtualServices with a host that a server serves, in order of precedence.
    fn rules_of(&mut self, of: GatewayServer<'s>) -> Vec<&'s VirtualService> {
        let scope = self.scope;
        let name = &of.gateway.origin.name;
        let bound = self.bound.entry(name.clone()).or_insert_with(|| {
            let list = scope.virtual_services_of(name).into_iter().map(|rules| &**rules);
            let list: Vec<&VirtualService> =
                list.filter(|v| !v.tcp.is_empty() || !v.tls.is_empty()).collect();
            let pairs = list.iter().enumerate();
            let hosts =
                HostIndex::new(pairs.flat_map(|(i, v)| v.hosts.iter().map(move |h| (i, h))));
            Rc::new(BoundRules { list, hosts })
        });
        let bound = bound.clone();
        let mut positions = BTreeSet::new();
        for server_host in &of.server.hosts {
            positions.extend(bound.hosts.overlapping(&server_host.host).into_iter().filter(|&i| {
                let namespace = &bound.list[i].origin.name.namespace;
                server_host.namespace.as_ref().is_none_or(|n| n == namespace)
            }));
        }
        positions.into_iter().map(|i| bound.list[i]).collect()
    }
}

/// Whether a match is meant for this server. Gateways look at port and gateway only (Istio).
fn applies(wanted: &L4Match, of: GatewayServer<'_>) -> bool {
    wanted.port.is_none_or(|port| port == of.server.port)
        && (wanted.gateways.is_empty()
            || wanted.gateways.contains(&GatewayRef::Gateway(of.gateway.origin.name.clone())))
}

/// The names that a server which ends TLS is chosen by.
fn sni(of: GatewayServer<'_>) -> ChainMatch {
    let mut hosts: Vec<&str> = of.server.hosts.iter().map(|h| h.host.as_str()).collect();
    hosts.sort_unstable();
    ChainMatch::default().with_server_names(hosts)
}

/// What is to be said about a claim that did not get everything. The same rule reached through two
/// servers is no conflict.
fn sni_finding(
    claim: &Claim<Owner<'_>>,
    owner: Owner<'_>,
    wanted: &[crate::model::Hostname],
) -> Option<Diagnostic> {
    let (names, other) = match claim {
        Claim::Whole => return None,
        Claim::Without { names, owner } => (names.join(", "), owner),
        Claim::Nothing { owner } => {
            let names: Vec<&str> = wanted.iter().map(|h| h.as_str()).collect();
            (names.join(", "), owner)
        }
    };
    if other.span == owner.span && other.origin == owner.origin {
        return None;
    }
    let message = format!(
        "{} {} is not served for {names}: {} {} has that on the same port already",
        owner.origin.kind, owner.origin.name, other.origin.kind, other.origin.name
    );
    let finding = owner.origin.diagnostic_at(owner.span, Code::DuplicateSni, message);
    Some(finding.related(other.span.clone(), "what is served"))
}
