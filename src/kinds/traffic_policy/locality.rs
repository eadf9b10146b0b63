//! `localityLbSetting` and `zoneAwareLbSetting`: preferences between places.

use super::outlier_detection::OutlierDetection;
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::model;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Labels that say where an endpoint is; `failover` already speaks about places.
const PLACES: [&str; 3] =
    ["topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone"];

/// Preferences between localities. At most one of `distribute` and `failover`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalitySetting {
    /// Shares of the traffic by locality.
    #[serde(default)]
    pub distribute: Vec<Distribute>,
    /// Where traffic goes when a region fails.
    #[serde(default)]
    pub failover: Vec<Failover>,
    /// Labels, most important first; endpoints that have more of the caller's come first.
    #[serde(default)]
    pub failover_priority: Vec<String>,
    /// Whether localities matter; unset is true.
    pub enabled: Option<bool>,
}

/// Shares of the traffic from one place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Distribute {
    /// Where the caller is, as `region/zone/subzone`; `*` at the end is any.
    #[serde(default)]
    pub from: String,
    /// Percent by locality of the endpoints; together 100.
    #[serde(default)]
    pub to: BTreeMap<String, u32>,
}

/// Where traffic goes when a region fails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failover {
    /// Region of the caller.
    #[serde(default)]
    pub from: String,
    /// Region that takes over.
    #[serde(default)]
    pub to: String,
}

/// Prefers endpoints of the caller's zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ZoneAwareSetting {
    /// Whether the zone matters; unset is true.
    pub enabled: Option<bool>,
    /// Where traffic goes when a region fails.
    #[serde(default)]
    pub failover: Vec<Failover>,
    /// Labels, most important first; endpoints that have more of the caller's come first.
    #[serde(default)]
    pub failover_priority: Vec<String>,
    /// Fewest endpoints for this to happen.
    pub min_cluster_size: Option<u64>,
}

impl LocalitySetting {
    /// Istio's rules.
    pub fn check(&self, at: &Field<'_>, outlier: Option<&OutlierDetection>, f: &mut Findings<'_>) {
        if !self.distribute.is_empty() && !self.failover.is_empty() {
            let message = "`distribute` and `failover` exclude each other; keep one";
            f.error(&at.key("failover"), Code::ConflictingFields, message);
        }
        if !self.failover.is_empty() {
            check_priority(&at.key("failoverPriority"), &self.failover_priority, f);
        }
        let rules = at.key("distribute");
        for (index, rule) in self.distribute.iter().enumerate() {
            rule.check(&rules.index(index), f);
            let from = self.distribute[..index].iter().map(|earlier| earlier.from.as_str());
            let rule_at = rules.index(index);
            check_locality(&rule_at.key("from"), &rule.from, from, f);
        }
        check_failover(at, &self.failover, f);
        let needs_outlier = !self.failover.is_empty() || !self.failover_priority.is_empty();
        if needs_outlier && outlier.is_none() {
            without_outlier_detection(at, f);
        }
    }

    /// What it means.
    pub fn lower(&self) -> model::LocalityLb {
        model::LocalityLb {
            enabled: self.enabled.unwrap_or(true),
            distribute: self
                .distribute
                .iter()
                .map(|rule| model::Distribute { from: rule.from.clone(), to: rule.to.clone() })
                .collect(),
            failover: self.failover.iter().map(Failover::lower).collect(),
            failover_priority: self.failover_priority.clone(),
        }
    }
}

impl Distribute {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let to = at.key("to");
        let mut earlier: Vec<&str> = Vec::new();
        let mut in_range = true;
        for (locality, weight) in &self.to {
            let at = to.key(locality);
            if !(1..=100).contains(weight) {
                in_range = false;
                let message = format!("a share is from 1 to 100, not {weight}");
                f.error(&at, Code::InvalidValue, message);
            }
            check_locality(&at, locality, earlier.iter().copied(), f);
            earlier.push(locality);
        }
        let total: u64 = self.to.values().map(|weight| u64::from(*weight)).sum();
        if in_range && total != 100 {
            let message = format!("the shares must add up to 100, not {total}");
            f.error(&to, Code::InvalidValue, message);
        }
    }
}

