//! How many lines may be logged about proxies.

use std::time::{Duration, Instant};

/// Lines in one window.
const LINES: usize = 100;
/// How long a window is.
const WINDOW: Duration = Duration::from_secs(60);

/// The rule as a value; times are passed in.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    /// When the present window began.
    since: Option<Instant>,
    spent: usize,
    /// Whether it was said that there is more than is logged.
    told: bool,
}

/// What may be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spent {
    /// So many lines.
    pub(super) allowed: usize,
    /// To say, once in a window, that there is more.
    pub(super) exhausted: bool,
}

impl Allowance {
    /// Somebody wants to log so many lines.
    pub(super) fn spend(&mut self, lines: usize, now: Instant) -> Spent {
        if self.since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
            *self = Allowance { since: Some(now), ..Allowance::default() };
        }
        let allowed = lines.min(LINES - self.spent);
        self.spent += allowed;
        let exhausted = allowed < lines && !self.told;
        self.told |= exhausted;
        Spent { allowed, exhausted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_lines_and_says_once_that_there_are_more() {
        let start = Instant::now();
        let mut allowance = Allowance::default();
        let spent = |allowed, exhausted| Spent { allowed, exhausted };
        assert_eq!(allowance.spend(60, start), spent(60, false));
        assert_eq!(allowance.spend(60, start), spent(40, true));
        assert_eq!(allowance.spend(60, start + WINDOW / 2), spent(0, false));
        assert_eq!(allowance.spend(LINES + 1, start + WINDOW), spent(LINES, true));
    }
}
