//! `extensionProviders` and `defaultProviders` of the mesh configuration: services that Telemetry
//! and AuthorizationPolicy refer to by name.

use crate::kinds::values::Duration;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Providers that are used when nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultProviders {
    /// For traces.
    pub tracing: Vec<String>,
    /// For metrics.
    pub metrics: Vec<String>,
    /// For access logs.
    pub access_logging: Vec<String>,
}

/// A service that extends the mesh: a name and exactly one of the others.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionProvider {
    /// Name by which it is referred to.
    pub name: String,
    /// Authorization by HTTP.
    pub envoy_ext_authz_http: Option<ExtAuthzHttp>,
    /// Authorization by gRPC.
    pub envoy_ext_authz_grpc: Option<ExtAuthzGrpc>,
    /// Traces to Zipkin.
    pub zipkin: Option<Zipkin>,
    /// Deprecated: traces to Lightstep.
    pub lightstep: Option<TokenTracer>,
    /// Traces to Datadog.
    pub datadog: Option<Tracer>,
    /// Traces, metrics and logs to Google Cloud.
    pub stackdriver: Option<Stackdriver>,
    /// Deprecated: traces to an OpenCensus agent.
    pub opencensus: Option<OpenCensus>,
    /// Traces to SkyWalking.
    pub skywalking: Option<TokenTracer>,
    /// Traces by OpenTelemetry.
    pub opentelemetry: Option<OpenTelemetryTracer>,
    /// Metrics for Prometheus.
    pub prometheus: Option<Nothing>,
    /// Access log to a file.
    pub envoy_file_access_log: Option<FileAccessLog>,
    /// Access log of HTTP to a gRPC service.
    pub envoy_http_als: Option<HttpAccessLogService>,
    /// Access log of TCP to a gRPC service.
    pub envoy_tcp_als: Option<TcpAccessLogService>,
    /// Access log by OpenTelemetry.
    pub envoy_otel_als: Option<OpenTelemetryLog>,
    /// Secrets from another service.
    pub sds: Option<SecretService>,
}

/// No settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Nothing {}

/// What of the body an authorization service is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestBody {
    /// Most bytes.
    pub max_request_bytes: u32,
    /// Whether longer bodies are cut off instead of refused.
    pub allow_partial_message: bool,
    /// Whether the body is sent as bytes.
    pub pack_as_bytes: bool,
}

/// An authorization service that speaks HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtAuthzHttp {
    /// Its host, `namespace/host` or `host`.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// How long an answer may take.
    pub timeout: Option<Duration>,
    /// What is put before the path.
    pub path_prefix: String,
    /// Whether requests pass when it does not answer.
    pub fail_open: bool,
    /// Whether the route is chosen again afterwards.
    pub clear_route_cache: bool,
    /// Status that the client gets when it does not answer.
    pub status_on_error: String,
    /// Deprecated form of `includeRequestHeadersInCheck`.
    pub include_headers_in_check: Vec<String>,
    /// Request headers that it is sent.
    pub include_request_headers_in_check: Vec<String>,
    /// Further headers that it is sent.
    pub include_additional_headers_in_check: BTreeMap<String, String>,
    /// What of the body it is sent.
    pub include_request_body_in_check: Option<RequestBody>,
    /// Headers of its answer that are added to the request.
    pub headers_to_upstream_on_allow: Vec<String>,
    /// Headers of its refusal that the client gets.
    pub headers_to_downstream_on_deny: Vec<String>,
    /// Headers of its permission that the client gets.
    pub headers_to_downstream_on_allow: Vec<String>,
}

/// An authorization service that speaks gRPC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtAuthzGrpc {
    /// Its host, `namespace/host` or `host`.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// How long an answer may take.
    pub timeout: Option<Duration>,
    /// Whether requests pass when it does not answer.
    pub fail_open: bool,
    /// Whether the route is chosen again afterwards.
    pub clear_route_cache: bool,
    /// Status that the client gets when it does not answer.
    pub status_on_error: String,
    /// What of the body it is sent.
    pub include_request_body_in_check: Option<RequestBody>,
}

/// Traces to Zipkin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Zipkin {
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// Longest path in a trace.
    pub max_tag_length: u32,
    /// Whether trace ids have 64 bits.
    #[serde(rename = "enable64bitTraceId")]
    pub enable_64bit_trace_id: bool,
    /// Path of its API.
    pub path: String,
    /// How the trace is handed on.
    pub trace_context_option: TraceContextOption,
    /// How long an answer may take.
    pub timeout: Option<Duration>,
    /// Headers that it is sent.
    pub headers: Vec<HttpHeader>,
}

/// How a trace is handed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum TraceContextOption {
    /// B3 headers.
    #[default]
    #[serde(rename = "USE_B3")]
    B3,
    /// B3 and W3C headers.
    #[serde(rename = "USE_B3_WITH_W3C_PROPAGATION")]
    B3AndW3c,
}

/// A tracer with an access token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenTracer {
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// Token that it is sent.
    pub access_token: String,
    /// Longest path in a trace.
    pub max_tag_length: u32,
}

