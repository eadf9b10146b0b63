//! Canonical bytes: equal messages give equal bytes. Plain protobuf encoding does not, because map
//! fields are `HashMap`s. A message is encoded as usual, and then the entries of every map in it
//! are put in the order of their keys. That only swaps neighbours, so no length changes and it
//! happens in place. [`bytes`] takes `Any` values as they are: [`super::pb::any`] packed them through
//! this module, so they are canonical already. [`bytes_of`] is for encodings that come from
//! elsewhere and goes into them.
//!
//! Which fields are maps is looked up in the descriptors once per process; a message type that
//! cannot contain a map costs one encoding and one table look-up.

use super::Resource;
use super::descriptors::{reaching, type_name};
use super::wire::{self, Malformed, Raw, any_parts};
use bytes::Bytes;
use prost::{Message, Name};
use prost_reflect::{Kind, MessageDescriptor};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The canonical encoding of a message.
pub fn bytes<M: Message + Name>(message: &M) -> Bytes {
    canonical(&PLANS, &M::full_name(), message.encode_to_vec())
}

/// The canonical form of any encoding of the message type with this full name, such as one that
/// reflection made. `Any` values of known types are made canonical too.
pub fn bytes_of(full_name: &str, encoded: Vec<u8>) -> Bytes {
    canonical(&DEEP_PLANS, full_name, encoded)
}

/// A resource made of this message, with its content version.
pub fn resource<M: Message + Name>(name: impl Into<Arc<str>>, message: &M) -> Resource {
    Resource::new(name, bytes(message))
}

fn canonical(plans: &Plans, full_name: &str, mut encoded: Vec<u8>) -> Bytes {
    if let Some(plan) = plans.by_name.get(full_name) {
        // Malformed bytes cannot come out of an encoder. If a caller hands us some, what follows
        // the fault stays as it is, which is the most that can be said about it.
        let _ = plans.sort(*plan, &mut encoded);
    }
    encoded.into()
}

static PLANS: LazyLock<Plans> = LazyLock::new(|| Plans::compile(Reach::Maps));
static DEEP_PLANS: LazyLock<Plans> = LazyLock::new(|| Plans::compile(Reach::MapsInAny));

const ANY: &str = "google.protobuf.Any";

/// How far a set of plans reaches.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// Maps in the message itself.
    Maps,
    /// Also maps in what is packed in `Any` values.
    MapsInAny,
}

/// What to do at each message type that can contain a map. Others are not listed.
struct Plans {
    by_name: HashMap<String, usize>,
    plans: Vec<Plan>,
}

enum Plan {
    /// The fields of a message type below which there may be maps, sorted by number.
    Fields(Vec<(u32, Step)>),
    /// The message is an `Any`: go by the type that it names.
    Any,
}

#[derive(Clone, Copy)]
enum Step {
    /// A map field; its values may hold further maps.
    Map(Option<usize>),
    /// A message, or a list of them, with maps somewhere below.
    Below(usize),
}

impl Plans {
    fn compile(reach: Reach) -> Plans {
        let kept = reaching(|message| {
            let any = reach == Reach::MapsInAny && message.full_name() == ANY;
            any || message.fields().any(|field| field.is_map())
        });
        let by_name: HashMap<String, usize> =
            kept.iter().enumerate().map(|(i, m)| (m.full_name().to_owned(), i)).collect();
        let plans = kept.iter().map(|message| Plan::of(message, &by_name)).collect();
        Plans { by_name, plans }
    }

    /// Sorts the maps of one encoded message, and of the messages inside it.
    fn sort(&self, plan: usize, encoded: &mut [u8]) -> Result<(), Malformed> {
        let steps = match &self.plans[plan] {
            Plan::Fields(steps) => steps,
            Plan::Any => return self.sort_any(encoded),
        };
        let mut at = 0;
        while let Some(field) = wire::field(encoded, at)? {
            let start = at;
            at = field.whole.end;
            let step = steps.binary_search_by_key(&field.number, |(number, _)| *number);
            let (Ok(step), Raw::Bytes(value)) = (step, field.value) else { continue };
            match steps[step].1 {
                Step::Below(below) => self.sort(below, &mut encoded[value])?,
                Step::Map(values) => {
                    at = self.sort_map(values, field.number, encoded, start)?;
                }
            }
        }
        Ok(())
    }

