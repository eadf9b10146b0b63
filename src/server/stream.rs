//! The task of one stream. It owns the stream's protocol state; requests and pushes meet here, so
//! that state has one writer and everything that is sent has one order.

use super::Xds;
use super::body::Outgoing;
use super::connections::{Connection, Listed};
use super::request::{self, Received};
use super::rpc::Rpc;
use super::source::Generation;
use crate::ads::{Action, Event, Protocol, Refusal, Request, Stream};
use crate::generate::Generated;
use crate::proxy::NodeDescription;
use crate::push::{ConnectionId, Job, Offer};
use crate::xds::{TypeUrl, pb};
use pb::discovery::{DeltaDiscoveryRequest, DiscoveryRequest};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

/// While so many responses wait for the client to read, its requests are left unread. Requests go
/// on being read before that, so that a client which writes before it reads is not stuck with us.
const MAX_WAITING: usize = 64;

/// The requests of a stream, of either variant.
pub(super) enum Requests {
    State(Streaming<DiscoveryRequest>),
    Delta(Streaming<DeltaDiscoveryRequest>),
}

impl Requests {
    async fn next(&mut self) -> Result<Option<Received>, Status> {
        Ok(match self {
            Requests::State(requests) => requests.message().await?.map(Received::from),
            Requests::Delta(requests) => requests.message().await?.map(Received::from),
        })
    }
}

/// What a stream is opened with.
pub(super) struct Opened {
    pub(super) xds: Arc<Xds>,
    pub(super) rpc: &'static Rpc,
    pub(super) peer: Option<SocketAddr>,
    pub(super) requests: Requests,
    pub(super) outgoing: mpsc::Sender<Outgoing>,
    pub(super) stop: CancellationToken,
}

/// Serves a stream to its end.
pub(super) async fn run(mut opened: Opened) {
    let status = match serve(&mut opened).await {
        Ok(()) => Status::ok(""),
        Err(status) => {
            // A proxy that is refused tries again and again; its operator looks here.
            if matches!(status.code(), Code::InvalidArgument | Code::ResourceExhausted) {
                let peer = opened.peer.map(tracing::field::display);
                tracing::warn!(peer, reason = status.message(), "stream refused");
            }
            status
        }
    };
    // It fails if the client is gone.
    let _ = opened.outgoing.send(Outgoing::End(status)).await;
}

async fn serve(opened: &mut Opened) -> Result<(), Status> {
    let first = tokio::select! {
        () = opened.stop.cancelled() => return Err(shutting_down()),
        () = opened.outgoing.closed() => return Ok(()),
        first = opened.requests.next() => first?,
    };
    let Some(Received { node, mut request }) = first else { return Ok(()) };
    let node = node.filter(|node| !node.id.is_empty());
    let node = node.ok_or_else(|| Status::invalid_argument("missing node information"))?;
    let node = Arc::new(request::describe(node));
    request::imply_type(opened.rpc, &mut request)?;

    // A thousand proxies that connect at once wait their turn here, as a push to them would.
    let slot = tokio::select! {
        () = opened.stop.cancelled() => return Err(shutting_down()),
        () = opened.outgoing.closed() => return Ok(()),
        slot = opened.xds.pusher.slot() => slot,
    };
    // Registered before the state is read, so that a change in between is pushed.
    let (registration, mut offers) = opened.xds.pusher.register();
    let generation = opened.xds.source.current().ok_or_else(not_ready)?;
    let generated = compute(&opened.xds, generation.clone(), node.clone()).await?;
    let connection = Connection::new(
        registration.id(),
        node.clone(),
        opened.peer,
        opened.rpc.protocol,
        opened.rpc.type_url,
    );
    let mut session = Session {
        listed: opened.xds.connections.add(connection),
        xds: opened.xds.clone(),
        stream: Stream::new(opened.rpc.protocol, node.id.as_str()),
        node,
        protocol: opened.rpc.protocol,
        generation,
        generated,
        waiting: VecDeque::new(),
        retries: BTreeMap::new(),
    };
    session.log("connected");
    session.tell_findings();
    let answered = session.on(Event::Request(request), None);
    // The slot is for the work. Waiting for the client to read must not hold up others.
    drop(slot);
    let end = match answered {
        Ok(()) => session.run(opened, &mut offers).await,
        Err(status) => Err(status),
    };
    session.log("disconnected");
    end
}

/// What a stream is while it is served.
struct Session {
    xds: Arc<Xds>,
    listed: Listed,
    node: Arc<NodeDescription>,
    protocol: Protocol,
    stream: Stream,
    generation: Arc<Generation>,
    generated: Arc<Generated>,
    waiting: VecDeque<Waiting>,
    /// Types of which something is to be tried again, and when.
    retries: BTreeMap<TypeUrl, Instant>,
}

/// A response that waits for the client to read, and the push that it belongs to.
struct Waiting {
    type_url: TypeUrl,
    outgoing: Outgoing,
    _job: Option<Arc<Job<ConnectionId, Generation>>>,
}

