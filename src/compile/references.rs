//! Does what a document names exist? Dangling references are findings that name what is missing
//! and where it was named; nothing is taken out of the snapshot for them.

use crate::diag::{Code, Diagnostic, Diagnostics, Span};
use crate::model::{
    CaSource, CertificateSource, Destination, DestinationRule, EgressNamespace, Endpoints, Gateway,
    GatewayRef, Hostname, HttpAction, Labels, ListenerRef, Namespace, ObjectName, Origin,
    Resolution, Routing, Sidecar, Snapshot, VirtualService, Visibility,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// How many unknown hosts get a "did you mean": each one is compared with every host.
const SUGGESTIONS: usize = 20;

/// Checks everything that documents say about each other.
pub fn check(snapshot: &Snapshot, diags: &mut Diagnostics) {
    let routing = &*snapshot.routing;
    let mut check = Check {
        routing,
        endpoints: &snapshot.endpoints,
        diags,
        gateways: routing.gateways.iter().map(|g| (g.origin.name.clone(), &**g)).collect(),
        subsets: Subsets::new(routing),
        mesh_hosts: mesh_hosts(routing),
        suggestions: SUGGESTIONS,
    };
    for rule in routing.virtual_services.iter() {
        check.virtual_service(rule);
    }
    for rule in routing.destination_rules.iter() {
        check.destination_rule(rule);
    }
    for gateway in routing.gateways.iter() {
        check.gateway(gateway);
    }
    for sidecar in routing.sidecars.iter() {
        check.sidecar(sidecar);
    }
    check.overlapping_hosts();
}

/// Subset names by the host of their DestinationRule.
struct Subsets<'a> {
    exact: HashMap<&'a Hostname, HashSet<&'a str>>,
    wildcards: Vec<(&'a Hostname, HashSet<&'a str>)>,
}

impl<'a> Subsets<'a> {
    fn new(routing: &'a Routing) -> Subsets<'a> {
        let mut all: BTreeMap<&Hostname, HashSet<&str>> = BTreeMap::new();
        for rule in routing.destination_rules.iter() {
            all.entry(&rule.host).or_default().extend(rule.subsets.iter().map(|s| &*s.name));
        }
        let (wildcards, exact): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(host, _)| host.is_wildcard());
        Subsets { exact: exact.into_iter().collect(), wildcards }
    }

    fn has(&self, host: &Hostname, subset: &str) -> bool {
        self.exact.get(host).is_some_and(|names| names.contains(subset))
            || self.wildcards.iter().any(|(w, n)| n.contains(subset) && host.is_subset_of(w))
    }

    fn names_of(&self, host: &Hostname) -> Vec<&'a str> {
        let wild = self.wildcards.iter().filter(|(w, _)| host.is_subset_of(w)).map(|(_, n)| n);
        let mut names: Vec<&str> =
            self.exact.get(host).into_iter().chain(wild).flatten().copied().collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

struct Check<'a> {
    routing: &'a Routing,
    endpoints: &'a Endpoints,
    diags: &'a mut Diagnostics,
    gateways: HashMap<ObjectName, &'a Gateway>,
    subsets: Subsets<'a>,
    /// VirtualServices of the mesh by exact host.
    mesh_hosts: HashMap<&'a Hostname, Vec<&'a VirtualService>>,
    suggestions: usize,
}

impl<'a> Check<'a> {
    fn virtual_service(&mut self, rule: &VirtualService) {
        for (gateway, span) in rule.gateways.iter().zip(&rule.gateway_spans) {
            let GatewayRef::Gateway(ListenerRef { gateway: name, .. }) = gateway else { continue };
            match self.gateways.get(name) {
                None => self.diags.push(rule.origin.diagnostic_at(
                    span,
                    Code::UnknownGateway,
                    format!("there is no Gateway {name}; the rules have no effect there"),
                )),
                Some(gateway) if !serves_a_host(gateway, rule) => {
                    let finding = rule.origin.diagnostic_at(
                        span,
                        Code::UnboundVirtualService,
                        format!(
                            "no server of Gateway {name} has a host that fits {}; the rules have \
                             no effect there",
                            hosts(rule)
                        ),
                    );
                    self.diags.push(finding.related(gateway.origin.span.clone(), "the Gateway"));
                }
                Some(_) => {}
            }
        }
        for http in &rule.http {
            if let HttpAction::Route(list) = &http.action {
                for to in list {
                    self.destination(&rule.origin, &to.destination);
                }
            }
            for mirror in &http.mirrors {
                self.destination(&rule.origin, &mirror.destination);
            }
        }
        let tls = rule.tls.iter().flat_map(|r| &r.destinations);
        let tcp = rule.tcp.iter().flat_map(|r| &r.destinations);
        for to in tls.chain(tcp) {
            self.destination(&rule.origin, &to.destination);
        }
    }

