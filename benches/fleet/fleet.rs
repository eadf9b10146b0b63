//! Simulated proxies: many streams over a few connections, all on one thread. They ask in the order
//! in which Envoy asks, acknowledge everything, and count what they get.

use super::mesh::Mesh;
use super::wire::{Protocol, Reader, Request, Response, name_field};
use bytes::Bytes;
use h2::SendStream;
use h2::client::SendRequest;
use pilotfish::xds::TypeUrl;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Flow control windows as wide as Envoy's, so that the server decides about the pace.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 24 << 20;

/// How many responses of a type came, and their bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// Responses.
    pub responses: u64,
    /// Bytes of their messages.
    pub bytes: u64,
}

/// What all proxies write down.
#[derive(Debug)]
struct Books {
    /// When what is measured began.
    began: Cell<Instant>,
    /// The type that is an answer to what is measured.
    awaited: Cell<TypeUrl>,
    /// When each proxy had its answer.
    answers: RefCell<Vec<Option<Duration>>>,
    counts: RefCell<BTreeMap<TypeUrl, Count>>,
    last: Cell<Instant>,
    failure: RefCell<Option<String>>,
}

impl Books {
    fn note(&self, proxy: usize, kind: TypeUrl, size: usize) {
        let now = Instant::now();
        self.last.set(now);
        let mut counts = self.counts.borrow_mut();
        let count = counts.entry(kind).or_default();
        count.responses += 1;
        count.bytes += size as u64;
        if kind == self.awaited.get() {
            let answer = &mut self.answers.borrow_mut()[proxy];
            answer.get_or_insert(now - self.began.get());
        }
    }
}

