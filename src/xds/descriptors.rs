//! The descriptor pool: what protobuf itself knows about every Envoy message. Decoded on first
//! use; `proto/README.md` says where the file comes from.

use prost_reflect::DescriptorPool;
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
