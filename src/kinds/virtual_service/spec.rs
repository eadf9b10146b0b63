//! VirtualService as users write it.

use crate::kinds::values::{Destination, Duration, Percent, StringMatch, count};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How requests and connections to some hosts are routed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "VirtualService")]
pub struct Spec {
    /// Hosts that the rules are for; none makes the document a delegate of others.
    pub hosts: Vec<String>,
    /// Gateways that apply the rules, and `mesh` for sidecars; `mesh` when none is named.
    pub gateways: Vec<String>,
    /// Rules for HTTP, in order; the first that matches counts.
    pub http: Vec<HttpRoute>,
    /// Rules for TLS that is passed through, by server name.
    pub tls: Vec<TlsRoute>,
    /// Rules for other TCP.
    pub tcp: Vec<TcpRoute>,
    /// Namespaces that see the document: names, `.` for its own, `*` for all.
    pub export_to: Vec<String>,
}

/// A rule for HTTP.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRoute {
    /// Name of the rule, for access logs.
    pub name: String,
    /// Alternatives of which one must hold; none matches everything.
    pub r#match: Vec<HttpMatchRequest>,
    /// Where requests go, by weight.
    pub route: Vec<HttpRouteDestination>,
    /// Answers with a redirect.
    pub redirect: Option<HttpRedirect>,
    /// Answers with a fixed response.
    pub direct_response: Option<HttpDirectResponse>,
    /// Leaves the requests to the rules of another VirtualService.
    pub delegate: Option<Delegate>,
    /// Changes path and authority on the way.
    pub rewrite: Option<HttpRewrite>,
    /// How long a request may take; unlimited when unset.
    pub timeout: Option<Duration>,
    /// When and how requests are tried again.
    pub retries: Option<HttpRetry>,
    /// Delays and errors to inject.
    pub fault: Option<HttpFaultInjection>,
    /// Where copies of the requests go.
    pub mirror: Option<Destination>,
    /// Several destinations of copies.
    pub mirrors: Vec<HttpMirrorPolicy>,
    /// Share of requests to copy, whole percent; use `mirrorPercentage` instead.
    #[serde(alias = "mirror_percent")]
    #[schemars(extend("deprecated" = true))]
    pub mirror_percent: Option<u32>,
    /// Share of requests to copy to `mirror`; all when unset.
    pub mirror_percentage: Option<Percent>,
    /// Which other origins may call.
    pub cors_policy: Option<CorsPolicy>,
    /// Header changes.
    pub headers: Option<Headers>,
}

/// Another VirtualService whose rules are taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Delegate {
    /// Its name.
    pub name: String,
    /// Its namespace; this document's when unset.
    pub namespace: String,
}

/// Header changes in both directions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Headers {
    /// Changes before the request is forwarded.
    pub request: Option<HeaderOperations>,
    /// Changes before the response is returned.
    pub response: Option<HeaderOperations>,
}

/// Header changes in one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderOperations {
    /// Headers to replace or create.
    pub set: BTreeMap<String, String>,
    /// Headers to append.
    pub add: BTreeMap<String, String>,
    /// Headers to remove.
    pub remove: Vec<String>,
}

/// A rule for TLS that is passed through.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsRoute {
    /// Alternatives of which one must hold.
    #[schemars(required)]
    pub r#match: Vec<TlsMatchAttributes>,
    /// Where connections go, by weight.
    pub route: Vec<RouteDestination>,
}

/// A rule for TCP.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpRoute {
    /// Alternatives of which one must hold; none matches everything.
    pub r#match: Vec<L4MatchAttributes>,
    /// Where connections go, by weight.
    pub route: Vec<RouteDestination>,
}

/// Conditions on a request; all must hold.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMatchRequest {
    /// Name of the match, for access logs.
    pub name: String,
    /// Path, without the query.
    pub uri: Option<StringMatch>,
    /// Scheme of the URL.
    pub scheme: Option<StringMatch>,
    /// Method.
    pub method: Option<StringMatch>,
    /// Authority, as sent.
    pub authority: Option<StringMatch>,
    /// Headers by lower-case name; `{}` asks for presence.
    pub headers: BTreeMap<String, StringMatch>,
    /// Port that the request arrives on.
    pub port: u16,
    /// Labels of the calling workload.
    pub source_labels: BTreeMap<String, String>,
    /// Gateways where the match applies; replaces those of the document.
    pub gateways: Vec<String>,
    /// Query parameters by name; `{}` asks for presence.
    pub query_params: BTreeMap<String, StringMatch>,
    /// Compares exact and prefix paths without case.
    pub ignore_uri_case: bool,
    /// Headers that must not match.
    pub without_headers: BTreeMap<String, StringMatch>,
    /// Namespace of the calling workload.
    pub source_namespace: String,
    /// Prefix of the route's statistics.
    pub stat_prefix: String,
}

/// A destination with its share.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteDestination {
    /// Where requests go.
    pub destination: Destination,
    /// Share of the requests, relative to the others.
    #[serde(default, deserialize_with = "count")]
    #[schemars(range(min = 0))]
    pub weight: i32,
    /// Header changes for this destination only.
    pub headers: Option<Headers>,
}

/// A destination with its share.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteDestination {
    /// Where connections go.
    pub destination: Destination,
    /// Share of the connections, relative to the others.
    #[serde(default, deserialize_with = "count")]
    #[schemars(range(min = 0))]
    pub weight: i32,
}

