//! What the destinations of rules mean to a proxy: which port, whether it has the cluster, and what
//! the DestinationRule says.

use crate::diag::{Code, Diagnostic};
use crate::generate::memo::Same;
use crate::generate::{Scope, Viewer, names};
use crate::model::{Destination, DestinationRule, Hostname, HttpAction, Namespace, VirtualService};

/// How the port of a destination that names none is found.
#[derive(Debug, Clone, Copy)]
pub enum Registry<'a> {
    /// It is the listener's: Istio cuts every service down to that port first, so one that lacks
    /// it gets a cluster that does not exist.
    ListenPort,
    /// The only port of the service, else this one.
    OnlyPortOr(u16),
    /// The only port of the service, first of this namespace (the VirtualService's), then as the
    /// gateway sees it; else the listener's.
    Gateway(&'a Namespace),
}

/// What a destination means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The port.
    pub(super) port: u16,
    /// Whether the proxy has the port, and so a cluster for it.
    pub(super) exists: bool,
    /// Why there is no cluster, where the check of the documents among themselves could not tell.
    pub(super) gap: Option<Gap>,
    /// The DestinationRule, as the proxy sees it.
    pub(super) rule: Option<Same<DestinationRule>>,
}

/// Why a cluster does not exist for a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Gap {
    /// The proxy does not see the service.
    Hidden,
    /// The destination names no port, and the one that is meant is not among these.
    NoDefaultPort { port: u16, ports: Vec<u16> },
    /// What the proxy sees lacks the port that is named.
    NoPort { port: u16, ports: Vec<u16> },
    /// The DestinationRule that counts for this proxy lacks the subset, or none counts.
    NoSubset,
}

/// The targets of a document's HTTP rules: of each rule its destinations, then its mirrors.
pub(super) fn targets(
    scope: &Scope<'_>,
    registry: Registry<'_>,
    listen_port: u16,
    rules: &VirtualService,
) -> Vec<Target> {
    let finder = Finder { scope, registry, listen_port };
    let mut found = Vec::new();
    for rule in &rules.http {
        if let HttpAction::Route(list) = &rule.action {
            found.extend(list.iter().map(|to| finder.target(&to.destination)));
        }
        // Only requests that are sent on are mirrored.
        found.extend(rule.mirrors.iter().map(|to| finder.target(&to.destination)));
    }
    found
}

impl Target {
    /// The cluster's name. Whether it exists is not asked: Envoy answers 503 when not.
    pub(super) fn cluster(&self, to: &Destination) -> String {
        names::outbound_cluster(self.port, &to.subset, &to.host)
    }
}

struct Finder<'f, 'a> {
    scope: &'f Scope<'a>,
    registry: Registry<'f>,
    listen_port: u16,
}

impl Finder<'_, '_> {
    fn target(&self, to: &Destination) -> Target {
        let world = self.scope.world;
        let port = to.port.unwrap_or_else(|| self.default_port(&to.host));
        let exists = world.find(&to.host).is_some_and(|s| s.port(port).is_some());
        let rule = world.destination_rule(&to.host);
        let defines = rule.is_some_and(|rule| rule.subset(&to.subset).is_some());
        let gap = match exists {
            true => (!to.subset.is_empty() && !defines && self.is_subset_somewhere(to))
                .then_some(Gap::NoSubset),
            false => self.gap(to, port),
        };
        Target { port, exists, gap, rule: rule.cloned().map(Same) }
    }

    fn gap(&self, to: &Destination, port: u16) -> Option<Gap> {
        let services = &self.scope.world.routing.services;
        let Some(scoped) = self.scope.world.find(&to.host) else {
            let hidden = services.of_host(&to.host).next().is_some();
            return hidden.then_some(Gap::Hidden);
        };
        let ports = || scoped.ports().map(|p| p.number).collect();
        if to.port.is_none() {
            return Some(Gap::NoDefaultPort { port, ports: ports() });
        }
        let somebody_has_it = services.of_host(&to.host).any(|(_, s)| s.port(port).is_some());
        somebody_has_it.then(|| Gap::NoPort { port, ports: ports() })
    }

    /// Whether a subset exists, but not for this proxy: rules of other namespaces do not count
    /// everywhere.
    fn is_subset_somewhere(&self, to: &Destination) -> bool {
        let mut rules = self.scope.world.routing.destination_rules.iter();
        rules.any(|r| to.host.is_subset_of(&r.host) && r.subset(&to.subset).is_some())
    }

