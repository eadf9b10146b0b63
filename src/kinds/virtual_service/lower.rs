//! What a checked VirtualService means. Short names stay as written; they are expanded when the
//! mesh's domain is known.

use super::spec::{
    Abort, CorsPolicy, Delay, HeaderOperations, Headers, HttpDirectResponse, HttpMatchRequest,
    HttpRedirect, HttpRetry, HttpRewrite, HttpRoute, HttpRouteDestination, L4MatchAttributes,
    RedirectPortSelection, RouteDestination, Spec, TlsMatchAttributes, UnmatchedPreflights,
};
use super::text;
use crate::config::{Field, RawDocument};
use crate::kinds::KindSpec;
use crate::kinds::draft::{DelegateRef, DraftAction};
use crate::kinds::values::{self, StringMatch};
use crate::model::{
    self, AbortStatus, GatewayRef, Hostname, HttpAction, Namespace, ObjectName, PathRewrite,
    RedirectPath, RedirectPort, ResponseBody, RuleOrder, Selector, VirtualService, Visibility,
};
use std::collections::BTreeMap;

/// A VirtualService as far as its document alone tells: hosts are as written, the visibility is still
/// to be defaulted, and rules may delegate.
#[derive(Debug, Clone)]
pub(super) struct Lowered {
    /// All but the HTTP rules, of which there are none here.
    pub service: VirtualService,
    /// The HTTP rules.
    pub http: Vec<model::HttpRule<DraftAction>>,
}

/// What the document says.
pub(super) fn virtual_service(spec: &Spec, document: &RawDocument) -> Lowered {
    let namespace = Namespace::from(&*document.header.namespace);
    let lowering = Lowering { document, namespace };
    let at = Field::root("spec");
    let gateways = match lowering.gateways(&spec.gateways) {
        none if none.is_empty() => vec![GatewayRef::Mesh],
        some => some,
    };
    let service = VirtualService {
        origin: Spec::ABOUT.origin(&document.header),
        hosts: spec.hosts.iter().map(|host| Hostname::from(host.as_str())).collect(),
        gateways,
        gateway_spans: each(&at.key("gateways"), &spec.gateways, |at, _| document.span(at)),
        visibility: Visibility::Public,
        order: RuleOrder::AsWritten,
        http: Vec::new(),
        tls: each(&at.key("tls"), &spec.tls, |at, rule| model::TlsRule {
            matches: each(&at.key("match"), &rule.r#match, |at, m| lowering.tls_match(at, m)),
            destinations: lowering.destinations(&at.key("route"), &rule.route),
            span: document.span(at),
        }),
        tcp: each(&at.key("tcp"), &spec.tcp, |at, rule| model::TcpRule {
            matches: each(&at.key("match"), &rule.r#match, |at, m| lowering.l4_match(at, m)),
            destinations: lowering.destinations(&at.key("route"), &rule.route),
            span: document.span(at),
        }),
    };
    let http = each(&at.key("http"), &spec.http, |at, rule| lowering.http(at, rule));
    Lowered { service, http }
}

/// A Gateway as a VirtualService of `namespace` names it. The dotted form is Istio's old one.
pub(super) fn gateway_ref(text: &str, namespace: &Namespace) -> GatewayRef {
    if text == "mesh" {
        return GatewayRef::Mesh;
    }
    let name = match text.split_once('/') {
        Some((".", name)) => ObjectName::new(namespace.clone(), name),
        Some((other, name)) => ObjectName::new(other, name),
        None => {
            let mut parts = text.split('.');
            let name = parts.next().unwrap_or(text);
            match parts.next() {
                Some(other) => ObjectName::new(other, name),
                None => ObjectName::new(namespace.clone(), name),
            }
        }
    };
    GatewayRef::whole(name)
}

fn each<T, M>(at: &Field<'_>, list: &[T], lower: impl Fn(&Field<'_>, &T) -> M) -> Vec<M> {
    list.iter().enumerate().map(|(index, item)| lower(&at.index(index), item)).collect()
}

struct Lowering<'d> {
    document: &'d RawDocument,
    namespace: Namespace,
}

