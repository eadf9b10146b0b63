//! The contract between the halves: what all documents together mean, resolved and defaulted,
//! as plain values. `kinds` and `compile` build it, `generate` reads it; neither sees past it.
//!
//! Nothing here knows YAML, Envoy or the disk. A [`Snapshot`] is immutable: it holds no lock, no
//! counter and no status.

mod destination_rule;
mod duration;
mod endpoint;
mod gateway;
mod mesh;
mod names;
mod origin;
mod policy;
mod route;
mod secret;
mod service;
mod sidecar;
mod snapshot;
mod virtual_service;
mod visibility;

pub use destination_rule::{DestinationRule, DestinationRules, Subset};
pub use duration::parse_duration;
pub use endpoint::{Endpoint, EndpointAddress, Health, Locality, Workload};
pub use gateway::{
    CaSource, CertificateSource, Gateway, Server, ServerHost, ServerTls, ServerTlsMode, TlsVersion,
};
pub use mesh::{
    AccessLog, AccessLogFormat, InboundTrafficPolicy, MeshSettings, OutboundMode,
    OutboundTrafficPolicy, PathNormalization, TlsDefaults,
};
pub use names::{Hostname, Labels, Namespace, ObjectName, Selector};
pub use origin::Origin;
pub use policy::{
    ClientTls, ClientTlsMode, ConnectionPool, ConsistentHash, Distribute, Failover, H2Upgrade,
    HashAlgorithm, HashCookie, HashKey, Http2KeepAlive, HttpPool, LoadBalancer, LocalityLb,
    OutlierDetection, PortPolicy, ProxyProtocolVersion, RetryBudget, SimpleLb, TcpKeepalive,
    TcpPool, TrafficPolicy, Tunnel, Warmup, ZoneAwareLb,
};
pub use route::{
    Abort, AbortStatus, Cors, Delay, Destination, DirectResponse, Fault, HeaderOperations, Headers,
    HttpAction, HttpMatch, HttpRule, L4Match, Mirror, PathMatch, PathRewrite, Percent, Redirect,
    RedirectPath, RedirectPort, ResponseBody, Retry, Rewrite, StringMatch, TcpRule, TlsMatch,
    TlsRule, WeightedDestination,
};
pub use secret::{PrivateBytes, Secret, SecretKey};
pub use service::{Address, Location, Protocol, Resolution, Service, ServicePort};
pub use sidecar::{
    CaptureMode, DefaultEndpoint, EgressListener, EgressNamespace, HostImport, IngressListener,
    ListenerPort, Sidecar,
};
pub use snapshot::{Endpoints, Routing, Secrets, ServiceId, Services, Snapshot, Workloads};
pub use virtual_service::{Attachment, GatewayRef, ListenerRef, RuleOrder, VirtualService};
pub use visibility::Visibility;
