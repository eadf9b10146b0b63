//! A server of hand-made resources and raw clients that hide nothing of the protocol: nothing is
//! acknowledged unless the test says so.
//!
//! A world is `cds a=1 b=1; eds a=1`: resources of a type with their content. A response reads
//! `cds a=1 b=1 -c`: names with content, an empty stand-in as `a=()`, and what was removed.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use http::uri::PathAndQuery;
use pilotfish::diag::Diagnostic;
use pilotfish::generate::Generated;
use pilotfish::proxy::{NodeDescription, NodeError};
use pilotfish::push::{Changed, PushRequest, Reason};
use pilotfish::server::{
    Connection, Generation, Observer, ResourceSource, Resources, Settings, Xds,
};
use pilotfish::xds::pb::discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use pilotfish::xds::pb::discovery::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use pilotfish::xds::pb::{Message as _, core::Node, endpoint, route, rpc};
use pilotfish::xds::{Resource, ResourceSet, TypeUrl, Version};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

/// How long a test waits for what must come. Long, because it is only waited out by failures.
pub const PATIENCE: Duration = Duration::from_secs(20);

const AGGREGATED: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// A server of hand-made resources.
pub struct Server {
    pub xds: Arc<Xds>,
    pub address: SocketAddr,
    pub stop: CancellationToken,
    pub refusals: Arc<Mutex<Vec<String>>>,
    pub told: Arc<Mutex<Vec<String>>>,
    source: Arc<Source>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Source {
    current: Mutex<Option<Arc<Generation>>>,
}

struct Shared(Arc<Source>);

impl ResourceSource for Shared {
    fn current(&self) -> Option<Arc<Generation>> {
        self.0.current.lock().unwrap().clone()
    }
}

/// The same for every node, but for those whose id says what is to go wrong.
struct Fixed(Arc<Generated>);

impl Resources for Fixed {
    fn resources(&self, node: &NodeDescription) -> Result<Arc<Generated>, NodeError> {
        match node.id.as_str() {
            "refused" => Err(NodeError { id: node.id.clone(), reason: "not welcome".into() }),
            "cursed" if self.0.set.get(TypeUrl::Cluster, "curse").is_some() => panic!("cursed"),
            _ => Ok(self.0.clone()),
        }
    }
}

/// What the server tells, as lines.
struct Lines {
    refusals: Arc<Mutex<Vec<String>>>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Lines {
    fn tell(&self, connection: &Connection, what: &str) {
        self.told.lock().unwrap().push(format!("{} {what}", connection.node.id));
    }
}

impl Observer for Lines {
    fn generated(&self, connection: &Connection, findings: &[Diagnostic]) {
        self.tell(connection, &format!("generated, findings: {}", findings.len()));
    }

    fn refused(&self, connection: &Connection, type_url: TypeUrl, diagnostic: &Diagnostic) {
        self.refusals.lock().unwrap().push(diagnostic.to_string());
        self.tell(connection, &format!("refused {}", type_url.short_name()));
    }

    fn accepted(&self, connection: &Connection, type_url: TypeUrl) {
        self.tell(connection, &format!("accepted {}", type_url.short_name()));
    }

    fn disconnected(&self, connection: &Connection) {
        self.tell(connection, "disconnected");
    }
}

impl Server {
    /// A server that has read its configuration.
    pub async fn start(world: &str) -> Server {
        Server::with(Settings::default(), Some(world)).await
    }

    /// A server, ready or not.
    pub async fn with(settings: Settings, world: Option<&str>) -> Server {
        let source = Arc::new(Source::default());
        let (refusals, told) = (Arc::default(), Arc::default());
        let observer = Lines { refusals: Arc::clone(&refusals), told: Arc::clone(&told) };
        let xds = Xds::new(settings, Shared(source.clone()), observer);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn({
            let (xds, stop) = (xds.clone(), stop.clone());
            async move {
                let pushes = xds.run_pushes(stop.clone());
                let (_, served) = tokio::join!(pushes, xds.clone().serve(listener, stop));
                served.unwrap();
            }
        });
        let server = Server { xds, address, stop, refusals, told, source, serving };
        if let Some(world) = world {
            server.set(set(world));
        }
        server
    }

