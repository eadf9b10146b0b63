//! The facade over the protobuf crates: every protobuf type that pilotfish uses is named here, by
//! a short name, so that the source of the types can change without touching a generator. Also the
//! small constructors for the well-known types that appear in every second field.
//!
//! Never encode one of these types directly when the bytes are compared or hashed: map fields are
//! `HashMap`s, whose order is random. [`super::canonical`] makes stable bytes, and [`any`] packs
//! through it.

use super::canonical;
use std::time::Duration as StdDuration;

pub use super::extra::{TypedStruct, UdpaTypedStruct};
pub use prost::{Message, Name};

// Configuration.
pub use envoy_types::pb::envoy::admin::v3 as admin;
pub use envoy_types::pb::envoy::config::accesslog::v3 as accesslog;
pub use envoy_types::pb::envoy::config::bootstrap::v3 as bootstrap;
pub use envoy_types::pb::envoy::config::cluster::v3 as cluster;
pub use envoy_types::pb::envoy::config::common::matcher::v3 as match_predicate;
pub use envoy_types::pb::envoy::config::core::v3 as core;
pub use envoy_types::pb::envoy::config::endpoint::v3 as endpoint;
pub use envoy_types::pb::envoy::config::listener::v3 as listener;
pub use envoy_types::pb::envoy::config::metrics::v3 as metrics;
pub use envoy_types::pb::envoy::config::route::v3 as route;
pub use envoy_types::pb::envoy::config::trace::v3 as trace;

// Shared value types: `percent` has `Percent` and `FractionalPercent`, `range` the ranges; both
// are views of Envoy's one `type.v3` package.
pub use envoy_types::pb::envoy::r#type::matcher::v3 as matcher;
pub use envoy_types::pb::envoy::r#type::metadata::v3 as metadata;
pub use envoy_types::pb::envoy::r#type::tracing::v3 as tracing;
pub use envoy_types::pb::envoy::r#type::v3 as percent;
pub use envoy_types::pb::envoy::r#type::v3 as range;
pub use envoy_types::pb::xds::core::v3 as xds_core;
pub use envoy_types::pb::xds::r#type::matcher::v3 as xds_matcher;

// HTTP filters.
pub use envoy_types::pb::envoy::extensions::filters::common::fault::v3 as fault_common;
pub use envoy_types::pb::envoy::extensions::filters::common::set_filter_state::v3 as set_filter_state;
pub use envoy_types::pb::envoy::extensions::filters::http::cors::v3 as cors;
pub use envoy_types::pb::envoy::extensions::filters::http::dynamic_forward_proxy::v3 as dfp_filter;
pub use envoy_types::pb::envoy::extensions::filters::http::fault::v3 as fault;
pub use envoy_types::pb::envoy::extensions::filters::http::grpc_stats::v3 as grpc_stats;
pub use envoy_types::pb::envoy::extensions::filters::http::grpc_web::v3 as grpc_web;
pub use envoy_types::pb::envoy::extensions::filters::http::router::v3 as router;
pub use envoy_types::pb::envoy::extensions::filters::http::set_filter_state::v3 as http_set_filter_state;

// Network filters.
pub use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3 as hcm;
pub use envoy_types::pb::envoy::extensions::filters::network::mongo_proxy::v3 as mongo_proxy;
pub use envoy_types::pb::envoy::extensions::filters::network::set_filter_state::v3 as network_set_filter_state;
pub use envoy_types::pb::envoy::extensions::filters::network::sni_cluster::v3 as sni_cluster;
pub use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3 as tcp_proxy;

// Listener filters.
pub use envoy_types::pb::envoy::extensions::filters::listener::http_inspector::v3 as http_inspector;
pub use envoy_types::pb::envoy::extensions::filters::listener::original_dst::v3 as original_dst;
pub use envoy_types::pb::envoy::extensions::filters::listener::original_src::v3 as original_src;
pub use envoy_types::pb::envoy::extensions::filters::listener::proxy_protocol::v3 as proxy_protocol;
pub use envoy_types::pb::envoy::extensions::filters::listener::tls_inspector::v3 as tls_inspector;

