//! Load balancers. Settings are inert on clusters whose hosts Envoy finds by itself.

use super::locality::{FailoverOn, LocalitySetting};
use super::policy::Policy;
use super::pool::percent;
use crate::model::{ConsistentHash, HashAlgorithm, MeshSettings, SimpleLb, Warmup};
use crate::xds::pb;
use pb::cluster::cluster::{
    CommonLbConfig, LbConfig, LbPolicy, LeastRequestLbConfig, MaglevLbConfig, RingHashLbConfig,
    RoundRobinLbConfig, SlowStartConfig,
    common_lb_config::{LocalityConfigSpecifier, LocalityWeightedLbConfig, ZoneAwareLbConfig},
};

/// The largest ring that Envoy takes.
const LARGEST_RING: u64 = 8_388_608;
/// What Istio's slow start asks Envoy's runtime for. It is no valid key, so the default holds.
const RUNTIME_KEY: &str = "(";

/// The panic threshold: the policy's `minHealthPercent`; 0 otherwise, so that Envoy never sends to
/// endpoints that it knows to be bad just because they are many.
pub(super) fn panic_threshold(policy: &Policy<'_>) -> pb::percent::Percent {
    let least = policy.outlier_detection.map_or(0, |o| o.min_health_percent);
    percent(f64::from(least))
}

/// Sets the load balancer of a cluster that has hosts of its own.
pub(super) fn apply(
    cluster: &mut pb::cluster::Cluster,
    common: &mut CommonLbConfig,
    policy: &Policy<'_>,
    mesh: &MeshSettings,
) {
    let failover = super::failover_on(policy);
    let setting = LocalitySetting::effective(policy.load_balancer, mesh);
    common.locality_config_specifier = locality_config(setting, failover);

    let lb = policy.load_balancer;
    let warmup = lb.and_then(|lb| lb.warmup.as_ref()).map(slow_start);
    let (lb_policy, lb_config) = match lb.and_then(|lb| lb.consistent_hash.as_ref()) {
        Some(hash) => consistent_hash(hash),
        // PASSTHROUGH never gets here: it makes another type of cluster.
        None => match lb.map_or(SimpleLb::Unspecified, |lb| lb.simple) {
            SimpleLb::Unspecified | SimpleLb::LeastRequest | SimpleLb::Passthrough => {
                let config = |slow| LeastRequestLbConfig {
                    slow_start_config: Some(slow),
                    ..Default::default()
                };
                (LbPolicy::LeastRequest, warmup.map(config).map(LbConfig::LeastRequestLbConfig))
            }
            SimpleLb::RoundRobin => {
                let config = |slow| RoundRobinLbConfig { slow_start_config: Some(slow) };
                (LbPolicy::RoundRobin, warmup.map(config).map(LbConfig::RoundRobinLbConfig))
            }
            SimpleLb::Random => (LbPolicy::Random, None),
        },
    };
    cluster.lb_policy = lb_policy.into();
    cluster.lb_config = lb_config;
}

/// What is hashed is a matter of routes; a cluster has the algorithm only.
fn consistent_hash(hash: &ConsistentHash) -> (LbPolicy, Option<LbConfig>) {
    let ring = |size: u64| {
        let config = RingHashLbConfig {
            minimum_ring_size: Some(pb::u64_value(size.min(LARGEST_RING))),
            ..Default::default()
        };
        Some(LbConfig::RingHashLbConfig(config))
    };
    match hash.algorithm {
        HashAlgorithm::Default(size) => (LbPolicy::RingHash, ring(size)),
        HashAlgorithm::RingHash(0) => (LbPolicy::RingHash, None),
        HashAlgorithm::RingHash(size) => (LbPolicy::RingHash, ring(size)),
        HashAlgorithm::Maglev(0) => (LbPolicy::Maglev, None),
        HashAlgorithm::Maglev(size) => {
            let config = MaglevLbConfig { table_size: Some(pb::u64_value(size)) };
            (LbPolicy::Maglev, Some(LbConfig::MaglevLbConfig(config)))
        }
    }
}

fn slow_start(warmup: &Warmup) -> SlowStartConfig {
    SlowStartConfig {
        slow_start_window: Some(pb::duration(warmup.duration)),
        aggression: warmup.aggression.map(|value| pb::core::RuntimeDouble {
            default_value: value,
            runtime_key: RUNTIME_KEY.to_owned(),
        }),
        min_weight_percent: warmup.minimum_percent.map(percent),
    }
}

