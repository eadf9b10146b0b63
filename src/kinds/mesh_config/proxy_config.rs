//! `defaultConfig` of the mesh configuration: settings of a single proxy. Most of them are for
//! Istio's agent, which starts Envoy; here they belong to Envoy's bootstrap.

use super::providers::{Nothing, TraceContext};
use crate::kinds::traffic_policy::{ClientTls, TcpKeepalive};
use crate::kinds::values::Duration;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Settings of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyConfig {
    /// Directory for generated configuration.
    pub config_path: Option<String>,
    /// Envoy's binary.
    pub binary_path: Option<String>,
    /// Cluster name of the proxy's node.
    pub service_cluster: Option<String>,
    /// Name of the service in traces.
    pub tracing_service_name: Option<TracingServiceName>,
    /// How long old listeners are drained.
    pub drain_duration: Option<Duration>,
    /// Address of the control plane.
    pub discovery_address: Option<String>,
    /// Deprecated: time between polls.
    pub discovery_refresh_delay: Option<Duration>,
    /// Deprecated: address of Zipkin.
    pub zipkin_address: Option<String>,
    /// Address for statsd.
    pub statsd_udp_address: Option<String>,
    /// Deprecated form of `envoyMetricsService`.
    pub envoy_metrics_service_address: Option<String>,
    /// Port of Envoy's admin interface.
    pub proxy_admin_port: Option<u16>,
    /// Deprecated: zone of the proxy.
    pub availability_zone: Option<String>,
    /// How the control plane is authenticated.
    pub control_plane_auth_policy: Option<AuthenticationPolicy>,
    /// Bootstrap file.
    pub custom_config_file: Option<String>,
    /// Longest name of a statistic.
    pub stat_name_length: Option<i32>,
    /// Number of worker threads.
    pub concurrency: Option<i32>,
    /// Template of the bootstrap.
    pub proxy_bootstrap_template_path: Option<String>,
    /// How traffic is redirected to the proxy.
    pub interception_mode: Option<InterceptionMode>,
    /// How requests are traced.
    pub tracing: Option<Tracing>,
    /// Deprecated: settings of SDS.
    pub sds: Option<Sds>,
    /// Service for access logs.
    pub envoy_access_log_service: Option<RemoteService>,
    /// Service for metrics.
    pub envoy_metrics_service: Option<RemoteService>,
    /// Metadata of the proxy's node.
    pub proxy_metadata: Option<BTreeMap<String, String>>,
    /// Runtime values of Envoy.
    pub runtime_values: Option<BTreeMap<String, String>>,
    /// Port of the agent's health checks.
    pub status_port: Option<u16>,
    /// Further tags of statistics.
    pub extra_stat_tags: Option<Vec<String>>,
    /// What is in front of a gateway.
    pub gateway_topology: Option<Topology>,
    /// How long the proxy is drained at its end.
    pub termination_drain_duration: Option<Duration>,
    /// Name of the mesh.
    pub mesh_id: Option<String>,
    /// How the agent checks the application.
    pub readiness_probe: Option<ReadinessProbe>,
    /// Which statistics are kept.
    pub proxy_stats_matcher: Option<StatsMatcher>,
    /// Whether the application starts after the proxy.
    pub hold_application_until_proxy_starts: Option<bool>,
    /// Authorities for the control plane, PEM.
    pub ca_certificates_pem: Option<Vec<String>>,
    /// Image of the proxy.
    pub image: Option<ProxyImage>,
    /// Hardware for private keys.
    pub private_key_provider: Option<PrivateKeyProvider>,
    /// Headers that proxies add.
    pub proxy_headers: Option<ProxyHeaders>,
    /// How often log files are flushed.
    pub file_flush_interval: Option<Duration>,
    /// Size at which log files are flushed.
    pub file_flush_min_size_kb: Option<u32>,
    /// Whether statistics are compressed.
    pub stats_compression: Option<bool>,
    /// Limits and timeouts of connections from clients.
    pub connection_settings: Option<ConnectionSettings>,
}

