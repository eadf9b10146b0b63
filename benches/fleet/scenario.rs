//! One scenario: a mesh, a server and proxies; what the first sync, each edit and reconnecting cost.

use super::fleet::{Count, Fleet};
use super::mesh::{Edit, Mesh};
use super::server::{Memory, Server};
use super::wire::Protocol;
use pilotfish::xds::TypeUrl;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long all proxies may take to have their answer.
const PATIENCE: Duration = Duration::from_secs(240);
/// How often it is looked.
const TICK: Duration = Duration::from_millis(5);
/// The server is idle when it sends nothing and uses next to no CPU for so long. That is longer
/// than settling and the debounce together, which are pauses in the middle of its work.
const IDLE: Duration = Duration::from_millis(400);
/// CPU that counts as next to none, within [`IDLE`].
const NEXT_TO_NONE: Duration = Duration::from_millis(3);

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What tells it from others.
    pub name: String,
    /// The mesh.
    pub mesh: Mesh,
    /// How many proxies there are.
    pub proxies: usize,
    /// The form of the protocol that they speak.
    pub protocol: Protocol,
    /// How many connections they share.
    pub connections: usize,
    /// How often all of them reconnect in the end.
    pub reconnects: usize,
}

/// What one step took.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Step {
    /// Which one.
    pub name: &'static str,
    /// Seconds until half of the proxies had their answer.
    pub half: Option<f64>,
    /// Seconds until all of them had it.
    pub all: Option<f64>,
    /// CPU seconds of the server.
    pub cpu: f64,
    /// What it sent, by type.
    pub sent: BTreeMap<&'static str, Count>,
    /// Its memory afterwards.
    #[serde(flatten)]
    pub memory: Memory,
}

impl Step {
    /// Bytes of all types.
    pub fn bytes(&self) -> u64 {
        self.sent.values().map(|count| count.bytes).sum()
    }
}

/// What a scenario gave.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What was measured.
    pub scenario: Scenario,
    /// Its steps, in their order.
    pub steps: Vec<Step>,
}

impl Outcome {
    /// A step by its name.
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// Counts that do not depend on the machine, and are not what they must be.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let mut only = |name: &str, allowed: &[&str]| {
            let sent = self.step(name).into_iter().flat_map(|step| step.sent.iter());
            for (kind, count) in sent.filter(|(kind, _)| !allowed.contains(kind)) {
                mistakes.push(format!(
                    "{}: {name} sent {} responses of {kind}",
                    self.scenario.name, count.responses
                ));
            }
        };
        only(Edit::Weight.name(), &["rds"]);
        only(Edit::Endpoint.name(), &["eds"]);
        only(Edit::Timeout.name(), &["rds"]);
        only(Edit::Comment.name(), &[]);
        only(Edit::NoOpSave.name(), &[]);
        mistakes
    }
}

/// The step before any proxy connects.
pub const LOAD: &str = "load";
/// The step in which all proxies connect for the first time.
pub const FIRST_SYNC: &str = "first sync";
/// The step in which all proxies connect again, several times; CPU and bytes are those of one time.
pub const RECONNECT: &str = "reconnect";

/// Measures a scenario with this server.
pub async fn measure(scenario: &Scenario, binary: &Path) -> Result<Outcome, String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    scenario.mesh.write(dir.path()).map_err(|e| format!("writing the mesh: {e}"))?;
    let mut run = Run { scenario, server: Server::start(binary, dir.path())?, steps: Vec::new() };
    let result = run.all(dir.path()).await;
    let steps = std::mem::take(&mut run.steps);
    match result {
        Ok(()) => Ok(Outcome { scenario: scenario.clone(), steps }),
        Err(problem) => Err(format!("{problem}; the server said:\n{}", run.server.log())),
    }
}

/// A scenario under way.
struct Run<'a> {
    scenario: &'a Scenario,
    server: Server,
    steps: Vec<Step>,
}

