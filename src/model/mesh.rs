//! Mesh-wide settings: MeshConfig with its defaults filled in.

use super::{
    ConnectionPool, H2Upgrade, Hostname, LocalityLb, Namespace, OutlierDetection, Retry,
    TcpKeepalive, TlsVersion, Visibility,
};
use std::sync::Arc;
use std::time::Duration;

/// What holds for the whole mesh. Defaults are Istio's (`pkg/config/mesh`).
#[derive(Debug, Clone, PartialEq)]
pub struct MeshSettings {
    /// Namespace of mesh-wide documents.
    pub root_namespace: Namespace,
    /// DNS suffix of in-mesh names.
    pub domain_suffix: Arc<str>,
    /// Trust domain of identities.
    pub trust_domain: Arc<str>,
    /// Other trust domains that are the same.
    pub trust_domain_aliases: Vec<Arc<str>>,
    /// Timeout of connecting, of every cluster.
    pub connect_timeout: Duration,
    /// How often DNS names are resolved again when their TTL does not say.
    pub dns_refresh_rate: Duration,
    /// Keepalive of every cluster.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// Port of the outbound capture listener.
    pub proxy_listen_port: u16,
    /// Port of the inbound capture listener.
    pub proxy_inbound_listen_port: u16,
    /// Port of the HTTP forward proxy listener, 0 for none.
    pub proxy_http_port: u16,
    /// What happens to unknown destinations.
    pub outbound_traffic_policy: OutboundTrafficPolicy,
    /// How inbound clusters reach the application.
    pub inbound_traffic_policy: InboundTrafficPolicy,
    /// How long protocol detection may take; zero is without limit.
    pub protocol_detection_timeout: Duration,
    /// Access log, when there is one.
    pub access_log: Option<AccessLog>,
    /// Visibility of services that say nothing.
    pub default_service_visibility: Vec<String>,
    /// Visibility of VirtualServices that say nothing.
    pub default_virtual_service_visibility: Vec<String>,
    /// Visibility of DestinationRules that say nothing.
    pub default_destination_rule_visibility: Vec<String>,
    /// What HTTP paths are normalised to before they are matched.
    pub path_normalization: PathNormalization,
    /// Retry policy of rules that say nothing.
    pub default_http_retry: Option<Retry>,
    /// Whether HTTP/1.1 is upgraded by default.
    pub h2_upgrade: H2Upgrade,
    /// Locality load balancing of services that say nothing.
    pub locality_lb: Option<LocalityLb>,
    /// Connection pool of clusters that say nothing.
    pub default_connection_pool: Option<ConnectionPool>,
    /// Outlier detection of clusters that say nothing.
    pub default_outlier_detection: Option<OutlierDetection>,
    /// TLS defaults of servers and clients.
    pub tls_defaults: TlsDefaults,
    /// Trusted proxies in front of gateways.
    pub num_trusted_proxies: u32,
    /// Pattern of cluster statistics names of outbound clusters, empty for the default.
    pub outbound_cluster_stat_name: String,
    /// Pattern of cluster statistics names of inbound clusters, empty for the default.
    pub inbound_cluster_stat_name: String,
}

impl Default for MeshSettings {
    fn default() -> MeshSettings {
        let public = || vec!["*".to_owned()];
        MeshSettings {
            root_namespace: Namespace::from("istio-system"),
            domain_suffix: Arc::from("cluster.local"),
            trust_domain: Arc::from("cluster.local"),
            trust_domain_aliases: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            dns_refresh_rate: Duration::from_secs(60),
            tcp_keepalive: None,
            proxy_listen_port: 15001,
            proxy_inbound_listen_port: 15006,
            proxy_http_port: 0,
            outbound_traffic_policy: OutboundTrafficPolicy {
                mode: OutboundMode::AllowAny,
                egress_proxy: None,
            },
            inbound_traffic_policy: InboundTrafficPolicy::Passthrough,
            protocol_detection_timeout: Duration::ZERO,
            access_log: None,
            default_service_visibility: public(),
            default_virtual_service_visibility: public(),
            default_destination_rule_visibility: public(),
            path_normalization: PathNormalization::Base,
            default_http_retry: None,
            h2_upgrade: H2Upgrade::DoNotUpgrade,
            locality_lb: Some(LocalityLb {
                enabled: true,
                distribute: Vec::new(),
                failover: Vec::new(),
                failover_priority: Vec::new(),
            }),
            default_connection_pool: None,
            default_outlier_detection: None,
            tls_defaults: TlsDefaults::default(),
            num_trusted_proxies: 0,
            outbound_cluster_stat_name: String::new(),
            inbound_cluster_stat_name: String::new(),
        }
    }
}

impl MeshSettings {
    /// The visibility that a default list means for a document of namespace `own`.
    pub fn default_visibility(list: &[String], own: &Namespace) -> Visibility {
        Visibility::from_export_to(list, own).unwrap_or(Visibility::Public)
    }

    /// Istio's expansion of short names: a name without a dot that is neither `*` nor empty gets
    /// the document's namespace and the mesh's domain.
    pub fn expand_short_name(&self, host: &str, namespace: &Namespace) -> Hostname {
        if host.is_empty() || host == "*" || host.contains('.') || host.contains(':') {
            return Hostname::from(host);
        }
        Hostname::from(format!("{host}.{namespace}.svc.{}", self.domain_suffix))
    }
}

/// `outboundTrafficPolicy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundTrafficPolicy {
    /// The mode.
    pub mode: OutboundMode,
    /// Where unknown traffic goes instead of its original destination.
    pub egress_proxy: Option<super::Destination>,
}

/// `outboundTrafficPolicy.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutboundMode {
    /// Unknown destinations are refused.
    RegistryOnly,
    /// Unknown destinations are dialled as they are.
    AllowAny,
}

/// `inboundTrafficPolicy.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InboundTrafficPolicy {
    /// The connection's original destination.
    Passthrough,
    /// The loopback address.
    Localhost,
}

/// Where requests are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLog {
    /// File on the proxy's machine, `/dev/stdout` for its output.
    pub path: Arc<str>,
    /// What a line says.
    pub format: AccessLogFormat,
}

/// Format of an access log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// Text with Envoy operators; `None` is Istio's default format.
    Text(Option<Arc<str>>),
    /// JSON with these keys and operators; `None` is Istio's default set.
    Json(Option<Vec<(String, String)>>),
}

/// `pathNormalization`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathNormalization {
    /// Paths are left alone.
    None,
    /// RFC 3986 (Istio's default).
    Base,
    /// And slashes are merged.
    MergeSlashes,
    /// And escaped slashes are decoded first.
    DecodeAndMergeSlashes,
}

/// `tlsDefaults` and `meshMTLS`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsDefaults {
    /// Cipher suites.
    pub cipher_suites: Vec<String>,
    /// ECDH curves.
    pub ecdh_curves: Vec<String>,
    /// Lowest version.
    pub min_version: Option<TlsVersion>,
}
