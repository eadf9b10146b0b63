//! What is spoken to an upstream: the HTTP protocol options of a cluster.

use crate::model::{ConnectionPool, H2Upgrade, MeshSettings, OutlierDetection, Protocol};
use crate::proxy::Role;
use crate::xds::pb;
use pb::core::{Http1ProtocolOptions, Http2ProtocolOptions};
use pb::upstream_http::http_protocol_options::{
    self as options, ExplicitHttpConfig, UpstreamProtocolOptions, UseDownstreamHttpConfig,
    explicit_http_config::ProtocolConfig,
};
use std::collections::HashMap;
use std::time::Duration;

const EXTENSION: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// The options while a cluster is being put together.
#[derive(Debug, Default)]
pub(super) struct HttpOptions {
    speaks: Option<Speaks>,
    common: Option<pb::core::HttpProtocolOptions>,
    upstream: Option<pb::core::UpstreamHttpProtocolOptions>,
    outlier: Option<options::OutlierDetection>,
}

#[derive(Debug)]
enum Speaks {
    Http2(Box<Http2ProtocolOptions>),
    AsDownstream,
}

impl HttpOptions {
    /// What the protocol of a service port asks for. An undeclared one on a sidecar follows the
    /// client, because the sidecar has sniffed what that speaks; a router has not.
    pub(super) fn of_port(protocol: Protocol, role: Role) -> HttpOptions {
        let speaks = match protocol {
            Protocol::Http2 | Protocol::Grpc | Protocol::GrpcWeb => {
                Some(Speaks::Http2(Box::default()))
            }
            Protocol::Auto => match role {
                Role::Sidecar => Some(Speaks::AsDownstream),
                Role::Router => None,
            },
            Protocol::Http
            | Protocol::HttpProxy
            | Protocol::Https
            | Protocol::Tls
            | Protocol::Tcp
            | Protocol::Mongo
            | Protocol::Redis
            | Protocol::MySql
            | Protocol::Udp => None,
        };
        HttpOptions { speaks, ..Default::default() }
    }

