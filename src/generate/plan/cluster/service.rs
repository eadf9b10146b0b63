//! The clusters that lead to a service: one for each of its visible ports, and one more for each
//! subset.

use super::about::{self, About};
use super::http::HttpOptions;
use super::load_balancer::{self, Algorithm, Balancing, HostBalancing, LocalityUse};
use super::outlier::Outlier;
use super::policy::Policy;
use super::pool::{self, Limits};
use super::tls::{self, Refusal};
use super::{Cluster, Dns, DnsFamily, Hosts, OriginalDst, Site};
use crate::diag::{Code, Diagnostic};
use crate::generate::plan::Because;
use crate::generate::plan::assignment::{self, Arrangement, PortKey, Recipe, Selection};
use crate::generate::{Viewer, names};
use crate::model::{
    DestinationRule, MeshSettings, Resolution, Service, ServicePort, SimpleLb, Subset,
};
use crate::proxy::{IpMode, Role};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The clusters of a service (of these ports, or of all) in the order of ports and subsets. One that
/// has to be left out although the user asked for it is an error.
pub fn clusters(
    site: &Site<'_>,
    service: &Service,
    only_ports: Option<&BTreeSet<u16>>,
    rule: Option<&DestinationRule>,
) -> Vec<Result<Cluster, Diagnostic>> {
    let mut decided = Vec::new();
    let Some(discovery) = discovery(service.resolution, site.view) else { return decided };
    let visible = |p: &&ServicePort| only_ports.is_none_or(|only| only.contains(&p.number));
    for port in service.stream_ports().filter(visible) {
        let rule_policy = Policy::of_rule(rule, port.number);
        let policy = rule_policy.over_mesh(site.mesh);
        let default = Candidate {
            service,
            port,
            subset: None,
            rule,
            discovery: passthrough(&policy).unwrap_or(discovery),
            policy,
            rule_policy,
        };
        decided.extend(default.decide(site));
        for subset in rule.map_or(&[][..], |rule| &rule.subsets) {
            let policy = policy.of_subset(subset, port.number);
            let of_subset = Candidate {
                subset: Some(subset),
                discovery: passthrough(&policy).unwrap_or(default.discovery),
                policy,
                rule_policy: rule_policy.of_subset(subset, port.number),
                ..default
            };
            decided.extend(of_subset.decide(site));
        }
    }
    decided
}

/// Where the hosts of a service come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Discovery {
    Eds,
    OriginalDst,
    /// By DNS, every address.
    StrictDns,
    /// By DNS, one name whose addresses are one endpoint.
    LogicalDns,
}

/// `None` where there is no such cluster.
fn discovery(resolution: Resolution, view: &Viewer<'_>) -> Option<Discovery> {
    Some(match resolution {
        // A router has no original destination: the cluster is there, but empty.
        Resolution::None => match view.role() {
            Role::Sidecar => Discovery::OriginalDst,
            Role::Router => Discovery::Eds,
        },
        Resolution::Static => Discovery::Eds,
        Resolution::Dns => Discovery::StrictDns,
        Resolution::DnsRoundRobin => Discovery::LogicalDns,
        Resolution::DynamicDns => return None,
    })
}

fn passthrough(policy: &Policy<'_>) -> Option<Discovery> {
    let simple = policy.load_balancer.map_or(SimpleLb::Unspecified, |lb| lb.simple);
    (simple == SimpleLb::Passthrough).then_some(Discovery::OriginalDst)
}

/// A cluster of which it is not yet known whether it can be.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    service: &'a Service,
    port: &'a ServicePort,
    subset: Option<&'a Subset>,
    rule: Option<&'a DestinationRule>,
    discovery: Discovery,
    /// What holds, the mesh's defaults included.
    policy: Policy<'a>,
    /// What the rule alone says. EDS goes by it: in Istio the mesh's outlier detection does not
    /// make endpoints fail over.
    rule_policy: Policy<'a>,
}

