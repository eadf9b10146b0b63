//! What a sidecar's workload gets: the listener of redirected connections with chains for each
//! port, and listeners that bind where nothing is redirected.
//!
//! No workload identity is issued, so mutual TLS inside the mesh is not spoken, and every port is
//! served as Istio serves it under PeerAuthentication mode DISABLE: as it comes.

use super::{
    Builder, ChainMatch, Does, Draft, HttpWish, InlineRoutes, Intake, Listener, ListenerFilter,
    Routes, TcpProxy, TlsTermination, Transport, Unusable, inspectors,
};
use crate::diag::{Code, Diagnostic};
use crate::generate::filters::{Extra, Ground, Side};
use crate::generate::plan::Because;
use crate::generate::plan::secret::Secret;
use crate::generate::targets::{InboundSite, Ingress, ServiceTarget, by_target_port};
use crate::generate::{Direction, Viewer, names};
use crate::model::{CaptureMode, IngressListener, Protocol, Secrets, Sidecar};
use crate::proxy::Interception;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The inbound listeners of one sidecar.
#[derive(Debug)]
pub struct InboundPlan {
    /// The listeners: that of redirected connections, then those that bind.
    pub listeners: Vec<Listener>,
    /// The secrets that they name.
    pub secrets: Vec<Secret>,
    /// What their filters need.
    pub extra: Extra,
    /// What could not be served, and why.
    pub findings: Vec<Diagnostic>,
}

/// Plans the inbound listeners of a sidecar.
pub fn plan(site: &InboundSite<'_>) -> InboundPlan {
    let mut inbound = Inbound {
        site: *site,
        builder: Builder::new(Ground::Own(*site), Side::Inbound),
        secrets: Vec::new(),
        findings: Vec::new(),
        captured: Vec::new(),
        bound: Vec::new(),
    };
    match site.workload.ingress() {
        Some((sidecar, listeners, ingress)) => inbound.ingress(sidecar, listeners, ingress),
        None => inbound.services(),
    }
    let mut listeners: Vec<Listener> = inbound.capture().into_iter().collect();
    let Inbound { builder, secrets, findings, bound, .. } = inbound;
    listeners.extend(bound);
    InboundPlan { listeners, secrets, extra: builder.extra, findings }
}

/// One port that the workload serves.
struct InboundPort {
    /// Where the workload is meant to be reached, and where the proxy sends to.
    target: u16,
    /// What clients dial.
    port: u16,
    /// The host that the operation is named after.
    host: String,
    protocol: Protocol,
    /// TLS that ends at the proxy.
    tls: Option<TlsTermination>,
    /// The metadata that names its document.
    document: Option<String>,
    because: Because,
}

struct Inbound<'s> {
    site: InboundSite<'s>,
    builder: Builder<'s>,
    secrets: Vec<Secret>,
    findings: Vec<Diagnostic>,
    /// Chains of the capture listener, port by port.
    captured: Vec<(u16, Vec<Draft>)>,
    /// Listeners that bind.
    bound: Vec<Listener>,
}

impl<'s> Inbound<'s> {
    /// Every port that services have on this workload, unless nothing is intercepted: then the
    /// workload has its ports to itself.
    fn services(&mut self) {
        if self.site.view.interception() == Interception::None {
            return;
        }
        for (target_port, targets) in by_target_port(&self.site.workload.targets) {
            let Some(first) = targets.first() else { continue };
            for other in &targets[1..] {
                self.conflict(first, other);
            }
            let port = InboundPort {
                target: target_port,
                port: first.port().number,
                host: first.service().hostname.to_string(),
                protocol: first.port().protocol,
                tls: None,
                document: None,
                because: Because::of("a service port", &first.service().origin, &first.port().span),
            };
            let chains = self.drafts(&port, self.site.view.ip_mode().wildcard());
            self.captured.push((target_port, chains));
        }
    }

    /// Two services may describe one port of a workload; only if they disagree it matters.
    fn conflict(&mut self, first: &ServiceTarget, other: &ServiceTarget) {
        if first.port().protocol == other.port().protocol
            || first.service().hostname == other.service().hostname
        {
            return;
        }
        let spoken = |protocol: Protocol| match protocol {
            Protocol::Auto => "an unknown protocol",
            known => known.as_str(),
        };
        let message = format!(
            "port {} of the workload is served as {} of {}, not as {}",
            first.target_port,
            spoken(first.port().protocol),
            first.service().hostname,
            spoken(other.port().protocol)
        );
        let origin = &other.service().origin;
        let finding = origin
            .diagnostic_at(&other.port().span, Code::ListenerConflict, message)
            .help("declare the same protocol in both services")
            .related(first.port().span.clone(), "the port that is served");
        self.findings.push(finding);
    }

