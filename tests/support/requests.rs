//! `requests.yaml` of a golden case: requests, and where they must end.

use super::case::{self, Case};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

/// An entry of `requests.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What it claims.
    pub name: String,
    /// The proxy that it is sent to.
    pub proxy: String,
    /// The port that the client connects to.
    pub port: u16,
    /// The address that the client connects to.
    #[serde(default = "loopback")]
    pub address: IpAddr,
    /// For intercepted traffic: it comes to the workload instead of from it.
    #[serde(default)]
    pub inbound: bool,
    /// `Host`; the address and port when absent.
    #[serde(default)]
    pub host: Option<String>,
    /// Path and query.
    #[serde(default = "root")]
    pub path: String,
    #[serde(default = "get")]
    pub method: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The client speaks TLS.
    #[serde(default)]
    pub tls: Option<ClientTls>,
    /// The client sends a line that is not HTTP.
    #[serde(default)]
    pub tcp: bool,
    pub expect: Expect,
}

/// What the client's hello says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientTls {
    #[serde(default)]
    pub sni: Option<String>,
    #[serde(default)]
    pub alpn: Vec<String>,
}

/// Where a request must end; the README of the golden cases has the meaning.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub cluster: Option<String>,
    pub clusters: Option<BTreeSet<String>>,
    pub path: Option<String>,
    pub host: Option<String>,
    pub status: Option<u16>,
    pub location: Option<String>,
    #[serde(default)]
    pub refused: bool,
}

/// Where a request ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The connection is not taken, or not served; the reason is for people.
    Refused(String),
    /// Envoy answers itself.
    Local { status: u16, location: Option<String> },
    /// It goes to one of these clusters.
    Upstream { clusters: BTreeSet<String>, seen: Option<Seen> },
}

/// What the upstream sees of an HTTP request; `None` when it depends on the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub path: String,
    pub host: Option<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Refused(reason) => write!(f, "refused: {reason}"),
            Answer::Local { status, location: None } => write!(f, "status {status}"),
            Answer::Local { status, location: Some(to) } => write!(f, "status {status} to {to}"),
            Answer::Upstream { clusters, seen } => {
                let names: Vec<&str> = clusters.iter().map(String::as_str).collect();
                write!(f, "{}", names.join(" or "))?;
                match seen {
                    None => Ok(()),
                    Some(Seen { path, host: None }) => write!(f, " as {path}"),
                    Some(Seen { path, host: Some(host) }) => write!(f, " as {path} of {host}"),
                }
            }
        }
    }
}

impl Request {
    /// A plain request to a port of this machine.
    pub fn get(port: u16, host: &str, path: &str) -> Request {
        Request {
            name: String::new(),
            proxy: String::new(),
            port,
            address: loopback(),
            inbound: false,
            host: Some(host.to_owned()),
            path: path.to_owned(),
            method: get(),
            headers: BTreeMap::new(),
            tls: None,
            tcp: false,
            expect: Expect::default(),
        }
    }

    /// The `Host` that is sent.
    pub fn authority(&self) -> String {
        self.host.clone().unwrap_or_else(|| format!("{}:{}", self.address, self.port))
    }
}

impl Expect {
    /// Whether the answer is the expected one; says what is not.
    pub fn judge(&self, answer: &Answer) -> Result<(), String> {
        let fits = match answer {
            Answer::Refused(_) => self.refused,
            Answer::Local { status, location } => {
                self.status == Some(*status)
                    && (self.location.is_none() || self.location == *location)
            }
            Answer::Upstream { clusters, seen } => {
                let wanted = self.clusters.clone().or(self.cluster.clone().map(|c| [c].into()));
                let fits = |wanted: &Option<String>, seen: Option<&String>| {
                    wanted.is_none() || wanted.as_ref() == seen
                };
                wanted.as_ref() == Some(clusters)
                    && fits(&self.path, seen.as_ref().map(|seen| &seen.path))
                    && fits(&self.host, seen.as_ref().and_then(|seen| seen.host.as_ref()))
            }
        };
        if fits { Ok(()) } else { Err(format!("expected {self:?}, got {answer}")) }
    }
}

/// The requests of a case; none when it has no such file.
pub fn of(case: &Case) -> Result<Vec<Request>, String> {
    let path = case.dir.join("requests.yaml");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let requests: Vec<Request> = case::yaml(&path)?;
    for request in &requests {
        if !case.proxies.iter().any(|proxy| proxy.name == request.proxy) {
            return Err(format!("'{}' names no proxy of the case", request.name));
        }
    }
    Ok(requests)
}

fn loopback() -> IpAddr {
    IpAddr::from([127, 0, 0, 1])
}

fn root() -> String {
    "/".to_owned()
}

fn get() -> String {
    "GET".to_owned()
}
