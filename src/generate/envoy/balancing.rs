//! Load balancers.

use crate::generate::plan::cluster::{
    Algorithm, Balancing, HostBalancing, LocalityUse, Percent, SlowStart,
};
use crate::xds::pb::{self, cluster as proto, core};
use proto::cluster::common_lb_config::{
    LocalityConfigSpecifier, LocalityWeightedLbConfig, ZoneAwareLbConfig,
};
use proto::cluster::{
    CommonLbConfig, LbConfig, LbPolicy, LeastRequestLbConfig, MaglevLbConfig, RingHashLbConfig,
    RoundRobinLbConfig, SlowStartConfig,
};

/// What Istio's slow start asks Envoy's runtime for. It is no valid key, so the default holds.
const RUNTIME_KEY: &str = "(";

/// A cluster of which nothing is set but its load balancer.
pub(super) fn balanced(planned: &Balancing) -> proto::Cluster {
    let (policy, config) = match &planned.algorithm {
        Algorithm::ByDestination => (LbPolicy::ClusterProvided, None),
        Algorithm::RoundRobin(slow) => {
            let config = |slow| RoundRobinLbConfig { slow_start_config: Some(slow) };
            let slow = slow.as_ref().map(slow_start);
            (LbPolicy::RoundRobin, slow.map(config).map(LbConfig::RoundRobinLbConfig))
        }
        Algorithm::LeastRequest(slow) => {
            let config =
                |slow| LeastRequestLbConfig { slow_start_config: Some(slow), ..Default::default() };
            let slow = slow.as_ref().map(slow_start);
            (LbPolicy::LeastRequest, slow.map(config).map(LbConfig::LeastRequestLbConfig))
        }
        Algorithm::Random => (LbPolicy::Random, None),
        Algorithm::RingHash(size) => {
            let config = |size| RingHashLbConfig {
                minimum_ring_size: Some(pb::u64_value(size)),
                ..Default::default()
            };
            (LbPolicy::RingHash, size.map(config).map(LbConfig::RingHashLbConfig))
        }
        Algorithm::Maglev(size) => {
            let config = |size| MaglevLbConfig { table_size: Some(pb::u64_value(size)) };
            (LbPolicy::Maglev, size.map(config).map(LbConfig::MaglevLbConfig))
        }
    };
    proto::Cluster {
        lb_policy: policy.into(),
        lb_config: config,
        common_lb_config: planned.hosts.as_ref().map(common),
        ..Default::default()
    }
}

fn slow_start(planned: &SlowStart) -> SlowStartConfig {
    SlowStartConfig {
        slow_start_window: Some(pb::duration(planned.window)),
        aggression: planned.aggression.map(|value| core::RuntimeDouble {
            default_value: value,
            runtime_key: RUNTIME_KEY.to_owned(),
        }),
        min_weight_percent: planned.min_weight.map(percent),
    }
}

fn common(planned: &HostBalancing) -> CommonLbConfig {
    CommonLbConfig {
        healthy_panic_threshold: planned.panic_threshold.map(percent),
        override_host_status: planned.keeps_sessions.then(session_states),
        locality_config_specifier: locality(planned.locality),
        ..Default::default()
    }
}

/// The states of hosts that a request which is bound to them may still go to.
fn session_states() -> core::HealthStatusSet {
    use pb::core::HealthStatus::{Degraded, Draining, Healthy, Unknown};
    let statuses = [Healthy, Draining, Unknown, Degraded].map(i32::from).to_vec();
    core::HealthStatusSet { statuses }
}

fn locality(planned: LocalityUse) -> Option<LocalityConfigSpecifier> {
    match planned {
        LocalityUse::Ignored => None,
        LocalityUse::Weighted => Some(LocalityConfigSpecifier::LocalityWeightedLbConfig(
            LocalityWeightedLbConfig::default(),
        )),
        LocalityUse::ZoneAware { enabled, min_cluster_size } => {
            let off = (!enabled).then_some(pb::percent::Percent { value: 0.0 });
            Some(LocalityConfigSpecifier::ZoneAwareLbConfig(ZoneAwareLbConfig {
                routing_enabled: off,
                min_cluster_size: min_cluster_size.map(pb::u64_value),
                ..Default::default()
            }))
        }
    }
}

pub(super) fn percent(planned: Percent) -> pb::percent::Percent {
    pb::percent::Percent { value: planned.value() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sizes_and_slow_starts_are_spelled_only_when_they_are_set() {
        let slow = SlowStart {
            window: Duration::from_secs(10),
            aggression: Some(1.0),
            min_weight: Some(Percent::of(10.0)),
        };
        for (algorithm, policy, is_configured) in [
            (Algorithm::ByDestination, LbPolicy::ClusterProvided, false),
            (Algorithm::LeastRequest(None), LbPolicy::LeastRequest, false),
            (Algorithm::LeastRequest(Some(slow.clone())), LbPolicy::LeastRequest, true),
            (Algorithm::RoundRobin(Some(slow)), LbPolicy::RoundRobin, true),
            (Algorithm::Random, LbPolicy::Random, false),
            (Algorithm::RingHash(None), LbPolicy::RingHash, false),
            (Algorithm::RingHash(Some(9)), LbPolicy::RingHash, true),
            (Algorithm::Maglev(None), LbPolicy::Maglev, false),
            (Algorithm::Maglev(Some(9)), LbPolicy::Maglev, true),
        ] {
            let cluster = balanced(&Balancing { algorithm: algorithm.clone(), hosts: None });
            assert_eq!(cluster.lb_policy, i32::from(policy), "{algorithm:?}");
            assert_eq!(cluster.lb_config.is_some(), is_configured, "{algorithm:?}");
        }
    }
}
