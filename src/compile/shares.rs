//! What each document contributes, lowered once as long as it and the mesh's settings stay.

use super::Entry;
use crate::kinds::{Draft, ServiceEntryDraft, VirtualServiceDraft};
use crate::model::{
    DestinationRule, Gateway, MeshSettings, Origin, Secret, SecretKey, Sidecar, Workload,
};
use std::collections::HashMap;
use std::sync::Arc;

/// One list a thing. Of a document: what it contributes; of all: everything.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub service_entries: Vec<Arc<ServiceEntryDraft>>,
    pub workloads: Vec<Arc<Workload>>,
    pub virtual_services: Vec<Arc<VirtualServiceDraft>>,
    pub destination_rules: Vec<Arc<DestinationRule>>,
    pub gateways: Vec<Arc<Gateway>>,
    pub sidecars: Vec<Arc<Sidecar>>,
    pub secrets: Vec<(SecretKey, Arc<Secret>)>,
}

impl Share {
    fn of(entry: &Entry, mesh: &MeshSettings) -> Share {
        let mut draft = Draft::default();
        entry.value.lower(mesh, &mut draft);
        // Taken apart by name, so that a new list cannot be forgotten.
        let Draft {
            service_entries,
            workloads,
            virtual_services,
            destination_rules,
            gateways,
            sidecars,
            secrets,
        } = draft;
        fn shared<T>(list: Vec<T>) -> Vec<Arc<T>> {
            list.into_iter().map(Arc::new).collect()
        }
        Share {
            service_entries: shared(service_entries),
            workloads: shared(workloads),
            virtual_services: shared(virtual_services),
            destination_rules: shared(destination_rules),
            gateways: shared(gateways),
            sidecars: shared(sidecars),
            secrets: secrets.into_iter().map(|(key, secret)| (key, Arc::new(secret))).collect(),
        }
    }

    fn add(&mut self, other: &Share) {
        let Share {
            service_entries,
            workloads,
            virtual_services,
            destination_rules,
            gateways,
            sidecars,
            secrets,
        } = other;
        self.service_entries.extend_from_slice(service_entries);
        self.workloads.extend_from_slice(workloads);
        self.virtual_services.extend_from_slice(virtual_services);
        self.destination_rules.extend_from_slice(destination_rules);
        self.gateways.extend_from_slice(gateways);
        self.sidecars.extend_from_slice(sidecars);
        self.secrets.extend_from_slice(secrets);
    }
}

/// The shares of the documents that were in force last.
#[derive(Debug, Default)]
pub(super) struct Shares {
    mesh: Option<Arc<MeshSettings>>,
    /// By the address of the entry, which the value holds, so that no other can have it.
    known: HashMap<usize, (Arc<Entry>, Arc<Share>)>,
}

impl Shares {
    /// Everything that these documents contribute.
    pub fn collect<'a>(
        &mut self,
        entries: impl Iterator<Item = &'a Arc<Entry>>,
        mesh: &Arc<MeshSettings>,
    ) -> Share {
        if !self.mesh.as_ref().is_some_and(|known| Arc::ptr_eq(known, mesh)) {
            self.known.clear();
            self.mesh = Some(mesh.clone());
        }
        let mut before = std::mem::take(&mut self.known);
        let mut all = Share::default();
        for entry in entries {
            let address = Arc::as_ptr(entry).addr();
            let share = match before.remove(&address) {
                Some((_, share)) => share,
                None => Arc::new(Share::of(entry, mesh)),
            };
            all.add(&share);
            self.known.insert(address, (entry.clone(), share));
        }
        all
    }
}

/// A list in order of precedence, kept in order from one snapshot to the next.
#[derive(Debug)]
pub(super) struct Sorted<T> {
    given: Vec<Arc<T>>,
    sorted: Arc<[Arc<T>]>,
}

impl<T> Default for Sorted<T> {
    fn default() -> Sorted<T> {
        Sorted { given: Vec::new(), sorted: Arc::default() }
    }
}

impl<T> Sorted<T> {
    /// The list in order; the same `Arc` as the last time when the same things are given.
    pub fn update(&mut self, given: Vec<Arc<T>>, origin: impl Fn(&T) -> &Origin) -> Arc<[Arc<T>]> {
        if !same_list(&self.given, &given) {
            let mut sorted = given.clone();
            sorted.sort_by(|a, b| Origin::precedence(origin(a), origin(b)));
            self.sorted = sorted.into();
            self.given = given;
        }
        self.sorted.clone()
    }
}

/// Whether both hold the same things, not only equal ones.
pub(super) fn same_list<T>(a: &[Arc<T>], b: &[Arc<T>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}
