//! The serving process: the only place that constructs and connects everything.
//!
//! ```text
//!            Changes                        push
//! watch ----------------> workspace ----------------------> xds server <---> proxies
//!                         (owns the                         |       ^
//!                         documents)          what proxies  |       | the generation
//!                             |                get, refuse  v       | in force
//!                             +----- compiled --------->  publish, findings ---> admin pages
//! ```
//!
//! Start with [`run`]; [`workspace`] is where a change goes its way.

mod findings;
mod publish;
mod workspace;

use crate::admin::{self, Count, Findings, Metrics, Overview};
use crate::commands::{Exit, files};
use crate::compile::Workspace;
use crate::push::{self, DebounceOptions, SnapshotCache};
use crate::server::{self, Xds};
use crate::settings::{self, ServeArgs};
use crate::telemetry;
use crate::watch::{self, Polling, Rescan, WatchOptions};
use anyhow::Context;
use publish::{Board, Handle};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use workspace::Owner;

/// Threads that may block beside those that compute for proxies, which are one for each core: the
/// watcher looks, files are read, the workspace works, a debug page is made.
const OTHER_BLOCKING_THREADS: usize = 4;

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
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // What finds no thread waits for one. By default tokio makes up to 512.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(cores + OTHER_BLOCKING_THREADS)
        .enable_all()
        .build()?;
    runtime.block_on(serve(args, cores))
}

async fn serve(args: &ServeArgs, cores: usize) -> anyhow::Result<Exit> {
    let grpc = bind("--grpc-addr", args.grpc_addr).await?;
    let http = bind("--http-addr", args.http_addr).await?;
    let monitoring = bind("--monitoring-addr", args.monitoring_addr).await?;
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();

    let board = Arc::<Board>::default();
    let settings = server_settings(args, cores);
    let xds = Xds::new(settings, Handle(board.clone()), Handle(board.clone()));
    let state = Arc::new(State { board: board.clone(), xds: xds.clone() });

    info!(directories = ?args.source.config_dirs, "reading configuration");
    let (changes, rescan) = watch::watch(watch_options(args));
    let workspace = Workspace::new(&args.source.extra.domain);
    let owner = Owner::new(workspace, debounce_options(args), board, xds.clone());
    tasks.spawn(owner.run(changes));
    tasks.spawn({
        let (xds, stop) = (xds.clone(), stop.clone());
        async move { xds.run_pushes(stop).await }
    });
    serve_pages(&mut tasks, admin::http(state.clone()), http);
    serve_pages(&mut tasks, admin::monitoring(state), monitoring);
    info!(
        xds = %args.grpc_addr, http = %args.http_addr, monitoring = %args.monitoring_addr,
        "listening"
    );
    let serving = tokio::spawn(xds.serve(grpc, stop.clone()));

    signals.until_stopped(&rescan).await;
    info!("stopping: ending open streams; a second signal stops at once");
    stop.cancel();
    tokio::select! {
        ended = serving => ended.context("the xDS server panicked")?.context("the xDS server failed")?,
        () = signals.until_stopped(&rescan) => warn!("second signal: stopping at once"),
    }
    tasks.abort_all();
    Ok(Exit::Fine)
}

/// The signals that mean something.
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Signals> {
        Ok(Signals {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Until SIGTERM or Ctrl-C. SIGHUP looks at the files again.
    async fn until_stopped(&mut self, rescan: &Rescan) {
        loop {
            tokio::select! {
                _ = self.hangup.recv() => {
                    info!("SIGHUP: looking at the files again");
                    rescan.now();
                }
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
            }
        }
    }
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

fn server_settings(args: &ServeArgs, cores: usize) -> server::Settings {
    server::Settings {
        push_throttle: match args.push_throttle {
            0 => push::default_throttle(cores),
            chosen => chosen,
        },
        computations: cores,
        drain_timeout: args.shutdown_duration,
        ..server::Settings::default()
    }
}

/// What the pages show.
struct State {
    board: Arc<Board>,
    xds: Arc<Xds>,
}

impl Overview for State {
    fn snapshot(&self) -> Option<Arc<SnapshotCache>> {
        self.board.cache()
    }

    fn findings(&self) -> Findings {
        self.board.findings.all()
    }

    fn counts(&self) -> Vec<Count> {
        self.board.findings.counts()
    }

    fn xds(&self) -> &Xds {
        &self.xds
    }

    fn metrics(&self) -> &Metrics {
        &self.board.metrics
    }
}
