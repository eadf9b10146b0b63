//! Outbound clusters and their endpoints.

use super::*;

#[test]
fn a_plain_cluster_is_istios() {
    let snapshot = snapshot(vec![two_versions()], vec![]);
    let generated = generated(&snapshot, &sidecar());
    let cluster = cluster(&generated, DEFAULT);
    assert!(has_type(&cluster, DiscoveryType::Eds));
    let eds = cluster.eds_cluster_config.expect("EDS is configured");
    assert_eq!(eds.service_name, DEFAULT);
    assert_eq!(cluster.connect_timeout.map(|t| t.seconds), Some(10));
    assert_eq!(cluster.lb_policy, i32::from(LbPolicy::LeastRequest));
    assert_eq!(cluster.alt_stat_name, "outbound|80||a.example;");
    let common = cluster.common_lb_config.expect("it is there always");
    assert_eq!(common.healthy_panic_threshold.map(|p| p.value), Some(0.0));
    assert_eq!(cluster.transport_socket, None);
    assert!(cluster.typed_extension_protocol_options.is_empty());
    let endpoints = assignment(&generated, DEFAULT).expect("EDS answers it");
    assert_eq!(addresses(&endpoints), ["10.0.0.1", "10.0.0.2"]);
}

#[test]
fn every_proxy_has_a_black_hole_and_an_intercepted_sidecar_the_passthroughs() {
    let snapshot = snapshot(vec![], vec![]);
    let names = |view: &Parts| -> Vec<String> {
        let generated = generated(&snapshot, view);
        generated.set.of_type(TypeUrl::Cluster).map(|r| r.name.to_string()).collect()
    };
    let all = ["BlackHoleCluster", "InboundPassthroughCluster", "PassthroughCluster"];
    assert_eq!(names(&sidecar()), all);
    assert_eq!(names(&router()), ["BlackHoleCluster"]);
    let bound = Parts { interception: Interception::None, ..sidecar() };
    assert_eq!(names(&bound), ["BlackHoleCluster"], "nothing has an original destination");
}

#[test]
fn the_mesh_pool_reaches_the_passthrough_but_not_its_outlier_detection() {
    let mut snapshot = snapshot(vec![two_versions()], vec![]);
    let tcp = TcpPool { max_connections: 7, ..Default::default() };
    snapshot.mesh.default_connection_pool = Some(ConnectionPool { tcp, ..Default::default() });
    snapshot.mesh.default_outlier_detection = Some(OutlierDetection::default());
    let generated = generated(&snapshot, &sidecar());
    let limit = |name: &str| {
        let breakers = cluster(&generated, name).circuit_breakers.expect("they are set");
        breakers.thresholds[0].max_connections.map(|v| v.value)
    };
    assert_eq!(limit("PassthroughCluster"), Some(7));
    assert_eq!(limit(DEFAULT), Some(7));
    assert_eq!(cluster(&generated, "PassthroughCluster").outlier_detection, None);
    assert!(cluster(&generated, DEFAULT).outlier_detection.is_some());
}

#[test]
fn udp_ports_have_no_cluster() {
    let snapshot = snapshot(vec![service(HOST, &[(53, Protocol::Udp)])], vec![]);
    assert!(!has_cluster(&generated(&snapshot, &sidecar()), "outbound|53||a.example"));
}

#[test]
fn a_subset_has_a_cluster_and_its_own_endpoints() {
    let snapshot = snapshot(vec![two_versions()], vec![rule(TrafficPolicy::default())]);
    let generated = generated(&snapshot, &sidecar());
    assert!(has_type(&cluster(&generated, V1), DiscoveryType::Eds));
    let endpoints = assignment(&generated, V1).expect("EDS answers it");
    assert_eq!(addresses(&endpoints), ["10.0.0.1"]);
}

#[test]
fn a_static_service_without_endpoints_has_an_empty_assignment() {
    let snapshot = snapshot(vec![service(HOST, &[(80, Protocol::Http)])], vec![]);
    let generated = generated(&snapshot, &sidecar());
    assert!(has_cluster(&generated, DEFAULT));
    let empty = assignment(&generated, DEFAULT).expect("EDS answers it");
    assert_eq!((&*empty.cluster_name, empty.endpoints.len()), (DEFAULT, 0));
}

