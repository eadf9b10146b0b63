//! What is made again after a change, counted.

use crate::sidecar;
use pilotfish::compile::{Compiled, Workspace};
use pilotfish::config::SourceFile;
use pilotfish::diag::Diagnostic;
use pilotfish::generate::{Generated, Statistics};
use pilotfish::proxy::Proxy;
use pilotfish::push::SnapshotCache;
use pilotfish::xds::{Resource, TypeUrl};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;

/// How many namespaces there are, each with a service of its own.
const NAMESPACES: usize = 100;

/// A mesh of several files that is served to a sidecar in each namespace.
struct Served {
    workspace: Workspace,
    compiled: Compiled,
    cache: SnapshotCache,
    given: Vec<Arc<Generated>>,
}

impl Served {
    fn new(files: &[(&str, String)]) -> Served {
        let mut workspace = Workspace::new("cluster.local");
        for (path, text) in files {
            workspace.replace_file(SourceFile::new(*path, text.as_str()));
        }
        let compiled = workspace.compile();
        assert_eq!(pilotfish::diag::concise(&compiled.diagnostics), "");
        let cache = SnapshotCache::new(compiled.snapshot.clone());
        let mut served = Served { workspace, compiled, cache, given: Vec::new() };
        served.given = served.generate();
        served
    }

    fn generate(&self) -> Vec<Arc<Generated>> {
        (0..NAMESPACES).map(|n| self.cache.generate(&self.proxy(n))).collect()
    }

    /// The sidecar of a namespace.
    fn proxy(&self, n: usize) -> Proxy {
        let workload = format!("w.n{n}");
        let spec = sidecar(&format!("10.0.1.{n}"), &workload, json!({}));
        spec.node().description().resolve(&self.compiled.snapshot).expect("a good node")
    }

    /// Replaces a file, and says what had to be made for it, and what became of the snapshot.
    fn change(&mut self, path: &str, text: String) -> (Made, Kept) {
        self.workspace.replace_file(SourceFile::new(path, text));
        let compiled = self.workspace.compile();
        assert_eq!(pilotfish::diag::concise(&compiled.diagnostics), "");
        let (old, new) = (&self.compiled.snapshot, &compiled.snapshot);
        let kept = Kept {
            snapshot: Arc::ptr_eq(old, new),
            routing: Arc::ptr_eq(&old.routing, &new.routing),
            endpoints: Arc::ptr_eq(&old.endpoints, &new.endpoints),
        };
        self.compiled = compiled;
        self.cache = self.cache.next(self.compiled.snapshot.clone());
        let before = self.cache.statistics();
        let now = self.generate();
        let made = Made::between(&before, &self.cache.statistics());
        let before = std::mem::replace(&mut self.given, now);
        let changed = |t: &TypeUrl| {
            let of = |g: &[Arc<Generated>]| -> Vec<Resource> {
                g.iter().flat_map(|g| g.set.of_type(*t).cloned().collect::<Vec<_>>()).collect()
            };
            of(&before) != of(&self.given)
        };
        let made = Made { changed: TypeUrl::ALL.into_iter().filter(changed).collect(), ..made };
        (made, kept)
    }
}

/// Which parts of the snapshot are the very same.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Kept {
    snapshot: bool,
    routing: bool,
    endpoints: bool,
}

/// How many parts were made, and which types of resources came out different.
#[derive(Debug, Default, PartialEq)]
struct Made {
    clusters: u64,
    listeners: u64,
    shared: u64,
    assignments: u64,
    complete: u64,
    inbound: u64,
    generated: u64,
    changed: Vec<TypeUrl>,
}

impl Made {
    fn between(before: &Statistics, after: &Statistics) -> Made {
        // Taken apart by name, so that a new part cannot be forgotten.
        let Statistics { clusters, listeners, shared, assignments, complete, inbound, generated } =
            after;
        Made {
            clusters: clusters.made - before.clusters.made,
            listeners: listeners.made - before.listeners.made,
            shared: shared.made - before.shared.made,
            assignments: assignments.made - before.assignments.made,
            complete: complete.made - before.complete.made,
            inbound: inbound.made - before.inbound.made,
            generated: generated.made - before.generated.made,
            changed: Vec::new(),
        }
    }
}

