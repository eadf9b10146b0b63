//! Routes of requests, decided: tables of virtual hosts, each with the routes that a request for it
//! may take.
//!
//! ```text
//! rules of a document, targets  -> RouteList     rules.rs
//! names, lists of routes        -> VirtualHost   host.rs
//! what a listener serves        -> RouteTable    sidecar/, edge.rs
//! ```
//!
//! Each arrow is handed nothing but its left side and who looks, so that its result can be used
//! again ([`Parts`]). Tables differ little from proxy to proxy and from change to change; what they
//! have in common is the very same part.

mod action;
mod domains;
mod edge;
mod hash;
mod headers;
mod host;
mod order;
mod parts;
mod retry;
mod rules;
mod sidecar;
mod target;

pub use action::{
    Action, Cluster, Clusters, Forward, Mirror, Redirect, RedirectCode, RedirectPath,
};
pub use domains::Domain;
pub use headers::{HeaderAddition, HeaderChanges};
pub use host::HostInput;
pub use parts::{Parts, TableInput};
pub use retry::RetryPolicy;
pub use rules::{RouteList, RulesInput, Served};
pub use sidecar::EgressIndex;
pub use target::Registry;

use super::Because;
use crate::generate::Scope;
use crate::generate::filters::{Extra, Filter};
use crate::generate::plan::listener::edge::EdgePlan;
use crate::generate::plan::listener::egress::EgressPlan;
use crate::model::{HttpMatch, HttpRule, VirtualService};
use crate::proxy::Role;
use std::sync::Arc;

/// A route configuration.
#[derive(Debug)]
pub struct RouteTable {
    /// The name by which a connection manager asks for it.
    pub name: Arc<str>,
    /// What is made of a port in the `Host` header.
    pub host_port: HostPort,
    /// Its virtual hosts; no domain stands in two of them.
    pub hosts: Vec<Arc<VirtualHost>>,
    /// Why it is there.
    pub because: Because,
}

/// What a route configuration makes of a port in the `Host` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostPort {
    /// It does not matter: all requests come to one port.
    Ignored,
    /// It is part of the domains.
    Compared,
    /// There are no virtual hosts that it could matter to.
    NoHosts,
}

/// The routes of requests for some names.
#[derive(Debug)]
pub struct VirtualHost {
    /// Istio's name of it, unique in its table.
    pub name: Arc<str>,
    /// The names, in lower case.
    pub domains: Vec<Domain>,
    /// Its routes; the first that takes a request has it.
    pub routes: Vec<Arc<Route>>,
    /// Whether requests in plain text are sent to HTTPS.
    pub require_tls: bool,
    /// Why it is there.
    pub because: Because,
}

/// What happens to the requests that it takes.
#[derive(Debug, PartialEq)]
pub struct Route {
    /// Its name, empty when it has none.
    pub name: String,
    /// The rule that it comes from, which says which requests it takes. `None` takes every request.
    pub rule: Option<RuleRef>,
    /// What is done with a request.
    pub action: Action,
    /// Header changes on the way to the upstream.
    pub request_headers: HeaderChanges,
    /// Header changes on the way back.
    pub response_headers: HeaderChanges,
    /// What filters of requests are told on it.
    pub filters: Vec<Filter>,
    /// What traces call the operation.
    pub operation: Option<String>,
    /// The path by which istioctl knows the document.
    pub document: Option<String>,
    /// Whether it takes every request.
    pub is_catch_all: bool,
    /// Whether it only names clusters that the proxy does not have.
    pub leads_nowhere: bool,
    /// Why it is there.
    pub because: Because,
}

/// A rule of a document, or one alternative of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleRef {
    document: Arc<VirtualService>,
    rule: usize,
    alternative: Option<usize>,
}

impl RuleRef {
    /// The rule.
    pub fn rule(&self) -> &HttpRule {
        &self.document.http[self.rule]
    }

    /// The alternative; `None` takes every request.
    pub fn wanted(&self) -> Option<&HttpMatch> {
        Some(&self.rule().matches[self.alternative?])
    }
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

/// The route tables of a proxy, by name, and what is to be said about them.
pub fn tables(
    scope: &Scope<'_>,
    parts: &dyn Parts,
    edge: &EdgePlan<'_>,
    egress: &EgressPlan,
) -> (Vec<Arc<RouteTable>>, Extra) {
    match scope.view.role() {
        Role::Sidecar => sidecar::tables(scope, parts, egress),
        Role::Router => edge::tables(scope, parts, edge),
    }
}
