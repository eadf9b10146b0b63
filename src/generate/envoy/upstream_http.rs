//! What is spoken to an upstream: the HTTP protocol options of a cluster.

use crate::generate::plan::cluster::{HostTls, HttpOptions, HttpProtocol};
use crate::model::Http2KeepAlive;
use crate::xds::pb::{self, core, upstream_http};
use pb::core::{Http1ProtocolOptions, Http2ProtocolOptions};
use std::collections::HashMap;
use upstream_http::http_protocol_options::{
    ExplicitHttpConfig, OutlierDetection, UpstreamProtocolOptions, UseDownstreamHttpConfig,
    explicit_http_config::ProtocolConfig,
};

const EXTENSION: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// The options as they stand in a cluster. Envoy wants a protocol as soon as there is any of them;
/// HTTP/1.1 is what it speaks without.
pub(super) fn options(planned: &HttpOptions) -> HashMap<String, pb::Any> {
    let message = upstream_http::HttpProtocolOptions {
        common_http_protocol_options: common(planned),
        upstream_http_protocol_options: upstream(planned.host_tls),
        outlier_detection: error_codes(&planned.error_codes),
        upstream_protocol_options: Some(protocol(&planned.protocol)),
        ..Default::default()
    };
    HashMap::from([(EXTENSION.to_owned(), pb::any(&message))])
}

fn protocol(planned: &HttpProtocol) -> UpstreamProtocolOptions {
    let explicit = |config| {
        UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
            protocol_config: Some(config),
        })
    };
    match planned {
        HttpProtocol::Http1 => {
            explicit(ProtocolConfig::HttpProtocolOptions(Http1ProtocolOptions::default()))
        }
        HttpProtocol::Http2 { max_streams, keepalive } => {
            explicit(ProtocolConfig::Http2ProtocolOptions(Http2ProtocolOptions {
                max_concurrent_streams: max_streams.map(pb::u32_value),
                connection_keepalive: keepalive.as_ref().map(pings),
                ..Default::default()
            }))
        }
        HttpProtocol::AsDownstream => {
            UpstreamProtocolOptions::UseDownstreamProtocolConfig(UseDownstreamHttpConfig {
                http_protocol_options: Some(Http1ProtocolOptions::default()),
                http2_protocol_options: Some(Http2ProtocolOptions::default()),
                ..Default::default()
            })
        }
    }
}

fn pings(keepalive: &Http2KeepAlive) -> core::KeepaliveSettings {
    core::KeepaliveSettings {
        interval: Some(pb::duration(keepalive.interval)),
        timeout: Some(pb::duration(keepalive.timeout)),
        ..Default::default()
    }
}

fn common(planned: &HttpOptions) -> Option<core::HttpProtocolOptions> {
    let options = core::HttpProtocolOptions {
        idle_timeout: planned.idle_timeout.map(pb::duration),
        max_connection_duration: planned.max_connection_duration.map(pb::duration),
        max_requests_per_connection: planned.max_requests_per_connection.map(pb::u32_value),
        ..Default::default()
    };
    (options != core::HttpProtocolOptions::default()).then_some(options)
}

fn upstream(host_tls: HostTls) -> Option<core::UpstreamHttpProtocolOptions> {
    let (auto_sni, auto_san_validation) = match host_tls {
        HostTls::Unused => return None,
        HostTls::Sni => (true, false),
        HostTls::SniVerified => (true, true),
    };
    Some(core::UpstreamHttpProtocolOptions { auto_sni, auto_san_validation, ..Default::default() })
}

/// Status codes that count against a host instead of 5xx. Envoy wants at least two alternatives in
/// an `or_match`.
fn error_codes(codes: &[u16]) -> Option<OutlierDetection> {
    use pb::match_predicate::{MatchPredicate, match_predicate};
    let predicate = match codes {
        [] => return None,
        [one] => status_is(*one),
        many => MatchPredicate {
            rule: Some(match_predicate::Rule::OrMatch(match_predicate::MatchSet {
                rules: many.iter().map(|code| status_is(*code)).collect(),
            })),
        },
    };
    Some(OutlierDetection { error_matcher: Some(predicate) })
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
    use std::time::Duration;

    fn message(planned: &HttpOptions) -> upstream_http::HttpProtocolOptions {
        options(planned).values().next().map(decode).expect("there is one extension")
    }

    #[test]
    fn any_option_has_a_protocol_beside_it() {
        let planned = HttpOptions { idle_timeout: Some(Duration::ZERO), ..HttpOptions::default() };
        let message = message(&planned);
        let common = message.common_http_protocol_options.expect("it is a common one");
        assert_eq!(common.idle_timeout, Some(pb::duration(Duration::ZERO)), "zero is kept");
        assert!(message.upstream_protocol_options.is_some());
    }

    #[test]
    fn one_error_code_stands_alone_and_several_are_alternatives() {
        use pb::match_predicate::match_predicate::Rule;
        let rule =
            |codes: &[u16]| error_codes(codes).and_then(|o| o.error_matcher).and_then(|m| m.rule);
        assert_eq!(rule(&[]), None);
        assert!(matches!(rule(&[429]), Some(Rule::HttpResponseHeadersMatch(_))));
        let Some(Rule::OrMatch(set)) = rule(&[429, 503]) else { panic!("two are alternatives") };
        assert_eq!(set.rules.len(), 2);
    }
}