/// A service of each namespace, with a rule of the namespace for it.
fn services() -> String {
    let mut text = String::new();
    for n in 0..NAMESPACES {
        write!(
            text,
            "---\n\
             apiVersion: networking.istio.io/v1\n\
             kind: ServiceEntry\n\
             metadata: {{name: s, namespace: n{n}}}\n\
             spec:\n  \
               hosts: [s{n}.example]\n  \
               location: MESH_INTERNAL\n  \
               resolution: STATIC\n  \
               ports: [{{number: 80, name: http, protocol: HTTP}}]\n  \
               endpoints: [{{address: 10.0.0.{n}}}]\n\
             ---\n\
             apiVersion: networking.istio.io/v1\n\
             kind: DestinationRule\n\
             metadata: {{name: s, namespace: n{n}}}\n\
             spec: {{host: s{n}.example, trafficPolicy: {{loadBalancer: {{simple: RANDOM}}}}}}\n"
        )
        .expect("strings take everything");
    }
    text
}

fn routes() -> String {
    "apiVersion: networking.istio.io/v1\n\
     kind: VirtualService\n\
     metadata: {name: split, namespace: n0}\n\
     spec:\n  \
       hosts: [s0.example]\n  \
       http:\n  \
       - route:\n    \
         - {destination: {host: s0.example}, weight: 90}\n    \
         - {destination: {host: s1.example}, weight: 10}\n"
        .to_owned()
}

fn mesh() -> Served {
    Served::new(&[("routes.yaml", routes()), ("services.yaml", services())])
}

const NOTHING: Kept = Kept { snapshot: false, routing: false, endpoints: false };

#[test]
fn sidecars_of_many_namespaces_share_one_world() {
    let made = Made::between(&Statistics::default(), &mesh().cache.statistics());
    let services = NAMESPACES as u64;
    let expected = Made {
        clusters: services,
        // That of the port, and that of what is captured.
        listeners: 2,
        shared: 1,
        assignments: services,
        complete: 1,
        // Nobody serves anything.
        inbound: 1,
        generated: 1,
        changed: Vec::new(),
    };
    assert_eq!(made, expected);
}

#[test]
fn a_comment_or_a_blank_line_gives_the_same_snapshot_and_makes_nothing() {
    let mut served = mesh();
    let all = Kept { snapshot: true, routing: true, endpoints: true };
    for comment in ["# why\n", "\n\n", "---\n# an empty document\n---\n", ""] {
        let (made, kept) = served.change("services.yaml", format!("{comment}{}", services()));
        assert_eq!((made, kept), (Made::default(), all), "{comment:?}");
    }
}

/// What an endpoint of one service costs.
fn one_endpoint() -> (Made, Kept) {
    let changed = vec![TypeUrl::Endpoint];
    let made = Made { assignments: 1, complete: 1, generated: 1, changed, ..Made::default() };
    (made, Kept { routing: true, ..NOTHING })
}

#[test]
fn an_endpoint_makes_the_endpoints_of_its_service_again_and_nothing_else() {
    let mut served = mesh();
    let text = services().replace("[{address: 10.0.0.0}]", "[{address: 10.0.9.9}]");
    assert_eq!(served.change("services.yaml", text), one_endpoint());
}

#[test]
fn an_endpoint_that_moves_other_documents_changes_endpoints_only() {
    // Places are part of what is compared, so what moves in its file is made again; nobody sees it.
    let mut served = mesh();
    let more = "[{address: 10.0.0.0},\n    {address: 10.0.9.9}]";
    let text = services().replace("[{address: 10.0.0.0}]", more);
    let (made, _) = served.change("services.yaml", text);
    assert_eq!(made.changed, [TypeUrl::Endpoint]);
}

