//! Outlier detection.

use crate::model::OutlierDetection;
use crate::xds::pb;
use std::time::Duration;

/// Envoy's outlier detection. Success-rate ejection is always off: Istio has no setting for it.
pub(super) fn outlier_detection(settings: &OutlierDetection) -> pb::cluster::OutlierDetection {
    // Zero switches a detector off, anything else switches it on.
    let enforcing = |count: Option<u32>| count.map(|n| pb::u32_value(if n == 0 { 0 } else { 100 }));
    let positive = |time: Option<Duration>| time.filter(|t| !t.is_zero()).map(pb::duration);
    let mut outlier = pb::cluster::OutlierDetection {
        consecutive_5xx: settings.consecutive_5xx_errors.map(pb::u32_value),
        enforcing_consecutive_5xx: enforcing(settings.consecutive_5xx_errors),
        consecutive_gateway_failure: settings.consecutive_gateway_errors.map(pb::u32_value),
        enforcing_consecutive_gateway_failure: enforcing(settings.consecutive_gateway_errors),
        interval: positive(settings.interval),
        base_ejection_time: positive(settings.base_ejection_time),
        max_ejection_percent: Some(settings.max_ejection_percent.min(100))
            .filter(|percent| *percent > 0)
            .map(pb::u32_value),
        enforcing_success_rate: Some(pb::u32_value(0)),
        ..Default::default()
    };
    if settings.split_external_local_origin_errors {
        outlier.split_external_local_origin_errors = true;
        outlier.enforcing_local_origin_success_rate = Some(pb::u32_value(0));
        let local = settings.consecutive_local_origin_failures.filter(|n| *n > 0);
        outlier.consecutive_local_origin_failure = local.map(pb::u32_value);
        outlier.enforcing_consecutive_local_origin_failure = enforcing(local);
    }
    outlier
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_block_switches_success_rate_off_and_nothing_else() {
        let expected = pb::cluster::OutlierDetection {
            enforcing_success_rate: Some(pb::u32_value(0)),
            ..Default::default()
        };
        assert_eq!(outlier_detection(&OutlierDetection::default()), expected);
    }

    #[test]
    fn zero_switches_a_detector_off() {
        let settings = OutlierDetection {
            consecutive_5xx_errors: Some(0),
            consecutive_gateway_errors: Some(3),
            max_ejection_percent: 0,
            interval: Some(Duration::ZERO),
            ..Default::default()
        };
        let outlier = outlier_detection(&settings);
        assert_eq!(outlier.consecutive_5xx, Some(pb::u32_value(0)));
        assert_eq!(outlier.enforcing_consecutive_5xx, Some(pb::u32_value(0)));
        assert_eq!(outlier.enforcing_consecutive_gateway_failure, Some(pb::u32_value(100)));
        assert_eq!((outlier.max_ejection_percent, outlier.interval), (None, None));
    }

    #[test]
    fn local_failures_count_only_when_they_are_split_off() {
        let settings =
            OutlierDetection { consecutive_local_origin_failures: Some(4), ..Default::default() };
        assert_eq!(outlier_detection(&settings).consecutive_local_origin_failure, None);
        let split = OutlierDetection { split_external_local_origin_errors: true, ..settings };
        let outlier = outlier_detection(&split);
        assert_eq!(outlier.consecutive_local_origin_failure, Some(pb::u32_value(4)));
        assert_eq!(outlier.enforcing_consecutive_local_origin_failure, Some(pb::u32_value(100)));
    }
}
