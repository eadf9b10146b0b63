//! The routes of a document's HTTP rules, and the route of a service that no rule speaks about.

use super::action::{self, Action, Outcome};
use super::headers::Changes;
use super::order::Specificity;
use super::target::{self, Registry, Target, missing};
use super::{HeaderChanges, Route, RuleRef, Scheme, hash, retry};
use crate::diag::Code;
use crate::generate::filters::{Extra, Filter, Filters, RouteSite, Side};
use crate::generate::memo::Same;
use crate::generate::plan::Because;
use crate::generate::{Scope, Viewer, names};
use crate::model::{
    Attachment, DestinationRule, HttpAction, HttpMatch, HttpRule, MeshSettings, PathMatch,
    RuleOrder, Service, VirtualService,
};
use std::sync::Arc;

/// Istio's name for a route that no rule made.
const DEFAULT_ROUTE: &str = "default";

/// All that the routes of a document are made of in one place, beside the view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RulesInput {
    pub(super) document: Same<VirtualService>,
    pub(super) mesh: Same<MeshSettings>,
    filters: Filters,
    /// Where the rules are served.
    pub(super) attachment: Attachment,
    /// The port that requests come in on (on gateways the declared one); 0 when there are many.
    pub(super) listen_port: u16,
    /// What requests come in with.
    pub(super) scheme: Scheme,
    /// What the destinations mean there.
    pub(super) targets: Vec<Target>,
}

/// Where the rules of a document are served.
#[derive(Debug)]
pub struct Served<'a> {
    /// On what.
    pub attachment: Attachment,
    /// The port that requests come in on (on gateways the declared one); 0 when there are many.
    pub listen_port: u16,
    /// What requests come in with.
    pub scheme: Scheme,
    /// How the port of a destination that names none is found.
    pub registry: Registry<'a>,
}

/// The routes of a document, up to the first that takes every request.
#[derive(Debug)]
pub struct RouteList {
    /// In the order in which a request tries them.
    pub routes: Vec<Arc<Route>>,
    /// What decides between them and those of other documents.
    pub order: RuleOrder,
    /// The document.
    pub document: Arc<VirtualService>,
    /// What is missing, which routes are left out, and what filters need.
    pub extra: Extra,
}

impl RulesInput {
    /// What the routes of this document are made of, served there for this proxy.
    pub fn new(
        scope: &Scope<'_>,
        document: &Arc<VirtualService>,
        served: Served<'_>,
    ) -> RulesInput {
        let Served { attachment, listen_port, scheme, registry } = served;
        RulesInput {
            document: Same(document.clone()),
            mesh: Same(scope.world.routing.mesh.clone()),
            filters: scope.filters,
            attachment,
            listen_port,
            scheme,
            targets: target::targets(scope, registry, listen_port, document),
        }
    }

    /// The routes: one for each match that can apply there. Of a route that Envoy would refuse,
    /// `refusal` tells why; only that one is left out then, because in a virtual host it would cost
    /// the proxy all its routes.
    pub fn routes(
        &self,
        view: &Viewer<'_>,
        mut refusal: impl FnMut(&Arc<Route>) -> Option<String>,
    ) -> RouteList {
        let document = self.document.0.clone();
        let order = document.order;
        let mut list = RouteList { routes: Vec::new(), order, document, extra: Extra::default() };
        for alternative in self.alternatives(view) {
            let RuleRef { rule, alternative: position, .. } = alternative.of;
            if let Some(route) = self.route(&alternative, view, &mut list.extra) {
                let route = Arc::new(route);
                match refusal(&route) {
                    None => list.routes.push(route.clone()),
                    Some(reason) => {
                        let rule = &self.document.0.http[rule];
                        let span = position.map_or(&rule.span, |p| &rule.matches[p].span);
                        let message =
                            format!("Envoy would refuse the route, so it is left out: {reason}");
                        let code = Code::InvalidResource;
                        let finding = self.document.0.origin.diagnostic_at(span, code, message);
                        list.extra.findings.push(finding);
                    }
                }
            }
            // Nothing can be reached behind what takes everything.
            if position.is_none() || list.routes.last().is_some_and(|route| route.is_catch_all) {
                return list;
            }
        }
        list
    }

