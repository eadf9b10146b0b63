//! Inbound clusters.

use super::*;

/// A service of the port 80 whose workload listens on 8080.
fn served(host: &str, protocol: Protocol) -> Service {
    let mut service = service(host, &[(80, protocol)]);
    service.endpoints = [Endpoint { target_port: 8080, ..endpoint("10.0.0.1", 80) }].into();
    service
}

fn at_proxy(snapshot: &Facts, proxy: &Proxy) -> Generated {
    acceptable(generate::all(&snapshot.snapshot(), proxy))
}

#[test]
fn services_of_one_target_port_share_an_inbound_cluster() {
    let services = vec![served("a.example", Protocol::Grpc), served("b.example", Protocol::Http)];
    let generated = at_proxy(&snapshot(services, vec![]), &proxy_at("10.0.0.1"));
    let cluster = cluster(&generated, "inbound|8080||");
    assert!(has_type(&cluster, DiscoveryType::OriginalDst));
    assert!(http_options(&cluster).is_some(), "the first service speaks HTTP/2");
    let source = cluster.upstream_bind_config.and_then(|b| b.source_address);
    assert_eq!(source.map(|s| s.address), Some("127.0.0.6".to_owned()));
}

#[test]
fn without_interception_only_ingress_listeners_have_inbound_clusters() {
    let proxy = Proxy { interception: Interception::None, ..proxy_at("10.0.0.1") };
    let mut snapshot = snapshot(vec![served(HOST, Protocol::Http)], vec![]);
    assert!(!has_cluster(&at_proxy(&snapshot, &proxy), "inbound|8080||"));

    let http = HttpPool { http2_max_requests: 3, ..Default::default() };
    let pool = ConnectionPool { http, ..Default::default() };
    let listener = |number, default_endpoint| IngressListener {
        port: ListenerPort { number, protocol: Protocol::Http, name: Arc::from("http") },
        bind: None,
        capture_mode: crate::model::CaptureMode::Default,
        default_endpoint: Some(default_endpoint),
        tls: None,
        connection_pool: (number == 9001).then(|| pool.clone()),
        span: span(),
    };
    let localhost = "127.0.0.1".parse().expect("an address");
    snapshot.sidecars = vec![Sidecar {
        origin: origin("Sidecar", "default", "s"),
        selector: None,
        egress: vec![],
        ingress: vec![
            listener(9001, DefaultEndpoint::Loopback(localhost, 9101)),
            listener(9002, DefaultEndpoint::Instance(9102)),
            listener(9003, DefaultEndpoint::Pipe(Arc::from("/run/app"))),
        ],
        outbound_traffic_policy: None,
        inbound_connection_pool: None,
    }];
    let generated = at_proxy(&snapshot, &proxy);
    let host = |port: u16| {
        let cluster = cluster(&generated, &format!("inbound|{port}||"));
        addresses(&cluster.load_assignment.expect("it has one host"))
    };
    assert_eq!(host(9001), ["127.0.0.1"]);
    assert_eq!(host(9002), ["10.0.0.1"]);
    assert_eq!(host(9003), ["/run/app"]);
    let breakers = cluster(&generated, "inbound|9001||").circuit_breakers.expect("they are set");
    assert_eq!(breakers.thresholds[0].max_requests.map(|v| v.value), Some(3));
    assert!(!has_cluster(&generated, "inbound|8080||"));
}