// Transport sockets.
pub use envoy_types::pb::envoy::extensions::transport_sockets::internal_upstream::v3 as internal_upstream;
pub use envoy_types::pb::envoy::extensions::transport_sockets::proxy_protocol::v3 as proxy_protocol_upstream;
pub use envoy_types::pb::envoy::extensions::transport_sockets::quic::v3 as quic;
pub use envoy_types::pb::envoy::extensions::transport_sockets::raw_buffer::v3 as raw_buffer;
pub use envoy_types::pb::envoy::extensions::transport_sockets::tls::v3 as tls;

// Clusters, load balancing, DNS and upstream protocols.
pub use envoy_types::pb::envoy::extensions::clusters::common::dns::v3 as dns_common;
pub use envoy_types::pb::envoy::extensions::clusters::dns::v3 as dns_cluster;
pub use envoy_types::pb::envoy::extensions::clusters::dynamic_forward_proxy::v3 as dfp_cluster;
pub use envoy_types::pb::envoy::extensions::common::dynamic_forward_proxy::v3 as dfp_common;
pub use envoy_types::pb::envoy::extensions::load_balancing_policies as lb;
pub use envoy_types::pb::envoy::extensions::network::dns_resolver::cares::v3 as cares;
pub use envoy_types::pb::envoy::extensions::upstreams::http::v3 as upstream_http;

// The rest of the extensions.
pub use envoy_types::pb::envoy::extensions::access_loggers::file::v3 as file_access_log;
pub use envoy_types::pb::envoy::extensions::access_loggers::stream::v3 as stream_access_log;
pub use envoy_types::pb::envoy::extensions::formatter::req_without_query::v3 as req_without_query;
pub use envoy_types::pb::envoy::extensions::http::header_formatters::preserve_case::v3 as preserve_case;
pub use envoy_types::pb::envoy::extensions::request_id::uuid::v3 as uuid_request_id;
pub use envoy_types::pb::envoy::extensions::retry::host::previous_hosts::v3 as previous_hosts;
pub use envoy_types::pb::envoy::extensions::retry::priority::previous_priorities::v3 as previous_priorities;

// The protocol.
pub use envoy_types::pb::envoy::service::discovery::v3 as discovery;
pub use envoy_types::pb::envoy::service::status::v3 as status;
pub use envoy_types::pb::google::rpc;

// The rules that annotate Envoy's API, for the constraints module.
pub use envoy_types::pb::validate;

// Well-known types.
pub use envoy_types::pb::google::protobuf;
pub use envoy_types::pb::google::protobuf::{
    Any, BoolValue, DoubleValue, Duration, Empty, ListValue, StringValue, Struct, Timestamp,
    UInt32Value, UInt64Value, Value,
};

/// The longest duration that protobuf allows, about 10,000 years.
const MAX_SECONDS: u64 = 315_576_000_000;

/// A protobuf duration. One that is longer than protobuf allows becomes the longest.
pub fn duration(value: StdDuration) -> Duration {
    let value = value.min(StdDuration::from_secs(MAX_SECONDS));
    Duration { seconds: value.as_secs().cast_signed(), nanos: value.subsec_nanos().cast_signed() }
}

/// A wrapped `uint32`.
pub fn u32_value(value: u32) -> UInt32Value {
    UInt32Value { value }
}

/// A wrapped `uint64`.
pub fn u64_value(value: u64) -> UInt64Value {
    UInt64Value { value }
}

/// A wrapped `bool`.
pub fn bool_value(value: bool) -> BoolValue {
    BoolValue { value }
}

/// A wrapped `double`.
pub fn double_value(value: f64) -> DoubleValue {
    DoubleValue { value }
}

/// A wrapped string.
pub fn string_value(value: impl Into<String>) -> StringValue {
    StringValue { value: value.into() }
}

/// A string inside a `Struct`.
pub fn string(value: impl Into<String>) -> Value {
    Value { kind: Some(protobuf::value::Kind::StringValue(value.into())) }
}