#[test]
fn a_dns_cluster_carries_its_endpoints_and_an_explicit_family() {
    let snapshot = snapshot(vec![by_dns(Resolution::Dns)], vec![]);
    for (ip_mode, family) in [
        (IpMode::V4, pb::dns_common::DnsLookupFamily::V4Only),
        (IpMode::Dual, pb::dns_common::DnsLookupFamily::V4Only),
        (IpMode::V6, pb::dns_common::DnsLookupFamily::V6Only),
    ] {
        let generated = generated(&snapshot, &Parts { ip_mode, ..sidecar() });
        let cluster = cluster(&generated, DEFAULT);
        let dns = dns_settings(&cluster);
        assert_eq!(dns.dns_lookup_family, i32::from(family));
        assert!(!dns.all_addresses_in_single_endpoint);
        let inline = cluster.load_assignment.expect("endpoints are inline");
        assert_eq!(addresses(&inline), ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(cluster.eds_cluster_config, None);
        assert_eq!(assignment(&generated, DEFAULT), None);
    }
}

#[test]
fn a_logical_dns_cluster_has_exactly_one_endpoint() {
    let mut service = by_dns(Resolution::DnsRoundRobin);
    Arc::make_mut(&mut service.endpoints)[1].locality = Locality::parse("r2");
    let snapshot = snapshot(vec![service], vec![]);
    let cluster = cluster(&generated(&snapshot, &sidecar()), DEFAULT);
    assert!(dns_settings(&cluster).all_addresses_in_single_endpoint);
    let inline = cluster.load_assignment.expect("endpoints are inline");
    assert_eq!(addresses(&inline), ["10.0.0.1"]);
}

#[test]
fn a_dns_subset_without_endpoints_has_no_cluster() {
    let mut service = by_dns(Resolution::Dns);
    let v2 = |e: &&Endpoint| e.labels.get("version") == Some("v2");
    service.endpoints = service.endpoints.iter().filter(v2).cloned().collect();
    let with_v2 = snapshot(vec![service], vec![rule(TrafficPolicy::default())]);
    let generated_v2 = generated(&with_v2, &sidecar());
    assert!(has_cluster(&generated_v2, DEFAULT) && !has_cluster(&generated_v2, V1));

    let empty = Service { endpoints: Arc::default(), ..by_dns(Resolution::Dns) };
    let none = generated(&snapshot(vec![empty], vec![]), &sidecar());
    assert!(!has_cluster(&none, DEFAULT));
}

#[test]
fn resolution_none_depends_on_the_kind_of_proxy() {
    let mut service = service(HOST, &[(80, Protocol::Tcp)]);
    service.resolution = Resolution::None;
    service.ports[0].target_port = Some(8080);
    let snapshot = snapshot(vec![service], vec![]);
    let at_sidecar = generated(&snapshot, &sidecar());
    let original = cluster(&at_sidecar, DEFAULT);
    assert!(has_type(&original, DiscoveryType::OriginalDst));
    assert_eq!(original.lb_policy, i32::from(LbPolicy::ClusterProvided));
    let Some(pb::cluster::cluster::LbConfig::OriginalDstLbConfig(lb)) = original.lb_config else {
        panic!("targetPort overrides the port")
    };
    assert_eq!(lb.upstream_port_override.map(|v| v.value), Some(8080));
    assert_eq!(assignment(&at_sidecar, DEFAULT), None);

    let at_router = generated(&snapshot, &router());
    assert!(has_type(&cluster(&at_router, DEFAULT), DiscoveryType::Eds));
    let empty = assignment(&at_router, DEFAULT).expect("EDS answers it");
    assert!(empty.endpoints.is_empty());
}

#[test]
fn passthrough_balancing_makes_an_original_destination_cluster() {
    for service in [two_versions(), by_dns(Resolution::Dns)] {
        let rules = vec![rule(with_lb(SimpleLb::Passthrough))];
        let generated = generated(&snapshot(vec![service], rules), &router());
        let cluster = cluster(&generated, DEFAULT);
        assert!(has_type(&cluster, DiscoveryType::OriginalDst));
        assert_eq!(cluster.lb_policy, i32::from(LbPolicy::ClusterProvided));
        assert_eq!((cluster.load_assignment, cluster.eds_cluster_config), (None, None));
        assert_eq!(assignment(&generated, DEFAULT), None);
    }
}

#[test]
fn a_passthrough_subset_leaves_its_siblings_alone() {
    let mut rule = rule(TrafficPolicy::default());
    rule.subsets.push(subset("v2", Some(with_lb(SimpleLb::Passthrough))));
    let generated = generated(&snapshot(vec![two_versions()], vec![rule]), &sidecar());
    let v2 = cluster(&generated, "outbound|80|v2|a.example");
    assert!(has_type(&v2, DiscoveryType::OriginalDst));
    assert!(has_type(&cluster(&generated, V1), DiscoveryType::Eds));
    assert!(has_type(&cluster(&generated, DEFAULT), DiscoveryType::Eds));
}

#[test]
fn dynamic_dns_is_left_out() {
    let mut service = service("*.example", &[(80, Protocol::Http)]);
    service.resolution = Resolution::DynamicDns;
    let generated = generated(&snapshot(vec![service], vec![]), &sidecar());
    assert!(!has_cluster(&generated, "outbound|80||*.example"));
    // Its kind has said that it is not supported yet.
    assert_eq!(codes(&generated), []);
}

#[test]
fn outlier_detection_of_the_rule_makes_endpoints_fail_over_and_that_of_the_mesh_does_not() {
    let mut service = two_versions();
    Arc::make_mut(&mut service.endpoints)[0].locality = Locality::parse("r1/z1");
    Arc::make_mut(&mut service.endpoints)[1].locality = Locality::parse("r2/z1");
    let here = Parts { locality: Locality::parse("r1/z1"), ..sidecar() };
    let priorities = |snapshot: &Facts| -> Vec<u32> {
        let generated = generated(snapshot, &here);
        let endpoints = assignment(&generated, DEFAULT).expect("EDS answers it").endpoints;
        endpoints.iter().map(|l| l.priority).collect()
    };
    let outlier = Some(OutlierDetection::default());
    let policy = TrafficPolicy { outlier_detection: outlier.clone(), ..Default::default() };
    assert_eq!(priorities(&snapshot(vec![service.clone()], vec![rule(policy)])), [0, 1]);
    let mut by_mesh = snapshot(vec![service], vec![]);
    by_mesh.mesh.default_outlier_detection = outlier;
    assert_eq!(priorities(&by_mesh), [0, 0]);
}
