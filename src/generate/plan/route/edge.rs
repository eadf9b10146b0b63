//! The route tables of routers: for each that a listener names, the virtual hosts of its servers.
//!
//! A host gets the rules of every VirtualService that claims it (on sidecars only the first counts).

use super::host::{HostInput, Names, Routes};
use super::rules::{RouteList, RulesInput, Served};
use super::target::Registry;
use super::{HostPort, Parts, RouteTable, Scheme, TableInput, VirtualHost};
use crate::generate::Scope;
use crate::generate::filters::Extra;
use crate::generate::host_index::HostIndex;
use crate::generate::memo::Same;
use crate::generate::plan::Because;
use crate::generate::plan::listener::edge::{EdgePlan, GatewayServer};
use crate::model::{Attachment, GatewayRef, Hostname, ObjectName, ServerHost, VirtualService};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// The tables that the listeners of a router name, and what is to be said about them.
pub(super) fn tables(
    scope: &Scope<'_>,
    parts: &dyn Parts,
    plan: &EdgePlan<'_>,
) -> (Vec<Arc<RouteTable>>, Extra) {
    let mut edge = Edge { scope, parts, bound: HashMap::new() };
    let mut tables = Vec::new();
    let mut extra = Extra::default();
    for (name, servers) in &plan.routes {
        let hosts = edge.hosts(servers, &mut extra);
        let because = match servers.split_first() {
            None => Because::always("a server"),
            Some((first, others)) => others.iter().fold(
                Because::of("a server", &first.gateway.origin, &first.server.span),
                |because, other| because.and(&other.gateway.origin, &other.server.span),
            ),
        };
        let input = TableInput { name: name.as_str().into(), host_port: HostPort::Ignored, hosts };
        tables.push(parts.table(input, because, scope.view));
    }
    (tables, extra)
}

struct Edge<'s, 'a> {
    scope: &'s Scope<'a>,
    parts: &'s dyn Parts,
    /// The VirtualServices of each Gateway, looked up once.
    bound: HashMap<ObjectName, Rc<BoundRules<'a>>>,
}

/// The VirtualServices that are bound to one Gateway, by what they claim.
struct BoundRules<'a> {
    /// In order of precedence.
    list: Vec<&'a Arc<VirtualService>>,
    hosts: HostIndex,
}

/// A virtual host in the making.
#[derive(Default)]
struct Host {
    /// Which lists of routes it has, in order.
    lists: Vec<usize>,
    require_tls: bool,
    port: u16,
}

/// The routes of documents in one table, each looked up once. Two servers may serve the same rules
/// alike.
#[derive(Default)]
struct Lists<'a> {
    by_place: HashMap<(Attachment, Scheme, &'a ObjectName), Option<usize>>,
    by_part: HashMap<Same<RouteList>, usize>,
    found: Vec<Same<RouteList>>,
}

impl<'a> Edge<'_, 'a> {
    fn hosts(
        &mut self,
        servers: &[GatewayServer<'a>],
        extra: &mut Extra,
    ) -> Vec<Same<VirtualHost>> {
        let mut lists = Lists::default();
        let mut hosts: BTreeMap<Hostname, Host> = BTreeMap::new();
        for of in servers {
            let redirects = of.server.tls.as_ref().is_some_and(|tls| tls.https_redirect);
            let attachment = of.gateway.attachment(of.server);
            let port = of.server.port;
            let bound = self.bound(&of.gateway.origin.name);
            for (rules, claimed) in bound.claims(&of.server.hosts, &attachment) {
                let list = self.list(&mut lists, *of, &attachment, rules, extra);
                let Some(list) = list else { continue };
                for host in claimed {
                    let host = hosts.entry(host).or_insert(Host { port, ..Host::default() });
                    host.lists.push(list);
                    host.require_tls |= redirects;
                }
            }
            if redirects {
                // A host that nobody routes is still told to use TLS.
                for host in of.server.hosts.iter().map(|host| host.host.to_lowercase()) {
                    let host = hosts.entry(host).or_insert(Host { port, ..Host::default() });
                    host.require_tls = true;
                }
            }
        }
        let inputs = match servers.first() {
            // What a server without any rules answers: 404 to everything.
            Some(first) if hosts.is_empty() => {
                let names = Names::Server { hosts: Vec::new(), port: first.server.port };
                vec![HostInput::new(names, Routes::Nothing)]
            }
            _ => lists.inputs(hosts),
        };
        let mut made: Vec<Arc<VirtualHost>> =
            inputs.iter().map(|input| self.parts.host(input, self.scope.view)).collect();
        made.sort_by(|a, b| a.name.cmp(&b.name));
        made.into_iter().map(Same).collect()
    }

    fn bound(&mut self, gateway: &ObjectName) -> Rc<BoundRules<'a>> {
        let known = self.bound.entry(gateway.clone());
        known
            .or_insert_with(|| Rc::new(BoundRules::new(self.scope.virtual_services_of(gateway))))
            .clone()
    }

    /// The routes of a document for a server; `None` when it has none there.
    fn list(
        &self,
        lists: &mut Lists<'a>,
        of: GatewayServer<'a>,
        attachment: &Attachment,
        rules: &'a Arc<VirtualService>,
        extra: &mut Extra,
    ) -> Option<usize> {
        let scheme = scheme(of);
        let attachment = as_asked(rules, attachment);
        let place = (attachment.clone(), scheme, &rules.origin.name);
        if let Some(known) = lists.by_place.get(&place) {
            return *known;
        }
        let listen_port = of.server.port;
        let registry = Registry::Gateway(&rules.origin.name.namespace);
        let served = Served { attachment, listen_port, scheme, registry };
        let input = RulesInput::new(self.scope, rules, served);
        let list = self.parts.routes(input, self.scope.view);
        let found = lists.add(list, extra);
        lists.by_place.insert(place, found);
        found
    }
}

