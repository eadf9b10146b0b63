//! How often proxies are disturbed: changes wait for quiet, but never longer than a maximum, and
//! there are never two pushes at once.
//!
//! [`Debouncer`] is the rule as a value: it is told what happened and when, and says what to do;
//! the task that owns the documents keeps its timer. The algorithm is istiod's (`pilot/pkg/xds/discovery.go`): the
//! timer starts with the first change of a batch and is not moved by later ones; how long it has
//! been quiet is looked at when it fires.

use super::{Changed, PushRequest};
use std::time::Duration;
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
    use std::collections::VecDeque;

    fn config() -> PushRequest<()> {
        PushRequest::new(Changed::Config, Reason::Config)
    }

    fn endpoints() -> PushRequest<()> {
        PushRequest::new(Changed::Endpoints, Reason::Endpoint)
    }

    const MS: Duration = Duration::from_millis(1);

    /// Plays changes at these milliseconds, with pushes that take `length`. Gives what was pushed and
    /// when: milliseconds since the start, and how many changes went in.
    fn pushes(
        options: DebounceOptions,
        length: Duration,
        schedule: impl IntoIterator<Item = (u32, PushRequest<()>)>,
    ) -> Vec<(u128, usize)> {
        let start = Instant::now();
        let mut rule = Debouncer::new(options, start);
        let mut schedule: VecDeque<_> =
            schedule.into_iter().map(|(at, request)| (start + MS * at, request)).collect();
        let mut end = None;
        let mut log = Vec::new();
        loop {
            let change = schedule.front().map(|(at, _)| *at);
            let Some(now) = [end, change, rule.deadline()].into_iter().flatten().min() else {
                return log;
            };
            let verdict = if end == Some(now) {
                end = None;
                rule.finished(now)
            } else if change == Some(now) {
                let (_, request) = schedule.pop_front().unwrap();
                rule.change(request, now)
            } else {
                rule.timer_fired(now)
            };
            let pushed = match verdict {
                Verdict::Wait => continue,
                Verdict::Push(batch) => {
                    assert_eq!(end, None, "two pushes at once");
                    end = Some(now + length);
                    batch.request
                }
                Verdict::Bypass(request) => request,
            };
            let count = pushed.reasons.values().sum();
            log.push((now.duration_since(start).as_millis(), count));
        }
    }

    fn options() -> DebounceOptions {
        DebounceOptions::default()
    }

    #[test]
    fn one_change_is_pushed_after_the_quiet_time() {
        assert_eq!(pushes(options(), MS, vec![(0, config())]), [(100, 1)]);
    }

    #[test]
    fn changes_close_together_are_one_push_after_quiet() {
        let schedule = vec![(0, config()), (60, config()), (120, config())];
        // The timer fires at 100 and finds 40 ms of quiet, then at 160 and finds 40 again.
        assert_eq!(pushes(options(), MS, schedule), [(220, 3)]);
    }

    #[test]
    fn changes_without_end_are_pushed_at_the_maximum() {
        let schedule = (0..300).map(|i| (i * 50, config()));
        let log = pushes(options(), MS, schedule);
        assert!((10_000..=10_100).contains(&log[0].0), "{log:?}");
        assert_eq!(log.iter().map(|(_, n)| n).sum::<usize>(), 300);
    }

    #[test]
    fn a_change_during_a_push_follows_it_and_never_overlaps() {
        let schedule = vec![(0, config()), (150, config())];
        // Pushed at 100 for 500 ms; the second change is long quiet when that ends.
        assert_eq!(pushes(options(), MS * 500, schedule), [(100, 1), (600, 1)]);
    }

    #[test]
    fn a_change_just_before_a_push_ends_waits_the_rest_of_its_quiet_time() {
        let schedule = vec![(0, config()), (570, config())];
        assert_eq!(pushes(options(), MS * 500, schedule), [(100, 1), (670, 1)]);
    }

    #[test]
    fn the_end_of_a_push_with_nothing_waiting_pushes_nothing() {
        assert_eq!(pushes(options(), MS * 500, vec![(0, config())]).len(), 1);
    }

    #[test]
    fn endpoints_wait_like_everything_else_by_default() {
        let schedule = vec![(0, endpoints()), (10, endpoints())];
        assert_eq!(pushes(options(), MS, schedule), [(110, 2)]);
    }

    #[test]
    fn endpoints_pass_at_once_when_their_debounce_is_off() {
        let options = DebounceOptions { eds: false, ..options() };
        let schedule = vec![(0, endpoints()), (10, config()), (20, endpoints()), (30, endpoints())];
        let log = pushes(options, MS * 200, schedule);
        assert_eq!(log, [(0, 1), (20, 1), (30, 1), (110, 1)]);
    }

    #[test]
    fn zero_quiet_time_pushes_each_batch_at_once() {
        let options = DebounceOptions { after: Duration::ZERO, ..options() };
        let schedule = vec![(0, config()), (5, config())];
        assert_eq!(pushes(options, MS, schedule), [(0, 1), (5, 1)]);
    }
}