/// A tracer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tracer {
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// Longest path in a trace.
    pub max_tag_length: u32,
}

/// Traces, metrics and logs to Google Cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Stackdriver {
    /// Deprecated: prints what is sent.
    pub debug: bool,
    /// Deprecated: most attributes of a span.
    pub max_number_of_attributes: Option<i64>,
    /// Deprecated: most annotations of a span.
    pub max_number_of_annotations: Option<i64>,
    /// Deprecated: most message events of a span.
    pub max_number_of_message_events: Option<i64>,
    /// Longest path in a trace.
    pub max_tag_length: u32,
    /// Settings of logs.
    pub logging: Option<StackdriverLogging>,
}

/// Settings of logs to Google Cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StackdriverLogging {
    /// Labels of a log entry.
    pub labels: BTreeMap<String, String>,
}

/// Traces to an OpenCensus agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenCensus {
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// How the trace is handed on.
    pub context: Vec<TraceContext>,
    /// Longest path in a trace.
    pub max_tag_length: u32,
}

/// How a trace is handed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TraceContext {
    /// The default.
    #[default]
    Unspecified,
    /// W3C's header.
    #[serde(rename = "W3C_TRACE_CONTEXT")]
    W3c,
    /// gRPC's binary header.
    GrpcBin,
    /// Google Cloud's header.
    #[serde(rename = "CLOUD_TRACE_CONTEXT")]
    GoogleCloud,
    /// Zipkin's headers.
    B3,
}

/// Traces by OpenTelemetry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenTelemetryTracer {
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// Longest path in a trace.
    pub max_tag_length: u32,
    /// Sends traces by HTTP instead of gRPC.
    pub http: Option<HttpService>,
    /// Settings of gRPC.
    pub grpc: Option<GrpcService>,
    /// Where attributes of the resource come from.
    pub resource_detectors: Option<ResourceDetectors>,
    /// How attributes of the service are named.
    pub service_attribute_enrichment: ServiceAttributes,
    /// Samples as Dynatrace says.
    pub dynatrace_sampler: Option<DynatraceSampler>,
}

/// How attributes of a service are named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ServiceAttributes {
    /// As Istio does.
    #[default]
    IstioCanonical,
    /// As OpenTelemetry says.
    OtelSemanticConventions,
}

/// A service that speaks HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpService {
    /// Path of its API.
    pub path: String,
    /// How long an answer may take.
    pub timeout: Option<Duration>,
    /// Headers that it is sent.
    pub headers: Vec<HttpHeader>,
}

/// A service that speaks gRPC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GrpcService {
    /// How long an answer may take.
    pub timeout: Option<Duration>,
    /// Metadata that it is sent.
    pub initial_metadata: Vec<HttpHeader>,
}

/// A header; one of `value` and `envName`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
    /// Environment variable with its value.
    pub env_name: Option<String>,
}

/// Where attributes of the resource come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDetectors {
    /// The environment.
    pub environment: Option<Nothing>,
    /// Dynatrace.
    pub dynatrace: Option<Nothing>,
}

/// Samples as Dynatrace says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DynatraceSampler {
    /// The tenant.
    pub tenant: String,
    /// The cluster.
    pub cluster_id: i32,
    /// Root spans a minute when Dynatrace does not answer.
    pub root_spans_per_minute: u32,
    /// Dynatrace's API.
    pub http_service: Option<DynatraceApi>,
}

/// Dynatrace's API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DynatraceApi {
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// Settings of HTTP.
    pub http: Option<HttpService>,
}

/// Access log to a file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FileAccessLog {
    /// The file.
    pub path: String,
    /// What a line says.
    pub log_format: Option<LogFormat>,
    /// Whether empty values are left out.
    pub omit_empty_values: bool,
}

/// What a line of a log says; `text` or `labels` or both, as the provider allows.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LogFormat {
    /// Text with operators.
    pub text: Option<String>,
    /// A JSON object with operators as values.
    pub labels: Option<BTreeMap<String, serde_json::Value>>,
}

/// Access log of HTTP to a gRPC service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpAccessLogService {
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// Name of the log.
    pub log_name: String,
    /// Filter state that is logged.
    pub filter_state_objects_to_log: Vec<String>,
    /// Request headers that are logged.
    pub additional_request_headers_to_log: Vec<String>,
    /// Response headers that are logged.
    pub additional_response_headers_to_log: Vec<String>,
    /// Response trailers that are logged.
    pub additional_response_trailers_to_log: Vec<String>,
}

/// Access log of TCP to a gRPC service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpAccessLogService {
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// Name of the log.
    pub log_name: String,
    /// Filter state that is logged.
    pub filter_state_objects_to_log: Vec<String>,
}

/// Access log by OpenTelemetry.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenTelemetryLog {
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
    /// Name of the log.
    pub log_name: String,
    /// What an entry says.
    pub log_format: Option<LogFormat>,
}

/// Secrets from another service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretService {
    /// Name by which credentials refer to it.
    pub name: String,
    /// Its host.
    pub service: String,
    /// Its port.
    pub port: u32,
}