impl Session {
    async fn run(
        &mut self,
        opened: &mut Opened,
        offers: &mut mpsc::Receiver<Offer<Generation>>,
    ) -> Result<(), Status> {
        loop {
            let retry = self.retries.iter().map(|(type_url, at)| (*at, *type_url)).min();
            tokio::select! {
                () = opened.stop.cancelled() => return Err(shutting_down()),
                () = opened.outgoing.closed() => return Ok(()),
                place = opened.outgoing.reserve(), if !self.waiting.is_empty() => {
                    let Ok(place) = place else { return Ok(()) };
                    if let Some(next) = self.waiting.pop_front() {
                        place.send(next.outgoing);
                        self.listed.connection().sent(next.type_url);
                    }
                }
                received = opened.requests.next(), if self.waiting.len() < MAX_WAITING => {
                    let Some(received) = ended_well(received)? else { return Ok(()) };
                    self.request(opened.rpc, received.request)?;
                }
                Some(offer) = offers.recv() => self.push(offer).await?,
                () = sleep_until(retry.map_or_else(Instant::now, |r| r.0)), if retry.is_some() => {
                    if let Some((_, type_url)) = retry {
                        self.retries.remove(&type_url);
                        self.on(Event::Retry(type_url), None)?;
                    }
                }
            }
        }
    }

    fn request(&mut self, rpc: &Rpc, mut request: Request) -> Result<(), Status> {
        request::imply_type(rpc, &mut request)?;
        self.on(Event::Request(request), None)
    }

    async fn push(&mut self, offer: Offer<Generation>) -> Result<(), Status> {
        let Offer { job, slot } = offer;
        let newer = job.request.payload.clone().filter(|g| g.number() >= self.generation.number());
        // Without a generation, or with one that is older than what the client was answered from,
        // there is nothing to say that was not said.
        let Some(generation) = newer else { return Ok(()) };
        match compute(&self.xds, generation.clone(), self.node.clone()).await {
            Ok(generated) => {
                self.generation = generation;
                self.generated = generated;
                self.tell_findings();
            }
            // The proxy keeps what it has: what changed is our view of it, not its need.
            Err(status) => {
                tracing::error!(proxy = %self.node.id, error = status.message(), "not pushed");
                return Ok(());
            }
        }
        let result = self.on(Event::Push, Some(Arc::new(job)));
        // As above.
        drop(slot);
        result
    }

    /// Takes in an event and carries out what follows from it.
    fn on(
        &mut self,
        event: Event,
        job: Option<Arc<Job<ConnectionId, Generation>>>,
    ) -> Result<(), Status> {
        for action in self.stream.on(event, &self.generated.set) {
            match action {
                Action::Send(response) => {
                    let message =
                        self.xds.encoder.encode(self.protocol, &response).map_err(|_| {
                            Status::resource_exhausted("the response is longer than gRPC allows")
                        })?;
                    tracing::debug!(
                        proxy = %self.node.id,
                        ty = response.type_url.short_name(),
                        n_resources = response.resources.len(),
                        n_removed = response.removed.len(),
                        bytes = message.len(),
                        nonce = %response.nonce,
                        "sent"
                    );
                    self.xds.observer.sent(response.type_url, message.len());
                    self.waiting.push_back(Waiting {
                        type_url: response.type_url,
                        outgoing: Outgoing::Message(message),
                        _job: job.clone(),
                    });
                }
                Action::Report(type_url, diagnostic) => {
                    let connection = self.listed.connection();
                    self.xds.observer.refused(connection, type_url, &diagnostic);
                }
                Action::Accepted(type_url) => {
                    self.xds.observer.accepted(self.listed.connection(), type_url);
                }
                Action::RetryLater(type_url) => {
                    let at = Instant::now() + self.xds.settings.retry_after;
                    self.retries.entry(type_url).or_insert(at);
                }
                Action::Close(Refusal::InvalidRequest(why)) => {
                    return Err(Status::invalid_argument(why));
                }
                Action::Close(Refusal::TooMuch(why)) => {
                    return Err(Status::resource_exhausted(why));
                }
            }
        }
        self.listed.connection().update(self.generation.number(), self.stream.status());
        Ok(())
    }

    fn tell_findings(&self) {
        let connection = self.listed.connection();
        self.xds.observer.generated(connection, &self.generated.diagnostics);
    }

    fn log(&self, what: &str) {
        let connection = self.listed.connection();
        let peer = connection.peer.map(tracing::field::display);
        tracing::info!(proxy = %self.node.id, connection = %connection.id, peer, "{what}");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.xds.observer.disconnected(self.listed.connection());
    }
}

/// What the node should have, made where blocking is allowed, a core each.
async fn compute(
    xds: &Xds,
    generation: Arc<Generation>,
    node: Arc<NodeDescription>,
) -> Result<Arc<Generated>, Status> {
    let core = xds.cores.clone().acquire_owned().await.expect("nobody closes the cores");
    let computing = tokio::task::spawn_blocking(move || {
        // Kept here, so that a computation counts to its end even if its stream is gone.
        let _core = core;
        generation.resources(&node)
    });
    match computing.await {
        Ok(Ok(generated)) => Ok(generated),
        Ok(Err(error)) => Err(Status::invalid_argument(error.to_string())),
        Err(_) => Err(Status::internal("the resources could not be made")),
    }
}

/// A connection that breaks is the end of a stream like any other.
fn ended_well(received: Result<Option<Received>, Status>) -> Result<Option<Received>, Status> {
    match received {
        Err(status) if status.code() == tonic::Code::Cancelled => Ok(None),
        received => received,
    }
}

pub(super) fn not_ready() -> Status {
    Status::unavailable("server is not ready to serve discovery information")
}

pub(super) fn shutting_down() -> Status {
    Status::unavailable("the server is shutting down")
}

/// How long to wait before resources are tried again that were refused because of something that
/// may pass.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(30);
