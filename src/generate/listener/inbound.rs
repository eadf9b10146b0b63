//! What a sidecar's workload gets: the listener of redirected connections with chains for each
//! port, and listeners that bind where nothing is redirected.
//!
//! No workload identity is issued, so mutual TLS inside the mesh is not spoken, and every port is
//! served as Istio serves it under PeerAuthentication mode DISABLE: as it comes.

use super::hcm::{Manager, Place, Routes};
use super::matches::{ChainMatch, PLAIN_HTTP, PLAIN_HTTP_WITH_1_0, Transport};
use super::tcp::TcpRoute;
use super::tls::{ServerContext, Unusable};
use super::{Chain, Writer, address, destination_ports, http_inspector, not, tls_inspector};
use crate::diag::{Code, Diagnostic};
use crate::generate::targets::{InboundSite, Ingress, ServiceTarget, by_target_port};
use crate::generate::{Viewer, names};
use crate::model::{CaptureMode, IngressListener, Protocol, Secrets, Sidecar};
use crate::proxy::Interception;
use crate::xds::pb::{self, core, listener, route};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// The mark that Istio's redirection rules know the proxy's own packets by.
const TPROXY_MARK: u32 = 1337;

/// The inbound listeners of a sidecar, and what is to be said about them.
pub fn inbound_listeners(site: &InboundSite<'_>) -> (Vec<listener::Listener>, Vec<Diagnostic>) {
    let mut inbound = Inbound {
        site: *site,
        writer: Writer::new(site.mesh(), site.view),
        findings: Vec::new(),
        captured: Vec::new(),
        bound: Vec::new(),
        plain_http: match site.view.options().http10 {
            true => PLAIN_HTTP_WITH_1_0,
            false => PLAIN_HTTP,
        },
    };
    match site.workload.ingress() {
        Some((sidecar, listeners, ingress)) => inbound.ingress(sidecar, listeners, ingress),
        None => inbound.services(),
    }
    let mut listeners = Vec::new();
    listeners.extend(inbound.capture());
    listeners.append(&mut inbound.bound);
    (listeners, inbound.findings)
}

/// One port that the workload serves.
struct InboundPort<'a> {
    /// Where the workload is meant to be reached, and where the proxy sends to.
    target: u16,
    /// What clients dial.
    port: u16,
    /// The host that the operation is named after.
    host: String,
    protocol: Protocol,
    /// TLS that ends at the proxy.
    tls: Option<ServerContext<'a>>,
    /// The metadata that names its document.
    document: Option<String>,
}

