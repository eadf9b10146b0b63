//! From what was agreed on to listeners: what is not said by any service or rule is put in, and the
//! listener that catches redirected connections and hands them over.

use super::Share;
use crate::generate::filters::Extra;
use crate::generate::plan::Because;
use crate::generate::plan::listener::{
    Builder, Chain, ChainMatch, Does, Draft, Intake, Listener, TcpProxy, inspectors,
};
use crate::generate::{Direction, Scope, names};
use crate::model::OutboundMode;
use crate::proxy::Interception;
use std::time::Duration;

/// Completes egress listeners.
pub(super) struct Finish<'s, 'a> {
    scope: &'s Scope<'a>,
    builder: Builder<'a>,
}

impl<'s, 'a> Finish<'s, 'a> {
    pub fn new(scope: &'s Scope<'a>, builder: Builder<'a>) -> Finish<'s, 'a> {
        Finish { scope, builder }
    }

    /// What the filters of all chains brought.
    pub fn into_extra(self) -> Extra {
        self.builder.extra
    }

    /// The listener that redirected connections come to. With `use_original_dst` Envoy hands those
    /// that have a listener of their own (same address and port, or the wildcard with that port)
    /// over to it; the others go where unknown traffic goes.
    pub fn capture(&mut self) -> Option<Listener> {
        let transparent = match self.scope.view.interception() {
            Interception::None => return None,
            Interception::Redirect => false,
            Interception::Tproxy => true,
        };
        let port = self.scope.mesh().proxy_listen_port;
        let name = "virtualOutbound".to_owned();
        let because = Because::always("traffic interception");
        let to_itself = ChainMatch { destination_port: Some(port), ..ChainMatch::default() };
        let black_hole = Draft::new(to_itself, Does::Tcp(TcpProxy::black_hole()), because.clone());
        let unknown = Draft::new(ChainMatch::default(), self.captured_unknown(), self.policy());
        let drafts = [
            black_hole.named("virtualOutbound-blackhole"),
            unknown.named("virtualOutbound-catchall-tcp"),
        ];
        let chains = drafts.map(|draft| self.builder.chain(&name, port, draft)).into();
        Some(Listener {
            name,
            bind: self.scope.view.ip_mode().wildcard().to_owned(),
            port,
            intake: Intake::Redirected { transparent, hands_over: true },
            direction: Direction::Outbound,
            filters: Vec::new(),
            filters_timeout: None,
            chains,
            default_chain: None,
            access_log: self.builder.defaults.access_log.clone(),
            because,
        })
    }

    /// The listener of what shares an address.
    pub fn listener(&mut self, share: Share) -> Listener {
        let Share { bind, port, binds, chains, because } = share;
        let name = names::listener(&bind, port);
        let mut chains: Vec<Chain> =
            chains.into_iter().map(|draft| self.builder.chain(&name, port, draft)).collect();
        let filters = inspectors(&chains);
        let sniffs_http = chains.iter().any(|chain| chain.matches.needs_http_inspector());
        let default_chain = self.default_chain(&mut chains, binds, &name, port);
        Listener {
            name,
            bind,
            port,
            intake: if binds { Intake::Dialled } else { Intake::HandedOver },
            direction: Direction::Outbound,
            filters,
            filters_timeout: Some(match sniffs_http {
                true => self.scope.mesh().protocol_detection_timeout,
                false => Duration::ZERO,
            }),
            chains,
            default_chain,
            access_log: None,
            because,
        }
    }

    /// What takes the connections that no chain with a condition takes: the match-all chain, which
    /// stays in the list when it is alone, else the way of unknown traffic.
    fn default_chain(
        &mut self,
        chains: &mut Vec<Chain>,
        binds: bool,
        listener: &str,
        port: u16,
    ) -> Option<Chain> {
        if let Some(position) = chains.iter().position(|c| c.matches.is_match_all()) {
            return (chains.len() > 1).then(|| chains.remove(position));
        }
        let unknown = match binds {
            true => self.bound_unknown()?,
            false => self.captured_unknown(),
        };
        let draft = Draft::new(ChainMatch::default(), unknown, self.policy());
        Some(self.builder.chain(listener, port, draft.named("PassthroughFilterChain")))
    }

    /// Where connections go that no service has.
    fn captured_unknown(&self) -> Does {
        let cluster =
            self.egress_proxy().unwrap_or_else(|| match self.scope.world.outbound_policy().mode {
                OutboundMode::AllowAny => names::PASSTHROUGH.to_owned(),
                OutboundMode::RegistryOnly => names::BLACK_HOLE.to_owned(),
            });
        Does::Tcp(TcpProxy::to_cluster(&self.builder.defaults, cluster))
    }

    /// The same on a listener that binds: there is no original destination to go to (Envoy resets
    /// what an ORIGINAL_DST cluster has no address for), so without an egress proxy such
    /// connections are refused.
    fn bound_unknown(&self) -> Option<Does> {
        let cluster = self.egress_proxy()?;
        Some(Does::Tcp(TcpProxy::to_cluster(&self.builder.defaults, cluster)))
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

    /// Why unknown traffic goes where it goes.
    fn policy(&self) -> Because {
        const REASON: &str = "the policy for unknown destinations";
        let sidecar = self.scope.world.sidecar.as_ref();
        match sidecar.filter(|sidecar| sidecar.outbound_traffic_policy.is_some()) {
            Some(sidecar) => Because::of(REASON, &sidecar.origin, &sidecar.origin.span),
            None => Because::always(REASON),
        }
    }
}