impl Run<'_> {
    async fn all(&mut self, dir: &Path) -> Result<(), String> {
        self.settle(None).await?;
        self.record(LOAD, None, Duration::ZERO, 1)?;

        let before = self.cpu()?;
        let mut fleet = self.connect().await?;
        self.settle(Some(&fleet)).await?;
        self.record(FIRST_SYNC, Some(&fleet), before, 1)?;

        for edit in Edit::ALL {
            let before = self.cpu()?;
            let answer = match edit {
                Edit::Weight | Edit::Timeout => Some(TypeUrl::Route),
                Edit::Endpoint => Some(TypeUrl::Endpoint),
                Edit::Comment | Edit::NoOpSave => None,
            };
            fleet.begin(answer.unwrap_or(TypeUrl::Route));
            self.scenario.mesh.edit(dir, edit).map_err(|e| format!("editing: {e}"))?;
            if answer.is_some() {
                let see = (0..self.scenario.proxies).filter(|p| self.scenario.mesh.sees_edits(*p));
                self.answered(&fleet, see.count(), edit.name()).await?;
            }
            self.settle(Some(&fleet)).await?;
            self.record(edit.name(), Some(&fleet), before, 1)?;
        }

        let before = self.cpu()?;
        for _ in 0..self.scenario.reconnects {
            drop(fleet);
            fleet = self.connect().await?;
        }
        if self.scenario.reconnects > 0 {
            self.settle(Some(&fleet)).await?;
            self.record(RECONNECT, Some(&fleet), before, self.scenario.reconnects)?;
        }
        Ok(())
    }

    /// Connects all proxies, and waits until each has everything.
    async fn connect(&mut self) -> Result<Fleet, String> {
        let Scenario { mesh, protocol, proxies, connections, .. } = *self.scenario;
        let fleet = Fleet::connect(self.server.xds, mesh, protocol, proxies, connections).await?;
        self.answered(&fleet, proxies, "connecting").await?;
        Ok(fleet)
    }

    /// Waits until so many proxies have their answer.
    async fn answered(&mut self, fleet: &Fleet, count: usize, what: &str) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let answered = fleet.answers().len();
            if let Some(failure) = fleet.failure() {
                return Err(format!("{what}: {failure}"));
            }
            if answered >= count {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{what}: {answered} of {count} proxies had their answer"));
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Waits until the server is idle.
    async fn settle(&mut self, fleet: Option<&Fleet>) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let before = self.cpu()?;
            tokio::time::sleep(IDLE).await;
            let used = self.cpu()? - before;
            if used < NEXT_TO_NONE && fleet.is_none_or(|fleet| fleet.quiet() >= IDLE) {
                return Ok(());
            }
        }
        Err("the server does not come to rest".to_owned())
    }

    fn cpu(&mut self) -> Result<Duration, String> {
        self.server.cpu().map_err(|e| format!("reading CPU time: {e}"))
    }

    fn record(
        &mut self,
        name: &'static str,
        fleet: Option<&Fleet>,
        before: Duration,
        times: usize,
    ) -> Result<(), String> {
        let answers = fleet.map(Fleet::answers).unwrap_or_default();
        let at = |index: usize| answers.get(index).map(Duration::as_secs_f64);
        // Of proxies that reconnect, only those that are connected last were counted.
        let sent = fleet.map(Fleet::counts).unwrap_or_default();
        let awaited = ![Edit::Comment.name(), Edit::NoOpSave.name()].contains(&name);
        let step = Step {
            name,
            half: at(answers.len().saturating_sub(1) / 2).filter(|_| awaited),
            all: at(answers.len().saturating_sub(1)).filter(|_| awaited),
            cpu: (self.cpu()? - before).as_secs_f64() / times as f64,
            sent: sent.into_iter().map(|(kind, count)| (kind.short_name(), count)).collect(),
            memory: self.server.memory().map_err(|e| format!("reading memory: {e}"))?,
        };
        self.steps.push(step);
        Ok(())
    }
}
