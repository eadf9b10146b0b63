//! The program, a directory and a real Envoy while people edit: changes reach traffic without a
//! failed request, and a broken document breaks nothing but itself.
//!
//! `PILOTFISH_TEST_ENVOY` names the Envoy, as in `envoy.rs`.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use pilotfish::commands::bootstrap::Protocol;
use pilotfish::settings::NodeArgs;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use support::client::{self, Outcome};
use support::envoy::{self, Envoy, PATIENCE, eventually};
use support::program::{Pilotfish, free_address};
use support::requests::Request;
use support::upstream;
use tempfile::TempDir;
use tokio::task::JoinSet;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
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
    let edits: [(&str, Edit); 3] = [
        ("a_weight_edited_in_place_moves_traffic_without_a_failure", in_place),
        ("a_weight_edited_by_rename_moves_traffic_without_a_failure", by_rename),
        ("a_weight_edited_by_sed_moves_traffic_without_a_failure", by_sed),
    ];
    let mut trials: Vec<Trial> = edits
        .into_iter()
        .map(|(name, edit)| {
            let program = program.clone();
            trial(name, async move || moves_traffic(&program, edit).await)
        })
        .collect();
    trials.push({
        let program = program.clone();
        let claim = "a_document_broken_at_start_up_leaves_the_others_served";
        trial(claim, async move || broken_at_start_up(&program).await)
    });
    trials.push({
        let program = program.clone();
        let claim = "a_document_broken_while_running_keeps_its_last_good_version";
        trial(claim, async move || broken_while_running(&program).await)
    });
    trials.push({
        let program = program.clone();
        let claim = "a_timeout_ends_a_request_that_takes_too_long";
        trial(claim, async move || times_out(&program).await)
    });
    trials.push(trial("a_root_that_is_yet_to_come_is_not_served_as_empty", late_root));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A restart while a mount is late must not take the configuration of running proxies away.
async fn late_root() -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let root = dir.path().join("late");
    let pilotfish = Pilotfish::launch(&root)?;
    pilotfish.logs("not ready: nothing is served").await?;
    match pilotfish.readiness().await {
        Some(http::StatusCode::SERVICE_UNAVAILABLE) => {}
        other => return Err(format!("/ready answers {other:?}:\n{}", pilotfish.log())),
    }
    fs::create_dir(&root).map_err(|e| e.to_string())?;
    pilotfish.until_ready().await
}

fn trial(name: &str, test: impl AsyncFnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(test()).map_err(Failed::from)
    })
}

/// A way to change a file: everywhere in the file, the first text becomes the second.
type Edit = fn(&Path, &str, &str) -> Result<(), String>;

fn changed(path: &Path, from: &str, to: &str) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    match text.contains(from) {
        true => Ok(text.replace(from, to)),
        false => Err(format!("{} does not contain {from}", path.display())),
    }
}

fn in_place(path: &Path, from: &str, to: &str) -> Result<(), String> {
    fs::write(path, changed(path, from, to)?).map_err(|e| e.to_string())
}

fn by_rename(path: &Path, from: &str, to: &str) -> Result<(), String> {
    let beside = path.with_extension("yaml.tmp");
    fs::write(&beside, changed(path, from, to)?).map_err(|e| e.to_string())?;
    fs::rename(beside, path).map_err(|e| e.to_string())
}

fn by_sed(path: &Path, from: &str, to: &str) -> Result<(), String> {
    changed(path, from, to)?;
    let script = format!("s/{from}/{to}/");
    let status = Command::new("sed").arg("-i").arg(script).arg(path).status();
    match status.map_err(|e| e.to_string())?.success() {
        true => Ok(()),
        false => Err("sed failed".to_owned()),
    }
}

/// A directory, pilotfish on it, an Envoy behind that, and two upstreams.
struct Setup {
    dir: TempDir,
    port: u16,
    first: SocketAddr,
    second: SocketAddr,
    pilotfish: Pilotfish,
    envoy: Envoy,
    _upstreams: JoinSet<()>,
}

const GATEWAY: &str = "\
apiVersion: networking.istio.io/v1
kind: Gateway
metadata:
  name: edge
spec:
  servers:
    - port: {number: PORT, name: http, protocol: HTTP}
      hosts: ['*']
";

