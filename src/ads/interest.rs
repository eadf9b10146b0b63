//! What one client has asked for, of one type: the wildcard rules of the xDS protocol as a value.
//!
//! A client starts out in *legacy* mode, where an empty list means "all of them". The first name
//! that it ever lists (a `*` counts) ends that for good on this stream: from then on an empty
//! list means "nothing", and only `*` means all (xDS protocol, "How the client specifies what
//! resources to return").

use std::collections::BTreeSet;
use std::sync::Arc;

/// The name that asks for everything.
const WILDCARD: &str = "*";

/// What a client has asked for, of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interest {
    /// No name was ever listed: everything, for the types that know a wildcard.
    Legacy,
    /// At least once a name was listed.
    Explicit {
        /// Whether `*` is among the names.
        wildcard: bool,
        /// The other names.
        names: BTreeSet<Arc<str>>,
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
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        match self {
            Interest::Legacy => None,
            Interest::Explicit { names, .. } => Some(names),
        }
        .into_iter()
        .flatten()
    }

    /// How many names are asked for beside the wildcard.
    pub(super) fn len(&self) -> usize {
        match self {
            Interest::Legacy => 0,
            Interest::Explicit { names, .. } => names.len(),
        }
    }

    /// Whether this name was listed.
    pub(super) fn names_it(&self, name: &str) -> bool {
        match self {
            Interest::Legacy => false,
            Interest::Explicit { names, .. } => names.contains(name),
        }
    }

    /// State of the world: the list of a request replaces what was asked for before.
    pub(super) fn replace(&mut self, list: &[Arc<str>]) {
        if list.is_empty() && matches!(self, Interest::Legacy) {
            return;
        }
        *self = Interest::Explicit { wildcard: asks_for_all(list), names: without_wildcard(list) };
    }

    /// Delta: the first request of a type.
    pub(super) fn begin(&mut self, subscribe: &[Arc<str>], unsubscribe: &[Arc<str>]) {
        if !subscribe.is_empty() {
            *self = Interest::Explicit {
                wildcard: asks_for_all(subscribe),
                names: without_wildcard(subscribe),
            };
        }
        self.drop_all(unsubscribe);
    }

    /// Delta: a later request of a type. What is both subscribed and unsubscribed ends up
    /// unsubscribed.
    pub(super) fn change(&mut self, subscribe: &[Arc<str>], unsubscribe: &[Arc<str>]) {
        if !subscribe.is_empty() {
            if let Interest::Legacy = self {
                // The legacy wildcard becomes an explicit one: naming a resource does not end it.
                *self = Interest::Explicit { wildcard: true, names: BTreeSet::new() };
            }
            if let Interest::Explicit { wildcard, names } = self {
                *wildcard |= asks_for_all(subscribe);
                names.extend(without_wildcard(subscribe));
            }
        }
        self.drop_all(unsubscribe);
    }

    // The protocol does not say what unsubscribing does to the legacy wildcard. As in
    // go-control-plane it does nothing: only subscribing to a name leaves legacy mode.
    fn drop_all(&mut self, unsubscribe: &[Arc<str>]) {
        if let Interest::Explicit { wildcard, names } = self {
            for name in unsubscribe {
                if &**name == WILDCARD {
                    *wildcard = false;
                } else {
                    names.remove(name);
                }
            }
        }
    }
}

fn asks_for_all(list: &[Arc<str>]) -> bool {
    list.iter().any(|name| &**name == WILDCARD)
}

// An empty name is nobody's.
fn without_wildcard(list: &[Arc<str>]) -> BTreeSet<Arc<str>> {
    list.iter().filter(|name| &***name != WILDCARD && !name.is_empty()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &str) -> Vec<Arc<str>> {
        names.split_whitespace().map(Arc::from).collect()
    }

    fn shown(interest: &Interest) -> String {
        let mut words: Vec<&str> = match interest {
            Interest::Legacy => vec!["legacy"],
            Interest::Explicit { wildcard: true, .. } => vec!["*"],
            Interest::Explicit { wildcard: false, .. } => vec![],
        };
        words.extend(interest.names().map(|n| &**n));
        words.join(" ")
    }

    /// Each list replaces the one before; what stands after each is compared.
    fn sotw(lists: &[&str], expected: &[&str]) {
        let mut interest = Interest::Legacy;
        let states: Vec<String> = lists
            .iter()
            .map(|l| {
                interest.replace(&list(l));
                shown(&interest)
            })
            .collect();
        assert_eq!(states, expected);
    }

    /// Steps as `+a -b`; the first one begins the subscription.
    fn delta(steps: &[&str], expected: &[&str]) {
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
                interest.begin(&pick('+'), &pick('-'));
            } else {
                interest.change(&pick('+'), &pick('-'));
            }
            states.push(shown(&interest));
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
        let mut interest = Interest::Legacy;
        interest.replace(&[Arc::from(""), Arc::from("a"), Arc::from("a")]);
        assert_eq!((interest.len(), shown(&interest).as_str()), (1, "a"));
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
