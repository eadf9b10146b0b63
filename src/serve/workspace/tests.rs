//! The way of a change through the task, on paused time.

use super::super::publish::Handle;
use super::*;
use crate::config::SourceFile;
use crate::diag::Code;
use crate::server::{ResourceSource, Settings};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;

const MS: Duration = Duration::from_millis(1);

/// The task, and the two ends that it stands between.
struct Running {
    changes: mpsc::Sender<Changes>,
    board: Arc<Board>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(options: DebounceOptions) -> Running {
        let board = Arc::<Board>::default();
        let xds = Xds::new(Settings::default(), Handle(board.clone()), Handle(board.clone()));
        let workspace = Workspace::new("cluster.local");
        let owner = Owner::new(workspace, options, board.clone(), xds);
        let (changes, receiver) = mpsc::channel(1);
        let task = tokio::spawn(owner.run(receiver));
        Running { changes, board, task }
    }

    /// A task that has published these files.
    async fn on(options: DebounceOptions, files: &[(&str, &str)]) -> Running {
        let running = Running::start(options);
        running.change(files).await;
        running.settled().await;
        assert_eq!(running.generation(), Some(1));
        running
    }

    async fn send(&self, changes: Changes) {
        self.changes.send(changes).await.expect("the task runs");
    }

    /// Files change.
    async fn change(&self, files: &[(&str, &str)]) {
        self.send(changed(files)).await;
    }

    /// Waits until everything has been done that can be done now. Paused time passes only when
    /// nothing runs, threads that may block included.
    async fn settled(&self) {
        sleep(MS).await;
    }

    /// The number of the generation in force.
    fn generation(&self) -> Option<u64> {
        Handle(self.board.clone()).current().map(|generation| generation.number())
    }

    fn findings(&self) -> Vec<Code> {
        self.board.findings.all().documents.iter().map(|finding| finding.code).collect()
    }
}

fn changed(files: &[(&str, &str)]) -> Changes {
    let changed = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
    Changes { changed, complete: true, ..Changes::default() }
}

fn service(host: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {host}}}\n\
         spec:\n  hosts: [{host}.example]\n  resolution: STATIC\n\
         \x20 ports: [{{number: 80, name: http, protocol: HTTP}}]\n\
         \x20 workloadSelector: {{labels: {{app: a}}}}\n"
    )
}

fn workload(address: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {{name: w}}\n\
         spec: {{address: {address}, labels: {{app: a}}}}\n"
    )
}

fn options() -> DebounceOptions {
    DebounceOptions::default()
}

#[tokio::test(start_paused = true)]
async fn the_first_look_is_published_without_waiting_for_quiet() {
    let running = Running::start(DebounceOptions { after: MS * 10_000, ..options() });
    running.change(&[("a.yaml", &service("a"))]).await;
    running.settled().await;
    assert_eq!(running.generation(), Some(1));
    let cache = running.board.cache().expect("published");
    assert_eq!(cache.snapshot().routing.services.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_empty_directory_is_published_and_one_that_cannot_be_read_is_not() {
    let running = Running::start(options());
    let problem = Diagnostic::new(Code::FileUnreadable, "not there");
    running.send(Changes { problems: vec![problem], ..Changes::default() }).await;
    sleep(MS * 60_000).await;
    assert_eq!(running.generation(), None);
    assert_eq!(running.findings(), [Code::FileUnreadable]);
    running.change(&[]).await;
    running.settled().await;
    assert_eq!(running.generation(), Some(1));
    assert!(running.findings().is_empty());
}

#[tokio::test(start_paused = true)]
async fn changes_close_together_are_one_generation_after_the_quiet_time() {
    let running = Running::on(options(), &[]).await;
    running.change(&[("a.yaml", &service("a"))]).await;
    sleep(MS * 60).await;
    running.change(&[("b.yaml", &service("b"))]).await;
    sleep(MS * 60).await;
    assert_eq!(running.generation(), Some(1), "it has been quiet for 60 ms only");
    sleep(MS * 60).await;
    assert_eq!(running.generation(), Some(2));
    let cache = running.board.cache().expect("published");
    assert_eq!(cache.snapshot().routing.services.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_comment_is_no_new_generation_and_moves_the_findings() {
    let typo = service("a").replace("hosts:", "hostss: []\n  hosts:");
    let running = Running::on(options(), &[("a.yaml", &typo)]).await;
    let lines = || -> Vec<Option<u32>> {
        let findings = running.board.findings.all().documents;
        findings.iter().map(|f| f.span.as_ref().map(|span| span.start.line)).collect()
    };
    let before = lines();
    assert!(!before.is_empty());
    running.change(&[("a.yaml", &format!("# why\n{typo}"))]).await;
    sleep(MS * 200).await;
    assert_eq!(running.generation(), Some(1));
    let moved: Vec<Option<u32>> = before.iter().map(|line| line.map(|line| line + 1)).collect();
    assert_eq!(lines(), moved);
    running.change(&[("a.yaml", &service("b"))]).await;
    sleep(MS * 200).await;
    assert_eq!(running.generation(), Some(2));
}

#[tokio::test(start_paused = true)]
async fn endpoints_do_not_wait_when_their_debounce_is_off() {
    let files = [("a.yaml", &*service("a")), ("w.yaml", &*workload("10.0.0.1"))];
    let slow = DebounceOptions { after: MS * 10_000, eds: false, ..options() };
    let running = Running::on(slow, &files).await;
    running.change(&[("w.yaml", &workload("10.0.0.2"))]).await;
    running.settled().await;
    assert_eq!(running.generation(), Some(2));
    running.change(&[("a.yaml", &service("b"))]).await;
    sleep(MS * 9_000).await;
    assert_eq!(running.generation(), Some(2));
    sleep(MS * 2_000).await;
    assert_eq!(running.generation(), Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_document_that_breaks_is_a_finding_and_its_last_good_version_stays() {
    let running = Running::on(options(), &[("a.yaml", &service("a"))]).await;
    running.change(&[("a.yaml", &service("a").replace("STATIC", "NOWHERE"))]).await;
    sleep(MS * 200).await;
    assert!(running.findings().contains(&Code::LastGoodServed), "{:?}", running.findings());
    let cache = running.board.cache().expect("published");
    assert_eq!(cache.snapshot().routing.services.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_watcher_is_the_end_of_the_task_after_what_it_is_doing() {
    let running = Running::start(options());
    running.change(&[("a.yaml", &service("a"))]).await;
    let Running { changes, board, task } = running;
    drop(changes);
    task.await.expect("it does not panic");
    assert!(!board.is_empty());
}