/// Name of a service in traces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TracingServiceName {
    /// Label `app` and namespace.
    #[default]
    AppLabelAndNamespace,
    /// Canonical name.
    CanonicalNameOnly,
    /// Canonical name and namespace.
    CanonicalNameAndNamespace,
}

/// How the control plane is authenticated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AuthenticationPolicy {
    /// Not at all.
    #[default]
    None,
    /// By mutual TLS.
    MutualTls,
    /// As the mesh says.
    Inherit,
}

/// How traffic is redirected to the proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum InterceptionMode {
    /// By redirection; the source address is lost.
    #[default]
    Redirect,
    /// By TPROXY; the source address stays.
    Tproxy,
    /// Not at all.
    None,
}

/// How requests are traced; at most one of the services.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tracing {
    /// Traces to Zipkin.
    pub zipkin: Option<AddressOnly>,
    /// Traces to Lightstep.
    pub lightstep: Option<Lightstep>,
    /// Traces to Datadog.
    pub datadog: Option<AddressOnly>,
    /// Traces to Google Cloud.
    pub stackdriver: Option<StackdriverTracer>,
    /// Traces to an OpenCensus agent.
    pub open_census_agent: Option<OpenCensusAgent>,
    /// Further tags of spans.
    pub custom_tags: BTreeMap<String, CustomTag>,
    /// Longest path in a trace.
    pub max_path_tag_length: u32,
    /// Share of requests that are traced, in percent.
    pub sampling: f64,
    /// TLS to the service.
    pub tls_settings: Option<ClientTls>,
    /// Whether spans get Istio's tags.
    pub enable_istio_tags: Option<bool>,
}

/// A service by its address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AddressOnly {
    /// `host:port`.
    pub address: String,
}

/// Traces to Lightstep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Lightstep {
    /// `host:port`.
    pub address: String,
    /// Token that it is sent.
    pub access_token: String,
}

/// Traces to Google Cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StackdriverTracer {
    /// Prints what is sent.
    pub debug: bool,
    /// Most attributes of a span.
    pub max_number_of_attributes: Option<i64>,
    /// Most annotations of a span.
    pub max_number_of_annotations: Option<i64>,
    /// Most message events of a span.
    pub max_number_of_message_events: Option<i64>,
}

/// Traces to an OpenCensus agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenCensusAgent {
    /// Its gRPC target.
    pub address: String,
    /// How the trace is handed on.
    pub context: Vec<TraceContext>,
}

/// A tag of spans; one of the three.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomTag {
    /// A fixed value.
    pub literal: Option<LiteralTag>,
    /// An environment variable.
    pub environment: Option<NamedTag>,
    /// A request header.
    pub header: Option<NamedTag>,
}

/// A fixed value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LiteralTag {
    /// The value.
    pub value: String,
}

/// A value that is found by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamedTag {
    /// The name.
    pub name: String,
    /// Value when there is none.
    pub default_value: String,
}

/// Settings of SDS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Sds {
    /// Whether it is used.
    pub enabled: bool,
    /// File with the account's token.
    pub k8s_sa_jwt_path: String,
}

/// A service that proxies send something to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteService {
    /// `host:port`.
    pub address: String,
    /// TLS to it.
    pub tls_settings: Option<ClientTls>,
    /// Keepalive probes of the connection.
    pub tcp_keepalive: Option<TcpKeepalive>,
}

/// What is in front of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Topology {
    /// How many trusted proxies there are.
    pub num_trusted_proxies: u32,
    /// What happens to the header with the client's certificate.
    pub forward_client_cert_details: Option<ForwardClientCert>,
    /// Whether they speak the PROXY protocol.
    pub proxy_protocol: Option<Nothing>,
}

