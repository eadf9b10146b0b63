//! The real program as a child process, on ports of its own.

use super::envoy::{PATIENCE, eventually};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use tempfile::TempDir;

/// A running `pilotfish serve`. It is killed when dropped.
pub struct Pilotfish {
    child: Child,
    dir: TempDir,
    /// Where it serves xDS.
    pub xds: SocketAddr,
    http: SocketAddr,
}

/// An address that nothing listens on just now, and that nobody is given by chance until it is
/// used: it lies below the ports that the system hands out for "any port" and for connections, and
/// each call in this process gives another one.
pub fn free_address() -> Result<SocketAddr, String> {
    const FIRST: u16 = 22_000;
    const COUNT: u16 = 5_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Processes that run side by side begin at different places.
    let begin = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or_default();
    for _ in 0..COUNT {
        let next = TAKEN.fetch_add(1, Ordering::Relaxed).wrapping_add(begin) % COUNT;
        let address = SocketAddr::from(([127, 0, 0, 1], FIRST + next));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err("no port is free".to_owned())
}

impl Pilotfish {
    /// Starts it on a directory and waits until it is ready.
    pub async fn start(config: &Path) -> Result<Pilotfish, String> {
        let pilotfish = Pilotfish::launch(config)?;
        pilotfish.until_ready().await?;
        Ok(pilotfish)
    }

    /// Starts it on a directory, which need not be there.
    pub fn launch(config: &Path) -> Result<Pilotfish, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let log = fs::File::create(dir.path().join("log")).map_err(|e| e.to_string())?;
        let (xds, http) = (free_address()?, free_address()?);
        let child = Command::new(env!("CARGO_BIN_EXE_pilotfish"))
            .args(["serve", "--log-format", "text", "--monitoring-addr", "127.0.0.1:0"])
            .arg("--config-dir")
            .arg(config)
            .args(["--grpc-addr", &xds.to_string(), "--http-addr", &http.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|e| e.to_string())?;
        Ok(Pilotfish { child, dir, xds, http })
    }

    /// What it answers when it is asked whether it is ready; `None` while nothing answers.
    pub async fn readiness(&self) -> Option<http::StatusCode> {
        let stream = tokio::net::TcpStream::connect(self.http).await.ok()?;
        let request = http::Request::get("/ready").header("host", "pilotfish");
        let (parts, _) = super::client::exchange(stream, request).await.ok()?;
        Some(parts.status)
    }

    /// Waits until it is ready.
    pub async fn until_ready(&self) -> Result<(), String> {
        let ready = eventually(PATIENCE, "pilotfish to be ready", async || {
            self.readiness().await?.is_success().then_some(())
        });
        ready.await.map_err(|problem| format!("{problem}:\n{}", self.log()))
    }

    /// What it logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Waits until it has logged this.
    pub async fn logs(&self, text: &str) -> Result<(), String> {
        let what = format!("the log to say '{text}'");
        let logged = eventually(PATIENCE, &what, async || self.log().contains(text).then_some(()));
        logged.await.map_err(|problem| format!("{problem}:\n{}", self.log()))
    }
}

impl Drop for Pilotfish {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
