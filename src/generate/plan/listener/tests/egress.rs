//! Listeners of what a sidecar's workload sends.

use super::{chains, filters, manager_of, named, names, proxy_of};
use crate::generate::plan::listener::egress::plan;
use crate::generate::plan::listener::{Intake, Listener};
use crate::generate::test_support::{Eyes, Facts, Parts, service, sidecar, snapshot_with};
use crate::model::{AccessLog, AccessLogFormat, OutboundMode, Protocol};
use crate::proxy::Interception;
use std::sync::Arc;

fn egress(snapshot: &Facts, view: &Parts) -> Vec<Arc<Listener>> {
    Eyes::new(snapshot, view).look(|scope| plan(scope).listeners)
}

#[test]
fn captured_traffic_falls_through_to_where_unknown_traffic_goes() {
    let mut snapshot = snapshot_with(|s| {
        s.services = vec![service("a.x", &[(80, Protocol::Http), (443, Protocol::Tls)])];
    });
    let listeners = egress(&snapshot, &sidecar());
    assert_eq!(names(&listeners), ["virtualOutbound", "0.0.0.0_80", "0.0.0.0_443"]);
    assert_eq!(
        chains(&listeners[0]),
        [
            "[virtualOutbound-blackhole] port=15001 BlackHoleCluster",
            "[virtualOutbound-catchall-tcp] PassthroughCluster"
        ]
    );
    let intake = Intake::Redirected { transparent: false, hands_over: true };
    assert_eq!(listeners[0].intake, intake);
    let http = &*listeners[1];
    assert_eq!(
        chains(http),
        ["plain http? rds 80", "else [PassthroughFilterChain] PassthroughCluster"]
    );
    assert_eq!(filters(http), ["http_inspector"]);
    assert_eq!(http.intake, Intake::HandedOver);
    assert!(http.filters_timeout.is_some());
    assert_eq!(filters(&listeners[2]), ["tls_inspector"]);
    snapshot.mesh.outbound_traffic_policy.mode = OutboundMode::RegistryOnly;
    let listeners = egress(&snapshot, &sidecar());
    assert_eq!(chains(&listeners[1])[1], "else [PassthroughFilterChain] BlackHoleCluster");
}

#[test]
fn a_match_all_chain_is_the_default_unless_it_is_alone() {
    let services = vec![
        service("t.x", &[(9000, Protocol::Tcp), (9001, Protocol::Tcp)]),
        service("h.x", &[(9001, Protocol::Http)]),
    ];
    let snapshot = snapshot_with(|s| s.services = services);
    let listeners = egress(&snapshot, &sidecar());
    assert_eq!(chains(named(&listeners, "0.0.0.0_9000")), ["outbound|9000||t.x"]);
    assert_eq!(
        chains(named(&listeners, "0.0.0.0_9001")),
        ["plain http? rds 9001", "else outbound|9001||t.x"]
    );
}

#[test]
fn without_interception_listeners_bind_and_nothing_falls_through() {
    let services = vec![service("a.x", &[(8080, Protocol::Http), (8443, Protocol::Tls)])];
    let snapshot = snapshot_with(|s| s.services = services);
    let view = Parts { interception: Interception::None, ..sidecar() };
    let listeners = egress(&snapshot, &view);
    assert_eq!(names(&listeners), ["127.0.0.1_8080", "127.0.0.1_8443"]);
    assert_eq!(chains(&listeners[0]), ["rds 8080"]);
    assert_eq!(chains(&listeners[1]), ["sni=a.x outbound|8443||a.x"]);
    assert_eq!(listeners[0].intake, Intake::Dialled);
    assert!(filters(&listeners[0]).is_empty());
}

#[test]
fn the_access_log_is_on_chains_and_on_listeners_that_may_refuse() {
    let mut snapshot =
        snapshot_with(|s| s.services = vec![service("a.x", &[(80, Protocol::Http)])]);
    snapshot.mesh.access_log =
        Some(AccessLog { path: "/dev/stdout".into(), format: AccessLogFormat::Json(None) });
    let listeners = egress(&snapshot, &sidecar());
    assert!(listeners[0].access_log.is_some());
    assert!(proxy_of(&listeners[0].chains[0]).access_log.is_none());
    assert!(proxy_of(&listeners[0].chains[1]).access_log.is_some());
    assert!(listeners[1].access_log.is_none());
    assert!(manager_of(&listeners[1].chains[0]).access_log.is_some());
}

#[test]
fn a_chain_says_which_documents_it_comes_from() {
    let snapshot = snapshot_with(|s| s.services = vec![service("a.x", &[(90, Protocol::Tcp)])]);
    let listeners = egress(&snapshot, &sidecar());
    let because = &named(&listeners, "0.0.0.0_90").chains[0].because;
    assert_eq!(because.reason, "a service port");
    assert_eq!(because.sources[0].name.to_string(), "default/a.x");
    let unknown = &listeners[0].chains[1].because;
    assert_eq!(unknown.reason, "the policy for unknown destinations");
    assert!(unknown.sources.is_empty());
}
