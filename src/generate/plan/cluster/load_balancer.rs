//! Load balancers: how a host of a cluster is chosen.

use super::policy::Policy;
use super::pool::Percent;
use crate::generate::plan::assignment::{FailoverOn, LocalitySetting};
use crate::model::{ConsistentHash, HashAlgorithm, MeshSettings, SimpleLb, Warmup};
use std::time::Duration;

/// The largest ring that Envoy takes.
const LARGEST_RING: u64 = 8_388_608;

/// How hosts are chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Balancing {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// What else there is to say about hosts, where there is anything.
    pub hosts: Option<HostBalancing>,
}

/// How one of several hosts is chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Algorithm {
    /// There is nothing to choose: the cluster makes a host of each destination.
    ByDestination,
    /// In turn.
    RoundRobin(Option<SlowStart>),
    /// Fewest requests in flight.
    LeastRequest(Option<SlowStart>),
    /// At random.
    Random,
    /// A ring of this least size.
    RingHash(Option<u64>),
    /// Maglev, with a table of this size.
    Maglev(Option<u64>),
}

/// How new hosts warm up.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowStart {
    /// For how long.
    pub window: Duration,
    /// Speed of growth.
    pub aggression: Option<f64>,
    /// Lowest weight.
    pub min_weight: Option<Percent>,
}

/// What goes for all hosts of a cluster, whatever the algorithm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostBalancing {
    /// The share of healthy hosts below which health is ignored.
    pub panic_threshold: Option<Percent>,
    /// Whether a request that is bound to a host may go there while that drains.
    pub keeps_sessions: bool,
    /// Which part localities have.
    pub locality: LocalityUse,
}

/// Which part localities have in choosing a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LocalityUse {
    /// None, but for priorities.
    #[default]
    Ignored,
    /// Their weights count.
    Weighted,
    /// Envoy keeps traffic in its own zone.
    ZoneAware {
        /// Whether it does.
        enabled: bool,
        /// Fewest hosts for that.
        min_cluster_size: Option<u64>,
    },
}

/// The panic threshold: the policy's `minHealthPercent`; 0 otherwise, so that Envoy never sends to
/// endpoints that it knows to be bad just because they are many.
pub(super) fn panic_threshold(policy: &Policy<'_>) -> Percent {
    let least = policy.outlier_detection.map_or(0, |o| o.min_health_percent);
    Percent::of(f64::from(least))
}

/// Which part localities have under a policy.
pub(super) fn locality_use(policy: &Policy<'_>, mesh: &MeshSettings) -> LocalityUse {
    let setting = LocalitySetting::effective(policy.load_balancer, mesh);
    if let LocalitySetting::ZoneAware(zone_aware) = setting {
        return LocalityUse::ZoneAware {
            enabled: zone_aware.enabled,
            min_cluster_size: zone_aware.min_cluster_size,
        };
    }
    match setting.is_weighted(FailoverOn::of(policy)) {
        true => LocalityUse::Weighted,
        false => LocalityUse::Ignored,
    }
}

/// The algorithm of a policy. PASSTHROUGH never gets here: it makes another type of cluster.
pub(super) fn algorithm(policy: &Policy<'_>) -> Algorithm {
    let lb = policy.load_balancer;
    if let Some(hash) = lb.and_then(|lb| lb.consistent_hash.as_ref()) {
        return consistent_hash(hash);
    }
    let slow_start = lb.and_then(|lb| lb.warmup.as_ref()).map(slow_start);
    match lb.map_or(SimpleLb::Unspecified, |lb| lb.simple) {
        SimpleLb::Unspecified | SimpleLb::LeastRequest | SimpleLb::Passthrough => {
            Algorithm::LeastRequest(slow_start)
        }
        SimpleLb::RoundRobin => Algorithm::RoundRobin(slow_start),
        // Envoy cannot warm hosts up here.
        SimpleLb::Random => Algorithm::Random,
    }
}