impl Lowering<'_> {
    fn gateways(&self, list: &[String]) -> Vec<GatewayRef> {
        list.iter().map(|text| gateway_ref(text, &self.namespace)).collect()
    }

    fn http(&self, at: &Field<'_>, rule: &HttpRoute) -> model::HttpRule<DraftAction> {
        model::HttpRule {
            name: rule.name.clone(),
            matches: each(&at.key("match"), &rule.r#match, |at, m| self.http_match(at, m)),
            action: self.action(at, rule),
            rewrite: rule.rewrite.as_ref().map(rewrite),
            timeout: rule.timeout.map(|timeout| timeout.0),
            retries: rule.retries.as_ref().map(retry),
            fault: rule.fault.as_ref().map(|fault| model::Fault {
                delay: fault.delay.as_ref().and_then(delay),
                abort: fault.abort.as_ref().and_then(abort),
            }),
            mirrors: self.mirrors(at, rule),
            cors: rule.cors_policy.as_ref().map(cors),
            headers: headers(rule.headers.as_ref()),
            span: self.document.span(at),
        }
    }

    fn action(&self, at: &Field<'_>, rule: &HttpRoute) -> DraftAction {
        if let Some(delegate) = &rule.delegate {
            let namespace = match delegate.namespace.as_str() {
                "" => self.namespace.clone(),
                other => Namespace::from(other),
            };
            return DraftAction::Delegate(DelegateRef {
                name: ObjectName::new(namespace, delegate.name.as_str()),
                span: self.document.span(&at.key("delegate")),
            });
        }
        if let Some(r) = &rule.redirect {
            return DraftAction::Own(HttpAction::Redirect(redirect(r)));
        }
        if let Some(response) = &rule.direct_response {
            return DraftAction::Own(HttpAction::DirectResponse(direct_response(response)));
        }
        let route = &at.key("route");
        let destinations = each(route, &rule.route, |at, d| self.http_destination(at, d));
        DraftAction::Own(HttpAction::Route(destinations))
    }

    fn http_destination(
        &self,
        at: &Field<'_>,
        route: &HttpRouteDestination,
    ) -> model::WeightedDestination {
        model::WeightedDestination {
            destination: self.destination(&at.key("destination"), &route.destination),
            weight: route.weight.unsigned_abs(),
            headers: headers(route.headers.as_ref()),
        }
    }

    fn destinations(
        &self,
        at: &Field<'_>,
        routes: &[RouteDestination],
    ) -> Vec<model::WeightedDestination> {
        each(at, routes, |at, route| model::WeightedDestination {
            destination: self.destination(&at.key("destination"), &route.destination),
            weight: route.weight.unsigned_abs(),
            headers: model::Headers::default(),
        })
    }

    fn destination(&self, at: &Field<'_>, to: &values::Destination) -> model::Destination {
        model::Destination {
            host: Hostname::from(to.host.as_str()),
            subset: to.subset.as_str().into(),
            port: to.port.map(|port| port.number),
            span: self.document.span(&at.key("host")),
            subset_span: self.document.span(&at.key("subset")),
            port_span: self.document.span(&at.key("port").key("number")),
        }
    }

    fn mirrors(&self, at: &Field<'_>, rule: &HttpRoute) -> Vec<model::Mirror> {
        let all = model::Percent::Hundredths(100);
        let mut mirrors = Vec::new();
        if let Some(to) = &rule.mirror {
            let percent = match (rule.mirror_percentage, rule.mirror_percent) {
                (Some(percentage), _) => percentage.lower(),
                (None, Some(percent)) => model::Percent::Hundredths(percent),
                (None, None) => all,
            };
            let destination = self.destination(&at.key("mirror"), to);
            mirrors.push(model::Mirror { destination, percent });
        }
        mirrors.extend(each(&at.key("mirrors"), &rule.mirrors, |at, mirror| model::Mirror {
            destination: self.destination(&at.key("destination"), &mirror.destination),
            percent: mirror.percentage.map_or(all, values::Percent::lower),
        }));
        mirrors.retain(|mirror| {
            let (model::Percent::Millionths(share) | model::Percent::Hundredths(share)) =
                mirror.percent;
            share > 0
        });
        mirrors
    }

    fn http_match(&self, at: &Field<'_>, m: &HttpMatchRequest) -> model::HttpMatch {
        let condition = |text: &Option<StringMatch>| text.as_ref().and_then(StringMatch::lower);
        let mut headers = conditions(&m.headers);
        let (claims, without_headers): (BTreeMap<_, _>, BTreeMap<_, _>) =
            conditions(&m.without_headers).into_iter().partition(|(name, _)| text::is_claim(name));
        // Nothing reads the token yet, so no request may seem to fulfil a condition on it: no
        // header has such a name, and asking for its presence fails.
        headers.extend(claims.into_keys().map(|name| (name, None)));
        model::HttpMatch {
            name: m.name.clone(),
            path: m.uri.as_ref().and_then(StringMatch::lower_path),
            ignore_path_case: m.ignore_uri_case,
            scheme: condition(&m.scheme),
            method: condition(&m.method),
            authority: condition(&m.authority),
            headers,
            without_headers,
            query_params: conditions(&m.query_params),
            port: some_port(m.port),
            source_labels: Selector::from(m.source_labels.clone()),
            source_namespace: some_namespace(&m.source_namespace),
            gateways: self.gateways(&m.gateways),
            stat_prefix: m.stat_prefix.clone(),
            span: self.document.span(at),
        }
    }

    fn l4_match(&self, at: &Field<'_>, m: &L4MatchAttributes) -> model::L4Match {
        model::L4Match {
            destination_subnets: subnets(&m.destination_subnets),
            port: some_port(m.port),
            source_labels: Selector::from(m.source_labels.clone()),
            source_namespace: some_namespace(&m.source_namespace),
            gateways: self.gateways(&m.gateways),
            span: self.document.span(at),
        }
    }

    fn tls_match(&self, at: &Field<'_>, m: &TlsMatchAttributes) -> model::TlsMatch {
        model::TlsMatch {
            sni_hosts: m.sni_hosts.iter().map(|host| Hostname::from(host.as_str())).collect(),
            l4: model::L4Match {
                destination_subnets: subnets(&m.destination_subnets),
                port: some_port(m.port),
                source_labels: Selector::from(m.source_labels.clone()),
                source_namespace: some_namespace(&m.source_namespace),
                gateways: self.gateways(&m.gateways),
                span: self.document.span(at),
            },
        }
    }
}

