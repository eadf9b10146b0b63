//! When to look after something moved: after a short quiet time, but never much later.
//!
//! This keeps half-written files from being read and folds the many events of one save into one
//! look. It is not the debounce: that decides how often proxies are disturbed.

use std::time::{Duration, Instant};

/// The two settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettleOptions {
    /// Quiet time before a look.
    pub quiet: Duration,
    /// Longest time from the first event to the look.
    pub max: Duration,
}

impl Default for SettleOptions {
    fn default() -> SettleOptions {
        SettleOptions { quiet: Duration::from_millis(50), max: Duration::from_secs(1) }
    }
}

/// The rule as a value; times are passed in.
#[derive(Debug)]
pub struct Settle {
    options: SettleOptions,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Settle {
    /// Nothing has moved.
    pub fn new(options: SettleOptions) -> Settle {
        Settle { options, first: None, last: None }
    }

    /// Something moved.
    pub fn note(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// When to look; `None` when nothing moved.
    pub fn deadline(&self) -> Option<Instant> {
        let (first, last) = (self.first?, self.last?);
        Some((last + self.options.quiet).min(first + self.options.max))
    }

    /// Whether it is time. If so, everything noted so far is forgotten.
    pub fn due(&mut self, now: Instant) -> bool {
        let due = self.deadline().is_some_and(|deadline| now >= deadline);
        if due {
            self.first = None;
            self.last = None;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_look_comes_after_the_quiet_time_and_only_once() {
        let start = Instant::now();
        let mut settle = Settle::new(SettleOptions::default());
        assert_eq!(settle.deadline(), None);
        settle.note(start);
        settle.note(start + MS * 30);
        assert!(!settle.due(start + MS * 79));
        assert!(settle.due(start + MS * 80));
        assert!(!settle.due(start + MS * 500));
    }

    #[test]
    fn events_without_end_do_not_hold_a_look_back_for_ever() {
        let start = Instant::now();
        let mut settle = Settle::new(SettleOptions::default());
        for i in 0..99 {
            settle.note(start + MS * (i * 10));
            assert!(!settle.due(start + MS * (i * 10)));
        }
        settle.note(start + MS * 1000);
        assert!(settle.due(start + MS * 1000));
    }
}