/// What happens to the header with the client's certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ForwardClientCert {
    /// The default.
    #[default]
    Undefined,
    /// It is removed.
    Sanitize,
    /// It is passed on if the connection is mutual TLS.
    ForwardOnly,
    /// The client's is added if the connection is mutual TLS.
    AppendForward,
    /// It is replaced by the client's.
    SanitizeSet,
    /// It is passed on.
    AlwaysForwardOnly,
}

/// How the agent checks the application; one of the four ways.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadinessProbe {
    /// Seconds before the first check.
    pub initial_delay_seconds: i32,
    /// Seconds that an answer may take.
    pub timeout_seconds: i32,
    /// Seconds between checks.
    pub period_seconds: i32,
    /// Good answers until it counts as ready.
    pub success_threshold: i32,
    /// Bad answers until it does not.
    pub failure_threshold: i32,
    /// An HTTP request.
    pub http_get: Option<HttpCheck>,
    /// A connection.
    pub tcp_socket: Option<TcpCheck>,
    /// A command.
    pub exec: Option<ExecCheck>,
    /// A gRPC health check.
    pub grpc: Option<GrpcCheck>,
}

/// An HTTP request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpCheck {
    /// Its path.
    pub path: String,
    /// Its port.
    pub port: u32,
    /// Its host.
    pub host: String,
    /// `HTTP` or `HTTPS`.
    pub scheme: String,
    /// Its headers.
    pub http_headers: Vec<CheckHeader>,
}

/// A header of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpCheck {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u32,
}

/// A command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExecCheck {
    /// The command and its arguments.
    pub command: Vec<String>,
}

/// A gRPC health check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GrpcCheck {
    /// The port.
    pub port: u32,
    /// The service.
    pub service: String,
}

/// Which statistics are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatsMatcher {
    /// By how they begin.
    pub inclusion_prefixes: Vec<String>,
    /// By how they end.
    pub inclusion_suffixes: Vec<String>,
    /// By regular expressions.
    pub inclusion_regexps: Vec<String>,
}

/// Image of the proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyImage {
    /// `default`, `debug` or `distroless`.
    pub image_type: String,
}

/// Hardware for private keys; one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PrivateKeyProvider {
    /// Intel CryptoMB.
    pub cryptomb: Option<KeyHardware>,
    /// Intel QAT.
    pub qat: Option<KeyHardware>,
}

/// Settings of hardware for private keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyHardware {
    /// How long requests are collected.
    pub poll_delay: Option<Duration>,
    /// Whether software is used when it is missing.
    pub fallback: Option<bool>,
}

/// Headers that proxies add.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyHeaders {
    /// What happens to the header with the client's certificate.
    pub forwarded_client_cert: Option<ForwardClientCert>,
    /// What that header says.
    pub set_current_client_cert_details: Option<ClientCertDetails>,
    /// The header `x-request-id`.
    pub request_id: Option<Disabled>,
    /// The header `server`.
    pub server: Option<ServerHeader>,
    /// The header `x-envoy-attempt-count`.
    pub attempt_count: Option<Disabled>,
    /// Headers that begin with `x-envoy-` in responses.
    pub envoy_debug_headers: Option<Disabled>,
    /// Headers that tell the peer's metadata.
    pub metadata_exchange_headers: Option<MetadataExchange>,
    /// Whether HTTP/1.1 headers keep their case.
    pub preserve_http1_header_case: Option<bool>,
    /// The header `x-forwarded-host`.
    pub x_forwarded_host: Option<Enabled>,
    /// The header `x-forwarded-port`.
    pub x_forwarded_port: Option<Enabled>,
}

/// What the header with the client's certificate says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCertDetails {
    /// The subject.
    pub subject: Option<bool>,
    /// The certificate.
    pub cert: Option<bool>,
    /// The chain.
    pub chain: Option<bool>,
    /// The DNS names.
    pub dns: Option<bool>,
    /// The URI names.
    pub uri: Option<bool>,
}

