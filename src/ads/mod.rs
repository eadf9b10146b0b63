//! The xDS protocol as values: requests and pushes go in, responses and reports come out.
//!
//! A [`Stream`] is one proxy's gRPC stream. It knows names, versions and nonces; it does not know
//! what a cluster is, what time it is, or how bytes travel. Whoever owns it calls [`Stream::on`]
//! and carries out the [`Action`]s in their order.
//!
//! Three rules explain most of it:
//!
//! * Silence applies to pushes, never to answers. A push says nothing about what the client has
//!   already; a question is answered even if nothing changed, because whoever asks is waiting.
//! * A changed cluster waits for its endpoints to be sent again, so endpoints follow clusters
//!   ([`push`]).
//! * Make before break: additions go out in the order of [`TypeUrl::ALL`], clusters that are gone
//!   go last ([`departing`]).

mod books;
mod delta;
mod departing;
mod held;
mod interest;
mod names;
mod outstanding;
mod plan;
mod push;
mod report;
mod sotw;
mod status;
mod subscription;
#[cfg(test)]
mod testing;
mod verdict;

pub use status::{Told, TypeStatus};

use crate::diag::Diagnostic;
use crate::xds::{Resource, ResourceSet, TypeUrl, Version};
use departing::Departing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use subscription::{Batch, Sent, Subscription};

/// How many types that we do not serve one stream may ask for.
const MAX_UNSERVED_TYPES: usize = 64;

/// Which variant of the protocol a stream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Every response of clusters or listeners is complete.
    StateOfTheWorld,
    /// Responses hold differences.
    Delta,
}

/// What happens to a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The client sent something.
    Request(Request),
    /// The resources may have changed.
    Push,
    /// It is worth trying resources of this type again that were refused for a reason outside of
    /// their content.
    Retry(TypeUrl),
}

/// A discovery request, of either variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The type URL as it was sent.
    pub type_url: String,
    /// The nonce of the response that this acknowledges or refuses; empty if none.
    pub nonce: String,
    /// Envoy's message, if this is a NACK. An empty message is a NACK too.
    pub refusal: Option<String>,
    /// What the client asks for.
    pub asks: Asks,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asks {
    /// State of the world: the complete list of names.
    Names(Vec<Arc<str>>),
    /// Delta: changes of the list.
    Changes {
        /// Names to add.
        subscribe: Vec<Arc<str>>,
        /// Names to drop.
        unsubscribe: Vec<Arc<str>>,
        /// What the client has, on its first request of a type after reconnecting.
        versions: Vec<(Arc<str>, String)>,
    },
}

/// What is to be done, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send a response.
    Send(Response),
    /// Tell the operator that a response of this type was refused.
    Report(TypeUrl, Box<Diagnostic>),
    /// Tell the operator that the client has accepted a response of this type after the refusal
    /// that was reported last.
    Accepted(TypeUrl),
    /// The refusal may heal by itself: send [`Event::Retry`] after a while.
    RetryLater(TypeUrl),
    /// End the stream.
    Close(Refusal),
}

/// A discovery response, of either variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The type of all resources in it.
    pub type_url: TypeUrl,
    /// The hash of what the client has of this type when it accepts.
    pub version: Version,
    /// The nonce, unique on the stream.
    pub nonce: String,
    /// The resources; their bytes are shared.
    pub resources: Vec<Resource>,
    /// Names that do not exist or no longer do. Empty in state of the world.
    pub removed: Vec<Arc<str>>,
}

/// Why a stream has to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A request that makes no sense.
    InvalidRequest(String),
    /// More than one client may ask for.
    TooMuch(String),
}

/// One proxy's stream: everything the server knows about what the client asked for and has.
#[derive(Debug)]
pub struct Stream {
    protocol: Protocol,
    /// The proxy, for reports.
    proxy: Arc<str>,
    subscriptions: BTreeMap<TypeUrl, Subscription>,
    unserved: BTreeSet<String>,
    nonce: u64,
    /// The resources of the last event. All books are relative to it.
    latest: Arc<ResourceSet>,
    /// Whether it was pushed.
    pushed: bool,
    departing: Departing,
}

impl Stream {
    /// A stream on which nothing was said yet. `proxy` names the client in reports.
    pub fn new(protocol: Protocol, proxy: impl Into<Arc<str>>) -> Stream {
        Stream {
            protocol,
            proxy: proxy.into(),
            subscriptions: BTreeMap::new(),
            unserved: BTreeSet::new(),
            nonce: 0,
            latest: Arc::default(),
            pushed: false,
            departing: Departing::default(),
        }
    }

