//! How often proxies are disturbed: changes wait for quiet, but never longer than a maximum, and
//! there are never two pushes at once.
//!
//! [`Debouncer`] is the rule as a value: it is told what happened and when, and says what to do.
//! [`run`] is the task around it. The algorithm is istiod's (`pilot/pkg/xds/discovery.go`): the
//! timer starts with the first change of a batch and is not moved by later ones; how long it has
//! been quiet is looked at when it fires.

use super::{Changed, PushRequest};
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The three settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebounceOptions {
    /// Quiet time (`PILOT_DEBOUNCE_AFTER`).
    pub after: Duration,
    /// Longest time that a change is held back (`PILOT_DEBOUNCE_MAX`).
    pub max: Duration,
    /// Whether changes of endpoints alone wait too (`PILOT_ENABLE_EDS_DEBOUNCE`).
    pub eds: bool,
}

impl Default for DebounceOptions {
    fn default() -> DebounceOptions {
        DebounceOptions {
            after: Duration::from_millis(100),
            max: Duration::from_secs(10),
            eds: true,
        }
    }
}

/// What to do now.
#[derive(Debug)]
pub enum Verdict<P> {
    /// Nothing.
    Wait,
    /// Push this, and report its end with [`Debouncer::finished`].
    Push(Batch<P>),
    /// Push this at once, beside whatever is going on; its end is not reported.
    Bypass(PushRequest<P>),
}

/// Changes that are pushed together.
#[derive(Debug)]
pub struct Batch<P> {
    /// Everything merged.
    pub request: PushRequest<P>,
    /// How many changes went in.
    pub changes: usize,
    /// When the first of them came.
    pub started: Instant,
}

/// The rule. Times are passed in and never go back.
#[derive(Debug)]
pub struct Debouncer<P> {
    options: DebounceOptions,
    batch: Option<Batch<P>>,
    last_change: Instant,
    timer: Option<Instant>,
    pushing: bool,
}

impl<P> Debouncer<P> {
    /// Nothing has happened yet.
    pub fn new(options: DebounceOptions, now: Instant) -> Debouncer<P> {
        Debouncer { options, batch: None, last_change: now, timer: None, pushing: false }
    }

    /// A change came.
    pub fn change(&mut self, request: PushRequest<P>, now: Instant) -> Verdict<P> {
        if !self.options.eds && request.only_endpoints() {
            return Verdict::Bypass(request);
        }
        self.last_change = now;
        self.batch = Some(match self.batch.take() {
            None => {
                self.timer = Some(now + self.options.after);
                Batch { request, changes: 1, started: now }
            }
            Some(batch) => Batch {
                request: batch.request.merge(request),
                changes: batch.changes + 1,
                started: batch.started,
            },
        });
        Verdict::Wait
    }

    /// When [`Debouncer::timer_fired`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.timer
    }

    /// The deadline passed. While a push is going on nothing happens: its end looks again.
    pub fn timer_fired(&mut self, now: Instant) -> Verdict<P> {
        self.timer = None;
        if self.pushing { Verdict::Wait } else { self.look(now) }
    }

    /// The push that was asked for has ended.
    pub fn finished(&mut self, now: Instant) -> Verdict<P> {
        self.pushing = false;
        self.look(now)
    }

    fn look(&mut self, now: Instant) -> Verdict<P> {
        let Some(batch) = self.batch.take() else { return Verdict::Wait };
        let quiet = now.duration_since(self.last_change);
        if now.duration_since(batch.started) >= self.options.max || quiet >= self.options.after {
            self.pushing = true;
            self.timer = None;
            return Verdict::Push(batch);
        }
        self.timer = Some(now + (self.options.after - quiet));
        self.batch = Some(batch);
        Verdict::Wait
    }
}

/// Runs until the channel closes: feeds the rule, keeps the timer, and calls `push` with each
/// batch. What waits when the channel closes is dropped; pushes that are going on end first.
pub async fn run<P, F, Fut>(
    mut changes: mpsc::Receiver<PushRequest<P>>,
    options: DebounceOptions,
    push: F,
) where
    P: Send + Sync + 'static,
    F: Fn(PushRequest<P>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let mut rule = Debouncer::new(options, Instant::now());
    let mut main: JoinSet<()> = JoinSet::new();
    let mut bypass: JoinSet<()> = JoinSet::new();
    loop {
        let deadline = rule.deadline();
        let verdict = tokio::select! {
            change = changes.recv() => match change {
                Some(request) => rule.change(request, Instant::now()),
                None => break,
            },
            () = sleep_until(deadline) => rule.timer_fired(Instant::now()),
            Some(_) = main.join_next() => rule.finished(Instant::now()),
            Some(_) = bypass.join_next() => Verdict::Wait,
        };
        match verdict {
            Verdict::Wait => {}
            Verdict::Push(batch) => {
                main.spawn(push(batch.request));
            }
            Verdict::Bypass(request) => {
                bypass.spawn(push(request));
            }
        }
    }
    while main.join_next().await.is_some() {}
    while bypass.join_next().await.is_some() {}
}