    /// The mesh's settings.
    pub(super) fn mesh(&self) -> &MeshSettings {
        &self.mesh.0
    }

    /// The alternatives that can apply here, in the order in which requests are to try them.
    fn alternatives(&self, view: &Viewer<'_>) -> Vec<Alternative<'_>> {
        let document = &self.document.0;
        let mut found = Vec::new();
        let mut targets = self.targets.as_slice();
        for (position, rule) in document.http.iter().enumerate() {
            let destinations = match &rule.action {
                HttpAction::Route(list) => list.len(),
                HttpAction::Redirect(_) | HttpAction::DirectResponse(_) => 0,
            };
            let (own, rest) = targets.split_at(targets.len().min(destinations));
            let (mirrors, rest) = rest.split_at(rest.len().min(rule.mirrors.len()));
            targets = rest;
            let alternative = |alternative| Alternative {
                of: RuleRef { document: document.clone(), rule: position, alternative },
                targets: (own, mirrors),
            };
            if rule.matches.is_empty() {
                found.push(alternative(None));
                if document.order == RuleOrder::AsWritten {
                    break;
                }
                continue;
            }
            let matches = rule.matches.iter().enumerate();
            let fitting = matches.filter(|(_, wanted)| self.applies(wanted, view));
            found.extend(fitting.map(|(i, _)| alternative(Some(i))));
        }
        if document.order == RuleOrder::MostSpecific {
            found.sort_by_key(|alternative| Specificity::of(alternative.of.wanted()));
        }
        found
    }

    /// Whether the conditions that do not depend on the request hold here.
    fn applies(&self, wanted: &HttpMatch, view: &Viewer<'_>) -> bool {
        if wanted.port.is_some_and(|port| port != self.listen_port) {
            return false;
        }
        if !wanted.gateways.is_empty() {
            // Istio does not look at the source when gateways are named.
            return wanted.gateways.iter().any(|gateway| gateway.covers(&self.attachment));
        }
        view.selected_by(&wanted.source_labels)
            && wanted.source_namespace.as_ref().is_none_or(|n| n == view.namespace())
    }

    fn route(
        &self,
        alternative: &Alternative<'_>,
        view: &Viewer<'_>,
        extra: &mut Extra,
    ) -> Option<Route> {
        let document = &self.document.0;
        let rule = alternative.of.rule();
        let wanted = alternative.of.wanted();
        let mut changes = Changes::of(&rule.headers);
        let Outcome { action, leads_nowhere, only } = match &rule.action {
            HttpAction::Redirect(redirect) => {
                let outcome = action::redirect(self, wanted, redirect);
                if outcome.is_none() {
                    let message = format!(
                        "Envoy cannot redirect with status {}; the route is left out",
                        redirect.code
                    );
                    let code = Code::InvalidResource;
                    extra.findings.push(document.origin.diagnostic_at(&rule.span, code, message));
                }
                outcome?
            }
            HttpAction::DirectResponse(response) => {
                Outcome::plain(Action::Answer(response.clone()))
            }
            HttpAction::Route(destinations) => {
                let (targets, mirrors) = alternative.targets;
                let named = destinations.iter().map(|d| &d.destination).zip(targets);
                let mirrored = rule.mirrors.iter().map(|m| &m.destination).zip(mirrors);
                for (to, target) in named.chain(mirrored) {
                    if let Some(gap) = &target.gap {
                        extra.findings.push(missing(gap, document, to, self.listen_port, view));
                    }
                }
                let targets = alternative.targets;
                action::forward(self, rule, wanted, destinations, targets, &mut changes)
            }
        };
        let filters = self.filters(rule, view, extra);
        let name = &document.origin.name;
        let path = path_of_operation(wanted);
        let operation = match &only {
            Some((host, port)) => format!("{host}:{port}{path}"),
            None => format!("{}:{}{path}", name.name, self.listen_port),
        };
        let span = wanted.map_or(&rule.span, |wanted| &wanted.span);
        Some(Route {
            name: route_name(rule, wanted),
            action,
            request_headers: changes.request,
            filters,
            response_headers: changes.response,
            operation: Some(operation),
            document: Some(names::config_path("virtual-service", &name.namespace, &name.name)),
            is_catch_all: wanted.is_none_or(HttpMatch::takes_every_request),
            leads_nowhere,
            because: Because::of("an HTTP rule", &document.origin, span),
            rule: Some(alternative.of.clone()),
        })
    }
}

impl RulesInput {
    /// What filters of requests are told on the routes of a rule.
    fn filters(&self, rule: &HttpRule, view: &Viewer<'_>, extra: &mut Extra) -> Vec<Filter> {
        let side = match self.attachment {
            Attachment::Mesh => Side::Egress,
            Attachment::Listener { .. } => Side::Edge,
        };
        let (mesh, port, document) = (self.mesh(), self.listen_port, &*self.document.0);
        let site = RouteSite { mesh, view, side, port, document, rule };
        self.filters.on_route(&site, extra)
    }
}

/// One alternative of a rule, with what the rule's destinations and mirrors mean.
struct Alternative<'i> {
    of: RuleRef,
    targets: (&'i [Target], &'i [Target]),
}

