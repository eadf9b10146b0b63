//! Traffic policies: how connections to a service are made and watched.

use super::TlsVersion;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// `trafficPolicy` of a DestinationRule or of one of its subsets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrafficPolicy {
    /// Load balancing.
    pub load_balancer: Option<LoadBalancer>,
    /// Connection pool and circuit breakers.
    pub connection_pool: Option<ConnectionPool>,
    /// Ejection of failing endpoints.
    pub outlier_detection: Option<OutlierDetection>,
    /// TLS to the upstream.
    pub tls: Option<ClientTls>,
    /// Tunnelling of TCP over HTTP.
    pub tunnel: Option<Tunnel>,
    /// PROXY protocol header.
    pub proxy_protocol: Option<ProxyProtocolVersion>,
    /// Budget of concurrent retries.
    pub retry_budget: Option<RetryBudget>,
    /// Settings of single ports, in document order; the first of a number counts.
    pub ports: Vec<PortPolicy>,
}

/// `portLevelSettings[]`: what it leaves out is default, not inherited.
#[derive(Debug, Clone, PartialEq)]
pub struct PortPolicy {
    /// The service port.
    pub port: u16,
    /// Load balancing.
    pub load_balancer: Option<LoadBalancer>,
    /// Connection pool and circuit breakers.
    pub connection_pool: Option<ConnectionPool>,
    /// Ejection of failing endpoints.
    pub outlier_detection: Option<OutlierDetection>,
    /// TLS to the upstream.
    pub tls: Option<ClientTls>,
}

/// `loadBalancer`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadBalancer {
    /// `simple`.
    pub simple: SimpleLb,
    /// `consistentHash`.
    pub consistent_hash: Option<ConsistentHash>,
    /// `localityLbSetting`.
    pub locality: Option<LocalityLb>,
    /// `zoneAwareLbSetting`.
    pub zone_aware: Option<ZoneAwareLb>,
    /// `warmup`, or the deprecated `warmupDurationSecs`.
    pub warmup: Option<Warmup>,
}

/// `loadBalancer.simple`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SimpleLb {
    /// Not set: least request.
    #[default]
    Unspecified,
    /// Least outstanding requests.
    LeastRequest,
    /// Random.
    Random,
    /// The connection's original destination.
    Passthrough,
    /// In turn.
    RoundRobin,
}

/// `loadBalancer.consistentHash`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsistentHash {
    /// What is hashed; `None` hashes nothing (random).
    pub key: Option<HashKey>,
    /// How hosts are found.
    pub algorithm: HashAlgorithm,
}

/// What a consistent hash is taken of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HashKey {
    /// A request header.
    Header(String),
    /// A cookie, made when it has a TTL.
    Cookie(HashCookie),
    /// The caller's address (`false` is written out as such).
    SourceIp(bool),
    /// A query parameter.
    QueryParameter(String),
}

/// A cookie to hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashCookie {
    /// Its name.
    pub name: String,
    /// Its path, empty for none.
    pub path: String,
    /// How long it lives; zero is a session cookie, `None` never makes one.
    pub ttl: Option<Duration>,
    /// Further attributes.
    pub attributes: Vec<(String, String)>,
}

/// How a consistent hash finds a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// Not chosen: ring hash with this minimum size (the deprecated `minimumRingSize`, or 1024).
    Default(u64),
    /// Ring hash; 0 leaves the size to Envoy.
    RingHash(u64),
    /// Maglev; 0 leaves the size to Envoy.
    Maglev(u64),
}

/// `localityLbSetting`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalityLb {
    /// `enabled`; unset is true.
    pub enabled: bool,
    /// Explicit shares by locality.
    pub distribute: Vec<Distribute>,
    /// Region failover.
    pub failover: Vec<Failover>,
    /// Labels that order endpoints by likeness (`key` or `key=value`).
    pub failover_priority: Vec<String>,
}

/// One rule of `distribute`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribute {
    /// Localities of callers, `region/zone/*`.
    pub from: String,
    /// Percent by locality of endpoints, adding up to 100.
    pub to: BTreeMap<String, u32>,
}

/// One rule of `failover`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failover {
    /// Region of the caller.
    pub from: String,
    /// Region to prefer then.
    pub to: String,
}

/// `zoneAwareLbSetting`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneAwareLb {
    /// `enabled`; unset is true.
    pub enabled: bool,
    /// Fewest endpoints for zone-aware routing.
    pub min_cluster_size: Option<u64>,
    /// Region failover.
    pub failover: Vec<Failover>,
    /// Labels that order endpoints by likeness.
    pub failover_priority: Vec<String>,
}

/// Slow start.
#[derive(Debug, Clone, PartialEq)]
pub struct Warmup {
    /// Length of the window.
    pub duration: Duration,
    /// Lowest weight in percent; `None` with the deprecated field.
    pub minimum_percent: Option<f64>,
    /// Speed of growth; `None` with the deprecated field.
    pub aggression: Option<f64>,
}

