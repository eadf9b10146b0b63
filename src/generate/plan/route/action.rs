//! What a route does with a request: sends it on, redirects it, or answers it.

use super::headers::Changes;
use super::retry::{self, PreviousHosts};
use super::rules::RulesInput;
use super::target::Target;
use super::{HeaderChanges, RetryPolicy, hash};
use crate::model::{
    self, DirectResponse, HashKey, HttpMatch, HttpRule, PathMatch, PathRewrite, Percent,
    RedirectPort, WeightedDestination,
};
use std::time::Duration;

/// What is done with a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// It is sent on.
    Forward(Box<Forward>),
    /// It is answered with a redirect.
    Redirect(Redirect),
    /// It is answered.
    Answer(DirectResponse),
}

/// Where and how a request is sent on.
#[derive(Debug, Clone, PartialEq)]
pub struct Forward {
    /// Where to.
    pub clusters: Clusters,
    /// Its timeout; `None` is none at all.
    pub timeout: Option<Duration>,
    /// How its path changes.
    pub path: Option<PathRewrite>,
    /// Its new authority.
    pub authority: Option<String>,
    /// Where copies go.
    pub mirrors: Vec<Mirror>,
    /// What it is hashed by.
    pub hash: Vec<HashKey>,
    /// When it is tried again.
    pub retry: Option<RetryPolicy>,
}

/// The clusters of a route.
#[derive(Debug, Clone, PartialEq)]
pub enum Clusters {
    /// One; what its destination says about headers is the route's.
    One(String),
    /// Several by weight, at least one. The sum fits into 32 bits.
    Weighted(Vec<Cluster>),
}

/// One of several clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its share, above 0.
    pub weight: u32,
    /// Header changes on the way there.
    pub request_headers: HeaderChanges,
    /// Header changes on the way back.
    pub response_headers: HeaderChanges,
    /// A new authority for requests that go there.
    pub authority: Option<String>,
}

/// A copy of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Mirror {
    /// Where it goes.
    pub cluster: String,
    /// Of how many.
    pub percent: Percent,
}

/// A redirect.
#[derive(Debug, Clone, PartialEq)]
pub struct Redirect {
    /// New authority, empty to keep it.
    pub authority: String,
    /// New path, `None` to keep it.
    pub path: Option<RedirectPath>,
    /// New scheme, empty to keep it.
    pub scheme: String,
    /// The port to write; `None` writes none.
    pub port: Option<u16>,
    /// The status.
    pub code: RedirectCode,
}

/// The new path of a redirect.
#[derive(Debug, Clone, PartialEq)]
pub enum RedirectPath {
    /// The whole path.
    Full(String),
    /// What stands where the matched prefix stood.
    Prefix(String),
    /// What stands where this expression matches.
    Regex {
        /// RE2 pattern.
        pattern: String,
        /// What replaces it.
        substitution: String,
    },
}

/// The statuses with which Envoy can redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectCode {
    /// 301.
    MovedPermanently,
    /// 302.
    Found,
    /// 303.
    SeeOther,
    /// 307.
    TemporaryRedirect,
    /// 308.
    PermanentRedirect,
}

/// An action, and what else follows from it.
pub(super) struct Outcome {
    pub action: Action,
    /// Whether it only names clusters that the proxy does not have.
    pub leads_nowhere: bool,
    /// Host and port of the only destination.
    pub only: Option<(model::Hostname, u16)>,
}

impl Outcome {
    pub fn plain(action: Action) -> Outcome {
        Outcome { action, leads_nowhere: false, only: None }
    }
}

/// Sends requests to one cluster: Istio's action without any rule, with no timeout at all.
pub(super) fn to_cluster(name: String) -> Forward {
    Forward {
        clusters: Clusters::One(name),
        timeout: None,
        path: None,
        authority: None,
        mirrors: Vec::new(),
        hash: Vec::new(),
        retry: None,
    }
}

/// Sends requests to the destinations of a rule. `changes` are the rule's header changes; those of
/// a single destination are appended to them.
pub(super) fn forward(
    input: &RulesInput,
    rule: &HttpRule,
    wanted: Option<&HttpMatch>,
    destinations: &[WeightedDestination],
    (targets, mirrors): (&[Target], &[Target]),
    changes: &mut Changes,
) -> Outcome {
    let rewritten = rule.rewrite.as_ref().map(|r| r.authority.clone()).filter(|a| !a.is_empty());
    let mut authority = rewritten.or_else(|| changes.authority.take());
    let hash: Vec<HashKey> = destinations
        .iter()
        .zip(targets)
        .filter_map(|(to, target)| hash::of_destination(&target.rule.as_ref()?.0, &to.destination))
        .collect();
    let mut previous_hosts = PreviousHosts::Avoid;
    let mut only = None;
    let mut leads_nowhere = true;
    let clusters = match (destinations, targets) {
        ([to], [target]) => {
            if !hash.is_empty() {
                previous_hosts = PreviousHosts::Allow;
            }
            let mut own = Changes::of(&to.headers);
            authority = authority.or(own.authority.take());
            changes.append(own);
            only = Some((to.destination.host.clone(), target.port));
            leads_nowhere = !target.exists;
            Clusters::One(target.cluster(&to.destination))
        }
        _ => {
            let weighted = weighted(destinations, targets);
            if weighted.is_empty() {
                // Envoy refuses the whole route table when weights add up to nothing.
                let unavailable = DirectResponse { status: 503, body: None };
                return Outcome::plain(Action::Answer(unavailable));
            }
            for (to, target) in destinations.iter().zip(targets) {
                leads_nowhere &= to.weight == 0 || !target.exists;
            }
            Clusters::Weighted(weighted)
        }
    };
    let forward = Forward {
        clusters,
        timeout: rule.timeout,
        path: rule.rewrite.as_ref().and_then(|r| Some(new_path(wanted, r.path.as_ref()?))),
        authority,
        mirrors: rule
            .mirrors
            .iter()
            .zip(mirrors)
            .map(|(mirror, target)| Mirror {
                cluster: target.cluster(&mirror.destination),
                percent: mirror.percent,
            })
            .collect(),
        hash,
        retry: retry::policy(
            rule.retries.as_ref(),
            input.mesh().default_http_retry.as_ref(),
            previous_hosts,
        ),
    };
    Outcome { action: Action::Forward(Box::new(forward)), leads_nowhere, only }
}

