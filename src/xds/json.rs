//! Protobuf as JSON and YAML for people and goldens, and JSON as protobuf. The form is protobuf's
//! own JSON mapping with the field names of the `.proto` files, keys sorted.
//!
//! Whatever is printed is redacted: a field that Envoy's API marks as sensitive (private keys,
//! passwords, ticket keys, generic secrets) shows `[redacted]`, also inside `Any`. There is no way
//! around that, so that no dump, log or golden file can hold a secret.

use super::descriptors::{pool, type_name};
use super::{Resource, ResourceSet, TypeUrl, canonical};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use prost::{Message, Name};
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage,
    SerializeOptions, Value as Proto,
};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// One resource.
pub fn resource_json(type_url: TypeUrl, resource: &Resource) -> Value {
    packed(type_url.as_str(), &resource.body, Packed::AsMessage)
}

/// All resources of a set: an object with one list for each type.
pub fn set_json(set: &ResourceSet) -> Value {
    let lists = TypeUrl::ALL.into_iter().map(|type_url| {
        let list = set.of_type(type_url).map(|r| resource_json(type_url, r)).collect();
        (type_url.plural().to_owned(), Value::Array(list))
    });
    object(lists)
}

/// Any message.
pub fn message_json<M: Message + Name>(message: &M) -> Value {
    packed(&M::type_url(), &message.encode_to_vec(), Packed::AsMessage)
}

/// The YAML text of a JSON value.
pub fn yaml(value: &Value) -> String {
    serde_yaml::to_string(value).expect("a JSON value has only string keys and finite numbers")
}

/// Why JSON is not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError(String);

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JsonError {}

/// The canonical encoding of the message that the JSON describes; `type_url` may be a bare type
/// name. Both forms of field names are accepted, unknown fields and types are not.
pub fn message_bytes(type_url: &str, json: &Value) -> Result<Bytes, JsonError> {
    let name = type_name(type_url);
    let descriptor = pool()
        .get_message_by_name(name)
        .ok_or_else(|| JsonError(format!("message type {name} is not known")))?;
    let message = DynamicMessage::deserialize(descriptor, json)
        .map_err(|error| JsonError(error.to_string()))?;
    Ok(canonical::bytes_of(name, message.encode_to_vec()))
}

/// The fields that Envoy's API marks as sensitive, by message type and number.
static SENSITIVE: LazyLock<HashSet<(String, u32)>> = LazyLock::new(|| {
    let Some(mark) = pool().get_extension_by_name("udpa.annotations.sensitive") else {
        return HashSet::new();
    };
    let fields = pool().all_messages().flat_map(|message| message.fields().collect::<Vec<_>>());
    fields
        .filter(|field| field.options().get_extension(&mark).as_bool() == Some(true))
        .map(|field| (field.parent_message().full_name().to_owned(), field.number()))
        .collect()
});

/// Whether what is printed lies in a sensitive field.
#[derive(Clone, Copy, PartialEq)]
enum Sight {
    Open,
    Secret,
}

/// How a packed message is printed.
#[derive(Clone, Copy, PartialEq)]
enum Packed {
    /// Without its type, which the reader knows.
    AsMessage,
    /// As an `Any`, with `@type`.
    AsAny,
}

fn packed(type_url: &str, bytes: &[u8], form: Packed) -> Value {
    let tagged = |mut fields: Map<String, Value>| {
        fields.insert("@type".into(), type_url.into());
        object(fields)
    };
    let Some(descriptor) = pool().get_message_by_name(type_name(type_url)) else {
        return tagged(single("value", BASE64.encode(bytes).into()));
    };
    // What cannot be decoded may hold a secret, so no byte of it is shown.
    let Ok(message) = DynamicMessage::decode(descriptor, bytes) else {
        let note = format!("{} bytes that are not such a message", bytes.len());
        return tagged(single("error", note.into()));
    };
    match (form, message_value(&message, Sight::Open)) {
        (Packed::AsMessage, value) => value,
        (Packed::AsAny, Value::Object(fields)) if !has_own_json(&message.descriptor()) => {
            tagged(fields)
        }
        (Packed::AsAny, value) => tagged(single("value", value)),
    }
}

