//! What is spoken to an upstream.

use super::policy::Policy;
use crate::model::{
    ConnectionPool, H2Upgrade, Http2KeepAlive, MeshSettings, OutlierDetection, Protocol,
};
use crate::proxy::Role;
use std::time::Duration;

/// The HTTP options of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpOptions {
    /// Which HTTP.
    pub protocol: HttpProtocol,
    /// How long a connection may be idle; zero is for ever.
    pub idle_timeout: Option<Duration>,
    /// How long a connection may live.
    pub max_connection_duration: Option<Duration>,
    /// How many requests a connection may carry.
    pub max_requests_per_connection: Option<u32>,
    /// What TLS does with the host of a request.
    pub host_tls: HostTls,
    /// Status codes that count against a host instead of 5xx.
    pub error_codes: Vec<u16>,
}

/// Which HTTP is spoken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HttpProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2.
    Http2 {
        /// Most streams on a connection.
        max_streams: Option<u32>,
        /// Pings.
        keepalive: Option<Http2KeepAlive>,
    },
    /// What the client speaks.
    AsDownstream,
}

/// What TLS does with the host of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostTls {
    /// Nothing: the policy names a server, or there is no TLS.
    #[default]
    Unused,
    /// It is sent as SNI.
    Sni,
    /// It is sent, and the certificate must have it.
    SniVerified,
}

impl HttpOptions {
    /// The options of a service port for this kind of proxy under a policy.
    pub(super) fn outbound(
        mesh: &MeshSettings,
        policy: &Policy<'_>,
        protocol: Protocol,
        role: Role,
    ) -> HttpOptions {
        let pool = policy.connection_pool;
        HttpOptions {
            protocol: upgraded(of_port(protocol, role), mesh, pool, protocol),
            error_codes: error_codes(policy.outlier_detection),
            ..HttpOptions::default()
        }
        .with_pool(pool)
    }

    /// The options of the port of a workload.
    pub(super) fn inbound(pool: Option<&ConnectionPool>, protocol: Protocol) -> HttpOptions {
        HttpOptions { protocol: of_port(protocol, Role::Sidecar), ..HttpOptions::default() }
            .with_pool(pool)
    }

    /// Options of a cluster whose traffic is of any kind, with an idle timeout.
    pub(super) fn passthrough(idle: Duration) -> HttpOptions {
        HttpOptions {
            protocol: HttpProtocol::AsDownstream,
            idle_timeout: Some(idle),
            ..HttpOptions::default()
        }
    }

    /// What a connection pool says about HTTP and about the life of connections.
    fn with_pool(mut self, pool: Option<&ConnectionPool>) -> HttpOptions {
        let Some(pool) = pool else { return self };
        self.idle_timeout = pool.http.idle_timeout.or(pool.tcp.idle_timeout);
        self.max_connection_duration = pool.tcp.max_connection_duration;
        self.max_requests_per_connection =
            Some(pool.http.max_requests_per_connection).filter(|n| *n > 0);
        if pool.http.use_client_protocol {
            self.protocol = HttpProtocol::AsDownstream;
        }
        if let HttpProtocol::Http2 { max_streams, keepalive } = &mut self.protocol {
            // Zero is "not set"; Envoy takes no more than 2^31 - 1.
            let streams = Some(pool.http.max_concurrent_streams).filter(|n| *n > 0);
            *max_streams = streams.map(|n| n.min(i32::MAX.unsigned_abs()));
            // Envoy takes no less than a millisecond.
            let ping = |time: Duration| time.max(Duration::from_millis(1));
            *keepalive = pool
                .http
                .http2_keepalive
                .as_ref()
                .map(|k| Http2KeepAlive { interval: ping(k.interval), timeout: ping(k.timeout) });
        }
        self
    }

    /// Whether the cluster is fixed to HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        matches!(self.protocol, HttpProtocol::Http2 { .. })
    }

    /// The options, unless they are what Envoy does without any.
    pub(super) fn if_any(self) -> Option<HttpOptions> {
        (self != HttpOptions::default()).then_some(self)
    }
}

/// What the protocol of a service port asks for. An undeclared one on a sidecar follows the client,
/// because the sidecar has sniffed what that speaks; a router has not.
fn of_port(protocol: Protocol, role: Role) -> HttpProtocol {
    match protocol {
        Protocol::Http2 | Protocol::Grpc | Protocol::GrpcWeb => HTTP2,
        Protocol::Auto => match role {
            Role::Sidecar => HttpProtocol::AsDownstream,
            Role::Router => HttpProtocol::Http1,
        },
        Protocol::Http
        | Protocol::HttpProxy
        | Protocol::Https
        | Protocol::Tls
        | Protocol::Tcp
        | Protocol::Mongo
        | Protocol::Redis
        | Protocol::MySql
        | Protocol::Udp => HttpProtocol::Http1,
    }
}