const SERVICE: &str = "\
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: hello
spec:
  hosts: [hello.example]
  resolution: STATIC
  ports:
    - {number: 80, name: http, protocol: HTTP}
  endpoints:
    - {address: 127.0.0.1, ports: {http: FIRST}, labels: {version: v1}}
    - {address: 127.0.0.1, ports: {http: SECOND}, labels: {version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: hello
spec:
  host: hello.example
  subsets:
    - {name: v1, labels: {version: v1}}
    - {name: v2, labels: {version: v2}}
";

const ROUTE: &str = "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: hello
spec:
  hosts: [hello.example]
  gateways: [edge]
  http:
    - route:
        - destination: {host: hello.example, subset: v1}
          weight: 100 # of the first
        - destination: {host: hello.example, subset: v2}
          weight: 0 # of the second
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: other
spec:
  hosts: [other.example]
  gateways: [edge]
  http:
    - directResponse: {status: 250}
";

impl Setup {
    async fn start(program: &Path, route: &str) -> Result<Setup, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let (first, second, port) = (free_address()?, free_address()?, free_address()?.port());
        let service = SERVICE.replace("FIRST", &first.port().to_string());
        let service = service.replace("SECOND", &second.port().to_string());
        let gateway = GATEWAY.replace("PORT", &port.to_string());
        for (name, text) in [("gateway", &*gateway), ("service", &*service), ("route", route)] {
            let path = dir.path().join(format!("{name}.yaml"));
            fs::write(path, text).map_err(|e| e.to_string())?;
        }
        let upstreams = upstream::start([first, second]).await?;
        let pilotfish = Pilotfish::start(dir.path()).await?;
        let node = NodeArgs {
            id: "edge-1".to_owned(),
            cluster: String::new(),
            metadata: serde_json::Map::new(),
            locality: String::new(),
        };
        let protocol = Protocol::StateOfTheWorld;
        let mut envoy = Envoy::start(program, &node, pilotfish.xds, protocol).await?;
        envoy.ready().await?;
        Ok(Setup { dir, port, first, second, pilotfish, envoy, _upstreams: upstreams })
    }

    fn route(&self) -> PathBuf {
        self.dir.path().join("route.yaml")
    }

    async fn ask(&self, host: &str) -> Outcome {
        client::send(&Request::get(self.port, host, "/")).await
    }

    /// Waits until requests for a host end so.
    async fn answers(&self, host: &str, wanted: Wanted) -> Result<(), String> {
        let what = format!("{host} to get {wanted:?}");
        let answered =
            eventually(PATIENCE, &what, async || wanted.fits(&self.ask(host).await).then_some(()));
        let actual = match answered.await {
            Ok(()) => return Ok(()),
            Err(problem) => format!("{problem}, but it gets {:?}", self.ask(host).await),
        };
        Err(format!("{actual}\n{}\n{}", self.pilotfish.log(), self.envoy.log()))
    }

    /// Requests for a host end so now.
    async fn answers_still(&self, host: &str, wanted: Wanted) -> Result<(), String> {
        let actual = self.ask(host).await;
        match wanted.fits(&actual) {
            true => Ok(()),
            false => Err(format!("{host} got {actual:?}\n{}", self.pilotfish.log())),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Wanted {
    From(SocketAddr),
    Status(u16),
}

impl Wanted {
    fn fits(self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Wanted::From(wanted), Outcome::Echoed { address, .. }) => wanted == *address,
            (Wanted::Status(wanted), Outcome::Local { status, .. }) => wanted == *status,
            _ => false,
        }
    }
}

/// Requests that go on meanwhile; where each ended, in order.
struct Traffic {
    stop: Arc<AtomicBool>,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
    clients: JoinSet<()>,
}

impl Traffic {
    fn start(port: u16) -> Traffic {
        let mut traffic =
            Traffic { stop: Arc::default(), outcomes: Arc::default(), clients: JoinSet::new() };
        for _ in 0..4 {
            let (stop, outcomes) = (traffic.stop.clone(), traffic.outcomes.clone());
            traffic.clients.spawn(async move {
                let request = Request::get(port, "hello.example", "/");
                while !stop.load(Ordering::Relaxed) {
                    let outcome = client::send(&request).await;
                    outcomes.lock().expect("no client panics").push(outcome);
                }
            });
        }
        traffic
    }

    async fn reaches(&self, n: usize) -> Result<(), String> {
        eventually(PATIENCE, &format!("{n} requests"), async || {
            (self.outcomes.lock().expect("no client panics").len() >= n).then_some(())
        })
        .await
    }

    async fn end(mut self) -> Vec<Outcome> {
        self.stop.store(true, Ordering::Relaxed);
        while self.clients.join_next().await.is_some() {}
        std::mem::take(&mut self.outcomes.lock().expect("no client panics"))
    }
}

/// 2,000 requests across a change: none fails, and all go elsewhere in the end.
async fn moves_traffic(program: &Path, edit: Edit) -> Result<(), String> {
    let setup = Setup::start(program, ROUTE).await?;
    let (first, second) = (Wanted::From(setup.first), Wanted::From(setup.second));
    setup.answers("hello.example", first).await?;
    let traffic = Traffic::start(setup.port);
    traffic.reaches(500).await?;
    edit(&setup.route(), "weight: 100 #", "weight: 50 #")?;
    edit(&setup.route(), "weight: 0 #", "weight: 100 #")?;
    edit(&setup.route(), "weight: 50 #", "weight: 0 #")?;
    setup.answers("hello.example", second).await?;
    // From here on the old weights are gone.
    edit(&setup.route(), "status: 250", "status: 251")?;
    setup.answers("other.example", Wanted::Status(251)).await?;
    let so_far = traffic.outcomes.lock().expect("no client panics").len();
    traffic.reaches(2000.max(so_far + 200)).await?;
    let outcomes = traffic.end().await;
    let failed = outcomes.iter().find(|o| !first.fits(o) && !second.fits(o));
    if let Some(failed) = failed {
        return Err(format!("a request got {failed:?}\n{}", setup.pilotfish.log()));
    }
    if !outcomes[..500].iter().all(|outcome| first.fits(outcome)) {
        return Err("requests went to the second before the change".to_owned());
    }
    match outcomes[outcomes.len() - 100..].iter().all(|outcome| second.fits(outcome)) {
        true => Ok(()),
        false => Err("requests went to the first after the change".to_owned()),
    }
}

/// A file in which one document is broken, before one that is not.
fn with_broken(broken: &str) -> String {
    format!("{broken}---\n{ROUTE}")
}

async fn broken_at_start_up(program: &Path) -> Result<(), String> {
    let broken = "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: broken}
spec:
  hosts: [broken.example]
  gateways: [edge]
  http:
    - directResponse: {status: yes}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: torn}
spec:
  hosts: [torn.example
";
    let setup = Setup::start(program, &with_broken(broken)).await?;
    setup.pilotfish.logs("route.yaml:8:32: error[PF0201]").await?;
    setup.pilotfish.logs("error[PF0102]").await?;
    setup.answers("hello.example", Wanted::From(setup.first)).await?;
    setup.answers_still("other.example", Wanted::Status(250)).await?;
    setup.answers_still("broken.example", Wanted::Status(404)).await?;
    setup.answers_still("torn.example", Wanted::Status(404)).await?;
    // Mending it is enough.
    in_place(&setup.route(), "status: yes", "status: 252")?;
    setup.answers("broken.example", Wanted::Status(252)).await
}

async fn broken_while_running(program: &Path) -> Result<(), String> {
    let setup = Setup::start(program, ROUTE).await?;
    let first = Wanted::From(setup.first);
    setup.answers("hello.example", first).await?;
    // One edit breaks one document and changes its neighbour.
    let broken = ROUTE.replace("weight: 100", "weight: lots").replace("status: 250", "status: 251");
    fs::write(setup.route(), broken).map_err(|e| e.to_string())?;
    setup.answers("other.example", Wanted::Status(251)).await?;
    setup.answers_still("hello.example", first).await?;
    setup.pilotfish.logs("route.yaml:11:19: error[PF0201]").await?;
    setup.pilotfish.logs("[PF0108]").await?;
    // The file is torn in the middle of the first document.
    let torn = ROUTE.replacen("gateways: [edge]", "gateways: [edge", 1).replace("250", "253");
    fs::write(setup.route(), torn).map_err(|e| e.to_string())?;
    setup.answers("other.example", Wanted::Status(253)).await?;
    setup.answers_still("hello.example", first).await?;
    // Mended, it counts again; deleted, it is gone.
    let mended =
        ROUTE.replace("weight: 100", "weight: 0").replace("weight: 0 # of the second", "weight: 1");
    fs::write(setup.route(), mended).map_err(|e| e.to_string())?;
    setup.answers("hello.example", Wanted::From(setup.second)).await?;
    fs::remove_file(setup.route()).map_err(|e| e.to_string())?;
    setup.answers("hello.example", Wanted::Status(404)).await?;
    setup.answers_still("other.example", Wanted::Status(404)).await
}

/// The upstream takes longer than the rule allows, and not longer than Envoy's own 15 s.
async fn times_out(program: &Path) -> Result<(), String> {
    let limited = ROUTE.replacen("    - route:", "    - timeout: 0.3s\n      route:", 1);
    let setup = Setup::start(program, &limited).await?;
    setup.answers("hello.example", Wanted::From(setup.first)).await?;
    let mut slow = Request::get(setup.port, "hello.example", "/");
    slow.headers.insert("x-echo-delay-ms".to_owned(), "1500".to_owned());
    match client::send(&slow).await {
        Outcome::Local { status: 504, .. } => {}
        other => return Err(format!("a slow answer gave {other:?}")),
    }
    // A longer one lets the same answer through.
    in_place(&setup.route(), "timeout: 0.3s", "timeout: 9s")?;
    let what = "the slow answer to come through";
    let first = Wanted::From(setup.first);
    eventually(PATIENCE, what, async || first.fits(&client::send(&slow).await).then_some(())).await
}
