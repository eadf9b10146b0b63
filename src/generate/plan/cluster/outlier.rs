//! Outlier detection: which failures count, and what they lead to.

use crate::model::OutlierDetection;
use std::time::Duration;

/// When hosts are ejected. A count of zero switches a detector off; `None` leaves it to Envoy.
/// Success rates never eject: Istio has no setting for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outlier {
    /// Consecutive 5xx errors.
    pub consecutive_5xx: Option<u32>,
    /// Consecutive errors of a gateway.
    pub consecutive_gateway_failures: Option<u32>,
    /// Time between sweeps.
    pub interval: Option<Duration>,
    /// First ejection time.
    pub base_ejection_time: Option<Duration>,
    /// Largest share that may be ejected, in percent.
    pub max_ejection_percent: Option<u32>,
    /// Whether local errors are counted apart, and then how many eject.
    pub local: LocalErrors,
}

/// What errors that arise at the proxy itself count as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LocalErrors {
    /// As 5xx.
    #[default]
    AsServerErrors,
    /// On their own: so many in a row eject.
    Apart(Option<u32>),
}

impl Outlier {
    /// What the settings ask for. Envoy takes no zero for a time, and no share above all.
    pub(super) fn of(settings: &OutlierDetection) -> Outlier {
        let positive = |time: Option<Duration>| time.filter(|t| !t.is_zero());
        Outlier {
            consecutive_5xx: settings.consecutive_5xx_errors,
            consecutive_gateway_failures: settings.consecutive_gateway_errors,
            interval: positive(settings.interval),
            base_ejection_time: positive(settings.base_ejection_time),
            max_ejection_percent: Some(settings.max_ejection_percent.min(100)).filter(|p| *p > 0),
            local: match settings.split_external_local_origin_errors {
                false => LocalErrors::AsServerErrors,
                true => LocalErrors::Apart(
                    settings.consecutive_local_origin_failures.filter(|count| *count > 0),
                ),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_block_leaves_everything_to_envoy() {
        assert_eq!(Outlier::of(&OutlierDetection::default()), Outlier::default());
    }

    #[test]
    fn zero_switches_a_detector_off_and_is_no_time_and_no_share() {
        let settings = OutlierDetection {
            consecutive_5xx_errors: Some(0),
            consecutive_gateway_errors: Some(3),
            max_ejection_percent: 0,
            interval: Some(Duration::ZERO),
            ..Default::default()
        };
        let expected = Outlier {
            consecutive_5xx: Some(0),
            consecutive_gateway_failures: Some(3),
            ..Default::default()
        };
        assert_eq!(Outlier::of(&settings), expected);
    }

    #[test]
    fn local_failures_count_only_when_they_are_split_off() {
        let settings =
            OutlierDetection { consecutive_local_origin_failures: Some(4), ..Default::default() };
        assert_eq!(Outlier::of(&settings).local, LocalErrors::AsServerErrors);
        let split = OutlierDetection { split_external_local_origin_errors: true, ..settings };
        assert_eq!(Outlier::of(&split).local, LocalErrors::Apart(Some(4)));
    }
}