fn message_value(message: &DynamicMessage, sight: Sight) -> Value {
    let descriptor = message.descriptor();
    if descriptor.full_name() == "google.protobuf.Any" {
        let type_url = message.get_field_by_name("type_url");
        let type_url = type_url.as_deref().and_then(Proto::as_str).unwrap_or_default();
        if sight == Sight::Secret {
            let fields = [("@type".to_owned(), type_url.into()), ("value".into(), REDACTED.into())];
            return object(fields);
        }
        let value = message.get_field_by_name("value");
        let value = value.as_deref().and_then(Proto::as_bytes).map_or(&[][..], |b| b);
        return packed(type_url, value, Packed::AsAny);
    }
    if has_own_json(&descriptor) {
        if sight == Sight::Secret {
            return REDACTED.into();
        }
        // These never contain an `Any`, which is the only thing that could fail.
        return message
            .serialize_with_options(serde_json::value::Serializer, &SerializeOptions::new())
            .map_or_else(|error| error.to_string().into(), tidy);
    }
    object(message.fields().map(|(field, value)| {
        let sight = sight_of(&field, sight);
        (field.name().to_owned(), field_value(&field, value, sight))
    }))
}

fn sight_of(field: &FieldDescriptor, outer: Sight) -> Sight {
    let message = field.parent_message().full_name();
    // Where a secret is kept is not a secret.
    let place = message == "envoy.config.core.v3.DataSource"
        && matches!(field.name(), "filename" | "environment_variable" | "watched_directory");
    if place {
        Sight::Open
    } else if SENSITIVE.contains(&(message.to_owned(), field.number())) {
        Sight::Secret
    } else {
        outer
    }
}

fn field_value(field: &FieldDescriptor, value: &Proto, sight: Sight) -> Value {
    match value {
        Proto::List(items) => {
            items.iter().map(|item| single_value(&field.kind(), item, sight)).collect()
        }
        Proto::Map(entries) => {
            let Kind::Message(entry) = field.kind() else { return Value::Null };
            let kind = entry.map_entry_value_field().kind();
            object(entries.iter().map(|(k, v)| (key_text(k), single_value(&kind, v, sight))))
        }
        value => single_value(&field.kind(), value, sight),
    }
}

fn single_value(kind: &Kind, value: &Proto, sight: Sight) -> Value {
    match value {
        Proto::Message(message) => message_value(message, sight),
        Proto::List(_) | Proto::Map(_) => Value::Null, // Protobuf has neither inside a list or map.
        _ if sight == Sight::Secret => REDACTED.into(),
        Proto::Bool(b) => (*b).into(),
        Proto::I32(n) => (*n).into(),
        Proto::U32(n) => (*n).into(),
        // The mapping writes 64-bit integers as strings.
        Proto::I64(n) => n.to_string().into(),
        Proto::U64(n) => n.to_string().into(),
        // By way of its text, lest 0.1 becomes 0.10000000149011612.
        Proto::F32(n) => float(n.to_string().parse().unwrap_or(f64::from(*n))),
        Proto::F64(n) => float(*n),
        Proto::String(text) => text.as_str().into(),
        Proto::Bytes(bytes) => BASE64.encode(bytes).into(),
        Proto::EnumNumber(number) => match kind {
            Kind::Enum(e) => e.get_value(*number).map_or((*number).into(), |v| v.name().into()),
            _ => (*number).into(),
        },
    }
}

