//! The TCP and TLS chains of a service port: `tcp` and `tls` rules of VirtualServices, else the
//! service itself.

use super::{Request, Spot};
use crate::diag::Span;
use crate::generate::host_index::HostIndex;
use crate::generate::plan::Because;
use crate::generate::plan::listener::{ChainMatch, Does, Draft, ListenerDefaults, TcpProxy};
use crate::generate::{Scope, names};
use crate::model::{GatewayRef, Hostname, L4Match, Protocol, TcpRule, TlsRule, VirtualService};
use ipnet::IpNet;
use std::sync::Arc;

/// The VirtualServices of an egress listener that have `tcp` or `tls` rules, by host.
pub(super) struct L4Rules<'a> {
    rules: Vec<&'a VirtualService>,
    by_host: HostIndex,
}

impl<'a> L4Rules<'a> {
    /// The index of these VirtualServices.
    pub fn new(all: &'a [Arc<VirtualService>]) -> L4Rules<'a> {
        let rules: Vec<&VirtualService> =
            all.iter().map(|v| &**v).filter(|v| !v.tcp.is_empty() || !v.tls.is_empty()).collect();
        let hosts = rules.iter().enumerate().flat_map(|(i, v)| v.hosts.iter().map(move |h| (i, h)));
        L4Rules { by_host: HostIndex::new(hosts), rules }
    }

    /// Those with a host that overlaps a service's, in precedence order.
    fn of(&self, host: &Hostname) -> Vec<&'a VirtualService> {
        self.by_host.overlapping(host).into_iter().map(|position| self.rules[position]).collect()
    }

    /// The chains of a service port at a spot.
    pub fn chains(
        &self,
        scope: &Scope<'a>,
        defaults: &ListenerDefaults<'a>,
        request: &Request<'a>,
        spot: &Spot,
    ) -> Vec<Draft> {
        let rules = self.of(&request.service().hostname);
        let build = Build { scope, defaults, request, spot };
        match request.protocol.is_tls() {
            true => build.tls(&rules),
            false => build.tcp(&rules),
        }
    }
}

struct Build<'b, 'a> {
    scope: &'b Scope<'a>,
    defaults: &'b ListenerDefaults<'a>,
    request: &'b Request<'a>,
    spot: &'b Spot,
}

impl<'a> Build<'_, 'a> {
    fn tls(&self, rules: &[&'a VirtualService]) -> Vec<Draft> {
        let mut chains: Vec<Draft> = Vec::new();
        for rule in rules {
            for tls in rule.tls.iter().filter(|tls| !tls.destinations.is_empty()) {
                for wanted in tls.matches.iter().filter(|m| self.applies(&m.l4)) {
                    let subnets = self.subnets(&wanted.l4).unwrap_or(&self.spot.networks);
                    let matches = ChainMatch::default()
                        .with_server_names(wanted.sni_hosts.iter().map(Hostname::as_str))
                        .with_destinations(subnets);
                    // A later match of the very same connections is never reached.
                    if chains.iter().all(|chain| chain.matches != matches) {
                        chains.push(self.tls_rule(matches, rule, tls, &wanted.l4.span));
                    }
                }
            }
        }
        if chains.is_empty() {
            let mut matches = ChainMatch::default().with_destinations(&self.spot.networks);
            // A service with an address of its own needs no SNI to be told apart.
            if !self.spot.own {
                matches = matches.with_server_names([self.request.service().hostname.as_str()]);
            }
            chains.push(self.service(matches));
        }
        chains
    }

    fn tcp(&self, rules: &[&'a VirtualService]) -> Vec<Draft> {
        let mut chains = Vec::new();
        let networks = &self.spot.networks;
        let mut default_is_taken = false;
        for (rule, tcp) in rules.iter().flat_map(|v| v.tcp.iter().map(move |tcp| (*v, tcp))) {
            if tcp.destinations.is_empty() {
                continue;
            }
            let mut collected: Vec<IpNet> = Vec::new();
            let mut terminal = tcp.matches.is_empty();
            for wanted in tcp.matches.iter().filter(|m| self.applies(m)) {
                match self.subnets(wanted) {
                    Some(subnets) => collected.extend(subnets),
                    None => {
                        terminal = true;
                        break;
                    }
                }
            }
            if terminal {
                let matches = ChainMatch::default().with_destinations(networks);
                chains.push(self.tcp_rule(matches, rule, tcp).documented(Some(path_of(rule))));
                return chains;
            }
            if !collected.is_empty() {
                let matches = ChainMatch::default().with_destinations(&collected);
                default_is_taken |= matches.destinations
                    == ChainMatch::default().with_destinations(networks).destinations;
                chains.push(self.tcp_rule(matches, rule, tcp));
            }
        }
        if !default_is_taken {
            let matches = ChainMatch::default().with_destinations(networks);
            chains.push(self.service(matches));
        }
        chains
    }

    /// Whether a match is meant for this proxy and this listener.
    fn applies(&self, wanted: &L4Match) -> bool {
        let view = self.scope.view;
        (wanted.gateways.is_empty() || wanted.gateways.contains(&GatewayRef::Mesh))
            && wanted.port.is_none_or(|port| port == self.request.port)
            && view.selected_by(&wanted.source_labels)
            && wanted.source_namespace.as_ref().is_none_or(|n| n == view.namespace())
    }

    /// The networks that a match asks for; on a socket there are none to ask for.
    fn subnets<'m>(&self, wanted: &'m L4Match) -> Option<&'m Vec<IpNet>> {
        Some(&wanted.destination_subnets).filter(|s| !s.is_empty() && self.request.port != 0)
    }

    fn service(&self, matches: ChainMatch) -> Draft {
        let proxy = TcpProxy::to_service(
            self.defaults,
            self.scope,
            self.request.service(),
            self.request.target_port(),
            self.request.protocol,
        );
        Draft::new(matches, Does::Tcp(proxy), self.request.because())
    }

    fn tls_rule(
        &self,
        matches: ChainMatch,
        rule: &VirtualService,
        tls: &TlsRule,
        span: &Span,
    ) -> Draft {
        let port = self.request.port;
        let proxy = TcpProxy::of_rule(self.defaults, self.scope, rule, &tls.destinations, port);
        let because = self.because("a TLS rule", rule, span);
        Draft::new(matches, Does::Tcp(proxy), because).documented(Some(path_of(rule)))
    }

    fn tcp_rule(&self, matches: ChainMatch, rule: &VirtualService, tcp: &TcpRule) -> Draft {
        let port = self.request.port;
        let proxy = TcpProxy::of_rule(self.defaults, self.scope, rule, &tcp.destinations, port);
        let proxy = proxy.speaking(match self.request.protocol {
            Protocol::Auto => Protocol::Tcp,
            protocol => protocol,
        });
        Draft::new(matches, Does::Tcp(proxy), self.because("a TCP rule", rule, &tcp.span))
    }

    /// A rule decides, for the port of a service.
    fn because(&self, reason: &'static str, rule: &VirtualService, span: &Span) -> Because {
        let service = self.request.service();
        let port = self.request.declared.map_or(&service.origin.span, |port| &port.span);
        Because::of(reason, &rule.origin, span).and(&service.origin, port)
    }
}

/// The path of a VirtualService in metadata.
fn path_of(rule: &VirtualService) -> String {
    let name = &rule.origin.name;
    names::config_path("virtual-service", &name.namespace, &name.name)
}
