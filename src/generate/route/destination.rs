//! Where a rule is translated, and which cluster a destination is there.

use crate::generate::{Scope, names};
use crate::model::{Destination, DestinationRule, GatewayRef, Hostname, Namespace};

/// Where a rule is translated: what its static conditions are tested against, and how its
/// destinations are found.
#[derive(Debug, Clone)]
pub struct Place<'a> {
    /// What the proxy sees.
    pub scope: &'a Scope<'a>,
    /// What a match's `gateways` must name.
    pub gateway: GatewayRef,
    /// The port that requests come in on (on gateways the declared one); 0 when there are many.
    pub listen_port: u16,
    /// What requests come in with.
    pub scheme: Scheme,
    /// How the port of a destination that names none is found.
    pub registry: Registry<'a>,
}

/// The scheme of incoming requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain text.
    Http,
    /// TLS ends at the proxy.
    Https,
}

impl Scheme {
    /// As it is written in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

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

/// Why a cluster does not exist for a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// The proxy does not see the service.
    Hidden,
    /// The destination names no port, and the one that is meant is not among these.
    NoDefaultPort {
        /// The port that is meant.
        port: u16,
        /// Those that there are.
        ports: Vec<u16>,
    },
    /// The service that the proxy sees lacks the port that is named.
    NoPort {
        /// The port that is named.
        port: u16,
        /// Those that there are.
        ports: Vec<u16>,
    },
    /// The DestinationRule that counts for this proxy lacks the subset, or none counts.
    NoSubset,
}

impl Place<'_> {
    /// The cluster of a destination. Whether it exists is not asked: Envoy answers 503 when not.
    pub fn cluster(&self, destination: &Destination) -> String {
        let port = destination.port.unwrap_or_else(|| self.default_port(&destination.host));
        names::outbound_cluster(port, &destination.subset, &destination.host)
    }

    /// Why the cluster of a destination does not exist for this proxy, where the check of the
    /// documents among themselves could not tell.
    pub fn gap(&self, destination: &Destination) -> Option<Gap> {
        let services = &self.scope.world.routing.services;
        let Some(scoped) = self.scope.world.find(&destination.host) else {
            let hidden = services.of_host(&destination.host).next().is_some();
            return hidden.then_some(Gap::Hidden);
        };
        let port = destination.port.unwrap_or_else(|| self.default_port(&destination.host));
        if scoped.port(port).is_some() {
            return self.lacks_subset(destination).then_some(Gap::NoSubset);
        }
        let ports = || scoped.ports().map(|p| p.number).collect();
        match destination.port {
            None => Some(Gap::NoDefaultPort { port, ports: ports() }),
            Some(port) => {
                let mut of_host = services.of_host(&destination.host);
                of_host
                    .any(|(_, s)| s.port(port).is_some())
                    .then(|| Gap::NoPort { port, ports: ports() })
            }
        }
    }

    /// Whether a subset exists, but not for this proxy: rules of other namespaces do not count
    /// everywhere.
    fn lacks_subset(&self, destination: &Destination) -> bool {
        let Destination { host, subset, .. } = destination;
        let defined = |rule: &DestinationRule| rule.subset(subset).is_some();
        !subset.is_empty()
            && !self.destination_rule(host).is_some_and(defined)
            && self
                .scope
                .world
                .routing
                .destination_rules
                .iter()
                .any(|r| host.is_subset_of(&r.host) && defined(r))
    }

    /// The DestinationRule of a destination, as this proxy sees it.
    pub fn destination_rule(&self, host: &Hostname) -> Option<&DestinationRule> {
        self.scope.world.destination_rule(host).map(|rule| &**rule)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::Eyes;
    use crate::generate::test_support::{destination, router, service, sidecar, snapshot};
    use crate::model::Protocol::Http;

    #[test]
    fn a_sidecar_takes_the_listeners_port_even_if_the_service_has_another() {
        let snapshot = snapshot(vec![service("a.b", &[(8080, Http)])], Vec::new());
        let view = sidecar();
        let eyes = Eyes::new(&snapshot, &view);
        let viewer = eyes.viewer();
        let scope = eyes.scope(&viewer);
        let mut place = Place {
            scope: &scope,
            gateway: GatewayRef::Mesh,
            listen_port: 80,
            scheme: Scheme::Http,
            registry: Registry::ListenPort,
        };
        assert_eq!(place.cluster(&destination("a.b")), "outbound|80||a.b");
        place.registry = Registry::OnlyPortOr(9);
        assert_eq!(place.cluster(&destination("a.b")), "outbound|8080||a.b");
        assert_eq!(place.cluster(&destination("x.b")), "outbound|9||x.b");
    }

    #[test]
    fn a_gateway_takes_the_services_only_port_and_prefers_the_rules_namespace() {
        let mut near = service("a.b", &[(1000, Http)]);
        near.namespace = Namespace::from("near");
        let services =
            vec![service("a.b", &[(2000, Http)]), near, service("two.b", &[(1, Http), (2, Http)])];
        let snapshot = snapshot(services, Vec::new());
        let view = router();
        let eyes = Eyes::new(&snapshot, &view);
        let viewer = eyes.viewer();
        let scope = eyes.scope(&viewer);
        let namespace = Namespace::from("near");
        let place = Place {
            scope: &scope,
            gateway: GatewayRef::Mesh,
            listen_port: 443,
            scheme: Scheme::Https,
            registry: Registry::Gateway(&namespace),
        };
        assert_eq!(place.cluster(&destination("a.b")), "outbound|1000||a.b");
        assert_eq!(place.cluster(&destination("two.b")), "outbound|443||two.b");
        let named = Destination { port: Some(7), subset: "v1".into(), ..destination("two.b") };
        assert_eq!(place.cluster(&named), "outbound|7|v1|two.b");
    }
}
