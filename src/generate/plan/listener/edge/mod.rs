//! Listeners of edge proxies: one for each address and port of the merged Gateways.

mod merge;
#[cfg(test)]
mod tests;

pub use merge::GatewayServer;

use super::{
    Builder, ChainMatch, Claim, Does, Draft, Intake, Listener, ListenerFilter, MatchTable,
    TcpProxy, TlsTermination, Unusable,
};
use crate::diag::{Code, Diagnostic, Span};
use crate::generate::filters::{Extra, Ground, Side};
use crate::generate::host_index::HostIndex;
use crate::generate::plan::Because;
use crate::generate::plan::secret::Secret;
use crate::generate::{Direction, Scope, names};
use crate::model::{L4Match, ObjectName, Origin, Protocol, VirtualService};
use crate::proxy::Role;
use merge::{GatewayListener, MergedServer, ServerKind, merge};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// The listeners of one router, and what they refer to. A proxy is given nothing that it does not
/// use, so only servers that got a chain count.
#[derive(Debug, Default)]
pub struct EdgePlan<'a> {
    /// The listeners. None is empty.
    pub listeners: Vec<Arc<Listener>>,
    /// The servers behind each route configuration that they name, in merge order.
    pub routes: BTreeMap<String, Vec<GatewayServer<'a>>>,
    /// The secrets that they name.
    pub secrets: BTreeMap<Arc<str>, Secret>,
    /// What their filters need.
    pub extra: Extra,
    /// What could not be served, and why.
    pub findings: Vec<Diagnostic>,
}

/// Plans the listeners of a router. A sidecar has none of these.
pub fn plan<'a>(scope: &Scope<'a>) -> EdgePlan<'a> {
    match scope.view.role() {
        Role::Router => {}
        Role::Sidecar => return EdgePlan::default(),
    }
    let mut merged = merge(scope);
    let mut edge = Edge {
        scope: *scope,
        builder: Builder::new(Ground::Shared(*scope), Side::Edge),
        secrets: BTreeMap::new(),
        named: BTreeSet::new(),
        findings: std::mem::take(&mut merged.findings),
        bound: HashMap::new(),
    };
    edge.findings.extend(nothing_selected(scope));
    let listeners =
        merged.listeners.iter().filter_map(|l| edge.listener(l)).map(Arc::new).collect();
    let Edge { builder, secrets, named, findings, .. } = edge;
    merged.routes.retain(|name, _| named.contains(name));
    EdgePlan { listeners, routes: merged.routes, secrets, extra: builder.extra, findings }
}

struct Edge<'s> {
    scope: Scope<'s>,
    builder: Builder<'s>,
    secrets: BTreeMap<Arc<str>, Secret>,
    /// Route configurations that some chain names.
    named: BTreeSet<String>,
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
    list: Vec<Draft>,
    matches: MatchTable<Owner<'s>>,
}

/// TLS that ends at a server, with the secrets that it names.
type Termination = (TlsTermination, Vec<Secret>);