/// Conditions on a connection; all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct L4MatchAttributes {
    /// Addresses or networks that the connection goes to.
    pub destination_subnets: Vec<String>,
    /// Port that the connection arrives on.
    pub port: u16,
    /// Never used, in Istio neither.
    pub source_subnet: String,
    /// Labels of the calling workload.
    pub source_labels: BTreeMap<String, String>,
    /// Gateways where the match applies; replaces those of the document.
    pub gateways: Vec<String>,
    /// Namespace of the calling workload.
    pub source_namespace: String,
}

/// Conditions on a TLS connection; all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsMatchAttributes {
    /// Server names (SNI); `*.` may stand in front.
    #[schemars(required)]
    pub sni_hosts: Vec<String>,
    /// Addresses or networks that the connection goes to.
    pub destination_subnets: Vec<String>,
    /// Port that the connection arrives on.
    pub port: u16,
    /// Labels of the calling workload.
    pub source_labels: BTreeMap<String, String>,
    /// Gateways where the match applies; replaces those of the document.
    pub gateways: Vec<String>,
    /// Namespace of the calling workload.
    pub source_namespace: String,
}

/// A redirect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRedirect {
    /// New path.
    pub uri: String,
    /// New authority.
    pub authority: String,
    /// New port.
    pub port: Option<u16>,
    /// Where the new port comes from.
    pub derive_port: Option<RedirectPortSelection>,
    /// New scheme: `http` or `https`.
    pub scheme: String,
    /// Status: 301 (the default), 302, 303, 307 or 308.
    pub redirect_code: u32,
    /// Replaces the matched prefix of the path.
    pub prefix_rewrite: String,
}

/// Where the port of a redirect comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RedirectPortSelection {
    /// The scheme's default port.
    FromProtocolDefault,
    /// The port that the request came in on.
    FromRequestPort,
}

/// A fixed answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpDirectResponse {
    /// Its status.
    #[schemars(range(min = 200, max = 599))]
    pub status: u32,
    /// Its body; none when unset.
    pub body: Option<HttpBody>,
}

/// The body of a fixed answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpBody {
    /// Text.
    pub string: Option<String>,
    /// Bytes in base64.
    pub bytes: Option<String>,
}

/// Changes of path and authority.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRewrite {
    /// Replaces the matched prefix, or the whole path where no prefix is matched.
    pub uri: String,
    /// New authority.
    pub authority: String,
    /// Replaces parts of the path.
    pub uri_regex_rewrite: Option<RegexRewrite>,
}

/// A replacement by regular expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegexRewrite {
    /// What is replaced (RE2).
    pub r#match: String,
    /// What takes its place; `\1` is the first group.
    pub rewrite: String,
}

/// When and how requests are tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRetry {
    /// Number of retries; 0 switches them off.
    #[serde(deserialize_with = "count")]
    #[schemars(range(min = 0))]
    pub attempts: i32,
    /// How long each try may take.
    pub per_try_timeout: Option<Duration>,
    /// Conditions and status numbers, separated by commas.
    pub retry_on: String,
    /// Whether endpoints of other localities are tried.
    pub retry_remote_localities: Option<bool>,
    /// Whether endpoints that failed are avoided.
    pub retry_ignore_previous_hosts: Option<bool>,
    /// Shortest time between tries.
    pub backoff: Option<Duration>,
}

/// Which other origins may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CorsPolicy {
    /// Allowed origins, compared as they are; use `allowOrigins` instead.
    #[schemars(extend("deprecated" = true))]
    pub allow_origin: Vec<String>,
    /// Allowed origins.
    pub allow_origins: Vec<StringMatch>,
    /// Allowed methods.
    pub allow_methods: Vec<String>,
    /// Allowed request headers.
    pub allow_headers: Vec<String>,
    /// Response headers that scripts may read.
    pub expose_headers: Vec<String>,
    /// How long the answer may be cached.
    pub max_age: Option<Duration>,
    /// Whether credentials may be sent.
    pub allow_credentials: Option<bool>,
    /// What happens to preflights of other origins.
    pub unmatched_preflights: UnmatchedPreflights,
}

/// What happens to preflights of origins that are not allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UnmatchedPreflights {
    /// The same as `FORWARD`.
    #[default]
    Unspecified,
    /// They go to the destination.
    Forward,
    /// The proxy answers them.
    Ignore,
}

/// Delays and errors to inject.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpFaultInjection {
    /// Delay before forwarding.
    pub delay: Option<Delay>,
    /// Error instead of forwarding.
    pub abort: Option<Abort>,
}

/// A delay.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Delay {
    /// Share of the requests, whole percent; use `percentage` instead.
    #[schemars(extend("deprecated" = true))]
    pub percent: i32,
    /// How long.
    pub fixed_delay: Option<Duration>,
    /// Not implemented by Istio.
    pub exponential_delay: Option<Duration>,
    /// Share of the requests; none when unset.
    pub percentage: Option<Percent>,
}

/// An error.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Abort {
    /// HTTP status.
    #[schemars(range(min = 200, max = 600))]
    pub http_status: Option<i32>,
    /// gRPC status by name, such as `UNAVAILABLE`.
    pub grpc_status: Option<String>,
    /// Not implemented by Istio.
    pub http2_error: Option<String>,
    /// Share of the requests; none when unset.
    pub percentage: Option<Percent>,
}

/// A destination of copies.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpMirrorPolicy {
    /// Where the copies go.
    pub destination: Destination,
    /// Share of the requests; all when unset.
    pub percentage: Option<Percent>,
}