impl Failover {
    fn lower(&self) -> model::Failover {
        model::Failover { from: self.from.clone(), to: self.to.clone() }
    }
}

impl ZoneAwareSetting {
    /// Istio's rules.
    pub fn check(&self, at: &Field<'_>, outlier: Option<&OutlierDetection>, f: &mut Findings<'_>) {
        check_priority(&at.key("failoverPriority"), &self.failover_priority, f);
        check_failover(at, &self.failover, f);
        if !self.failover.is_empty() && outlier.is_none() {
            without_outlier_detection(at, f);
        }
        if self.min_cluster_size == Some(0) {
            let message = "the smallest cluster has one endpoint";
            f.error(&at.key("minClusterSize"), Code::InvalidValue, message);
        }
    }

    /// What it means.
    pub fn lower(&self) -> model::ZoneAwareLb {
        model::ZoneAwareLb {
            enabled: self.enabled.unwrap_or(true),
            min_cluster_size: self.min_cluster_size,
            failover: self.failover.iter().map(Failover::lower).collect(),
            failover_priority: self.failover_priority.clone(),
        }
    }
}

fn without_outlier_detection(at: &Field<'_>, f: &mut Findings<'_>) {
    let message = "without `outlierDetection` no endpoint counts as failed, so nothing fails over";
    let diagnostic =
        Diagnostic::new(Code::NoEffect, message).help("add `outlierDetection: {}` beside it");
    f.report(at, diagnostic);
}

fn check_priority(at: &Field<'_>, labels: &[String], f: &mut Findings<'_>) {
    for (index, label) in labels.iter().enumerate() {
        if PLACES.contains(&label.as_str()) {
            let message = format!("`{label}` cannot be used here: places are already compared");
            f.error(&at.index(index), Code::ConflictingFields, message);
        }
    }
}

fn check_failover(at: &Field<'_>, failover: &[Failover], f: &mut Findings<'_>) {
    let at = at.key("failover");
    for (index, rule) in failover.iter().enumerate() {
        let at = at.index(index);
        for (name, region) in [("from", &rule.from), ("to", &rule.to)] {
            if region.contains(['/', '*']) {
                let message = format!("`{region}` must be the name of a region alone");
                f.error(&at.key(name), Code::InvalidValue, message);
            }
        }
        if rule.from == rule.to {
            let message = "a region cannot take over from itself";
            f.error(&at.key("to"), Code::InvalidValue, message);
        }
    }
}

/// A locality pattern must be well formed and must not overlap with an earlier one.
fn check_locality<'e>(
    at: &Field<'_>,
    locality: &str,
    mut earlier: impl Iterator<Item = &'e str>,
    f: &mut Findings<'_>,
) {
    let inner = locality.strip_suffix('*').unwrap_or(locality);
    if inner.contains('*') {
        let message = format!("`{locality}`: `*` may only stand at the end, and only once");
        f.error(at, Code::InvalidValue, message);
    } else if locality.split('/').any(str::is_empty) {
        let message = format!("`{locality}` has an empty part; write `region/zone/subzone`");
        f.error(at, Code::InvalidValue, message);
    } else if let Some(other) = earlier.find(|other| overlap(other, locality)) {
        let message = format!("`{locality}` and `{other}` overlap; keep one");
        f.error(at, Code::ConflictingFields, message);
    }
}

/// Whether some place is meant by both; a part that is left out is any.
fn overlap(a: &str, b: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        text.split('/').take_while(|part| *part != "*").map(str::to_owned).collect()
    };
    parts(a).iter().zip(&parts(b)).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn what_is_left_out_is_any() {
        for (a, b, expected) in [
            ("r", "r", true),
            ("r", "r/z", true),
            ("r/*", "r/z/s", true),
            ("*", "r", true),
            ("r/z1", "r/z2", false),
            ("r1/*", "r2/*", false),
        ] {
            assert_eq!(overlap(a, b), expected, "{a} {b}");
            assert_eq!(overlap(b, a), expected, "{b} {a}");
        }
    }
}
