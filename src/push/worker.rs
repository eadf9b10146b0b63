//! Hands pushes to connections, a bounded number at a time.

use super::{Job, PushQueue, PushRequest};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// One connection of this process. A proxy that reconnects gets a new id, so that the end of its
/// old connection cannot touch the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many connections are worked on at once unless told otherwise (`PILOT_PUSH_THROTTLE`):
/// istiod's formula.
pub fn default_throttle(cores: usize) -> usize {
    (15 + 5 * cores).min(100)
}

/// A push for one connection. Whoever receives it keeps `slot` while it computes, and `job` until
/// the responses are handed to the transport; dropping it unread is fine.
#[derive(Debug)]
pub struct Offer<P> {
    /// What to push. While it lives, the connection gets no other push.
    pub job: Job<ConnectionId, P>,
    /// One of the bounded number of places to work in.
    pub slot: OwnedSemaphorePermit,
}

/// The registered connections and the queue of pushes to them.
#[derive(Debug)]
pub struct Pusher<P> {
    queue: PushQueue<ConnectionId, P>,
    slots: Arc<Semaphore>,
    mailboxes: Mutex<BTreeMap<ConnectionId, mpsc::Sender<Offer<P>>>>,
    next: AtomicU64,
}

/// While it lives, its connection is pushed to.
#[derive(Debug)]
pub struct Registration<P> {
    id: ConnectionId,
    pusher: Arc<Pusher<P>>,
}

impl<P> Pusher<P> {
    /// Nobody is connected yet. At most `throttle` connections are worked on at once.
    pub fn new(throttle: usize) -> Arc<Pusher<P>> {
        Arc::new(Pusher {
            queue: PushQueue::new(),
            slots: Arc::new(Semaphore::new(throttle.clamp(1, Semaphore::MAX_PERMITS))),
            mailboxes: Mutex::default(),
            next: AtomicU64::new(1),
        })
    }

    /// Adds a connection. From now on it gets every push. So when it looks at the current state
    /// after this, that state is the newest, or a push with a newer one follows.
    pub fn register(self: &Arc<Self>) -> (Registration<P>, mpsc::Receiver<Offer<P>>) {
        let id = ConnectionId(self.next.fetch_add(1, Ordering::Relaxed));
        // The queue hands out one push per connection at a time, so one place is enough.
        let (sender, offers) = mpsc::channel(1);
        self.mailboxes().insert(id, sender);
        (Registration { id, pusher: self.clone() }, offers)
    }

    /// A place to work in, for work that is no push: the first computation of a connection. It waits
    /// its turn with the pushes. Whoever waits for one must not be registered yet: an offer in its
    /// mailbox would hold a place that it cannot give back while it waits.
    pub async fn slot(&self) -> OwnedSemaphorePermit {
        self.slots.clone().acquire_owned().await.expect("nobody closes the places")
    }

    /// Queues a push to every connection.
    pub fn push(&self, request: &PushRequest<P>) {
        let connections: Vec<ConnectionId> = self.mailboxes().keys().copied().collect();
        for connection in connections {
            self.push_to(connection, request.clone());
        }
    }

    /// Queues a push to one connection.
    pub fn push_to(&self, connection: ConnectionId, request: PushRequest<P>) {
        self.queue.enqueue(connection, request);
    }

    /// Hands out pushes until [`Pusher::close`] is called.
    pub async fn run(&self) {
        loop {
            // No slot lies idle while there is nothing to push: it may be the only one.
            self.queue.ready().await;
            // First the slot, then the push: what waits for a slot still merges.
            let slot = self.slot().await;
            let Some(job) = self.queue.dequeue().await else { return };
            let mailbox = self.mailboxes().get(&job.connection).cloned();
            if let Some(mailbox) = mailbox {
                // It has a place, because an earlier offer was taken out before its job ended;
                // it fails only if the connection just ended.
                let _ = mailbox.try_send(Offer { job, slot });
            }
        }
    }

    /// Accepts no pushes any more and lets [`Pusher::run`] end.
    pub fn close(&self) {
        self.queue.close();
    }

    /// How many connections are registered.
    pub fn connections(&self) -> usize {
        self.mailboxes().len()
    }

    /// How many pushes wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    fn mailboxes(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, mpsc::Sender<Offer<P>>>> {
        // Nothing can panic between two halves of a change.
        self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> Registration<P> {
    /// The connection.
    pub fn id(&self) -> ConnectionId {
        self.id
    }
}

impl<P> Drop for Registration<P> {
    fn drop(&mut self) {
        self.pusher.mailboxes().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Changed, Reason};
    use super::*;
    use std::time::Duration;
    use tokio::time::{sleep, timeout};