    /// The ingress listeners of a Sidecar replace what services say.
    fn ingress(
        &mut self,
        sidecar: &'s Sidecar,
        listeners: &'s [IngressListener],
        site: &'s Ingress,
    ) {
        let view = self.site.view;
        let mut taken = site.taken().clone();
        for ingress in listeners {
            let Some(port) = self.ingress_port(sidecar, ingress, site.secrets()) else { continue };
            let intercepted = view.interception() != Interception::None;
            let binds = match ingress.capture_mode {
                CaptureMode::None => true,
                CaptureMode::Default => !intercepted,
                CaptureMode::Iptables => false,
            };
            if !binds && !intercepted {
                let message = format!(
                    "ingress port {} gets no listener: captureMode IPTABLES needs a proxy whose \
                     traffic is intercepted",
                    ingress.port.number
                );
                self.findings.push(sidecar.origin.diagnostic_at(
                    &ingress.span,
                    Code::NoEffect,
                    message,
                ));
                continue;
            }
            if !binds {
                let chains = self.drafts(&port, self.site.view.ip_mode().wildcard());
                self.captured.push((port.target, chains));
                continue;
            }
            let bind = ingress
                .bind
                .as_deref()
                .map_or_else(|| own_address(view, &site.addresses), str::to_owned);
            let place = (bind, ingress.port.number);
            if !taken.insert(place.clone()) {
                let message = format!(
                    "ingress port {} gets no listener: {} is that of another listener",
                    place.1,
                    names::listener(&place.0, place.1)
                );
                let finding = sidecar
                    .origin
                    .diagnostic_at(&ingress.span, Code::ListenerConflict, message)
                    .help("set bind to an address that no outbound listener has");
                self.findings.push(finding);
                continue;
            }
            if view.options().unprivileged && (1..1024).contains(&place.1) {
                let message =
                    format!("ingress port {} gets no listener: the proxy may not bind it", place.1);
                self.findings.push(sidecar.origin.diagnostic_at(
                    &ingress.span,
                    Code::PrivilegedPort,
                    message,
                ));
                continue;
            }
            let chains = self.drafts(&port, &place.0);
            let listener = self.bound_listener(place, chains, port.because);
            self.bound.push(listener);
        }
        self.captured.sort_by_key(|(port, _)| *port);
    }

    fn ingress_port(
        &mut self,
        sidecar: &Sidecar,
        ingress: &IngressListener,
        secrets: &Secrets,
    ) -> Option<InboundPort> {
        let tls = ingress.tls.as_ref().filter(|tls| tls.mode.terminates());
        let proxy = self.site.view.namespace();
        let defaults = &self.site.mesh().tls_defaults;
        let termination = |tls| TlsTermination::of(secrets, proxy, &sidecar.origin, tls, defaults);
        let tls = match tls.map(termination).transpose() {
            Ok(tls) => tls,
            Err(Unusable::Credential) => return None,
            Err(Unusable::Settings(finding)) => {
                self.findings.push(*finding);
                return None;
            }
        };
        let (tls, secrets) = tls.unzip();
        self.secrets.extend(secrets.into_iter().flatten());
        let name = &sidecar.origin.name;
        Some(InboundPort {
            target: ingress.port.number,
            port: ingress.port.number,
            host: format!("{}.{}", name.name, name.namespace),
            protocol: match (ingress.port.protocol, &tls) {
                // What is inside the TLS that ends here.
                (Protocol::Https, Some(_)) => Protocol::Http,
                (Protocol::Tls, Some(_)) => Protocol::Tcp,
                (protocol, _) => protocol,
            },
            tls,
            document: Some(names::config_path("sidecar", &name.namespace, &name.name)),
            because: Because::of("a Sidecar's ingress listener", &sidecar.origin, &ingress.span),
        })
    }

    /// The chains of one port.
    fn drafts(&self, port: &InboundPort, bind: &str) -> Vec<Draft> {
        let name = names::listener(bind, port.target);
        let draft = |matches, does| {
            Draft::new(matches, does, port.because.clone())
                .named(name.clone())
                .ending(port.tls.clone())
                .documented(port.document.clone())
        };
        let transport = match port.tls {
            Some(_) => Transport::Tls,
            None => Transport::Plain,
        };
        let matches = ChainMatch {
            destination_port: Some(port.target),
            transport: Some(transport),
            ..ChainMatch::default()
        };
        if port.protocol.is_http() {
            return vec![draft(matches, http(port, &name))];
        }
        let mut drafts = Vec::new();
        if port.protocol == Protocol::Auto && port.tls.is_none() {
            let application_protocols = self.builder.defaults.plain_http();
            let matches = ChainMatch { application_protocols, ..matches.clone() };
            drafts.push(draft(matches, http(port, &name)));
        }
        drafts.push(draft(matches, self.tcp(port)));
        drafts
    }

    fn tcp(&self, port: &InboundPort) -> Does {
        let cluster = names::inbound_cluster(port.target);
        let proxy = TcpProxy::to_cluster(&self.builder.defaults, cluster);
        Does::Tcp(proxy.speaking(port.protocol))
    }

