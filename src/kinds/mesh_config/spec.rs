//! The fields of Istio's MeshConfig, but for the two large ones that have files of their own.

use super::providers::{DefaultProviders, ExtensionProvider};
use super::proxy_config::ProxyConfig;
use crate::kinds::traffic_policy::{
    ClientTls, ConnectionPool, LocalitySetting, OutlierDetection, TcpKeepalive, ZoneAwareSetting,
};
use crate::kinds::values::{Duration, TlsProtocol};
use crate::kinds::virtual_service::HttpRetry;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Settings of the whole mesh.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "MeshConfig")]
pub struct Spec {
    /// Port to which outbound traffic is redirected; unset is 15001.
    pub proxy_listen_port: Option<u16>,
    /// Port to which inbound traffic is redirected; unset is 15006.
    pub proxy_inbound_listen_port: Option<u16>,
    /// Port of an HTTP forward proxy; unset is none.
    pub proxy_http_port: Option<u16>,
    /// How long connecting may take; unset is 10s.
    pub connect_timeout: Option<Duration>,
    /// How long an idle HBONE connection is kept.
    pub hbone_idle_timeout: Option<Duration>,
    /// How long a client may be silent before its protocol is known; unset is without limit.
    pub protocol_detection_timeout: Option<Duration>,
    /// Keepalive probes of all connections to upstreams.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// Class of the Kubernetes Ingresses that are read.
    pub ingress_class: Option<String>,
    /// Service of the ingress gateway, for the status of Ingresses.
    pub ingress_service: Option<String>,
    /// Which Kubernetes Ingresses are read.
    pub ingress_controller_mode: Option<IngressControllerMode>,
    /// Gateway that serves Kubernetes Ingresses.
    pub ingress_selector: Option<String>,
    /// Whether requests are traced.
    pub enable_tracing: Option<bool>,
    /// File that requests are logged to; empty is none.
    pub access_log_file: String,
    /// What a line of the log says; empty is Istio's format.
    pub access_log_format: String,
    /// Whether the format is text or a JSON object.
    pub access_log_encoding: AccessLogEncoding,
    /// Whether requests are logged to an access log service.
    pub enable_envoy_access_log_service: Option<bool>,
    /// Whether failed listener matches stay out of the log.
    pub disable_envoy_listener_log: Option<bool>,
    /// Settings of proxies that have none of their own.
    pub default_config: Option<ProxyConfig>,
    /// What happens to traffic to unknown destinations.
    pub outbound_traffic_policy: Option<OutboundPolicy>,
    /// How inbound traffic reaches the application.
    pub inbound_traffic_policy: Option<InboundPolicy>,
    /// Where configuration comes from.
    pub config_sources: Option<Vec<ConfigSource>>,
    /// Whether mutual TLS is used wherever both sides can.
    #[serde(rename = "enableAutoMtls")]
    pub enable_auto_mtls: Option<bool>,
    /// Trust domain of identities; unset is `cluster.local`.
    pub trust_domain: Option<String>,
    /// Other trust domains that count as the same.
    pub trust_domain_aliases: Vec<String>,
    /// Further roots of trust.
    pub ca_certificates: Option<Vec<CertificateData>>,
    /// Who sees services that say nothing; unset is `*`.
    pub default_service_export_to: Vec<String>,
    /// Who sees VirtualServices that say nothing; unset is `*`.
    pub default_virtual_service_export_to: Vec<String>,
    /// Who sees DestinationRules that say nothing; unset is `*`.
    pub default_destination_rule_export_to: Vec<String>,
    /// Namespace of documents for the whole mesh; unset is `istio-system`.
    pub root_namespace: Option<String>,
    /// Preferences between localities; unset prefers the nearest.
    pub locality_lb_setting: Option<LocalitySetting>,
    /// Prefers endpoints of the caller's zone.
    pub zone_aware_lb_setting: Option<ZoneAwareSetting>,
    /// How often names are looked up again after a failure; unset is 60s.
    pub dns_refresh_rate: Option<Duration>,
    /// Whether HTTP/1.1 is sent on as HTTP/2.
    pub h2_upgrade_policy: MeshH2Upgrade,
    /// Pattern of the statistics names of inbound clusters.
    pub inbound_cluster_stat_name: String,
    /// Pattern of the statistics names of outbound clusters.
    pub outbound_cluster_stat_name: String,
    /// Deprecated: certificates that the control plane makes.
    pub certificates: Option<Vec<Certificate>>,
    /// Settings of single services.
    pub service_settings: Option<Vec<ServiceSettings>>,
    /// Which services other clusters see, in ambient mode.
    pub service_scope_configs: Option<Vec<ServiceScope>>,
    /// Whether the agent merges the metrics of the application.
    pub enable_prometheus_merge: Option<bool>,
    /// Deprecated: whether servers' certificates are verified by default.
    pub verify_certificate_at_client: Option<bool>,
    /// Certificate authority that the control plane uses.
    pub ca: Option<Ca>,
    /// Services for authorization, tracing, logging and metrics.
    pub extension_providers: Option<Vec<ExtensionProvider>>,
    /// Providers that are used when nothing else is said.
    pub default_providers: Option<DefaultProviders>,
    /// Kubernetes namespaces that are watched.
    pub discovery_selectors: Option<Vec<LabelSelector>>,
    /// What request paths are made of before they are matched.
    pub path_normalization: Option<PathNormalization>,
    /// Retries of rules that say nothing.
    pub default_http_retry_policy: Option<HttpRetry>,
    /// TLS between workloads of the mesh.
    #[serde(rename = "meshMTLS")]
    pub mesh_mtls: Option<TlsConfig>,
    /// TLS of everything else.
    pub tls_defaults: Option<TlsConfig>,
    /// Limits and health of services that say nothing.
    pub default_traffic_policy: Option<DefaultTrafficPolicy>,
    /// Which namespaces may show ServiceEntries to whom.
    pub service_entry_visibility: Option<ServiceEntryVisibility>,
}