fn locality_config(
    setting: LocalitySetting<'_>,
    failover: FailoverOn,
) -> Option<LocalityConfigSpecifier> {
    if let LocalitySetting::ZoneAware(zone_aware) = setting {
        let off = (!zone_aware.enabled).then(|| percent(0.0));
        return Some(LocalityConfigSpecifier::ZoneAwareLbConfig(ZoneAwareLbConfig {
            routing_enabled: off,
            min_cluster_size: zone_aware.min_cluster_size.map(pb::u64_value),
            ..Default::default()
        }));
    }
    setting.is_weighted(failover).then(|| {
        LocalityConfigSpecifier::LocalityWeightedLbConfig(LocalityWeightedLbConfig::default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LoadBalancer, LocalityLb, OutlierDetection};
    use std::time::Duration;

    fn applied(policy: &Policy<'_>) -> (pb::cluster::Cluster, CommonLbConfig) {
        let mut cluster = pb::cluster::Cluster::default();
        let mut common = CommonLbConfig::default();
        apply(&mut cluster, &mut common, policy, &MeshSettings::default());
        (cluster, common)
    }

    fn with(lb: &LoadBalancer) -> pb::cluster::Cluster {
        applied(&Policy { load_balancer: Some(lb), ..Default::default() }).0
    }

    fn warmup() -> Option<Warmup> {
        let duration = Duration::from_secs(10);
        Some(Warmup { duration, minimum_percent: Some(10.0), aggression: Some(1.0) })
    }

    #[test]
    fn simple_balancers_warm_up_where_envoy_can() {
        for (simple, policy, warms) in [
            (SimpleLb::Unspecified, LbPolicy::LeastRequest, true),
            (SimpleLb::LeastRequest, LbPolicy::LeastRequest, true),
            (SimpleLb::RoundRobin, LbPolicy::RoundRobin, true),
            (SimpleLb::Random, LbPolicy::Random, false),
        ] {
            let lb = LoadBalancer { simple, warmup: warmup(), ..Default::default() };
            let cluster = with(&lb);
            assert_eq!(cluster.lb_policy, i32::from(policy), "{simple:?}");
            assert_eq!(cluster.lb_config.is_some(), warms, "{simple:?}");
        }
    }

    #[test]
    fn hash_sizes_are_written_when_they_are_chosen() {
        let sized = |algorithm| {
            let consistent_hash = Some(ConsistentHash { key: None, algorithm });
            let lb = LoadBalancer { consistent_hash, warmup: warmup(), ..Default::default() };
            let cluster = with(&lb);
            let size = match cluster.lb_config {
                Some(LbConfig::RingHashLbConfig(ring)) => ring.minimum_ring_size,
                Some(LbConfig::MaglevLbConfig(maglev)) => maglev.table_size,
                Some(other) => panic!("no hash is {other:?}"),
                None => None,
            };
            (cluster.lb_policy, size.map(|s| s.value))
        };
        let (ring, maglev) = (i32::from(LbPolicy::RingHash), i32::from(LbPolicy::Maglev));
        assert_eq!(sized(HashAlgorithm::Default(1024)), (ring, Some(1024)));
        assert_eq!(sized(HashAlgorithm::RingHash(0)), (ring, None));
        assert_eq!(sized(HashAlgorithm::RingHash(u64::MAX)), (ring, Some(LARGEST_RING)));
        assert_eq!(sized(HashAlgorithm::Maglev(0)), (maglev, None));
        assert_eq!(sized(HashAlgorithm::Maglev(65537)), (maglev, Some(65537)));
    }

    #[test]
    fn weights_of_localities_count_when_traffic_is_distributed() {
        let distribute =
            vec![crate::model::Distribute { from: "*".into(), to: [("*".to_owned(), 100)].into() }];
        let locality =
            LocalityLb { enabled: true, distribute, failover: vec![], failover_priority: vec![] };
        let lb = LoadBalancer { locality: Some(locality), ..Default::default() };
        let (_, common) = applied(&Policy { load_balancer: Some(&lb), ..Default::default() });
        assert!(matches!(
            common.locality_config_specifier,
            Some(LocalityConfigSpecifier::LocalityWeightedLbConfig(_))
        ));
        assert_eq!(applied(&Policy::default()).1.locality_config_specifier, None);
    }

    #[test]
    fn the_panic_threshold_is_zero_unless_chosen() {
        let outlier = OutlierDetection { min_health_percent: 50, ..Default::default() };
        let policy = Policy { outlier_detection: Some(&outlier), ..Default::default() };
        assert_eq!(panic_threshold(&policy).value, 50.0);
        assert_eq!(panic_threshold(&Policy::default()).value, 0.0);
    }
}
