//! Routing rules, whatever kind of document they were written in: matches, destinations and what
//! happens on the way.

use super::virtual_service::GatewayRef;
use super::{Hostname, Namespace, Selector};
use crate::diag::Span;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How a text is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StringMatch {
    /// Equal.
    Exact(String),
    /// Begins with. Plain string prefix: `/foo` also matches `/foobar`.
    Prefix(String),
    /// RE2 regular expression that must match the whole text.
    Regex(String),
}

/// How the path of a request (without its query) is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathMatch {
    /// Equal.
    Exact(String),
    /// Begins with this text: `/a` also matches `/ab`.
    Prefix(String),
    /// Begins with these segments: `/a` matches `/a` and `/a/b`, not `/ab`. A final `/` means nothing.
    SegmentPrefix(String),
    /// RE2 regular expression that must match the whole path.
    Regex(String),
}

impl PathMatch {
    /// Whether it holds for every path.
    pub fn is_everything(&self) -> bool {
        match self {
            PathMatch::Exact(_) => false,
            PathMatch::Prefix(prefix) => prefix == "/",
            PathMatch::SegmentPrefix(prefix) => prefix.trim_end_matches('/').is_empty(),
            PathMatch::Regex(pattern) => pattern == ".*",
        }
    }
}

/// A rule for HTTP requests. What it does with them is a parameter, because before all documents are
/// known a rule may only name another document that decides.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpRule<A = HttpAction> {
    /// Its name, empty when it has none.
    pub name: String,
    /// Alternatives; empty matches everything.
    pub matches: Vec<HttpMatch>,
    /// What to do.
    pub action: A,
    /// Path and authority rewrite.
    pub rewrite: Option<Rewrite>,
    /// Request timeout; `None` is Istio's default, no timeout.
    pub timeout: Option<Duration>,
    /// Retry policy; `None` is the mesh's default.
    pub retries: Option<Retry>,
    /// Injected faults.
    pub fault: Option<Fault>,
    /// Where copies of requests go: `mirror` first, then `mirrors`. Mirrors of 0 % are left out.
    pub mirrors: Vec<Mirror>,
    /// Cross-origin policy.
    pub cors: Option<Cors>,
    /// Header changes of the rule.
    pub headers: Headers,
    /// Where the rule stands.
    pub span: Span,
}

impl<A> HttpRule<A> {
    /// The same rule with another action.
    pub fn with_action<B>(self, action: B) -> HttpRule<B> {
        let HttpRule { name, matches, action: _, rewrite, timeout, retries, .. } = self;
        let HttpRule { fault, mirrors, cors, headers, span, .. } = self;
        HttpRule {
            name,
            matches,
            action,
            rewrite,
            timeout,
            retries,
            fault,
            mirrors,
            cors,
            headers,
            span,
        }
    }
}

/// What a rule does with a request.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpAction {
    /// Sends it on. At least one destination. A single one ignores its weight.
    Route(Vec<WeightedDestination>),
    /// Answers with a redirect.
    Redirect(Redirect),
    /// Answers itself.
    DirectResponse(DirectResponse),
}

/// One alternative of a rule; all its conditions must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpMatch {
    /// Its name, empty when it has none.
    pub name: String,
    /// Path without query; `None` is every path.
    pub path: Option<PathMatch>,
    /// Whether exact and prefix paths are compared without case.
    pub ignore_path_case: bool,
    /// `:scheme`.
    pub scheme: Option<StringMatch>,
    /// `:method`.
    pub method: Option<StringMatch>,
    /// `:authority`, with port and case as sent.
    pub authority: Option<StringMatch>,
    /// Header conditions by name; `None` asks for presence.
    pub headers: BTreeMap<String, Option<StringMatch>>,
    /// Headers that must not match; `None` asks for absence.
    pub without_headers: BTreeMap<String, Option<StringMatch>>,
    /// Query parameters by name; `None` asks for presence.
    pub query_params: BTreeMap<String, Option<StringMatch>>,
    /// The port that the request arrives on.
    pub port: Option<u16>,
    /// Labels of the calling proxy. Not looked at when `gateways` is set.
    pub source_labels: Selector,
    /// Namespace of the calling proxy. Not looked at when `gateways` is set.
    pub source_namespace: Option<Namespace>,
    /// Gateways where it applies; empty is everywhere the document applies.
    pub gateways: Vec<GatewayRef>,
    /// Prefix of Envoy's per-route statistics.
    pub stat_prefix: String,
    /// Where it stands.
    pub span: Span,
}

impl HttpMatch {
    /// Whether it asks nothing of a request.
    pub fn takes_every_request(&self) -> bool {
        self.path.as_ref().is_none_or(PathMatch::is_everything)
            && [&self.scheme, &self.method, &self.authority].iter().all(|text| text.is_none())
            && self.headers.is_empty()
            && self.without_headers.is_empty()
            && self.query_params.is_empty()
    }
}

/// A destination: a service, one of its ports, one of its subsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host, short names already expanded.
    pub host: Hostname,
    /// The subset, empty for the whole service.
    pub subset: Arc<str>,
    /// The port, where it is written.
    pub port: Option<u16>,
    /// Where the host is named.
    pub span: Span,
    /// Where the subset is named.
    pub subset_span: Span,
    /// Where the port is named.
    pub port_span: Span,
}

/// A destination with its share and header changes.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedDestination {
    /// Where to.
    pub destination: Destination,
    /// Its share; 0 gets nothing unless it is the only one.
    pub weight: u32,
    /// Header changes for this destination.
    pub headers: Headers,
}

