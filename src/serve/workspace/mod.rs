//! The task that owns the documents.
//!
//! Nobody else can reach the [`Workspace`]. It is either here, or on a thread that may block, where
//! it takes files in or compiles, and from where it comes back. So no lock is held while it works,
//! and no async worker waits for it.
//!
//! ```text
//!               1 seen                  2 read                   3 quiet
//!  watcher ----------------> prepare ----------> take in - - - - - - - - - -> compile, publish --> push
//!                           (a thread)         (a thread, with the workspace)
//!                                                  |                                 |
//!                                                  +------------> 4 back <-----------+
//! ```

use super::publish::{Board, News};
use crate::commands::files::{self, Prepared};
use crate::compile::Workspace;
use crate::diag::Diagnostic;
use crate::model::Snapshot;
use crate::push::{Changed, DebounceOptions, Debouncer, PushRequest, Reason, Verdict};
use crate::server::{Generation, Xds};
use crate::watch::Changes;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tracing::{error, info, warn};

#[cfg(test)]
mod tests;

/// The owner of the documents.
pub(super) struct Owner {
    board: Arc<Board>,
    xds: Arc<Xds>,
    /// `None` while it is away, working.
    workspace: Option<Workspace>,
    /// Files that are being read and decoded; one batch at a time, so that their order stays.
    preparing: JoinSet<Prepared>,
    /// The workspace while it is away; at most one.
    working: JoinSet<Back>,
    /// What nobody waits for: letting go of what earlier generations needed, finding the places of
    /// what is said about proxies.
    aside: JoinSet<()>,
    /// When changes are due.
    debouncer: Debouncer<Generation>,
    /// What is to be compiled as soon as the workspace is here.
    due: Option<Due>,
    /// What cannot be read just now.
    problems: Arc<[Diagnostic]>,
}

/// Changes that are to be compiled and pushed.
struct Due {
    request: PushRequest<Generation>,
    /// Whether the debouncer waits to hear of the end.
    debounced: bool,
}

/// The workspace comes back from its work.
struct Back {
    workspace: Workspace,
    done: Done,
}

/// What it has done.
enum Done {
    /// `None` if that panicked.
    TookIn(Option<TookIn>),
    Compiled(Due, Outcome),
}

/// What files changed.
struct TookIn {
    request: PushRequest<Generation>,
    problems: Vec<Diagnostic>,
    /// Whether every root could be read.
    complete: bool,
}

/// What compiling gave. Findings are published already.
enum Outcome {
    News(News),
    /// It means what is in force. Documents may have moved in their files.
    Same(Option<Arc<Snapshot>>),
    Panicked,
}

impl Owner {
    pub(super) fn new(
        workspace: Workspace,
        options: DebounceOptions,
        board: Arc<Board>,
        xds: Arc<Xds>,
    ) -> Owner {
        Owner {
            board,
            xds,
            workspace: Some(workspace),
            preparing: JoinSet::new(),
            working: JoinSet::new(),
            aside: JoinSet::new(),
            debouncer: Debouncer::new(options, Instant::now()),
            due: None,
            problems: Arc::default(),
        }
    }

    /// Follows the files until the watcher ends. What is due then is still compiled; what waits for
    /// quiet is dropped.
    pub(super) async fn run(mut self, mut changes: mpsc::Receiver<Changes>) {
        loop {
            let deadline = self.debouncer.deadline();
            // One of five things can happen.
            tokio::select! {
                // 1. The watcher saw that files changed: read and decode them.
                seen = changes.recv(), if self.preparing.is_empty() => match seen {
                    Some(changes) => self.prepare(changes),
                    None => break,
                },
                // 2. Files have been read and the workspace is here: take them in.
                Some(read) = self.preparing.join_next(), if self.workspace.is_some() => {
                    self.take_in(read);
                }
                // 3. It has been quiet, or restless for too long: compile and push.
                () = sleep_until(deadline) => {
                    let verdict = self.debouncer.timer_fired(Instant::now());
                    self.follow(verdict);
                }
                // 4. The workspace is back.
                Some(back) = self.working.join_next() => match back {
                    Ok(back) => self.welcome(back),
                    // Work that panics gives the workspace back, so the runtime is ending.
                    Err(_) => break,
                },
                // 5. The last proxy has left an earlier generation: let go of it.
                () = self.board.until_only_current() => {
                    let board = self.board.clone();
                    self.aside.spawn_blocking(move || board.forget_earlier());
                }
            }
            while self.aside.try_join_next().is_some() {}
        }
        while let Some(Ok(back)) = self.working.join_next().await {
            self.welcome(back);
        }
    }

    fn prepare(&mut self, changes: Changes) {
        self.board.metrics.noticed();
        log_files(&changes);
        self.preparing.spawn_blocking(move || files::prepare(changes));
    }

    fn take_in(&mut self, read: Result<Prepared, JoinError>) {
        let prepared = match read {
            Ok(prepared) => prepared,
            Err(error) => {
                error!(%error, "changed files could not be read; what they held stays in force");
                return;
            }
        };
        self.work(move |workspace| Done::TookIn(guarded(|| take_in(workspace, prepared))));
    }

    fn follow(&mut self, verdict: Verdict<Generation>) {
        match verdict {
            Verdict::Wait => {}
            Verdict::Push(batch) => self.compile(Due { request: batch.request, debounced: true }),
            Verdict::Bypass(request) => self.compile(Due { request, debounced: false }),
        }
    }