    /// Options of a cluster whose traffic is of any kind, with an idle timeout.
    pub(super) fn passthrough(idle: Duration) -> HttpOptions {
        HttpOptions {
            speaks: Some(Speaks::AsDownstream),
            common: Some(pb::core::HttpProtocolOptions {
                idle_timeout: Some(pb::duration(idle)),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    /// Upgrades to HTTP/2 where the policy says so. Only an undecided protocol is upgraded.
    pub(super) fn upgrade(
        &mut self,
        mesh: &MeshSettings,
        pool: Option<&ConnectionPool>,
        protocol: Protocol,
    ) {
        let http = pool.map(|p| &p.http);
        if http.is_some_and(|h| h.use_client_protocol) || self.speaks.is_some() {
            return;
        }
        let wanted = match http.map_or(H2Upgrade::Default, |h| h.h2_upgrade) {
            H2Upgrade::Upgrade => true,
            H2Upgrade::DoNotUpgrade => false,
            H2Upgrade::Default => match mesh.h2_upgrade {
                H2Upgrade::Upgrade => protocol.is_http(),
                H2Upgrade::Default | H2Upgrade::DoNotUpgrade => false,
            },
        };
        if wanted {
            self.speaks = Some(Speaks::Http2(Box::default()));
        }
    }

    /// What a connection pool says about HTTP and about the life of connections.
    pub(super) fn apply_pool(&mut self, pool: Option<&ConnectionPool>) {
        let Some(pool) = pool else { return };
        let idle = pool.http.idle_timeout.or(pool.tcp.idle_timeout);
        let lifetime = pool.tcp.max_connection_duration;
        let requests = Some(pool.http.max_requests_per_connection).filter(|n| *n > 0);
        if idle.is_some() || lifetime.is_some() || requests.is_some() {
            self.common = Some(pb::core::HttpProtocolOptions {
                idle_timeout: idle.map(pb::duration),
                max_connection_duration: lifetime.map(pb::duration),
                max_requests_per_connection: requests.map(pb::u32_value),
                ..Default::default()
            });
        }
        if pool.http.use_client_protocol {
            self.speaks = Some(Speaks::AsDownstream);
        }
        if let Some(Speaks::Http2(http2)) = &mut self.speaks {
            // Zero is "not set"; Envoy takes no more than 2^31 - 1.
            let streams = Some(pool.http.max_concurrent_streams).filter(|n| *n > 0);
            http2.max_concurrent_streams =
                streams.map(|n| pb::u32_value(n.min(i32::MAX.unsigned_abs())));
            let ping = |d: Duration| pb::duration(d.max(Duration::from_millis(1)));
            http2.connection_keepalive =
                pool.http.http2_keepalive.as_ref().map(|k| pb::core::KeepaliveSettings {
                    interval: Some(ping(k.interval)),
                    timeout: Some(ping(k.timeout)),
                    ..Default::default()
                });
        }
    }

    /// Status codes that count against an endpoint instead of 5xx.
    pub(super) fn apply_outlier_detection(&mut self, outlier: Option<&OutlierDetection>) {
        use pb::match_predicate::{MatchPredicate, match_predicate};
        // Envoy wants at least two alternatives in an `or_match`.
        let predicate = match outlier.map_or(&[][..], |o| &o.http_error_codes) {
            [] => return,
            [one] => status_is(*one),
            many => MatchPredicate {
                rule: Some(match_predicate::Rule::OrMatch(match_predicate::MatchSet {
                    rules: many.iter().map(|code| status_is(*code)).collect(),
                })),
            },
        };
        self.outlier = Some(options::OutlierDetection { error_matcher: Some(predicate) });
    }

    /// Sends the request's host as SNI, and perhaps verifies it in the server's certificate.
    pub(super) fn set_host_tls(&mut self, auto: HostTls) {
        let (auto_sni, auto_san_validation) = match auto {
            HostTls::Unused => return,
            HostTls::Sni => (true, false),
            HostTls::SniVerified => (true, true),
        };
        self.upstream = Some(pb::core::UpstreamHttpProtocolOptions {
            auto_sni,
            auto_san_validation,
            ..Default::default()
        });
    }

    /// Whether the cluster is fixed to HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        matches!(self.speaks, Some(Speaks::Http2(_)))
    }

    /// The field of the cluster. Envoy wants a protocol as soon as there is any option; HTTP/1.1
    /// is what it speaks without.
    pub(super) fn into_field(self) -> HashMap<String, pb::Any> {
        let HttpOptions { speaks, common, upstream, outlier } = self;
        if speaks.is_none() && common.is_none() && upstream.is_none() && outlier.is_none() {
            return HashMap::new();
        }
        let explicit = |config| {
            UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
                protocol_config: Some(config),
            })
        };
        let speaks = match speaks {
            None => explicit(ProtocolConfig::HttpProtocolOptions(Http1ProtocolOptions::default())),
            Some(Speaks::Http2(http2)) => explicit(ProtocolConfig::Http2ProtocolOptions(*http2)),
            Some(Speaks::AsDownstream) => {
                UpstreamProtocolOptions::UseDownstreamProtocolConfig(UseDownstreamHttpConfig {
                    http_protocol_options: Some(Http1ProtocolOptions::default()),
                    http2_protocol_options: Some(Http2ProtocolOptions::default()),
                    ..Default::default()
                })
            }
        };
        let message = pb::upstream_http::HttpProtocolOptions {
            common_http_protocol_options: common,
            upstream_http_protocol_options: upstream,
            outlier_detection: outlier,
            upstream_protocol_options: Some(speaks),
            ..Default::default()
        };
        HashMap::from([(EXTENSION.to_owned(), pb::any(&message))])
    }
}

/// What TLS does with the host of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostTls {
    /// Nothing: the policy names a server.
    Unused,
    /// It is sent as SNI.
    Sni,
    /// It is sent, and the certificate must have it.
    SniVerified,
}

