//! The HTTP connection manager.

use super::access_log;
use super::secret;
use crate::generate::filters::Filter;
use crate::generate::plan::listener::{
    ClientCertificateHeader, Http1, HttpManager, InlineRoutes, Routes,
};
use crate::model::PathNormalization;
use crate::xds::pb::{self, core, hcm, route};
use hcm::http_connection_manager as manager;
use std::time::Duration;

/// The configuration of a connection manager.
pub fn connection_manager(planned: &HttpManager) -> hcm::HttpConnectionManager {
    let mut proto = hcm::HttpConnectionManager {
        stat_prefix: planned.stat_prefix.clone(),
        route_specifier: Some(match &planned.routes {
            Routes::Named(name) => manager::RouteSpecifier::Rds(rds(name)),
            Routes::Inline(routes) => manager::RouteSpecifier::RouteConfig(inline(routes)),
        }),
        http_filters: planned.filters.iter().map(http_filter).collect(),
        access_log: access_log::loggers(planned.access_log.as_deref()),
        // Streams are watched by the timeouts of their routes, as in Istio.
        stream_idle_timeout: Some(pb::duration(Duration::ZERO)),
        proxy_100_continue: true,
        upgrade_configs: vec![manager::UpgradeConfig {
            upgrade_type: "websocket".to_owned(),
            ..Default::default()
        }],
        request_id_extension: Some(hcm::RequestIdExtension {
            typed_config: Some(pb::any(&pb::uuid_request_id::UuidRequestIdConfig {
                use_request_id_for_trace_sampling: Some(pb::bool_value(true)),
                ..Default::default()
            })),
        }),
        use_remote_address: Some(pb::bool_value(planned.peer_is_client)),
        common_http_protocol_options: planned.idle_timeout.map(|timeout| {
            core::HttpProtocolOptions {
                idle_timeout: Some(pb::duration(timeout)),
                ..Default::default()
            }
        }),
        http_protocol_options: planned.http1.map(http1),
        http2_protocol_options: planned.http2.then(core::Http2ProtocolOptions::default),
        server_name: planned.server_name.unwrap_or_default().to_owned(),
        xff_num_trusted_hops: planned.trusted_hops,
        ..Default::default()
    };
    normalize_paths(&mut proto, planned.paths);
    if let Some(header) = planned.client_certificate {
        tell_client_certificate(&mut proto, header);
    }
    proto
}

fn http_filter(filter: &Filter) -> hcm::HttpFilter {
    hcm::HttpFilter {
        name: filter.name.to_owned(),
        config_type: Some(hcm::http_filter::ConfigType::TypedConfig(filter.spell())),
        ..Default::default()
    }
}

fn http1(settings: Http1) -> core::Http1ProtocolOptions {
    core::Http1ProtocolOptions {
        accept_http_10: settings.accepts_http10,
        allow_absolute_url: settings.takes_absolute_urls.then(|| pb::bool_value(true)),
        ..Default::default()
    }
}

/// Routes by RDS. The listener waits for them: every name that a listener refers to is answered,
/// and one that came up without routes would only answer 404.
fn rds(name: &str) -> hcm::Rds {
    hcm::Rds {
        route_config_name: name.to_owned(),
        config_source: Some(core::ConfigSource {
            initial_fetch_timeout: Some(pb::duration(Duration::ZERO)),
            ..secret::ads()
        }),
    }
}

/// Everything goes to one cluster, without timeouts.
fn inline(routes: &InlineRoutes) -> route::RouteConfiguration {
    let zero = pb::duration(Duration::ZERO);
    let action = route::RouteAction {
        cluster_specifier: Some(route::route_action::ClusterSpecifier::Cluster(
            routes.cluster.clone(),
        )),
        timeout: Some(zero),
        max_stream_duration: Some(route::route_action::MaxStreamDuration {
            max_stream_duration: Some(zero),
            grpc_timeout_header_max: Some(zero),
            ..Default::default()
        }),
        retry_policy: routes.retries.then(|| route::RetryPolicy {
            retry_on: "reset-before-request".to_owned(),
            num_retries: Some(pb::u32_value(2)),
            ..Default::default()
        }),
        ..Default::default()
    };
    let everything = route::Route {
        name: "default".to_owned(),
        r#match: Some(route::RouteMatch {
            path_specifier: Some(route::route_match::PathSpecifier::Prefix("/".to_owned())),
            ..Default::default()
        }),
        decorator: Some(route::Decorator {
            operation: routes.operation.clone(),
            ..Default::default()
        }),
        action: Some(route::route::Action::Route(action)),
        ..Default::default()
    };
    route::RouteConfiguration {
        name: routes.cluster.clone(),
        virtual_hosts: vec![route::VirtualHost {
            name: routes.virtual_host.clone(),
            domains: vec!["*".to_owned()],
            routes: vec![everything],
            ..Default::default()
        }],
        validate_clusters: Some(pb::bool_value(false)),
        ..Default::default()
    }
}

fn tell_client_certificate(
    proto: &mut hcm::HttpConnectionManager,
    header: ClientCertificateHeader,
) {
    use manager::ForwardClientCertDetails as Forward;
    let (forward, cert) = match header {
        ClientCertificateHeader::Append => (Forward::AppendForward, false),
        ClientCertificateHeader::Replace => (Forward::SanitizeSet, true),
    };
    proto.set_forward_client_cert_details(forward);
    proto.set_current_client_cert_details = Some(manager::SetCurrentClientCertDetails {
        subject: Some(pb::bool_value(true)),
        dns: true,
        uri: true,
        cert,
        ..Default::default()
    });
}

/// Always written out: left alone, Envoy takes `/a/../b`, `/a//b` and `/a%2Fb` as they are.
fn normalize_paths(proto: &mut hcm::HttpConnectionManager, how: PathNormalization) {
    use hcm::http_connection_manager::PathWithEscapedSlashesAction as Escaped;
    let (normalize, merge, escaped) = match how {
        PathNormalization::None => (false, false, Escaped::KeepUnchanged),
        PathNormalization::Base => (true, false, Escaped::KeepUnchanged),
        PathNormalization::MergeSlashes => (true, true, Escaped::KeepUnchanged),
        PathNormalization::DecodeAndMergeSlashes => (true, true, Escaped::UnescapeAndForward),
    };
    proto.normalize_path = Some(pb::bool_value(normalize));
    proto.merge_slashes = merge;
    proto.set_path_with_escaped_slashes_action(escaped);
}
