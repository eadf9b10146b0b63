//! A virtual host: by which names it is asked for, and its routes.

use super::action::{self, Action};
use super::domains::{self, Domain, PortForm, ShortForm};
use super::rules::{self, RouteList};
use super::{Route, VirtualHost, order};
use crate::generate::memo::Same;
use crate::generate::names;
use crate::generate::plan::Because;
use crate::model::{DestinationRule, DirectResponse, Hostname, MeshSettings, Service, Sidecar};
use std::sync::Arc;

/// All that a virtual host is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostInput {
    pub(super) names: Names,
    /// Positions of the domains that somebody else has.
    pub(super) taken: Vec<usize>,
    pub(super) routes: Routes,
    pub(super) require_tls: bool,
}

/// By what a virtual host is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Names {
    /// By the names of a service.
    Service { service: Same<Service>, port: u16, short: ShortForm, form: PortForm },
    /// Not at all: whatever is asked for, this port of the service is meant.
    OnlyService { service: Same<Service>, port: u16 },
    /// By a host that no service has.
    Host { host: Hostname, port: u16, form: PortForm },
    /// By the hosts of a server, the first of which gives the virtual host its name. A server that
    /// nobody has rules for is asked for by whatever name.
    Server { hosts: Vec<Hostname>, port: u16 },
    /// By whatever nobody else has.
    Others { name: &'static str },
}

/// Where the routes of a virtual host come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Routes {
    /// From documents, in order of precedence.
    Lists(Vec<Same<RouteList>>),
    /// From the service alone.
    Service { rule: Option<Same<DestinationRule>>, mesh: Same<MeshSettings> },
    /// From what is said about requests to unknown hosts: they go to this cluster, or get 502.
    Unknown { cluster: Option<String>, sidecar: Option<Same<Sidecar>> },
    /// There are none.
    Nothing,
}

impl HostInput {
    /// With all its names.
    pub(super) fn new(names: Names, routes: Routes) -> HostInput {
        HostInput { names, taken: Vec::new(), routes, require_tls: false }
    }

    /// The virtual host.
    pub fn virtual_host(&self) -> VirtualHost {
        let mut domains = self.names.domains();
        if !self.taken.is_empty() {
            let mut position = 0;
            domains.retain(|_| {
                position += 1;
                !self.taken.contains(&(position - 1))
            });
        }
        VirtualHost {
            name: self.names.name().into(),
            domains,
            routes: self.routes(),
            require_tls: self.require_tls,
            because: self.because(),
        }
    }

    fn routes(&self) -> Vec<Arc<Route>> {
        match &self.routes {
            Routes::Lists(lists) => match &lists[..] {
                [only] => only.0.routes.clone(),
                several => order::merge(&several.iter().map(|l| l.0.clone()).collect::<Vec<_>>()),
            },
            Routes::Service { rule, mesh } => match &self.names {
                Names::Service { service, port, .. } | Names::OnlyService { service, port } => {
                    let rule = rule.as_ref().map(|rule| &*rule.0);
                    vec![Arc::new(rules::of_service(&service.0, *port, rule, &mesh.0))]
                }
                Names::Host { .. } | Names::Server { .. } | Names::Others { .. } => Vec::new(),
            },
            Routes::Unknown { cluster, .. } => {
                let action = match cluster {
                    Some(cluster) => Action::Forward(Box::new(action::to_cluster(cluster.clone()))),
                    None => Action::Answer(DirectResponse { status: 502, body: None }),
                };
                vec![Arc::new(rules::everything(&self.names.name(), action, self.because()))]
            }
            Routes::Nothing => Vec::new(),
        }
    }

    fn because(&self) -> Because {
        let of_service = match &self.names {
            Names::Service { service, .. } | Names::OnlyService { service, .. } => {
                Some(Because::of("a host of a service", &service.0.origin, &service.0.origin.span))
            }
            Names::Host { .. } | Names::Server { .. } | Names::Others { .. } => None,
        };
        match &self.routes {
            Routes::Lists(lists) => {
                let reason = "a host of routing rules";
                let documents = lists.iter().map(|list| &list.0.document.origin);
                let documents = documents.fold(None, |because: Option<Because>, origin| {
                    Some(match because {
                        Some(because) => because.and(origin, &origin.span),
                        None => Because::of(reason, origin, &origin.span),
                    })
                });
                let mut because = documents.unwrap_or_else(|| Because::always(reason));
                because.sources.extend(of_service.into_iter().flat_map(|b| b.sources));
                because
            }
            Routes::Service { .. } => of_service.unwrap_or_else(|| Because::always("a service")),
            Routes::Unknown { sidecar, .. } => {
                let reason = "what may happen to requests for unknown hosts";
                match sidecar.as_ref().map(|sidecar| &sidecar.0.origin) {
                    Some(origin) => Because::of(reason, origin, &origin.span),
                    None => Because::always(reason),
                }
            }
            Routes::Nothing if self.require_tls => {
                Because::always("a server that redirects to HTTPS")
            }
            Routes::Nothing => Because::always("a server that no rules are bound to"),
        }
    }
}

impl Names {
    fn name(&self) -> String {
        match self {
            Names::Service { service, port, .. } | Names::OnlyService { service, port } => {
                names::virtual_host(&service.0.hostname.to_lowercase(), *port)
            }
            Names::Host { host, port, .. } => names::virtual_host(&host.to_lowercase(), *port),
            Names::Server { hosts, port } => {
                names::virtual_host(hosts.first().map_or("blackhole", Hostname::as_str), *port)
            }
            Names::Others { name } => (*name).to_owned(),
        }
    }

    fn domains(&self) -> Vec<Domain> {
        match self {
            Names::Service { service, short, form, .. } => {
                domains::of_service(&service.0, *short, *form)
            }
            Names::OnlyService { .. } | Names::Others { .. } => vec![Domain::full("*")],
            Names::Host { host, form, .. } => domains::of_host(host, *form),
            Names::Server { hosts, .. } if hosts.is_empty() => vec![Domain::full("*")],
            Names::Server { hosts, .. } => {
                hosts.iter().map(|host| Domain::full(&names::domain(host))).collect()
            }
        }
    }
}
