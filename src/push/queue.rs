//! The push queue: at most one outstanding push per connection.
//!
//! A connection waits, is being served, or neither. A request for one that waits is merged with
//! what waits, and the connection keeps its place. Requests for one that is being served are merged
//! aside; when its push has ended, it waits again. [`PushQueue::dequeue`] hands out a [`Job`].
//! Dropping the job is the end of the push, so an end cannot be forgotten. The contract is istiod's (`pilot/pkg/xds/pushqueue.go`).

use super::PushRequest;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A queue of connections `C` with what each is to be pushed. Clones are handles of one queue.
#[derive(Debug)]
pub struct PushQueue<C: Eq + Hash, P> {
    shared: Arc<Shared<C, P>>,
}

#[derive(Debug)]
struct Shared<C: Eq + Hash, P> {
    state: Mutex<State<C, P>>,
    waiting: Notify,
}

#[derive(Debug)]
struct State<C, P> {
    /// Who is pending, in order; each once.
    queue: VecDeque<C>,
    pending: HashMap<C, Pending<P>>,
    /// Who is being served, and what came meanwhile.
    processing: HashMap<C, Option<Pending<P>>>,
    closed: bool,
}

/// A request and when it was first queued.
#[derive(Debug)]
struct Pending<P> {
    request: PushRequest<P>,
    since: Instant,
}

impl<P> Pending<P> {
    /// The older start counts, so that waiting times are true.
    fn merge(self, newer: PushRequest<P>) -> Pending<P> {
        Pending { request: self.request.merge(newer), since: self.since }
    }
}

/// One push to one connection. Dropping it says that the push has ended.
#[derive(Debug)]
pub struct Job<C: Clone + Eq + Hash, P> {
    /// The connection.
    pub connection: C,
    /// What to push.
    pub request: PushRequest<P>,
    /// When the oldest part of the request was queued.
    pub since: Instant,
    shared: Arc<Shared<C, P>>,
}

impl<C: Eq + Hash, P> Clone for PushQueue<C, P> {
    fn clone(&self) -> PushQueue<C, P> {
        PushQueue { shared: self.shared.clone() }
    }
}

impl<C: Clone + Eq + Hash, P> Default for PushQueue<C, P> {
    fn default() -> PushQueue<C, P> {
        PushQueue::new()
    }
}

impl<C: Clone + Eq + Hash, P> PushQueue<C, P> {
    /// An empty queue.
    pub fn new() -> PushQueue<C, P> {
        let state = State {
            queue: VecDeque::new(),
            pending: HashMap::new(),
            processing: HashMap::new(),
            closed: false,
        };
        PushQueue { shared: Arc::new(Shared { state: Mutex::new(state), waiting: Notify::new() }) }
    }

    /// Asks for a push to a connection. After [`PushQueue::close`] nothing is accepted.
    pub fn enqueue(&self, connection: C, request: PushRequest<P>) {
        let mut state = self.shared.lock();
        if state.closed {
            return;
        }
        if let Some(aside) = state.processing.get_mut(&connection) {
            *aside = Some(merge(aside.take(), request));
            return;
        }
        let known = state.pending.remove(&connection);
        if known.is_none() {
            state.queue.push_back(connection.clone());
        }
        state.pending.insert(connection, merge(known, request));
        drop(state);
        self.shared.waiting.notify_one();
    }

    /// Waits until there is a push to hand out, or the queue is closed.
    pub async fn ready(&self) {
        loop {
            // Registered before the look, so that nothing can slip between look and wait.
            let waiting = self.shared.waiting.notified();
            if self.shared.has_news() {
                // It took nothing, so whoever waits besides is to look too.
                self.shared.waiting.notify_one();
                return;
            }
            waiting.await;
        }
    }

    /// The next push, in order of arrival; waits for one. `None` once the queue is closed and
    /// everything that was accepted has been handed out.
    pub async fn dequeue(&self) -> Option<Job<C, P>> {
        loop {
            // Registered before the look, so that nothing can slip between look and wait.
            let waiting = self.shared.waiting.notified();
            match self.try_dequeue() {
                Next::Job(job) => return Some(job),
                Next::Closed => return None,
                Next::Empty => waiting.await,
            }
        }
    }

    fn try_dequeue(&self) -> Next<C, P> {
        let mut state = self.shared.lock();
        let Some(connection) = state.queue.pop_front() else {
            return if state.closed { Next::Closed } else { Next::Empty };
        };
        let pending = state.pending.remove(&connection).expect("whoever is queued is pending");
        state.processing.insert(connection.clone(), None);
        let more = !state.queue.is_empty();
        drop(state);
        if more {
            // A wake-up is stored once only, so whoever takes one passes it on.
            self.shared.waiting.notify_one();
        }
        Next::Job(Job {
            connection,
            request: pending.request,
            since: pending.since,
            shared: self.shared.clone(),
        })
    }

    /// How many connections wait.
    pub fn len(&self) -> usize {
        self.shared.lock().queue.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Accepts nothing any more and wakes everybody; what was accepted is still handed out.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.waiting.notify_waiters();
        self.shared.waiting.notify_one();
    }
}

enum Next<C: Clone + Eq + Hash, P> {
    Job(Job<C, P>),
    Empty,
    Closed,
}

fn merge<P>(known: Option<Pending<P>>, request: PushRequest<P>) -> Pending<P> {
    match known {
        Some(known) => known.merge(request),
        None => Pending { request, since: Instant::now() },
    }
}

impl<C: Eq + Hash, P> Shared<C, P> {
    fn lock(&self) -> MutexGuard<'_, State<C, P>> {
        // Every change of the state is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody who waits should wait no longer.
    fn has_news(&self) -> bool {
        let state = self.lock();
        state.closed || !state.queue.is_empty()
    }
}

impl<C: Clone + Eq + Hash, P> Drop for Job<C, P> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(Some(aside)) = state.processing.remove(&self.connection) {
            state.pending.insert(self.connection.clone(), aside);
            state.queue.push_back(self.connection.clone());
            drop(state);
            self.shared.waiting.notify_one();
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
