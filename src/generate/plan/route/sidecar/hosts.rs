//! The virtual hosts of one table while they are collected. Envoy refuses a whole configuration in
//! which two of them claim one domain, so the first that asks gets it.

use crate::generate::Viewer;
use crate::generate::memo::Same;
use crate::generate::plan::route::host::HostInput;
use crate::generate::plan::route::{Parts, VirtualHost};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) struct Hosts<'p> {
    parts: &'p dyn Parts,
    view: &'p Viewer<'p>,
    made: Vec<Arc<VirtualHost>>,
    names: HashSet<Arc<str>>,
    domains: HashSet<Arc<str>>,
}

impl<'p> Hosts<'p> {
    /// None yet.
    pub fn new(parts: &'p dyn Parts, view: &'p Viewer<'p>) -> Hosts<'p> {
        let (names, domains) = (HashSet::new(), HashSet::new());
        Hosts { parts, view, made: Vec::new(), names, domains }
    }

    /// Adds a virtual host, unless there is one of its name. It keeps the domains that are free;
    /// `is_service` tells whether a short name really is a service's.
    pub fn add(&mut self, input: HostInput, is_service: impl Fn(&str) -> bool) {
        let host = self.parts.host(&input, self.view);
        if !self.names.insert(host.name.clone()) {
            return;
        }
        let mut taken = Vec::new();
        for (position, domain) in host.domains.iter().enumerate() {
            let is_other = domain.is_short && is_service(domain.host());
            if is_other || !self.domains.insert(domain.text.clone()) {
                taken.push(position);
            }
        }
        if taken.is_empty() {
            self.made.push(host);
        } else if taken.len() < host.domains.len() {
            self.made.push(self.parts.host(&HostInput { taken, ..input }, self.view));
        }
    }

    /// All of them by name, then the one for every other host.
    pub fn finish(mut self, others: HostInput) -> Vec<Same<VirtualHost>> {
        self.made.sort_by(|a, b| a.name.cmp(&b.name));
        if !self.domains.contains("*") {
            self.made.push(self.parts.host(&others, self.view));
        }
        self.made.into_iter().map(Same).collect()
    }
}
