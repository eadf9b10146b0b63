//! Getting changes to proxies: debounce, the push queue, and the resources of a snapshot.

mod cache;

pub use cache::SnapshotCache;