    /// Changes the world without telling anybody.
    pub fn set(&self, resources: ResourceSet) -> Arc<Generation> {
        self.set_from(Fixed(Arc::new(Generated {
            set: Arc::new(resources),
            ..Generated::default()
        })))
    }

    /// Changes where the world comes from without telling anybody.
    pub fn set_from(&self, resources: impl Resources) -> Arc<Generation> {
        let mut current = self.source.current.lock().unwrap();
        let number = current.as_ref().map_or(1, |g| g.number() + 1);
        let generation = Arc::new(Generation::new(number, resources));
        *current = Some(generation.clone());
        generation
    }

    /// Changes the world and pushes.
    pub fn push(&self, world: &str) {
        self.push_set(set(world));
    }

    pub fn push_set(&self, resources: ResourceSet) {
        let payload = Some(self.set(resources));
        let request = PushRequest { payload, ..PushRequest::new(Changed::Config, Reason::Config) };
        self.xds.push(&request);
    }

    /// Waits until so many proxies are connected.
    pub async fn connected(&self, n: usize) {
        until(|| self.xds.connections().len() == n).await;
    }

    /// Stops, and waits for the end of it.
    pub async fn shut_down(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.serving).await.expect("the server ends").expect("without panic");
    }

    pub async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        endpoint.connect().await.unwrap()
    }

    pub async fn state(&self) -> State {
        State::on(self.channel().await, "p").await.expect("the stream opens")
    }

    pub async fn delta(&self) -> Delta {
        Delta::on(self.channel().await, "p").await.expect("the stream opens")
    }
}

/// Waits for a condition.
pub async fn until(condition: impl Fn() -> bool) {
    let looking = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("the condition comes true");
}

/// A raw state-of-the-world client.
pub struct State {
    node: Option<Node>,
    pub requests: mpsc::UnboundedSender<DiscoveryRequest>,
    responses: Streaming<DiscoveryResponse>,
    nonces: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
}

impl State {
    pub async fn on(channel: Channel, node: &str) -> Result<State, Status> {
        State::at(channel, node, AGGREGATED).await
    }

    /// A stream of the method at this path.
    pub async fn at(channel: Channel, node: &str, path: &'static str) -> Result<State, Status> {
        let (requests, receiver) = mpsc::unbounded_channel();
        let mut client = Grpc::new(channel).max_decoding_message_size(256 * 1024 * 1024);
        client.ready().await.expect("connected");
        let receiver = Request::new(UnboundedReceiverStream::new(receiver));
        let codec = ProstCodec::<DiscoveryRequest, DiscoveryResponse>::new();
        let path = PathAndQuery::from_static(path);
        let responses = client.streaming(receiver, path, codec).await?.into_inner();
        let node = Some(Node { id: node.into(), ..Default::default() });
        let (nonces, versions) = Default::default();
        Ok(State { node, requests, responses, nonces, versions })
    }

    /// Sends a request as it is.
    pub fn send(&self, request: DiscoveryRequest) {
        self.requests.send(request).expect("the stream is open");
    }

    /// Asks for names, acknowledging the last response of the type.
    pub fn ask(&mut self, kind: &str, names: &str) {
        let nonce = self.nonces.get(type_url(kind)).cloned().unwrap_or_default();
        self.ask_with(kind, &nonce, names);
    }

    /// Asks for names with this nonce.
    pub fn ask_with(&mut self, kind: &str, nonce: &str, names: &str) {
        let request = self.request(kind, nonce, names);
        self.send(request);
    }