    /// Takes in an event; `resources` is what the proxy should have now.
    pub fn on(&mut self, event: Event, resources: &Arc<ResourceSet>) -> Vec<Action> {
        let mut actions = Vec::new();
        let before = std::mem::replace(&mut self.latest, resources.clone());
        if !Arc::ptr_eq(&before, resources) {
            self.pushed = false;
            for subscription in self.subscriptions.values_mut() {
                subscription.books.rebase(resources.map(subscription.type_url));
            }
        }
        match event {
            Event::Request(request) => self.request(request, &mut actions),
            Event::Push if self.pushed => {}
            Event::Push => {
                self.push(&before, &mut actions);
                self.pushed = true;
            }
            Event::Retry(type_url) => self.retry(type_url, &before, &mut actions),
        }
        actions
    }

    /// What was asked for, sent and acknowledged, for debug pages.
    pub fn status(&self) -> Vec<TypeStatus> {
        status::of(self)
    }

    fn request(&mut self, request: Request, actions: &mut Vec<Action>) {
        if request.type_url.is_empty() {
            actions.push(Action::Close(Refusal::InvalidRequest("type_url is missing".into())));
            return;
        }
        let Some(type_url) = TypeUrl::parse(&request.type_url) else {
            self.ask_for_unserved(request.type_url, actions);
            return;
        };
        let Request { nonce, refusal, asks, .. } = request;
        match (self.protocol, asks) {
            (Protocol::StateOfTheWorld, Asks::Names(names)) => {
                let standing = self.subscription(type_url).standing(&nonce);
                self.book(type_url, &nonce, refusal, actions);
                self.ask_for_state(type_url, standing, &names, actions);
            }
            (Protocol::Delta, Asks::Changes { subscribe, unsubscribe, versions }) => {
                let first = !self.subscriptions.contains_key(&type_url);
                self.book(type_url, &nonce, refusal, actions);
                if first {
                    self.begin_delta(type_url, &subscribe, &unsubscribe, versions, actions);
                } else {
                    self.change_delta(type_url, &subscribe, &unsubscribe, actions);
                }
            }
            (Protocol::StateOfTheWorld, Asks::Changes { .. })
            | (Protocol::Delta, Asks::Names(_)) => {
                let message = "the request is of the other variant of the protocol";
                actions.push(Action::Close(Refusal::InvalidRequest(message.into())));
            }
        }
        // An unsubscribed route may have been the last one that needed a cluster which is gone.
        if type_url == TypeUrl::Route {
            self.release_departed(actions);
        }
    }

    // The type may be served by a later version of us or by an extension of the client's that we
    // do not know. Ending the stream would take all other types with it.
    fn ask_for_unserved(&mut self, type_url: String, actions: &mut Vec<Action>) {
        if self.unserved.len() == MAX_UNSERVED_TYPES && !self.unserved.contains(&type_url) {
            let message = format!("more than {MAX_UNSERVED_TYPES} unknown resource types");
            actions.push(Action::Close(Refusal::TooMuch(message)));
            return;
        }
        self.unserved.insert(type_url);
    }

    fn subscription(&mut self, type_url: TypeUrl) -> &mut Subscription {
        let map = || self.latest.map(type_url).clone();
        self.subscriptions.entry(type_url).or_insert_with(|| Subscription::new(type_url, map()))
    }

    /// Books the ACK or NACK in a request.
    fn book(
        &mut self,
        type_url: TypeUrl,
        nonce: &str,
        refusal: Option<String>,
        actions: &mut Vec<Action>,
    ) {
        let Some(refusal) = refusal else {
            let subscription = self.subscription(type_url);
            if subscription.acknowledge(nonce) && std::mem::take(&mut subscription.reported) {
                actions.push(Action::Accepted(type_url));
            }
            return;
        };
        let message = report::tidy(type_url, &refusal);
        let subscription = self.subscription(type_url);
        let sent_since = subscription.refuse(nonce, &message);
        // Before anything was sent, the refusal is about another stream's response.
        if subscription.sent.is_some() {
            subscription.reported = true;
            if report::heals_by_itself(type_url, &message) {
                actions.push(Action::RetryLater(type_url));
            }
            let diagnostic = report::refused(&self.proxy, type_url, &message);
            actions.push(Action::Report(type_url, Box::new(diagnostic)));
        }
        // The endpoints that followed the refused clusters came too early for the later ones.
        if type_url == TypeUrl::Cluster {
            self.follow_with_endpoints(&sent_since, actions);
        }
    }

    /// Sends a batch and books it as sent.
    fn respond(
        &mut self,
        type_url: TypeUrl,
        version: Version,
        batch: Batch,
        actions: &mut Vec<Action>,
    ) {
        self.nonce += 1;
        let sent = Sent { nonce: self.nonce, version };
        self.subscription(type_url).record(sent, &batch);
        let Batch { mut resources, departing, ahead, stand_ins, removed } = batch;
        for more in [departing, ahead, stand_ins] {
            resources.extend(more);
        }
        let nonce = sent.nonce.to_string();
        actions.push(Action::Send(Response { type_url, version, nonce, resources, removed }));
    }
}
