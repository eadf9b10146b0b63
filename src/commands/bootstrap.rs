//! `pilotfish bootstrap`: a complete Envoy bootstrap for one node.

use super::{Exit, output};
use crate::model::Snapshot;
use crate::settings::{BootstrapArgs, DataFormat, NodeArgs};
use crate::xds::json;
use anyhow::Context;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// The name of the cluster through which Envoy reaches pilotfish; Istio's, so that dashboards
/// carry over.
const XDS_CLUSTER: &str = "xds-grpc";

/// Prints a bootstrap.
pub fn run(args: &BootstrapArgs) -> anyhow::Result<Exit> {
    let (host, port) = args
        .xds_addr
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .filter(|(host, port)| !host.is_empty() && *port > 0)
        .with_context(|| format!("--xds-addr '{}' is not of the form HOST:PORT", args.xds_addr))?;
    // What serve would refuse is refused here: a bootstrap that cannot work helps nobody.
    args.node.description().resolve(&Snapshot::default())?;
    let protocol = if args.delta { Protocol::Delta } else { Protocol::StateOfTheWorld };
    let document = document(&args.node, (host, port), args.admin_addr, protocol);
    output::print(&match args.output {
        DataFormat::Json => format!("{document:#}\n"),
        DataFormat::Yaml => json::yaml(&document),
    })?;
    Ok(Exit::Fine)
}

/// The variant of the xDS protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Every response holds all resources of its type.
    StateOfTheWorld,
    /// Responses hold what changed.
    Delta,
}

/// The bootstrap as a JSON document.
///
/// It raises RE2's program size, because Envoy's default of 100 refuses ordinary regular
/// expressions and with them the whole route configuration; it names the node once a stream; and
/// it waits for the first configuration without a time limit, so that a proxy that starts before
/// pilotfish serves nothing rather than something incomplete.
pub fn document(
    node: &NodeArgs,
    (host, port): (&str, u16),
    admin: SocketAddr,
    protocol: Protocol,
) -> Value {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let discovery = match host.parse::<std::net::IpAddr>() {
        Ok(_) => "STATIC",
        Err(_) => "STRICT_DNS",
    };
    let source = json!({
        "ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s",
    });
    json!({
        "node": node_json(node),
        "admin": {"address": socket_address(&admin.ip().to_string(), admin.port())},
        "dynamic_resources": {
            "ads_config": {
                "api_type": match protocol {
                    Protocol::StateOfTheWorld => "GRPC",
                    Protocol::Delta => "DELTA_GRPC",
                },
                "transport_api_version": "V3",
                "set_node_on_first_message_only": true,
                "grpc_services": [{"envoy_grpc": {"cluster_name": XDS_CLUSTER}}],
            },
            "cds_config": source.clone(),
            "lds_config": source,
        },
        "static_resources": {"clusters": [{
            "name": XDS_CLUSTER,
            "type": discovery,
            "connect_timeout": "1s",
            "upstream_connection_options": {"tcp_keepalive": {"keepalive_time": 300}},
            "typed_extension_protocol_options": {
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                    "@type": "type.googleapis.com/\
                              envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                    "explicit_http_config": {"http2_protocol_options": {
                        "connection_keepalive": {"interval": "30s", "timeout": "5s"},
                    }},
                },
            },
            "load_assignment": {
                "cluster_name": XDS_CLUSTER,
                "endpoints": [{"lb_endpoints": [{"endpoint": {
                    "address": socket_address(host, port),
                }}]}],
            },
        }]},
        "layered_runtime": {"layers": [{
            "name": "pilotfish",
            "static_layer": {
                "re2.max_program_size.error_level": 32768,
                "re2.max_program_size.warn_level": 1000,
            },
        }]},
    })
}

fn node_json(node: &NodeArgs) -> Value {
    let mut out = json!({"id": node.id, "cluster": node.cluster_or_id()});
    if !node.metadata.is_empty() {
        out["metadata"] = Value::Object(node.metadata.clone());
    }
    let mut parts = node.locality.splitn(3, '/');
    let keys = ["region", "zone", "sub_zone"];
    let locality: serde_json::Map<String, Value> = keys
        .iter()
        .zip(&mut parts)
        .filter(|(_, part)| !part.is_empty())
        .map(|(key, part)| ((*key).to_owned(), Value::from(part)))
        .collect();
    if !locality.is_empty() {
        out["locality"] = Value::Object(locality);
    }
    out
}

fn socket_address(host: &str, port: u16) -> Value {
    json!({"socket_address": {"address": host, "port_value": port}})
}