    /// Refuses the last response of the type.
    pub fn nack(&mut self, kind: &str, names: &str, message: &str) {
        let nonce = self.nonce(kind);
        let mut request = self.request(kind, &nonce, names);
        request.error_detail =
            Some(rpc::Status { code: 13, message: message.into(), ..Default::default() });
        self.send(request);
    }

    fn request(&mut self, kind: &str, nonce: &str, names: &str) -> DiscoveryRequest {
        let type_url = type_url(kind).to_owned();
        DiscoveryRequest {
            node: self.node.take(),
            version_info: self.versions.get(&type_url).cloned().unwrap_or_default(),
            resource_names: names.split_whitespace().map(str::to_owned).collect(),
            response_nonce: nonce.into(),
            type_url,
            ..Default::default()
        }
    }

    pub fn nonce(&self, kind: &str) -> String {
        self.nonces.get(type_url(kind)).cloned().expect("answered before")
    }

    /// The next response, or how the stream ended.
    pub async fn message(&mut self) -> Result<DiscoveryResponse, Status> {
        let response = received(&mut self.responses).await?;
        assert!(!response.nonce.is_empty() && !response.version_info.is_empty());
        self.nonces.insert(response.type_url.clone(), response.nonce.clone());
        self.versions.insert(response.type_url.clone(), response.version_info.clone());
        Ok(response)
    }

    pub async fn next(&mut self) -> String {
        let response = self.message().await.expect("a response");
        let any = response.resources.iter().map(|any| {
            assert_eq!(any.type_url, response.type_url);
            (name_in_content(&any.value), any.value.as_slice())
        });
        shown(&response.type_url, any, &[])
    }

    pub async fn expect(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.next().await, *expected);
        }
    }

    /// Asserts that nothing was sent before this moment: a question that is always answered is
    /// the next thing that gets an answer.
    pub async fn quiet(&mut self) {
        self.ask_with("sds", "", "barrier");
        self.expect(&["sds barrier=0"]).await;
    }

    /// How the stream ends.
    pub async fn end(&mut self) -> Status {
        self.message().await.expect_err("the end of the stream")
    }
}

/// A raw delta client.
pub struct Delta {
    node: Option<Node>,
    pub requests: mpsc::UnboundedSender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
    nonces: BTreeMap<String, String>,
}

impl Delta {
    pub async fn on(channel: Channel, node: &str) -> Result<Delta, Status> {
        let (requests, receiver) = mpsc::unbounded_channel();
        let mut client = AggregatedDiscoveryServiceClient::new(channel)
            .max_decoding_message_size(256 * 1024 * 1024);
        let receiver = UnboundedReceiverStream::new(receiver);
        let responses = client.delta_aggregated_resources(receiver).await?.into_inner();
        let node = Some(Node { id: node.into(), ..Default::default() });
        Ok(Delta { node, requests, responses, nonces: BTreeMap::new() })
    }

    /// A spontaneous change `+a -b`; `a@1` says that the client has `a` with content 1.
    pub fn change(&mut self, kind: &str, changes: &str) {
        let request = self.request(kind, changes);
        self.send(request);
    }

    pub fn ack(&mut self, kind: &str) {
        let mut request = self.request(kind, "");
        request.response_nonce = self.nonce(kind);
        self.send(request);
    }

    pub fn nack(&mut self, kind: &str, message: &str) {
        let mut request = self.request(kind, "");
        request.response_nonce = self.nonce(kind);
        request.error_detail =
            Some(rpc::Status { code: 13, message: message.into(), ..Default::default() });
        self.send(request);
    }

    pub fn send(&self, request: DeltaDiscoveryRequest) {
        self.requests.send(request).expect("the stream is open");
    }