fn some_port(port: u16) -> Option<u16> {
    (port != 0).then_some(port)
}

fn some_namespace(name: &str) -> Option<Namespace> {
    (!name.is_empty()).then(|| Namespace::from(name))
}

fn conditions(map: &BTreeMap<String, StringMatch>) -> BTreeMap<String, Option<model::StringMatch>> {
    map.iter().map(|(name, condition)| (name.clone(), condition.lower())).collect()
}

fn subnets(list: &[String]) -> Vec<ipnet::IpNet> {
    list.iter().filter_map(|subnet| text::subnet(subnet)).collect()
}

fn headers(headers: Option<&Headers>) -> model::Headers {
    let operations = |operations: Option<&HeaderOperations>| {
        operations.map_or_else(model::HeaderOperations::default, |o| model::HeaderOperations {
            set: o.set.clone(),
            add: o.add.clone(),
            remove: o.remove.clone(),
        })
    };
    headers.map_or_else(model::Headers::default, |headers| model::Headers {
        request: operations(headers.request.as_ref()),
        response: operations(headers.response.as_ref()),
    })
}

fn redirect(redirect: &HttpRedirect) -> model::Redirect {
    let path = if !redirect.prefix_rewrite.is_empty() {
        Some(RedirectPath::Prefix(redirect.prefix_rewrite.clone()))
    } else if !redirect.uri.is_empty() {
        Some(RedirectPath::Full(redirect.uri.clone()))
    } else {
        None
    };
    let port = match (redirect.port, redirect.derive_port) {
        (Some(number), _) => Some(RedirectPort::Number(number)),
        (None, Some(RedirectPortSelection::FromProtocolDefault)) => {
            Some(RedirectPort::FromProtocol)
        }
        (None, Some(RedirectPortSelection::FromRequestPort)) => Some(RedirectPort::FromRequest),
        (None, None) => None,
    };
    model::Redirect {
        authority: redirect.authority.clone(),
        path,
        scheme: redirect.scheme.clone(),
        port,
        code: u16::try_from(redirect.redirect_code).ok().filter(|code| *code != 0).unwrap_or(301),
    }
}

