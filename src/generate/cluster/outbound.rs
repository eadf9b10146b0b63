//! Which clusters lead out of a proxy: one for each visible port of each visible service, and one
//! more for each subset. CDS, EDS and SDS walk the same list, so that they cannot disagree about
//! what exists.

use super::Site;
use super::endpoints::{self, Group, PortKey};
use super::policy::Policy;
use super::tls::{self, Refusal, UpstreamTls};
use crate::diag::{Code, Diagnostic};
use crate::generate::credentials::SecretUse;
use crate::generate::{Viewer, names};
use crate::model::{
    DestinationRule, Endpoint, Labels, Resolution, Service, ServicePort, SimpleLb, Subset,
};
use crate::proxy::Role;
use std::collections::BTreeSet;

/// One outbound cluster, decided but not built.
#[derive(Debug, Clone)]
pub(crate) struct Upstream<'a> {
    pub(super) name: String,
    pub(super) service: &'a Service,
    pub(super) port: &'a ServicePort,
    pub(super) subset: Option<&'a Subset>,
    pub(super) rule: Option<&'a DestinationRule>,
    pub(super) discovery: Discovery,
    /// What holds, the mesh's defaults included.
    pub(super) policy: Policy<'a>,
    /// What the rule alone says. EDS goes by it: in Istio the mesh's outlier detection does not
    /// make endpoints fail over.
    pub(super) rule_policy: Policy<'a>,
    pub(super) tls: UpstreamTls<'a>,
}

/// How Envoy finds the hosts of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Discovery {
    /// By EDS.
    Eds,
    /// By the connection's original destination.
    OriginalDst,
    /// By DNS, every address.
    StrictDns,
    /// By DNS, one name whose addresses are one endpoint.
    LogicalDns,
}

/// Walks the outbound clusters of a service (of these ports, or of all) in the order of ports and
/// subsets. One that has to be
/// left out although the user asked for it is an error.
pub(crate) fn for_each_upstream<'a>(
    site: &Site<'a>,
    service: &'a Service,
    only_ports: Option<&BTreeSet<u16>>,
    rule: Option<&'a DestinationRule>,
    mut visit: impl FnMut(Result<Upstream<'a>, Diagnostic>),
) {
    let Some(discovery) = discovery(service.resolution, site.view) else { return };
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
        if let Some(result) = default.decide(site) {
            visit(result);
        }
        for subset in rule.map_or(&[][..], |rule| &rule.subsets) {
            let policy = policy.of_subset(subset, port.number);
            let of_subset = Candidate {
                subset: Some(subset),
                discovery: passthrough(&policy).unwrap_or(default.discovery),
                policy,
                rule_policy: rule_policy.of_subset(subset, port.number),
                ..default
            };
            if let Some(result) = of_subset.decide(site) {
                visit(result);
            }
        }
    }
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
    policy: Policy<'a>,
    rule_policy: Policy<'a>,
}

impl<'a> Candidate<'a> {
    /// Whether the cluster can be; `None` if that it cannot is said elsewhere.
    fn decide(&self, site: &Site<'a>) -> Option<Result<Upstream<'a>, Diagnostic>> {
        let Candidate { service, port, subset, rule, discovery, policy, rule_policy } = *self;
        match discovery {
            Discovery::StrictDns | Discovery::LogicalDns => {
                let labels = subset.map(|s| &s.labels);
                let key = PortKey::Number(port.number);
                if endpoints::select(&service.endpoints, service, key, labels).is_empty() {
                    return match subset {
                        None => Some(Err(nothing_to_resolve(service))),
                        // That is found when documents are compiled.
                        Some(_) => None,
                    };
                }
            }
            Discovery::Eds | Discovery::OriginalDst => {}
        }
        let tls = match tls::resolve(site, service, rule, policy.tls) {
            Ok(tls) => tls,
            // What a subset inherits was said of its host.
            Err(_) if self.inherits_tls() => return None,
            Err(refusal) => return Some(Err(self.left_out(refusal))),
        };
        let subset_name = subset.map_or("", |s| &*s.name);
        Some(Ok(Upstream {
            name: names::outbound_cluster(port.number, subset_name, &service.hostname),
            service,
            port,
            subset,
            rule,
            discovery,
            policy,
            rule_policy,
            tls,
        }))
    }
}

impl Candidate<'_> {
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

impl<'a> Upstream<'a> {
    /// The cluster's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether its endpoints come by EDS.
    pub(crate) fn is_eds(&self) -> bool {
        self.discovery == Discovery::Eds
    }

    /// The secrets that its TLS context refers to.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretUse<'a>> {
        let settings = match &self.tls {
            UpstreamTls::Plain => None,
            UpstreamTls::Tls(settings) => Some(settings),
        };
        settings.into_iter().flat_map(|settings| settings.secrets())
    }

    fn labels(&self) -> Option<&'a Labels> {
        self.subset.map(|s| &s.labels)
    }

    /// Those of these endpoints of the service that are its own, by locality, not yet arranged.
    pub(super) fn groups(&self, endpoints: &'a [Endpoint]) -> Vec<Group<'a>> {
        let key = match self.discovery {
            Discovery::Eds => PortKey::Name(&self.port.name),
            Discovery::OriginalDst => return Vec::new(),
            Discovery::StrictDns | Discovery::LogicalDns => PortKey::Number(self.port.number),
        };
        let mut selected = endpoints::select(endpoints, self.service, key, self.labels());
        if self.discovery == Discovery::LogicalDns {
            // Envoy takes exactly one.
            selected.truncate(1);
        }
        endpoints::group(&selected)
    }
}