    pub fn request(&mut self, kind: &str, changes: &str) -> DeltaDiscoveryRequest {
        let pick = |sign: char| -> Vec<String> {
            changes
                .split_whitespace()
                .filter_map(|w| w.strip_prefix(sign))
                .map(String::from)
                .collect()
        };
        let versions =
            changes.split_whitespace().filter_map(|w| w.split_once('@')).map(|(name, content)| {
                (name.to_owned(), Version::of(body(name, content).as_bytes()).to_string())
            });
        DeltaDiscoveryRequest {
            node: self.node.take(),
            type_url: type_url(kind).to_owned(),
            resource_names_subscribe: pick('+'),
            resource_names_unsubscribe: pick('-'),
            initial_resource_versions: versions.collect(),
            ..Default::default()
        }
    }

    pub fn nonce(&self, kind: &str) -> String {
        self.nonces.get(type_url(kind)).cloned().expect("answered before")
    }

    pub async fn message(&mut self) -> Result<DeltaDiscoveryResponse, Status> {
        let response = received(&mut self.responses).await?;
        assert!(!response.nonce.is_empty());
        self.nonces.insert(response.type_url.clone(), response.nonce.clone());
        Ok(response)
    }

    pub async fn next(&mut self) -> String {
        let response = self.message().await.expect("a response");
        let resources = response.resources.iter().map(|resource| {
            let any = resource.resource.as_ref().expect("has a body");
            assert_eq!(any.type_url, response.type_url);
            assert_eq!(resource.version, Version::of(&any.value).to_string());
            (resource.name.clone(), any.value.as_slice())
        });
        shown(&response.type_url, resources, &response.removed_resources)
    }

    pub async fn expect(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.next().await, *expected);
        }
    }

    /// As [`State::quiet`].
    pub async fn quiet(&mut self) {
        self.change("sds", "+barrier");
        self.expect(&["sds barrier=0"]).await;
    }

    pub async fn end(&mut self) -> Status {
        self.message().await.expect_err("the end of the stream")
    }
}

async fn received<T>(responses: &mut Streaming<T>) -> Result<T, Status> {
    match timeout(PATIENCE, responses.message()).await.expect("something comes in time") {
        Ok(Some(response)) => Ok(response),
        Ok(None) => Err(Status::new(Code::Ok, "")),
        Err(status) => Err(status),
    }
}

fn shown<'a>(
    type_url: &str,
    resources: impl Iterator<Item = (String, &'a [u8])>,
    removed: &[String],
) -> String {
    let mut text = TypeUrl::parse(type_url).expect("a type of ours").short_name().to_owned();
    for (name, body) in resources {
        let content = match std::str::from_utf8(body).ok().and_then(|t| t.split_once('=')) {
            Some((_, content)) => content,
            None => "()",
        };
        text.push_str(&format!(" {name}={content}"));
    }
    for name in removed {
        text.push_str(&format!(" -{name}"));
    }
    text
}

// State of the world has no names beside the resources, so the content says its name.
fn body(name: &str, content: &str) -> String {
    format!("{name}={content}")
}

fn name_in_content(body: &[u8]) -> String {
    if let Some((name, _)) = std::str::from_utf8(body).ok().and_then(|t| t.split_once('=')) {
        return name.to_owned();
    }
    let assignment = endpoint::ClusterLoadAssignment::decode(body).map(|a| a.cluster_name);
    assignment.or_else(|_| route::RouteConfiguration::decode(body).map(|r| r.name)).unwrap()
}

pub fn set(world: &str) -> ResourceSet {
    let mut set = ResourceSet::new();
    set.insert(TypeUrl::Secret, Resource::new("barrier", body("barrier", "0")));
    for part in world.split(';').map(str::trim).filter(|p| !p.is_empty()) {
        let mut words = part.split_whitespace();
        let kind = words.next().expect("a type");
        let type_url = TypeUrl::parse(type_url(kind)).unwrap();
        for word in words {
            let (name, content) = word.split_once('=').expect("name=content");
            set.insert(type_url, Resource::new(name, body(name, content)));
        }
    }
    set
}

pub fn type_url(kind: &str) -> &'static str {
    let of_kind = TypeUrl::ALL.into_iter().find(|t| t.short_name() == kind);
    of_kind.expect("a short type name").as_str()
}
