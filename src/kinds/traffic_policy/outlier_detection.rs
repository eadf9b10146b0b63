//! `outlierDetection`: taking endpoints that fail out of load balancing.

use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::kinds::{rules, values};
use crate::model;
use schemars::JsonSchema;
use serde::Deserialize;

/// Takes endpoints that fail out of load balancing for a while.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutlierDetection {
    /// Deprecated and without effect; use `consecutive5xxErrors`.
    #[serde(default)]
    pub consecutive_errors: u32,
    /// Counts errors of our own making (timeouts, resets) apart from those of the server.
    #[serde(default)]
    pub split_external_local_origin_errors: bool,
    /// Errors of our own making in a row until ejection.
    pub consecutive_local_origin_failures: Option<u32>,
    /// Answers 502, 503 or 504 in a row until ejection; 0 switches this off.
    pub consecutive_gateway_errors: Option<u32>,
    /// Answers 5xx in a row until ejection; unset is 5, 0 switches this off.
    pub consecutive_5xx_errors: Option<u32>,
    /// Time between looks; unset is 10s.
    pub interval: Option<values::Duration>,
    /// How long the first ejection lasts; unset is 30s.
    pub base_ejection_time: Option<values::Duration>,
    /// Largest share of endpoints that may be out, in percent; unset is 10.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub max_ejection_percent: u32,
    /// Share of healthy endpoints below which health is ignored, in percent.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub min_health_percent: u32,
    /// HTTP status codes that count as errors instead of 5xx.
    #[serde(default)]
    pub outlier_detection_http_error_codes: Vec<u16>,
}

impl OutlierDetection {
    /// Istio's rules.
    pub fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        for (name, duration) in
            [("interval", self.interval), ("baseEjectionTime", self.base_ejection_time)]
        {
            if let Some(duration) = duration {
                rules::duration(f, &at.key(name), duration);
            }
        }
        if self.consecutive_errors > 0 {
            let message = "the field is deprecated and has no effect";
            let diagnostic = Diagnostic::new(Code::Deprecated, message)
                .help("use `consecutive5xxErrors` or `consecutiveGatewayErrors`");
            f.report(&at.key("consecutiveErrors"), diagnostic);
        }
        let local = self.consecutive_local_origin_failures.unwrap_or_default();
        if local > 0 && !self.split_external_local_origin_errors {
            let message =
                "local failures are only counted with `splitExternalLocalOriginErrors: true`";
            f.error(&at.key("consecutiveLocalOriginFailures"), Code::ConflictingFields, message);
        }
        for (name, percent) in [
            ("maxEjectionPercent", self.max_ejection_percent),
            ("minHealthPercent", self.min_health_percent),
        ] {
            if percent > 100 {
                let message = format!("a percentage is from 0 to 100, not {percent}");
                f.error(&at.key(name), Code::InvalidValue, message);
            }
        }
        let codes = at.key("outlierDetectionHttpErrorCodes");
        for (index, code) in self.outlier_detection_http_error_codes.iter().enumerate() {
            if !(100..600).contains(code) {
                let message = format!("an HTTP status code is from 100 to 599, not {code}");
                f.error(&codes.index(index), Code::InvalidValue, message);
            }
        }
    }

    /// What it means.
    pub fn lower(&self) -> model::OutlierDetection {
        model::OutlierDetection {
            consecutive_5xx_errors: self.consecutive_5xx_errors,
            consecutive_gateway_errors: self.consecutive_gateway_errors,
            interval: self.interval.map(Into::into),
            base_ejection_time: self.base_ejection_time.map(Into::into),
            max_ejection_percent: self.max_ejection_percent,
            min_health_percent: self.min_health_percent,
            split_external_local_origin_errors: self.split_external_local_origin_errors,
            consecutive_local_origin_failures: self.consecutive_local_origin_failures,
            http_error_codes: self.outlier_detection_http_error_codes.clone(),
        }
    }
}
