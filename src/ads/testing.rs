//! A scripted client for the tests of this module: worlds, requests and responses as short texts.
//!
//! A world is `cds a=1 b=1; eds a=1`: resources of a type with their content. A response reads
//! `cds a=1 b=1 -c`: names with content, an empty stand-in as `a=()`, and what was removed.

use super::*;
use crate::xds::Resource;

pub(super) struct Client {
    pub(super) stream: Stream,
    resources: Arc<ResourceSet>,
    /// The last nonce of each type.
    nonces: BTreeMap<TypeUrl, String>,
}

impl Client {
    pub(super) fn sotw(world: &str) -> Client {
        Client::new(Protocol::StateOfTheWorld, world)
    }

    pub(super) fn delta(world: &str) -> Client {
        Client::new(Protocol::Delta, world)
    }

    fn new(protocol: Protocol, world: &str) -> Client {
        let stream = Stream::new(protocol, "p");
        Client { stream, resources: Arc::new(set(world)), nonces: BTreeMap::new() }
    }

    /// Changes the world and pushes.
    pub(super) fn push(&mut self, world: &str) -> Vec<String> {
        self.resources = Arc::new(set(world));
        self.on(Event::Push)
    }

    pub(super) fn retry(&mut self, kind: &str) -> Vec<String> {
        self.on(Event::Retry(type_of(kind)))
    }

    /// State of the world: a list of names, acknowledging the last response of the type.
    pub(super) fn ask(&mut self, kind: &str, names: &str) -> Vec<String> {
        let nonce = self.nonce(kind);
        self.ask_with(kind, &nonce, names)
    }

    /// State of the world: a list of names with this nonce.
    pub(super) fn ask_with(&mut self, kind: &str, nonce: &str, names: &str) -> Vec<String> {
        self.request(kind, nonce, None, Asks::Names(words(names)))
    }

    /// State of the world: refuses the last response of the type.
    pub(super) fn nack(&mut self, kind: &str, names: &str) -> Vec<String> {
        let nonce = self.nonce(kind);
        self.request(kind, &nonce, Some("bad"), Asks::Names(words(names)))
    }

    /// Delta: a spontaneous change `+a -b`.
    pub(super) fn change(&mut self, kind: &str, changes: &str) -> Vec<String> {
        self.change_with(kind, "", None, changes)
    }

    /// Delta: an acknowledgement of the last response of the type.
    pub(super) fn ack(&mut self, kind: &str) -> Vec<String> {
        let nonce = self.nonce(kind);
        self.change_with(kind, &nonce, None, "")
    }

    /// Delta: a change with a nonce and perhaps a refusal. `a@1` says that the client has `a` with
    /// content 1; `a@` that it has some version.
    pub(super) fn change_with(
        &mut self,
        kind: &str,
        nonce: &str,
        refusal: Option<&str>,
        changes: &str,
    ) -> Vec<String> {
        let pick = |sign: char| -> Vec<Arc<str>> {
            changes.split_whitespace().filter_map(|w| w.strip_prefix(sign)).map(Arc::from).collect()
        };
        let version = |content: &str| match content {
            "" => "from-another-server".to_owned(),
            content => Version::of(content.as_bytes()).to_string(),
        };
        let versions = changes
            .split_whitespace()
            .filter_map(|w| w.split_once('@'))
            .map(|(name, content)| (name.into(), version(content)))
            .collect();
        let asks = Asks::Changes { subscribe: pick('+'), unsubscribe: pick('-'), versions };
        self.request(kind, nonce, refusal, asks)
    }

    pub(super) fn nonce(&self, kind: &str) -> String {
        self.nonces.get(&type_of(kind)).cloned().unwrap_or_default()
    }

    pub(super) fn status(&self, kind: &str) -> TypeStatus {
        let type_url = type_of(kind).as_str();
        self.stream.status().into_iter().find(|s| &*s.type_url == type_url).expect("asked for")
    }

    /// Whether the last response of the type was acknowledged.
    pub(super) fn in_sync(&self, kind: &str) -> bool {
        let status = self.status(kind);
        status.sent == status.acked
    }

    pub(super) fn request(
        &mut self,
        kind: &str,
        nonce: &str,
        refusal: Option<&str>,
        asks: Asks,
    ) -> Vec<String> {
        let type_url = match kind {
            "" => String::new(),
            kind if kind.contains('.') => kind.to_owned(),
            kind => type_of(kind).as_str().to_owned(),
        };
        let refusal = refusal.map(str::to_owned);
        self.on(Event::Request(Request { type_url, nonce: nonce.into(), refusal, asks }))
    }

    fn on(&mut self, event: Event) -> Vec<String> {
        let actions = self.stream.on(event, &self.resources.clone());
        actions
            .iter()
            .map(|action| match action {
                Action::Send(response) => {
                    self.nonces.insert(response.type_url, response.nonce.clone());
                    shown(response)
                }
                Action::Report(_, diagnostic) => format!("report {}", diagnostic.message),
                Action::Accepted(type_url) => format!("accepted {}", type_url.short_name()),
                Action::RetryLater(type_url) => format!("retry {}", type_url.short_name()),
                Action::Close(Refusal::InvalidRequest(why) | Refusal::TooMuch(why)) => {
                    format!("close {why}")
                }
            })
            .collect()
    }
}

fn shown(response: &Response) -> String {
    let mut text = response.type_url.short_name().to_owned();
    for resource in &response.resources {
        let stand_in = verdict::stand_in(response.type_url, &resource.name);
        let content = match stand_in {
            Some(stand_in) if stand_in.body == resource.body => "()".into(),
            _ => String::from_utf8_lossy(&resource.body).into_owned(),
        };
        text.push_str(&format!(" {}={content}", resource.name));
    }
    for name in &response.removed {
        text.push_str(&format!(" -{name}"));
    }
    text
}

pub(super) fn set(world: &str) -> ResourceSet {
    let mut set = ResourceSet::new();
    for part in world.split(';').map(str::trim).filter(|p| !p.is_empty()) {
        let mut words = part.split_whitespace();
        let type_url = type_of(words.next().expect("a type"));
        for word in words {
            let (name, content) = word.split_once('=').expect("name=content");
            assert!(set.insert(type_url, Resource::new(name, content.to_owned())), "{word} twice");
        }
    }
    set
}

fn type_of(kind: &str) -> TypeUrl {
    TypeUrl::ALL.into_iter().find(|t| t.short_name() == kind).expect("a short type name")
}

fn words(text: &str) -> Vec<Arc<str>> {
    text.split_whitespace().map(Arc::from).collect()
}

pub(super) const NOTHING: [&str; 0] = [];
