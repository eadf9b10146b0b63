//! The server as a child process, and what the system says of it.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long starting may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running `pilotfish serve`. It is killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    dir: TempDir,
    /// Where it serves xDS.
    pub xds: SocketAddr,
    http: SocketAddr,
    cpu: Cpu,
}

/// Memory of a process in MB.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Memory {
    /// Resident now.
    pub rss: u64,
    /// The most that was resident at once.
    pub peak: u64,
}

impl Server {
    /// Starts a binary on a directory and waits until it is ready.
    pub fn start(binary: &Path, config: &Path) -> Result<Server, String> {
        let said = |e: io::Error| format!("{}: {e}", binary.display());
        let dir = tempfile::tempdir().map_err(said)?;
        let log = fs::File::create(dir.path().join("log")).map_err(said)?;
        let (xds, http) = (free_address().map_err(said)?, free_address().map_err(said)?);
        let child = Command::new(binary)
            .args(["serve", "--monitoring-addr", "127.0.0.1:0", "--config-dir"])
            .arg(config)
            .args(["--grpc-addr", &xds.to_string(), "--http-addr", &http.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(said)?;
        let mut server = Server { child, dir, xds, http, cpu: Cpu::default() };
        let start = Instant::now();
        while !server.is_ready() {
            let ended = server.child.try_wait().map_err(said)?;
            if ended.is_some() || start.elapsed() > PATIENCE {
                return Err(format!("the server did not become ready:\n{}", server.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn is_ready(&self) -> bool {
        let ask = || -> io::Result<String> {
            let mut stream = TcpStream::connect(self.http)?;
            stream.write_all(b"GET /ready HTTP/1.1\r\nhost: fleet\r\nconnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        // Not being there yet and not being ready are the same here.
        ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// CPU time since it started.
    pub fn cpu(&mut self) -> io::Result<Duration> {
        self.cpu.sample(self.child.id())
    }

    /// Its memory.
    pub fn memory(&self) -> io::Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let megabytes = |key: &str| -> Option<u64> {
            let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
            Some(rest.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
        };
        let read = || Some(Memory { rss: megabytes("VmRSS:")?, peak: megabytes("VmHWM:")? });
        read().ok_or_else(|| io::Error::other("no VmRSS and VmHWM in /proc/PID/status"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// CPU time of a process, finer than its clock ticks.
///
/// `/proc/PID/stat` counts in ticks, usually of 10 ms, and what matters here may cost less. The
/// threads' `schedstat` count nanoseconds but forget threads that ended since the last sample. Both
/// are at most what was used, so the larger one counts.
#[derive(Debug, Default)]
struct Cpu {
    threads: HashMap<u32, u64>,
    /// Nanoseconds of threads whose number another one has now.
    retired: u64,
}

impl Cpu {
    fn sample(&mut self, process: u32) -> io::Result<Duration> {
        for entry in fs::read_dir(format!("/proc/{process}/task"))? {
            let entry = entry?;
            let thread = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // A thread may end between the listing and the reading.
            let (Some(thread), Some(now)) = (thread, on_cpu(&entry.path())) else { continue };
            let known = self.threads.insert(thread, now);
            self.retired += known.filter(|known| *known > now).unwrap_or(0);
        }
        let fine = Duration::from_nanos(self.retired + self.threads.values().sum::<u64>());
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks: u64 =
            fields.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
        let coarse = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        Ok(fine.max(Duration::from_secs_f64(coarse)))
    }
}

/// Nanoseconds that a thread has run, from its directory in `/proc`.
pub fn on_cpu(thread: &Path) -> Option<u64> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
