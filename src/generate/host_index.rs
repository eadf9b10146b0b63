//! Finds hosts that overlap with a host without looking at all of them, so that thousands of
//! VirtualServices and services stay cheap to relate.

use crate::model::Hostname;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Hosts with the positions (of services or VirtualServices) that have them. Case is ignored, as
/// Envoy ignores it.
#[derive(Debug, Default)]
pub struct HostIndex {
    exact: HashMap<String, Vec<usize>>,
    /// By what follows the `*`.
    wild: HashMap<String, Vec<usize>>,
    /// How long the texts after `*` are.
    wild_lengths: BTreeSet<usize>,
    /// Every host without its `*`, backwards, so that those with one suffix stand together.
    backwards: BTreeMap<String, Vec<usize>>,
}

impl HostIndex {
    /// Indexes hosts; positions of one host stay in the order given.
    pub fn new<'h>(hosts: impl IntoIterator<Item = (usize, &'h Hostname)>) -> HostIndex {
        let mut index = HostIndex::default();
        for (position, host) in hosts {
            let host = host.to_ascii_lowercase();
            let suffix = match host.strip_prefix('*') {
                Some(suffix) => {
                    index.wild.entry(suffix.to_owned()).or_default().push(position);
                    index.wild_lengths.insert(suffix.len());
                    suffix
                }
                None => {
                    index.exact.entry(host.clone()).or_default().push(position);
                    &host
                }
            };
            index.backwards.entry(suffix.chars().rev().collect()).or_default().push(position);
        }
        index
    }

    /// The positions that have exactly this host (a wildcard is compared as it is written).
    pub fn exact(&self, host: &str) -> &[usize] {
        let host = lower(host);
        let found = match host.strip_prefix('*') {
            Some(suffix) => self.wild.get(suffix),
            None => self.exact.get(&*host),
        };
        found.map_or(&[], Vec::as_slice)
    }

    /// The positions of the longest wildcard that covers this host.
    pub fn longest_wildcard(&self, host: &str) -> &[usize] {
        let host = host.to_ascii_lowercase();
        let text = host.strip_prefix('*').unwrap_or(&host);
        self.covering(text).next().map_or(&[], Vec::as_slice)
    }

    /// Whether some host overlaps with this one at a position for which `test` holds.
    pub fn any_overlapping(&self, host: &Hostname, mut test: impl FnMut(usize) -> bool) -> bool {
        let host = lower(host);
        let mut any = |found: &Vec<usize>| found.iter().any(|&position| test(position));
        match host.strip_prefix('*') {
            Some(suffix) => self.below(suffix).any(&mut any) || self.covering(suffix).any(any),
            None => self.exact.get(&*host).is_some_and(&mut any) || self.covering(&host).any(any),
        }
    }

    /// The positions whose hosts overlap with this one, in order and once each.
    pub fn overlapping(&self, host: &Hostname) -> BTreeSet<usize> {
        let host = host.to_ascii_lowercase();
        let mut found = BTreeSet::new();
        match host.strip_prefix('*') {
            Some(suffix) => {
                found.extend(self.below(suffix).flatten());
                found.extend(self.covering(suffix).flatten());
            }
            None => {
                found.extend(self.exact.get(&host).into_iter().flatten());
                found.extend(self.covering(&host).flatten());
            }
        }
        found
    }

    /// The wildcards that `text` ends with, longest first.
    fn covering<'i, 't>(
        &'i self,
        text: &'t str,
    ) -> impl Iterator<Item = &'i Vec<usize>> + use<'i, 't> {
        let lengths = self.wild_lengths.range(..=text.len()).rev();
        lengths.filter_map(|length| self.wild.get(text.get(text.len() - length..)?))
    }

    /// The hosts that end with `suffix`.
    fn below(&self, suffix: &str) -> impl Iterator<Item = &Vec<usize>> {
        let start: String = suffix.chars().rev().collect();
        self.backwards
            .range(start.clone()..)
            .take_while(move |(host, _)| host.starts_with(&start))
            .map(|(_, positions)| positions)
    }
}

/// A host in lower case; most are already.
fn lower(host: &str) -> Cow<'_, str> {
    match host.bytes().any(|b| b.is_ascii_uppercase()) {
        true => Cow::Owned(host.to_ascii_lowercase()),
        false => Cow::Borrowed(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn host() -> impl Strategy<Value = Hostname> {
        "(\\*|\\*\\.)?[ab](\\.[ab]){0,3}".prop_map(Hostname::from)
    }

    proptest! {
        #[test]
        fn finds_what_a_full_scan_finds(hosts in prop::collection::vec(host(), 0..20), wanted in host()) {
            let index = HostIndex::new(hosts.iter().enumerate());
            let scan: BTreeSet<usize> =
                (0..hosts.len()).filter(|&i| hosts[i].overlaps(&wanted)).collect();
            prop_assert_eq!(index.any_overlapping(&wanted, |_| true), !scan.is_empty());
            let even = |i: usize| i.is_multiple_of(2);
            prop_assert_eq!(index.any_overlapping(&wanted, even), scan.iter().any(|&i| even(i)));
            prop_assert_eq!(index.overlapping(&wanted), scan);
            let longest = (0..hosts.len())
                .filter(|&i| hosts[i].is_wildcard() && wanted.is_subset_of(&hosts[i]))
                .max_by_key(|&i| hosts[i].len())
                .map(|i| hosts[i].clone());
            let found = index.longest_wildcard(&wanted).first().map(|&i| hosts[i].clone());
            prop_assert_eq!(found, longest);
        }
    }

    #[test]
    fn case_does_not_matter() {
        let hosts = [Hostname::from("Foo.com"), Hostname::from("*.FOO.com")];
        let index = HostIndex::new(hosts.iter().enumerate());
        assert_eq!(index.exact("fOO.com"), [0]);
        assert_eq!(index.longest_wildcard("a.foo.COM"), [1]);
    }
}