    fn sort_any(&self, encoded: &mut [u8]) -> Result<(), Malformed> {
        let (type_url, value) = any_parts(encoded)?;
        let plan = std::str::from_utf8(&encoded[type_url])
            .ok()
            .and_then(|type_url| self.by_name.get(type_name(type_url)));
        match plan {
            Some(plan) => self.sort(*plan, &mut encoded[value]),
            None => Ok(()),
        }
    }

    /// Sorts the run of entries of one map that begins at `start`; returns where it ends. An
    /// encoder writes all entries of a map next to each other.
    fn sort_map(
        &self,
        values: Option<usize>,
        number: u32,
        encoded: &mut [u8],
        start: usize,
    ) -> Result<usize, Malformed> {
        let mut entries = Vec::new();
        let mut at = start;
        while let Some(field) = wire::field(encoded, at)? {
            let Raw::Bytes(entry) = field.value else { break };
            if field.number != number {
                break;
            }
            let (key, value) = key_and_value(&encoded[entry.clone()])?;
            if let (Some(plan), Some(value)) = (values, value) {
                self.sort(plan, &mut encoded[entry.start + value.start..entry.start + value.end])?;
            }
            let key = entry.start + key.start..entry.start + key.end;
            entries.push((key, field.whole.clone()));
            at = field.whole.end;
        }
        if !entries.is_sorted_by(|a, b| encoded[a.0.clone()] <= encoded[b.0.clone()]) {
            entries.sort_by(|a, b| encoded[a.0.clone()].cmp(&encoded[b.0.clone()]));
            let mut sorted = Vec::with_capacity(at - start);
            for (_, whole) in &entries {
                sorted.extend_from_slice(&encoded[whole.clone()]);
            }
            encoded[start..at].copy_from_slice(&sorted);
        }
        Ok(at)
    }
}

/// Where the key of a map entry lies, and its value if that is length-delimited. A key that is
/// absent is the default one, which sorts first like the empty bytes it stands for.
fn key_and_value(
    entry: &[u8],
) -> Result<(std::ops::Range<usize>, Option<std::ops::Range<usize>>), Malformed> {
    let (mut key, mut value) = (0..0, None);
    let mut at = 0;
    while let Some(field) = wire::field(entry, at)? {
        match (field.number, field.value) {
            (1, Raw::Bytes(range)) => key = range,
            (1, _) => key = field.whole.clone(),
            (2, Raw::Bytes(range)) => value = Some(range),
            _ => {}
        }
        at = field.whole.end;
    }
    Ok((key, value))
}