    fn destination(&mut self, origin: &Origin, to: &Destination) {
        let known: Vec<_> = self.routing.services.of_host(&to.host).map(|(_, s)| s).collect();
        if known.is_empty() {
            let mut finding = origin.diagnostic_at(
                &to.span,
                Code::UnknownHost,
                format!("no service has the host '{}'; requests to it get 503", to.host),
            );
            if let Some(help) = self.help_for_host(&to.host) {
                finding = finding.help(help);
            }
            self.diags.push(finding);
            return;
        }
        let namespace = &origin.name.namespace;
        if !known.iter().any(|s| s.visibility.includes(namespace)) {
            let hidden = known[0];
            let finding = origin.diagnostic_at(
                &to.span,
                Code::UnknownHost,
                format!("the service '{}' is not exported to namespace '{namespace}'", to.host),
            );
            self.diags.push(finding.related(hidden.origin.span.clone(), "its exportTo decides"));
        }
        if let Some(port) = to.port
            && !known.iter().any(|s| s.port(port).is_some())
        {
            let numbers: BTreeSet<u16> =
                known.iter().flat_map(|s| s.stream_ports()).map(|p| p.number).collect();
            let ports: Vec<String> = numbers.iter().map(u16::to_string).collect();
            self.diags.push(
                origin
                    .diagnostic_at(
                        &to.port_span,
                        Code::UnknownPort,
                        format!("the service '{}' has no port {port}; requests get 503", to.host),
                    )
                    .help(format!("its ports are {}", ports.join(", "))),
            );
        }
        if !to.subset.is_empty() && !self.subsets.has(&to.host, &to.subset) {
            let names = self.subsets.names_of(&to.host);
            let finding = origin.diagnostic_at(
                &to.subset_span,
                Code::UnknownSubset,
                format!(
                    "no DestinationRule defines the subset '{}' of '{}'; requests get 503",
                    to.subset, to.host
                ),
            );
            self.diags.push(match names.is_empty() {
                true => finding.help("add a DestinationRule with this subset"),
                false => finding.help(format!("its subsets are {}", names.join(", "))),
            });
        }
    }

    /// Short names are completed as in Istio, so a ServiceEntry whose host has no dot cannot be
    /// reached by its name: that is worth more than a likely spelling.
    fn help_for_host(&mut self, host: &str) -> Option<String> {
        let short = host.split_once('.').map_or(host, |(first, _)| first);
        if short != host && self.routing.services.of_host(short).next().is_some() {
            return Some(format!(
                "a name without a dot is completed to '{host}', which is not the service '{short}'; \
                 give the service a host with a dot"
            ));
        }
        self.nearest_host(host).map(|near| format!("did you mean '{near}'?"))
    }

