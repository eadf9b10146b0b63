//! Locality load balancing: which endpoints are near, and what follows from it. Priorities and
//! weights of groups are set here, for EDS and for the assignments of DNS clusters alike.

use super::Draft;
use crate::generate::Viewer;
use crate::generate::plan::cluster::Policy;
use crate::model::{
    Distribute, Endpoint, Failover, LoadBalancer, Locality, LocalityLb, MeshSettings, ZoneAwareLb,
};
use std::collections::BTreeMap;

pub(super) const NETWORK: &str = "topology.istio.io/network";

/// The setting that holds for a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::generate::plan) enum LocalitySetting<'a> {
    /// Locality does not matter.
    Off,
    /// `localityLbSetting`.
    Locality(&'a LocalityLb),
    /// `zoneAwareLbSetting`.
    ZoneAware(&'a ZoneAwareLb),
}

impl<'a> LocalitySetting<'a> {
    /// The first that is written: zone awareness of the rule, its locality setting, the mesh's.
    /// One that is switched off hides those behind it.
    pub(in crate::generate::plan) fn effective(
        rule: Option<&'a LoadBalancer>,
        mesh: &'a MeshSettings,
    ) -> LocalitySetting<'a> {
        if let Some(zone_aware) = rule.and_then(|lb| lb.zone_aware.as_ref()) {
            return LocalitySetting::ZoneAware(zone_aware);
        }
        match rule.and_then(|lb| lb.locality.as_ref()).or(mesh.locality_lb.as_ref()) {
            Some(locality) if locality.enabled => LocalitySetting::Locality(locality),
            Some(_) | None => LocalitySetting::Off,
        }
    }

    /// Whether Envoy has to look at the weights of localities.
    pub(in crate::generate::plan) fn is_weighted(self, failover: FailoverOn) -> bool {
        match self {
            LocalitySetting::Off | LocalitySetting::ZoneAware(_) => false,
            LocalitySetting::Locality(locality) => {
                let fails_over = failover == FailoverOn::Unhealthy
                    && !(locality.failover.is_empty() && locality.failover_priority.is_empty());
                !locality.distribute.is_empty() || fails_over
            }
        }
    }
}

/// Whether priorities make sense: without outlier detection Envoy never leaves the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::generate::plan) enum FailoverOn {
    /// No endpoint is ever taken out.
    Nothing,
    /// Outlier detection takes endpoints out.
    Unhealthy,
}

impl FailoverOn {
    /// Whether priorities make sense under a policy.
    pub(in crate::generate::plan) fn of(policy: &Policy<'_>) -> FailoverOn {
        match policy.outlier_detection {
            Some(_) => FailoverOn::Unhealthy,
            None => FailoverOn::Nothing,
        }
    }
}

/// What localities do to the endpoints of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Arrangement {
    /// Nothing.
    #[default]
    None,
    /// Traffic is shared out by explicit weights.
    Distribute(Vec<Distribute>),
    /// Nearer ones come first, by place, by labels, or by labels and then by place.
    Nearest {
        /// Labels that order endpoints by likeness.
        labels: Vec<String>,
        /// Regions to prefer.
        failover: Vec<Failover>,
    },
    /// Those of the own region come first; the zone is Envoy's matter.
    Region {
        /// Labels that order endpoints by likeness.
        labels: Vec<String>,
        /// Regions to prefer.
        failover: Vec<Failover>,
    },
}

impl Arrangement {
    /// What a policy over a mesh asks for.
    pub(in crate::generate::plan) fn of(policy: &Policy<'_>, mesh: &MeshSettings) -> Arrangement {
        let failover = FailoverOn::of(policy);
        match LocalitySetting::effective(policy.load_balancer, mesh) {
            LocalitySetting::Locality(locality) if !locality.distribute.is_empty() => {
                Arrangement::Distribute(locality.distribute.clone())
            }
            LocalitySetting::Locality(locality) if failover == FailoverOn::Unhealthy => {
                Arrangement::Nearest {
                    labels: locality.failover_priority.clone(),
                    failover: locality.failover.clone(),
                }
            }
            LocalitySetting::ZoneAware(zone_aware)
                if zone_aware.enabled && failover == FailoverOn::Unhealthy =>
            {
                Arrangement::Region {
                    labels: zone_aware.failover_priority.clone(),
                    failover: zone_aware.failover.clone(),
                }
            }
            LocalitySetting::Off | LocalitySetting::Locality(_) | LocalitySetting::ZoneAware(_) => {
                Arrangement::None
            }
        }
    }
}

/// Sets priorities and weights of the groups as the proxy at this place should see them.
pub(super) fn arrange(groups: &mut Vec<Draft<'_>>, arrangement: &Arrangement, view: &Viewer<'_>) {
    match arrangement {
        Arrangement::None => {}
        Arrangement::Distribute(rules) => distribute(groups, rules, view),
        Arrangement::Nearest { labels, failover } => {
            let by_region = |at: &Locality| region_rank(at, view.locality(), failover);
            match (labels.is_empty(), failover.is_empty()) {
                (true, _) => prioritize(groups, |at, _| by_region(at)),
                (false, true) => prioritize(groups, |_, e| label_rank(e, labels, view)),
                (false, false) => prioritize(groups, |at, e| {
                    label_rank(e, labels, view) * REGION_RANKS + by_region(at)
                }),
            }
        }
        Arrangement::Region { labels, failover } => prioritize(groups, |at, e| {
            label_rank(e, labels, view) * 3 + zone_rank(at, view.locality(), failover)
        }),
    }
}