/// `connectionPool`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionPool {
    /// Settings of connections.
    pub tcp: TcpPool,
    /// Settings of requests.
    pub http: HttpPool,
}

/// `connectionPool.tcp`. Zero and unset numbers are Envoy's maximum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpPool {
    /// Highest number of connections.
    pub max_connections: u32,
    /// Timeout of connecting.
    pub connect_timeout: Option<Duration>,
    /// Keepalive probes.
    pub keepalive: Option<TcpKeepalive>,
    /// Longest life of a connection.
    pub max_connection_duration: Option<Duration>,
    /// Idle timeout; zero switches it off.
    pub idle_timeout: Option<Duration>,
}

/// `tcpKeepalive`; an empty one switches keepalive on with the system's values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TcpKeepalive {
    /// Number of probes.
    pub probes: u32,
    /// Idle time before the first probe.
    pub time: Option<Duration>,
    /// Time between probes.
    pub interval: Option<Duration>,
}

/// `connectionPool.http`. Zero and unset numbers are Envoy's maximum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpPool {
    /// Most requests waiting for a connection.
    pub http1_max_pending_requests: u32,
    /// Most requests in flight (of any HTTP version).
    pub http2_max_requests: u32,
    /// Most requests on one connection.
    pub max_requests_per_connection: u32,
    /// Most retries in flight.
    pub max_retries: u32,
    /// Idle timeout of connections.
    pub idle_timeout: Option<Duration>,
    /// Whether HTTP/1.1 is upgraded to HTTP/2.
    pub h2_upgrade: H2Upgrade,
    /// Speaks what the client speaks.
    pub use_client_protocol: bool,
    /// Most streams on an HTTP/2 connection.
    pub max_concurrent_streams: u32,
    /// HTTP/2 pings.
    pub http2_keepalive: Option<Http2KeepAlive>,
}

/// `h2UpgradePolicy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum H2Upgrade {
    /// The mesh's policy.
    #[default]
    Default,
    /// Never.
    DoNotUpgrade,
    /// Always.
    Upgrade,
}

/// HTTP/2 pings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http2KeepAlive {
    /// Time between pings.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// `outlierDetection`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutlierDetection {
    /// Consecutive 5xx errors; 0 switches this detector off.
    pub consecutive_5xx_errors: Option<u32>,
    /// Consecutive 502, 503, 504; 0 switches this detector off.
    pub consecutive_gateway_errors: Option<u32>,
    /// Time between sweeps.
    pub interval: Option<Duration>,
    /// First ejection time.
    pub base_ejection_time: Option<Duration>,
    /// Largest share that may be ejected; 0 is Envoy's default (10 %).
    pub max_ejection_percent: u32,
    /// Share of healthy hosts below which health is ignored.
    pub min_health_percent: u32,
    /// Whether local errors are counted apart.
    pub split_external_local_origin_errors: bool,
    /// Consecutive local errors.
    pub consecutive_local_origin_failures: Option<u32>,
    /// Status codes that count instead of 5xx.
    pub http_error_codes: Vec<u16>,
}

/// `tls` of a traffic policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTls {
    /// What is done.
    pub mode: ClientTlsMode,
    /// Client certificate file, empty for none.
    pub client_certificate: String,
    /// Private key file, empty for none.
    pub private_key: String,
    /// CA file, empty for the system's roots.
    pub ca_certificates: String,
    /// Secret with the certificates instead of files.
    pub credential_name: Option<Arc<str>>,
    /// Names the server's certificate must have one of.
    pub subject_alt_names: Vec<String>,
    /// Server name to send, empty for the request's host.
    pub sni: String,
    /// Accepts any server certificate.
    pub insecure_skip_verify: bool,
    /// Revocation list file, empty for none.
    pub ca_crl: String,
    /// Lowest version, `None` for Istio's default (1.2).
    pub min_version: Option<TlsVersion>,
}

/// `tls.mode` of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientTlsMode {
    /// Plain text.
    Disable,
    /// Server certificate only.
    Simple,
    /// Both certificates.
    Mutual,
    /// Both, with the mesh's own certificates.
    IstioMutual,
}

/// `tunnel`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// Whether POST is used instead of CONNECT.
    pub use_post: bool,
    /// Where the tunnel ends.
    pub target_host: String,
    /// The port there.
    pub target_port: u16,
}

/// `proxyProtocol.version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocolVersion {
    /// Text header.
    V1,
    /// Binary header.
    V2,
}

/// `retryBudget`.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryBudget {
    /// Share of requests that may be retries, in percent.
    pub percent: f64,
    /// Retries that are always allowed.
    pub min_retry_concurrency: u32,
    /// Interval over which requests are counted.
    pub interval: Option<Duration>,
}
