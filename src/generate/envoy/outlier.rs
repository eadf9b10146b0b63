//! Outlier detection.

use crate::generate::plan::cluster::{LocalErrors, Outlier};
use crate::xds::pb::{self, cluster};

/// Envoy's outlier detection. A detector is switched by how often it is enforced.
pub(super) fn outlier_detection(planned: &Outlier) -> cluster::OutlierDetection {
    let enforcing = |count: Option<u32>| count.map(|n| pb::u32_value(if n == 0 { 0 } else { 100 }));
    let mut outlier = cluster::OutlierDetection {
        consecutive_5xx: planned.consecutive_5xx.map(pb::u32_value),
        enforcing_consecutive_5xx: enforcing(planned.consecutive_5xx),
        consecutive_gateway_failure: planned.consecutive_gateway_failures.map(pb::u32_value),
        enforcing_consecutive_gateway_failure: enforcing(planned.consecutive_gateway_failures),
        interval: planned.interval.map(pb::duration),
        base_ejection_time: planned.base_ejection_time.map(pb::duration),
        max_ejection_percent: planned.max_ejection_percent.map(pb::u32_value),
        enforcing_success_rate: Some(pb::u32_value(0)),
        ..Default::default()
    };
    if let LocalErrors::Apart(count) = planned.local {
        outlier.split_external_local_origin_errors = true;
        outlier.enforcing_local_origin_success_rate = Some(pb::u32_value(0));
        outlier.consecutive_local_origin_failure = count.map(pb::u32_value);
        outlier.enforcing_consecutive_local_origin_failure = enforcing(count);
    }
    outlier
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_rates_never_eject() {
        let expected = cluster::OutlierDetection {
            enforcing_success_rate: Some(pb::u32_value(0)),
            ..Default::default()
        };
        assert_eq!(outlier_detection(&Outlier::default()), expected);
    }

    #[test]
    fn a_detector_is_enforced_always_or_never() {
        let planned = Outlier {
            consecutive_5xx: Some(0),
            consecutive_gateway_failures: Some(3),
            local: LocalErrors::Apart(Some(4)),
            ..Default::default()
        };
        let outlier = outlier_detection(&planned);
        assert_eq!(outlier.consecutive_5xx, Some(pb::u32_value(0)));
        assert_eq!(outlier.enforcing_consecutive_5xx, Some(pb::u32_value(0)));
        assert_eq!(outlier.enforcing_consecutive_gateway_failure, Some(pb::u32_value(100)));
        assert_eq!(outlier.consecutive_local_origin_failure, Some(pb::u32_value(4)));
        assert_eq!(outlier.enforcing_consecutive_local_origin_failure, Some(pb::u32_value(100)));
    }
}