fn weighted(destinations: &[WeightedDestination], targets: &[Target]) -> Vec<Cluster> {
    let sum: u64 = destinations.iter().map(|d| u64::from(d.weight)).sum();
    // Envoy adds weights in 32 bits and refuses more; shares stay as they are when all shrink.
    let divisor = u32::try_from(sum / u64::from(u32::MAX / 2) + 1).unwrap_or(u32::MAX);
    let divisor = if u32::try_from(sum).is_ok() { 1 } else { divisor };
    destinations
        .iter()
        .zip(targets)
        .filter(|(to, _)| to.weight > 0)
        .map(|(to, target)| {
            let own = Changes::of(&to.headers);
            Cluster {
                name: target.cluster(&to.destination),
                weight: (to.weight / divisor).max(1),
                request_headers: own.request,
                response_headers: own.response,
                authority: own.authority,
            }
        })
        .collect()
}

/// The segments that a match of segments takes off, so that `/` can take their place: Envoy puts the
/// new prefix before what is left of the path, and `/` before `/b` would be `//b`.
fn segments(wanted: Option<&HttpMatch>, replacement: &str) -> Option<(String, String)> {
    let wanted = wanted?;
    let Some(PathMatch::SegmentPrefix(prefix)) = &wanted.path else { return None };
    let prefix = prefix.trim_end_matches('/');
    let all = !prefix.is_empty() && replacement.trim_end_matches('/').is_empty();
    let flags = if wanted.ignore_path_case { "(?i)" } else { "" };
    all.then(|| (format!("{flags}^{}/*", regex::escape(prefix)), "/".to_owned()))
}

/// What replaces the matched prefix. Behind segments a final slash would be one too many.
fn replacement(wanted: Option<&HttpMatch>, text: &str) -> String {
    match wanted.and_then(|wanted| wanted.path.as_ref()) {
        Some(PathMatch::SegmentPrefix(prefix)) if !prefix.trim_end_matches('/').is_empty() => {
            text.trim_end_matches('/').to_owned()
        }
        _ => text.to_owned(),
    }
}

fn new_path(wanted: Option<&HttpMatch>, rewrite: &PathRewrite) -> PathRewrite {
    match rewrite {
        PathRewrite::Regex { .. } => rewrite.clone(),
        PathRewrite::Uri(uri) => match segments(wanted, uri) {
            Some((pattern, substitution)) => PathRewrite::Regex { pattern, substitution },
            None => PathRewrite::Uri(replacement(wanted, uri)),
        },
    }
}

/// A redirect; `None` for a status that Envoy cannot send.
pub(super) fn redirect(
    input: &RulesInput,
    wanted: Option<&HttpMatch>,
    redirect: &model::Redirect,
) -> Option<Outcome> {
    let code = match redirect.code {
        301 => RedirectCode::MovedPermanently,
        302 => RedirectCode::Found,
        303 => RedirectCode::SeeOther,
        307 => RedirectCode::TemporaryRedirect,
        308 => RedirectCode::PermanentRedirect,
        _ => return None,
    };
    let path = redirect.path.as_ref().map(|path| match path {
        model::RedirectPath::Full(path) => RedirectPath::Full(path.clone()),
        model::RedirectPath::Prefix(prefix) => match segments(wanted, prefix) {
            Some((pattern, substitution)) => RedirectPath::Regex { pattern, substitution },
            None => RedirectPath::Prefix(replacement(wanted, prefix)),
        },
    });
    Some(Outcome::plain(Action::Redirect(Redirect {
        authority: redirect.authority.clone(),
        path,
        scheme: redirect.scheme.clone(),
        port: redirect_port(input, redirect),
        code,
    })))
}

/// The port of a redirect. Envoy prints whatever port it is told, also 443 behind `https`, so a
/// scheme's own port is left out here.
fn redirect_port(input: &RulesInput, redirect: &model::Redirect) -> Option<u16> {
    let port = match redirect.port? {
        RedirectPort::FromProtocol => return None,
        RedirectPort::Number(port) => port,
        RedirectPort::FromRequest => input.listen_port,
    };
    let scheme = match redirect.scheme.as_str() {
        "" => input.scheme.as_str(),
        scheme => scheme,
    };
    match (scheme, port) {
        ("http", 80) | ("https", 443) => None,
        _ => Some(port),
    }
}