fn status_is(code: u16) -> pb::match_predicate::MatchPredicate {
    use pb::match_predicate::{HttpHeadersMatch, MatchPredicate, match_predicate::Rule};
    let text = pb::matcher::StringMatcher {
        match_pattern: Some(pb::matcher::string_matcher::MatchPattern::Exact(code.to_string())),
        ..Default::default()
    };
    let matcher = pb::route::HeaderMatcher {
        name: ":status".into(),
        header_match_specifier: Some(pb::route::header_matcher::HeaderMatchSpecifier::StringMatch(
            text,
        )),
        ..Default::default()
    };
    let headers = HttpHeadersMatch { headers: vec![matcher] };
    MatchPredicate { rule: Some(Rule::HttpResponseHeadersMatch(headers)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::decode;
    use crate::model::{Http2KeepAlive, HttpPool, TcpPool};

    fn message(options: HttpOptions) -> Option<pb::upstream_http::HttpProtocolOptions> {
        options.into_field().values().next().map(decode)
    }

    fn http_pool(http: HttpPool) -> ConnectionPool {
        ConnectionPool { http, ..Default::default() }
    }

    fn upgraded(mesh: H2Upgrade, own: H2Upgrade, protocol: Protocol) -> bool {
        let mesh = MeshSettings { h2_upgrade: mesh, ..MeshSettings::default() };
        let pool = http_pool(HttpPool { h2_upgrade: own, ..Default::default() });
        let mut options = HttpOptions::of_port(protocol, Role::Sidecar);
        options.upgrade(&mesh, Some(&pool), protocol);
        options.is_http2()
    }

    #[test]
    fn an_upgrade_fills_an_undecided_protocol_only() {
        use H2Upgrade::{Default as Unset, DoNotUpgrade, Upgrade};
        assert!(upgraded(Upgrade, Unset, Protocol::Http));
        assert!(!upgraded(Upgrade, Unset, Protocol::Tcp));
        assert!(!upgraded(Upgrade, DoNotUpgrade, Protocol::Http));
        assert!(upgraded(DoNotUpgrade, Upgrade, Protocol::Tcp));
        assert!(!upgraded(DoNotUpgrade, Upgrade, Protocol::Auto), "it follows the client");
        assert!(!upgraded(DoNotUpgrade, Unset, Protocol::Http));
    }

    #[test]
    fn streams_and_pings_are_for_http2_only() {
        let keepalive =
            Http2KeepAlive { interval: Duration::from_secs(1), timeout: Duration::ZERO };
        let pool = http_pool(HttpPool {
            max_concurrent_streams: u32::MAX,
            http2_keepalive: Some(keepalive),
            ..Default::default()
        });
        let mut plain = HttpOptions::of_port(Protocol::Http, Role::Router);
        plain.apply_pool(Some(&pool));
        assert!(message(plain).is_none());

        let mut http2 = HttpOptions::of_port(Protocol::Grpc, Role::Router);
        http2.apply_pool(Some(&pool));
        let Some(UpstreamProtocolOptions::ExplicitHttpConfig(config)) =
            message(http2).and_then(|m| m.upstream_protocol_options)
        else {
            panic!("gRPC is explicit HTTP/2")
        };
        let Some(ProtocolConfig::Http2ProtocolOptions(http2)) = config.protocol_config else {
            panic!("gRPC is HTTP/2")
        };
        assert_eq!(http2.max_concurrent_streams, Some(pb::u32_value(2_147_483_647)));
        let timeout = http2.connection_keepalive.and_then(|k| k.timeout);
        assert_eq!(timeout.map(|t| t.nanos), Some(1_000_000), "Envoy takes no less");
    }

    #[test]
    fn any_option_needs_a_protocol() {
        let tcp = TcpPool { idle_timeout: Some(Duration::ZERO), ..Default::default() };
        let mut options = HttpOptions::of_port(Protocol::Tcp, Role::Router);
        options.apply_pool(Some(&ConnectionPool { tcp, ..Default::default() }));
        let message = message(options).expect("an idle timeout is an option");
        let common = message.common_http_protocol_options.expect("it is a common one");
        assert_eq!(common.idle_timeout, Some(pb::duration(Duration::ZERO)), "zero is kept");
        assert!(message.upstream_protocol_options.is_some());
    }

    #[test]
    fn the_client_decides_when_told_so() {
        let pool = http_pool(HttpPool { use_client_protocol: true, ..Default::default() });
        let mut options = HttpOptions::of_port(Protocol::Http2, Role::Router);
        options.apply_pool(Some(&pool));
        assert!(matches!(options.speaks, Some(Speaks::AsDownstream)));
    }

    #[test]
    fn one_error_code_stands_alone_and_several_are_alternatives() {
        use pb::match_predicate::match_predicate::Rule;
        let rule = |codes: &[u16]| {
            let outlier =
                OutlierDetection { http_error_codes: codes.to_vec(), ..Default::default() };
            let mut options = HttpOptions::default();
            options.apply_outlier_detection(Some(&outlier));
            options.outlier.and_then(|o| o.error_matcher).and_then(|m| m.rule)
        };
        assert_eq!(rule(&[]), None);
        assert!(matches!(rule(&[429]), Some(Rule::HttpResponseHeadersMatch(_))));
        let Some(Rule::OrMatch(set)) = rule(&[429, 503]) else { panic!("two are alternatives") };
        assert_eq!(set.rules.len(), 2);
    }
}