struct Inbound<'s> {
    site: InboundSite<'s>,
    writer: Writer<'s>,
    findings: Vec<Diagnostic>,
    /// Chains of the capture listener, port by port.
    captured: Vec<(u16, Vec<Chain>)>,
    /// Listeners that bind.
    bound: Vec<listener::Listener>,
    plain_http: &'static [&'static str],
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
            };
            let chains = self.chains(&port, self.site.view.ip_mode().wildcard());
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
                let chains = self.chains(&port, self.site.view.ip_mode().wildcard());
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
            let chains = self.chains(&port, &place.0);
            self.bound.push(self.bound_listener(&place.0, place.1, chains));
        }
        self.captured.sort_by_key(|(port, _)| *port);
    }

    fn ingress_port(
        &mut self,
        sidecar: &'s Sidecar,
        ingress: &'s IngressListener,
        secrets: &'s Secrets,
    ) -> Option<InboundPort<'s>> {
        let tls = ingress.tls.as_ref().filter(|tls| tls.mode.terminates());
        let proxy = self.site.view.namespace();
        let context = |tls| ServerContext::new(secrets, proxy, &sidecar.origin, tls);
        let tls = match tls.map(context).transpose() {
            Ok(tls) => tls,
            Err(Unusable::Credential) => return None,
            Err(Unusable::Settings(finding)) => {
                self.findings.push(*finding);
                return None;
            }
        };
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
        })
    }

    /// The chains of one port.
    fn chains(&self, port: &InboundPort<'s>, bind: &str) -> Vec<Chain> {
        let name = names::listener(bind, port.target);
        let here = ChainMatch { destination_port: Some(port.target), ..ChainMatch::default() };
        let mut chains = Vec::new();
        if let Some(context) = &port.tls {
            let matches = ChainMatch { transport: Some(Transport::Tls), ..here };
            let filters = match port.protocol.is_http() {
                true => self.http(port, &name),
                false => self.tcp(port),
            };
            let defaults = &self.site.mesh().tls_defaults;
            let chain = Chain::new(name, matches, filters);
            chains.push(chain.with_socket(context.transport_socket(defaults)));
        } else {
            let plain = ChainMatch { transport: Some(Transport::Plain), ..here };
            if port.protocol.is_http() {
                chains.push(Chain::new(name.clone(), plain, self.http(port, &name)));
            } else {
                if port.protocol == Protocol::Auto {
                    let http =
                        ChainMatch { application_protocols: self.plain_http, ..plain.clone() };
                    chains.push(Chain::new(name.clone(), http, self.http(port, &name)));
                }
                chains.push(Chain::new(name, plain, self.tcp(port)));
            }
        }
        if let Some(document) = &port.document {
            for chain in &mut chains {
                chain.proto.metadata = Some(super::config_metadata(document.clone()));
            }
        }
        chains
    }

    fn http(&self, port: &InboundPort<'_>, chain: &str) -> Vec<listener::Filter> {
        let cluster = names::inbound_cluster(port.target);
        self.writer.http_filters(Manager {
            place: Place::Inbound,
            stat_prefix: format!("inbound_{chain};"),
            protocol: port.protocol,
            routes: Routes::Inline(Box::new(self.routes(
                cluster,
                port.port,
                &format!("{}:{}/*", port.host, port.port),
                port.protocol,
            ))),
        })
    }

    fn tcp(&self, port: &InboundPort<'_>) -> Vec<listener::Filter> {
        self.writer.tcp_filters(&TcpRoute {
            protocol: port.protocol,
            ..TcpRoute::to_cluster(names::inbound_cluster(port.target))
        })
    }

    /// Everything goes to the workload; VirtualServices have no say here.
    fn routes(
        &self,
        cluster: String,
        port: u16,
        operation: &str,
        protocol: Protocol,
    ) -> route::RouteConfiguration {
        let zero = pb::duration(Duration::ZERO);
        let action = route::RouteAction {
            cluster_specifier: Some(route::route_action::ClusterSpecifier::Cluster(
                cluster.clone(),
            )),
            timeout: Some(zero),
            max_stream_duration: Some(route::route_action::MaxStreamDuration {
                max_stream_duration: Some(zero),
                grpc_timeout_header_max: Some(zero),
                ..Default::default()
            }),
            retry_policy: match protocol {
                // A gRPC client decides itself what may be repeated.
                Protocol::Grpc | Protocol::GrpcWeb => None,
                _ => self.retry_policy(),
            },
            ..Default::default()
        };
        let everything = route::Route {
            name: "default".to_owned(),
            r#match: Some(route::RouteMatch {
                path_specifier: Some(route::route_match::PathSpecifier::Prefix("/".to_owned())),
                ..Default::default()
            }),
            decorator: Some(route::Decorator {
                operation: operation.to_owned(),
                ..Default::default()
            }),
            action: Some(route::route::Action::Route(action)),
            ..Default::default()
        };
        route::RouteConfiguration {
            name: cluster,
            virtual_hosts: vec![route::VirtualHost {
                name: format!("inbound|http|{port}"),
                domains: vec!["*".to_owned()],
                routes: vec![everything],
                ..Default::default()
            }],
            validate_clusters: Some(pb::bool_value(false)),
            ..Default::default()
        }
    }

    /// A request that the workload cannot have seen is sent again.
    fn retry_policy(&self) -> Option<route::RetryPolicy> {
        Some(route::RetryPolicy {
            retry_on: "reset-before-request".to_owned(),
            num_retries: Some(pb::u32_value(2)),
            ..Default::default()
        })
    }

    /// The listener that redirected connections come to.
    fn capture(&mut self) -> Option<listener::Listener> {
        let (transparent, tproxy) = match self.site.view.interception() {
            Interception::None => return None,
            Interception::Redirect => (None, false),
            Interception::Tproxy => (Some(pb::bool_value(true)), true),
        };
        let port = self.site.mesh().proxy_inbound_listen_port;
        let to_itself = ChainMatch { destination_port: Some(port), ..ChainMatch::default() };
        let mut chains =
            vec![Chain::new("virtualInbound-blackhole", to_itself, self.writer.black_hole())];
        chains.extend(self.unknown_ports());
        let mut tls_ports = BTreeSet::new();
        let mut declared_ports = BTreeSet::new();
        for (port, of_port) in std::mem::take(&mut self.captured) {
            if of_port.iter().any(Chain::needs_tls_inspector) {
                tls_ports.insert(port);
            }
            if !of_port.iter().any(Chain::needs_http_inspector) {
                declared_ports.insert(port);
            }
            chains.extend(of_port);
        }
        let mut filters = vec![pb::listener_filter(
            "envoy.filters.listener.original_dst",
            &pb::original_dst::OriginalDst {},
        )];
        if tproxy {
            let config = pb::original_src::OriginalSrc { mark: TPROXY_MARK, ..Default::default() };
            filters.push(pb::listener_filter("envoy.filters.listener.original_src", &config));
        }
        // Each inspector looks only at the ports that need it: it delays protocols in which the
        // server speaks first.
        if let Some(ports) = destination_ports(&tls_ports) {
            filters.push(listener::ListenerFilter {
                filter_disabled: Some(not(ports)),
                ..tls_inspector()
            });
        }
        filters.push(listener::ListenerFilter {
            filter_disabled: destination_ports(&declared_ports),
            ..http_inspector()
        });
        Some(listener::Listener {
            name: "virtualInbound".to_owned(),
            address: Some(address(self.site.view.ip_mode().wildcard(), port)),
            transparent,
            filter_chains: chains.into_iter().map(|chain| chain.proto).collect(),
            listener_filters: filters,
            ..self.base()
        })
    }

    /// Ports that no service and no ingress names: they are passed on as they are.
    fn unknown_ports(&self) -> [Chain; 2] {
        let plain = ChainMatch { transport: Some(Transport::Plain), ..ChainMatch::default() };
        let http = ChainMatch { application_protocols: self.plain_http, ..plain.clone() };
        let cluster = names::INBOUND_PASSTHROUGH.to_owned();
        let manager = Manager {
            place: Place::Inbound,
            stat_prefix: format!("{cluster};"),
            protocol: Protocol::Auto,
            routes: Routes::Inline(Box::new(self.routes(
                cluster.clone(),
                0,
                ":0/*",
                Protocol::Auto,
            ))),
        };
        [
            Chain::new("virtualInbound-catchall-http", http, self.writer.http_filters(manager)),
            Chain::new(
                "virtualInbound",
                plain,
                self.writer.tcp_filters(&TcpRoute::to_cluster(cluster)),
            ),
        ]
    }

    fn bound_listener(&self, bind: &str, port: u16, chains: Vec<Chain>) -> listener::Listener {
        let mut filters = Vec::new();
        if chains.iter().any(Chain::needs_tls_inspector) {
            filters.push(tls_inspector());
        }
        if chains.iter().any(Chain::needs_http_inspector) {
            filters.push(http_inspector());
        }
        listener::Listener {
            name: names::listener(bind, port),
            address: Some(address(bind, port)),
            filter_chains: chains.into_iter().map(|chain| chain.proto).collect(),
            listener_filters: filters,
            ..self.base()
        }
    }

    fn base(&self) -> listener::Listener {
        listener::Listener {
            listener_filters_timeout: Some(self.writer.detection_timeout()),
            continue_on_listener_filters_timeout: true,
            traffic_direction: core::TrafficDirection::Inbound.into(),
            max_connections_to_accept_per_socket_event: Some(pb::u32_value(1)),
            access_log: self.writer.listener_access_log.clone(),
            ..Default::default()
        }
    }
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
