//! Sharing and reuse never show: a mesh that lives through edits in one workspace, and proxies that
//! share one engine, get what a fresh start would give. And they are real: a change makes again
//! what it touches, and proxies that would get the same share it.

mod support;

#[path = "incremental/counts.rs"]
mod counts;
#[path = "incremental/life.rs"]
mod life;
#[path = "incremental/looks.rs"]
mod looks;

use life::Life;
use pilotfish::compile::{Compiled, Workspace};
use pilotfish::config::SourceFile;
use pilotfish::diag::Severity;
use pilotfish::generate;
use pilotfish::push::SnapshotCache;
use pilotfish::xds::{ResourceSet, TypeUrl};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::case::ProxySpec;
use support::mesh::documents::documents;
use support::mesh::edits::{Mesh, life};
use support::mesh::proxies::proxies;

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mesh_that_was_edited_is_served_like_one_that_was_just_read(
        (mesh, edits) in life(8),
        proxies in proxies(3),
        forget in vec(any::<bool>(), 8),
    ) {
        let mut life = Life::new(mesh, &proxies);
        life.check("at first")?;
        for (edit, forget) in edits.into_iter().zip(forget) {
            let what = format!("after {edit:?}");
            life.step(edit, forget);
            life.check(&what)?;
        }
    }

    #[test]
    fn who_shares_gets_what_he_would_get_alone(
        documents in documents(6..18),
        proxies in proxies(5),
    ) {
        let compiled = compile(&Mesh::new(documents));
        let cache = SnapshotCache::new(compiled.snapshot.clone());
        let resolve = |p: &ProxySpec| p.node().description().resolve(&compiled.snapshot);
        let resolved: Vec<_> = proxies.iter().map(resolve).collect::<Result<_, _>>().expect("good nodes");
        for proxy in &resolved {
            cache.generate(proxy);
        }
        for (proxy, spec) in resolved.iter().zip(&proxies) {
            let alone = generate::all(&compiled.snapshot, proxy);
            let shared = cache.generate(proxy);
            prop_assert!(shared.set == alone.set, "{}: {}", spec.name, differences(&shared.set, &alone.set));
            prop_assert_eq!(&shared.diagnostics, &alone.diagnostics, "{}", spec.name);
        }
    }
}

/// A fresh start.
fn compile(mesh: &Mesh) -> Compiled {
    let mut workspace = Workspace::new("cluster.local");
    for file in mesh.files().into_values() {
        workspace.replace_file(file);
    }
    workspace.set_mesh(mesh.settings());
    if let Some(secret) = mesh.certificates() {
        workspace.replace_secret(&secret);
    }
    workspace.compile()
}

/// The names of what differs.
fn differences(a: &ResourceSet, b: &ResourceSet) -> String {
    let mut differing = Vec::new();
    for type_url in TypeUrl::ALL {
        let names = a.of_type(type_url).chain(b.of_type(type_url)).map(|r| &r.name);
        let names: BTreeSet<_> = names.collect();
        for name in names {
            let what = match (a.get(type_url, name), b.get(type_url, name)) {
                (Some(a), Some(b)) if a == b => continue,
                (Some(_), Some(_)) => "differs",
                (Some(_), None) => "is too much",
                (None, _) => "is missing",
            };
            differing.push(format!("{} {name} {what}", type_url.short_name()));
        }
    }
    differing.join("\n")
}

#[test]
fn a_sidecar_document_elsewhere_changes_no_preference_between_zones() {
    let compiled = |more: &str| {
        let text = format!("{}{more}", include_str!("incremental/zones.yaml"));
        let mut workspace = Workspace::new("cluster.local");
        workspace.replace_file(SourceFile::new("mesh.yaml", text));
        let compiled = workspace.compile();
        let error = compiled.diagnostics.iter().find(|f| f.severity == Severity::Error);
        assert_eq!(error, None);
        compiled
    };
    let elsewhere = "---\n\
        apiVersion: networking.istio.io/v1\n\
        kind: Sidecar\n\
        metadata: {name: nobody, namespace: unused}\n\
        spec: {workloadSelector: {labels: {tier: front}}, egress: [{hosts: [./*]}]}\n";
    let (without, with) = (compiled(""), compiled(elsewhere));
    let proxy = |tier: &str| {
        let spec = sidecar("10.9.9.9", "client.default", json!({"LABELS": {"tier": tier}}));
        spec.node().description().resolve(&with.snapshot).expect("a good node")
    };
    let alone = |of: &Compiled, tier: &str| generate::all(&of.snapshot, &proxy(tier)).set;
    let cache = SnapshotCache::new(with.snapshot.clone());
    for tier in ["front", "back", "front"] {
        assert_eq!(alone(&with, tier), alone(&without, tier), "{tier}");
        assert_eq!(alone(&with, tier), cache.generate(&proxy(tier)).set, "{tier}, shared");
    }
    // The label does matter; else the rest would be no wonder.
    let endpoints = |tier: &str| {
        let found = alone(&with, tier);
        found
            .get(TypeUrl::Endpoint, "outbound|80||reviews.example")
            .cloned()
            .expect("an EDS cluster")
    };
    assert_ne!(endpoints("front"), endpoints("back"));
}

/// A sidecar with Istio's node id.
fn sidecar(address: &str, workload: &str, metadata: Value) -> ProxySpec {
    let namespace = workload.split_once('.').map_or("default", |(_, namespace)| namespace);
    ProxySpec {
        name: workload.to_owned(),
        id: format!("sidecar~{address}~{workload}~{namespace}.svc.cluster.local"),
        cluster: "client".to_owned(),
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        locality: "region-0/zone-0".to_owned(),
    }
}
