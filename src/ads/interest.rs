//! What one client has asked for, of one type: the wildcard rules of the xDS protocol as a value.
//!
//! A client starts out in *legacy* mode, where an empty list means "all of them". The first name
//! that it ever lists (a `*` counts) ends that for good on this stream: from then on an empty
//! list means "nothing", and only `*` means all (xDS protocol, "How the client specifies what
//! resources to return").

use super::names::Names;
use crate::xds::{ResourceMap, Version};
use std::sync::Arc;

/// The name that asks for everything.
const WILDCARD: &str = "*";

/// What a client has asked for, of one type. The names are relative to a map, as [`Names`] are;
/// all methods take the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interest {
    /// No name was ever listed: everything, for the types that know a wildcard.
    Legacy,
    /// At least once a name was listed.
    Explicit {
        /// Whether `*` is among the names.
        wildcard: bool,
        /// The other names.
        names: Names,
        /// The list that said so, if it was one: state of the world repeats it with each ACK.
        listing: Option<Version>,
    },
}

impl Interest {
    /// Whether everything is asked for.
    pub(super) fn wildcard(&self) -> bool {
        match self {
            Interest::Legacy => true,
            Interest::Explicit { wildcard, .. } => *wildcard,
        }
    }

    /// The names asked for beside the wildcard.
    pub(super) fn names(&self) -> Option<&Names> {
        match self {
            Interest::Legacy => None,
            Interest::Explicit { names, .. } => Some(names),
        }
    }

    /// The names asked for beside the wildcard, to be told of changes of the map.
    pub(super) fn names_mut(&mut self) -> Option<&mut Names> {
        match self {
            Interest::Legacy => None,
            Interest::Explicit { names, .. } => Some(names),
        }
    }

    /// Whether this name was listed.
    pub(super) fn names_it(&self, name: &str, map: &ResourceMap) -> bool {
        self.names().is_some_and(|names| names.contains(name, map))
    }

    /// State of the world: the list of a request replaces what was asked for before. Returns what
    /// that was if this is another list.
    pub(super) fn replace(&mut self, list: &[Arc<str>], map: &ResourceMap) -> Option<Interest> {
        let now = Version::of_list(list.iter().map(|name| &**name));
        match self {
            Interest::Legacy if list.is_empty() => return None,
            Interest::Explicit { listing, .. } if *listing == Some(now) => return None,
            Interest::Legacy | Interest::Explicit { .. } => {}
        }
        let next = Interest::Explicit {
            wildcard: asks_for_all(list),
            names: Names::of(without_wildcard(list), map),
            listing: Some(now),
        };
        Some(std::mem::replace(self, next))
    }

    /// Delta: the first request of a type.
    pub(super) fn begin(
        &mut self,
        subscribe: &[Arc<str>],
        unsubscribe: &[Arc<str>],
        map: &ResourceMap,
    ) {
        if !subscribe.is_empty() {
            *self = Interest::Explicit {
                wildcard: asks_for_all(subscribe),
                names: Names::of(without_wildcard(subscribe), map),
                listing: None,
            };
        }
        self.drop_all(unsubscribe, map);
    }

    /// Delta: a later request of a type. What is both subscribed and unsubscribed ends up
    /// unsubscribed.
    pub(super) fn change(
        &mut self,
        subscribe: &[Arc<str>],
        unsubscribe: &[Arc<str>],
        map: &ResourceMap,
    ) {
        if !subscribe.is_empty() {
            if let Interest::Legacy = self {
                // The legacy wildcard becomes an explicit one: naming a resource does not end it.
                *self = Interest::Explicit { wildcard: true, names: Names::none(), listing: None };
            }
            if let Interest::Explicit { wildcard, names, .. } = self {
                *wildcard |= asks_for_all(subscribe);
                names.extend(without_wildcard(subscribe), map);
            }
        }
        self.drop_all(unsubscribe, map);
    }

    // The protocol does not say what unsubscribing does to the legacy wildcard. As in
    // go-control-plane it does nothing: only subscribing to a name leaves legacy mode.
    fn drop_all(&mut self, unsubscribe: &[Arc<str>], map: &ResourceMap) {
        if let Interest::Explicit { wildcard, names, .. } = self {
            for name in unsubscribe {
                if &**name == WILDCARD {
                    *wildcard = false;
                } else {
                    names.remove(name, map);
                }
            }
            if !unsubscribe.is_empty() {
                names.tidy(map);
            }
        }
    }
}

fn asks_for_all(list: &[Arc<str>]) -> bool {
    list.iter().any(|name| &**name == WILDCARD)
}

