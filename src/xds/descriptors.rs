//! The descriptor pool: what protobuf itself knows about every Envoy message. Decoded on first
//! use; `proto/README.md` says where the file comes from.

use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};
use std::collections::HashMap;
use std::sync::LazyLock;

static SET: &[u8] = include_bytes!("../../proto/envoy.binpb");

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(SET).expect("tests/descriptors.rs decodes this very file")
});

/// Every message type that we know.
pub fn pool() -> &'static DescriptorPool {
    &POOL
}

/// The type name in a type URL: what follows the last slash.
pub(super) fn type_name(type_url: &str) -> &str {
    type_url.rsplit_once('/').map_or(type_url, |(_, name)| name)
}

/// The message types that `wanted` picks, and all those that have one of them somewhere below, in
/// the order of the pool.
pub(super) fn reaching(wanted: impl Fn(&MessageDescriptor) -> bool) -> Vec<MessageDescriptor> {
    let all: Vec<MessageDescriptor> = pool().all_messages().collect();
    let mut holders: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, message) in all.iter().enumerate() {
        for field in message.fields() {
            if let Kind::Message(below) = field.kind() {
                holders.entry(below.full_name().to_owned()).or_default().push(index);
            }
        }
    }
    let mut marked: Vec<bool> = all.iter().map(wanted).collect();
    let mut queue: Vec<usize> = (0..all.len()).filter(|index| marked[*index]).collect();
    while let Some(index) = queue.pop() {
        for holder in holders.get(all[index].full_name()).into_iter().flatten() {
            if !std::mem::replace(&mut marked[*holder], true) {
                queue.push(*holder);
            }
        }
    }
    all.into_iter().zip(marked).filter_map(|(message, marked)| marked.then_some(message)).collect()
}
