//! What a fleet of proxies costs the server: the real binary as a child process, simulated proxies,
//! edits of its files. `make bench` prints the whole table; run it with nothing else on the machine.
//!
//! ```text
//! cargo bench --bench fleet                                   the table, about two minutes
//! cargo bench --bench fleet -- --quick                        a taste of it, some ten seconds
//! cargo bench --bench fleet -- --services 1000 --proxies 300 --namespaces 100 --shape scoped
//! ```
//!
//! The proxies run on the same machine, so that times are upper bounds; what counts are CPU time of
//! the server, bytes, memory, and ratios between rows of one run. Exit code 1 says that a scenario
//! could not be measured, or that a count is wrong which does not depend on the machine: an edit
//! that sent what it should not send.

mod fleet;
mod floor;
mod mesh;
mod scenario;
mod server;
mod table;
mod wire;

use clap::Parser;
use floor::Floor;
use mesh::{Mesh, Shape};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use scenario::{FIRST_SYNC, Outcome, RECONNECT, Scenario};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use wire::Protocol;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a fleet of proxies costs the server. Without arguments: every scenario.
#[derive(Debug, Parser)]
#[command(name = "fleet", max_term_width = 100)]
struct Options {
    /// One scenario with so many services
    #[arg(long)]
    services: Option<usize>,
    /// One scenario with so many proxies
    #[arg(long)]
    proxies: Option<usize>,
    /// One scenario with so many namespaces
    #[arg(long)]
    namespaces: Option<usize>,
    /// One scenario of this shape
    #[arg(long, value_enum)]
    shape: Option<Shape>,
    /// One scenario with the delta protocol, which is also what is used without this
    #[arg(long, conflicts_with = "sotw")]
    delta: bool,
    /// One scenario with the state of the world
    #[arg(long)]
    sotw: bool,
    /// How often all proxies of the one scenario reconnect in the end
    #[arg(long)]
    reconnects: Option<usize>,
    /// Connections that the proxies share; more when there would be more than 90 on one
    #[arg(long, default_value_t = 30)]
    connections: usize,
    /// One small scenario
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The server to measure
    #[arg(long, value_name = "PATH", default_value = env!("CARGO_BIN_EXE_pilotfish"))]
    binary: PathBuf,
    /// What cargo says to benches
    #[arg(long, hide = true)]
    bench: bool,
}

/// Streams on one connection; servers usually allow 100.
const STREAMS: usize = 90;

/// Where an outcome is shown beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// One of the rows side by side.
    Row,
    /// The row that others are compared with.
    Reference,
    /// The smaller or the larger one of a comparison with ten times as many services.
    FewServices,
    ManyServices,
    /// The same for proxies.
    FewProxies,
    ManyProxies,
}

impl Options {
    fn scenario(&self, name: &str, mesh: Mesh, proxies: usize) -> Scenario {
        Scenario {
            name: name.to_owned(),
            mesh,
            proxies,
            protocol: if self.sotw { Protocol::Sotw } else { Protocol::Delta },
            connections: self.connections.max(proxies.div_ceil(STREAMS)),
            reconnects: self.reconnects.unwrap_or(0),
        }
    }

    /// What is to be measured.
    fn plan(&self) -> Vec<(Role, Scenario)> {
        let numbers = [self.services, self.proxies, self.namespaces, self.reconnects];
        let chosen = self.shape.is_some() || self.delta || self.sotw;
        if self.quick || chosen || numbers.iter().any(Option::is_some) {
            return vec![(Role::Reference, self.one())];
        }
        let mesh = |shape, services, namespaces| Mesh { shape, services, namespaces };
        let hundred = mesh(Shape::Sidecars, 1_000, 100);
        let row = |name: &str, mesh, proxies| self.scenario(name, mesh, proxies);
        let mut sotw = row("state of the world", hundred, 300);
        sotw.protocol = Protocol::Sotw;
        let mut thousand = row("1,000 proxies", hundred, 1_000);
        thousand.reconnects = 5;
        vec![
            (Role::Row, row("one namespace", mesh(Shape::Sidecars, 1_000, 1), 300)),
            (Role::Reference, row("100 namespaces", hundred, 300)),
            (Role::Row, sotw),
            (Role::Row, row("Sidecar scopes", mesh(Shape::Scoped, 1_000, 100), 300)),
            (Role::Row, row("short names", mesh(Shape::ShortNames, 1_000, 100), 300)),
            (Role::Row, row("routers", mesh(Shape::Routers, 1_000, 100), 300)),
            (Role::FewServices, row("few services", mesh(Shape::Sidecars, 1_000, 30), 30)),
            (Role::ManyServices, row("many services", mesh(Shape::Sidecars, 10_000, 30), 30)),
            (Role::FewProxies, row("100 proxies", hundred, 100)),
            (Role::ManyProxies, thousand),
        ]
    }