/// A number of a `double`: `5`, not `5.0`, as Envoy prints it.
fn float(n: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53: the integers below it are exact.
    if n.fract() == 0.0 && n.abs() < EXACT {
        return (n as i64).into();
    }
    match serde_json::Number::from_f64(n) {
        Some(number) => number.into(),
        None if n.is_nan() => "NaN".into(),
        None if n > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// Sorted keys and short numbers, all the way down.
fn tidy(value: Value) -> Value {
    match value {
        Value::Number(n) => n.as_f64().filter(|_| n.is_f64()).map_or(Value::Number(n), float),
        Value::Array(items) => items.into_iter().map(tidy).collect(),
        Value::Object(fields) => object(fields.into_iter().map(|(k, v)| (k, tidy(v)))),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(k) => k.to_string(),
        MapKey::I32(k) => k.to_string(),
        MapKey::I64(k) => k.to_string(),
        MapKey::U32(k) => k.to_string(),
        MapKey::U64(k) => k.to_string(),
        MapKey::String(k) => k.clone(),
    }
}

/// Whether the JSON mapping gives the type a form of its own instead of an object of its fields.
fn has_own_json(descriptor: &MessageDescriptor) -> bool {
    let Some(name) = descriptor.full_name().strip_prefix("google.protobuf.") else { return false };
    matches!(
        name,
        "BoolValue"
            | "BytesValue"
            | "DoubleValue"
            | "Duration"
            | "Empty"
            | "FieldMask"
            | "FloatValue"
            | "Int32Value"
            | "Int64Value"
            | "ListValue"
            | "StringValue"
            | "Struct"
            | "Timestamp"
            | "UInt32Value"
            | "UInt64Value"
            | "Value"
    )
}

fn single(key: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), value)])
}

