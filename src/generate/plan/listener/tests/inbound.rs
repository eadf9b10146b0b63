//! Listeners of what a sidecar's workload gets.

use super::{chains, codes, filters, manager_of, names};
use crate::generate::Viewer;
use crate::generate::filters::Filters;
use crate::generate::plan::listener::inbound::plan;
use crate::generate::plan::listener::{Listener, Routes};
use crate::generate::targets::InboundSite;
use crate::generate::test_support::{
    Facts, endpoint, line, origin, proxy_at, service, snapshot_with, workload,
};
use crate::model::{CaptureMode, IngressListener, ListenerPort, Protocol, Sidecar};
use crate::proxy::{Interception, Proxy, Role};
use std::sync::Arc;

fn inbound(snapshot: &Facts, proxy: &Proxy) -> (Vec<Arc<Listener>>, Vec<String>) {
    let (workload, view) = workload(snapshot, proxy);
    let view = Viewer::new(&view);
    let site = InboundSite { workload: &workload, view: &view, filters: Filters::default() };
    let plan = plan(&site);
    (plan.listeners.into_iter().map(Arc::new).collect(), codes(&plan.findings))
}

fn captured() -> Proxy {
    Proxy { role: Role::Sidecar, interception: Interception::Redirect, ..proxy_at("10.0.0.1") }
}

#[test]
fn a_workload_is_reached_on_the_ports_of_its_services() {
    let mut a =
        service("a.default", &[(80, Protocol::Grpc), (81, Protocol::Tcp), (82, Protocol::Auto)]);
    a.endpoints =
        [endpoint("10.0.0.1", 80), endpoint("10.0.0.1", 81), endpoint("10.0.0.1", 82)].into();
    Arc::make_mut(&mut a.endpoints)[0].target_port = 8080;
    let mut b = service("b.default", &[(90, Protocol::Tcp)]);
    b.endpoints = [endpoint("10.0.0.1", 90)].into();
    Arc::make_mut(&mut b.endpoints)[0].target_port = 8080;
    let snapshot = snapshot_with(|s| s.services = vec![a, b]);
    let (listeners, findings) = inbound(&snapshot, &captured());
    assert_eq!(names(&listeners), ["virtualInbound"]);
    assert_eq!(
        chains(&listeners[0]),
        [
            "[virtualInbound-blackhole] port=15006 BlackHoleCluster",
            "[virtualInbound-catchall-http] plain http? routes InboundPassthroughCluster",
            "[virtualInbound] plain InboundPassthroughCluster",
            "[0.0.0.0_81] port=81 plain inbound|81||",
            "[0.0.0.0_82] port=82 plain http? routes inbound|82||",
            "[0.0.0.0_82] port=82 plain inbound|82||",
            "[0.0.0.0_8080] port=8080 plain routes inbound|8080||",
        ]
    );
    assert_eq!(filters(&listeners[0]), ["original_dst", "http_inspector"]);
    assert!(listeners[0].default_chain.is_none());
    assert_eq!(findings, ["PF0403"]);
    let manager = manager_of(&listeners[0].chains[6]);
    assert_eq!(manager.stat_prefix, "inbound_0.0.0.0_8080;");
    assert!(manager.http2);
    let Routes::Inline(routes) = &manager.routes else { panic!("inline routes were expected") };
    assert_eq!(routes.virtual_host, "inbound|http|80");
    assert_eq!(routes.operation, "a.default:80/*");
    assert!(!routes.retries);
}

#[test]
fn without_interception_only_ingress_listeners_exist_and_they_bind() {
    let ingress = |number, protocol, bind: Option<&str>, capture_mode| IngressListener {
        port: ListenerPort { number, protocol, name: "p".into() },
        bind: bind.map(Into::into),
        capture_mode,
        default_endpoint: None,
        tls: None,
        connection_pool: None,
        span: line(5),
    };
    let mut a = service("a.default", &[(80, Protocol::Http), (8080, Protocol::Http)]);
    a.endpoints = [endpoint("10.0.0.1", 80)].into();
    let mut snapshot = snapshot_with(|s| s.services = vec![a]);
    let proxy = Proxy { interception: Interception::None, ..captured() };
    assert!(inbound(&snapshot, &proxy).0.is_empty());
    snapshot.sidecars = vec![Sidecar {
        origin: origin("Sidecar", "default", "s"),
        selector: None,
        egress: Vec::new(),
        ingress: vec![
            ingress(9080, Protocol::Http, None, CaptureMode::Default),
            ingress(8080, Protocol::Http, Some("127.0.0.1"), CaptureMode::Default),
            ingress(9081, Protocol::Tcp, None, CaptureMode::Iptables),
        ],
        outbound_traffic_policy: None,
        inbound_connection_pool: None,
    }];
    let (listeners, findings) = inbound(&snapshot, &proxy);
    assert_eq!(names(&listeners), ["10.0.0.1_9080"]);
    assert_eq!(chains(&listeners[0]), ["[10.0.0.1_9080] port=9080 plain routes inbound|9080||"]);
    assert_eq!(findings, ["PF0403", "PF0207"]);
}
