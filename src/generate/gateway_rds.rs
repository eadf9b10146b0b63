//! Route configurations of routers: for each that a listener names, the virtual hosts of its
//! servers.
//!
//! A host gets the rules of every VirtualService that claims it, one after the other (on sidecars
//! only the first counts). Rules for everything move behind the others, so that an old catch-all
//! does not hide what a newer document says.

use super::host_index::HostIndex;
use super::plan::listener::edge::GatewayServer;
use super::route::{self, HostPort, Place, Registry, Scheme};
use super::{Output, Plan, Scope, names};
use crate::diag::Diagnostic;
use crate::model::{GatewayRef, Hostname, ObjectName, ServerHost, VirtualService};
use crate::xds::pb::route as proto;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Emits the route configurations of a router.
pub fn generate(plan: &Plan<'_>, output: &mut Output) {
    let scope = &plan.scope;
    let mut generator = GatewayRoutes { scope, rules: HashMap::new() };
    for (name, servers) in &plan.edge.routes {
        let (virtual_hosts, findings) = generator.virtual_hosts(servers);
        let configuration = route::configuration(name, HostPort::Ignored, virtual_hosts);
        output.emit(name, &configuration);
        for finding in findings {
            output.report(finding);
        }
    }
}

struct GatewayRoutes<'s, 'a> {
    scope: &'s Scope<'a>,
    /// The VirtualServices of each Gateway, looked up once.
    rules: HashMap<ObjectName, Rc<BoundRules<'a>>>,
}

/// The VirtualServices that are bound to one Gateway, by what they claim.
struct BoundRules<'a> {
    /// In order of precedence.
    list: Vec<&'a VirtualService>,
    hosts: HostIndex,
}

/// What makes two translations of a VirtualService the same.
#[derive(PartialEq, Eq, Hash)]
struct TranslationKey<'a> {
    gateway: &'a ObjectName,
    rules: &'a ObjectName,
    port: u16,
    scheme: Scheme,
}

/// A virtual host in the making.
struct Host {
    name: String,
    /// Which translations it has, in order.
    translations: Vec<usize>,
    require_tls: bool,
}

impl<'a> GatewayRoutes<'_, 'a> {
    fn virtual_hosts(
        &mut self,
        servers: &[GatewayServer<'a>],
    ) -> (Vec<proto::VirtualHost>, Vec<Diagnostic>) {
        let mut translations = Translations::default();
        let mut hosts: BTreeMap<Hostname, Host> = BTreeMap::new();
        for of in servers {
            let redirects = of.server.tls.as_ref().is_some_and(|tls| tls.https_redirect);
            let bound = self.bound(&of.gateway.origin.name);
            for (rules, claimed) in bound.claims(&of.server.hosts) {
                let Some(translation) = translations.get(self.scope, *of, rules) else { continue };
                for host in claimed {
                    let host = entry(&mut hosts, host, of.server.port);
                    host.translations.push(translation);
                    host.require_tls |= redirects;
                }
            }
            if redirects {
                // A host that nobody routes is still told to use TLS.
                for host in &of.server.hosts {
                    entry(&mut hosts, host.host.to_lowercase(), of.server.port).require_tls = true;
                }
            }
        }
        let virtual_hosts = match servers.first() {
            Some(first) if hosts.is_empty() => vec![nothing(first.server.port)],
            _ => translations.finish(hosts),
        };
        (virtual_hosts, translations.findings)
    }

    fn bound(&mut self, gateway: &ObjectName) -> Rc<BoundRules<'a>> {
        let known = self.rules.entry(gateway.clone());
        known
            .or_insert_with(|| Rc::new(BoundRules::new(self.scope.virtual_services_of(gateway))))
            .clone()
    }
}

