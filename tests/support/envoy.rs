//! A stock Envoy as a child process, with pilotfish's own bootstrap, and its admin pages.

use pilotfish::commands::bootstrap::{self, Protocol};
use pilotfish::settings::NodeArgs;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

/// How long anything may take on a busy machine before it is called a failure.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How often a condition is looked at.
const TICK: Duration = Duration::from_millis(10);

/// The Envoy to test with: what `PILOTFISH_TEST_ENVOY` names. `Ok(Err(reason))` is a skip.
pub fn find() -> Result<Result<PathBuf, String>, String> {
    let reason = match env::var_os("PILOTFISH_TEST_ENVOY").map(PathBuf::from) {
        Some(path) if path.is_file() => return Ok(Ok(path)),
        Some(path) => format!("PILOTFISH_TEST_ENVOY is {}, which is not there", path.display()),
        None => "PILOTFISH_TEST_ENVOY is not set".to_owned(),
    };
    match env::var("PILOTFISH_REQUIRE_ENVOY").as_deref() {
        Ok("1") => Err(format!("PILOTFISH_REQUIRE_ENVOY=1, but {reason}")),
        _ => Ok(Err(reason)),
    }
}

/// Cases have fixed ports, so one Envoy runs at a time, on the whole machine: whoever listens on
/// this address has the turn.
pub async fn turn() -> Result<TcpListener, String> {
    let place = "127.255.255.254:15998";
    eventually(Duration::from_secs(600), "another test with Envoy to end", async || {
        TcpListener::bind(place).await.ok()
    })
    .await
}

/// Looks again and again until there is something.
pub async fn eventually<T>(
    patience: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> Result<T, String> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = look().await {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("waited {}s for {what}", patience.as_secs()));
        }
        sleep(TICK).await;
    }
}

/// A running Envoy. It is killed when dropped.
pub struct Envoy {
    child: Child,
    admin: SocketAddr,
    dir: TempDir,
}

impl Envoy {
    /// Starts it and waits for its admin page.
    pub async fn start(
        program: &Path,
        node: &NodeArgs,
        xds: SocketAddr,
        protocol: Protocol,
    ) -> Result<Envoy, String> {
        let text = |error: std::io::Error| error.to_string();
        let dir = tempfile::tempdir().map_err(text)?;
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let host = xds.ip().to_string();
        let document = bootstrap::document(node, (&host, xds.port()), any_port, protocol);
        let config = dir.path().join("bootstrap.json");
        fs::write(&config, document.to_string()).map_err(text)?;
        let log = fs::File::create(dir.path().join("log")).map_err(text)?;
        let address_file = dir.path().join("admin");
        let child = Command::new(program)
            .arg("--config-path")
            .arg(&config)
            .arg("--admin-address-path")
            .arg(&address_file)
            .args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"])
            .args(["--drain-time-s", "1", "--drain-strategy", "immediate"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut envoy = Envoy { child, admin: any_port, dir };
        let admin = eventually(PATIENCE, "Envoy's admin page", async || {
            fs::read_to_string(&address_file).ok()?.trim().parse::<SocketAddr>().ok()
        });
        envoy.admin = admin.await.map_err(|error| format!("{error}\n{}", envoy.log()))?;
        Ok(envoy)
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// An admin page.
    pub async fn page(&self, path: &str) -> Result<String, String> {
        let stream = tokio::net::TcpStream::connect(self.admin).await.map_err(|e| e.to_string())?;
        let request = http::Request::get(path).header("host", "admin");
        let (_, body) = super::client::exchange(stream, request).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// The values of all statistics whose names match.
    pub async fn stats(&self, filter: &str) -> Result<Vec<(String, u64)>, String> {
        let page = self.page(&format!("/stats?filter={filter}")).await?;
        let lines = page.lines().filter_map(|line| line.rsplit_once(": "));
        Ok(lines.filter_map(|(name, n)| Some((name.to_owned(), n.parse().ok()?))).collect())
    }

    /// Waits until Envoy says that it has its first configuration.
    pub async fn ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("Envoy ended ({status}):\n{}", self.log()));
            }
            if self.page("/ready").await.is_ok_and(|page| page.trim() == "LIVE") {
                return Ok(());
            }
            if Instant::now() > deadline {
                let init = self.page("/init_dump").await.unwrap_or_default();
                return Err(format!("Envoy does not get ready: {init}\n{}", self.log()));
            }
            sleep(TICK).await;
        }
    }

    /// The names of the dynamic listeners and clusters that are in use, and what is not.
    pub async fn active(&self) -> Result<Active, String> {
        let dump: Value = serde_json::from_str(&self.page("/config_dump").await?)
            .map_err(|error| error.to_string())?;
        let mut active = Active::default();
        for part in dump["configs"].as_array().into_iter().flatten() {
            let list = |key: &str| part[key].as_array().cloned().unwrap_or_default();
            for listener in list("dynamic_listeners") {
                let name = listener["name"].as_str().unwrap_or_default().to_owned();
                if !listener["warming_state"].is_null() || !listener["error_state"].is_null() {
                    active.pending.push(format!("listener {name}: {}", listener["error_state"]));
                }
                if !listener["active_state"].is_null() {
                    active.listeners.insert(name);
                }
            }
            for cluster in list("dynamic_active_clusters") {
                let name = cluster["cluster"]["name"].as_str().unwrap_or_default();
                active.clusters.insert(name.to_owned());
            }
            for cluster in list("dynamic_warming_clusters") {
                active.pending.push(format!("cluster {}", cluster["cluster"]["name"]));
            }
        }
        Ok(active)
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an Envoy uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Active {
    pub listeners: BTreeSet<String>,
    pub clusters: BTreeSet<String>,
    /// What is warming or refused.
    pub pending: Vec<String>,
}