/// A number inside a `Struct`.
pub fn number(value: f64) -> Value {
    Value { kind: Some(protobuf::value::Kind::NumberValue(value)) }
}

/// A boolean inside a `Struct`.
pub fn boolean(value: bool) -> Value {
    Value { kind: Some(protobuf::value::Kind::BoolValue(value)) }
}

/// A list inside a `Struct`.
pub fn list(values: impl IntoIterator<Item = Value>) -> Value {
    let values = values.into_iter().collect();
    Value { kind: Some(protobuf::value::Kind::ListValue(ListValue { values })) }
}

/// A `Struct` of these fields.
pub fn object<K: Into<String>>(fields: impl IntoIterator<Item = (K, Value)>) -> Struct {
    Struct { fields: fields.into_iter().map(|(key, value)| (key.into(), value)).collect() }
}

/// A `Struct` nested in another one.
pub fn nested(fields: Struct) -> Value {
    Value { kind: Some(protobuf::value::Kind::StructValue(fields)) }
}

/// The message packed with its type URL, in canonical bytes.
pub fn any<M: Message + Name>(message: &M) -> Any {
    Any { type_url: M::type_url(), value: canonical::bytes(message).into() }
}

/// Envoy's usual shape of an extension: a name and a packed configuration.
pub fn typed_extension<M: Message + Name>(
    name: impl Into<String>,
    config: &M,
) -> core::TypedExtensionConfig {
    core::TypedExtensionConfig { name: name.into(), typed_config: Some(any(config)) }
}

/// A network filter with its packed configuration.
pub fn network_filter<M: Message + Name>(name: impl Into<String>, config: &M) -> listener::Filter {
    listener::Filter {
        name: name.into(),
        config_type: Some(listener::filter::ConfigType::TypedConfig(any(config))),
    }
}

/// A listener filter with its packed configuration.
pub fn listener_filter<M: Message + Name>(
    name: impl Into<String>,
    config: &M,
) -> listener::ListenerFilter {
    listener::ListenerFilter {
        name: name.into(),
        config_type: Some(listener::listener_filter::ConfigType::TypedConfig(any(config))),
        ..Default::default()
    }
}

/// An HTTP filter with its packed configuration.
pub fn http_filter<M: Message + Name>(name: impl Into<String>, config: &M) -> hcm::HttpFilter {
    hcm::HttpFilter {
        name: name.into(),
        config_type: Some(hcm::http_filter::ConfigType::TypedConfig(any(config))),
        ..Default::default()
    }
}

/// A transport socket with its packed configuration.
pub fn transport_socket<M: Message + Name>(
    name: impl Into<String>,
    config: &M,
) -> core::TransportSocket {
    core::TransportSocket {
        name: name.into(),
        config_type: Some(core::transport_socket::ConfigType::TypedConfig(any(config))),
    }
}

/// A TCP socket address.
pub fn socket_address(address: impl Into<String>, port: u32) -> core::Address {
    core::Address {
        address: Some(core::address::Address::SocketAddress(core::SocketAddress {
            protocol: core::socket_address::Protocol::Tcp.into(),
            address: address.into(),
            port_specifier: Some(core::socket_address::PortSpecifier::PortValue(port)),
            ..Default::default()
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_keeps_its_fraction_and_cannot_overflow() {
        let d = duration(StdDuration::from_millis(1500));
        assert_eq!((d.seconds, d.nanos), (1, 500_000_000));
        let longest = duration(StdDuration::MAX);
        assert_eq!((longest.seconds, longest.nanos), (315_576_000_000, 0));
    }

    #[test]
    fn any_has_the_type_url_that_envoy_expects() {
        let packed = any(&router::Router { suppress_envoy_headers: true, ..Default::default() });
        assert_eq!(
            packed.type_url,
            "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
        );
        let back = router::Router::decode(packed.value.as_slice()).unwrap();
        assert!(back.suppress_envoy_headers);
    }
}