impl Candidate<'_> {
    /// The cluster, or why there is none; `None` if that is said elsewhere.
    fn decide(&self, site: &Site<'_>) -> Option<Result<Cluster, Diagnostic>> {
        let Candidate { service, port, subset, rule, policy, .. } = self;
        let mesh = site.mesh;
        if self.resolves_nothing() {
            return match subset {
                None => Some(Err(nothing_to_resolve(service))),
                // That is found when documents are compiled.
                Some(_) => None,
            };
        }
        let mut http = HttpOptions::outbound(mesh, policy, port.protocol, site.view.role());
        let tls = match tls::resolve(site, service, *rule, policy.tls, &mut http) {
            Ok(tls) => tls,
            // What a subset inherits was said of its host.
            Err(_) if self.inherits_tls() => return None,
            Err(refusal) => return Some(Err(self.left_out(refusal))),
        };
        let subset_name = subset.map_or("", |s| &*s.name);
        let name: Arc<str> =
            names::outbound_cluster(port.number, subset_name, &service.hostname).into();
        Some(Ok(Cluster {
            because: self.because(),
            stat_name: about::outbound_stat_name(mesh, &name, service, port, subset_name),
            hosts: self.hosts(site, &name),
            connect_timeout: pool::connect_timeout(mesh, policy.connection_pool),
            limits: Some(Limits::of(policy.connection_pool, policy.retry_budget)),
            keepalive: pool::keepalive(mesh, policy.connection_pool),
            outlier: policy.outlier_detection.map(Outlier::of),
            balancing: self.balancing(mesh),
            http: http.if_any(),
            tls,
            proxy_protocol: policy.proxy_protocol,
            source: None,
            about: Some(About::outbound(service, *rule, *subset, policy)),
            name,
        }))
    }

    fn because(&self) -> Because {
        let Service { origin, .. } = self.service;
        match (self.rule, self.subset) {
            (Some(rule), Some(subset)) => {
                Because::of("a subset of the service", &rule.origin, &subset.span)
                    .and(origin, &self.port.span)
            }
            (Some(rule), None) => Because::of("a port of the service", origin, &self.port.span)
                .and(&rule.origin, &rule.host_span),
            (None, _) => Because::of("a port of the service", origin, &self.port.span),
        }
    }

    fn selection(&self) -> Selection {
        Selection {
            port: match self.discovery {
                Discovery::Eds | Discovery::OriginalDst => PortKey::Name(self.port.name.clone()),
                Discovery::StrictDns | Discovery::LogicalDns => PortKey::Number(self.port.number),
            },
            labels: self.subset.map(|subset| subset.labels.clone()),
            keeps_draining: assignment::keeps_sessions(self.service),
            only_first: self.discovery == Discovery::LogicalDns,
        }
    }

    /// Whether there is no name that DNS could resolve.
    fn resolves_nothing(&self) -> bool {
        match self.discovery {
            Discovery::StrictDns | Discovery::LogicalDns => {
                self.selection().of(&self.service.endpoints).is_empty()
            }
            Discovery::Eds | Discovery::OriginalDst => false,
        }
    }

    fn hosts(&self, site: &Site<'_>, name: &Arc<str>) -> Hosts {
        let recipe = |policy: &Policy<'_>| Recipe {
            selection: self.selection(),
            arrangement: Arrangement::of(policy, site.mesh),
        };
        match self.discovery {
            Discovery::Eds => Hosts::Eds(recipe(&self.rule_policy)),
            Discovery::OriginalDst => Hosts::OriginalDst(OriginalDst {
                port: match self.service.resolution {
                    Resolution::None => self.port.target_port,
                    Resolution::Static
                    | Resolution::Dns
                    | Resolution::DnsRoundRobin
                    | Resolution::DynamicDns => None,
                },
                forgotten_after: None,
            }),
            Discovery::StrictDns | Discovery::LogicalDns => {
                let endpoints = &self.service.endpoints;
                let assignment = recipe(&self.policy).assignment(name, endpoints, site.view);
                let one_host = self.discovery == Discovery::LogicalDns;
                Hosts::Dns(Dns { one_host, ..Dns::of(site.mesh, site.view, assignment) })
            }
        }
    }

    fn balancing(&self, mesh: &MeshSettings) -> Balancing {
        let policy = &self.policy;
        let (algorithm, locality) = match self.discovery {
            Discovery::OriginalDst => (Algorithm::ByDestination, LocalityUse::Ignored),
            Discovery::Eds | Discovery::StrictDns | Discovery::LogicalDns => {
                (load_balancer::algorithm(policy), load_balancer::locality_use(policy, mesh))
            }
        };
        let hosts = HostBalancing {
            panic_threshold: Some(load_balancer::panic_threshold(policy)),
            keeps_sessions: assignment::keeps_sessions(self.service),
            locality,
        };
        Balancing { algorithm, hosts: Some(hosts) }
    }

    /// Whether this is a subset that goes by the TLS settings of its host.
    fn inherits_tls(&self) -> bool {
        let of_host = Policy::of_rule(self.rule, self.port.number).tls;
        match (of_host, self.policy.tls) {
            (Some(host), Some(own)) => self.subset.is_some() && std::ptr::eq(host, own),
            (None, _) | (_, None) => false,
        }
    }

    /// Says once for all ports why there is no cluster.
    fn left_out(&self, refusal: Refusal) -> Diagnostic {
        let origin = self.rule.map_or(&self.service.origin, |rule| &rule.origin);
        let host = &self.service.hostname;
        let (span, what) = match (self.subset, self.rule) {
            (Some(subset), _) => (&subset.span, format!("subset '{}' of '{host}'", subset.name)),
            (None, Some(rule)) => (&rule.host_span, format!("'{host}'")),
            (None, None) => (&origin.span, format!("'{host}'")),
        };
        let message = format!(
            "{}; the proxy gets no cluster for {what}, so requests to it get 503",
            refusal.reason
        );
        let finding = origin.diagnostic_at(span, refusal.code, message).help(refusal.help);
        Diagnostic { severity: refusal.severity, ..finding }
    }
}

impl Dns {
    /// These names, each address a host, resolved as the mesh and the proxy want it.
    pub(super) fn of(
        mesh: &MeshSettings,
        view: &Viewer<'_>,
        assignment: assignment::Assignment,
    ) -> Dns {
        Dns {
            // Always explicit: Envoy's own default takes IPv6 first.
            family: match view.ip_mode() {
                IpMode::V4 | IpMode::Dual => DnsFamily::V4,
                IpMode::V6 => DnsFamily::V6,
            },
            // Envoy wants more than a millisecond.
            refresh: mesh.dns_refresh_rate.max(Duration::from_millis(2)),
            one_host: false,
            assignment,
        }
    }
}

fn nothing_to_resolve(service: &Service) -> Diagnostic {
    let message = format!(
        "there is no endpoint whose name could be resolved for '{}'; the proxy gets no cluster for \
         it, so requests to it get 503",
        service.hostname
    );
    service
        .origin
        .diagnostic(Code::NoEndpoints, message)
        .help("add a WorkloadEntry that the workloadSelector selects")
}
