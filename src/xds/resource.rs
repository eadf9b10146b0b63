//! A named resource with its content version, and the set of them that one proxy should have.

use super::TypeUrl;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// A version: a hash of content. Equal content gives equal versions on any machine and in any
/// run; it is never a counter, a clock or a random number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u128);

impl Version {
    /// The version of these bytes.
    pub fn of(bytes: &[u8]) -> Version {
        Version(xxhash_rust::xxh3::xxh3_128(bytes))
    }

    /// The version of a sequence of named versions, in the order given.
    pub fn of_all<'a>(parts: impl IntoIterator<Item = (&'a str, Version)>) -> Version {
        let mut hasher = Xxh3::new();
        for (name, version) in parts {
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
            hasher.update(&version.0.to_le_bytes());
        }
        Version(hasher.digest128())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The text was not made by [`Version`]'s `Display`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAVersion;

impl FromStr for Version {
    type Err = NotAVersion;

    /// Reads back what `Display` wrote, as clients return it when they reconnect.
    fn from_str(text: &str) -> Result<Version, NotAVersion> {
        let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() != 32 || !text.bytes().all(lower_hex) {
            return Err(NotAVersion);
        }
        u128::from_str_radix(text, 16).map(Version).map_err(|_| NotAVersion)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// One encoded xDS resource. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Resource {
    /// The name by which clients subscribe.
    pub name: Arc<str>,
    /// The hash of `body`.
    pub version: Version,
    /// The canonical protobuf encoding of the message itself (the `value` of the `Any`).
    pub body: Bytes,
}

impl Resource {
    /// A resource of already canonical bytes. Use [`super::canonical::resource`] for a message.
    pub fn new(name: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Resource {
        let body = body.into();
        Resource { name: name.into(), version: Version::of(&body), body }
    }
}

impl fmt::Debug for Resource {
    // Bodies may hold private keys, so they are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("bytes", &self.body.len())
            .finish()
    }
}

/// What one proxy should have, all types. Names are unique and sorted within a type. Cloning is
/// cheap: a type's resources are shared until one of the copies gets another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceSet {
    by_type: BTreeMap<TypeUrl, Arc<BTreeMap<Arc<str>, Resource>>>,
}

impl ResourceSet {
    /// An empty set.
    pub fn new() -> ResourceSet {
        ResourceSet::default()
    }

    /// Adds a resource. The first of a name stays; returns whether it was added.
    pub fn insert(&mut self, type_url: TypeUrl, resource: Resource) -> bool {
        let of_type = Arc::make_mut(self.by_type.entry(type_url).or_default());
        if of_type.contains_key(&resource.name) {
            return false;
        }
        of_type.insert(resource.name.clone(), resource);
        true
    }

    /// The resources of one type, sorted by name.
    pub fn of_type(&self, type_url: TypeUrl) -> impl ExactSizeIterator<Item = &Resource> {
        static NONE: BTreeMap<Arc<str>, Resource> = BTreeMap::new();
        self.by_type.get(&type_url).map_or(&NONE, |of_type| of_type).values()
    }

    /// One resource.
    pub fn get(&self, type_url: TypeUrl, name: &str) -> Option<&Resource> {
        self.by_type.get(&type_url)?.get(name)
    }

    /// How many resources there are of one type.
    pub fn len(&self, type_url: TypeUrl) -> usize {
        self.by_type.get(&type_url).map_or(0, |of_type| of_type.len())
    }

    /// Whether there are no resources at all.
    pub fn is_empty(&self) -> bool {
        self.by_type.values().all(|of_type| of_type.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_resource_of_a_name_stays() {
        let mut set = ResourceSet::new();
        assert!(set.insert(TypeUrl::Cluster, Resource::new("a", vec![1])));
        assert!(!set.insert(TypeUrl::Cluster, Resource::new("a", vec![2])));
        assert_eq!(set.get(TypeUrl::Cluster, "a").map(|r| r.body.to_vec()), Some(vec![1]));
    }

    #[test]
    fn a_version_reads_back_what_it_shows() {
        let version = Version::of(b"x");
        assert_eq!(version.to_string().parse(), Ok(version));
        for other in ["", "1", "+0000000000000000000000000000001", &"A".repeat(32)] {
            assert_eq!(other.parse::<Version>(), Err(NotAVersion), "{other}");
        }
    }

    #[test]
    fn a_version_depends_on_names_and_their_boundaries() {
        let v = Version::of(b"x");
        assert_ne!(Version::of_all([("ab", v), ("c", v)]), Version::of_all([("a", v), ("bc", v)]));
    }
}
