//! A message on its way out: patched, encoded and checked once. One that others contain is used in
//! each of them as it is.

use super::patch::patch;
use super::{Subject, refused};
use crate::diag::Diagnostic;
use crate::xds::constraints::{self, Violation};
use crate::xds::pb::route::{Route, RouteConfiguration, VirtualHost};
use crate::xds::pb::{Message, Name};
use crate::xds::{Resource, TypeUrl, Version, canonical, parts};
use bytes::Bytes;
use std::fmt;
use std::marker::PhantomData;

/// The canonical bytes of a message of type `M`, and whether Envoy takes them.
/// Cloning shares the bytes.
pub struct Fragment<M> {
    bytes: Bytes,
    is_sound: bool,
    of: PhantomData<fn() -> M>,
}

/// A message that can be put together from fragments.
pub trait Whole: Message + Name {
    /// What it is put together from.
    type Part: Message + Name;
    /// The number of the repeated field that holds the parts. The field itself has no constraints,
    /// nor is it encoded behind a field with a larger number.
    const FIELD: u32;
}

impl Whole for RouteConfiguration {
    type Part = VirtualHost;
    const FIELD: u32 = 2;
}

impl Whole for VirtualHost {
    type Part = Route;
    const FIELD: u32 = 3;
}

impl<M: Message + Name> Fragment<M> {
    /// Patches, encodes and checks a message.
    pub fn of(subject: &Subject<'_>, message: M) -> Fragment<M> {
        let bytes = canonical::bytes(&patch(subject, message));
        let is_sound = constraints::check(&M::type_url(), &bytes).is_empty();
        Fragment::new(bytes, is_sound)
    }

    fn new(bytes: Bytes, is_sound: bool) -> Fragment<M> {
        Fragment { bytes, is_sound, of: PhantomData }
    }

    /// The hash of the bytes.
    pub fn version(&self) -> Version {
        Version::of(&self.bytes)
    }

    /// The canonical encoding.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What Envoy would refuse it for. A fragment that is refused may still be put into a whole; the
    /// whole is refused then, for the same reasons.
    pub fn violations(&self) -> Vec<Violation> {
        if self.is_sound { Vec::new() } else { constraints::check(&M::type_url(), &self.bytes) }
    }

    /// The resource of this message.
    ///
    /// # Errors
    ///
    /// The finding to report when Envoy would refuse it.
    pub fn into_resource(self, type_url: TypeUrl, name: &str) -> Result<Resource, Box<Diagnostic>> {
        if !self.is_sound {
            return Err(Box::new(refused(type_url, name, &self.violations())));
        }
        Ok(Resource::new(name, self.bytes))
    }
}

impl<M: Whole> Fragment<M> {
    /// The message `outer` with these parts behind those that it has itself. Only `outer` is
    /// patched, encoded and checked; the bytes are those of the message encoded as a whole.
    pub fn around<'p>(
        subject: &Subject<'_>,
        outer: M,
        parts: impl IntoIterator<Item = &'p Fragment<M::Part>>,
    ) -> Fragment<M>
    where
        M::Part: 'p,
    {
        let outer = Fragment::of(subject, outer);
        let mut is_sound = outer.is_sound;
        let mut items = Vec::new();
        for part in parts {
            is_sound &= part.is_sound;
            items.push(&part.bytes);
        }
        Fragment::new(parts::with_items(&outer.bytes, M::FIELD, &items), is_sound)
    }
}

impl<M> Clone for Fragment<M> {
    fn clone(&self) -> Fragment<M> {
        Fragment { bytes: self.bytes.clone(), is_sound: self.is_sound, of: PhantomData }
    }
}

impl<M> PartialEq for Fragment<M> {
    fn eq(&self, other: &Fragment<M>) -> bool {
        self.bytes == other.bytes
    }
}

impl<M> Eq for Fragment<M> {}

impl<M> fmt::Debug for Fragment<M> {
    // Bodies may hold private keys, so they are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fragment")
            .field("version", &Version::of(&self.bytes))
            .field("bytes", &self.bytes.len())
            .field("is_sound", &self.is_sound)
            .finish()
    }
}