impl Lists<'_> {
    fn add(&mut self, list: Arc<RouteList>, extra: &mut Extra) -> Option<usize> {
        let list = Same(list);
        if list.0.routes.is_empty() {
            extra.append(&list.0.extra);
            return None;
        }
        if let Some(&known) = self.by_part.get(&list) {
            return Some(known);
        }
        extra.append(&list.0.extra);
        self.by_part.insert(list.clone(), self.found.len());
        self.found.push(list);
        Some(self.found.len() - 1)
    }

    /// The virtual hosts. Hosts of one document share one, named after the most specific.
    fn inputs(&self, hosts: BTreeMap<Hostname, Host>) -> Vec<HostInput> {
        let mut hosts: Vec<(Hostname, Host)> = hosts.into_iter().collect();
        hosts.sort_by(|(a, _), (b, _)| Hostname::by_specificity(a, b));
        let mut shared: HashMap<(usize, bool), usize> = HashMap::new();
        let mut inputs: Vec<HostInput> = Vec::new();
        for (domain, host) in hosts {
            if let [only] = host.lists[..] {
                let key = (only, host.require_tls);
                let known = shared.get(&key).and_then(|&position| inputs.get_mut(position));
                if let Some(HostInput { names: Names::Server { hosts, .. }, .. }) = known {
                    hosts.push(domain);
                    continue;
                }
                shared.insert(key, inputs.len());
            }
            let lists = host.lists.iter().map(|&list| self.found[list].clone()).collect();
            let routes = if host.lists.is_empty() { Routes::Nothing } else { Routes::Lists(lists) };
            let names = Names::Server { hosts: vec![domain], port: host.port };
            let require_tls = host.require_tls;
            inputs.push(HostInput { require_tls, ..HostInput::new(names, routes) });
        }
        inputs
    }
}

impl<'a> BoundRules<'a> {
    fn new(list: Vec<&'a Arc<VirtualService>>) -> BoundRules<'a> {
        let hosts = list.iter().enumerate();
        let hosts =
            HostIndex::new(hosts.flat_map(|(i, rules)| rules.hosts.iter().map(move |h| (i, h))));
        BoundRules { list, hosts }
    }

    /// The VirtualServices that share a host with a server, each with the hosts that they share: of
    /// two that overlap the more specific one, in lower case and order of the VirtualService.
    fn claims(
        &self,
        server: &[ServerHost],
        attachment: &Attachment,
    ) -> Vec<(&'a Arc<VirtualService>, Vec<Hostname>)> {
        let mut claims: BTreeMap<usize, Vec<Hostname>> = BTreeMap::new();
        let mut seen: HashSet<(usize, Hostname)> = HashSet::new();
        for served in server {
            for position in self.hosts.overlapping(&served.host) {
                let rules = self.list[position];
                let namespace = &rules.origin.name.namespace;
                if served.namespace.as_ref().is_some_and(|only| only != namespace)
                    || !rules.is_bound_to(attachment)
                {
                    continue;
                }
                let lower = served.host.to_lowercase();
                let shared =
                    rules.hosts.iter().filter_map(|h| h.to_lowercase().intersection(&lower));
                for host in shared {
                    if seen.insert((position, host.clone())) {
                        claims.entry(position).or_default().push(host);
                    }
                }
            }
        }
        claims.into_iter().map(|(position, hosts)| (self.list[position], hosts)).collect()
    }
}

/// The listener without its name where no match of the document asks for that: listeners that differ
/// in nothing else have the same routes then.
fn as_asked(rules: &VirtualService, attachment: &Attachment) -> Attachment {
    let matches = rules.http.iter().flat_map(|rule| &rule.matches);
    let asks = |wanted: &GatewayRef| match wanted {
        GatewayRef::Mesh => false,
        GatewayRef::Gateway(listener) => listener.section.is_some(),
    };
    match attachment {
        Attachment::Listener { gateway, port, .. }
            if !matches.flat_map(|wanted| &wanted.gateways).any(asks) =>
        {
            Attachment::Listener { gateway: gateway.clone(), section: "".into(), port: *port }
        }
        other => other.clone(),
    }
}

/// What clients of a server speak. A plain HTTP server may have TLS settings, which only redirect.
fn scheme(of: GatewayServer<'_>) -> Scheme {
    if of.server.protocol.is_http() { Scheme::Http } else { Scheme::Https }
}