/// What is hashed is a matter of routes; a cluster has the algorithm only.
fn consistent_hash(hash: &ConsistentHash) -> Algorithm {
    match hash.algorithm {
        HashAlgorithm::RingHash(0) => Algorithm::RingHash(None),
        HashAlgorithm::Default(size) | HashAlgorithm::RingHash(size) => {
            Algorithm::RingHash(Some(size.min(LARGEST_RING)))
        }
        HashAlgorithm::Maglev(0) => Algorithm::Maglev(None),
        HashAlgorithm::Maglev(size) => Algorithm::Maglev(Some(size)),
    }
}

fn slow_start(warmup: &Warmup) -> SlowStart {
    SlowStart {
        window: warmup.duration,
        aggression: warmup.aggression,
        min_weight: warmup.minimum_percent.map(Percent::of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Distribute, LoadBalancer, LocalityLb, OutlierDetection};

    fn with(lb: &LoadBalancer) -> Policy<'_> {
        Policy { load_balancer: Some(lb), ..Default::default() }
    }

    fn warmup() -> Option<Warmup> {
        let duration = Duration::from_secs(10);
        Some(Warmup { duration, minimum_percent: Some(10.0), aggression: Some(1.0) })
    }

    #[test]
    fn simple_balancers_warm_up_where_envoy_can() {
        let of = |simple| {
            let lb = LoadBalancer { simple, warmup: warmup(), ..Default::default() };
            algorithm(&with(&lb))
        };
        let slow = warmup().as_ref().map(slow_start);
        assert_eq!(of(SimpleLb::Unspecified), Algorithm::LeastRequest(slow.clone()));
        assert_eq!(of(SimpleLb::LeastRequest), Algorithm::LeastRequest(slow.clone()));
        assert_eq!(of(SimpleLb::RoundRobin), Algorithm::RoundRobin(slow));
        assert_eq!(of(SimpleLb::Random), Algorithm::Random);
    }

    #[test]
    fn hash_sizes_are_set_when_they_are_chosen() {
        let of = |algorithm| {
            let consistent_hash = Some(ConsistentHash { key: None, algorithm });
            let lb = LoadBalancer { consistent_hash, warmup: warmup(), ..Default::default() };
            super::algorithm(&with(&lb))
        };
        assert_eq!(of(HashAlgorithm::Default(1024)), Algorithm::RingHash(Some(1024)));
        assert_eq!(of(HashAlgorithm::RingHash(0)), Algorithm::RingHash(None));
        let largest = Algorithm::RingHash(Some(LARGEST_RING));
        assert_eq!(of(HashAlgorithm::RingHash(u64::MAX)), largest);
        assert_eq!(of(HashAlgorithm::Maglev(0)), Algorithm::Maglev(None));
        assert_eq!(of(HashAlgorithm::Maglev(65537)), Algorithm::Maglev(Some(65537)));
    }

    #[test]
    fn weights_of_localities_count_when_traffic_is_distributed() {
        let distribute = vec![Distribute { from: "*".into(), to: [("*".to_owned(), 100)].into() }];
        let locality =
            LocalityLb { enabled: true, distribute, failover: vec![], failover_priority: vec![] };
        let lb = LoadBalancer { locality: Some(locality), ..Default::default() };
        let mesh = MeshSettings::default();
        assert_eq!(locality_use(&with(&lb), &mesh), LocalityUse::Weighted);
        assert_eq!(locality_use(&Policy::default(), &mesh), LocalityUse::Ignored);
    }

    #[test]
    fn the_panic_threshold_is_zero_unless_chosen() {
        let outlier = OutlierDetection { min_health_percent: 50, ..Default::default() };
        let policy = Policy { outlier_detection: Some(&outlier), ..Default::default() };
        assert_eq!(panic_threshold(&policy).value(), 50.0);
        assert_eq!(panic_threshold(&Policy::default()).value(), 0.0);
    }
}