/// An object with sorted keys.
fn object(fields: impl IntoIterator<Item = (String, Value)>) -> Value {
    let sorted: std::collections::BTreeMap<String, Value> = fields.into_iter().collect();
    Value::Object(sorted.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::pb;
    use serde_json::json;

    fn inline(text: &str) -> Option<pb::core::DataSource> {
        let specifier = pb::core::data_source::Specifier::InlineString(text.into());
        Some(pb::core::DataSource { specifier: Some(specifier), ..Default::default() })
    }

    fn certificate() -> pb::tls::TlsCertificate {
        pb::tls::TlsCertificate {
            certificate_chain: inline("CHAIN"),
            private_key: inline("HUSH-key"),
            password: inline("HUSH-password"),
            pkcs12: inline("HUSH-pkcs12"),
            ..Default::default()
        }
    }

    #[test]
    fn a_message_prints_by_proto_names_with_unpacked_any() {
        let cluster = pb::cluster::Cluster {
            name: "c".into(),
            connect_timeout: Some(pb::duration(std::time::Duration::from_millis(250))),
            cluster_discovery_type: Some(pb::cluster::cluster::ClusterDiscoveryType::Type(
                pb::cluster::cluster::DiscoveryType::Eds.into(),
            )),
            transport_socket: Some(pb::transport_socket(
                "raw",
                &pb::raw_buffer::RawBuffer::default(),
            )),
            metadata: Some(pb::core::Metadata {
                filter_metadata: [("m".to_owned(), pb::object([("n", pb::number(5.0))]))].into(),
                ..Default::default()
            }),
            per_connection_buffer_limit_bytes: Some(pb::u32_value(7)),
            ..Default::default()
        };
        let expected = json!({
            "name": "c",
            "connect_timeout": "0.250s",
            "type": "EDS",
            "per_connection_buffer_limit_bytes": 7,
            "metadata": {"filter_metadata": {"m": {"n": 5}}},
            "transport_socket": {
                "name": "raw",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer",
                },
            },
        });
        assert_eq!(message_json(&cluster), expected);
        let resource = canonical::resource("c", &cluster);
        let printed = resource_json(TypeUrl::Cluster, &resource);
        assert_eq!(printed, expected);
        assert_eq!(message_bytes(TypeUrl::Cluster.as_str(), &printed), Ok(resource.body.clone()));
    }

    #[test]
    fn an_unknown_any_does_not_hide_the_rest() {
        let config = pb::core::TypedExtensionConfig {
            name: "x".into(),
            typed_config: Some(pb::Any { type_url: "t/no.such.Type".into(), value: vec![1, 2] }),
        };
        let expected =
            json!({"name": "x", "typed_config": {"@type": "t/no.such.Type", "value": "AQI="}});
        assert_eq!(message_json(&config), expected);
    }

    #[test]
    fn an_any_of_a_type_with_its_own_json_has_a_value() {
        let packed = pb::any(&pb::string_value("s"));
        let expected =
            json!({"@type": "type.googleapis.com/google.protobuf.StringValue", "value": "s"});
        assert_eq!(message_json(&packed), expected);
        let packed = pb::any(&pb::object([("k", pb::boolean(true))]));
        assert_eq!(message_json(&packed)["value"], json!({"k": true}));
    }

    #[test]
    fn secrets_are_redacted_wherever_they_are() {
        let context = pb::tls::DownstreamTlsContext {
            common_tls_context: Some(pb::tls::CommonTlsContext {
                tls_certificates: vec![certificate()],
                ..Default::default()
            }),
            session_ticket_keys_type: Some(
                pb::tls::downstream_tls_context::SessionTicketKeysType::SessionTicketKeys(
                    pb::tls::TlsSessionTicketKeys {
                        keys: inline("HUSH-ticket").into_iter().collect(),
                    },
                ),
            ),
            ..Default::default()
        };
        let secret = |kind| pb::tls::Secret { name: "s".into(), r#type: Some(kind) };
        let generic = pb::tls::GenericSecret {
            secret: inline("HUSH-generic"),
            secrets: inline("HUSH-map").into_iter().map(|s| ("k".to_owned(), s)).collect(),
        };
        let provider = pb::tls::PrivateKeyProvider {
            provider_name: "p".into(),
            config_type: Some(pb::tls::private_key_provider::ConfigType::TypedConfig(pb::any(
                &pb::string_value("HUSH-provider"),
            ))),
            ..Default::default()
        };
        let shown = [
            message_json(&secret(pb::tls::secret::Type::TlsCertificate(certificate()))),
            message_json(&secret(pb::tls::secret::Type::GenericSecret(generic))),
            message_json(&pb::any(&pb::any(&context))),
            message_json(&provider),
        ];
        for value in &shown {
            let text = value.to_string();
            assert!(text.contains(REDACTED), "{text}");
            for hidden in ["HUSH", &BASE64.encode("HUSH")[..4]] {
                assert!(!text.contains(hidden), "{text}");
            }
        }
        assert_eq!(shown[0]["tls_certificate"]["private_key"]["inline_string"], REDACTED);
        assert_eq!(shown[0]["tls_certificate"]["certificate_chain"]["inline_string"], "CHAIN");
    }

    #[test]
    fn a_body_that_is_no_such_message_shows_none_of_its_bytes() {
        let resource = Resource::new("s", &b"\x0a\x7fHUSH"[..]);
        let printed = resource_json(TypeUrl::Secret, &resource);
        assert_eq!(printed["@type"], TypeUrl::Secret.as_str());
        assert_eq!(printed["error"], "6 bytes that are not such a message");
    }

    #[test]
    fn the_file_that_holds_a_key_may_be_named() {
        let specifier = pb::core::data_source::Specifier::Filename("/etc/key.pem".into());
        let key = pb::core::DataSource { specifier: Some(specifier), ..Default::default() };
        let certificate = pb::tls::TlsCertificate { private_key: Some(key), ..Default::default() };
        let printed = message_json(&certificate);
        assert_eq!(printed, json!({"private_key": {"filename": "/etc/key.pem"}}));
    }

    #[test]
    fn a_set_lists_every_type() {
        let mut set = ResourceSet::new();
        let cluster = pb::cluster::Cluster { name: "c".into(), ..Default::default() };
        set.insert(TypeUrl::Cluster, canonical::resource("c", &cluster));
        let text = "clusters:\n- name: c\nendpoints: []\nlisteners: []\nroutes: []\nsecrets: []\n";
        assert_eq!(yaml(&set_json(&set)), text);
    }

    #[test]
    fn json_that_is_no_message_says_why() {
        let error = |name: &str, value| message_bytes(name, &value).unwrap_err().to_string();
        assert_eq!(error("no.Such", json!({})), "message type no.Such is not known");
        let unknown = error("envoy.config.cluster.v3.Cluster", json!({"nme": "x"}));
        assert!(unknown.contains("nme"), "{unknown}");
    }

    #[test]
    fn numbers_are_short_and_never_lost() {
        assert_eq!(float(5.0), json!(5));
        assert_eq!(float(-0.5), json!(-0.5));
        assert_eq!(float(f64::NAN), json!("NaN"));
        assert_eq!(float(f64::NEG_INFINITY), json!("-Infinity"));
        assert_eq!(float(1e300), json!(1e300));
    }
}