/// Header changes in both directions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// On the way to the upstream.
    pub request: HeaderOperations,
    /// On the way back.
    pub response: HeaderOperations,
}

/// Header changes in one direction. Values are Envoy format strings that were checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderOperations {
    /// Overwrites or adds.
    pub set: BTreeMap<String, String>,
    /// Appends.
    pub add: BTreeMap<String, String>,
    /// Removes.
    pub remove: Vec<String>,
}

/// `redirect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// New authority, empty to keep it.
    pub authority: String,
    /// New path, `None` to keep it.
    pub path: Option<RedirectPath>,
    /// New scheme, empty to keep it.
    pub scheme: String,
    /// New port, `None` to leave it to Envoy.
    pub port: Option<RedirectPort>,
    /// Status: 301, 302, 303, 307 or 308.
    pub code: u16,
}

/// The path of a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectPath {
    /// Replaces the whole path.
    Full(String),
    /// Replaces the matched prefix.
    Prefix(String),
}

/// The port of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectPort {
    /// This one.
    Number(u16),
    /// The port that the request came in on.
    FromRequest,
    /// The scheme's default.
    FromProtocol,
}

/// `directResponse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectResponse {
    /// Status, 200 to 599.
    pub status: u16,
    /// Body.
    pub body: Option<ResponseBody>,
}

/// The body of a direct response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseBody {
    /// Text.
    Text(String),
    /// Bytes (base64 in YAML).
    Bytes(Vec<u8>),
}

/// `rewrite`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// Path change.
    pub path: Option<PathRewrite>,
    /// New authority, empty to keep it.
    pub authority: String,
}

/// How a rewrite changes the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathRewrite {
    /// Replaces the matched prefix, or the whole path after an exact or regex match.
    Uri(String),
    /// Replaces by regular expression.
    Regex {
        /// RE2 pattern.
        pattern: String,
        /// Substitution with `\1` groups.
        substitution: String,
    },
}

/// `retries`. Unset parts follow the built-in policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Number of retries; 0 or less switches retries off.
    pub attempts: i32,
    /// Timeout of each try.
    pub per_try_timeout: Option<Duration>,
    /// Conditions (words and status numbers), `None` for the built-in list.
    pub retry_on: Option<Vec<String>>,
    /// Whether other localities are tried.
    pub retry_remote_localities: Option<bool>,
    /// Whether hosts that failed are avoided.
    pub ignore_previous_hosts: Option<bool>,
    /// Base interval between tries.
    pub backoff: Option<Duration>,
}

/// A share, in the unit in which it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Percent {
    /// Out of a million (`percentage.value` 12.5 is 125,000).
    Millionths(u32),
    /// Out of a hundred (the deprecated integer fields).
    Hundredths(u32),
}

/// `fault`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Delay before forwarding.
    pub delay: Option<Delay>,
    /// Answer instead of forwarding.
    pub abort: Option<Abort>,
}

/// A fixed delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay {
    /// How long.
    pub duration: Duration,
    /// How often; `None` is never (Istio: an unset percentage is 0 %).
    pub percent: Option<Percent>,
}

/// An abort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// With what.
    pub status: AbortStatus,
    /// How often; `None` is never.
    pub percent: Option<Percent>,
}

/// The status of an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortStatus {
    /// HTTP status.
    Http(u16),
    /// gRPC status number.
    Grpc(u32),
}

/// A copy of the traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// Where to.
    pub destination: Destination,
    /// How much of it.
    pub percent: Percent,
}

/// `corsPolicy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Allowed origins.
    pub allow_origins: Vec<StringMatch>,
    /// Allowed methods.
    pub allow_methods: Vec<String>,
    /// Allowed request headers.
    pub allow_headers: Vec<String>,
    /// Readable response headers.
    pub expose_headers: Vec<String>,
    /// How long a preflight may be cached.
    pub max_age: Option<Duration>,
    /// Whether credentials are allowed.
    pub allow_credentials: Option<bool>,
    /// Whether preflights of other origins go to the upstream (Istio's default: yes).
    pub forward_not_matching_preflights: bool,
}

/// Conditions that `tcp` matches and `tls` matches share.
#[derive(Debug, Clone, PartialEq)]
pub struct L4Match {
    /// Destination networks; ignored on gateways.
    pub destination_subnets: Vec<IpNet>,
    /// The port that the connection arrives on.
    pub port: Option<u16>,
    /// Labels of the calling proxy; ignored on gateways.
    pub source_labels: Selector,
    /// Namespace of the calling proxy; ignored on gateways.
    pub source_namespace: Option<Namespace>,
    /// Gateways where it applies; empty is everywhere.
    pub gateways: Vec<GatewayRef>,
    /// Where it stands.
    pub span: Span,
}

/// One alternative of a `tls` rule.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsMatch {
    /// SNI hosts, at least one.
    pub sni_hosts: Vec<Hostname>,
    /// The rest.
    pub l4: L4Match,
}

/// One `tls` rule.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsRule {
    /// Alternatives, at least one.
    pub matches: Vec<TlsMatch>,
    /// Where to (no header changes apply).
    pub destinations: Vec<WeightedDestination>,
    /// Where the rule stands.
    pub span: Span,
}

/// One `tcp` rule.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpRule {
    /// Alternatives; empty matches everything.
    pub matches: Vec<L4Match>,
    /// Where to.
    pub destinations: Vec<WeightedDestination>,
    /// Where the rule stands.
    pub span: Span,
}
