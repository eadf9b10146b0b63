//! The task that ties looking, settling and watching together.

use super::arm::{Armed, Arms};
use super::{Changes, Found, Roots, Scanner, Settle, SettleOptions, mounts};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tokio::task;

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polling {
    /// By events, with a slow poll behind them (a faster one where events cannot be relied on).
    Auto,
    /// By a fast poll alone.
    Only,
}

/// What is watched and how.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// What.
    pub roots: Roots,
    /// How.
    pub polling: Polling,
    /// When to look after an event.
    pub settle: SettleOptions,
    /// Time between looks where events are relied on.
    pub slow_poll: Duration,
    /// Time between looks where they are not.
    pub fast_poll: Duration,
}

impl WatchOptions {
    /// The usual times.
    pub fn new(roots: Roots, polling: Polling) -> WatchOptions {
        WatchOptions {
            roots,
            polling,
            settle: SettleOptions::default(),
            slow_poll: Duration::from_secs(30),
            fast_poll: Duration::from_secs(2),
        }
    }
}

/// Asks for a look now.
#[derive(Debug, Clone)]
pub struct Rescan {
    wake: Arc<Notify>,
}

impl Rescan {
    /// Looks as soon as things have settled.
    pub fn now(&self) {
        self.wake.notify_one();
    }
}

/// Starts watching on the current runtime. The first message is everything that is there, even
/// when that is nothing; further ones are differences. The task ends when the receiver is dropped.
pub fn watch(options: WatchOptions) -> (mpsc::Receiver<Changes>, Rescan) {
    let wake = Arc::new(Notify::new());
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(run(options, wake.clone(), sender));
    (receiver, Rescan { wake })
}

/// What moves between the async task and the thread that looks.
struct Looker {
    scanner: Scanner,
    arms: Arms,
}

/// One finished look.
struct Look {
    found: Found,
    armed: Armed,
}

async fn run(options: WatchOptions, wake: Arc<Notify>, sender: mpsc::Sender<Changes>) {
    let events_reach_us = options.polling == Polling::Auto
        && options.roots.config.iter().all(|root| mounts::sends_events(root));
    let mut looker = Looker {
        scanner: Scanner::new(options.roots.clone()),
        arms: match options.polling {
            Polling::Auto => Arms::new(wake.clone()),
            Polling::Only => Arms::none(),
        },
    };
    let mut settle = Settle::new(options.settle);
    let mut before: Option<Found> = None;
    loop {
        let (returned, look) = match look(looker).await {
            Some(done) => done,
            None => return,
        };
        looker = returned;
        let changes = match &before {
            Some(before) => Changes::between(before, &look.found),
            None => Changes::between(&Found::default(), &look.found),
        };
        let told = before.as_ref().is_some_and(|b| b.problems == look.found.problems);
        if (!changes.is_empty() || !told) && sender.send(changes).await.is_err() {
            return;
        }
        let again = look.found.unsettled || look.armed == Armed::New;
        let poll = match look.armed {
            Armed::Incomplete => options.fast_poll,
            Armed::AsBefore | Armed::New if events_reach_us => options.slow_poll,
            Armed::AsBefore | Armed::New => options.fast_poll,
        };
        before = Some(look.found);
        if again {
            settle.note(Instant::now());
        }
        let next_poll = Instant::now() + poll;
        loop {
            let deadline = settle.deadline().unwrap_or(next_poll).min(next_poll);
            tokio::select! {
                () = wake.notified() => settle.note(Instant::now()),
                () = tokio::time::sleep_until(deadline.into()) => {}
                () = sender.closed() => return,
            }
            let now = Instant::now();
            if settle.due(now) || now >= next_poll {
                break;
            }
        }
    }
}

/// Looks on a thread that may block. `None` when the runtime is shutting down.
async fn look(mut looker: Looker) -> Option<(Looker, Look)> {
    task::spawn_blocking(move || {
        let found = looker.scanner.scan(Instant::now());
        let armed = looker.arms.set(&found.directories);
        (looker, Look { found, armed })
    })
    .await
    .ok()
}