/// A header that can be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Disabled {
    /// Whether it is left out.
    pub disabled: Option<bool>,
}

/// A header that can be added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Enabled {
    /// Whether it is added.
    pub enabled: Option<bool>,
}

/// The header `server`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerHeader {
    /// Whether it is left out.
    pub disabled: Option<bool>,
    /// Its value.
    pub value: String,
}

/// Headers that tell the peer's metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MetadataExchange {
    /// When they are added.
    pub mode: MetadataExchangeMode,
}

/// When headers that tell the peer's metadata are added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MetadataExchangeMode {
    /// Always.
    #[default]
    Undefined,
    /// To services of the mesh.
    InMesh,
}

/// Limits and timeouts of connections from clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionSettings {
    /// Which defaults hold.
    pub profile: Profile,
    /// Buffer of a connection from a client, in bytes.
    pub listener_per_connection_buffer_limit_bytes: Option<i32>,
    /// Buffer of a connection to an upstream, in bytes.
    pub cluster_per_connection_buffer_limit_bytes: Option<i32>,
    /// How long a connection may have no request.
    pub http_idle_timeout: Option<Duration>,
    /// How long a connection may live.
    pub http_max_connection_duration: Option<Duration>,
    /// How long a closing connection is drained.
    pub http_drain_timeout: Option<Duration>,
    /// How long a request may take to arrive.
    pub http_request_timeout: Option<Duration>,
    /// How long the headers of a request may take to arrive.
    pub http_request_headers_timeout: Option<Duration>,
    /// How long a stream may be silent.
    pub http_stream_idle_timeout: Option<Duration>,
    /// How long a stream may live.
    pub http_max_stream_duration: Option<Duration>,
    /// Most streams on one connection.
    pub http_max_concurrent_streams: Option<i32>,
    /// HTTP/2 window of a stream, in bytes.
    pub http2_initial_stream_window_size: Option<i32>,
    /// HTTP/2 window of a connection, in bytes.
    pub http2_initial_connection_window_size: Option<i32>,
    /// What happens to header names with underscores.
    pub http_headers_with_underscores_action: Option<UnderscoresAction>,
    /// Whether several slashes become one.
    pub http_merge_slashes: Option<bool>,
    /// What happens to slashes in percent form.
    pub http_path_with_escaped_slashes_action: Option<EscapedSlashesAction>,
    /// Most connections of a listener.
    pub listener_connection_limit: Option<i32>,
    /// Most connections of the proxy.
    pub global_downstream_connection_limit: Option<i32>,
}

/// Which defaults hold for connections from clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Profile {
    /// Those of a sidecar.
    #[default]
    Sidecar,
    /// Those of a proxy at the edge.
    Edge,
}

/// What happens to header names with underscores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum UnderscoresAction {
    /// The default.
    #[default]
    #[serde(rename = "HEADERS_WITH_UNDERSCORES_UNSPECIFIED")]
    Unspecified,
    /// They pass.
    #[serde(rename = "HEADERS_WITH_UNDERSCORES_ALLOW")]
    Allow,
    /// The request is refused.
    #[serde(rename = "HEADERS_WITH_UNDERSCORES_REJECT_REQUEST")]
    RejectRequest,
    /// The header is removed.
    #[serde(rename = "HEADERS_WITH_UNDERSCORES_DROP_HEADER")]
    DropHeader,
}

/// What happens to slashes in percent form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EscapedSlashesAction {
    /// The default.
    #[default]
    #[serde(rename = "PATH_WITH_ESCAPED_SLASHES_UNSPECIFIED")]
    Unspecified,
    /// They stay.
    KeepUnchanged,
    /// The request is refused.
    RejectRequest,
    /// The client is redirected to the decoded path.
    UnescapeAndRedirect,
    /// They are decoded.
    UnescapeAndForward,
}
