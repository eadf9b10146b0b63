//! What a sidecar's workload sends: the planned listeners, and the one that catches redirected
//! connections and hands them over.

use super::hcm::{Manager, Place, Routes};
use super::matches::ChainMatch;
use super::tcp::TcpRoute;
use super::{Chain, Writer, address, http_inspector, tls_inspector};
use crate::generate::outbound::{ChainAction, OutboundPlan, PlannedChain, PlannedListener};
use crate::generate::{Scope, names};
use crate::model::OutboundMode;
use crate::proxy::{Interception, Role};
use crate::xds::pb::{self, core, listener};
use std::time::Duration;

/// The outbound listeners of a sidecar, as planned.
pub fn outbound_listeners(
    scope: &Scope<'_>,
    planned: &OutboundPlan<'_>,
) -> Vec<listener::Listener> {
    match scope.view.role() {
        Role::Router => return Vec::new(),
        Role::Sidecar => {}
    }
    let outbound = Outbound { scope: *scope, writer: Writer::new(scope.mesh(), scope.view) };
    let mut listeners = Vec::with_capacity(planned.listeners.len() + 1);
    listeners.extend(outbound.capture());
    listeners.extend(planned.listeners.iter().map(|l| outbound.planned(l)));
    listeners
}

struct Outbound<'s> {
    scope: Scope<'s>,
    writer: Writer<'s>,
}

impl Outbound<'_> {
    /// The listener that redirected connections come to. With `use_original_dst` Envoy hands those
    /// that have a listener of their own (same address and port, or the wildcard with that port)
    /// over to it; the others go where unknown traffic goes.
    fn capture(&self) -> Option<listener::Listener> {
        let transparent = match self.scope.view.interception() {
            Interception::None => return None,
            Interception::Redirect => None,
            Interception::Tproxy => Some(pb::bool_value(true)),
        };
        let port = self.scope.mesh().proxy_listen_port;
        let to_itself = ChainMatch { destination_port: Some(port), ..ChainMatch::default() };
        let chains = [
            Chain::new("virtualOutbound-blackhole", to_itself, self.writer.black_hole()),
            Chain::new(
                "virtualOutbound-catchall-tcp",
                ChainMatch::default(),
                self.writer.tcp_filters(&self.captured_unknown()),
            ),
        ];
        Some(listener::Listener {
            name: "virtualOutbound".to_owned(),
            address: Some(address(self.scope.view.ip_mode().wildcard(), port)),
            transparent,
            use_original_dst: Some(pb::bool_value(true)),
            filter_chains: chains.into_iter().map(|chain| chain.timed().proto).collect(),
            traffic_direction: core::TrafficDirection::Outbound.into(),
            max_connections_to_accept_per_socket_event: Some(pb::u32_value(1)),
            access_log: self.writer.listener_access_log.clone(),
            ..Default::default()
        })
    }

    /// Where connections go that no service has.
    fn captured_unknown(&self) -> TcpRoute<'static> {
        TcpRoute::to_cluster(self.egress_proxy().unwrap_or_else(|| {
            match self.scope.world.outbound_policy().mode {
                OutboundMode::AllowAny => names::PASSTHROUGH.to_owned(),
                OutboundMode::RegistryOnly => names::BLACK_HOLE.to_owned(),
            }
        }))
    }

    /// The same on a listener that binds: there is no original destination to go to (Envoy resets
    /// what an ORIGINAL_DST cluster has no address for), so without an egress proxy such
    /// connections are refused.
    fn bound_unknown(&self) -> Option<TcpRoute<'static>> {
        self.egress_proxy().map(TcpRoute::to_cluster)
    }

    fn egress_proxy(&self) -> Option<String> {
        let policy = self.scope.world.outbound_policy();
        match policy.mode {
            OutboundMode::RegistryOnly => None,
            OutboundMode::AllowAny => policy.egress_proxy.as_ref().map(|proxy| {
                let port = proxy.port.unwrap_or_default();
                names::outbound_cluster(port, &proxy.subset, &proxy.host)
            }),
        }
    }

    fn planned(&self, planned: &PlannedListener<'_>) -> listener::Listener {
        let name = names::listener(&planned.bind, planned.port);
        let mut chains: Vec<Chain> =
            planned.chains.iter().map(|chain| self.chain(chain, &name)).collect();
        let sniffs_tls = chains.iter().any(Chain::needs_tls_inspector);
        let sniffs_http = chains.iter().any(Chain::needs_http_inspector);
        let mut listener_filters = Vec::new();
        if sniffs_tls {
            listener_filters.push(tls_inspector());
        }
        if sniffs_http {
            listener_filters.push(http_inspector());
        }
        let default = self.default_chain(&mut chains, planned.binds);
        listener::Listener {
            name,
            address: Some(address(&planned.bind, planned.port)),
            filter_chains: chains.into_iter().map(|chain| chain.proto).collect(),
            default_filter_chain: default.map(|chain| chain.proto),
            listener_filters,
            listener_filters_timeout: Some(match sniffs_http {
                true => self.writer.detection_timeout(),
                false => pb::duration(Duration::ZERO),
            }),
            continue_on_listener_filters_timeout: true,
            traffic_direction: core::TrafficDirection::Outbound.into(),
            bind_to_port: (!planned.binds).then(|| pb::bool_value(false)),
            max_connections_to_accept_per_socket_event: planned.binds.then(|| pb::u32_value(1)),
            ..Default::default()
        }
    }

    /// What takes the connections that no chain with a condition takes: the match-all chain, which
    /// stays in the list when it is alone, else the way of unknown traffic.
    fn default_chain(&self, chains: &mut Vec<Chain>, binds: bool) -> Option<Chain> {
        if let Some(position) = chains.iter().position(|c| c.matches.is_match_all()) {
            return (chains.len() > 1).then(|| chains.remove(position));
        }
        let unknown = match binds {
            true => self.bound_unknown()?,
            false => self.captured_unknown(),
        };
        let filters = self.writer.tcp_filters(&unknown);
        Some(Chain::new("PassthroughFilterChain", ChainMatch::default(), filters).timed())
    }

    fn chain(&self, planned: &PlannedChain<'_>, listener: &str) -> Chain {
        let filters = match &planned.action {
            ChainAction::Http { route, protocol } => self.writer.http_filters(Manager {
                place: Place::Outbound,
                stat_prefix: format!("outbound_{listener};"),
                protocol: *protocol,
                routes: Routes::Named(route.clone()),
            }),
            ChainAction::Tcp(route) => self.writer.tcp_filters(route),
        };
        let mut chain = Chain::new("", planned.matches.clone(), filters).timed();
        if let ChainAction::Tcp(TcpRoute { rule: Some(rule), documented: true, .. }) =
            &planned.action
        {
            let name = &rule.origin.name;
            let path = names::config_path("virtual-service", &name.namespace, &name.name);
            chain.proto.metadata = Some(super::config_metadata(path));
        }
        chain
    }
}