const HTTP2: HttpProtocol = HttpProtocol::Http2 { max_streams: None, keepalive: None };

/// Upgrades to HTTP/2 where the policy says so. Only HTTP/1.1 is upgraded.
fn upgraded(
    of_port: HttpProtocol,
    mesh: &MeshSettings,
    pool: Option<&ConnectionPool>,
    protocol: Protocol,
) -> HttpProtocol {
    let http = pool.map(|p| &p.http);
    if http.is_some_and(|h| h.use_client_protocol) || of_port != HttpProtocol::Http1 {
        return of_port;
    }
    let wanted = match http.map_or(H2Upgrade::Default, |h| h.h2_upgrade) {
        H2Upgrade::Upgrade => true,
        H2Upgrade::DoNotUpgrade => false,
        H2Upgrade::Default => match mesh.h2_upgrade {
            H2Upgrade::Upgrade => protocol.is_http(),
            H2Upgrade::Default | H2Upgrade::DoNotUpgrade => false,
        },
    };
    if wanted { HTTP2 } else { of_port }
}

/// Status codes that count against a host instead of 5xx.
fn error_codes(outlier: Option<&OutlierDetection>) -> Vec<u16> {
    outlier.map(|o| o.http_error_codes.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HttpPool, TcpPool};

    fn http_pool(http: HttpPool) -> ConnectionPool {
        ConnectionPool { http, ..Default::default() }
    }

    fn outbound(pool: &ConnectionPool, protocol: Protocol, role: Role) -> HttpOptions {
        let policy = Policy { connection_pool: Some(pool), ..Default::default() };
        HttpOptions::outbound(&MeshSettings::default(), &policy, protocol, role)
    }

    fn is_upgraded(mesh: H2Upgrade, own: H2Upgrade, protocol: Protocol) -> bool {
        let mesh = MeshSettings { h2_upgrade: mesh, ..MeshSettings::default() };
        let pool = http_pool(HttpPool { h2_upgrade: own, ..Default::default() });
        let policy = Policy { connection_pool: Some(&pool), ..Default::default() };
        HttpOptions::outbound(&mesh, &policy, protocol, Role::Sidecar).is_http2()
    }

    #[test]
    fn an_upgrade_fills_an_undecided_protocol_only() {
        use H2Upgrade::{Default as Unset, DoNotUpgrade, Upgrade};
        assert!(is_upgraded(Upgrade, Unset, Protocol::Http));
        assert!(!is_upgraded(Upgrade, Unset, Protocol::Tcp));
        assert!(!is_upgraded(Upgrade, DoNotUpgrade, Protocol::Http));
        assert!(is_upgraded(DoNotUpgrade, Upgrade, Protocol::Tcp));
        assert!(!is_upgraded(DoNotUpgrade, Upgrade, Protocol::Auto), "it follows the client");
        assert!(!is_upgraded(DoNotUpgrade, Unset, Protocol::Http));
    }

    #[test]
    fn streams_and_pings_are_for_http2_only() {
        let pings = Http2KeepAlive { interval: Duration::from_secs(1), timeout: Duration::ZERO };
        let pool = http_pool(HttpPool {
            max_concurrent_streams: u32::MAX,
            http2_keepalive: Some(pings),
            ..Default::default()
        });
        assert_eq!(outbound(&pool, Protocol::Http, Role::Router).if_any(), None);
        let expected = HttpProtocol::Http2 {
            max_streams: Some(2_147_483_647),
            keepalive: Some(Http2KeepAlive {
                interval: Duration::from_secs(1),
                timeout: Duration::from_millis(1),
            }),
        };
        assert_eq!(outbound(&pool, Protocol::Grpc, Role::Router).protocol, expected);
    }

    #[test]
    fn an_idle_timeout_of_zero_is_kept() {
        let tcp = TcpPool { idle_timeout: Some(Duration::ZERO), ..Default::default() };
        let pool = ConnectionPool { tcp, ..Default::default() };
        let options = outbound(&pool, Protocol::Tcp, Role::Router).if_any();
        assert_eq!(options.and_then(|o| o.idle_timeout), Some(Duration::ZERO));
    }

    #[test]
    fn the_client_decides_when_told_so() {
        let pool = http_pool(HttpPool { use_client_protocol: true, ..Default::default() });
        let options = outbound(&pool, Protocol::Http2, Role::Router);
        assert_eq!(options.protocol, HttpProtocol::AsDownstream);
    }
}
