//! The serving process: the only file that constructs and connects everything.
//!
//! ```text
//! watch --Changes--> follow --PushRequest--> debounce --> publish --Generation--> xds
//!                      |                                    |
//!                  Workspace (what is in force) ------------+ compile
//! ```

use crate::admin::{self, Metrics, Overview};
use crate::commands::{Exit, files};
use crate::compile::Workspace;
use crate::diag::{Diagnostic, Severity};
use crate::proxy::{NodeDescription, NodeError};
use crate::push::{self, Changed, DebounceOptions, PushRequest, Reason, SnapshotCache};
use crate::server::{self, Generation, Observer, ResourceSource, Resources, Xds};
use crate::settings::{self, ServeArgs};
use crate::telemetry;
use crate::watch::{self, Changes, Polling, WatchOptions};
use crate::xds::{ResourceSet, TypeUrl};
use anyhow::Context;
use arc_swap::{ArcSwap, ArcSwapOption};
use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// How many changes may wait for the debouncer (istiod's `pushChannel`).
const PENDING_CHANGES: usize = 10;
/// Findings that are logged for one change; the rest is counted.
const LOGGED_FINDINGS: usize = 100;

/// Serves until SIGTERM or Ctrl-C.
///
/// # Errors
///
/// A port is in use, or the log filter makes no sense.
pub fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    telemetry::init(args.log_format, &args.log)?;
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in settings::unsupported_pilot_variables(variables) {
        warn!(name, "this variable has no effect in pilotfish");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &ServeArgs) -> anyhow::Result<Exit> {
    let grpc = bind("--grpc-addr", args.grpc_addr).await?;
    let http = bind("--http-addr", args.http_addr).await?;
    let monitoring = bind("--monitoring-addr", args.monitoring_addr).await?;
    let state = State::new(args);
    let stop = CancellationToken::new();

    info!(directories = ?args.source.config_dirs, "reading configuration");
    let (changes, rescan) = watch::watch(watch_options(args));
    let (notices, pending) = mpsc::channel(PENDING_CHANGES);
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(state.clone(), changes, notices));
    tasks.spawn(push::debounce(pending, debounce_options(args), {
        let state = state.clone();
        move |request| publish(state.clone(), request)
    }));
    tasks.spawn({
        let (state, stop) = (state.clone(), stop.clone());
        async move { state.xds.run_pushes(stop).await }
    });
    serve_pages(&mut tasks, admin::http(state.clone()), http);
    serve_pages(&mut tasks, admin::monitoring(state.clone()), monitoring);
    info!(
        xds = %args.grpc_addr, http = %args.http_addr, monitoring = %args.monitoring_addr,
        "listening"
    );
    let serving = tokio::spawn(state.xds.clone().serve(grpc, stop.clone()));

    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = hangup.recv() => {
                info!("SIGHUP: looking at the files again");
                rescan.now();
            }
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    info!("stopping: ending open streams; a second signal stops at once");
    stop.cancel();
    tokio::select! {
        ended = serving => ended.context("the xDS server panicked")?.context("the xDS server failed")?,
        _ = terminate.recv() => warn!("second signal: stopping at once"),
        _ = interrupt.recv() => warn!("second signal: stopping at once"),
    }
    tasks.abort_all();
    Ok(Exit::Fine)
}

async fn bind(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address} ({flag})"))
}

fn serve_pages(tasks: &mut JoinSet<()>, pages: axum::Router, listener: TcpListener) {
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, pages).await {
            error!(%error, "the page server failed");
        }
    });
}

fn watch_options(args: &ServeArgs) -> WatchOptions {
    let polling = match args.watch {
        settings::WatchMode::Auto => Polling::Auto,
        settings::WatchMode::Poll => Polling::Only,
    };
    WatchOptions::new(files::roots(&args.source.config_dirs, &args.source.extra), polling)
}

fn debounce_options(args: &ServeArgs) -> DebounceOptions {
    DebounceOptions {
        after: args.debounce_after,
        max: args.debounce_max,
        eds: args.enable_eds_debounce,
    }
}

