//! What one client asked for and has, of one type.
//!
//! Almost always a client has what there is. So the books are kept as exceptions: a client has
//! what it wants of the current map, in the version of the map, unless a name is written down with
//! something else. The map is shared with everybody, so a connection costs its exceptions; and
//! what a push has to look at is its exceptions too, because when the map changes
//! ([`Books::rebase`]) each name that changed becomes one.

use super::held::{Before, Held};
use super::interest::Interest;
use crate::xds::{Change, Digest, Resource, ResourceMap, TypeUrl, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one client asked for and has, of one type.
#[derive(Debug)]
pub(super) struct Books {
    type_url: TypeUrl,
    interest: Interest,
    /// The resources of the type that the client should have, were it to want all of them.
    map: ResourceMap,
    assumed: Assumed,
    /// Names of which the client has something else than assumed; `None` is nothing that we know
    /// of. All of them are wanted, and none is as assumed.
    exceptions: BTreeMap<Arc<str>, Option<Held>>,
}

/// What the client has of names in the map that it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Assumed {
    /// Nothing: it was not told yet.
    Nothing,
    /// The current version.
    Current,
}

impl Books {
    /// Of a client that was not heard of.
    pub(super) fn new(type_url: TypeUrl, map: ResourceMap) -> Books {
        Books {
            type_url,
            interest: Interest::Legacy,
            map,
            assumed: Assumed::Nothing,
            exceptions: BTreeMap::new(),
        }
    }

    /// The resources of the type.
    pub(super) fn map(&self) -> &ResourceMap {
        &self.map
    }

    /// Whether everything of the type is asked for. Endpoints, routes and secrets know no
    /// wildcard: asking for all of them asks for nothing.
    pub(super) fn wildcard(&self) -> bool {
        self.type_url.supports_wildcard() && self.interest.wildcard()
    }

    /// How many names are asked for beside that.
    pub(super) fn n_names(&self) -> usize {
        self.interest.names().map_or(0, |names| names.len(&self.map))
    }

    /// Whether this name was listed.
    pub(super) fn names_it(&self, name: &str) -> bool {
        self.interest.names_it(name, &self.map)
    }

