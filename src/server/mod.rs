//! The xDS server: gRPC streams of proxies, each with a task that owns its protocol state.
//!
//! ```text
//! service   HTTP path -> stream          request   protobuf -> ads::Request
//!    |                                      |
//!    +--spawns--> stream: requests and pushes meet, ads::Stream decides
//!                    |                      |
//!                 connections  for debug    wire + body   responses, shared bytes
//! ```
//!
//! Start with [`Xds::new`], run [`Xds::run_pushes`] once, and [`Xds::serve`] on each listener.

mod body;
mod connections;
mod request;
mod rpc;
mod service;
mod source;
mod stream;
mod wire;

pub use connections::{Connection, Connections, Progress};
pub use source::{Generation, ResourceSource, Resources};

use crate::diag::Diagnostic;
use crate::push::{PushRequest, Pusher};
use crate::xds::TypeUrl;
use service::XdsService;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;
use wire::Encoder;

/// The settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many connections are worked on at once, new ones included (`PILOT_PUSH_THROTTLE`).
    pub push_throttle: usize,
    /// How many of these are computed at once, each on a thread: computing keeps a core busy, so
    /// more than there are cores would only take turns.
    pub computations: usize,
    /// After how much silence a connection is asked whether it is alive.
    pub keepalive_interval: Duration,
    /// How long it may take to answer that.
    pub keepalive_timeout: Duration,
    /// Streams on one connection.
    pub max_concurrent_streams: u32,
    /// The longest request. A proxy that reconnects in delta names everything that it has.
    pub max_request_bytes: usize,
    /// How long ending connections are waited for.
    pub drain_timeout: Duration,
    /// When to try again what was refused because of something that may pass, such as a port that
    /// another process has.
    pub retry_after: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            push_throttle: crate::push::default_throttle(1),
            computations: std::thread::available_parallelism().map_or(1, usize::from),
            keepalive_interval: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(10),
            max_concurrent_streams: 100,
            max_request_bytes: 16 * 1024 * 1024,
            drain_timeout: Duration::from_secs(10),
            retry_after: stream::RETRY_AFTER,
        }
    }
}

/// Is told what happens, for metrics and reports. The tasks of the streams call it, so it must not
/// take long. What is told about one connection is told in order, its end last and once.
pub trait Observer: Send + Sync + 'static {
    /// A response of so many bytes was made for a proxy.
    fn sent(&self, _type_url: TypeUrl, _bytes: usize) {}

    /// This is to be said about what a proxy gets now, and nothing else any more.
    fn generated(&self, _connection: &Connection, _findings: &[Diagnostic]) {}

    /// A proxy refused a response. The server itself does not log it.
    fn refused(&self, _connection: &Connection, _type_url: TypeUrl, _diagnostic: &Diagnostic) {}

    /// A proxy has accepted a response of this type after a refusal.
    fn accepted(&self, _connection: &Connection, _type_url: TypeUrl) {}

    /// A proxy is gone.
    fn disconnected(&self, _connection: &Connection) {}
}

/// Nobody is told.
impl Observer for () {}

/// The server's state, shared by all listeners and streams.
pub struct Xds {
    settings: Settings,
    source: Box<dyn ResourceSource>,
    observer: Box<dyn Observer>,
    pusher: Arc<Pusher<Generation>>,
    /// One for each computation that may run.
    cores: Arc<Semaphore>,
    connections: Arc<Connections>,
    encoder: Encoder,
}

impl Xds {
    /// A server that nobody is connected to yet.
    pub fn new(
        settings: Settings,
        source: impl ResourceSource,
        observer: impl Observer,
    ) -> Arc<Xds> {
        Arc::new(Xds {
            pusher: Pusher::new(settings.push_throttle),
            cores: Arc::new(Semaphore::new(settings.computations.max(1))),
            settings,
            source: Box::new(source),
            observer: Box::new(observer),
            connections: Arc::default(),
            encoder: Encoder::default(),
        })
    }

    /// Pushes to everybody who is connected. The payload is the generation to push; its source
    /// must give it, or a newer one, as the current one by now.
    pub fn push(&self, request: &PushRequest<Generation>) {
        self.pusher.push(request);
    }

    /// Who is connected.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// How many pushes wait.
    pub fn waiting_pushes(&self) -> usize {
        self.pusher.waiting()
    }

    /// Hands out pushes until stopped.
    pub async fn run_pushes(&self, stop: CancellationToken) {
        tokio::select! {
            () = self.pusher.run() => {}
            () = stop.cancelled() => {}
        }
        self.pusher.close();
    }

    /// Serves on this listener until stopped. Then it accepts nobody any more, ends all streams
    /// with `Unavailable`, and waits for the connections to end, but not for longer than the
    /// drain timeout.
    ///
    /// # Errors
    ///
    /// The listener failed.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        stop: CancellationToken,
    ) -> Result<(), tonic::transport::Error> {
        let Settings { keepalive_interval, keepalive_timeout, drain_timeout, .. } = self.settings;
        let server = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(keepalive_interval))
            .http2_keepalive_timeout(Some(keepalive_timeout))
            .max_concurrent_streams(self.settings.max_concurrent_streams);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let service = XdsService { xds: self, stop: stop.clone() };
        let serving =
            server.serve_with_incoming_shutdown(service, incoming, stop.clone().cancelled_owned());
        let too_long = async {
            stop.cancelled().await;
            tokio::time::sleep(drain_timeout).await;
        };
        tokio::select! {
            result = serving => result,
            () = too_long => Ok(()),
        }
    }
}

impl fmt::Debug for Xds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xds").field("connections", &self.connections.len()).finish_non_exhaustive()
    }
}
