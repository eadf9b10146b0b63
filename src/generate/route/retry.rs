//! Retry policies.

use crate::model::Retry;
use crate::xds::pb::route::retry_policy::{RetryHostPredicate, RetryPriority};
use crate::xds::pb::{self, previous_hosts, previous_priorities, route};

/// Istio's conditions where a rule names none.
const RETRY_ON: &[&str] =
    &["connect-failure", "refused-stream", "unavailable", "cancelled", STATUS_CODES];
const STATUS_CODES: &str = "retriable-status-codes";
const RETRIES: u32 = 2;
/// How often another host is looked for before a failed one is tried again.
const HOST_SELECTION_ATTEMPTS: i64 = 5;

/// What a policy does about hosts that failed when it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviousHosts {
    /// They are avoided.
    Avoid,
    /// They are not: a consistent hash would only find the same host again.
    Allow,
}

/// The policy of a route: the rule's, else the mesh's, else the built-in one. `None` is no retries.
pub fn policy(
    rule: Option<&Retry>,
    mesh: Option<&Retry>,
    previous_hosts: PreviousHosts,
) -> Option<route::RetryPolicy> {
    let Some(retry) = rule.or(mesh) else {
        return Some(built_in(previous_hosts));
    };
    let attempts = u32::try_from(retry.attempts).ok().filter(|&attempts| attempts > 0)?;
    let avoid = match retry.ignore_previous_hosts {
        Some(true) => PreviousHosts::Avoid,
        Some(false) => PreviousHosts::Allow,
        None => previous_hosts,
    };
    let mut policy = built_in(avoid);
    policy.num_retries = Some(pb::u32_value(attempts));
    if let Some(conditions) = &retry.retry_on {
        let (retry_on, codes) = conditions_and_codes(conditions);
        policy.retry_on = retry_on;
        policy.retriable_status_codes = codes;
    }
    policy.per_try_timeout = retry.per_try_timeout.map(pb::duration);
    if let Some(interval) = retry.backoff.filter(|interval| !interval.is_zero()) {
        policy.retry_back_off = Some(route::retry_policy::RetryBackOff {
            base_interval: Some(pb::duration(interval)),
            max_interval: None,
        });
    }
    if retry.retry_remote_localities == Some(true) {
        policy.retry_priority = Some(other_priorities());
    }
    Some(policy)
}

fn built_in(previous_hosts: PreviousHosts) -> route::RetryPolicy {
    route::RetryPolicy {
        retry_on: RETRY_ON.join(","),
        num_retries: Some(pb::u32_value(RETRIES)),
        host_selection_retry_max_attempts: HOST_SELECTION_ATTEMPTS,
        retry_host_predicate: match previous_hosts {
            PreviousHosts::Avoid => vec![avoid_previous_hosts()],
            PreviousHosts::Allow => Vec::new(),
        },
        ..Default::default()
    }
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

fn avoid_previous_hosts() -> RetryHostPredicate {
    use route::retry_policy::retry_host_predicate::ConfigType;
    RetryHostPredicate {
        name: "envoy.retry_host_predicates.previous_hosts".to_owned(),
        config_type: Some(ConfigType::TypedConfig(pb::any(
            &previous_hosts::PreviousHostsPredicate {},
        ))),
    }
}

fn other_priorities() -> RetryPriority {
    use route::retry_policy::retry_priority::ConfigType;
    RetryPriority {
        name: "envoy.retry_priorities.previous_priorities".to_owned(),
        config_type: Some(ConfigType::TypedConfig(pb::any(
            &previous_priorities::PreviousPrioritiesConfig { update_frequency: 2 },
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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

    fn of(rule: &Retry) -> route::RetryPolicy {
        policy(Some(rule), None, PreviousHosts::Avoid).expect("there are attempts")
    }

    #[test]
    fn nothing_said_is_istios_default() {
        let policy = policy(None, None, PreviousHosts::Avoid).unwrap();
        assert_eq!(
            policy.retry_on,
            "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
        );
        assert_eq!(policy.num_retries, Some(pb::u32_value(2)));
        assert_eq!(policy.retry_host_predicate.len(), 1);
        assert_eq!(policy.host_selection_retry_max_attempts, 5);
        assert_eq!(policy.retriable_status_codes, Vec::<u32>::new());
    }

    #[test]
    fn no_attempts_is_no_policy_and_the_rule_beats_the_mesh() {
        assert_eq!(policy(Some(&retry(0)), Some(&retry(5)), PreviousHosts::Avoid), None);
        assert_eq!(policy(None, Some(&retry(-1)), PreviousHosts::Avoid), None);
        let from_mesh = policy(None, Some(&retry(5)), PreviousHosts::Avoid).unwrap();
        assert_eq!(from_mesh.num_retries, Some(pb::u32_value(5)));
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
            assert_eq!(policy.retry_on, words, "{written:?}");
            assert_eq!(policy.retriable_status_codes, codes, "{written:?}");
        }
    }

    #[test]
    fn a_consistent_hash_allows_previous_hosts_unless_told_otherwise() {
        let hashed = |rule: &Retry| policy(Some(rule), None, PreviousHosts::Allow).unwrap();
        assert!(hashed(&retry(1)).retry_host_predicate.is_empty());
        let told = Retry { ignore_previous_hosts: Some(true), ..retry(1) };
        assert_eq!(hashed(&told).retry_host_predicate.len(), 1);
        let not = Retry { ignore_previous_hosts: Some(false), ..retry(1) };
        assert!(of(&not).retry_host_predicate.is_empty());
    }

    #[test]
    fn remote_localities_and_intervals_are_written() {
        let policy = of(&Retry {
            retry_remote_localities: Some(true),
            per_try_timeout: Some(Duration::from_secs(2)),
            backoff: Some(Duration::from_millis(10)),
            ..retry(3)
        });
        assert!(policy.retry_priority.is_some());
        assert_eq!(policy.per_try_timeout.unwrap().seconds, 2);
        assert_eq!(policy.retry_back_off.unwrap().base_interval.unwrap().nanos, 10_000_000);
    }
}
