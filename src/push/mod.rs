//! Getting changes to proxies: debounce, the push queue, and the resources of a snapshot.

mod cache;
mod debounce;
mod queue;
mod request;
mod worker;

pub use cache::SnapshotCache;
pub use debounce::{Batch, DebounceOptions, Debouncer, Verdict};
pub use queue::{Job, PushQueue};
pub use request::{Changed, PushRequest, Reason};
pub use worker::{ConnectionId, Offer, Pusher, Registration, default_throttle};