    /// The listener that redirected connections come to.
    fn capture(&mut self) -> Option<Listener> {
        let transparent = match self.site.view.interception() {
            Interception::None => return None,
            Interception::Redirect => false,
            Interception::Tproxy => true,
        };
        let port = self.site.mesh().proxy_inbound_listen_port;
        let name = "virtualInbound".to_owned();
        let because = Because::always("traffic interception");
        let to_itself = ChainMatch { destination_port: Some(port), ..ChainMatch::default() };
        let black_hole = Draft::new(to_itself, Does::Tcp(TcpProxy::black_hole()), because.clone());
        let mut drafts = vec![(port, black_hole.named("virtualInbound-blackhole"))];
        drafts.extend(self.unknown_ports(&because).map(|draft| (port, draft)));
        let mut tls_ports = BTreeSet::new();
        let mut declared_ports = BTreeSet::new();
        for (port, of_port) in std::mem::take(&mut self.captured) {
            if of_port.iter().any(|draft| draft.matches.needs_tls_inspector()) {
                tls_ports.insert(port);
            }
            if !of_port.iter().any(|draft| draft.matches.needs_http_inspector()) {
                declared_ports.insert(port);
            }
            drafts.extend(of_port.into_iter().map(|draft| (port, draft)));
        }
        let mut filters = vec![ListenerFilter::OriginalDestination];
        if transparent {
            filters.push(ListenerFilter::OriginalSource);
        }
        // Each inspector looks only at the ports that need it: it delays protocols in which the
        // server speaks first.
        if !tls_ports.is_empty() {
            filters.push(ListenerFilter::TlsInspector { only: tls_ports });
        }
        filters.push(ListenerFilter::HttpInspector { except: declared_ports });
        let chains = drafts.into_iter().map(|(port, d)| self.builder.chain(&name, port, d));
        let chains = chains.collect();
        Some(Listener {
            name,
            bind: self.site.view.ip_mode().wildcard().to_owned(),
            port,
            intake: Intake::Redirected { transparent, hands_over: false },
            filters,
            chains,
            ..self.listener(because)
        })
    }

    /// Ports that no service and no ingress names: they are passed on as they are.
    fn unknown_ports(&self, because: &Because) -> [Draft; 2] {
        let plain = ChainMatch { transport: Some(Transport::Plain), ..ChainMatch::default() };
        let application_protocols = self.builder.defaults.plain_http();
        let http = ChainMatch { application_protocols, ..plain.clone() };
        let cluster = names::INBOUND_PASSTHROUGH.to_owned();
        let serve = Does::Http(HttpWish {
            stat_prefix: format!("{cluster};"),
            protocol: Protocol::Auto,
            routes: routes(cluster.clone(), 0, ":0/*".to_owned(), Protocol::Auto),
        });
        let pass_on = Does::Tcp(TcpProxy::to_cluster(&self.builder.defaults, cluster));
        [
            Draft::new(http, serve, because.clone()).named("virtualInbound-catchall-http"),
            Draft::new(plain, pass_on, because.clone()).named("virtualInbound"),
        ]
    }

    fn bound_listener(
        &mut self,
        (bind, port): (String, u16),
        drafts: Vec<Draft>,
        because: Because,
    ) -> Listener {
        let name = names::listener(&bind, port);
        let chains: Vec<_> =
            drafts.into_iter().map(|draft| self.builder.chain(&name, port, draft)).collect();
        Listener {
            name,
            bind,
            port,
            filters: inspectors(&chains),
            chains,
            ..self.listener(because)
        }
    }

    /// What holds for every inbound listener.
    fn listener(&self, because: Because) -> Listener {
        Listener {
            name: String::new(),
            bind: String::new(),
            port: 0,
            intake: Intake::Dialled,
            direction: Direction::Inbound,
            filters: Vec::new(),
            filters_timeout: Some(self.site.mesh().protocol_detection_timeout),
            chains: Vec::new(),
            default_chain: None,
            access_log: self.builder.defaults.access_log.clone(),
            because,
        }
    }
}

fn http(port: &InboundPort, chain: &str) -> Does {
    let operation = format!("{}:{}/*", port.host, port.port);
    let cluster = names::inbound_cluster(port.target);
    Does::Http(HttpWish {
        stat_prefix: format!("inbound_{chain};"),
        protocol: port.protocol,
        routes: routes(cluster, port.port, operation, port.protocol),
    })
}

/// Everything goes to the workload; VirtualServices have no say here.
fn routes(cluster: String, port: u16, operation: String, protocol: Protocol) -> Routes {
    Routes::Inline(InlineRoutes {
        cluster,
        virtual_host: format!("inbound|http|{port}"),
        operation,
        retries: match protocol {
            // A gRPC client decides itself what may be repeated.
            Protocol::Grpc | Protocol::GrpcWeb => false,
            _ => true,
        },
    })
}

/// The proxy's address that others reach, else all addresses.
fn own_address(view: &Viewer<'_>, addresses: &[IpAddr]) -> String {
    let reachable = |ip: &&IpAddr| {
        let local = match ip {
            IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        };
        !(ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || local)
    };
    let found = addresses.iter().find(reachable);
    found.map_or_else(|| view.ip_mode().wildcard().to_owned(), IpAddr::to_string)
}
