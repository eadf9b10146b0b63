//! Wire vocabulary: type URLs, resources, protobuf types, the two ways of turning them into
//! something comparable (canonical bytes) and something readable (JSON), and what Envoy demands of
//! them before it looks at their meaning (constraints).

pub mod canonical;
pub mod constraints;
pub mod descriptors;
mod extra;
pub mod json;
pub mod parts;
pub mod pb;
mod resource;
mod resource_set;
mod type_url;
mod version;
mod wire;

pub use resource::{Content, Resource};
pub use resource_set::{Change, ResourceMap, ResourceSet};
pub use type_url::TypeUrl;
pub(crate) use version::Digest;
pub use version::{NotAVersion, Version};
