//! Protobuf requests as values: one shape for both variants.

use super::rpc::Rpc;
use crate::ads::{Asks, Request};
use crate::proxy::NodeDescription;
use crate::xds::pb;
use pb::discovery::{DeltaDiscoveryRequest, DiscoveryRequest, ResourceLocator};
use pb::protobuf::value::Kind;
use serde_json::{Map, Number, Value};
use std::sync::Arc;
use tonic::Status;

/// A request, and the node if it was in it.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) node: Option<pb::core::Node>,
    pub(super) request: Request,
}

impl From<DiscoveryRequest> for Received {
    fn from(request: DiscoveryRequest) -> Received {
        Received {
            node: request.node,
            request: Request {
                type_url: request.type_url,
                nonce: request.response_nonce,
                refusal: request.error_detail.map(|status| status.message),
                asks: Asks::Names(names(request.resource_names, request.resource_locators)),
            },
        }
    }
}

impl From<DeltaDiscoveryRequest> for Received {
    fn from(request: DeltaDiscoveryRequest) -> Received {
        let versions = request.initial_resource_versions;
        let mut versions: Vec<(Arc<str>, String)> =
            versions.into_iter().map(|(name, version)| (name.into(), version)).collect();
        versions.sort();
        let subscribe =
            names(request.resource_names_subscribe, request.resource_locators_subscribe);
        let unsubscribe =
            names(request.resource_names_unsubscribe, request.resource_locators_unsubscribe);
        Received {
            node: request.node,
            request: Request {
                type_url: request.type_url,
                nonce: request.response_nonce,
                refusal: request.error_detail.map(|status| status.message),
                asks: Asks::Changes { subscribe, unsubscribe, versions },
            },
        }
    }
}

// Locators are names with parameters that we do not know. Ignoring them would turn a request for
// some resources into one for all of them.
fn names(names: Vec<String>, locators: Vec<ResourceLocator>) -> Vec<Arc<str>> {
    names.into_iter().chain(locators.into_iter().map(|l| l.name)).map(Arc::from).collect()
}

/// On a stream for one type the type may be left out, and may not be another one.
pub(super) fn imply_type(rpc: &Rpc, request: &mut Request) -> Result<(), Status> {
    let Some(implied) = rpc.type_url else { return Ok(()) };
    if request.type_url.is_empty() {
        request.type_url = implied.as_str().to_owned();
    }
    if request.type_url == implied.as_str() {
        return Ok(());
    }
    let message = format!("this stream is for {implied}, not for {}", request.type_url);
    Err(Status::invalid_argument(message))
}

/// The parts of a node that say who it is. Its long list of extensions is left behind.
pub(super) fn describe(node: pb::core::Node) -> NodeDescription {
    let mut description = NodeDescription {
        id: node.id,
        cluster: node.cluster,
        metadata: node.metadata.map(object).unwrap_or_default(),
        ..NodeDescription::default()
    };
    if let Some(locality) = node.locality {
        description.locality.region = locality.region.into();
        description.locality.zone = locality.zone.into();
        description.locality.subzone = locality.sub_zone.into();
    }
    description
}

fn object(fields: pb::Struct) -> Map<String, Value> {
    fields.fields.into_iter().map(|(key, field)| (key, value(field))).collect()
}

fn value(field: pb::Value) -> Value {
    match field.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(value)) => Value::Bool(value),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::NumberValue(value)) => number(value),
        Some(Kind::StructValue(fields)) => Value::Object(object(fields)),
        Some(Kind::ListValue(list)) => Value::Array(list.values.into_iter().map(value).collect()),
    }
}

// Protobuf has floating point numbers only; a whole one is meant as a whole one.
fn number(value: f64) -> Value {
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= LARGEST_EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        return Value::Number(Number::from(value as i64));
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::super::rpc;
    use super::*;
    use crate::xds::TypeUrl;
    use std::collections::HashMap;

    #[test]
    fn a_request_for_locators_is_a_request_for_their_names() {
        let locator = ResourceLocator { name: "a".into(), ..Default::default() };
        let request = DiscoveryRequest {
            resource_locators: vec![locator],
            resource_names: vec!["b".into()],
            ..Default::default()
        };
        let asks = Received::from(request).request.asks;
        assert_eq!(asks, Asks::Names(vec!["b".into(), "a".into()]));
    }

    #[test]
    fn a_refusal_is_one_by_its_presence() {
        let refused = |error_detail| {
            let request = DeltaDiscoveryRequest { error_detail, ..Default::default() };
            Received::from(request).request.refusal
        };
        assert_eq!(refused(None), None);
        assert_eq!(refused(Some(pb::rpc::Status::default())), Some(String::new()));
    }

    #[test]
    fn versions_keep_their_names() {
        let versions = [("b", "2"), ("a", "1")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let request = DeltaDiscoveryRequest {
            initial_resource_versions: HashMap::from(versions),
            ..Default::default()
        };
        let Asks::Changes { versions, .. } = Received::from(request).request.asks else {
            panic!("delta")
        };
        assert_eq!(versions, [("a".into(), "1".into()), ("b".into(), "2".into())]);
    }

    #[test]
    fn a_stream_for_one_type_implies_it() {
        let clusters =
            rpc::find("/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters")
                .expect("served");
        let typed = |type_url: &str| {
            let mut request = Received::from(DiscoveryRequest {
                type_url: type_url.into(),
                ..Default::default()
            })
            .request;
            imply_type(clusters, &mut request).map(|()| request.type_url)
        };
        let cluster = TypeUrl::Cluster.as_str();
        assert_eq!(typed("").expect("implied"), cluster);
        assert_eq!(typed(cluster).expect("the same"), cluster);
        let refused = typed(TypeUrl::Listener.as_str()).expect_err("another type");
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    }

    #[test]
    fn a_node_is_described_by_id_cluster_locality_and_metadata() {
        let node = pb::core::Node {
            id: "edge-1".into(),
            cluster: "edge".into(),
            metadata: Some(pb::object([
                ("NAMESPACE", pb::string("prod")),
                ("PORTS", pb::list([pb::number(80.0), pb::number(1.5)])),
                ("LABELS", pb::nested(pb::object([("app", pb::boolean(true))]))),
            ])),
            locality: Some(pb::core::Locality { region: "r".into(), ..Default::default() }),
            ..Default::default()
        };
        let description = describe(node);
        assert_eq!((description.id.as_str(), description.cluster.as_str()), ("edge-1", "edge"));
        assert_eq!(&*description.locality.region, "r");
        let expected =
            serde_json::json!({"NAMESPACE": "prod", "PORTS": [80, 1.5], "LABELS": {"app": true}});
        assert_eq!(Value::Object(description.metadata), expected);
    }
}