impl Plan {
    fn of(message: &MessageDescriptor, by_name: &HashMap<String, usize>) -> Plan {
        // A type is listed only if there is something to do in it, and `Any` has no maps.
        if message.full_name() == ANY {
            return Plan::Any;
        }
        let plan_of = |kind: Kind| match kind {
            Kind::Message(below) => by_name.get(below.full_name()).copied(),
            _ => None,
        };
        let mut steps: Vec<(u32, Step)> = message
            .fields()
            .filter_map(|field| {
                let step = match field.kind() {
                    Kind::Message(entry) if field.is_map() => {
                        Step::Map(plan_of(entry.map_entry_value_field().kind()))
                    }
                    kind => Step::Below(plan_of(kind)?),
                };
                Some((field.number(), step))
            })
            .collect();
        steps.sort_by_key(|(number, _)| *number);
        Plan::Fields(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::pb;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A cluster with maps in maps: typed metadata, and structs inside filter metadata.
    fn cluster(order: impl Iterator<Item = usize> + Clone) -> pb::cluster::Cluster {
        let fields = |n: usize| {
            let inner = pb::object(order.clone().map(|i| (format!("in{i}"), pb::number(n as f64))));
            let list = pb::list([pb::nested(inner), pb::string("x")]);
            pb::object([("list".to_owned(), list), (String::new(), pb::boolean(true))])
        };
        pb::cluster::Cluster {
            name: "outbound|80||a.example.com".into(),
            metadata: Some(pb::core::Metadata {
                filter_metadata: order.clone().map(|i| (format!("key{i}"), fields(i))).collect(),
                typed_filter_metadata: order
                    .clone()
                    .map(|i| (format!("typed{i}"), pb::any(&fields(i))))
                    .collect(),
            }),
            ..Default::default()
        }
    }

    #[test]
    fn fifty_equal_messages_have_one_encoding() {
        let order = |round: usize| (0..7).map(move |i| (i * 3 + round) % 7);
        let plain: BTreeSet<Vec<u8>> =
            (0..50).map(|round| cluster(order(round)).encode_to_vec()).collect();
        let canonical: BTreeSet<Bytes> =
            (0..50).map(|round| bytes(&cluster(order(round)))).collect();
        assert!(plain.len() > 1, "the trap that this module exists for is gone");
        assert_eq!(canonical.len(), 1);
        for encoded in canonical {
            assert_eq!(pb::cluster::Cluster::decode(encoded).unwrap(), cluster(order(0)));
        }
    }

    #[test]
    fn equal_messages_are_equal_resources() {
        let order = [3, 1, 2];
        let a = resource("a", &cluster(order.into_iter()));
        let b = resource("a", &cluster(order.into_iter().rev()));
        assert_eq!(a.version, b.version);
        assert_eq!(a, b);
    }

    #[test]
    fn map_entries_stand_in_the_order_of_their_keys() {
        let value = pb::object(["b", "", "a", "ab"].map(|k| (k, pb::boolean(true))));
        let encoded = bytes(&value);
        let mut keys = Vec::new();
        let mut at = 0;
        while let Some(field) = wire::field(&encoded, at).unwrap() {
            at = field.whole.end;
            let Raw::Bytes(entry) = field.value else { panic!("not an entry") };
            let entry = &encoded[entry];
            let (key, _) = key_and_value(entry).unwrap();
            keys.push(String::from_utf8(entry[key].to_vec()).unwrap());
        }
        assert_eq!(keys, ["", "a", "ab", "b"]);
    }

    #[test]
    fn malformed_bytes_come_back_as_they_are() {
        let broken = vec![0x0a, 0x7f, 0x01];
        assert_eq!(bytes_of("google.protobuf.Struct", broken.clone()), broken);
    }

    #[test]
    fn an_encoding_from_elsewhere_becomes_canonical_inside_any_too() {
        let packed = |keys: [&str; 8]| {
            let fields = keys.map(|key| (key, pb::boolean(true)));
            let value = pb::object(fields).encode_to_vec();
            let inner = pb::Any { type_url: pb::Struct::type_url(), value };
            let outer =
                pb::core::TypedExtensionConfig { name: "x".into(), typed_config: Some(inner) };
            pb::Any {
                type_url: pb::core::TypedExtensionConfig::type_url(),
                value: outer.encode_to_vec(),
            }
        };
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let encodings: BTreeSet<Bytes> = (0..20)
            .map(|_| bytes_of("google.protobuf.Any", packed(keys).encode_to_vec()))
            .collect();
        assert_eq!(encodings.len(), 1);
        let unknown = pb::Any { type_url: "x/no.such.Type".into(), value: vec![1, 2] };
        assert_eq!(
            bytes_of("google.protobuf.Any", unknown.encode_to_vec()),
            unknown.encode_to_vec()
        );
    }

    #[test]
    fn only_types_that_can_contain_a_map_have_a_plan() {
        assert!(PLANS.by_name.contains_key("envoy.config.cluster.v3.Cluster"));
        assert!(!PLANS.by_name.contains_key("google.protobuf.Duration"));
    }

    fn value() -> impl Strategy<Value = pb::Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(pb::boolean),
            (-9i32..9).prop_map(|n| pb::number(n.into())),
            "[a-c]{0,2}".prop_map(pb::string),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(pb::list),
                proptest::collection::btree_map("[a-z]{0,3}", inner, 0..6)
                    .prop_map(|fields| pb::nested(pb::object(fields))),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_bytes_decode_to_the_message_and_do_not_depend_on_order(value in value()) {
            let encoded = bytes(&value);
            prop_assert_eq!(&pb::Value::decode(encoded.clone()).unwrap(), &value);
            // Decoding fills fresh hash maps, each with an order of its own.
            let again = pb::Value::decode(value.encode_to_vec().as_slice()).unwrap();
            prop_assert_eq!(bytes(&again), encoded);
        }
    }
}