    fn nearest_host(&mut self, host: &str) -> Option<Hostname> {
        self.suggestions = self.suggestions.checked_sub(1)?;
        let near = |candidate: &Hostname| strsim::jaro_winkler(host, candidate);
        let best = self
            .routing
            .services
            .iter()
            .map(|(_, s)| (&s.hostname, near(&s.hostname)))
            .filter(|(_, likeness)| *likeness > 0.85)
            .max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.cmp(a.0)))?;
        Some(best.0.clone())
    }

    fn destination_rule(&mut self, rule: &DestinationRule) {
        let services: Vec<_> = if rule.host.is_wildcard() {
            let all = self.routing.services.iter();
            all.filter(|(_, s)| s.hostname.is_subset_of(&rule.host)).collect()
        } else {
            self.routing.services.of_host(&rule.host).collect()
        };
        if services.is_empty() {
            let mut finding = rule.origin.diagnostic_at(
                &rule.host_span,
                Code::UnknownHost,
                format!("no service has the host '{}'; the rule has no effect", rule.host),
            );
            if !rule.host.is_wildcard()
                && let Some(help) = self.help_for_host(&rule.host)
            {
                finding = finding.help(help);
            }
            self.diags.push(finding);
            return;
        }
        // A wildcard rule says something about many services; a subset may be for any of them.
        let known = services.iter().all(|(id, s)| {
            !matches!(s.resolution, Resolution::None | Resolution::DynamicDns)
                && !self.endpoints.of(*id).is_empty()
        });
        if !known {
            return;
        }
        for subset in rule.subsets.iter().filter(|s| !s.labels.is_empty()) {
            let mut endpoints = services.iter().flat_map(|(id, _)| self.endpoints.of(*id).iter());
            if !endpoints.any(|e| e.labels.selected_by(&subset.labels)) {
                let finding = rule.origin.diagnostic_at(
                    &subset.span,
                    Code::SubsetWithoutEndpoints,
                    format!(
                        "no endpoint of '{}' has the labels of subset '{}' ({})",
                        rule.host,
                        subset.name,
                        labels(&subset.labels)
                    ),
                );
                self.diags.push(finding);
            }
        }
    }

    /// An import of one host that nobody has is a typo more often than foresight.
    fn sidecar(&mut self, sidecar: &Sidecar) {
        for listener in &sidecar.egress {
            for import in listener.hosts.iter().filter(|i| !i.exclude && !i.host.is_wildcard()) {
                let in_namespace = |namespace: &Namespace| match &import.namespace {
                    EgressNamespace::Any => true,
                    EgressNamespace::Own => *namespace == sidecar.origin.name.namespace,
                    EgressNamespace::Named(name) => namespace == name,
                };
                let mut of_host = self.routing.services.of_host(&import.host);
                let service = of_host.any(|(_, s)| in_namespace(&s.namespace));
                let claimed = || {
                    self.mesh_hosts.get(&import.host).is_some_and(|rules| {
                        rules.iter().any(|r| in_namespace(&r.origin.name.namespace))
                    })
                };
                if service || claimed() {
                    continue;
                }
                let mut finding = sidecar.origin.diagnostic_at(
                    &listener.span,
                    Code::UnknownHost,
                    format!(
                        "egress host '{}' is neither a service nor the host of a VirtualService \
                         there; the entry imports nothing",
                        import.host
                    ),
                );
                if let Some(help) = self.help_for_host(&import.host) {
                    finding = finding.help(help);
                }
                self.diags.push(finding);
            }
        }
    }

    fn gateway(&mut self, gateway: &Gateway) {
        for server in &gateway.servers {
            let Some(tls) = &server.tls else { continue };
            if !tls.mode.terminates() {
                continue;
            }
            if let CertificateSource::Credentials(names) = &tls.certificates {
                for name in names {
                    self.credential(&gateway.origin, &tls.span, name);
                }
            }
            if let CaSource::Credential(name) = &tls.ca
                && self.routing.secrets.ca(&gateway.origin.name.namespace, name).is_none()
            {
                self.diags.push(missing_ca(&gateway.origin, &tls.span, name));
            }
        }
    }

    fn credential(&mut self, origin: &Origin, span: &Span, name: &str) {
        let namespace = &origin.name.namespace;
        let usable = self
            .routing
            .secrets
            .get(namespace, name)
            .is_some_and(|s| s.certificate_chain.is_some() && s.private_key.is_some());
        if !usable {
            self.diags.push(
                origin
                    .diagnostic_at(
                        span,
                        Code::UnknownSecret,
                        format!(
                            "there is no certificate and key for credential '{name}' in namespace \
                             '{namespace}'; the server is left out"
                        ),
                    )
                    .help(format!(
                        "add a Secret {namespace}/{name} with tls.crt and tls.key, or a directory \
                         '{name}' with these files below --secrets-dir"
                    )),
            );
        }
    }

    /// On sidecars the first VirtualService of a host owns it; rules are not merged.
    fn overlapping_hosts(&mut self) {
        for (host, rules) in &self.mesh_hosts {
            for (position, rule) in rules.iter().enumerate() {
                let earlier = rules[..position].iter();
                let owner = earlier.copied().find(|o| meet(&o.visibility, &rule.visibility));
                let Some(owner) = owner else { continue };
                let finding = rule.origin.diagnostic(
                    Code::OverlappingHost,
                    format!(
                        "host '{host}' is also claimed by VirtualService {}; on sidecars only one \
                         of them applies, the rules are not merged",
                        owner.origin.name
                    ),
                );
                self.diags.push(finding.related(owner.origin.span.clone(), "this one comes first"));
            }
        }
    }
}

/// VirtualServices of the mesh by host, in precedence order.
fn mesh_hosts(routing: &Routing) -> HashMap<&Hostname, Vec<&VirtualService>> {
    let mut hosts: HashMap<&Hostname, Vec<&VirtualService>> = HashMap::new();
    for rule in routing.virtual_services.iter().filter(|v| v.gateways.contains(&GatewayRef::Mesh)) {
        for host in &rule.hosts {
            hosts.entry(host).or_default().push(rule);
        }
    }
    hosts
}

fn missing_ca(origin: &Origin, span: &Span, name: &str) -> Diagnostic {
    let namespace = &origin.name.namespace;
    origin
        .diagnostic_at(
            span,
            Code::UnknownSecret,
            format!(
                "there is no CA certificate for credential '{name}' in namespace '{namespace}'; \
                 the server is left out"
            ),
        )
        .help(format!(
            "add ca.crt to the Secret {namespace}/{name}, or a Secret {namespace}/{name}-cacert"
        ))
}

/// Whether some proxy may see both. A rule listed for namespaces only is seen together with a
/// public one by those.
fn meet(a: &Visibility, b: &Visibility) -> bool {
    match (a, b) {
        (Visibility::Nobody, _) | (_, Visibility::Nobody) => false,
        (Visibility::Public, _) | (_, Visibility::Public) => true,
        (Visibility::Namespaces(a), Visibility::Namespaces(b)) => !a.is_disjoint(b),
    }
}

fn serves_a_host(gateway: &Gateway, rule: &VirtualService) -> bool {
    gateway.servers.iter().flat_map(|s| &s.hosts).any(|served| {
        served.namespace.as_ref().is_none_or(|n| *n == rule.origin.name.namespace)
            && rule
                .hosts
                .iter()
                .any(|host| host.to_lowercase().overlaps(&served.host.to_lowercase()))
    })
}

fn hosts(rule: &VirtualService) -> String {
    let names: Vec<String> = rule.hosts.iter().map(|h| format!("'{h}'")).collect();
    names.join(", ")
}

fn labels(labels: &Labels) -> String {
    let pairs: Vec<String> = labels.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
    pairs.join(", ")
}
