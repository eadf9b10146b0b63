//! When a request is tried again.

use crate::model::Retry;
use std::time::Duration;

/// Istio's conditions where a rule names none.
const RETRY_ON: &str =
    "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes";
const STATUS_CODES: &str = "retriable-status-codes";
const RETRIES: u32 = 2;

/// A retry policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often.
    pub attempts: u32,
    /// Envoy's words for when, separated by commas.
    pub conditions: String,
    /// Status codes after which a request is tried again.
    pub codes: Vec<u32>,
    /// Timeout of each try.
    pub per_try_timeout: Option<Duration>,
    /// Base interval between tries.
    pub backoff: Option<Duration>,
    /// Whether hosts that failed are avoided.
    pub avoids_previous_hosts: bool,
    /// Whether priorities that failed are avoided, so that other localities get a try.
    pub avoids_previous_priorities: bool,
}

/// What a policy does about hosts that failed when it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreviousHosts {
    /// They are avoided.
    Avoid,
    /// They are not: a consistent hash would only find the same host again.
    Allow,
}

/// The policy of a route: the rule's, else the mesh's, else the built-in one. `None` is no retries.
pub(super) fn policy(
    rule: Option<&Retry>,
    mesh: Option<&Retry>,
    previous_hosts: PreviousHosts,
) -> Option<RetryPolicy> {
    let built_in = RetryPolicy {
        attempts: RETRIES,
        conditions: RETRY_ON.to_owned(),
        codes: Vec::new(),
        per_try_timeout: None,
        backoff: None,
        avoids_previous_hosts: previous_hosts == PreviousHosts::Avoid,
        avoids_previous_priorities: false,
    };
    let Some(retry) = rule.or(mesh) else { return Some(built_in) };
    let attempts = u32::try_from(retry.attempts).ok().filter(|&attempts| attempts > 0)?;
    let (conditions, codes) = match &retry.retry_on {
        Some(conditions) => conditions_and_codes(conditions),
        None => (built_in.conditions, built_in.codes),
    };
    Some(RetryPolicy {
        attempts,
        conditions,
        codes,
        per_try_timeout: retry.per_try_timeout,
        backoff: retry.backoff.filter(|interval| !interval.is_zero()),
        avoids_previous_hosts: retry
            .ignore_previous_hosts
            .unwrap_or(built_in.avoids_previous_hosts),
        avoids_previous_priorities: retry.retry_remote_localities == Some(true),
    })
}

/// Splits what Istio writes in one list: words, and status numbers, which Envoy wants apart and
/// only looks at when a word says so.
fn conditions_and_codes(conditions: &[String]) -> (String, Vec<u32>) {
    let mut words = Vec::new();
    let mut codes = Vec::new();
    for condition in conditions.iter().map(|c| c.trim()).filter(|c| !c.is_empty()) {
        match condition.parse::<u32>() {
            Ok(code) if (100..600).contains(&code) => codes.push(code),
            _ => words.push(condition),
        }
    }
    if !codes.is_empty() && !words.contains(&STATUS_CODES) {
        words.push(STATUS_CODES);
    }
    (words.join(","), codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(attempts: i32) -> Retry {
        Retry {
            attempts,
            per_try_timeout: None,
            retry_on: None,
            retry_remote_localities: None,
            ignore_previous_hosts: None,
            backoff: None,
        }
    }

    fn of(rule: &Retry) -> RetryPolicy {
        policy(Some(rule), None, PreviousHosts::Avoid).expect("there are attempts")
    }

    #[test]
    fn nothing_said_is_istios_default() {
        let policy = policy(None, None, PreviousHosts::Avoid).unwrap();
        assert_eq!((policy.attempts, policy.conditions.as_str()), (2, RETRY_ON));
        assert!(policy.avoids_previous_hosts && policy.codes.is_empty());
    }

    #[test]
    fn no_attempts_is_no_policy_and_the_rule_beats_the_mesh() {
        assert_eq!(policy(Some(&retry(0)), Some(&retry(5)), PreviousHosts::Avoid), None);
        assert_eq!(policy(None, Some(&retry(-1)), PreviousHosts::Avoid), None);
        let from_mesh = policy(None, Some(&retry(5)), PreviousHosts::Avoid).unwrap();
        assert_eq!(from_mesh.attempts, 5);
    }

    #[test]
    fn status_numbers_are_set_apart_and_switched_on() {
        for (written, words, codes) in [
            (vec!["503", "connect-failure"], "connect-failure,retriable-status-codes", vec![503]),
            (vec!["503"], "retriable-status-codes", vec![503]),
            (vec![" 5xx ", ""], "5xx", vec![]),
            (vec!["retriable-status-codes", "429"], "retriable-status-codes", vec![429]),
        ] {
            let retry_on = Some(written.iter().map(|&w| w.to_owned()).collect());
            let policy = of(&Retry { retry_on, ..retry(1) });
            assert_eq!(policy.conditions, words, "{written:?}");
            assert_eq!(policy.codes, codes, "{written:?}");
        }
    }

    #[test]
    fn a_consistent_hash_allows_previous_hosts_unless_told_otherwise() {
        let hashed = |rule: &Retry| policy(Some(rule), None, PreviousHosts::Allow).unwrap();
        assert!(!hashed(&retry(1)).avoids_previous_hosts);
        let told = Retry { ignore_previous_hosts: Some(true), ..retry(1) };
        assert!(hashed(&told).avoids_previous_hosts);
        let not = Retry { ignore_previous_hosts: Some(false), ..retry(1) };
        assert!(!of(&not).avoids_previous_hosts);
    }
}