#[test]
fn a_finding_about_a_proxy_moves_with_its_document() {
    // Services without addresses that share a port: all but the first are told of it.
    let text = services().replace("name: http, protocol: HTTP", "name: tcp, protocol: TCP");
    let mut served = Served::new(&[("services.yaml", text.clone())]);
    let lines = |findings: &[Diagnostic]| -> Vec<u32> {
        let places = findings.iter().filter_map(|finding| finding.span.as_ref());
        places.map(|place| place.start.line).collect()
    };
    let before = lines(&served.given[0].diagnostics);
    assert!(!before.is_empty());
    served.change("services.yaml", format!("# why\n{text}"));
    let expected: Vec<u32> = before.iter().map(|line| line + 1).collect();
    let moved = served.compiled.moved.as_ref().expect("only places changed");
    assert_eq!(lines(&served.cache.findings_at(moved, &served.proxy(0))), expected);
}

#[test]
fn a_weight_makes_no_cluster_and_changes_routes_only() {
    let mut served = mesh();
    let text = routes().replace("weight: 90", "weight: 80").replace("weight: 10", "weight: 20");
    let (made, kept) = served.change("routes.yaml", text);
    assert_eq!(kept, Kept { endpoints: true, ..NOTHING });
    let changed = vec![TypeUrl::Route];
    assert_eq!(made, Made { shared: 1, complete: 1, generated: 1, changed, ..Made::default() });
}

#[test]
fn a_policy_makes_the_clusters_of_its_service_again() {
    let mut served = mesh();
    let text = services().replacen("simple: RANDOM", "simple: ROUND_ROBIN", 1);
    let (made, kept) = served.change("services.yaml", text);
    assert_eq!(kept, Kept { endpoints: true, ..NOTHING });
    let expected = Made {
        clusters: 1,
        shared: 1,
        assignments: 1,
        complete: 1,
        generated: 1,
        changed: vec![TypeUrl::Cluster],
        ..Made::default()
    };
    assert_eq!(made, expected);
}

#[test]
fn forgetting_keeps_what_the_snapshot_in_force_is_made_of() {
    let mut served = mesh();
    served.cache.forget_earlier();
    let before = served.cache.statistics();
    served.generate();
    assert_eq!(Made::between(&before, &served.cache.statistics()), Made::default());
    let text = services().replace("[{address: 10.0.0.0}]", "[{address: 10.0.9.9}]");
    let (made, _) = served.change("services.yaml", text);
    assert_eq!((made.clusters, made.assignments), (0, 1));
}

#[test]
fn forgetting_lets_go_of_earlier_snapshots_also_when_nobody_asks_for_the_new_one() {
    let mut served = mesh();
    let earlier = Arc::downgrade(&served.compiled.snapshot.routing);
    let text = routes().replace("weight: 90", "weight: 80").replace("weight: 10", "weight: 20");
    served.workspace.replace_file(SourceFile::new("routes.yaml", text));
    served.compiled = served.workspace.compile();
    served.cache = served.cache.next(served.compiled.snapshot.clone());
    assert!(earlier.upgrade().is_some(), "those who have not moved on are served from it");
    served.cache.forget_earlier();
    assert!(earlier.upgrade().is_none());
}

#[test]
fn the_inbound_part_is_made_once_for_all_proxies_of_a_workload() {
    let text =
        services().replace("[{address: 10.0.0.0}]", "[{address: 10.0.0.0}, {address: 10.0.9.9}]");
    let served = Served::new(&[("routes.yaml", routes()), ("services.yaml", text)]);
    let proxy = |address: &str| {
        let spec = sidecar(address, "w.n0", json!({"LABELS": {"pod": address}}));
        spec.node().description().resolve(&served.compiled.snapshot).expect("a good node")
    };
    let before = served.cache.statistics();
    let (a, b) = (proxy("10.0.0.0"), proxy("10.0.9.9"));
    let (a, b) = (served.cache.generate(&a), served.cache.generate(&b));
    assert!(Arc::ptr_eq(&a, &b));
    let made = Made::between(&before, &served.cache.statistics());
    assert_eq!(made, Made { inbound: 1, generated: 1, ..Made::default() });
    assert!(a.set.get(TypeUrl::Cluster, "inbound|80||").is_some());
}
