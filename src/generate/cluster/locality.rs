//! Locality load balancing: which endpoints are near, and what follows from it. Priorities and
//! weights of groups are set here, for EDS and for the assignments of DNS clusters alike.

use super::endpoints::Group;
use crate::generate::Viewer;
use crate::model::{
    Endpoint, Failover, LoadBalancer, Locality, LocalityLb, MeshSettings, ZoneAwareLb,
};
use std::collections::BTreeMap;

const NETWORK: &str = "topology.istio.io/network";

/// The setting that holds for a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LocalitySetting<'a> {
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
    pub(super) fn effective(
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
    pub(super) fn is_weighted(self, failover: FailoverOn) -> bool {
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
pub(super) enum FailoverOn {
    /// No endpoint is ever taken out.
    Nothing,
    /// Outlier detection takes endpoints out.
    Unhealthy,
}

/// Sets priorities and weights of the groups as the proxy at this place should see them.
pub(super) fn arrange(
    groups: &mut Vec<Group<'_>>,
    setting: LocalitySetting<'_>,
    failover: FailoverOn,
    view: &Viewer<'_>,
) {
    match setting {
        LocalitySetting::Off => {}
        LocalitySetting::Locality(locality) if !locality.distribute.is_empty() => {
            distribute(groups, locality, view);
        }
        LocalitySetting::Locality(locality) => {
            if failover == FailoverOn::Unhealthy {
                let by_region =
                    |at: &Locality| region_rank(at, &view.locality(), &locality.failover);
                let labels = &locality.failover_priority;
                match (labels.is_empty(), locality.failover.is_empty()) {
                    (true, _) => prioritize(groups, |at, _| by_region(at)),
                    (false, true) => prioritize(groups, |_, e| label_rank(e, labels, view)),
                    (false, false) => prioritize(groups, |at, e| {
                        label_rank(e, labels, view) * REGION_RANKS + by_region(at)
                    }),
                }
            }
        }
        LocalitySetting::ZoneAware(zone_aware) => {
            if zone_aware.enabled && failover == FailoverOn::Unhealthy {
                let labels = &zone_aware.failover_priority;
                prioritize(groups, |at, e| {
                    label_rank(e, labels, view) * 3
                        + zone_rank(at, &view.locality(), &zone_aware.failover)
                });
            }
        }
    }
}

/// `distribute`: the first rule for the proxy's place shares traffic out. Localities that it does
/// not name lose their endpoints.
fn distribute(groups: &mut [Group<'_>], setting: &LocalityLb, view: &Viewer<'_>) {
    let Some(rule) = setting.distribute.iter().find(|d| covers(&d.from, &view.locality())) else {
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
fn covers(pattern: &str, place: &Locality) -> bool {
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
fn label_rank(endpoint: &Endpoint, labels: &[String], view: &Viewer<'_>) -> u32 {
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
fn prioritize<'a>(groups: &mut Vec<Group<'a>>, rank: impl Fn(&Locality, &Endpoint) -> u32) {
    let mut ranked: Vec<(u32, Group<'a>)> = Vec::with_capacity(groups.len());
    for group in groups.drain(..) {
        let mut by_rank: BTreeMap<u32, Vec<(&'a Endpoint, u32)>> = BTreeMap::new();
        for member in group.members {
            by_rank.entry(rank(group.locality, member.0)).or_default().push(member);
        }
        ranked.extend(
            by_rank.into_iter().map(|(rank, members)| (rank, Group::new(group.locality, members))),
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

#[cfg(test)]
mod tests {
    use super::super::endpoints;
    use super::*;
    use crate::generate::View;
    use crate::generate::test_support::{Parts, endpoint, sidecar};
    use crate::model::Distribute;
    use std::sync::Arc;

    fn at(address: &str, locality: &str) -> Endpoint {
        let locality = Locality::parse(locality);
        Endpoint { locality, ..endpoint(address, 80) }
    }

    fn view(locality: &str) -> Parts {
        Parts { locality: Locality::parse(locality), ..sidecar() }
    }

    fn setting() -> LocalityLb {
        LocalityLb {
            enabled: true,
            distribute: Vec::new(),
            failover: Vec::new(),
            failover_priority: Vec::new(),
        }
    }

    fn arranged(
        endpoints: &[Endpoint],
        setting: &LocalityLb,
        failover: FailoverOn,
        view: &Parts,
    ) -> Vec<(String, u32, u32, usize)> {
        let endpoints: Vec<&Endpoint> = endpoints.iter().collect();
        let mut groups = endpoints::group(&endpoints);
        let view = Arc::new(View::from(view.clone()));
        let viewer = Viewer::new(&view);
        arrange(&mut groups, LocalitySetting::Locality(setting), failover, &viewer);
        let row = |g: &Group<'_>| (g.locality.to_string(), g.priority, g.weight, g.members.len());
        groups.iter().map(row).collect()
    }

    fn row(
        locality: &str,
        priority: u32,
        weight: u32,
        members: usize,
    ) -> (String, u32, u32, usize) {
        (locality.to_owned(), priority, weight, members)
    }

    #[test]
    fn nearer_places_come_first_and_priorities_have_no_gaps() {
        let endpoints =
            [at("1.1.1.1", "r1/z1/s1"), at("1.1.1.2", "r1/z2/s1"), at("1.1.1.3", "r2/z1/s1")];
        let proxy = view("r1/z1/s1");
        let result = arranged(&endpoints, &setting(), FailoverOn::Unhealthy, &proxy);
        assert_eq!(
            result,
            [row("r1/z1/s1", 0, 1, 1), row("r1/z2/s1", 1, 1, 1), row("r2/z1/s1", 2, 1, 1)]
        );
        let without = arranged(&endpoints, &setting(), FailoverOn::Nothing, &proxy);
        assert!(without.iter().all(|(_, priority, _, _)| *priority == 0));
    }

    #[test]
    fn a_failover_rule_prefers_its_region() {
        let endpoints = [at("1.1.1.1", "r1"), at("1.1.1.2", "r2"), at("1.1.1.3", "r3")];
        let failover = vec![Failover { from: "r1".into(), to: "r3".into() }];
        let setting = LocalityLb { failover, ..setting() };
        let result = arranged(&endpoints, &setting, FailoverOn::Unhealthy, &view("r1"));
        assert_eq!(result, [row("r1", 0, 1, 1), row("r2", 2, 1, 1), row("r3", 1, 1, 1)]);
    }

    #[test]
    fn distribute_shares_by_weight_and_empties_the_rest() {
        let endpoints = [
            at("1.1.1.1", "r1/z1/s1"),
            at("1.1.1.2", "r1/z1/s2"),
            at("1.1.1.3", "r1/z2"),
            at("1.1.1.4", "r2"),
            at("1.1.1.5", "r3"),
        ];
        let to = [("r1/z1/*", 80), ("r1/z2", 15), ("r2", 5)];
        let rule = Distribute {
            from: "r1/z1/*".into(),
            to: to.map(|(place, share)| (place.to_owned(), share)).into(),
        };
        let setting = LocalityLb { distribute: vec![rule], ..setting() };
        let result = arranged(&endpoints, &setting, FailoverOn::Nothing, &view("r1/z1/s9"));
        assert_eq!(
            result,
            [
                row("r1/z1/s1", 0, 40, 1),
                row("r1/z1/s2", 0, 40, 1),
                row("r1/z2", 0, 15, 1),
                row("r2", 0, 5, 1),
                row("r3", 0, 1, 0),
            ]
        );
        let elsewhere = arranged(&endpoints, &setting, FailoverOn::Nothing, &view("r2"));
        assert!(elsewhere.iter().all(|(_, _, weight, members)| (*weight, *members) == (1, 1)));
    }

    #[test]
    fn labels_order_endpoints_and_split_groups() {
        let labelled = |address: &str, labels: &[(&str, &str)]| Endpoint {
            labels: labels.iter().copied().collect(),
            ..endpoint(address, 80)
        };
        let endpoints = [
            labelled("1.1.1.1", &[("a", "1"), ("b", "1")]),
            labelled("1.1.1.2", &[("a", "1"), ("b", "2")]),
            labelled("1.1.1.3", &[("a", "2"), ("b", "1")]),
        ];
        let setting = LocalityLb { failover_priority: vec!["a".into(), "b".into()], ..setting() };
        let proxy = Parts { labels: [("a", "1"), ("b", "1")].into_iter().collect(), ..sidecar() };
        let result = arranged(&endpoints, &setting, FailoverOn::Unhealthy, &proxy);
        assert_eq!(result, [row("", 0, 1, 1), row("", 1, 1, 1), row("", 2, 1, 1)]);

        let fixed = LocalityLb { failover_priority: vec!["a=2".into()], ..setting };
        let result = arranged(&endpoints, &fixed, FailoverOn::Unhealthy, &proxy);
        assert_eq!(result, [row("", 0, 1, 1), row("", 1, 2, 2)], "the proxy's label is ignored");
    }

    #[test]
    fn another_network_ranks_behind_all_of_the_own_network() {
        let labels = vec![NETWORK.to_owned(), "a".to_owned()];
        let of = |network: &str, a: &str| Endpoint {
            labels: [(NETWORK, network), ("a", a)].into_iter().collect(),
            ..endpoint("1.1.1.1", 80)
        };
        let proxy =
            Parts { network: "n1".into(), labels: [("a", "1")].into_iter().collect(), ..sidecar() };
        let proxy = Arc::new(View::from(proxy));
        let viewer = Viewer::new(&proxy);
        let rank = |network: &str, a: &str| label_rank(&of(network, a), &labels, &viewer);
        assert_eq!(
            [rank("n1", "1"), rank("n1", "2"), rank("n2", "1"), rank("n2", "2")],
            [0, 1, 2, 3]
        );
    }

    #[test]
    fn a_setting_that_is_off_hides_the_mesh() {
        let mesh = MeshSettings::default();
        let off = LocalityLb { enabled: false, ..setting() };
        let lb = LoadBalancer { locality: Some(off), ..Default::default() };
        assert_eq!(LocalitySetting::effective(Some(&lb), &mesh), LocalitySetting::Off);
        let by_mesh = LocalitySetting::effective(None, &mesh);
        assert!(matches!(by_mesh, LocalitySetting::Locality(_)));
        assert!(!by_mesh.is_weighted(FailoverOn::Unhealthy), "plain priorities need no weights");
    }

    #[test]
    fn patterns_cover_places_by_segment() {
        let place = Locality::parse("r/z/s");
        for (pattern, expected) in [
            ("*", true),
            ("r", true),
            ("r/*", true),
            ("r/z/s", true),
            ("r/z2", false),
            ("x", false),
        ] {
            assert_eq!(covers(pattern, &place), expected, "{pattern}");
        }
    }
}