impl<'s> Edge<'s> {
    fn listener(&mut self, merged: &GatewayListener<'s>) -> Option<Listener> {
        let (bind, port) = (merged.bind, merged.port);
        let name = names::listener(bind, port);
        if self.scope.view.options().unprivileged && (1..1024).contains(&port) {
            for server in &merged.servers {
                let message = format!(
                    "the {} gets no listener: the proxy may not bind port {port}",
                    server.of.label()
                );
                self.findings.push(server.of.finding(Code::PrivilegedPort, message));
            }
            return None;
        }
        let mut chains = Chains::default();
        let mut http_is_there = false;
        for server in &merged.servers {
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
        let needs_tls_inspector =
            |draft: &Draft| draft.matches.needs_tls_inspector() || draft.tls.is_some();
        let filters = match chains.list.iter().any(needs_tls_inspector) {
            true => vec![ListenerFilter::TlsInspector { only: BTreeSet::new() }],
            false => Vec::new(),
        };
        let because = because_of(merged)?;
        if chains.list.is_empty() {
            return None;
        }
        self.named.extend(chains.list.iter().filter_map(|d| d.does.route()).map(str::to_owned));
        let chains =
            chains.list.into_iter().map(|draft| self.builder.chain(&name, port, draft)).collect();
        Some(Listener {
            name,
            bind: bind.to_owned(),
            port,
            intake: Intake::Dialled,
            direction: Direction::Outbound,
            filters,
            filters_timeout: None,
            chains,
            default_chain: None,
            access_log: self.builder.defaults.access_log.clone(),
            because,
        })
    }

    fn http(&mut self, chains: &mut Chains<'s>, server: &MergedServer<'s>, listener: &str) {
        let does = http(server, format!("outbound_{listener};"));
        self.add(chains, server.of, ChainMatch::default(), does, None);
    }

    fn https(&mut self, chains: &mut Chains<'s>, server: &MergedServer<'s>, listener: &str) {
        let Some(tls) = self.termination(server.of) else { return };
        let named = &server.of.server.name;
        let stat_prefix = match named.is_empty() {
            true => format!("outbound_{listener};"),
            false => named.clone(),
        };
        self.add(chains, server.of, sni(server.of), http(server, stat_prefix), Some(tls));
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
        let (matches, tls) = match server.kind {
            ServerKind::Tls => {
                let Some(tls) = self.termination(of) else { return };
                (sni(of), Some(tls))
            }
            ServerKind::Tcp | ServerKind::Http | ServerKind::Https | ServerKind::Passthrough => {
                (ChainMatch::default(), None)
            }
        };
        let defaults = &self.builder.defaults;
        let port = of.server.port;
        let proxy = TcpProxy::of_rule(defaults, &self.scope, rule, &tcp.destinations, port);
        self.add(chains, of, matches, Does::Tcp(proxy.speaking(of.server.protocol)), tls);
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
                    let defaults = &self.builder.defaults;
                    let to = &tls.destinations;
                    let port = of.server.port;
                    let proxy = TcpProxy::of_rule(defaults, &self.scope, rule, to, port);
                    let does = Does::Tcp(proxy.speaking(Protocol::Tls));
                    let because = Because::of("a TLS rule", &rule.origin, owner.span)
                        .and(&of.gateway.origin, &of.server.span);
                    chains.list.push(Draft::new(matches, does, because));
                }
            }
        }
    }

    /// Adds the chain of a server unless others have all of its match.
    fn add(
        &mut self,
        chains: &mut Chains<'s>,
        of: GatewayServer<'s>,
        mut matches: ChainMatch,
        does: Does,
        tls: Option<Termination>,
    ) {
        let owner = Owner { origin: &of.gateway.origin, span: &of.server.span };
        let claim = chains.matches.claim(&mut matches, owner);
        let hosts: Vec<_> = of.server.hosts.iter().map(|h| h.host.clone()).collect();
        if let Some(finding) = sni_finding(&claim, owner, &hosts) {
            self.findings.push(finding);
        }
        match claim {
            Claim::Whole | Claim::Without { .. } => {}
            Claim::Nothing { .. } => return,
        }
        let (tls, secrets) = tls.unzip();
        for secret in secrets.into_iter().flatten() {
            self.secrets.entry(secret.name.clone()).or_insert(secret);
        }
        let because = Because::of("a Gateway server", owner.origin, owner.span);
        chains.list.push(Draft::new(matches, does, because).ending(tls));
    }

    /// What a server that ends TLS needs for that; `None` when it cannot.
    fn termination(&mut self, of: GatewayServer<'s>) -> Option<Termination> {
        let scope = self.scope;
        let termination = TlsTermination::of(
            &scope.world.routing.secrets,
            scope.view.namespace(),
            &of.gateway.origin,
            of.server.tls.as_ref()?,
            &scope.mesh().tls_defaults,
        );
        match termination {
            Ok(termination) => Some(termination),
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
        let attachment = of.gateway.attachment(of.server);
        let rules = positions.into_iter().map(|i| bound.list[i]);
        rules.filter(|rules| rules.is_bound_to(&attachment)).collect()
    }
}

/// HTTP with the routes of a server.
fn http(server: &MergedServer<'_>, stat_prefix: String) -> Does {
    let route = server.route.clone().unwrap_or_default();
    Does::http(stat_prefix, server.of.server.protocol, route)
}

/// A listener is there because of each of its servers; `None` for none.
fn because_of(listener: &GatewayListener<'_>) -> Option<Because> {
    let (first, others) = listener.servers.split_first()?;
    let GatewayServer { gateway, server } = first.of;
    let first = Because::of("a Gateway server", &gateway.origin, &server.span);
    Some(
        others.iter().fold(first, |because, other| {
            because.and(&other.of.gateway.origin, &other.of.server.span)
        }),
    )
}

fn nothing_selected(scope: &Scope<'_>) -> Option<Diagnostic> {
    if scope.gateways().next().is_some() {
        return None;
    }
    let (message, help) = match scope.world.routing.gateways.is_empty() {
        true => (
            "there is no Gateway, so this proxy gets no listeners",
            "write a Gateway, or set the node's metadata TYPE to `sidecar`",
        ),
        false => (
            "no Gateway selects this proxy, so it gets no listeners",
            "compare the Gateways' spec.selector with the proxy's labels",
        ),
    };
    Some(Diagnostic::new(Code::NothingSelected, message).help(help))
}

/// Whether a match is meant for this server. Gateways look at port and gateway only (Istio).
fn applies(wanted: &L4Match, of: GatewayServer<'_>) -> bool {
    wanted.port.is_none_or(|port| port == of.server.port)
        && (wanted.gateways.is_empty()
            || wanted.gateways.iter().any(|g| g.covers(&of.gateway.attachment(of.server))))
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