/// Which Kubernetes Ingresses are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum IngressControllerMode {
    /// The default.
    #[default]
    Unspecified,
    /// None.
    Off,
    /// Those of the class, and those without one.
    Default,
    /// Those of the class.
    Strict,
}

/// Encoding of the access log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AccessLogEncoding {
    /// Lines of text.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// What happens to traffic to unknown destinations.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OutboundPolicy {
    /// What happens.
    pub mode: OutboundPolicyMode,
    /// TLS to destinations that are looked up at request time.
    pub tls: Option<ClientTls>,
}

/// What happens to traffic to unknown destinations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OutboundPolicyMode {
    /// It is refused.
    #[default]
    RegistryOnly,
    /// It goes where it was meant to go.
    AllowAny,
    /// It goes where the name in the request leads.
    AllowAnyDynamicDns,
}

/// How inbound traffic reaches the application.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InboundPolicy {
    /// By which address.
    pub mode: InboundPolicyMode,
}

/// By which address inbound traffic reaches the application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum InboundPolicyMode {
    /// The one that the client used.
    #[default]
    Passthrough,
    /// The loopback address.
    Localhost,
}

/// A source of configuration.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigSource {
    /// Address of the source.
    pub address: String,
    /// TLS to the source.
    pub tls_settings: Option<ClientTls>,
    /// What is taken from it.
    pub subscribed_resources: Vec<String>,
}

/// A further root of trust. One of `pem` and `spiffeBundleUrl`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateData {
    /// The certificate, PEM.
    pub pem: Option<String>,
    /// Address of a SPIFFE bundle.
    pub spiffe_bundle_url: Option<String>,
    /// Kubernetes signers that it is for.
    pub cert_signers: Vec<String>,
    /// Trust domains that it is for.
    pub trust_domains: Vec<String>,
}

/// Whether HTTP/1.1 is sent on as HTTP/2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MeshH2Upgrade {
    /// No.
    #[default]
    DoNotUpgrade,
    /// Yes.
    Upgrade,
}

/// A certificate that the control plane makes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Certificate {
    /// Secret that it is written to.
    pub secret_name: String,
    /// Names that it is for.
    pub dns_names: Vec<String>,
}

/// Settings of single services.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSettings {
    /// The settings.
    pub settings: Option<Settings>,
    /// The services.
    pub hosts: Vec<String>,
}

/// Settings of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Whether only endpoints of the caller's cluster are used.
    pub cluster_local: bool,
}

/// Which services other clusters see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceScope {
    /// Namespaces of the services.
    pub namespace_selector: Option<LabelSelector>,
    /// The services.
    pub services_selector: Option<LabelSelector>,
    /// Who sees them.
    pub scope: Scope,
}

/// Who sees a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Scope {
    /// Its own cluster.
    #[default]
    Local,
    /// Every cluster.
    Global,
}

/// A certificate authority.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Ca {
    /// Its address.
    pub address: String,
    /// TLS to it.
    pub tls_settings: Option<ClientTls>,
    /// How long an answer may take.
    pub request_timeout: Option<Duration>,
    /// Whether the control plane asks it on behalf of proxies.
    pub istiod_side: bool,
}

/// Kubernetes' selector of labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be there with these values.
    pub match_labels: BTreeMap<String, String>,
    /// Other requirements.
    pub match_expressions: Vec<LabelRequirement>,
}

/// A requirement of a selector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelRequirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values.
    pub values: Vec<String>,
}

/// What request paths are made of before they are matched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PathNormalization {
    /// How far it goes.
    pub normalization: NormalizationType,
}

/// How far the normalization of paths goes; each includes the ones before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NormalizationType {
    /// `BASE`.
    #[default]
    Default,
    /// Paths are left alone.
    None,
    /// RFC 3986.
    Base,
    /// Several slashes become one.
    MergeSlashes,
    /// Slashes in percent form are decoded.
    DecodeAndMergeSlashes,
}

/// Settings of TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsConfig {
    /// Lowest version.
    pub min_protocol_version: TlsProtocol,
    /// Elliptic curves, best first.
    pub ecdh_curves: Vec<String>,
    /// Cipher suites of TLS 1.2, best first.
    pub cipher_suites: Vec<String>,
}

/// Limits and health of services that say nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultTrafficPolicy {
    /// Limits and timeouts of connections and requests.
    pub connection_pool: Option<ConnectionPool>,
    /// Takes endpoints that fail out of load balancing for a while.
    pub outlier_detection: Option<OutlierDetection>,
}

/// Which namespaces may show ServiceEntries to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceEntryVisibility {
    /// Where no policy fits.
    pub default_visibility: EntryVisibility,
    /// Whether sidecars are limited too.
    pub apply_to_sidecars: bool,
    /// Policies; the first that fits counts.
    pub policies: Vec<VisibilityPolicy>,
}

/// How far a ServiceEntry may be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EntryVisibility {
    /// The default.
    #[default]
    VisibilityUnspecified,
    /// Nowhere.
    None,
    /// In its namespace.
    Namespace,
    /// Everywhere.
    Public,
}

/// How far the ServiceEntries of some namespaces may be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VisibilityPolicy {
    /// How far.
    pub visibility: EntryVisibility,
    /// Whose; one must fit.
    pub matching_rules: Vec<VisibilityRule>,
}

/// Whose ServiceEntries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VisibilityRule {
    /// Those of these namespaces.
    pub namespace_selector: Option<LabelSelector>,
}
