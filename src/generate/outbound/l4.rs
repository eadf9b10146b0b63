//! The TCP and TLS chains of a service port: `tcp` and `tls` rules of VirtualServices, else the
//! service itself.

use super::{ChainAction, Place, PlannedChain, Request};
use crate::generate::Scope;
use crate::generate::host_index::HostIndex;
use crate::generate::listener::matches::ChainMatch;
use crate::generate::listener::tcp::TcpRoute;
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

    /// The chains of a service port at a place.
    pub fn chains(
        &self,
        scope: &Scope<'a>,
        request: &Request<'a>,
        place: &Place,
    ) -> Vec<PlannedChain<'a>> {
        let rules = self.of(&request.service().hostname);
        let build = Build { scope, request, place };
        match request.protocol.is_tls() {
            true => build.tls(&rules),
            false => build.tcp(&rules),
        }
    }
}

struct Build<'b, 'a> {
    scope: &'b Scope<'a>,
    request: &'b Request<'a>,
    place: &'b Place,
}

impl<'a> Build<'_, 'a> {
    fn tls(&self, rules: &[&'a VirtualService]) -> Vec<PlannedChain<'a>> {
        let mut chains: Vec<PlannedChain<'a>> = Vec::new();
        for rule in rules {
            for tls in rule.tls.iter().filter(|tls| !tls.destinations.is_empty()) {
                for wanted in tls.matches.iter().filter(|m| self.applies(&m.l4)) {
                    let subnets = self.subnets(&wanted.l4).unwrap_or(&self.place.networks);
                    let matches = ChainMatch::default()
                        .with_server_names(wanted.sni_hosts.iter().map(Hostname::as_str))
                        .with_destinations(subnets);
                    // A later match of the very same connections is never reached.
                    if chains.iter().all(|chain| chain.matches != matches) {
                        chains.push(PlannedChain { matches, action: self.tls_rule(rule, tls) });
                    }
                }
            }
        }
        if chains.is_empty() {
            let mut matches = ChainMatch::default().with_destinations(&self.place.networks);
            // A service with an address of its own needs no SNI to be told apart.
            if !self.place.own {
                matches = matches.with_server_names([self.request.service().hostname.as_str()]);
            }
            chains.push(PlannedChain { matches, action: self.service() });
        }
        chains
    }

    fn tcp(&self, rules: &[&'a VirtualService]) -> Vec<PlannedChain<'a>> {
        let mut chains = Vec::new();
        let networks = &self.place.networks;
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
                chains.push(PlannedChain { matches, action: self.tcp_rule(rule, tcp, true) });
                return chains;
            }
            if !collected.is_empty() {
                let matches = ChainMatch::default().with_destinations(&collected);
                default_is_taken |= matches.destinations
                    == ChainMatch::default().with_destinations(networks).destinations;
                chains.push(PlannedChain { matches, action: self.tcp_rule(rule, tcp, false) });
            }
        }
        if !default_is_taken {
            let matches = ChainMatch::default().with_destinations(networks);
            chains.push(PlannedChain { matches, action: self.service() });
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

    fn service(&self) -> ChainAction<'a> {
        let Request { protocol, .. } = *self.request;
        ChainAction::Tcp(TcpRoute::to_service(
            self.scope,
            self.request.service(),
            self.request.target_port(),
            protocol,
        ))
    }

    fn tls_rule(&self, rule: &'a VirtualService, tls: &'a TlsRule) -> ChainAction<'a> {
        let route = TcpRoute::of_rule(self.scope, rule, &tls.destinations, self.request.port);
        ChainAction::Tcp(TcpRoute { documented: true, ..route })
    }

    fn tcp_rule(
        &self,
        rule: &'a VirtualService,
        tcp: &'a TcpRule,
        documented: bool,
    ) -> ChainAction<'a> {
        let route = TcpRoute::of_rule(self.scope, rule, &tcp.destinations, self.request.port);
        let protocol = match self.request.protocol {
            Protocol::Auto => Protocol::Tcp,
            protocol => protocol,
        };
        ChainAction::Tcp(TcpRoute { documented, protocol, ..route })
    }
}
