//! The set of resources that one proxy should have, as persistent maps.
//!
//! Proxies differ little, and generations differ little. So a copy of a set costs nothing, a copy
//! that is then changed shares all but the path to the change with its original, and the
//! difference of two sets that come from each other is found without looking at what they share.

use super::TypeUrl;
use super::resource::Resource;
use super::version::{Digest, Version};
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use std::fmt;
use std::sync::Arc;

/// Resources of one type, unique and sorted by name. Cloning is cheap.
#[derive(Clone, Default)]
pub struct ResourceMap {
    by_name: OrdMap<Arc<str>, Resource>,
    /// The sum over all of them, kept up with every change.
    digest: Digest,
}

/// How two maps differ at one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// Only the newer map has it.
    Added(&'a Resource),
    /// Both have it, with other content.
    Updated {
        /// What it was.
        old: &'a Resource,
        /// What it is.
        new: &'a Resource,
    },
    /// Only the older map has it.
    Removed(&'a Resource),
}

impl ResourceMap {
    /// The resource of this name.
    pub fn get(&self, name: &str) -> Option<&Resource> {
        self.by_name.get(name)
    }

    /// Whether there is a resource of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// All of them, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Resource> {
        self.by_name.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The version of all of them, as [`Version::of_all`] has it, but known already.
    pub fn version(&self) -> Version {
        self.digest.into()
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether this is the same map, not only an equal one.
    pub fn ptr_eq(&self, other: &ResourceMap) -> bool {
        self.by_name.ptr_eq(&other.by_name)
    }

    /// Adds a resource. The first of a name stays; returns whether it was added.
    pub fn insert(&mut self, resource: Resource) -> bool {
        if self.contains(&resource.name) {
            return false;
        }
        self.set(resource);
        true
    }

    /// Adds a resource or takes it in the place of another one, which is returned. Setting what is
    /// there already changes nothing: the map remains the same one.
    pub fn set(&mut self, resource: Resource) -> Option<Resource> {
        if let Some(old) = self.get(&resource.name)
            && *old == resource
        {
            return Some(old.clone());
        }
        self.digest = self.digest + resource.digest();
        let old = self.by_name.insert(resource.name.clone(), resource);
        if let Some(old) = &old {
            self.digest = self.digest - old.digest();
        }
        old
    }

    /// Takes a resource out.
    pub fn remove(&mut self, name: &str) -> Option<Resource> {
        if !self.contains(name) {
            return None;
        }
        let old = self.by_name.remove(name)?;
        self.digest = self.digest - old.digest();
        Some(old)
    }

    /// What changed since `older`, sorted by name. Parts that both share are not looked at.
    pub fn diff<'a>(&'a self, older: &'a ResourceMap) -> impl Iterator<Item = Change<'a>> {
        older.by_name.diff(&self.by_name).map(|item| match item {
            DiffItem::Add(_, new) => Change::Added(new),
            DiffItem::Update { old: (_, old), new: (_, new) } => Change::Updated { old, new },
            DiffItem::Remove(_, old) => Change::Removed(old),
        })
    }
}

impl PartialEq for ResourceMap {
    fn eq(&self, other: &ResourceMap) -> bool {
        self.digest == other.digest
            && self.len() == other.len()
            && self.diff(other).next().is_none()
    }
}

impl Eq for ResourceMap {}

impl FromIterator<Resource> for ResourceMap {
    /// The first of a name stays.
    fn from_iter<I: IntoIterator<Item = Resource>>(resources: I) -> ResourceMap {
        let mut map = ResourceMap::default();
        for resource in resources {
            map.insert(resource);
        }
        map
    }
}

impl fmt::Debug for ResourceMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// What one proxy should have, all types. Names are unique and sorted within a type. Cloning is
/// cheap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceSet {
    /// In the order of [`TypeUrl::ALL`].
    by_type: [ResourceMap; TypeUrl::ALL.len()],
}

impl ResourceSet {
    /// An empty set.
    pub fn new() -> ResourceSet {
        ResourceSet::default()
    }

    /// The resources of one type.
    pub fn map(&self, type_url: TypeUrl) -> &ResourceMap {
        &self.by_type[type_url as usize]
    }

    /// The resources of one type, to be changed.
    pub fn map_mut(&mut self, type_url: TypeUrl) -> &mut ResourceMap {
        &mut self.by_type[type_url as usize]
    }

    /// Adds a resource. The first of a name stays; returns whether it was added.
    pub fn insert(&mut self, type_url: TypeUrl, resource: Resource) -> bool {
        self.map_mut(type_url).insert(resource)
    }

    /// Adds a resource or takes it in the place of another one, which is returned.
    pub fn set(&mut self, type_url: TypeUrl, resource: Resource) -> Option<Resource> {
        self.map_mut(type_url).set(resource)
    }

    /// Takes a resource out.
    pub fn remove(&mut self, type_url: TypeUrl, name: &str) -> Option<Resource> {
        self.map_mut(type_url).remove(name)
    }

    /// The resources of one type, sorted by name.
    pub fn of_type(&self, type_url: TypeUrl) -> impl ExactSizeIterator<Item = &Resource> {
        self.map(type_url).iter()
    }

    /// One resource.
    pub fn get(&self, type_url: TypeUrl, name: &str) -> Option<&Resource> {
        self.map(type_url).get(name)
    }

    /// How many resources there are of one type.
    pub fn len(&self, type_url: TypeUrl) -> usize {
        self.map(type_url).len()
    }

    /// Whether there are no resources at all.
    pub fn is_empty(&self) -> bool {
        self.by_type.iter().all(ResourceMap::is_empty)
    }

    /// What changed of one type since `older`, sorted by name. Parts that both share are not
    /// looked at.
    pub fn diff<'a>(
        &'a self,
        older: &'a ResourceSet,
        type_url: TypeUrl,
    ) -> impl Iterator<Item = Change<'a>> {
        self.map(type_url).diff(older.map(type_url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn resource(name: &str, content: u8) -> Resource {
        Resource::new(name, vec![content])
    }

    /// `a=1` added, `b` removed and so on, as `+a=1 -b ~c=1>2`.
    fn shown(newer: &ResourceMap, older: &ResourceMap) -> Vec<String> {
        newer
            .diff(older)
            .map(|change| match change {
                Change::Added(r) => format!("+{}={}", r.name, r.body[0]),
                Change::Updated { old, new } => {
                    format!("~{}={}>{}", new.name, old.body[0], new.body[0])
                }
                Change::Removed(r) => format!("-{}", r.name),
            })
            .collect()
    }

    #[test]
    fn the_first_resource_of_a_name_stays() {
        let mut set = ResourceSet::new();
        assert!(set.insert(TypeUrl::Cluster, resource("a", 1)));
        assert!(!set.insert(TypeUrl::Cluster, resource("a", 2)));
        assert_eq!(set.get(TypeUrl::Cluster, "a").map(|r| r.body.to_vec()), Some(vec![1]));
    }

    #[test]
    fn a_type_has_its_own_resources() {
        for type_url in TypeUrl::ALL {
            let mut set = ResourceSet::new();
            set.insert(type_url, resource("a", 1));
            let found: Vec<TypeUrl> =
                TypeUrl::ALL.into_iter().filter(|t| set.get(*t, "a").is_some()).collect();
            assert_eq!(found, [type_url]);
        }
    }

    #[test]
    fn a_copy_that_changes_leaves_its_original_alone() {
        let old: ResourceMap = (0..9).map(|i| resource(&i.to_string(), 1)).collect();
        let mut new = old.clone();
        assert_eq!(new.set(resource("3", 2)).map(|r| r.body[0]), Some(1));
        assert_eq!(new.remove("5").map(|r| r.body[0]), Some(1));
        assert_eq!(new.set(resource("x", 1)), None);
        assert_eq!(shown(&new, &old), ["~3=1>2", "-5", "+x=1"]);
        assert_eq!(shown(&old, &new), ["~3=2>1", "+5=1", "-x"]);
    }

    #[test]
    fn setting_what_is_there_leaves_the_map_the_same_one() {
        let old: ResourceMap = (0..100).map(|i| resource(&i.to_string(), 1)).collect();
        let mut new = old.clone();
        new.set(resource("7", 1));
        assert_eq!(new.remove("never"), None);
        assert!(new.ptr_eq(&old));
        new.set(resource("7", 2));
        assert!(!new.ptr_eq(&old));
    }

    proptest! {
        #[test]
        fn a_map_with_a_history_is_as_one_made_at_once(
            before in prop::collection::btree_map(0..400u16, 0..3u8, 0..300),
            changes in prop::collection::vec((0..400u16, prop::option::of(0..3u8)), 0..60),
        ) {
            let named = |(name, content): (&u16, &u8)| resource(&name.to_string(), *content);
            let older: ResourceMap = before.iter().map(named).collect();
            let (mut newer, mut after) = (older.clone(), before.clone());
            for (name, content) in changes {
                match content {
                    Some(content) => {
                        newer.set(named((&name, &content)));
                        after.insert(name, content);
                    }
                    None => {
                        newer.remove(&name.to_string());
                        after.remove(&name);
                    }
                }
            }
            let at_once: ResourceMap = after.iter().map(named).collect();
            prop_assert_eq!(&newer, &at_once);
            prop_assert_eq!(newer.version(), at_once.version());
            let parts = newer.iter().map(|r| (&*r.name, r.version));
            prop_assert_eq!(newer.version(), Version::of_all(parts));

            let mut expected = BTreeMap::new();
            for (name, old) in &before {
                match after.get(name) {
                    None => expected.insert(name.to_string(), format!("-{name}")),
                    Some(new) if new != old => {
                        expected.insert(name.to_string(), format!("~{name}={old}>{new}"))
                    }
                    Some(_) => None,
                };
            }
            for (name, new) in after.iter().filter(|(name, _)| !before.contains_key(name)) {
                expected.insert(name.to_string(), format!("+{name}={new}"));
            }
            prop_assert_eq!(shown(&newer, &older), expected.into_values().collect::<Vec<_>>());
        }
    }
}