/// Connected proxies. Dropping it closes their connections.
#[derive(Debug)]
pub struct Fleet {
    books: Rc<Books>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Fleet {
    /// Connects proxies and lets them ask. What is measured is their first sync: its last response
    /// is the route table, because each asks for the next type when it has the one before.
    pub async fn connect(
        server: SocketAddr,
        mesh: Mesh,
        protocol: Protocol,
        proxies: usize,
        connections: usize,
    ) -> Result<Fleet, String> {
        let books = Rc::new(Books {
            began: Cell::new(Instant::now()),
            awaited: Cell::new(TypeUrl::Route),
            answers: RefCell::new(vec![None; proxies]),
            counts: RefCell::default(),
            last: Cell::new(Instant::now()),
            failure: RefCell::default(),
        });
        let mut fleet = Fleet { books, tasks: Vec::new() };
        let mut senders = Vec::new();
        for _ in 0..connections.min(proxies) {
            let (sender, connection) =
                open(server).await.map_err(|e| format!("connecting: {e}"))?;
            senders.push(sender);
            // How a connection ended is what its streams say.
            fleet.tasks.push(tokio::task::spawn_local(async {
                let _ = connection.await;
            }));
        }
        for number in 0..proxies {
            let sender = senders[number % senders.len()].clone();
            let books = fleet.books.clone();
            fleet.tasks.push(tokio::task::spawn_local(async move {
                let end = stream(number, sender, server, mesh, protocol, &books).await;
                let reason = end.err().unwrap_or_else(|| "the server ended it".to_owned());
                books.failure.borrow_mut().get_or_insert(format!("proxy {number}: {reason}"));
            }));
        }
        Ok(fleet)
    }

    /// Begins to measure something that a response of this type answers.
    pub fn begin(&self, awaited: TypeUrl) {
        self.books.began.set(Instant::now());
        self.books.awaited.set(awaited);
        self.books.answers.borrow_mut().fill(None);
        self.books.counts.borrow_mut().clear();
    }

    /// When proxies had their answers, sorted.
    pub fn answers(&self) -> Vec<Duration> {
        let mut answers: Vec<Duration> =
            self.books.answers.borrow().iter().flatten().copied().collect();
        answers.sort_unstable();
        answers
    }

    /// What came since the measurement began.
    pub fn counts(&self) -> BTreeMap<TypeUrl, Count> {
        self.books.counts.borrow().clone()
    }

    /// How long nothing has come.
    pub fn quiet(&self) -> Duration {
        self.books.last.get().max(self.books.began.get()).elapsed()
    }

    /// Why a stream ended, if one did.
    pub fn failure(&self) -> Option<String> {
        self.books.failure.borrow().clone()
    }
}

async fn open(
    server: SocketAddr,
) -> Result<
    (SendRequest<Bytes>, h2::client::Connection<TcpStream, Bytes>),
    Box<dyn std::error::Error>,
> {
    let stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    let handshake = h2::client::Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .handshake(stream);
    Ok(handshake.await?)
}

/// One stream, from its first request until it ends.
async fn stream(
    number: usize,
    sender: SendRequest<Bytes>,
    server: SocketAddr,
    mesh: Mesh,
    protocol: Protocol,
    books: &Books,
) -> Result<(), String> {
    let request = http::Request::post(format!("http://{server}{}", protocol.path()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .map_err(|e| e.to_string())?;
    let mut sender = sender.ready().await.map_err(|e| e.to_string())?;
    let (response, requests) = sender.send_request(request, false).map_err(|e| e.to_string())?;
    let mut proxy = Proxy {
        number,
        protocol,
        requests,
        route_table: name_field(mesh.route_table()),
        clusters: HashSet::new(),
        cluster_names: Vec::new(),
        heard: BTreeMap::new(),
    };
    let node = mesh.node(number);
    proxy.send(&Request {
        node: Some(&node),
        type_url: TypeUrl::Cluster.as_str(),
        ..Request::default()
    })?;
    let response = response.await.map_err(|e| e.to_string())?;
    if let Some(status) = response.headers().get("grpc-status") {
        return Err(format!(
            "gRPC status {status:?}: {:?}",
            response.headers().get("grpc-message")
        ));
    }
    let mut body = response.into_body();
    let mut reader = Reader::new(protocol);
    while let Some(chunk) = body.data().await {
        let chunk = chunk.map_err(|e| e.to_string())?;
        let release = body.flow_control().release_capacity(chunk.len());
        release.map_err(|e| e.to_string())?;
        for response in reader.feed(&chunk)? {
            proxy.take(&response, books)?;
        }
    }
    Ok(())
}

/// One simulated proxy.
struct Proxy {
    number: usize,
    protocol: Protocol,
    requests: SendStream<Bytes>,
    /// The name of the route table, encoded.
    route_table: Vec<u8>,
    /// Hashes of the names of the clusters that have come.
    clusters: HashSet<u64>,
    /// The same names, encoded.
    cluster_names: Vec<u8>,
    /// Version and nonce of the last response of each type that has come.
    heard: BTreeMap<TypeUrl, (String, String)>,
}

impl Proxy {
    fn send(&mut self, request: &Request<'_>) -> Result<(), String> {
        let message = Bytes::from(request.encode(self.protocol));
        self.requests.send_data(message, false).map_err(|e| e.to_string())
    }

    /// Notes and acknowledges a response, and asks for what follows.
    fn take(&mut self, response: &Response, books: &Books) -> Result<(), String> {
        let kind = TypeUrl::parse(&response.type_url)
            .ok_or_else(|| format!("a response of type '{}'", response.type_url))?;
        books.note(self.number, kind, response.size);
        let known = self.cluster_names.len();
        for name in &response.clusters {
            // Those without direction go nowhere, and inbound ones have their endpoints inside.
            let hash = xxhash_rust::xxh3::xxh3_64(name.as_bytes());
            if name.starts_with("outbound|") && self.clusters.insert(hash) {
                self.cluster_names.extend(name_field(name));
            }
        }
        let heard = (response.version.clone(), response.nonce.clone());
        let first = self.heard.insert(kind, heard).is_none();
        self.ask(kind, None)?;
        match kind {
            TypeUrl::Cluster if self.cluster_names.len() > known => {
                self.ask(TypeUrl::Endpoint, Some(known))
            }
            TypeUrl::Cluster if first => self.ask(TypeUrl::Listener, Some(0)),
            TypeUrl::Endpoint if first && !self.heard.contains_key(&TypeUrl::Listener) => {
                self.ask(TypeUrl::Listener, Some(0))
            }
            TypeUrl::Listener if first => self.ask(TypeUrl::Route, Some(0)),
            TypeUrl::Cluster
            | TypeUrl::Endpoint
            | TypeUrl::Listener
            | TypeUrl::Route
            | TypeUrl::Secret => Ok(()),
        }
    }

    /// Asks for the names of a type from this byte on, or acknowledges the last response.
    fn ask(&mut self, kind: TypeUrl, new_from: Option<usize>) -> Result<(), String> {
        let names = match kind {
            TypeUrl::Endpoint => &self.cluster_names[..],
            TypeUrl::Route => &self.route_table,
            TypeUrl::Cluster | TypeUrl::Listener | TypeUrl::Secret => &[],
        };
        let names = match self.protocol {
            Protocol::Delta => &names[new_from.unwrap_or(names.len())..],
            // Each request states them all again.
            Protocol::Sotw => names,
        };
        let heard = self.heard.get(&kind);
        let (version, nonce) = heard.map_or(("", ""), |(version, nonce)| (version, nonce));
        // A delta request that only asks for more acknowledges nothing.
        let nonce = match self.protocol {
            Protocol::Delta if new_from.is_some() => "",
            Protocol::Delta | Protocol::Sotw => nonce,
        };
        let request = Request { node: None, type_url: kind.as_str(), names, version, nonce };
        let message = Bytes::from(request.encode(self.protocol));
        self.requests.send_data(message, false).map_err(|e| e.to_string())
    }
}