    const LONG: Duration = Duration::from_secs(1);

    fn push(n: u32) -> PushRequest<u32> {
        let payload = Some(Arc::new(n));
        PushRequest { payload, ..PushRequest::new(Changed::Config, Reason::Config) }
    }

    fn running(throttle: usize) -> Arc<Pusher<u32>> {
        let pusher = Pusher::new(throttle);
        tokio::spawn({
            let pusher = pusher.clone();
            async move { pusher.run().await }
        });
        pusher
    }

    fn payload(offer: Option<Offer<u32>>) -> u32 {
        *offer.expect("offered").job.request.payload.clone().expect("has one")
    }

    #[test]
    fn the_default_throttle_grows_with_the_cores_up_to_a_hundred() {
        let table = [(1, 20), (2, 25), (4, 35), (17, 100), (64, 100)];
        for (cores, throttle) in table {
            assert_eq!(default_throttle(cores), throttle);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_push_reaches_each_connection_once() {
        let pusher = running(2);
        let mut connections: Vec<_> = (0..5).map(|_| pusher.register()).collect();
        pusher.push(&push(7));
        for (_, offers) in &mut connections {
            assert_eq!(payload(offers.recv().await), 7);
        }
        for (_, offers) in &mut connections {
            assert!(timeout(LONG, offers.recv()).await.is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_pushes_reach_every_connection_the_last_one_included() {
        let pusher = running(2);
        let readers: Vec<_> = (0..5)
            .map(|_| {
                let (registration, mut offers) = pusher.register();
                tokio::spawn(async move {
                    let mut seen = Vec::new();
                    while seen.last() != Some(&99) {
                        let offer = offers.recv().await.expect("offered");
                        sleep(Duration::from_millis(3)).await;
                        seen.push(payload(Some(offer)));
                    }
                    drop(registration);
                    seen
                })
            })
            .collect();
        for n in 0..100 {
            pusher.push(&push(n));
            sleep(Duration::from_millis(1)).await;
        }
        for reader in readers {
            let seen = reader.await.expect("did not panic");
            assert!(seen.is_sorted() && seen.len() < 100, "{seen:?}");
        }
        assert_eq!((pusher.connections(), pusher.waiting()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_connections_than_slots_are_worked_on() {
        let pusher = running(1);
        let (_a, mut first) = pusher.register();
        let (_b, mut second) = pusher.register();
        pusher.push(&push(1));
        let Offer { job, slot } = first.recv().await.expect("offered");
        assert!(timeout(LONG, second.recv()).await.is_err());
        // The slot alone is enough: a proxy that does not read holds up nobody.
        drop(slot);
        assert_eq!(payload(second.recv().await), 1);
        drop(job);
    }

    #[tokio::test(start_paused = true)]
    async fn who_connects_and_who_is_pushed_to_share_the_slots() {
        let pusher = running(1);
        let (_a, mut offers) = pusher.register();
        let slot = pusher.slot().await;
        pusher.push(&push(1));
        assert!(timeout(LONG, offers.recv()).await.is_err());
        drop(slot);
        let Offer { job, slot } = offers.recv().await.expect("offered");
        assert!(timeout(LONG, pusher.slot()).await.is_err());
        drop((job, slot));
        assert!(timeout(LONG, pusher.slot()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_ends_unread_gives_its_slot_back() {
        let pusher = running(1);
        let (gone, offers) = pusher.register();
        pusher.push(&push(1));
        while offers.is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        let (_b, mut next) = pusher.register();
        pusher.push(&push(2));
        assert!(timeout(LONG, next.recv()).await.is_err());
        drop((gone, offers));
        assert_eq!(payload(next.recv().await), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_push_during_a_push_follows_it() {
        let pusher = running(2);
        let (registration, mut offers) = pusher.register();
        pusher.push(&push(1));
        let first = offers.recv().await;
        pusher.push_to(registration.id(), push(2));
        assert!(timeout(LONG, offers.recv()).await.is_err());
        drop(first);
        assert_eq!(payload(offers.recv().await), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_the_work() {
        let pusher = Pusher::<u32>::new(1);
        pusher.close();
        assert!(timeout(LONG, pusher.run()).await.is_ok());
    }
}
