//! One snapshot and the resources made from it, each made once.

use crate::generate::{self, Generated, View};
use crate::model::Snapshot;
use crate::proxy::Proxy;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A snapshot being served. Proxies with equal views share the encoded resources; the first one
/// to ask makes them, others that ask meanwhile wait for it instead of making them again.
#[derive(Debug)]
pub struct SnapshotCache {
    snapshot: Arc<Snapshot>,
    views: Mutex<HashMap<View, Arc<OnceLock<Arc<Generated>>>>>,
}

impl SnapshotCache {
    /// Nothing is made yet.
    pub fn new(snapshot: Arc<Snapshot>) -> SnapshotCache {
        SnapshotCache { snapshot, views: Mutex::new(HashMap::new()) }
    }

    /// The snapshot.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// What this proxy should have.
    pub fn generate(&self, proxy: &Proxy) -> Arc<Generated> {
        let view = View::of(&self.snapshot, proxy);
        let slot = {
            // The map holds only finished slots or ones being filled, so it is good after a panic.
            let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
            views.entry(view.clone()).or_default().clone()
        };
        let shared = slot.get_or_init(|| Arc::new(generate::shared(&self.snapshot, &view)));
        if generate::has_own(&view) {
            Arc::new(generate::with_own(shared, &self.snapshot, &view, proxy))
        } else {
            shared.clone()
        }
    }

    /// How many different views were asked for.
    pub fn views(&self) -> usize {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
