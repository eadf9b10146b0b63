//! The HTTP connection manager: its settings by where it stands.

use super::Writer;
use crate::generate::filters::{self, FilterContext};
use crate::generate::{Direction, credentials};
use crate::model::{PathNormalization, Protocol};
use crate::xds::pb::{self, core, hcm, listener, route};
use std::time::Duration;

/// The name that Istio's proxies answer with on the way in and on gateways.
const SERVER_NAME: &str = "istio-envoy";

/// What differs between connection managers.
#[derive(Debug, Clone)]
pub struct Manager {
    /// Where it stands.
    pub place: Place,
    /// Prefix of its statistics.
    pub stat_prefix: String,
    /// What the port is declared to speak.
    pub protocol: Protocol,
    /// Where its routes come from.
    pub routes: Routes,
}

/// Where a connection manager stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a sidecar, for what its workload sends.
    Outbound,
    /// In a sidecar, for what its workload gets.
    Inbound,
    /// In an edge proxy.
    Gateway,
}

/// Where the routes of a connection manager come from.
#[derive(Debug, Clone)]
pub enum Routes {
    /// A route configuration of this name, by RDS.
    Named(String),
    /// This one.
    Inline(Box<route::RouteConfiguration>),
}

impl Writer<'_> {
    /// The network filters of an HTTP chain.
    pub fn http_filters(&self, manager: Manager) -> Vec<listener::Filter> {
        let proto = self.connection_manager(manager);
        vec![pb::network_filter("envoy.filters.network.http_connection_manager", &proto)]
    }

    fn connection_manager(&self, manager: Manager) -> hcm::HttpConnectionManager {
        use hcm::http_connection_manager as kinds;
        let Manager { place, stat_prefix, protocol, routes } = manager;
        let mesh = self.mesh;
        let options = self.view.options();
        let direction = match place {
            Place::Outbound | Place::Gateway => Direction::Outbound,
            Place::Inbound => Direction::Inbound,
        };
        let mut proto = hcm::HttpConnectionManager {
            stat_prefix,
            route_specifier: Some(match routes {
                Routes::Named(name) => kinds::RouteSpecifier::Rds(rds(name)),
                Routes::Inline(routes) => kinds::RouteSpecifier::RouteConfig(*routes),
            }),
            http_filters: filters::chain(&FilterContext { direction, protocol }),
            access_log: self.access_log.clone(),
            // Streams are watched by the timeouts of their routes, as in Istio.
            stream_idle_timeout: Some(pb::duration(Duration::ZERO)),
            proxy_100_continue: true,
            upgrade_configs: vec![kinds::UpgradeConfig {
                upgrade_type: "websocket".to_owned(),
                ..Default::default()
            }],
            request_id_extension: Some(hcm::RequestIdExtension {
                typed_config: Some(pb::any(&pb::uuid_request_id::UuidRequestIdConfig {
                    use_request_id_for_trace_sampling: Some(pb::bool_value(true)),
                    ..Default::default()
                })),
            }),
            use_remote_address: Some(pb::bool_value(place == Place::Gateway)),
            common_http_protocol_options: options.idle_timeout.map(|timeout| {
                core::HttpProtocolOptions {
                    idle_timeout: Some(pb::duration(timeout)),
                    ..Default::default()
                }
            }),
            ..Default::default()
        };
        normalize_paths(&mut proto, mesh.path_normalization);
        if options.http10 || place == Place::Gateway || protocol == Protocol::HttpProxy {
            proto.http_protocol_options = Some(core::Http1ProtocolOptions {
                accept_http_10: options.http10,
                allow_absolute_url: (protocol == Protocol::HttpProxy).then(|| pb::bool_value(true)),
                ..Default::default()
            });
        }
        match place {
            Place::Outbound => {}
            Place::Inbound => {
                proto.server_name = SERVER_NAME.to_owned();
                proto.set_forward_client_cert_details(
                    kinds::ForwardClientCertDetails::AppendForward,
                );
                proto.set_current_client_cert_details = Some(client_certificate_details());
                if protocol.is_http2() {
                    proto.http2_protocol_options = Some(core::Http2ProtocolOptions::default());
                }
            }
            Place::Gateway => {
                proto.server_name = SERVER_NAME.to_owned();
                proto.xff_num_trusted_hops = mesh.num_trusted_proxies;
                proto.set_forward_client_cert_details(kinds::ForwardClientCertDetails::SanitizeSet);
                proto.set_current_client_cert_details = Some(kinds::SetCurrentClientCertDetails {
                    cert: true,
                    ..client_certificate_details()
                });
            }
        }
        proto
    }
}

/// Routes by RDS. The listener waits for them: every name that a listener refers to is answered,
/// and one that came up without routes would only answer 404.
fn rds(name: String) -> hcm::Rds {
    hcm::Rds {
        route_config_name: name,
        config_source: Some(core::ConfigSource {
            initial_fetch_timeout: Some(pb::duration(Duration::ZERO)),
            ..credentials::ads()
        }),
    }
}

fn client_certificate_details() -> hcm::http_connection_manager::SetCurrentClientCertDetails {
    hcm::http_connection_manager::SetCurrentClientCertDetails {
        subject: Some(pb::bool_value(true)),
        dns: true,
        uri: true,
        ..Default::default()
    }
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
