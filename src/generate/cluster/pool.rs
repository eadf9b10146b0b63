//! Connection pools: circuit breakers, connect timeout and keepalive. What of a pool belongs to
//! HTTP is in `protocol`.

use crate::model::{ConnectionPool, MeshSettings, RetryBudget, TcpKeepalive};
use crate::xds::pb;
use pb::cluster::circuit_breakers::{Thresholds, thresholds};
use std::time::Duration;

/// Istio's "no limit".
const UNLIMITED: u32 = u32::MAX;

/// The circuit breakers: one entry for the default priority.
pub(super) fn circuit_breakers(
    pool: Option<&ConnectionPool>,
    budget: Option<&RetryBudget>,
) -> pb::cluster::CircuitBreakers {
    let limit = |value: Option<u32>| match value {
        // Zero means "not set" in Istio.
        None | Some(0) => Some(pb::u32_value(UNLIMITED)),
        Some(value) => Some(pb::u32_value(value)),
    };
    let http = pool.map(|p| &p.http);
    let thresholds = Thresholds {
        max_connections: limit(pool.map(|p| p.tcp.max_connections)),
        max_pending_requests: limit(http.map(|h| h.http1_max_pending_requests)),
        max_requests: limit(http.map(|h| h.http2_max_requests)),
        max_retries: limit(http.map(|h| h.max_retries)),
        retry_budget: budget.map(retry_budget),
        ..Default::default()
    };
    pb::cluster::CircuitBreakers { thresholds: vec![thresholds], ..Default::default() }
}

fn retry_budget(budget: &RetryBudget) -> thresholds::RetryBudget {
    let concurrency = match budget.min_retry_concurrency {
        0 => 3,
        value => value,
    };
    thresholds::RetryBudget {
        budget_percent: Some(percent(budget.percent)),
        min_retry_concurrency: Some(pb::u32_value(concurrency)),
        budget_interval: budget.interval.map(pb::duration),
    }
}

/// A percentage that Envoy takes: between 0 and 100.
pub(super) fn percent(value: f64) -> pb::percent::Percent {
    pb::percent::Percent { value: if value.is_nan() { 0.0 } else { value.clamp(0.0, 100.0) } }
}

/// The connect timeout, which Envoy does not take as zero.
pub(super) fn connect_timeout(mesh: &MeshSettings, pool: Option<&ConnectionPool>) -> pb::Duration {
    let positive = |timeout: &Duration| !timeout.is_zero();
    let timeout = pool.and_then(|p| p.tcp.connect_timeout).filter(positive);
    let timeout = timeout.or(Some(mesh.connect_timeout).filter(positive));
    pb::duration(timeout.unwrap_or(Duration::from_secs(10)))
}

/// Keepalive, when the mesh or the pool asks for it: the pool's values win one by one.
pub(super) fn connection_options(
    mesh: &MeshSettings,
    pool: Option<&ConnectionPool>,
) -> Option<pb::cluster::UpstreamConnectionOptions> {
    let own = pool.and_then(|p| p.tcp.keepalive.as_ref());
    let common = mesh.tcp_keepalive.as_ref();
    if own.is_none() && common.is_none() {
        return None;
    }
    let pick = |value: fn(&TcpKeepalive) -> Option<u32>| {
        own.and_then(value).or_else(|| common.and_then(value)).map(pb::u32_value)
    };
    let keepalive = pb::core::TcpKeepalive {
        keepalive_probes: pick(|k| Some(k.probes).filter(|probes| *probes > 0)),
        keepalive_time: pick(|k| k.time.map(whole_seconds)),
        keepalive_interval: pick(|k| k.interval.map(whole_seconds)),
    };
    Some(pb::cluster::UpstreamConnectionOptions {
        tcp_keepalive: Some(keepalive),
        ..Default::default()
    })
}

fn whole_seconds(value: Duration) -> u32 {
    u32::try_from(value.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HttpPool, TcpPool};

    #[test]
    fn zero_limits_are_no_limits() {
        let http = HttpPool { http2_max_requests: 9, ..Default::default() };
        let pool = ConnectionPool { http, ..Default::default() };
        let breakers = circuit_breakers(Some(&pool), None);
        let thresholds = &breakers.thresholds[0];
        assert_eq!(thresholds.max_requests, Some(pb::u32_value(9)));
        assert_eq!(thresholds.max_connections, Some(pb::u32_value(UNLIMITED)));
        assert_eq!(thresholds.max_retries, Some(pb::u32_value(UNLIMITED)));
        assert_eq!(circuit_breakers(None, None).thresholds.len(), 1);
    }

    #[test]
    fn a_budget_keeps_a_percentage_of_zero_and_stays_below_a_hundred() {
        let budget = |percent| RetryBudget { percent, min_retry_concurrency: 0, interval: None };
        let zero = retry_budget(&budget(0.0));
        assert_eq!(zero.budget_percent.map(|p| p.value), Some(0.0));
        assert_eq!(zero.min_retry_concurrency, Some(pb::u32_value(3)));
        assert_eq!(retry_budget(&budget(250.0)).budget_percent.map(|p| p.value), Some(100.0));
    }

    #[test]
    fn the_connect_timeout_is_never_zero() {
        let zero = MeshSettings { connect_timeout: Duration::ZERO, ..MeshSettings::default() };
        assert_eq!(connect_timeout(&zero, None).seconds, 10);
        let tcp = TcpPool { connect_timeout: Some(Duration::from_secs(1)), ..Default::default() };
        let pool = ConnectionPool { tcp, ..Default::default() };
        assert_eq!(connect_timeout(&zero, Some(&pool)).seconds, 1);
    }

    #[test]
    fn keepalive_is_merged_with_the_mesh_value_by_value() {
        let keepalive = |probes, time: Option<u64>| TcpKeepalive {
            probes,
            time: time.map(Duration::from_secs),
            interval: None,
        };
        let mesh =
            MeshSettings { tcp_keepalive: Some(keepalive(3, Some(60))), ..MeshSettings::default() };
        let tcp = TcpPool { keepalive: Some(keepalive(5, None)), ..Default::default() };
        let pool = ConnectionPool { tcp, ..Default::default() };
        let merged = connection_options(&mesh, Some(&pool)).and_then(|o| o.tcp_keepalive);
        let expected = pb::core::TcpKeepalive {
            keepalive_probes: Some(pb::u32_value(5)),
            keepalive_time: Some(pb::u32_value(60)),
            keepalive_interval: None,
        };
        assert_eq!(merged, Some(expected));
        assert_eq!(connection_options(&MeshSettings::default(), None), None);
    }
}