/// Sleeps until the deadline; for ever when there is none.
async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

impl<P> Batch<P> {
    /// Whether the batch changes more than endpoints.
    pub fn is_full(&self) -> bool {
        self.request.changed.contains(&Changed::Config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::Reason;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    fn config() -> PushRequest<()> {
        PushRequest::new(Changed::Config, Reason::Config)
    }

    fn endpoints() -> PushRequest<()> {
        PushRequest::new(Changed::Endpoints, Reason::Endpoint)
    }

    const MS: Duration = Duration::from_millis(1);

    /// What was pushed and when, in milliseconds since the start.
    type Log = Arc<Mutex<Vec<(u64, usize)>>>;

    /// Sends changes at these milliseconds; pushes take `length`. Time is tokio's paused time.
    async fn pushes(
        options: DebounceOptions,
        length: Duration,
        schedule: Vec<(u64, PushRequest<()>)>,
    ) -> Vec<(u64, usize)> {
        let log: Log = Log::default();
        let full_at_once = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        let (sender, receiver) = mpsc::channel(1000);
        let pusher = {
            let log = log.clone();
            move |request: PushRequest<()>| {
                let (log, full_at_once) = (log.clone(), full_at_once.clone());
                async move {
                    let full = !request.only_endpoints();
                    if full {
                        let before = full_at_once.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(before, 0, "two full pushes at once");
                    }
                    let at = u64::try_from(start.elapsed().as_millis()).unwrap();
                    let count = request.reasons.values().sum();
                    log.lock().unwrap().push((at, count));
                    tokio::time::sleep(length).await;
                    if full {
                        full_at_once.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            }
        };
        let task = tokio::spawn(run(receiver, options, pusher));
        for (at, request) in schedule {
            tokio::time::sleep_until(start + MS * u32::try_from(at).unwrap()).await;
            sender.send(request).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(sender);
        task.await.unwrap();
        let log = log.lock().unwrap();
        log.clone()
    }

    fn options() -> DebounceOptions {
        DebounceOptions::default()
    }

    #[tokio::test(start_paused = true)]
    async fn one_change_is_pushed_after_the_quiet_time() {
        assert_eq!(pushes(options(), MS, vec![(0, config())]).await, [(100, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_close_together_are_one_push_after_quiet() {
        let schedule = vec![(0, config()), (60, config()), (120, config())];
        // The timer fires at 100 and finds 40 ms of quiet, then at 160 and finds 40 again.
        assert_eq!(pushes(options(), MS, schedule).await, [(220, 3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_without_end_are_pushed_at_the_maximum() {
        let schedule = (0..300).map(|i| (i * 50, config())).collect();
        let log = pushes(options(), MS, schedule).await;
        assert!((10_000..=10_100).contains(&log[0].0), "{log:?}");
        assert_eq!(log.iter().map(|(_, n)| n).sum::<usize>(), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_during_a_push_follows_it_and_never_overlaps() {
        let schedule = vec![(0, config()), (150, config())];
        // Pushed at 100 for 500 ms; the second change is long quiet when that ends.
        assert_eq!(pushes(options(), MS * 500, schedule).await, [(100, 1), (600, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_just_before_a_push_ends_waits_the_rest_of_its_quiet_time() {
        let schedule = vec![(0, config()), (570, config())];
        assert_eq!(pushes(options(), MS * 500, schedule).await, [(100, 1), (670, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_push_with_nothing_waiting_pushes_nothing() {
        assert_eq!(pushes(options(), MS * 500, vec![(0, config())]).await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn endpoints_wait_like_everything_else_by_default() {
        let schedule = vec![(0, endpoints()), (10, endpoints())];
        assert_eq!(pushes(options(), MS, schedule).await, [(110, 2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn endpoints_pass_at_once_when_their_debounce_is_off() {
        let options = DebounceOptions { eds: false, ..options() };
        let schedule = vec![(0, endpoints()), (10, config()), (20, endpoints()), (30, endpoints())];
        let log = pushes(options, MS * 200, schedule).await;
        assert_eq!(log, [(0, 1), (20, 1), (30, 1), (110, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn zero_quiet_time_pushes_each_batch_at_once() {
        let options = DebounceOptions { after: Duration::ZERO, ..options() };
        let schedule = vec![(0, config()), (5, config())];
        assert_eq!(pushes(options, MS, schedule).await, [(0, 1), (5, 1)]);
    }
}
