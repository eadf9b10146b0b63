//! Which endpoints a cluster gets, and in which order of priorities and weights.

use super::locality::{NETWORK, arrange, covers, label_rank};
use super::*;
use crate::generate::View;
use crate::generate::plan::cluster::Policy;
use crate::generate::test_support::{Parts, endpoint, sidecar};
use crate::model::{
    Distribute, Failover, LoadBalancer, LocalityLb, MeshSettings, OutlierDetection,
};

fn by(port: PortKey) -> Selection {
    Selection { port, labels: None, keeps_draining: false, only_first: false }
}

fn addresses(endpoints: &[&Endpoint]) -> Vec<String> {
    endpoints.iter().map(|e| e.address.to_string()).collect()
}

#[test]
fn eds_takes_addresses_and_sockets_but_no_names() {
    let endpoints = [
        endpoint("10.0.0.1", 80),
        endpoint("unix:///run/a", 80),
        endpoint("name.example", 80),
        endpoint("10.0.0.2", 81),
    ];
    let eds = by(PortKey::Name("p80".into()));
    assert_eq!(addresses(&eds.of(&endpoints)), ["10.0.0.1", "unix:///run/a"]);
    let dns = by(PortKey::Number(80));
    assert_eq!(addresses(&dns.of(&endpoints)), ["10.0.0.1", "unix:///run/a", "name.example"]);
    let one = Selection { only_first: true, ..dns };
    assert_eq!(addresses(&one.of(&endpoints)), ["10.0.0.1"]);
}

#[test]
fn repeated_addresses_count_once() {
    let endpoints = [endpoint("10.0.0.1", 80), endpoint("10.0.0.1", 80)];
    assert_eq!(group(&by(PortKey::Number(80)).of(&endpoints))[0].weight, 1);
}

#[test]
fn draining_endpoints_are_for_persistent_sessions() {
    let endpoints = [Endpoint { health: Health::Draining, ..endpoint("10.0.0.1", 80) }];
    let plain = by(PortKey::Number(80));
    assert!(plain.of(&endpoints).is_empty());
    let persistent = Selection { keeps_draining: true, ..plain };
    assert_eq!(persistent.of(&endpoints).len(), 1);
}

#[test]
fn groups_are_in_the_order_of_their_text() {
    let endpoints = [at("1.1.1.1", "a/z"), at("1.1.1.2", "a-b/z"), at("1.1.1.3", "")];
    let selected = by(PortKey::Number(80)).of(&endpoints);
    let order: Vec<String> = group(&selected).iter().map(|g| g.locality.to_string()).collect();
    assert_eq!(order, ["", "a-b/z", "a/z"]);
}

#[test]
fn weights_never_add_up_to_more_than_envoy_takes() {
    let heavy = |address: &str, weight| Endpoint { weight, ..endpoint(address, 80) };
    let endpoints = [heavy("1.1.1.1", u32::MAX), heavy("1.1.1.2", u32::MAX), heavy("1.1.1.3", 1)];
    let members = &group(&by(PortKey::Number(80)).of(&endpoints))[0].members;
    let total: u64 = members.iter().map(|(_, weight)| u64::from(*weight)).sum();
    assert!(total <= u64::from(u32::MAX), "{total}");
    assert!(members.iter().all(|(_, weight)| *weight >= 1));
}

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
    let mut groups = group(&endpoints);
    let view = Arc::new(View::from(view.clone()));
    let lb = LoadBalancer { locality: Some(setting.clone()), ..Default::default() };
    let outlier = OutlierDetection::default();
    let policy = Policy {
        load_balancer: Some(&lb),
        outlier_detection: (failover == FailoverOn::Unhealthy).then_some(&outlier),
        ..Default::default()
    };
    let arrangement = Arrangement::of(&policy, &MeshSettings::default());
    arrange(&mut groups, &arrangement, &Viewer::new(&view));
    let row = |g: &Draft<'_>| (g.locality.to_string(), g.priority, g.weight, g.members.len());
    groups.iter().map(row).collect()
}

fn row(locality: &str, priority: u32, weight: u32, members: usize) -> (String, u32, u32, usize) {
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
    assert_eq!([rank("n1", "1"), rank("n1", "2"), rank("n2", "1"), rank("n2", "2")], [0, 1, 2, 3]);
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
    for (pattern, expected) in
        [("*", true), ("r", true), ("r/*", true), ("r/z/s", true), ("r/z2", false), ("x", false)]
    {
        assert_eq!(covers(pattern, &place), expected, "{pattern}");
    }
}
