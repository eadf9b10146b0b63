//! The `hosts` of an egress listener: which services and VirtualServices they let in.

use crate::model::{EgressNamespace, HostImport, Hostname, Namespace};
use std::collections::{HashMap, HashSet};

/// The `hosts` of an egress listener, by namespace, for quick tests.
pub(super) struct Imports<'h> {
    takes: HostsByNamespace<'h>,
    leaves_out: HostsByNamespace<'h>,
}

#[derive(Default)]
struct HostsByNamespace<'h> {
    any: HostSet<'h>,
    named: HashMap<Namespace, HostSet<'h>>,
}

#[derive(Default)]
struct HostSet<'h> {
    exact: HashSet<&'h Hostname>,
    wildcards: Vec<&'h Hostname>,
}

impl<'h> HostSet<'h> {
    fn add(&mut self, host: &'h Hostname) {
        if host.is_wildcard() {
            self.wildcards.push(host);
        } else {
            self.exact.insert(host);
        }
    }

    fn contains_all_of(&self, host: &Hostname) -> bool {
        self.exact.contains(host) || self.wildcards.iter().any(|w| host.is_subset_of(w))
    }

    fn overlaps(&self, host: &Hostname) -> bool {
        if self.exact.contains(host) || self.wildcards.iter().any(|w| host.overlaps(w)) {
            return true;
        }
        host.is_wildcard() && self.exact.iter().any(|e| host.overlaps(e))
    }
}

impl<'h> HostsByNamespace<'h> {
    fn any_of(&self, namespace: &Namespace, test: impl Fn(&HostSet<'h>) -> bool) -> bool {
        test(&self.any) || self.named.get(namespace).is_some_and(test)
    }
}

impl<'h> Imports<'h> {
    pub(super) fn new(hosts: &'h [HostImport], own: &Namespace) -> Imports<'h> {
        let mut imports =
            Imports { takes: HostsByNamespace::default(), leaves_out: HostsByNamespace::default() };
        for entry in hosts {
            let list = if entry.exclude { &mut imports.leaves_out } else { &mut imports.takes };
            match &entry.namespace {
                EgressNamespace::Any => list.any.add(&entry.host),
                EgressNamespace::Own => list.named.entry(own.clone()).or_default().add(&entry.host),
                EgressNamespace::Named(name) => {
                    list.named.entry(name.clone()).or_default().add(&entry.host);
                }
            }
        }
        imports
    }

    fn excluded(&self, namespace: &Namespace, host: &Hostname) -> bool {
        self.leaves_out.any_of(namespace, |set| set.contains_all_of(host))
    }

    pub(super) fn covers_service(&self, namespace: &Namespace, host: &Hostname) -> bool {
        self.takes.any_of(namespace, |set| set.contains_all_of(host))
            && !self.excluded(namespace, host)
    }

    /// A VirtualService is imported with all its hosts when one of them is.
    pub(super) fn covers_rule(&self, namespace: &Namespace, hosts: &[Hostname]) -> bool {
        hosts.iter().any(|host| {
            self.takes.any_of(namespace, |set| set.overlaps(host))
                && !self.excluded(namespace, host)
        })
    }
}