// An empty name is nobody's.
fn without_wildcard(list: &[Arc<str>]) -> impl Iterator<Item = &Arc<str>> {
    list.iter().filter(|name| &***name != WILDCARD && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::Resource;

    fn list(names: &str) -> Vec<Arc<str>> {
        names.split_whitespace().map(Arc::from).collect()
    }

    /// The maps that names may be relative to: what an interest means is the same with each.
    fn maps() -> [ResourceMap; 3] {
        ["", "a c", "a b c"].map(|names| {
            names.split_whitespace().map(|name| Resource::new(name, Vec::new())).collect()
        })
    }

    fn shown(interest: &Interest, map: &ResourceMap) -> String {
        let mut words: Vec<&str> = match interest {
            Interest::Legacy => vec!["legacy"],
            Interest::Explicit { wildcard: true, .. } => vec!["*"],
            Interest::Explicit { wildcard: false, .. } => vec![],
        };
        let names: Vec<&str> =
            ["a", "b", "c"].into_iter().filter(|name| interest.names_it(name, map)).collect();
        assert_eq!(interest.names().map_or(0, |names| names.len(map)), names.len());
        words.extend(names);
        words.join(" ")
    }

    /// Each list replaces the one before; what stands after each is compared.
    fn sotw(lists: &[&str], expected: &[&str]) {
        for map in maps() {
            let mut interest = Interest::Legacy;
            let states: Vec<String> = lists
                .iter()
                .map(|l| {
                    interest.replace(&list(l), &map);
                    shown(&interest, &map)
                })
                .collect();
            assert_eq!(states, expected);
        }
    }

    /// Steps as `+a -b`; the first one begins the subscription.
    fn delta(steps: &[&str], expected: &[&str]) {
        for map in maps() {
            delta_with(&map, steps, expected);
        }
    }

    fn delta_with(map: &ResourceMap, steps: &[&str], expected: &[&str]) {
        let mut interest = Interest::Legacy;
        let mut states = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let pick = |sign: char| -> Vec<Arc<str>> {
                step.split_whitespace()
                    .filter_map(|w| w.strip_prefix(sign))
                    .map(Arc::from)
                    .collect()
            };
            if i == 0 {
                interest.begin(&pick('+'), &pick('-'), map);
            } else {
                interest.change(&pick('+'), &pick('-'), map);
            }
            states.push(shown(&interest, map));
        }
        assert_eq!(states, expected);
    }

    #[test]
    fn an_empty_list_means_all_until_a_name_was_listed() {
        sotw(&["", "", ""], &["legacy", "legacy", "legacy"]);
        sotw(&["", "a", ""], &["legacy", "a", ""]);
        sotw(&["a", "", "b", "*"], &["a", "", "b", "*"]);
    }

    #[test]
    fn an_explicit_wildcard_also_ends_legacy_mode() {
        sotw(&["", "*", ""], &["legacy", "*", ""]);
        sotw(&["* a", "*", "a"], &["* a", "*", "a"]);
    }

    #[test]
    fn empty_names_and_repeats_count_for_nothing() {
        for map in maps() {
            let mut interest = Interest::Legacy;
            interest.replace(&[Arc::from(""), Arc::from("a"), Arc::from("a")], &map);
            assert_eq!(shown(&interest, &map), "a");
        }
    }

    #[test]
    fn a_list_that_is_repeated_changes_nothing() {
        let map = &maps()[1];
        let mut interest = Interest::Legacy;
        assert_eq!(interest.replace(&list("a b"), map), Some(Interest::Legacy));
        assert_eq!(interest.replace(&list("a b"), map), None);
        let before = interest.clone();
        assert_eq!(interest.replace(&list("a"), map), Some(before));
    }

    #[test]
    fn in_delta_a_name_joins_the_legacy_wildcard() {
        delta(&["", "+a", "-*", "-a"], &["legacy", "* a", "a", ""]);
    }

    #[test]
    fn in_delta_a_first_list_without_a_wildcard_is_no_wildcard() {
        delta(&["+a", "+*", "-a"], &["a", "* a", "*"]);
    }

    #[test]
    fn subscribing_and_unsubscribing_the_wildcard_at_once_asks_for_nothing_yet() {
        delta(&["+* -*", "+a"], &["", "a"]);
    }

    #[test]
    fn unsubscribing_alone_does_not_leave_legacy_mode() {
        delta(&["", "-*", "-a"], &["legacy", "legacy", "legacy"]);
    }

    #[test]
    fn what_is_subscribed_and_unsubscribed_at_once_is_not_subscribed() {
        delta(&["+b", "+a -a"], &["b", "b"]);
    }
}
