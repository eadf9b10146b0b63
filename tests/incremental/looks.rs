//! One by one: what a resource depends on decides who shares it. The pairs here differ in one
//! thing; random ones rarely differ in so little and get something else all the same.

use crate::sidecar;
use crate::support::case::ProxySpec;
use crate::support::mesh::documents::{CERTIFICATE, KEY};
use pilotfish::compile::Workspace;
use pilotfish::config::{SecretFiles, SourceFile};
use pilotfish::generate;
use pilotfish::push::SnapshotCache;
use pilotfish::xds::TypeUrl;
use serde_json::{Value, json};
use std::sync::Arc;

fn workspace() -> Workspace {
    let mut workspace = Workspace::new("cluster.local");
    let text = include_str!("looks.yaml");
    workspace.replace_file(SourceFile::new("mesh.yaml", text));
    workspace
}

fn client(metadata: Value) -> ProxySpec {
    sidecar("10.9.9.9", "client.default", metadata)
}

fn edge(address: &str) -> ProxySpec {
    let node = sidecar(address, "edge.default", json!({}));
    ProxySpec { id: node.id.replace("sidecar~", "router~"), ..node }
}

#[test]
fn proxies_that_differ_in_one_thing_that_matters_do_not_share() {
    let base = || client(json!({"NAMESPACE": "default"}));
    let with = |name: &str, value: Value| {
        let mut spec = base();
        spec.metadata.insert(name.to_owned(), value);
        spec
    };
    let domain = |domain: &str| {
        let spec = base();
        ProxySpec { id: spec.id.replace("default.svc.cluster.local", domain), ..spec }
    };
    let table = [
        ("role", edge("10.9.9.9"), base()),
        ("namespace", with("NAMESPACE", json!("other")), base()),
        ("domain", domain("other.svc.cluster.local"), base()),
        ("cluster", domain("default.svc.mesh.example"), base()),
        ("label", with("LABELS", json!({"tier": "front"})), base()),
        ("locality", ProxySpec { locality: "region-1/zone-0".to_owned(), ..base() }, base()),
        ("network", with("NETWORK", json!("far")), base()),
        ("families", with("INSTANCE_IPS", json!("fd00::1")), base()),
        ("interception", with("INTERCEPTION_MODE", json!("NONE")), base()),
        ("options", with("HTTP10", json!("1")), base()),
        ("ports", edge("10.0.7.1"), edge("10.0.7.2")),
    ];
    let snapshot = workspace().compile().snapshot;
    for (what, a, b) in &table {
        let resolve =
            |spec: &ProxySpec| spec.node().description().resolve(&snapshot).expect("a good node");
        for (first, second) in [(a, b), (b, a)] {
            let (first, second) = (resolve(first), resolve(second));
            let alone = generate::all(&snapshot, &second);
            assert_ne!(generate::all(&snapshot, &first).set, alone.set, "{what} does not matter");
            let cache = SnapshotCache::new(snapshot.clone());
            cache.generate(&first);
            assert!(cache.generate(&second).set == alone.set, "{what}");
        }
    }
}

#[test]
fn certificates_that_come_and_go_do_so_for_proxies_too() {
    let part = |name: &str, text: &str| (name.to_owned(), Arc::from(text.as_bytes()));
    let files = SecretFiles {
        name: "cred".into(),
        path: "secrets/cred".into(),
        parts: [part("tls.crt", CERTIFICATE), part("tls.key", KEY)].into(),
    };
    let mut workspace = workspace();
    let mut cache: Option<SnapshotCache> = None;
    let mut serve = |workspace: &mut Workspace| {
        let snapshot = workspace.compile().snapshot;
        let now = match &cache {
            Some(before) => before.next(snapshot.clone()),
            None => SnapshotCache::new(snapshot.clone()),
        };
        let proxy = edge("10.0.7.1").node().description().resolve(&snapshot).expect("a good node");
        let secrets = now.generate(&proxy).set.len(TypeUrl::Secret);
        cache = Some(now);
        secrets
    };
    assert_eq!(serve(&mut workspace), 0);
    workspace.replace_secret(&files);
    assert_eq!(serve(&mut workspace), 1);
    workspace.remove_secret("cred");
    assert_eq!(serve(&mut workspace), 0);
}
