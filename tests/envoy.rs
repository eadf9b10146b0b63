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
use pilotfish::generate::Generated;
use pilotfish::proxy::{NodeDescription, NodeError};
use pilotfish::push::SnapshotCache;
use pilotfish::server::{
    Connection, Generation, Observer, ResourceSource, Resources, Settings, Xds,
};
use pilotfish::xds::{Resource, ResourceSet, TypeUrl, json};
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
    let mut trials: Vec<Trial> = case::all()
        .into_iter()
        .flat_map(|(name, case)| match case {
            Ok(case) => of_case(&case, &program),
            Err(problem) => vec![Trial::test(name, move || Err(Failed::from(problem)))],
        })
        .collect();
    for (variant, protocol) in VARIANTS {
        let program = program.clone();
        trials.push(Trial::test(format!("a_refusal_is_noticed {variant}"), move || {
            let runtime = tokio::runtime::Runtime::new()?;
            runtime.block_on(notices_a_refusal(&program, protocol)).map_err(Failed::from)
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

const VARIANTS: [(&str, Protocol); 2] =
    [("sotw", Protocol::StateOfTheWorld), ("delta", Protocol::Delta)];

fn of_case(case: &Case, program: &Path) -> Vec<Trial> {
    let each = case.proxies.iter().flat_map(|proxy| VARIANTS.map(|variant| (proxy, variant)));
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
    let compiled = Input::read(case).compile();
    let set = compiled::generate(&compiled, proxy)?.set;
    let simulator = Simulator::new(&set);
    let requests = requests::of(case)?.into_iter().filter(|r| r.proxy == proxy.name);
    // Interception needs iptables, so these stay with the simulator.
    let requests: Vec<Request> =
        if simulator.is_intercepting() { Vec::new() } else { requests.collect() };
    let upstreams: BTreeSet<SocketAddr> = match requests.is_empty() {
        true => BTreeSet::new(),
        // A proxy may be an endpoint of its own service.
        false => simulator
            .clusters()
            .flat_map(|cluster| addresses(&simulator, cluster))
            .filter(|address| !simulator.listens_at(*address))
            .collect(),
    };
    let _turn = envoy::turn().await?;
    let _upstreams = upstream::start(upstreams).await?;
    let server = Server::start(Served(SnapshotCache::new(compiled.snapshot))).await?;
    let mut envoy = Envoy::start(program, &proxy.node(), server.address, protocol).await?;
    let mut problems = Vec::new();
    if let Err(problem) = accepted(&mut envoy, &server, &set).await {
        problems.push(problem);
    }
    for request in &requests {
        let expected = simulator.answer(request)?;
        if let Err(problem) = agrees(&simulator, request, &expected).await {
            problems.push(format!("'{}': {problem}", request.name));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    problems.push(envoy.log());
    Err(problems.join("\n"))
}

/// Envoy uses everything, and has refused nothing.
async fn accepted(envoy: &mut Envoy, server: &Server, set: &ResourceSet) -> Result<(), String> {
    let names = |type_url| -> BTreeSet<String> {
        set.of_type(type_url).map(|resource| resource.name.to_string()).collect()
    };
    let (listeners, clusters) = (names(TypeUrl::Listener), names(TypeUrl::Cluster));
    envoy.ready().await?;
    let uses = eventually(PATIENCE, "Envoy to use everything", async || {
        let refusals = server.refusals();
        if !refusals.is_empty() {
            return Some(Err(refusals.join("\n")));
        }
        let active = envoy.active().await.ok()?;
        let complete = active.pending.is_empty()
            && active.listeners == listeners
            && active.clusters == clusters;
        complete.then_some(Ok(()))
    });
    match uses.await {
        Ok(outcome) => outcome?,
        Err(problem) => return Err(format!("{problem}; it uses {:#?}", envoy.active().await?)),
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

/// Asks until everything has happened that the simulator says can happen; nothing else may.
async fn agrees(simulator: &Simulator, request: &Request, expected: &Answer) -> Result<(), String> {
    /// A share of a tenth is missed by so many requests once in ten billion runs.
    const ENOUGH: usize = 220;
    let mut missing: BTreeSet<&str> = match expected {
        Answer::Upstream { clusters, .. } => clusters.iter().map(String::as_str).collect(),
        Answer::Refused(_) | Answer::Local { .. } => BTreeSet::new(),
    };
    // Of clusters without endpoints nothing is heard.
    missing.retain(|cluster| !addresses(simulator, cluster).is_empty());
    for _ in 0..ENOUGH {
        let actual = client::send(request).await;
        if !fits(simulator, request, expected, &actual) {
            return Err(format!("the simulator says {expected}, Envoy: {actual:?}"));
        }
        if let Outcome::Echoed { address, .. } = actual {
            missing.retain(|cluster| !addresses(simulator, cluster).contains(&address));
        }
        if missing.is_empty() {
            return Ok(());
        }
    }
    Err(format!("the simulator says {expected}, but no request went to {missing:?}"))
}

/// Whether what Envoy did is something that the simulator said.
fn fits(simulator: &Simulator, request: &Request, expected: &Answer, actual: &Outcome) -> bool {
    match (expected, actual) {
        (Answer::Refused(_), Outcome::Refused(_)) => true,
        (Answer::Local { status, location }, Outcome::Local { status: s, location: l }) => {
            status == s && location == l
        }
        (Answer::Upstream { clusters, seen }, Outcome::Echoed { address, seen: s }) => {
            let same = match (seen, s) {
                (Some(a), Some(b)) => a.path == b.path && (a.host.is_none() || a.host == b.host),
                (None, _) => true,
                (Some(_), None) => false,
            };
            clusters.iter().any(|c| addresses(simulator, c).contains(address)) && same
        }
        (Answer::Upstream { clusters, .. }, Outcome::Local { status: 503, .. }) => {
            !request.tcp && clusters.iter().any(|c| addresses(simulator, c).is_empty())
        }
        (Answer::Upstream { clusters, .. }, Outcome::Refused(_)) => {
            request.tcp && clusters.iter().any(|c| addresses(simulator, c).is_empty())
        }
        _ => false,
    }
}

/// The test above must be able to fail: a listener that Envoy refuses, beside a good one.
async fn notices_a_refusal(program: &Path, protocol: Protocol) -> Result<(), String> {
    let listener = |name: &str, filters: serde_json::Value| {
        let json = serde_json::json!({
            "name": name,
            "address": {"socket_address": {"address": "127.0.0.1", "port_value": 18999}},
            "filter_chains": [{"filters": filters}],
        });
        let body = json::message_bytes(TypeUrl::Listener.as_str(), &json);
        body.map(|body| Resource::new(name, body)).map_err(|error| error.to_string())
    };
    let unknown = serde_json::json!([{
        "name": "nobody knows it",
        "typed_config": {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": ""},
    }]);
    let mut set = ResourceSet::new();
    set.insert(TypeUrl::Listener, listener("bad", unknown)?);
    let _turn = envoy::turn().await?;
    let generated = Generated { set: Arc::new(set.clone()), ..Generated::default() };
    let server = Server::start(Same(Arc::new(generated))).await?;
    let node = ProxySpec {
        name: String::new(),
        id: "edge-1".to_owned(),
        cluster: String::new(),
        metadata: serde_json::Map::new(),
        locality: String::new(),
    };
    let mut envoy = Envoy::start(program, &node.node(), server.address, protocol).await?;
    match accepted(&mut envoy, &server, &set).await {
        Err(problem) if problem.contains("nobody knows it") => {}
        other => return Err(format!("the refusal went unnoticed: {other:?}")),
    }
    let rejected = envoy.stats("lds.update_rejected$").await?;
    match rejected[..] {
        [(_, count)] if count > 0 => Ok(()),
        _ => Err(format!("the refusal is not counted: {rejected:?}")),
    }
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
    async fn start(resources: impl Resources) -> Result<Server, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let refusals = Refusals::default();
        let source = Fixed(Arc::new(Generation::new(1, resources)));
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
    fn refused(&self, _: &Connection, _: TypeUrl, diagnostic: &Diagnostic) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(diagnostic.to_string());
    }
}

struct Served(SnapshotCache);

impl Resources for Served {
    fn resources(&self, node: &NodeDescription) -> Result<Arc<Generated>, NodeError> {
        let proxy = node.resolve(self.0.snapshot())?;
        Ok(self.0.generate(&proxy))
    }
}

/// The same for every node.
struct Same(Arc<Generated>);

impl Resources for Same {
    fn resources(&self, _: &NodeDescription) -> Result<Arc<Generated>, NodeError> {
        Ok(self.0.clone())
    }
}

/// A source that never changes.
struct Fixed(Arc<Generation>);

impl ResourceSource for Fixed {
    fn current(&self) -> Option<Arc<Generation>> {
        Some(self.0.clone())
    }
}