/// `distribute`: the first rule for the proxy's place shares traffic out. Localities that it does
/// not name lose their endpoints.
fn distribute(groups: &mut [Draft<'_>], rules: &[Distribute], view: &Viewer<'_>) {
    let Some(rule) = rules.iter().find(|d| covers(&d.from, view.locality())) else {
        return;
    };
    let mut named = vec![false; groups.len()];
    for (to, share) in &rule.to {
        let mut matching: Vec<usize> = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            if !named[index] && covers(to, group.locality) {
                named[index] = true;
                matching.push(index);
            }
        }
        let total: u64 = matching.iter().map(|&i| u64::from(groups[i].weight)).sum();
        for index in matching {
            let part = u64::from(groups[index].weight) * u64::from(*share);
            let weight = part.div_ceil(total.max(1)).max(1);
            groups[index].weight = u32::try_from(weight).unwrap_or(u32::MAX);
        }
    }
    for (group, named) in groups.iter_mut().zip(named) {
        if !named {
            group.members.clear();
        }
    }
}

/// Whether a pattern (`region/zone/subzone`, `*` for any, missing parts are any) covers a place.
pub(super) fn covers(pattern: &str, place: &Locality) -> bool {
    let mut parts = pattern.splitn(3, '/');
    [&place.region, &place.zone, &place.subzone].into_iter().enumerate().all(|(index, actual)| {
        match parts.next() {
            Some("*") => true,
            Some("") | None => index > 0 || actual.is_empty(),
            Some(wanted) => wanted == &**actual,
        }
    })
}

/// Values of [`region_rank`].
const REGION_RANKS: u32 = 5;

/// 0 the same place, 1 the same zone, 2 the same region, 3 elsewhere, 4 elsewhere although a
/// failover rule names another region.
fn region_rank(at: &Locality, proxy: &Locality, failover: &[Failover]) -> u32 {
    if at.region != proxy.region {
        let rule = failover.iter().find(|f| *f.from == *proxy.region);
        return if rule.is_some_and(|f| *f.to != *at.region) { 4 } else { 3 };
    }
    match (at.zone == proxy.zone, at.subzone == proxy.subzone) {
        (false, _) => 2,
        (true, false) => 1,
        (true, true) => 0,
    }
}

/// 0 the proxy's region, 1 the region to fail over to, 2 any other.
fn zone_rank(at: &Locality, proxy: &Locality, failover: &[Failover]) -> u32 {
    if at.region == proxy.region {
        return 0;
    }
    let rule = failover.iter().find(|f| *f.from == *proxy.region);
    if rule.is_some_and(|f| *f.to == *at.region) { 1 } else { 2 }
}

/// How far an endpoint is by labels: 0 when all agree, else the more the earlier the first
/// disagreement stands. Another network puts it behind everything of the own network.
pub(super) fn label_rank(endpoint: &Endpoint, labels: &[String], view: &Viewer<'_>) -> u32 {
    let count = u32::try_from(labels.len()).unwrap_or(u32::MAX / (2 * REGION_RANKS));
    let mut rank = 0;
    for (label, lowest) in labels.iter().zip((1..=count).rev()) {
        let (key, wanted) = match label.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (label.as_str(), proxy_label(view, label)),
        };
        if endpoint.labels.get(key).unwrap_or_default() == wanted.unwrap_or_default() {
            continue;
        }
        if lowest == count && key == NETWORK {
            rank += count;
            continue;
        }
        return rank + lowest;
    }
    rank
}

/// A label of the proxy; its place and network count as the topology labels.
fn proxy_label<'a>(view: &Viewer<'a>, key: &str) -> Option<&'a str> {
    let place = match key {
        "topology.kubernetes.io/region" => &*view.locality().region,
        "topology.kubernetes.io/zone" => &*view.locality().zone,
        "topology.istio.io/subzone" => &*view.locality().subzone,
        NETWORK => view.network(),
        _ => return view.label(key),
    };
    if place.is_empty() { view.label(key) } else { Some(place) }
}

/// Splits groups by rank and numbers the ranks that occur from 0 without gaps.
fn prioritize<'a>(groups: &mut Vec<Draft<'a>>, rank: impl Fn(&Locality, &Endpoint) -> u32) {
    let mut ranked: Vec<(u32, Draft<'a>)> = Vec::with_capacity(groups.len());
    for group in groups.drain(..) {
        let mut by_rank: BTreeMap<u32, Vec<(&'a Endpoint, u32)>> = BTreeMap::new();
        for member in group.members {
            by_rank.entry(rank(group.locality, member.0)).or_default().push(member);
        }
        ranked.extend(
            by_rank.into_iter().map(|(rank, members)| (rank, Draft::new(group.locality, members))),
        );
    }
    let mut ranks: Vec<u32> = ranked.iter().map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    groups.extend(ranked.into_iter().map(|(rank, mut group)| {
        let position = ranks.binary_search(&rank).unwrap_or_default();
        group.priority = u32::try_from(position).unwrap_or(u32::MAX);
        group
    }));
}