    /// Compiles as soon as the workspace is here. Whatever becomes due until then is one push.
    fn compile(&mut self, due: Due) {
        self.due = Some(match self.due.take() {
            None => due,
            Some(waiting) => Due {
                request: waiting.request.merge(due.request),
                debounced: waiting.debounced || due.debounced,
            },
        });
        self.compile_what_is_due();
    }

    fn compile_what_is_due(&mut self) {
        if self.workspace.is_none() {
            return;
        }
        if let Some(due) = self.due.take() {
            let (board, problems) = (self.board.clone(), self.problems.clone());
            self.work(move |workspace| {
                let outcome = guarded(|| compile(workspace, &problems, &board));
                Done::Compiled(due, outcome.unwrap_or(Outcome::Panicked))
            });
        }
    }

    /// Sends the workspace away to do something, if it is here.
    fn work(&mut self, work: impl FnOnce(&mut Workspace) -> Done + Send + 'static) {
        let Some(mut workspace) = self.workspace.take() else { return };
        self.working.spawn_blocking(move || {
            let done = work(&mut workspace);
            Back { workspace, done }
        });
    }

    fn welcome(&mut self, Back { workspace, done }: Back) {
        self.workspace = Some(workspace);
        match done {
            Done::TookIn(Some(taken)) => self.taken(taken),
            Done::TookIn(None) => error!("taking in changed files failed"),
            Done::Compiled(due, outcome) => {
                match outcome {
                    Outcome::News(news) => self.push(due.request, news),
                    Outcome::Same(None) => {}
                    Outcome::Same(Some(moved)) => self.find_places(moved),
                    Outcome::Panicked => error!("compiling failed; what was served stays in force"),
                }
                if due.debounced {
                    let verdict = self.debouncer.finished(Instant::now());
                    self.follow(verdict);
                }
            }
        }
        self.compile_what_is_due();
    }

    fn taken(&mut self, TookIn { request, problems, complete }: TookIn) {
        self.problems = problems.into();
        if !self.board.is_empty() {
            let verdict = self.debouncer.change(request, Instant::now());
            self.follow(verdict);
        } else if complete {
            // Nothing is served yet, so there is nothing to hold back.
            self.compile(Due { request, debounced: false });
        } else {
            // A proxy that outlived our restart still has its configuration. Serving what can be
            // read of a directory that is not there (a late mount, say) would take it away.
            self.board.findings.documents(self.problems.to_vec());
            warn!("not ready: nothing is served until the directories above can be read");
        }
    }

    /// Documents moved: says again, with the new places, what there is to say about proxies.
    fn find_places(&mut self, moved: Arc<Snapshot>) {
        let (board, xds) = (self.board.clone(), self.xds.clone());
        self.aside.spawn_blocking(move || {
            for connection in xds.connections().list() {
                board.find_places(&connection, &moved);
            }
        });
    }

    fn push(&self, request: PushRequest<Generation>, News { generation, changed }: News) {
        let changed = BTreeSet::from([changed]);
        let request = PushRequest { changed, payload: Some(generation), ..request };
        self.board.metrics.triggered(&request);
        self.xds.push(&request);
    }
}

/// Runs what must not take the workspace down with it. A change of the workspace that panics half
/// way leaves each of its files either as it was or as it is now.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

fn take_in(workspace: &mut Workspace, prepared: Prepared) -> TookIn {
    let mesh = prepared.mesh.is_some();
    let secrets = !prepared.secrets_changed.is_empty() || !prepared.secrets_removed.is_empty();
    let complete = prepared.complete;
    let problems = files::take_in(workspace, prepared);
    let kinds = workspace.changed_kinds();
    let endpoints = !kinds.is_empty() && kinds.iter().all(|kind| &**kind == "WorkloadEntry");
    // What kinds tell is a guess, made before compiling, and decides only how long to wait and what
    // is counted. What is pushed is what compiling finds to be different.
    let request = match (mesh, secrets, endpoints) {
        (true, _, _) => PushRequest::new(Changed::Config, Reason::Global),
        (false, true, _) => PushRequest::new(Changed::Config, Reason::Secret),
        (false, false, true) => PushRequest::new(Changed::Endpoints, Reason::Endpoint),
        (false, false, false) => PushRequest::new(Changed::Config, Reason::Config),
    };
    TookIn { request, problems, complete }
}

/// Compiles what is in force and publishes what that gave.
fn compile(workspace: &mut Workspace, problems: &[Diagnostic], board: &Board) -> Outcome {
    let start = Instant::now();
    let compiled = workspace.compile();
    let took = start.elapsed();
    let mut findings = compiled.diagnostics;
    findings.extend(problems.iter().cloned());
    findings.extend(files::expired_certificates(&compiled.snapshot));
    let summary = files::summary(&findings).unwrap_or_else(|| "none".to_owned());
    let services = compiled.snapshot.routing.services.len();
    board.metrics.compiled(&compiled.snapshot, took);
    board.findings.documents(findings);
    let (news, moved) = (board.publish(compiled.snapshot), compiled.moved);
    info!(
        documents = workspace.len(),
        services,
        findings = summary,
        millis = took.as_millis(),
        changed = match &news {
            None => "nothing",
            Some(News { changed: Changed::Endpoints, .. }) => "endpoints",
            Some(News { changed: Changed::Config, .. }) => "configuration",
        },
        "configuration compiled"
    );
    news.map_or(Outcome::Same(moved), Outcome::News)
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

/// Sleeps until the deadline; for ever when there is none.
async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