impl<'a> BoundRules<'a> {
    fn new(list: Vec<&'a Arc<VirtualService>>) -> BoundRules<'a> {
        let list: Vec<&VirtualService> = list.into_iter().map(|rules| &**rules).collect();
        let hosts = HostIndex::new(
            list.iter().enumerate().flat_map(|(i, rules)| rules.hosts.iter().map(move |h| (i, h))),
        );
        BoundRules { list, hosts }
    }

    /// The VirtualServices that share a host with a server, each with the hosts that they share: of
    /// two that overlap the more specific one, in lower case and order of the VirtualService.
    fn claims(&self, server: &[ServerHost]) -> Vec<(&'a VirtualService, Vec<Hostname>)> {
        let mut claims: BTreeMap<usize, Vec<Hostname>> = BTreeMap::new();
        let mut seen: HashSet<(usize, Hostname)> = HashSet::new();
        for served in server {
            for position in self.hosts.overlapping(&served.host) {
                let rules = self.list[position];
                let namespace = &rules.origin.name.namespace;
                if served.namespace.as_ref().is_some_and(|only| only != namespace) {
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

/// The VirtualServices of one route configuration, each translated once.
#[derive(Default)]
struct Translations<'a> {
    by_key: HashMap<TranslationKey<'a>, Option<usize>>,
    routes: Vec<Vec<proto::Route>>,
    findings: Vec<Diagnostic>,
}

impl<'a> Translations<'a> {
    /// The position of a translation; `None` when the VirtualService has no routes here.
    fn get(
        &mut self,
        scope: &Scope<'a>,
        of: GatewayServer<'a>,
        rules: &'a VirtualService,
    ) -> Option<usize> {
        let Translations { by_key, routes, findings } = self;
        let scheme = scheme(of);
        let key = TranslationKey {
            gateway: &of.gateway.origin.name,
            rules: &rules.origin.name,
            port: of.server.port,
            scheme,
        };
        *by_key.entry(key).or_insert_with(|| {
            let place = Place {
                scope,
                gateway: GatewayRef::Gateway(of.gateway.origin.name.clone()),
                listen_port: of.server.port,
                scheme,
                registry: Registry::Gateway(&rules.origin.name.namespace),
            };
            let made = route::routes(&place, rules, &mut |finding| findings.push(finding));
            if made.is_empty() {
                return None;
            }
            routes.push(made);
            Some(routes.len() - 1)
        })
    }

    /// The virtual hosts. Hosts of one VirtualService share one, named after the most specific.
    fn finish(&self, hosts: BTreeMap<Hostname, Host>) -> Vec<proto::VirtualHost> {
        let mut hosts: Vec<(Hostname, Host)> = hosts.into_iter().collect();
        hosts.sort_by(|(a, _), (b, _)| Hostname::by_specificity(a, b));
        let mut shared: HashMap<(usize, bool), usize> = HashMap::new();
        let mut made: Vec<proto::VirtualHost> = Vec::new();
        for (domain, host) in hosts {
            let domain = names::domain(&domain);
            if let [only] = host.translations[..] {
                let key = (only, host.require_tls);
                if let Some(&position) = shared.get(&key) {
                    made[position].domains.push(domain);
                    continue;
                }
                shared.insert(key, made.len());
            }
            let routes = host.translations.iter().flat_map(|&t| self.routes[t].iter().cloned());
            let (last, first): (Vec<_>, Vec<_>) = routes.partition(route::is_catch_all);
            let routes = first.into_iter().chain(last).collect();
            let mut virtual_host = route::virtual_host(host.name, vec![domain], routes);
            if host.require_tls {
                virtual_host.require_tls = proto::virtual_host::TlsRequirementType::All.into();
            }
            made.push(virtual_host);
        }
        made.sort_by(|a, b| a.name.cmp(&b.name));
        made
    }
}

fn entry(hosts: &mut BTreeMap<Hostname, Host>, host: Hostname, port: u16) -> &mut Host {
    let name = names::virtual_host(&host, port);
    hosts.entry(host).or_insert(Host { name, translations: Vec::new(), require_tls: false })
}

/// What a server without any rules answers: 404 to everything.
fn nothing(port: u16) -> proto::VirtualHost {
    let name = names::virtual_host("blackhole", port);
    route::virtual_host(name, vec!["*".to_owned()], Vec::new())
}

/// What clients of a server speak. A plain HTTP server may have TLS settings, which only redirect.
fn scheme(of: GatewayServer<'_>) -> Scheme {
    if of.server.protocol.is_http() { Scheme::Http } else { Scheme::Https }
}

#[cfg(test)]
mod tests;
