//! Names that a client listed, told by how they differ from the names that there are.
//!
//! A proxy asks for the endpoints of each of its clusters by name, and so do a thousand others. A
//! list of names of its own for each of them would be most of what a connection costs. So names
//! are kept relative to the map of the resources of the type: which of its names are listed, as a
//! list of those or of the others, whichever is shorter, and which names it does not have.
//!
//! Whoever owns names says when the map changes ([`Names::appeared`], [`Names::vanished`]) and
//! passes the same map to all other methods.

use crate::xds::{Digest, Resource, ResourceMap};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names that a client listed, relative to a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    within: Within,
    /// The names that the map does not have.
    beside: BTreeSet<Arc<str>>,
}

/// Which names of the map are listed. The strings are those of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Within {
    Only(BTreeSet<Arc<str>>),
    AllBut(BTreeSet<Arc<str>>),
}

impl Names {
    /// No names.
    pub(super) fn none() -> Names {
        Names { within: Within::Only(BTreeSet::new()), beside: BTreeSet::new() }
    }

    /// These names.
    pub(super) fn of<'a>(list: impl Iterator<Item = &'a Arc<str>>, map: &ResourceMap) -> Names {
        let (mut within, mut beside) = (Vec::new(), Vec::new());
        for name in list {
            match map.get(name) {
                Some(resource) => within.push(resource.name.clone()),
                None => beside.push(name.clone()),
            }
        }
        let within = Within::Only(within.into_iter().collect());
        let mut names = Names { within, beside: beside.into_iter().collect() };
        names.tidy(map);
        names
    }

    /// How many there are.
    pub(super) fn len(&self, map: &ResourceMap) -> usize {
        self.len_within(map) + self.beside.len()
    }

    /// How many there are of those that the map has.
    pub(super) fn len_within(&self, map: &ResourceMap) -> usize {
        match &self.within {
            Within::Only(names) => names.len(),
            Within::AllBut(others) => map.len() - others.len(),
        }
    }

    /// Whether this name is among them.
    pub(super) fn contains(&self, name: &str, map: &ResourceMap) -> bool {
        match &self.within {
            Within::Only(names) => names.contains(name) || self.beside.contains(name),
            Within::AllBut(others) if map.contains(name) => !others.contains(name),
            Within::AllBut(_) => self.beside.contains(name),
        }
    }

    /// The resources of the map that are listed, sorted by name.
    pub(super) fn within<'a>(
        &'a self,
        map: &'a ResourceMap,
    ) -> Box<dyn Iterator<Item = &'a Resource> + 'a> {
        match &self.within {
            Within::Only(names) => Box::new(names.iter().filter_map(|name| map.get(name))),
            Within::AllBut(others) if others.is_empty() => Box::new(map.iter()),
            Within::AllBut(others) => {
                Box::new(map.iter().filter(|resource| !others.contains(&resource.name)))
            }
        }
    }

    /// The names that the map does not have, sorted.
    pub(super) fn beside(&self) -> impl Iterator<Item = &Arc<str>> {
        self.beside.iter()
    }

    /// The names of the map that are among these and not among the `older` ones.
    pub(super) fn gained(&self, older: &Names, map: &ResourceMap) -> Vec<Arc<str>> {
        match (&self.within, &older.within) {
            (Within::AllBut(others), Within::AllBut(older)) => {
                older.difference(others).cloned().collect()
            }
            _ => self
                .within(map)
                .filter(|resource| !older.contains(&resource.name, map))
                .map(|resource| resource.name.clone())
                .collect(),
        }
    }

    /// What the listed resources of the map add to a version.
    pub(super) fn digest(&self, map: &ResourceMap) -> Digest {
        let sum = |names: &BTreeSet<Arc<str>>| -> Digest {
            names.iter().filter_map(|name| map.get(name)).map(Resource::digest).sum()
        };
        match &self.within {
            Within::Only(names) => sum(names),
            Within::AllBut(others) => map.digest() - sum(others),
        }
    }

    /// Adds names.
    pub(super) fn extend<'a>(
        &mut self,
        list: impl Iterator<Item = &'a Arc<str>>,
        map: &ResourceMap,
    ) {
        for name in list {
            match (map.get(name), &mut self.within) {
                (None, _) => {
                    self.beside.insert(name.clone());
                }
                (Some(resource), Within::Only(names)) => {
                    names.insert(resource.name.clone());
                }
                (Some(_), Within::AllBut(others)) => {
                    others.remove(name);
                }
            }
        }
        self.tidy(map);
    }

    /// Takes a name away.
    pub(super) fn remove(&mut self, name: &str, map: &ResourceMap) {
        match (map.get(name), &mut self.within) {
            (None, _) => {
                self.beside.remove(name);
            }
            (Some(_), Within::Only(names)) => {
                names.remove(name);
            }
            (Some(resource), Within::AllBut(others)) => {
                others.insert(resource.name.clone());
            }
        }
    }

    /// The map is about to get this name.
    pub(super) fn appeared(&mut self, name: &Arc<str>) {
        let listed = self.beside.remove(name);
        match &mut self.within {
            Within::Only(names) if listed => {
                names.insert(name.clone());
            }
            Within::AllBut(others) if !listed => {
                others.insert(name.clone());
            }
            Within::Only(_) | Within::AllBut(_) => {}
        }
    }

    /// The map is about to lose this name.
    pub(super) fn vanished(&mut self, name: &Arc<str>) {
        let listed = match &mut self.within {
            Within::Only(names) => names.remove(name),
            Within::AllBut(others) => !others.remove(name),
        };
        if listed {
            self.beside.insert(name.clone());
        }
    }

    /// Takes the shorter form, with some inertia. To be called after many changes.
    pub(super) fn tidy(&mut self, map: &ResourceMap) {
        let others_of = |names: &BTreeSet<Arc<str>>| -> BTreeSet<Arc<str>> {
            let others = map.iter().map(|resource| &resource.name);
            others.filter(|name| !names.contains(*name)).cloned().collect()
        };
        match &self.within {
            Within::Only(names) if names.len() == map.len() && !map.is_empty() => {
                self.within = Within::AllBut(BTreeSet::new());
            }
            Within::Only(names) if names.len() > map.len() / 2 => {
                self.within = Within::AllBut(others_of(names));
            }
            Within::AllBut(others) if others.len() > map.len() * 3 / 4 => {
                self.within = Within::Only(others_of(others));
            }
            Within::Only(_) | Within::AllBut(_) => {}
        }
    }

    /// How many entries are kept.
    #[cfg(test)]
    pub(super) fn weight(&self) -> usize {
        let (Within::Only(names) | Within::AllBut(names)) = &self.within;
        names.len() + self.beside.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::{Change, Version};
    use proptest::prelude::*;

    fn map(names: &BTreeSet<u8>) -> ResourceMap {
        names.iter().map(|name| Resource::new(name.to_string(), vec![*name])).collect()
    }

    fn arcs(names: &BTreeSet<u8>) -> Vec<Arc<str>> {
        names.iter().map(|name| name.to_string().into()).collect()
    }

    #[derive(Debug, Clone)]
    enum Step {
        Extend(BTreeSet<u8>),
        Remove(u8),
        Become(BTreeSet<u8>),
    }

    fn some() -> impl Strategy<Value = BTreeSet<u8>> {
        prop::collection::btree_set(0..24u8, 0..24)
    }

    proptest! {
        #[test]
        fn names_are_a_set_of_names_whatever_the_map_is(
            first in some(),
            listed in some(),
            older in some(),
            steps in prop::collection::vec(
                prop_oneof![
                    some().prop_map(Step::Extend),
                    (0..24u8).prop_map(Step::Remove),
                    some().prop_map(Step::Become),
                ],
                0..12,
            ),
        ) {
            let mut there = map(&first);
            let mut names = Names::of(arcs(&listed).iter(), &there);
            let mut model = listed;
            for step in steps {
                match step {
                    Step::Extend(more) => {
                        names.extend(arcs(&more).iter(), &there);
                        model.extend(more);
                    }
                    Step::Remove(name) => {
                        names.remove(&name.to_string(), &there);
                        model.remove(&name);
                    }
                    Step::Become(next) => {
                        let next = map(&next);
                        for change in next.diff(&there) {
                            match change {
                                Change::Added(new) => names.appeared(&new.name),
                                Change::Updated { .. } => {}
                                Change::Removed(old) => names.vanished(&old.name),
                            }
                        }
                        names.tidy(&next);
                        there = next;
                    }
                }
            }
            for name in 0..24u8 {
                let text = name.to_string();
                prop_assert_eq!(names.contains(&text, &there), model.contains(&name));
            }
            let is_there = |name: &&u8| there.contains(&name.to_string());
            let within: BTreeSet<String> =
                model.iter().filter(is_there).map(u8::to_string).collect();
            let said: Vec<String> = names.within(&there).map(|r| r.name.to_string()).collect();
            prop_assert_eq!(names.len_within(&there), said.len());
            prop_assert_eq!(&said, &within.iter().cloned().collect::<Vec<_>>());
            prop_assert_eq!(names.len(&there), model.len());
            prop_assert_eq!(names.beside().count(), model.len() - within.len());
            let parts = names.within(&there).map(|r| (&*r.name, r.version));
            prop_assert_eq!(Version::from(names.digest(&there)), Version::of_all(parts));
            prop_assert!(names.weight() <= there.len() * 3 / 4 + 12 + names.beside().count());

            let before = Names::of(arcs(&older).iter(), &there);
            let gained: BTreeSet<String> =
                names.gained(&before, &there).iter().map(ToString::to_string).collect();
            let expected: BTreeSet<String> = within
                .into_iter()
                .filter(|name| !older.contains(&name.parse().expect("a number")))
                .collect();
            prop_assert_eq!(gained, expected);
        }
    }
}
