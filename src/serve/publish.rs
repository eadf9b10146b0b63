//! What is published: the generation in force, what is to be said about it, and the counters.
//!
//! The task that owns the workspace writes it; streams and pages read it, at any time and without
//! waiting for anybody.

use super::findings::Findings;
use crate::admin::Metrics;
use crate::diag::Diagnostic;
use crate::generate::Generated;
use crate::model::Snapshot;
use crate::proxy::{NodeDescription, NodeError};
use crate::push::{Changed, SnapshotCache};
use crate::server::{Connection, Generation, Observer, ResourceSource, Resources};
use crate::xds::TypeUrl;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// What is published.
#[derive(Debug, Default)]
pub(super) struct Board {
    current: ArcSwapOption<Current>,
    alive: Arc<Alive>,
    pub(super) findings: Findings,
    pub(super) metrics: Metrics,
}

/// The generation in force.
#[derive(Debug)]
struct Current {
    generation: Arc<Generation>,
    cache: Arc<SnapshotCache>,
}

/// How many generations there are that somebody may be served from.
#[derive(Debug, Default)]
struct Alive {
    generations: AtomicUsize,
    /// Told when one is left.
    alone: Notify,
}

/// Something new to push.
#[derive(Debug)]
pub(super) struct News {
    pub(super) generation: Arc<Generation>,
    /// By how much it differs from the one before.
    pub(super) changed: Changed,
}

impl Board {
    /// Whether anything is published yet.
    pub(super) fn is_empty(&self) -> bool {
        self.current.load().is_none()
    }

    /// The resources in force.
    pub(super) fn cache(&self) -> Option<Arc<SnapshotCache>> {
        self.current.load().as_ref().map(|current| current.cache.clone())
    }

    /// Makes a snapshot the one in force. `None` when it means what the one in force means: then
    /// there is no new generation, and nothing to push. Only the owner of the workspace calls it,
    /// so generations follow each other in the order of their numbers.
    pub(super) fn publish(&self, snapshot: Arc<Snapshot>) -> Option<News> {
        let before = self.current.load_full();
        let (number, changed, cache) = match before.as_deref() {
            None => (1, Changed::Config, SnapshotCache::new(snapshot)),
            Some(Current { generation, cache }) => {
                let changed = difference(cache.snapshot(), &snapshot)?;
                (generation.number() + 1, changed, cache.next(snapshot))
            }
        };
        let cache = Arc::new(cache);
        let served = Served::new(cache.clone(), self.alive.clone());
        let generation = Arc::new(Generation::new(number, served));
        self.current.store(Some(Arc::new(Current { generation: generation.clone(), cache })));
        Some(News { generation, changed })
    }

    /// Says again what is to be said about what a proxy gets, with the places of a snapshot that
    /// means what the one in force means. Nothing to do where nothing is said.
    pub(super) fn find_places(&self, connection: &Connection, moved: &Snapshot) {
        if !self.findings.are_about(connection) {
            return;
        }
        let Some(cache) = self.cache() else { return };
        let Ok(proxy) = connection.node.resolve(moved) else { return };
        let findings = cache.findings_at(moved, &proxy);
        self.findings.generated(connection, &findings);
    }

    /// Waits until nobody is served from an earlier generation any more.
    pub(super) async fn until_only_current(&self) {
        loop {
            self.alive.alone.notified().await;
            // Another one may have been published meanwhile.
            if self.alive.generations.load(Ordering::SeqCst) <= 1 {
                return;
            }
        }
    }

    /// Lets go of what was made for earlier generations only. May take a while.
    pub(super) fn forget_earlier(&self) {
        if let Some(cache) = self.cache() {
            cache.forget_earlier();
        }
    }
}

/// By how much two snapshots differ. A snapshot, or half of one, that means the same as before is
/// the same `Arc`: compiling sees to that.
fn difference(before: &Arc<Snapshot>, now: &Arc<Snapshot>) -> Option<Changed> {
    match Arc::ptr_eq(&before.routing, &now.routing) {
        _ if Arc::ptr_eq(before, now) => None,
        true => Some(Changed::Endpoints),
        false => Some(Changed::Config),
    }
}

/// The resources of one generation.
struct Served {
    cache: Arc<SnapshotCache>,
    alive: Arc<Alive>,
}

impl Served {
    fn new(cache: Arc<SnapshotCache>, alive: Arc<Alive>) -> Served {
        alive.generations.fetch_add(1, Ordering::SeqCst);
        Served { cache, alive }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.alive.generations.fetch_sub(1, Ordering::SeqCst) == 2 {
            self.alive.alone.notify_one();
        }
    }
}

impl Resources for Served {
    fn resources(&self, node: &NodeDescription) -> Result<Arc<Generated>, NodeError> {
        let proxy = node.resolve(self.cache.snapshot())?;
        Ok(self.cache.generate(&proxy))
    }
}

/// The board as the xDS server knows it.
pub(super) struct Handle(pub(super) Arc<Board>);

impl ResourceSource for Handle {
    fn current(&self) -> Option<Arc<Generation>> {
        self.0.current.load().as_ref().map(|current| current.generation.clone())
    }
}

impl Observer for Handle {
    fn sent(&self, type_url: TypeUrl, bytes: usize) {
        self.0.metrics.sent(type_url, bytes);
    }

    fn generated(&self, connection: &Connection, findings: &[Diagnostic]) {
        self.0.findings.generated(connection, findings);
    }

    fn refused(&self, connection: &Connection, type_url: TypeUrl, diagnostic: &Diagnostic) {
        self.0.metrics.refused();
        self.0.findings.refused(connection, type_url, diagnostic);
    }

    fn accepted(&self, connection: &Connection, type_url: TypeUrl) {
        self.0.findings.accepted(connection, type_url);
    }

    fn disconnected(&self, connection: &Connection) {
        self.0.findings.disconnected(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[test]
    fn a_snapshot_that_means_the_same_is_no_news() {
        let board = Board::default();
        let snapshot = Arc::new(Snapshot::default());
        let first = board.publish(snapshot.clone()).expect("the first is news");
        assert_eq!((first.generation.number(), first.changed), (1, Changed::Config));
        assert!(board.publish(snapshot).is_none());
        let other = board.publish(Arc::default()).expect("another one is news");
        assert_eq!((other.generation.number(), other.changed), (2, Changed::Config));
    }

    #[test]
    fn a_snapshot_with_the_same_routing_differs_in_endpoints() {
        let board = Board::default();
        let snapshot = Arc::new(Snapshot::default());
        board.publish(snapshot.clone());
        let endpoints = Snapshot { endpoints: Arc::default(), ..(*snapshot).clone() };
        let news = board.publish(Arc::new(endpoints)).expect("endpoints are news");
        assert_eq!(news.changed, Changed::Endpoints);
    }

    #[tokio::test(start_paused = true)]
    async fn a_generation_is_over_when_nobody_is_served_from_it() {
        const LONG: Duration = Duration::from_secs(1);
        let board = Board::default();
        let first = board.publish(Arc::default());
        assert!(timeout(LONG, board.until_only_current()).await.is_err());
        let second = board.publish(Arc::default());
        assert!(timeout(LONG, board.until_only_current()).await.is_err());
        drop(first);
        assert!(timeout(LONG, board.until_only_current()).await.is_ok());
        drop(second);
        assert!(timeout(LONG, board.until_only_current()).await.is_err(), "it is the one in force");
    }
}
