//! What clusters and endpoints are shared by, and what a change of endpoints costs.

use super::*;
use crate::generate::service::ServiceInput;
use crate::generate::test_support::Eyes;
use crate::generate::view::Looks;
use crate::generate::{Engine, View};

/// A rule for mutual TLS with the certificates of the proxy, and a view that has some.
fn mutual() -> (Facts, Parts) {
    let rules = vec![rule(with_tls(client_tls(ClientTlsMode::IstioMutual)))];
    let files = ClientCertificates { chain: "/c".into(), key: "/k".into(), root: "/r".into() };
    let options = Options { client_certificates: Some(files), ..Default::default() };
    (snapshot(vec![two_versions()], rules), Parts { options, ..sidecar() })
}

#[test]
fn endpoints_are_found_without_deciding_the_cluster_again() {
    let (facts, view) = mutual();
    let eyes = Eyes::new(&facts, &view);
    let planned = eyes.look(|scope| {
        let (service, rule) = scope.world.services().next().expect("there is one");
        let clusters = ServiceInput::of(scope.world, service, rule).clusters(&eyes.viewer());
        let viewer = eyes.viewer();
        let endpoints = clusters.endpoints(&two_versions().endpoints, &viewer);
        assert_eq!(viewer.looks(), Looks::default(), "the proxy's certificates do not matter");
        endpoints.planned
    });
    let sizes = |i: usize| planned[i].groups.iter().map(|g| g.members.len()).sum::<usize>();
    assert_eq!((planned.len(), sizes(0), sizes(1)), (2, 2, 1), "the port's and the subset's");
}

#[test]
fn endpoints_are_not_shared_by_views_whose_clusters_differ() {
    let (facts, with) = mutual();
    let engine = Engine::default();
    let snapshot = facts.snapshot();
    let has_endpoints = |parts: &Parts| {
        let made = engine.generate_shared(&snapshot, &View::from(parts.clone()));
        made.set.get(TypeUrl::Endpoint, DEFAULT).is_some()
    };
    assert!(has_endpoints(&with));
    assert!(!has_endpoints(&sidecar()), "without certificates there is no cluster");
}
