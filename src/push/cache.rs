//! One snapshot and the resources made from it, each made once.

use crate::diag::Diagnostic;
use crate::generate::{Engine, Generated, Statistics};
use crate::model::Snapshot;
use crate::proxy::Proxy;
use std::sync::Arc;

/// A snapshot being served. What proxies get is put together from parts that they share, also with
/// the snapshots before: see [`Engine`].
#[derive(Debug)]
pub struct SnapshotCache {
    snapshot: Arc<Snapshot>,
    engine: Arc<Engine>,
}

impl SnapshotCache {
    /// Nothing is made yet.
    pub fn new(snapshot: Arc<Snapshot>) -> SnapshotCache {
        SnapshotCache { snapshot, engine: Arc::default() }
    }

    /// The cache of the snapshot that follows this one. What the change did not touch is used
    /// again.
    pub fn next(&self, snapshot: Arc<Snapshot>) -> SnapshotCache {
        // Until everybody has moved on, parts of this one are still asked for.
        self.engine.keep(&[&self.snapshot, &snapshot]);
        SnapshotCache { snapshot, engine: self.engine.clone() }
    }

    /// Lets go of what only earlier snapshots needed. To be called when nobody is served from those
    /// any more; calling it earlier only costs work.
    pub fn forget_earlier(&self) {
        self.engine.keep(&[&self.snapshot]);
    }

    /// What is to be said about what this proxy gets, with the places of a snapshot that means the
    /// same as this one. Only what depends on documents that moved is looked at again.
    pub fn findings_at(&self, moved: &Snapshot, proxy: &Proxy) -> Vec<Diagnostic> {
        self.engine.generate(moved, proxy).diagnostics.clone()
    }

    /// The snapshot.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// What this proxy should have.
    pub fn generate(&self, proxy: &Proxy) -> Arc<Generated> {
        self.engine.generate(&self.snapshot, proxy)
    }

    /// How much was made since the first of the caches, and how much was there already.
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }
}