    /// The one scenario that arguments describe.
    fn one(&self) -> Scenario {
        let (services, proxies, namespaces, reconnects) =
            if self.quick { (300, 100, 30, 5) } else { (1_000, 300, 100, 0) };
        let mesh = Mesh {
            shape: self.shape.unwrap_or(Shape::Sidecars),
            services: self.services.unwrap_or(services).max(1),
            namespaces: self.namespaces.unwrap_or(namespaces).max(1),
        };
        let mut scenario = self.scenario("chosen", mesh, self.proxies.unwrap_or(proxies).max(1));
        scenario.reconnects = self.reconnects.unwrap_or(reconnects);
        scenario
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    allow_many_sockets();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime on this thread needs nothing that could be missing");
    let mut outcomes = Vec::new();
    let mut mistakes = Vec::new();
    for (role, scenario) in options.plan() {
        let start = Instant::now();
        eprintln!("measuring '{}' ...", scenario.name);
        // Proxies share what they write down, so they stay on this thread.
        let local = tokio::task::LocalSet::new();
        match local.block_on(&runtime, scenario::measure(&scenario, &options.binary)) {
            Ok(outcome) => {
                mistakes.extend(outcome.mistakes());
                if !options.json {
                    table::steps(&outcome);
                }
                outcomes.push((role, outcome));
            }
            Err(problem) => mistakes.push(format!("{}: {problem}", scenario.name)),
        }
        eprintln!("... {:.0} s", start.elapsed().as_secs_f64());
    }
    let floor = floor_of(&outcomes).unwrap_or_else(|problem| {
        mistakes.push(format!("writing to plain sockets: {problem}"));
        None
    });
    match options.json {
        true => println!("{:#}", as_json(&outcomes, floor, &mistakes)),
        false => print_ratios(&outcomes, floor),
    }
    for mistake in &mistakes {
        eprintln!("{mistake}");
    }
    if mistakes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Raises the number of files that may be open: the floor needs two for each proxy.
fn allow_many_sockets() {
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, opening the sockets says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The first outcome with this role.
fn with_role(outcomes: &[(Role, Outcome)], role: Role) -> Option<&Outcome> {
    outcomes.iter().find(|(own, _)| *own == role).map(|(_, outcome)| outcome)
}

/// The outcome with the most proxies.
fn largest(outcomes: &[(Role, Outcome)]) -> Option<&Outcome> {
    outcomes.iter().map(|(_, outcome)| outcome).max_by_key(|outcome| outcome.scenario.proxies)
}

/// Writes a route table's bytes to as many plain sockets as there were proxies.
fn floor_of(outcomes: &[(Role, Outcome)]) -> std::io::Result<Option<Floor>> {
    let Some(outcome) = largest(outcomes) else { return Ok(None) };
    let sent = outcome.step("weight").and_then(|step| step.sent.get("rds"));
    let Some(sent) = sent.filter(|sent| sent.responses > 0) else { return Ok(None) };
    // As many bytes as were sent, also where the answer took more than one response.
    let bytes = sent.bytes / outcome.scenario.proxies as u64;
    let bytes = usize::try_from(bytes).map_err(std::io::Error::other)?;
    floor::measure(outcome.scenario.proxies, bytes).map(Some)
}

fn print_ratios(outcomes: &[(Role, Outcome)], floor: Option<Floor>) {
    if let Some(reference) = with_role(outcomes, Role::Reference) {
        let rows: Vec<&Outcome> = outcomes
            .iter()
            .filter(|(role, _)| matches!(role, Role::Row | Role::Reference))
            .map(|(_, outcome)| outcome)
            .collect();
        if rows.len() > 1 {
            table::side_by_side(&rows, reference);
        }
    }
    let pairs = [
        ("ten times as many services", Role::FewServices, Role::ManyServices),
        ("ten times as many proxies", Role::FewProxies, Role::ManyProxies),
    ];
    for (what, few, many) in pairs {
        if let (Some(few), Some(many)) = (with_role(outcomes, few), with_role(outcomes, many)) {
            table::growth(what, few, many);
        }
    }
    for (_, outcome) in outcomes {
        let rss = |name| outcome.step(name).map(|step| step.memory.rss as f64);
        if let (Some(first), Some(after)) = (rss(FIRST_SYNC), rss(RECONNECT)) {
            println!("memory after reconnecting: {}", table::title(outcome));
            println!(
                "  RSS {first} MB after the first sync, {after} MB after {} times: {}\n",
                outcome.scenario.reconnects,
                table::ratio(Some(after), Some(first))
            );
        }
    }
    if let (Some(floor), Some(outcome)) = (floor, largest(outcomes)) {
        let weight = outcome.step("weight");
        println!("one changed route table, {}", table::title(outcome));
        println!(
            "  the same {} bytes to {} plain sockets: {} CPU s, {} s",
            floor.bytes,
            floor.sockets,
            table::seconds(Some(floor.cpu)),
            table::seconds(Some(floor.wall)),
        );
        println!(
            "  the server: {} CPU s, {} of it; {} s, settling and debounce included",
            table::seconds(weight.map(|step| step.cpu)),
            table::ratio(weight.map(|step| step.cpu), Some(floor.cpu)),
            table::seconds(weight.and_then(|step| step.all)),
        );
    }
}

fn as_json(outcomes: &[(Role, Outcome)], floor: Option<Floor>, mistakes: &[String]) -> Value {
    let scenarios: Vec<Value> = outcomes
        .iter()
        .map(|(role, outcome)| {
            let scenario = &outcome.scenario;
            json!({
                "name": scenario.name,
                "role": format!("{role:?}"),
                "services": scenario.mesh.services,
                "proxies": scenario.proxies,
                "namespaces": scenario.mesh.namespaces,
                "shape": format!("{:?}", scenario.mesh.shape),
                "protocol": scenario.protocol.name(),
                "reconnects": scenario.reconnects,
                "steps": outcome.steps,
            })
        })
        .collect();
    json!({ "scenarios": scenarios, "floor": floor, "mistakes": mistakes })
}