    /// Whether this name is asked for.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.wildcard() || self.names_it(name)
    }

    /// The resources that the client should have, sorted by name.
    pub(super) fn wanted(&self) -> Box<dyn Iterator<Item = &Resource> + '_> {
        match self.interest.names() {
            _ if self.wildcard() => Box::new(self.map.iter()),
            Some(names) => names.within(&self.map),
            None => Box::new(std::iter::empty()),
        }
    }

    /// How many those are.
    pub(super) fn n_wanted(&self) -> usize {
        match self.interest.names() {
            _ if self.wildcard() => self.map.len(),
            Some(names) => names.len_within(&self.map),
            None => 0,
        }
    }

    /// The version of those.
    pub(super) fn version(&self) -> Version {
        self.digest().into()
    }

    /// What makes up that version.
    pub(super) fn digest(&self) -> Digest {
        match self.interest.names() {
            _ if self.wildcard() => self.map.digest(),
            Some(names) => names.digest(&self.map),
            None => Digest::default(),
        }
    }

    /// What the client has under this name.
    pub(super) fn held(&self, name: &str) -> Option<Held> {
        match self.exceptions.get(name) {
            Some(held) => *held,
            None => self.as_assumed(name),
        }
    }

    fn as_assumed(&self, name: &str) -> Option<Held> {
        match self.assumed {
            Assumed::Nothing => None,
            Assumed::Current => {
                let resource = self.map.get(name).filter(|_| self.wants(name))?;
                Some(Held::Version(resource.version))
            }
        }
    }

    /// What the client had under the name of a wanted resource of the map.
    pub(super) fn before(&self, wanted: &Resource) -> Before {
        match (self.exceptions.get(&wanted.name), self.assumed) {
            (Some(Some(held)), _) => held.before(),
            (Some(None), _) | (None, Assumed::Nothing) => Before::Nothing,
            (None, Assumed::Current) => Before::Something,
        }
    }

    /// The wanted resources that the client may not have as they are, with what it has.
    pub(super) fn unsettled(&self) -> Box<dyn Iterator<Item = (&Resource, Option<Held>)> + '_> {
        match self.assumed {
            Assumed::Nothing if self.exceptions.is_empty() => {
                Box::new(self.wanted().map(|resource| (resource, None)))
            }
            Assumed::Nothing => {
                Box::new(self.wanted().map(|resource| (resource, self.held(&resource.name))))
            }
            Assumed::Current => Box::new(
                self.exceptions
                    .iter()
                    .filter_map(|(name, held)| Some((self.map.get(name)?, *held))),
            ),
        }
    }

    /// The names that do not exist and that the client asked for or has something of, sorted, with
    /// what it has.
    pub(super) fn absent(&self) -> BTreeMap<&Arc<str>, Option<Held>> {
        let named = self.interest.names().into_iter().flat_map(|names| names.beside());
        let mut absent: BTreeMap<&Arc<str>, Option<Held>> =
            named.map(|name| (name, None)).collect();
        absent.extend(self.gone().map(|(name, held)| (name, *held)));
        absent
    }

    /// The names that do not exist and that the client really has something of.
    pub(super) fn gone_but_held(&self) -> impl Iterator<Item = &Arc<str>> {
        self.gone()
            .filter(|(_, held)| held.is_some_and(|held| held.is_real()))
            .map(|(name, _)| name)
    }

    fn gone(&self) -> impl Iterator<Item = (&Arc<str>, &Option<Held>)> {
        self.exceptions.iter().filter(|(name, _)| !self.map.contains(name))
    }

    /// What the client refused and may still need.
    pub(super) fn refused(&self) -> Vec<Arc<str>> {
        let refused =
            self.exceptions.iter().filter(|(_, held)| matches!(held, Some(Held::Refused { .. })));
        refused.map(|(name, _)| name.clone()).collect()
    }

    /// Names that were asked for by name and not answered yet, sorted.
    pub(super) fn unanswered(&self) -> Vec<Arc<str>> {
        let present = self
            .unsettled()
            .filter(|(resource, held)| held.is_none() && self.names_it(&resource.name));
        let present = present.map(|(resource, _)| &resource.name);
        let absent = self.absent();
        let absent = absent
            .iter()
            .filter(|(name, held)| held.is_none() && self.names_it(name))
            .map(|(name, _)| *name);
        let unanswered: BTreeSet<&Arc<str>> = present.chain(absent).collect();
        unanswered.into_iter().cloned().collect()
    }

    /// Books what the client has under a name that it wants.
    pub(super) fn set(&mut self, name: &Arc<str>, held: Option<Held>) {
        if !self.wants(name) || self.as_assumed(name) == held {
            self.exceptions.remove(name);
            return;
        }
        // The string of the map, if it has one, is everybody's.
        let name = self.map.get(name).map_or(name, |resource| &resource.name).clone();
        self.exceptions.insert(name, held);
    }

    /// The client dropped this name, although it may be asked for through the wildcard.
    pub(super) fn forget(&mut self, name: &Arc<str>) {
        self.set(name, None);
    }

    /// The client starts over: nothing that was sent counts.
    pub(super) fn restart(&mut self) {
        self.assumed = Assumed::Nothing;
        self.exceptions.clear();
    }

    /// The client was sent all that it wants.
    pub(super) fn sent_all(&mut self) {
        self.assumed = Assumed::Current;
        let map = &self.map;
        self.exceptions.retain(|name, _| !map.contains(name));
    }

    /// A complete response left out what does not exist, but for what was `kept` in it.
    pub(super) fn omitted_absent(&mut self, kept: impl Fn(&str) -> bool) {
        let map = &self.map;
        self.exceptions.retain(|name, _| map.contains(name) || kept(name));
        let beside = self.interest.names().into_iter().flat_map(|names| names.beside());
        for name in beside.filter(|name| !kept(name)) {
            self.exceptions.insert(name.clone(), Some(Held::Nothing));
        }
    }

    /// Takes the form with fewer exceptions, if the client has much of which it is not assumed.
    pub(super) fn tidy(&mut self) {
        match self.assumed {
            Assumed::Nothing if self.exceptions.len() * 2 > self.n_wanted() => {}
            Assumed::Nothing | Assumed::Current => return,
        }
        let had = std::mem::take(&mut self.exceptions);
        self.assumed = Assumed::Current;
        let missing: Vec<Arc<str>> = self
            .wanted()
            .filter(|resource| !had.contains_key(&resource.name))
            .map(|resource| resource.name.clone())
            .collect();
        self.exceptions.extend(missing.into_iter().map(|name| (name, None)));
        for (name, held) in had {
            self.set(&name, held);
        }
    }

    /// Takes in the map of another set. What changed becomes an exception.
    pub(super) fn rebase(&mut self, next: &ResourceMap) {
        if self.map.ptr_eq(next) {
            return;
        }
        let map = std::mem::replace(&mut self.map, next.clone());
        for change in next.diff(&map) {
            let (name, old) = match change {
                Change::Added(new) => {
                    if let Some(names) = self.interest.names_mut() {
                        names.appeared(&new.name);
                    }
                    (&new.name, None)
                }
                Change::Updated { old, new } => (&new.name, Some(Held::Version(old.version))),
                Change::Removed(old) => {
                    if let Some(names) = self.interest.names_mut() {
                        names.vanished(&old.name);
                    }
                    (&old.name, Some(Held::Version(old.version)))
                }
            };
            let old = match self.assumed {
                Assumed::Nothing => None,
                Assumed::Current => old,
            };
            let held = self.exceptions.get(name).copied().unwrap_or(old);
            self.set(name, held);
        }
        if let Some(names) = self.interest.names_mut() {
            names.tidy(next);
        }
    }

    /// State of the world: the list of a request replaces what was asked for before.
    pub(super) fn replace(&mut self, list: &[Arc<str>]) {
        let all_before = self.wildcard();
        let Some(before) = self.interest.replace(list, &self.map) else { return };
        if !all_before && self.assumed == Assumed::Current {
            let gained: Vec<Arc<str>> = match (before.names(), self.interest.names()) {
                _ if self.wildcard() => self
                    .map
                    .iter()
                    .filter(|resource| !before.names_it(&resource.name, &self.map))
                    .map(|resource| resource.name.clone())
                    .collect(),
                (Some(before), Some(now)) => now.gained(before, &self.map),
                (None, Some(now)) => {
                    now.within(&self.map).map(|resource| resource.name.clone()).collect()
                }
                (_, None) => Vec::new(),
            };
            self.exceptions.extend(gained.into_iter().map(|name| (name, None)));
        }
        self.prune();
    }

    /// Delta: the first request of a type. `claims` is what the client says that it has, of which
    /// what it also names does not count.
    pub(super) fn begin(
        &mut self,
        subscribe: &[Arc<str>],
        unsubscribe: &[Arc<str>],
        claims: impl IntoIterator<Item = (Arc<str>, Held)>,
    ) {
        self.interest.begin(subscribe, unsubscribe, &self.map);
        for (name, held) in claims {
            if !(self.names_it(&name) && self.map.contains(&name)) {
                self.set(&name, Some(held));
            }
        }
        self.tidy();
    }

    /// Delta: a later request of a type. What it subscribes to has to be told again.
    pub(super) fn change(&mut self, subscribe: &[Arc<str>], unsubscribe: &[Arc<str>]) {
        if subscribe.is_empty() && unsubscribe.is_empty() {
            return;
        }
        let named_before =
            (self.type_url.supports_wildcard() && !self.wildcard()).then(|| self.interest.clone());
        self.interest.change(subscribe, unsubscribe, &self.map);
        if let Some(before) = named_before
            && self.wildcard()
            && self.assumed == Assumed::Current
        {
            let gained: Vec<Arc<str>> = self
                .map
                .iter()
                .filter(|resource| !before.names_it(&resource.name, &self.map))
                .map(|resource| resource.name.clone())
                .collect();
            self.exceptions.extend(gained.into_iter().map(|name| (name, None)));
        }
        self.prune();
        for name in subscribe {
            if self.names_it(name) {
                self.forget(name);
            }
        }
    }

    /// Forgets what the client no longer asked for, because it has dropped that, and must get it
    /// again when it asks again.
    fn prune(&mut self) {
        if self.wildcard() {
            return;
        }
        let (interest, map) = (&self.interest, &self.map);
        self.exceptions.retain(|name, _| interest.names_it(name, map));
    }

    /// How many entries are kept.
    #[cfg(test)]
    pub(super) fn weight(&self) -> usize {
        self.exceptions.len() + self.interest.names().map_or(0, |names| names.weight())
    }
}

#[cfg(test)]
#[path = "books_tests.rs"]
mod tests;