fn direct_response(response: &HttpDirectResponse) -> model::DirectResponse {
    let body = response.body.as_ref().and_then(|body| match (&body.string, &body.bytes) {
        (Some(text), _) => Some(ResponseBody::Text(text.clone())),
        (None, Some(bytes)) => text::decode_base64(bytes).map(ResponseBody::Bytes),
        (None, None) => None,
    });
    // The range is checked.
    let status = u16::try_from(response.status).unwrap_or(u16::MAX);
    model::DirectResponse { status, body }
}

fn rewrite(rewrite: &HttpRewrite) -> model::Rewrite {
    let path = match &rewrite.uri_regex_rewrite {
        Some(regex) => Some(PathRewrite::Regex {
            pattern: regex.r#match.clone(),
            substitution: regex.rewrite.clone(),
        }),
        None if rewrite.uri.is_empty() => None,
        None => Some(PathRewrite::Uri(rewrite.uri.clone())),
    };
    model::Rewrite { path, authority: rewrite.authority.clone() }
}

/// A retry policy; the mesh has a default one too.
pub(in crate::kinds) fn retry(retry: &HttpRetry) -> model::Retry {
    let conditions: Vec<String> = retry
        .retry_on
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    model::Retry {
        attempts: retry.attempts,
        per_try_timeout: retry.per_try_timeout.map(|timeout| timeout.0),
        retry_on: (!conditions.is_empty()).then_some(conditions),
        retry_remote_localities: retry.retry_remote_localities,
        ignore_previous_hosts: retry.retry_ignore_previous_hosts,
        backoff: retry.backoff.map(|backoff| backoff.0),
    }
}

fn delay(delay: &Delay) -> Option<model::Delay> {
    let percent = match delay.percentage {
        Some(percentage) => Some(percentage.lower()),
        None => u32::try_from(delay.percent)
            .ok()
            .filter(|percent| *percent > 0)
            .map(model::Percent::Hundredths),
    };
    delay.fixed_delay.map(|duration| model::Delay { duration: duration.0, percent })
}

fn abort(abort: &Abort) -> Option<model::Abort> {
    let http = abort.http_status.and_then(|s| u16::try_from(s).ok()).map(AbortStatus::Http);
    let grpc = || {
        let name = abort.grpc_status.as_deref()?;
        text::grpc_status(name).map(AbortStatus::Grpc)
    };
    let status = http.or_else(grpc)?;
    Some(model::Abort { status, percent: abort.percentage.map(values::Percent::lower) })
}

fn cors(cors: &CorsPolicy) -> model::Cors {
    let mut allow_origins: Vec<model::StringMatch> =
        cors.allow_origins.iter().filter_map(StringMatch::lower).collect();
    if cors.allow_origins.is_empty() {
        allow_origins.extend(cors.allow_origin.iter().cloned().map(model::StringMatch::Exact));
    }
    model::Cors {
        allow_origins,
        allow_methods: cors.allow_methods.clone(),
        allow_headers: cors.allow_headers.clone(),
        expose_headers: cors.expose_headers.clone(),
        max_age: cors.max_age.map(|age| age.0),
        allow_credentials: cors.allow_credentials,
        forward_not_matching_preflights: match cors.unmatched_preflights {
            UnmatchedPreflights::Unspecified | UnmatchedPreflights::Forward => true,
            UnmatchedPreflights::Ignore => false,
        },
    }
}
