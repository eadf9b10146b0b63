//! How reading, compiling and generating grow with the number of services. `make bench` prints
//! the table; run it with nothing else on the machine.
//!
//! Each service is a ServiceEntry with two endpoints, a DestinationRule with two subsets and a
//! VirtualService with two rules. The proxies are a router that serves all of them through one
//! Gateway, and a sidecar that sees all of them. Each number is the best of several runs; what
//! counts is the ratio between the columns, not the milliseconds.
//!
//! The small column is the mean over ten meshes of 1,000 services that take turns, so that both
//! columns walk through the same amount of memory: one small mesh alone fits into the processor's
//! cache, which a mesh of any size that has been idle for a second does not find there either.

use pilotfish::compile::{Compiled, Prepared, Workspace, prepare};
use pilotfish::config::{SourceFile, read};
use pilotfish::generate;
use pilotfish::proxy::NodeDescription;
use pilotfish::xds::TypeUrl;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Growth allowed from 1,000 to 10,000 services.
const GROWTH_LIMIT: f64 = 12.0;
/// How many times parsing reading and compiling may take.
const READING_LIMIT: f64 = 3.0;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What was measured, and the time.
type Row = (&'static str, Duration);

fn main() {
    let small: Vec<Vec<SourceFile>> = (0..10).map(|n| files(n * 1_000..(n + 1) * 1_000)).collect();
    let small = measure(&small, 5);
    let large = measure(&[files(0..10_000)], 5);
    println!("{:<40} {:>10} {:>10} {:>8}", "services", "1,000", "10,000", "growth");
    let mut failures = Vec::new();
    for ((name, before), (_, after)) in small.iter().zip(&large) {
        let growth = after.as_secs_f64() / before.as_secs_f64();
        println!("{name:<40} {:>10} {:>10} {growth:>7.1}x", show(*before), show(*after));
        if growth > GROWTH_LIMIT {
            failures.push(format!("{name} grows {growth:.1}x, more than {GROWTH_LIMIT}x"));
        }
    }
    let (parse, whole) = documents(10_000, 5);
    let ratio = whole.as_secs_f64() / parse.as_secs_f64();
    println!(
        "\n10,000 documents: parsing {}, reading and compiling {}: {ratio:.2}x",
        show(parse),
        show(whole)
    );
    if ratio > READING_LIMIT {
        failures.push(format!("reading and compiling takes {ratio:.2}x what parsing takes"));
    }
    if !failures.is_empty() {
        eprintln!("{}", failures.join("\n"));
        std::process::exit(1);
    }
}

fn show(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// The best of several runs, and the last result. The time to drop a result is left out, but it is
/// dropped before the next run, so that the runs do not differ in how much memory is in use.
fn best<T>(runs: usize, mut f: impl FnMut() -> T) -> (Duration, T) {
    best_after(runs, || (), |()| f())
}

/// The same for what needs something fresh each time; the time to make that is left out too.
fn best_after<S, T>(
    runs: usize,
    mut prepare: impl FnMut() -> S,
    mut f: impl FnMut(S) -> T,
) -> (Duration, T) {
    let mut best = Duration::MAX;
    let mut last = None;
    for _ in 0..runs {
        drop(last.take());
        let fresh = prepare();
        let start = Instant::now();
        last = Some(black_box(f(fresh)));
        best = best.min(start.elapsed());
    }
    (best, last.expect("at least one run"))
}

/// The time for one mesh of each step, when these meshes take turns.
fn measure(meshes: &[Vec<SourceFile>], runs: usize) -> Vec<Row> {
    let count = u32::try_from(meshes.len()).expect("a handful of meshes");
    let parse_all = || -> Vec<_> { meshes.iter().flatten().map(read).collect() };
    let (parse, parsed) = best(runs, parse_all);
    drop(parsed);
    let load_all = || meshes.iter().map(|m| load(m)).collect::<Vec<_>>();
    let (load, workspaces) = best(runs, load_all);
    drop(workspaces);
    // A workspace that has compiled before keeps what did not change, so each run has fresh ones.
    let compile_all = |mut workspaces: Vec<Workspace>| {
        let compiled: Vec<_> = workspaces.iter_mut().map(Workspace::compile).collect();
        (workspaces, compiled)
    };
    let (compile, (mut workspaces, compiled)) = best_after(runs, load_all, compile_all);
    let (again, edited) = compile_again(meshes, &mut workspaces, runs);
    for (before, after) in compiled.iter().zip(&edited) {
        assert!(!Arc::ptr_eq(&before.snapshot, &after.snapshot), "an edit makes another snapshot");
    }
    drop((workspaces, edited));
    let generate = |id: &str| {
        let (time, made) = best(runs, || {
            let made = compiled.iter().map(|c| {
                let node =
                    NodeDescription { id: id.into(), cluster: id.into(), ..Default::default() };
                let proxy = node.resolve(&c.snapshot).expect("a valid node");
                generate::all(&c.snapshot, &proxy)
            });
            made.collect::<Vec<_>>()
        });
        for (made, compiled) in made.iter().zip(&compiled) {
            let services = compiled.snapshot.routing.services.len();
            assert!(made.set.len(TypeUrl::Cluster) > 2 * services, "each subset has a cluster");
            assert!(made.set.len(TypeUrl::Route) >= 1, "there are routes");
        }
        time / count
    };
    vec![
        ("parsing", parse / count),
        ("reading (parsing, decoding, checking)", load / count),
        ("compiling", compile / count),
        ("compiling again after one edit", again / count),
        ("generating for a router", generate("edge")),
        (
            "generating for a sidecar",
            generate("sidecar~127.0.0.1~a.default~default.svc.cluster.local"),
        ),
    ]
}

/// The time to take and compile one edited document in each mesh; reading its file is left out. The
/// edits go back and forth, so that each run has something to do.
fn compile_again(
    meshes: &[Vec<SourceFile>],
    workspaces: &mut [Workspace],
    runs: usize,
) -> (Duration, Vec<Compiled>) {
    let mut weights = ["weight: 80", "weight: 70"].into_iter().cycle();
    let edit_all = || -> Vec<Prepared> {
        let weight = weights.next().expect("a cycle has no end");
        let edits = meshes.iter().map(|mesh| {
            let (path, text) = (mesh[0].path.clone(), &mesh[0].text);
            prepare(SourceFile::new(path, text.replacen("weight: 90", weight, 1)))
        });
        edits.collect()
    };
    best_after(runs, edit_all, |edits| {
        let edited = edits.into_iter().zip(workspaces.iter_mut());
        let compiled = edited.map(|(edit, workspace)| {
            workspace.take(edit);
            workspace.compile()
        });
        compiled.collect()
    })
}

/// Time of parsing, and of reading and compiling, that many documents.
fn documents(count: usize, runs: usize) -> (Duration, Duration) {
    let files = files(0..count / 3);
    let (parse, _) = best(runs, || files.iter().map(read).collect::<Vec<_>>());
    let (whole, _) = best(runs, || load(&files).compile());
    (parse, whole)
}

fn load(files: &[SourceFile]) -> Workspace {
    let mut workspace = Workspace::new("cluster.local");
    for file in files {
        workspace.replace_file(file.clone());
    }
    workspace
}

/// A file for each hundred services, and one for the Gateway.
fn files(services: Range<usize>) -> Vec<SourceFile> {
    let numbers: Vec<usize> = services.collect();
    let mut files: Vec<SourceFile> = numbers
        .chunks(100)
        .map(|chunk| {
            let text: String = chunk.iter().map(|n| service(*n)).collect();
            SourceFile::new(format!("services-{:05}.yaml", chunk[0]), text)
        })
        .collect();
    files.push(SourceFile::new("gateway.yaml", GATEWAY));
    files
}

const GATEWAY: &str = "\
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers:
    - port: {number: 8080, name: http, protocol: HTTP}
      hosts: ['*']
";

fn service(n: usize) -> String {
    let (a, b) = (n / 250 % 250, n % 250);
    format!(
        "---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: service-{n}
spec:
  hosts: [service-{n}.example.com]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
    - {{number: 80, name: http, protocol: HTTP}}
  endpoints:
    - address: 10.0.{a}.{b}
      labels: {{version: v1}}
    - address: 10.1.{a}.{b}
      labels: {{version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: service-{n}
spec:
  host: service-{n}.example.com
  trafficPolicy:
    connectionPool:
      tcp: {{maxConnections: 100, connectTimeout: 2s}}
    outlierDetection: {{consecutive5xxErrors: 5, interval: 10s}}
  subsets:
    - name: v1
      labels: {{version: v1}}
    - name: v2
      labels: {{version: v2}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: service-{n}
spec:
  hosts: [service-{n}.example.com]
  gateways: [edge, mesh]
  http:
    - match:
        - uri: {{prefix: /api}}
          headers:
            x-version: {{exact: v2}}
      route:
        - destination: {{host: service-{n}.example.com, subset: v2}}
      timeout: 5s
    - route:
        - destination: {{host: service-{n}.example.com, subset: v1}}
          weight: 90
        - destination: {{host: service-{n}.example.com, subset: v2}}
          weight: 10
      retries: {{attempts: 3, perTryTimeout: 2s}}
"
    )
}
