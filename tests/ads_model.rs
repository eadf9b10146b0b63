//! Random histories of one stream against a model of a client: whatever was asked, refused, lost
//! with a connection or crossed on the wire, at the end the client has what the world holds.
//!
//! The model is an honest client: it acknowledges each response in turn, refuses content called
//! `bad`, drops what it unsubscribes, and takes responses of clusters and listeners in state of
//! the world as complete.

use pilotfish::ads::{Action, Asks, Event, Protocol, Request, Response, Stream};
use pilotfish::xds::{Resource, ResourceSet, TypeUrl, Version};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const BAD: u8 = 3;

#[derive(Debug, Clone)]
enum Step {
    /// A resource gets this content, or goes.
    Set(TypeUrl, &'static str, Option<u8>),
    Push,
    /// The client changes its mind about a name, or about the wildcard.
    Want(TypeUrl, &'static str),
    Drop(TypeUrl, &'static str),
    /// The next message on the way arrives.
    ToServer,
    ToClient,
    Reconnect,
}

type World = BTreeMap<(TypeUrl, &'static str), u8>;

/// What the model wants of one type.
#[derive(Debug, Default, Clone)]
struct Wants {
    asked: bool,
    wildcard: bool,
    names: BTreeSet<&'static str>,
}

struct Client {
    protocol: Protocol,
    stream: Stream,
    world: World,
    resources: Arc<ResourceSet>,
    /// Whether that was made anew.
    fresh: bool,
    wants: BTreeMap<TypeUrl, Wants>,
    has: BTreeMap<(TypeUrl, String), Vec<u8>>,
    nonces: BTreeMap<TypeUrl, String>,
    seen: BTreeSet<String>,
    /// Clusters that wait for their endpoints.
    warming: BTreeSet<String>,
    to_server: VecDeque<Request>,
    to_client: VecDeque<Response>,
}

impl Client {
    fn new(protocol: Protocol) -> Client {
        Client {
            protocol,
            stream: Stream::new(protocol, "p"),
            world: World::new(),
            resources: Arc::default(),
            fresh: false,
            wants: BTreeMap::new(),
            has: BTreeMap::new(),
            nonces: BTreeMap::new(),
            seen: BTreeSet::new(),
            warming: BTreeSet::new(),
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Set(type_url, name, Some(content)) => {
                self.world.insert((*type_url, name), *content);
            }
            Step::Set(type_url, name, None) => {
                self.world.remove(&(*type_url, name));
            }
            Step::Push => self.push(),
            Step::Want(type_url, name) => self.want(*type_url, name),
            Step::Drop(type_url, name) => self.drop(*type_url, name),
            Step::ToServer => {
                if let Some(request) = self.to_server.pop_front() {
                    self.tell(Event::Request(request));
                }
            }
            Step::ToClient => {
                if let Some(response) = self.to_client.pop_front() {
                    self.receive(response);
                }
            }
            Step::Reconnect => self.reconnect(),
        }
    }

    fn push(&mut self) {
        let mut made = ResourceSet::new();
        for ((type_url, name), content) in &self.world {
            made.insert(*type_url, Resource::new(*name, vec![*content]));
        }
        // As the server makes it: from the set before, of which most stays.
        let mut derived = ResourceSet::clone(&self.resources);
        for type_url in TypeUrl::ALL {
            for name in NAMES {
                match self.world.get(&(type_url, name)) {
                    Some(content) => {
                        derived.set(type_url, Resource::new(name, vec![*content]));
                    }
                    None => {
                        derived.remove(type_url, name);
                    }
                }
            }
        }
        assert_eq!(derived, made);
        self.fresh = !self.fresh;
        self.resources = Arc::new(if self.fresh { made } else { derived });
        self.tell(Event::Push);
    }

    fn tell(&mut self, event: Event) {
        for action in self.stream.on(event, &self.resources.clone()) {
            match action {
                Action::Send(response) => self.to_client.push_back(response),
                Action::Report(..) | Action::Accepted(_) => {}
                Action::RetryLater(_) | Action::Close(_) => panic!("{action:?}"),
            }
        }
    }

    fn wanted(&self, type_url: TypeUrl, name: &str) -> bool {
        let Some(wants) = self.wants.get(&type_url) else { return false };
        wants.names.contains(name) || (wants.wildcard && type_url.supports_wildcard())
    }

    /// Forgets what is no longer wanted, as a client does at once.
    fn tidy(&mut self) {
        let unwanted: Vec<_> = self
            .has
            .keys()
            .filter(|(type_url, name)| !self.wanted(*type_url, name))
            .cloned()
            .collect();
        for key in unwanted {
            self.has.remove(&key);
        }
    }

    fn want(&mut self, type_url: TypeUrl, name: &'static str) {
        let wants = self.wants.entry(type_url).or_default();
        wants.asked = true;
        match name {
            "*" => wants.wildcard = true,
            name => {
                wants.names.insert(name);
            }
        }
        self.ask(type_url, &[name], &[]);
    }

    fn drop(&mut self, type_url: TypeUrl, name: &'static str) {
        let Some(wants) = self.wants.get_mut(&type_url) else { return };
        let had = match name {
            "*" => std::mem::take(&mut wants.wildcard),
            name => wants.names.remove(name),
        };
        if had {
            // A delta client drops the name even if its wildcard covers it.
            if self.protocol == Protocol::Delta && name != "*" {
                self.has.remove(&(type_url, name.to_owned()));
            }
            self.tidy();
            self.ask(type_url, &[], &[name]);
        }
    }

    fn ask(&mut self, type_url: TypeUrl, subscribe: &[&str], unsubscribe: &[&str]) {
        let asks = match self.protocol {
            Protocol::StateOfTheWorld => Asks::Names(self.list(type_url)),
            Protocol::Delta => Asks::Changes {
                subscribe: subscribe.iter().map(|n| Arc::from(*n)).collect(),
                unsubscribe: unsubscribe.iter().map(|n| Arc::from(*n)).collect(),
                versions: vec![],
            },
        };
        let nonce = match self.protocol {
            Protocol::StateOfTheWorld => self.nonces.get(&type_url).cloned().unwrap_or_default(),
            Protocol::Delta => String::new(),
        };
        self.send(type_url, nonce, None, asks);
    }

    fn send(&mut self, type_url: TypeUrl, nonce: String, refusal: Option<String>, asks: Asks) {
        let type_url = type_url.as_str().to_owned();
        self.to_server.push_back(Request { type_url, nonce, refusal, asks });
    }

    fn list(&self, type_url: TypeUrl) -> Vec<Arc<str>> {
        let wants = &self.wants[&type_url];
        let star = wants.wildcard.then_some("*");
        star.into_iter().chain(wants.names.iter().copied()).map(Arc::from).collect()
    }

    fn receive(&mut self, response: Response) {
        let Response { type_url, nonce, resources, removed, .. } = response;
        assert!(self.seen.insert(nonce.clone()), "nonce {nonce} twice");
        let mut names: Vec<&str> = resources.iter().map(|r| &*r.name).collect();
        names.extend(removed.iter().map(|n| &**n));
        let unique: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len(), "a name twice in {type_url}: {names:?}");

        let bad = resources.iter().any(|r| r.body[..] == [BAD]);
        if !bad {
            self.apply(type_url, &resources, &removed);
        }
        self.nonces.insert(type_url, nonce.clone());
        let asks = match self.protocol {
            Protocol::StateOfTheWorld => Asks::Names(self.list(type_url)),
            Protocol::Delta => {
                Asks::Changes { subscribe: vec![], unsubscribe: vec![], versions: vec![] }
            }
        };
        self.send(type_url, nonce, bad.then(|| "bad".to_owned()), asks);
    }

    fn apply(&mut self, type_url: TypeUrl, resources: &[Resource], removed: &[Arc<str>]) {
        if self.protocol == Protocol::StateOfTheWorld && type_url.supports_wildcard() {
            self.has.retain(|(t, name), _| {
                *t != type_url || resources.iter().any(|r| &*r.name == name.as_str())
            });
        }
        for name in removed {
            assert_eq!(self.protocol, Protocol::Delta);
            assert_ne!(type_url, TypeUrl::Route, "a removed route hangs its listener");
            assert_ne!(type_url, TypeUrl::Endpoint, "removed endpoints stay");
            self.has.remove(&(type_url, name.to_string()));
        }
        for resource in resources {
            if !self.wanted(type_url, &resource.name) {
                continue;
            }
            let key = (type_url, resource.name.to_string());
            let before = self.has.insert(key, resource.body.to_vec());
            match type_url {
                TypeUrl::Cluster if before.as_deref() != Some(&resource.body[..]) => {
                    self.warming.insert(resource.name.to_string());
                }
                TypeUrl::Endpoint => {
                    self.warming.remove(&*resource.name);
                }
                _ => {}
            }
        }
    }

    fn reconnect(&mut self) {
        self.stream = Stream::new(self.protocol, "p");
        self.to_server.clear();
        self.to_client.clear();
        self.seen.clear();
        let asked: Vec<TypeUrl> =
            self.wants.iter().filter(|(_, w)| w.asked).map(|(t, _)| *t).collect();
        for type_url in asked {
            let asks = match self.protocol {
                Protocol::StateOfTheWorld => Asks::Names(self.list(type_url)),
                Protocol::Delta => Asks::Changes {
                    subscribe: self.list(type_url),
                    unsubscribe: vec![],
                    versions: self
                        .has
                        .iter()
                        .filter(|((t, _), _)| *t == type_url)
                        .map(|((_, n), body)| (n.as_str().into(), Version::of(body).to_string()))
                        .collect(),
                },
            };
            // An empty list would ask for everything; a client that wants nothing does not ask.
            let wants = &self.wants[&type_url];
            if wants.wildcard || !wants.names.is_empty() {
                let old = self.nonces.remove(&type_url).unwrap_or_default();
                self.send(type_url, old, None, asks);
            } else {
                self.nonces.remove(&type_url);
                self.wants.remove(&type_url);
            }
        }
    }

    /// Lets everything arrive. A loop would never end.
    fn settle(&mut self) {
        for _ in 0..2_000 {
            if self.to_server.is_empty() && self.to_client.is_empty() {
                return;
            }
            self.step(&Step::ToServer);
            self.step(&Step::ToClient);
        }
        panic!("client and server answer each other without end");
    }

    fn check(&self) {
        for type_url in TypeUrl::ALL {
            for name in NAMES {
                let has = self.has.get(&(type_url, name.to_owned())).map(Vec::as_slice);
                let is = self.world.get(&(type_url, name)).map(|content| vec![*content]);
                let place = format!("{} {name}", type_url.short_name());
                if !self.wanted(type_url, name) {
                    assert_eq!(has, None, "{place} is not wanted");
                    continue;
                }
                match (type_url, is) {
                    (_, Some(content)) => assert_eq!(has, Some(&content[..]), "{place}"),
                    (TypeUrl::Cluster | TypeUrl::Listener, None) => {
                        assert_eq!(has, None, "{place} is gone");
                    }
                    // Answered with something, even if it is old or empty.
                    (TypeUrl::Endpoint | TypeUrl::Route, None) => {
                        assert!(has.is_some(), "{place} was never answered");
                    }
                    (TypeUrl::Secret, None) => {}
                }
            }
        }
        for cluster in &self.warming {
            let has = self.has.contains_key(&(TypeUrl::Cluster, cluster.clone()));
            let waits = has && self.wanted(TypeUrl::Endpoint, cluster);
            assert!(!waits, "cluster {cluster} waits for its endpoints");
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let type_url = || prop::sample::select(&TypeUrl::ALL[..]);
    let name = || prop::sample::select(&NAMES[..]);
    let name_or_all = || prop::sample::select(&["a", "b", "c", "d", "e", "*"][..]);
    let content = prop::option::weighted(0.8, 0..=BAD);
    let step = prop_oneof![
        6 => (type_url(), name(), content).prop_map(|(t, n, c)| Step::Set(t, n, c)),
        3 => Just(Step::Push),
        5 => (type_url(), name_or_all()).prop_map(|(t, n)| Step::Want(t, n)),
        2 => (type_url(), name_or_all()).prop_map(|(t, n)| Step::Drop(t, n)),
        8 => Just(Step::ToServer),
        8 => Just(Step::ToClient),
        1 => Just(Step::Reconnect),
    ];
    prop::collection::vec(step, 0..120)
}

/// Plays the steps, lets things settle, mends what is bad, and looks.
fn play(protocol: Protocol, steps: &[Step]) {
    let mut client = Client::new(protocol);
    for step in steps {
        client.step(step);
    }
    client.settle();
    for content in client.world.values_mut() {
        *content = (*content).min(BAD - 1);
    }
    client.push();
    client.settle();
    // What was refused together with something bad is told apart by further pushes.
    for _ in 0..2 {
        client.push();
        client.settle();
    }
    client.check();
    let before = client.seen.len();
    client.push();
    assert_eq!(client.to_client.len(), 0, "nothing changed, so nothing is said");
    assert_eq!(client.seen.len(), before);
}

proptest! {
    // More of them: PROPTEST_CASES=20000.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_state_of_the_world_client_ends_up_with_the_world(steps in steps()) {
        play(Protocol::StateOfTheWorld, &steps);
    }

    #[test]
    fn a_delta_client_ends_up_with_the_world(steps in steps()) {
        play(Protocol::Delta, &steps);
    }
}
