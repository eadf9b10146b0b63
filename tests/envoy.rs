//! The real consumer: each golden case is served to a stock Envoy, in both variants of the
//! protocol. It must accept and use everything, and answer the requests of the case as the
//! simulator does.
//!
//! `PILOTFISH_TEST_ENVOY` names the Envoy. Without one the tests are skipped, and say so;
//! `PILOTFISH_REQUIRE_ENVOY=1` makes that a failure.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use pilotfish::commands::bootstrap::Protocol;
use pilotfish::diag::Diagnostic;
use pilotfish::proxy::{NodeDescription, NodeError};
use pilotfish::push::SnapshotCache;
use pilotfish::server::{Generation, Observer, ResourceSource, Resources, Settings, Xds};
use pilotfish::xds::{ResourceSet, TypeUrl};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use support::case::{self, Case, ProxySpec};
use support::client::{self, Outcome};
use support::compiled::{self, Input};
use support::envoy::{self, Envoy, PATIENCE, eventually};
use support::requests::{self, Answer, Request};
use support::simulate::Simulator;
use support::upstream;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

fn main() -> ExitCode {
    // The ports of the cases are fixed, so one Envoy runs at a time.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let program = match envoy::find() {
        Ok(Ok(program)) => program,
        Ok(Err(reason)) => {
            eprintln!("tests with a real Envoy are skipped: {reason}");
            return ExitCode::SUCCESS;
        }
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::FAILURE;
        }
    };
    let trials = case::all().into_iter().flat_map(|(name, case)| match case {
        Ok(case) => of_case(&case, &program),
        Err(problem) => vec![Trial::test(name, move || Err(Failed::from(problem)))],
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn of_case(case: &Case, program: &Path) -> Vec<Trial> {
    let variants = [("sotw", Protocol::StateOfTheWorld), ("delta", Protocol::Delta)];
    let each = case.proxies.iter().flat_map(|proxy| variants.map(|variant| (proxy, variant)));
    each.map(|(proxy, (variant, protocol))| {
        let name = format!("{} {} {variant}", case.name, proxy.name);
        let (case, proxy, program) = (case.clone(), proxy.clone(), program.to_path_buf());
        Trial::test(name, move || {
            let runtime = tokio::runtime::Runtime::new()?;
            runtime.block_on(check(&case, &proxy, protocol, &program)).map_err(Failed::from)
        })
    })
    .collect()
}

async fn check(
    case: &Case,
    proxy: &ProxySpec,
    protocol: Protocol,
    program: &Path,
) -> Result<(), String> {
    let _turn = envoy::turn().await?;
    let compiled = Input::read(case).compile();
    let set = compiled::generate(&compiled, proxy)?.set;
    let simulator = Simulator::new(&set);
    let requests = requests::of(case)?.into_iter().filter(|r| r.proxy == proxy.name);
    // Interception needs iptables, so these stay with the simulator.
    let requests: Vec<Request> =
        if simulator.is_intercepting() { Vec::new() } else { requests.collect() };
    let upstreams = match requests.is_empty() {
        true => BTreeSet::new(),
        false => simulator.clusters().flat_map(|c| addresses(&simulator, c)).collect(),
    };
    let _upstreams = upstream::start(upstreams).await?;
    let server = Server::start(SnapshotCache::new(compiled.snapshot)).await?;
    let mut envoy = Envoy::start(program, &proxy.node(), server.address, protocol).await?;
    let mut problems = Vec::new();
    if let Err(problem) = accepted(&mut envoy, &set).await {
        problems.push(problem);
    }
    for request in &requests {
        let expected = simulator.answer(request)?;
        let actual = client::send(request).await;
        if let Err(problem) = agrees(&simulator, request, &expected, &actual) {
            problems.push(format!("'{}': {problem}", request.name));
        }
    }
    problems.extend(server.refusals());
    if problems.is_empty() {
        return Ok(());
    }
    problems.push(envoy.log());
    Err(problems.join("\n"))
}

/// Envoy uses everything, and has refused nothing.
async fn accepted(envoy: &mut Envoy, set: &ResourceSet) -> Result<(), String> {
    envoy.ready().await?;
    let names = |type_url| -> BTreeSet<String> {
        set.of_type(type_url).map(|resource| resource.name.to_string()).collect()
    };
    let (listeners, clusters) = (names(TypeUrl::Listener), names(TypeUrl::Cluster));
    let uses = eventually(PATIENCE, "Envoy to use everything", async || {
        let active = envoy.active().await.ok()?;
        let complete = active.pending.is_empty()
            && active.listeners == listeners
            && active.clusters == clusters;
        complete.then_some(())
    });
    if let Err(problem) = uses.await {
        let active = envoy.active().await?;
        let missing = |wanted: &BTreeSet<String>, there: &BTreeSet<String>| -> Vec<String> {
            wanted.difference(there).cloned().collect()
        };
        return Err(format!(
            "{problem}; pending: {:?}, missing listeners: {:?}, missing clusters: {:?}",
            active.pending,
            missing(&listeners, &active.listeners),
            missing(&clusters, &active.clusters),
        ));
    }
    let rejected = envoy.stats("update_rejected$").await?;
    if rejected.is_empty() {
        return Err("Envoy counts no refused updates at all".to_owned());
    }
    match rejected.iter().find(|(_, count)| *count > 0) {
        None => Ok(()),
        Some((name, count)) => Err(format!("{name} is {count}")),
    }
}

/// Whether what Envoy did is what the simulator said.
fn agrees(
    simulator: &Simulator,
    request: &Request,
    expected: &Answer,
    actual: &Outcome,
) -> Result<(), String> {
    let fits = match (expected, actual) {
        (Answer::Refused(_), Outcome::Refused(_)) => true,
        (Answer::Local { status, location }, Outcome::Local { status: s, location: l }) => {
            status == s && location == l
        }
        (Answer::Upstream { clusters, seen }, actual) => {
            let endpoints: BTreeSet<SocketAddr> =
                clusters.iter().flat_map(|cluster| addresses(simulator, cluster)).collect();
            match actual {
                Outcome::Echoed { address, seen: s } => {
                    let same_host = |a: &requests::Seen, b: &requests::Seen| {
                        a.host.is_none() || a.host == b.host
                    };
                    let same = match (seen, s) {
                        (Some(a), Some(b)) => a.path == b.path && same_host(a, b),
                        (None, _) => true,
                        (Some(_), None) => false,
                    };
                    endpoints.contains(address) && same
                }
                // Nobody is there to answer.
                Outcome::Local { status: 503, .. } => endpoints.is_empty() && !request.tcp,
                Outcome::Refused(_) => endpoints.is_empty() && request.tcp,
                Outcome::Local { .. } => false,
            }
        }
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("the simulator says {expected}, Envoy: {actual:?}")) }
}

/// The endpoints of a cluster that can be upstreams here.
fn addresses(simulator: &Simulator, cluster: &str) -> BTreeSet<SocketAddr> {
    let endpoints = simulator.endpoints(cluster).into_iter();
    endpoints
        .filter_map(|(address, port)| Some(SocketAddr::new(address.parse().ok()?, port)))
        .filter(|address| address.ip().is_loopback())
        .collect()
}

/// An xDS server of one snapshot.
struct Server {
    address: SocketAddr,
    refusals: Refusals,
    _stop: DropGuard,
}

impl Server {
    async fn start(cache: SnapshotCache) -> Result<Server, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let refusals = Refusals::default();
        let source = Fixed(Arc::new(Generation::new(1, Served(cache))));
        let xds = Xds::new(Settings::default(), source, refusals.clone());
        let stop = CancellationToken::new();
        tokio::spawn({
            let (xds, stop) = (xds.clone(), stop.clone());
            async move { xds.run_pushes(stop).await }
        });
        tokio::spawn(xds.serve(listener, stop.clone()));
        Ok(Server { address, refusals, _stop: stop.drop_guard() })
    }

    fn refusals(&self) -> Vec<String> {
        self.refusals.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What Envoy refused.
#[derive(Clone, Default)]
struct Refusals(Arc<Mutex<Vec<String>>>);

impl Observer for Refusals {
    fn sent(&self, _: TypeUrl, _: usize) {}

    fn refused(&self, diagnostic: &Diagnostic) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(diagnostic.to_string());
    }
}

struct Served(SnapshotCache);

impl Resources for Served {
    fn resources(&self, node: &NodeDescription) -> Result<Arc<ResourceSet>, NodeError> {
        let proxy = node.resolve(self.0.snapshot())?;
        Ok(self.0.generate(&proxy).set.clone())
    }
}

/// A source that never changes.
struct Fixed(Arc<Generation>);

impl ResourceSource for Fixed {
    fn current(&self) -> Option<Arc<Generation>> {
        Some(self.0.clone())
    }
}
