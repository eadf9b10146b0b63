//! Connection pools: circuit breakers, connect timeout and keepalive. What of a pool belongs to
//! HTTP is in `http`.

use crate::model::{self, ConnectionPool, MeshSettings, TcpKeepalive};
use std::time::Duration;

/// Istio's "no limit".
const UNLIMITED: u32 = u32::MAX;

/// What may be in flight at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Connections.
    pub connections: u32,
    /// Requests that wait for a connection.
    pub pending_requests: u32,
    /// Requests.
    pub requests: u32,
    /// Retries.
    pub retries: u32,
    /// Retries as a share of requests.
    pub retry_budget: Option<RetryBudget>,
}

/// How many requests may be retries.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryBudget {
    /// Their share.
    pub share: Percent,
    /// So many are always allowed.
    pub min_concurrency: u32,
    /// Over what time requests are counted.
    pub interval: Option<Duration>,
}

/// A percentage that Envoy takes: between 0 and 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(f64);

impl Percent {
    /// The nearest one.
    pub fn of(value: f64) -> Percent {
        Percent(if value.is_nan() { 0.0 } else { value.clamp(0.0, 100.0) })
    }

    /// Its value.
    pub fn value(self) -> f64 {
        self.0
    }
}

/// TCP keepalive; what is not set the system decides. Times are in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keepalive {
    /// Number of probes.
    pub probes: Option<u32>,
    /// Idle time before the first probe.
    pub time: Option<u32>,
    /// Time between probes.
    pub interval: Option<u32>,
}

impl Limits {
    /// The limits of a pool and a budget. Zero means "not set" in Istio.
    pub(super) fn of(pool: Option<&ConnectionPool>, budget: Option<&model::RetryBudget>) -> Limits {
        let limit = |value: Option<u32>| value.filter(|n| *n > 0).unwrap_or(UNLIMITED);
        let http = pool.map(|p| &p.http);
        Limits {
            connections: limit(pool.map(|p| p.tcp.max_connections)),
            pending_requests: limit(http.map(|h| h.http1_max_pending_requests)),
            requests: limit(http.map(|h| h.http2_max_requests)),
            retries: limit(http.map(|h| h.max_retries)),
            retry_budget: budget.map(retry_budget),
        }
    }
}

fn retry_budget(budget: &model::RetryBudget) -> RetryBudget {
    RetryBudget {
        share: Percent::of(budget.percent),
        min_concurrency: match budget.min_retry_concurrency {
            0 => 3,
            value => value,
        },
        interval: budget.interval,
    }
}

/// The connect timeout, which Envoy does not take as zero.
pub(super) fn connect_timeout(mesh: &MeshSettings, pool: Option<&ConnectionPool>) -> Duration {
    let positive = |timeout: &Duration| !timeout.is_zero();
    let own = pool.and_then(|p| p.tcp.connect_timeout).filter(positive);
    own.or(Some(mesh.connect_timeout).filter(positive)).unwrap_or(Duration::from_secs(10))
}

/// Keepalive, when the mesh or the pool asks for it: the pool's values win one by one.
pub(super) fn keepalive(mesh: &MeshSettings, pool: Option<&ConnectionPool>) -> Option<Keepalive> {
    let own = pool.and_then(|p| p.tcp.keepalive.as_ref());
    let common = mesh.tcp_keepalive.as_ref();
    if own.is_none() && common.is_none() {
        return None;
    }
    let pick = |value: fn(&TcpKeepalive) -> Option<u32>| {
        own.and_then(value).or_else(|| common.and_then(value))
    };
    Some(Keepalive {
        probes: pick(|k| Some(k.probes).filter(|probes| *probes > 0)),
        time: pick(|k| k.time.map(whole_seconds)),
        interval: pick(|k| k.interval.map(whole_seconds)),
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
        let limits = Limits::of(Some(&pool), None);
        assert_eq!(
            (limits.requests, limits.connections, limits.retries),
            (9, UNLIMITED, UNLIMITED)
        );
        assert_eq!(Limits::of(None, None).requests, UNLIMITED);
    }

    #[test]
    fn a_budget_keeps_a_percentage_of_zero_and_stays_below_a_hundred() {
        let budget = |percent| {
            let written = model::RetryBudget { percent, min_retry_concurrency: 0, interval: None };
            retry_budget(&written)
        };
        assert_eq!((budget(0.0).share.value(), budget(0.0).min_concurrency), (0.0, 3));
        assert_eq!(budget(250.0).share.value(), 100.0);
    }

    #[test]
    fn the_connect_timeout_is_never_zero() {
        let zero = MeshSettings { connect_timeout: Duration::ZERO, ..MeshSettings::default() };
        assert_eq!(connect_timeout(&zero, None).as_secs(), 10);
        let tcp = TcpPool { connect_timeout: Some(Duration::from_secs(1)), ..Default::default() };
        let pool = ConnectionPool { tcp, ..Default::default() };
        assert_eq!(connect_timeout(&zero, Some(&pool)).as_secs(), 1);
    }

    #[test]
    fn keepalive_is_merged_with_the_mesh_value_by_value() {
        let written = |probes, time: Option<u64>| TcpKeepalive {
            probes,
            time: time.map(Duration::from_secs),
            interval: None,
        };
        let mesh =
            MeshSettings { tcp_keepalive: Some(written(3, Some(60))), ..MeshSettings::default() };
        let tcp = TcpPool { keepalive: Some(written(5, None)), ..Default::default() };
        let pool = ConnectionPool { tcp, ..Default::default() };
        let expected = Keepalive { probes: Some(5), time: Some(60), interval: None };
        assert_eq!(keepalive(&mesh, Some(&pool)), Some(expected));
        assert_eq!(keepalive(&MeshSettings::default(), None), None);
    }
}