/// Everything that tasks share.
struct State {
    workspace: Mutex<Workspace>,
    problems: Mutex<Vec<Diagnostic>>,
    published: Arc<Published>,
    xds: Arc<Xds>,
}

/// What was published last.
#[derive(Default)]
struct Published {
    generation: ArcSwapOption<Generation>,
    cache: ArcSwapOption<SnapshotCache>,
    findings: ArcSwap<Vec<Diagnostic>>,
    metrics: Metrics,
}

impl State {
    fn new(args: &ServeArgs) -> Arc<State> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let throttle = match args.push_throttle {
            0 => push::default_throttle(cores),
            chosen => chosen,
        };
        let settings = server::Settings {
            push_throttle: throttle,
            drain_timeout: args.shutdown_duration,
            ..server::Settings::default()
        };
        let published = Arc::<Published>::default();
        let xds = Xds::new(settings, Handle(published.clone()), Handle(published.clone()));
        Arc::new(State {
            workspace: Mutex::new(Workspace::new(&args.source.extra.domain)),
            problems: Mutex::default(),
            published,
            xds,
        })
    }
}

/// Takes in what the watcher finds, until it stops.
async fn follow(
    state: Arc<State>,
    mut changes: mpsc::Receiver<Changes>,
    notices: mpsc::Sender<PushRequest<Generation>>,
) {
    while let Some(change) = changes.recv().await {
        state.published.metrics.noticed();
        let complete = change.complete;
        log_files(&change);
        let request = apply(&state, change);
        if state.published.generation.load().is_none() {
            // A proxy that outlived our restart still has its configuration. Serving what can be
            // read of a directory that is not there (a late mount, say) would take it away.
            if !complete {
                for problem in state.problems.lock().unwrap_or_else(PoisonError::into_inner).iter()
                {
                    log(problem);
                }
                warn!("not ready: nothing is served until the directories above can be read");
                continue;
            }
            // Nothing is served yet, so there is nothing to hold back.
            publish(state.clone(), request).await;
        } else if notices.send(request).await.is_err() {
            return;
        }
    }
}

fn apply(state: &State, changes: Changes) -> PushRequest<Generation> {
    let mesh = changes.mesh.is_some();
    let secrets = !changes.secrets_changed.is_empty() || !changes.secrets_removed.is_empty();
    let mut workspace = state.workspace.lock().unwrap_or_else(PoisonError::into_inner);
    let problems = files::apply(&mut workspace, changes);
    *state.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems;
    let kinds = workspace.changed_kinds();
    let endpoints = !kinds.is_empty() && kinds.iter().all(|kind| &**kind == "WorkloadEntry");
    match (mesh, secrets, endpoints) {
        (true, _, _) => PushRequest::new(Changed::Config, Reason::Global),
        (false, true, _) => PushRequest::new(Changed::Config, Reason::Secret),
        (false, false, true) => PushRequest::new(Changed::Endpoints, Reason::Endpoint),
        (false, false, false) => PushRequest::new(Changed::Config, Reason::Config),
    }
}

/// Compiles what is in force, makes it current and pushes it.
async fn publish(state: Arc<State>, request: PushRequest<Generation>) {
    let compiling = tokio::task::spawn_blocking({
        let state = state.clone();
        move || compile(&state)
    });
    let generation = match compiling.await {
        Ok(generation) => generation,
        Err(error) => {
            error!(%error, "compiling failed; what was served stays in force");
            return;
        }
    };
    state.published.metrics.triggered(&request);
    state.xds.push(&PushRequest { payload: Some(generation), ..request });
}

