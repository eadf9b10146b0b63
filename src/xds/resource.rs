//! A named resource with its content version.

use super::version::{Digest, Version};
use bytes::Bytes;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// One encoded xDS resource. It is one pointer: cloning shares name, bytes and all.
#[derive(Clone)]
pub struct Resource(Arc<Content>);

/// What a [`Resource`] points to.
pub struct Content {
    /// The name by which clients subscribe.
    pub name: Arc<str>,
    /// The hash of `body`.
    pub version: Version,
    /// The canonical protobuf encoding of the message itself (the `value` of the `Any`).
    pub body: Bytes,
    digest: Digest,
}

impl Resource {
    /// A resource of already canonical bytes. Use [`super::canonical::resource`] for a message.
    pub fn new(name: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Resource {
        let (name, body) = (name.into(), body.into());
        let version = Version::of(&body);
        let digest = Digest::of(&name, version);
        Resource(Arc::new(Content { name, version, body, digest }))
    }

    /// What it adds to the version of a set that it is in.
    pub(crate) fn digest(&self) -> Digest {
        self.0.digest
    }
}

impl Deref for Resource {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.0
    }
}

impl PartialEq for Resource {
    /// Of equal content, that is, of equal versions.
    fn eq(&self, other: &Resource) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.version == other.version && self.name == other.name)
    }
}

impl Eq for Resource {}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Content {
    // Bodies may hold private keys, so they are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("bytes", &self.body.len())
            .finish()
    }
}