/// The route of a service's port that no VirtualService speaks about.
pub(super) fn of_service(
    service: &Service,
    port: u16,
    rule: Option<&DestinationRule>,
    mesh: &MeshSettings,
) -> Route {
    let mut forward = action::to_cluster(names::outbound_cluster(port, "", &service.hostname));
    // The policy avoids hosts that failed even when there is a consistent hash, as in Istio.
    forward.retry =
        retry::policy(None, mesh.default_http_retry.as_ref(), retry::PreviousHosts::Avoid);
    forward.hash.extend(rule.and_then(|rule| hash::of_service_port(rule, port)));
    let declared = service.port(port).map_or(&service.origin.span, |port| &port.span);
    Route {
        operation: Some(format!("{}:{port}/*", service.hostname)),
        ..everything(
            DEFAULT_ROUTE,
            Action::Forward(Box::new(forward)),
            Because::of("a service that no rule speaks about", &service.origin, declared),
        )
    }
}

/// A route that takes every request, and that no rule made.
pub(super) fn everything(name: &str, action: Action, because: Because) -> Route {
    Route {
        name: name.to_owned(),
        rule: None,
        action,
        request_headers: HeaderChanges::default(),
        response_headers: HeaderChanges::default(),
        filters: Vec::new(),
        operation: None,
        document: None,
        is_catch_all: true,
        leads_nowhere: false,
        because,
    }
}

fn route_name(rule: &HttpRule, wanted: Option<&HttpMatch>) -> String {
    match wanted.map(|w| w.name.as_str()).filter(|name| !name.is_empty()) {
        None => rule.name.clone(),
        Some(name) => format!("{}.{name}", rule.name),
    }
}

/// The path in the operation name of traces. Istio writes segments as any path.
fn path_of_operation(wanted: Option<&HttpMatch>) -> String {
    match wanted.and_then(|wanted| wanted.path.as_ref()) {
        None | Some(PathMatch::SegmentPrefix(_)) => "/*".to_owned(),
        Some(PathMatch::Prefix(prefix)) => format!("{prefix}*"),
        Some(PathMatch::Exact(path)) => path.clone(),
        Some(PathMatch::Regex(pattern)) => pattern.clone(),
    }
}
