//! Retry policies.

use crate::generate::plan::route::RetryPolicy;
use crate::xds::pb::route::retry_policy::{RetryHostPredicate, RetryPriority};
use crate::xds::pb::{self, previous_hosts, previous_priorities, route};

/// How often another host is looked for before a failed one is tried again.
const HOST_SELECTION_ATTEMPTS: i64 = 5;

/// A retry policy.
pub(super) fn policy(planned: &RetryPolicy) -> route::RetryPolicy {
    route::RetryPolicy {
        retry_on: planned.conditions.clone(),
        num_retries: Some(pb::u32_value(planned.attempts)),
        per_try_timeout: planned.per_try_timeout.map(pb::duration),
        retry_priority: planned.avoids_previous_priorities.then(other_priorities),
        retry_host_predicate: match planned.avoids_previous_hosts {
            true => vec![other_hosts()],
            false => Vec::new(),
        },
        host_selection_retry_max_attempts: HOST_SELECTION_ATTEMPTS,
        retriable_status_codes: planned.codes.clone(),
        retry_back_off: planned.backoff.map(|interval| route::retry_policy::RetryBackOff {
            base_interval: Some(pb::duration(interval)),
            max_interval: None,
        }),
        ..Default::default()
    }
}

fn other_hosts() -> RetryHostPredicate {
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

    #[test]
    fn everything_that_was_decided_is_written() {
        let made = policy(&RetryPolicy {
            attempts: 3,
            conditions: "5xx".into(),
            codes: vec![503],
            per_try_timeout: Some(Duration::from_secs(2)),
            backoff: Some(Duration::from_millis(10)),
            avoids_previous_hosts: true,
            avoids_previous_priorities: true,
        });
        assert_eq!((made.retry_on.as_str(), made.num_retries), ("5xx", Some(pb::u32_value(3))));
        assert_eq!(made.retriable_status_codes, [503]);
        assert_eq!((made.retry_host_predicate.len(), made.retry_priority.is_some()), (1, true));
        assert_eq!(made.host_selection_retry_max_attempts, 5);
        assert_eq!(made.per_try_timeout.unwrap().seconds, 2);
        assert_eq!(made.retry_back_off.unwrap().base_interval.unwrap().nanos, 10_000_000);
    }
}