/// Generations are made one after another under the workspace's lock, so they are published in
/// the order of their numbers.
fn compile(state: &State) -> Arc<Generation> {
    let mut workspace = state.workspace.lock().unwrap_or_else(PoisonError::into_inner);
    let start = Instant::now();
    let compiled = workspace.compile();
    let took = start.elapsed();
    let published = &state.published;
    let number = published.generation.load().as_ref().map_or(1, |g| g.number() + 1);
    let mut findings = compiled.diagnostics;
    findings.extend(state.problems.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
    findings.extend(files::expired_certificates(&compiled.snapshot));
    log_new(&published.findings.load(), &findings);
    published.metrics.compiled(&compiled.snapshot, &findings, took);
    info!(
        documents = workspace.len(),
        services = compiled.snapshot.routing.services.len(),
        findings = files::summary(&findings).unwrap_or_else(|| "none".to_owned()),
        millis = took.as_millis(),
        "configuration compiled"
    );
    let cache = Arc::new(SnapshotCache::new(compiled.snapshot));
    let generation = Arc::new(Generation::new(number, Served::new(cache.clone())));
    published.findings.store(Arc::new(findings));
    published.cache.store(Some(cache));
    published.generation.store(Some(generation.clone()));
    generation
}

/// Says which files changed.
fn log_files(change: &Changes) {
    let changed: Vec<&str> = change.changed.iter().map(|source| &*source.path).collect();
    let removed: Vec<&str> = change.removed.iter().map(|path| &**path).collect();
    for (what, files) in [("read", changed), ("gone", removed)] {
        match files.as_slice() {
            [] => {}
            [file] => info!(file, "{what}"),
            [first, ..] => info!(files = files.len(), first, "{what}"),
        }
    }
}

/// Logs findings that were not there before, a line each, and errors that are no longer there.
fn log_new(before: &[Diagnostic], now: &[Diagnostic]) {
    let after: HashSet<String> = now.iter().map(ToString::to_string).collect();
    let errors = before.iter().filter(|d| d.severity == Severity::Error);
    for finding in errors.filter(|d| !after.contains(&d.to_string())).take(LOGGED_FINDINGS) {
        info!(code = %finding.code, "no longer: {finding}");
    }
    let before: HashSet<String> = before.iter().map(ToString::to_string).collect();
    let new: Vec<&Diagnostic> = now.iter().filter(|d| !before.contains(&d.to_string())).collect();
    for finding in new.iter().take(LOGGED_FINDINGS) {
        log(finding);
    }
    if new.len() > LOGGED_FINDINGS {
        warn!(more = new.len() - LOGGED_FINDINGS, "further findings; see /debug/findings");
    }
}

fn log(finding: &Diagnostic) {
    match finding.severity {
        Severity::Error => error!(code = %finding.code, "{finding}"),
        Severity::Warning => warn!(code = %finding.code, "{finding}"),
        Severity::Info => info!(code = %finding.code, "{finding}"),
    }
}

/// The resources of one generation.
struct Served {
    cache: Arc<SnapshotCache>,
    /// Findings about single proxies that were logged already.
    told: Mutex<BTreeSet<String>>,
}

impl Served {
    fn new(cache: Arc<SnapshotCache>) -> Served {
        Served { cache, told: Mutex::default() }
    }
}

impl Resources for Served {
    fn resources(&self, node: &NodeDescription) -> Result<Arc<ResourceSet>, NodeError> {
        let proxy = node.resolve(self.cache.snapshot())?;
        let generated = self.cache.generate(&proxy);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in &generated.diagnostics {
            if told.insert(finding.to_string()) {
                tracing::info_span!("proxy", id = %node.id).in_scope(|| log(finding));
            }
        }
        Ok(generated.set.clone())
    }
}

/// The server's view of what is published.
struct Handle(Arc<Published>);

impl ResourceSource for Handle {
    fn current(&self) -> Option<Arc<Generation>> {
        self.0.generation.load_full()
    }
}

impl Observer for Handle {
    fn sent(&self, type_url: TypeUrl, bytes: usize) {
        self.0.metrics.sent(type_url, bytes);
    }

    fn refused(&self, _: &Diagnostic) {
        self.0.metrics.refused();
    }
}

impl Overview for State {
    fn snapshot(&self) -> Option<Arc<SnapshotCache>> {
        self.published.cache.load_full()
    }

    fn diagnostics(&self) -> Arc<Vec<Diagnostic>> {
        self.published.findings.load_full()
    }

    fn xds(&self) -> &Xds {
        &self.xds
    }

    fn metrics(&self) -> &Metrics {
        &self.published.metrics
    }
}