    fn default_port(&self, host: &Hostname) -> u16 {
        match self.registry {
            Registry::ListenPort => self.listen_port,
            Registry::OnlyPortOr(port) => self.only_port(host).unwrap_or(port),
            Registry::Gateway(namespace) => {
                let mut of_host = self.scope.world.routing.services.of_host(host);
                let visible = of_host
                    .find(|(_, s)| s.namespace == *namespace)
                    .filter(|(_, s)| s.visibility.includes(self.scope.view.namespace()));
                let port = match visible {
                    Some((_, service)) => only(service.stream_ports().map(|p| p.number)),
                    None => self.only_port(host),
                };
                port.unwrap_or(self.listen_port)
            }
        }
    }

    fn only_port(&self, host: &Hostname) -> Option<u16> {
        only(self.scope.world.find(host)?.ports().map(|p| p.number))
    }
}

fn only(mut ports: impl Iterator<Item = u16>) -> Option<u16> {
    let first = ports.next();
    first.filter(|_| ports.next().is_none())
}

/// What is said about a destination that the proxy has no cluster for.
pub(super) fn missing(
    gap: &Gap,
    rules: &VirtualService,
    to: &Destination,
    listen_port: u16,
    view: &Viewer<'_>,
) -> Diagnostic {
    let host = &to.host;
    let numbers = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let (code, message, help) = match gap {
        Gap::Hidden => (
            Code::UnknownHost,
            format!(
                "proxies of namespace '{}' do not see the service '{host}'; requests get 503",
                view.namespace()
            ),
            "export the service to that namespace".to_owned(),
        ),
        // Istio's trap: a sidecar takes such a destination for one on the client's port.
        Gap::NoDefaultPort { port, ports } => (
            Code::UnknownPort,
            format!(
                "the destination names no port, which means {port} for requests to port \
                 {listen_port}, and '{host}' does not have it; they get 503"
            ),
            format!("write destination.port.number; the service has {}", numbers(ports)),
        ),
        Gap::NoPort { port, ports } => (
            Code::UnknownPort,
            format!("the proxy does not see port {port} of '{host}'; requests get 503"),
            format!("it sees {}", numbers(ports)),
        ),
        Gap::NoSubset => (
            Code::UnknownSubset,
            format!(
                "the DestinationRule with subset '{}' of '{host}' does not count for proxies of \
                 namespace '{}'; requests get 503",
                to.subset,
                view.namespace()
            ),
            "define it in the namespace of the proxy, of the service, or in the root namespace"
                .to_owned(),
        ),
    };
    rules.origin.diagnostic_at(&to.span, code, message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::{
        Eyes, Facts, Parts, destination, router, rule_to, service, sidecar, snapshot,
        virtual_service,
    };
    use crate::model::Protocol::Http;

    fn cluster(facts: &Facts, view: &Parts, registry: Registry<'_>, to: Destination) -> String {
        let mut rules = virtual_service("v", &["x"], vec![rule_to("x")]);
        let HttpAction::Route(list) = &mut rules.http[0].action else { panic!("it routes") };
        list[0].destination = to.clone();
        Eyes::new(facts, view).look(|scope| targets(scope, registry, 80, &rules)[0].cluster(&to))
    }

    #[test]
    fn a_sidecar_takes_the_listeners_port_even_if_the_service_has_another() {
        let facts = snapshot(vec![service("a.b", &[(8080, Http)])], Vec::new());
        let of = |registry, host| cluster(&facts, &sidecar(), registry, destination(host));
        assert_eq!(of(Registry::ListenPort, "a.b"), "outbound|80||a.b");
        assert_eq!(of(Registry::OnlyPortOr(9), "a.b"), "outbound|8080||a.b");
        assert_eq!(of(Registry::OnlyPortOr(9), "x.b"), "outbound|9||x.b");
    }

    #[test]
    fn a_gateway_takes_the_services_only_port_and_prefers_the_rules_namespace() {
        let mut near = service("a.b", &[(1000, Http)]);
        near.namespace = Namespace::from("near");
        let services =
            vec![service("a.b", &[(2000, Http)]), near, service("two.b", &[(1, Http), (2, Http)])];
        let facts = snapshot(services, Vec::new());
        let namespace = Namespace::from("near");
        let of = |to| cluster(&facts, &router(), Registry::Gateway(&namespace), to);
        assert_eq!(of(destination("a.b")), "outbound|1000||a.b");
        assert_eq!(of(destination("two.b")), "outbound|80||two.b");
        let named = Destination { port: Some(7), subset: "v1".into(), ..destination("two.b") };
        assert_eq!(of(named), "outbound|7|v1|two.b");
    }
}
