//! The server's view of one client for one type: what it asked for, what it was told, and what it
//! acknowledged. Pure bookkeeping; what is worth saying is decided in [`super::verdict`].

use super::books::Books;
use super::held::{Before, Company, Held};
use super::outstanding::Outstanding;
use crate::xds::{Resource, ResourceMap, TypeUrl, Version};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How many responses may be unacknowledged before the oldest is forgotten. A NACK of a forgotten
/// response is still reported, but cannot be traced to its resources.
const MAX_OUTSTANDING: usize = 64;

/// What goes into one response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Resources that exist and that the client wants.
    pub(super) resources: Vec<Resource>,
    /// Resources that exist no more but that the client may keep for now.
    pub(super) departing: Vec<Resource>,
    /// Resources that go out before the client asks for them. They are not booked, so that its
    /// own question is still answered.
    pub(super) ahead: Vec<Resource>,
    /// Empty resources in place of ones that do not exist.
    pub(super) stand_ins: Vec<Resource>,
    /// Names that do not exist (delta only).
    pub(super) removed: Vec<Arc<str>>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
            && self.departing.is_empty()
            && self.ahead.is_empty()
            && self.stand_ins.is_empty()
            && self.removed.is_empty()
    }
}

/// How a request stands to what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing of this type was sent on this stream yet, or the client starts over.
    First,
    /// It answers the last response.
    Current,
    /// It answers an older response, or one that this stream never sent.
    Stale,
}

/// A response that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) nonce: u64,
    pub(super) version: Version,
}

/// The server's view of one client for one type.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) type_url: TypeUrl,
    pub(super) books: Books,
    /// Whether "all of them" was answered since it was last asked for.
    wildcard_answered: bool,
    outstanding: VecDeque<Outstanding>,
    pub(super) sent: Option<Sent>,
    pub(super) acked: Option<Sent>,
    pub(super) last_error: Option<Arc<str>>,
    /// Whether a refusal was reported and nothing was accepted since.
    pub(super) reported: bool,
}

impl Subscription {
    pub(super) fn new(type_url: TypeUrl, map: ResourceMap) -> Subscription {
        Subscription {
            type_url,
            books: Books::new(type_url, map),
            wildcard_answered: false,
            outstanding: VecDeque::new(),
            sent: None,
            acked: None,
            last_error: None,
            reported: false,
        }
    }

    /// Whether "all of them" was asked for and not answered yet.
    pub(super) fn wildcard_unanswered(&self) -> bool {
        self.books.wildcard() && !self.wildcard_answered
    }

    /// State of the world: takes in the list of a request.
    pub(super) fn replace(&mut self, list: &[Arc<str>]) {
        self.books.replace(list);
        self.wildcard_answered &= self.books.wildcard();
    }

    /// Delta: takes in the first request. `versions` is what the client says that it has.
    pub(super) fn begin(
        &mut self,
        subscribe: &[Arc<str>],
        unsubscribe: &[Arc<str>],
        versions: Vec<(Arc<str>, String)>,
    ) {
        let claims = versions.into_iter().map(|(name, version)| match version.parse() {
            Ok(version) => (name, Held::Version(version)),
            Err(_) => (name, Held::Something),
        });
        self.books.begin(subscribe, unsubscribe, claims);
        self.wildcard_answered &= self.books.wildcard();
    }

    /// Delta: takes in a later request.
    pub(super) fn change(&mut self, subscribe: &[Arc<str>], unsubscribe: &[Arc<str>]) {
        self.books.change(subscribe, unsubscribe);
        self.wildcard_answered &= self.books.wildcard();
    }

    /// The client starts over: nothing that was sent counts.
    pub(super) fn restart(&mut self) {
        self.books.restart();
        self.outstanding.clear();
        self.wildcard_answered = false;
        self.last_error = None;
    }

    /// How a request with this nonce stands to what was sent.
    pub(super) fn standing(&self, nonce: &str) -> Standing {
        match self.sent {
            None => Standing::First,
            Some(_) if nonce.is_empty() => Standing::First,
            Some(sent) if nonce.parse() == Ok(sent.nonce) => Standing::Current,
            Some(_) => Standing::Stale,
        }
    }

    /// Books a response as sent.
    pub(super) fn record(&mut self, sent: Sent, batch: &Batch) {
        if self.outstanding.len() == MAX_OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Outstanding::of(sent, batch, &self.books));
        let books = &mut self.books;
        if batch.resources.len() == books.n_wanted() {
            books.sent_all();
        } else {
            for resource in &batch.resources {
                books.set(&resource.name, Some(Held::Version(resource.version)));
            }
        }
        for resource in &batch.departing {
            books.set(&resource.name, Some(Held::Version(resource.version)));
        }
        for stand_in in &batch.stand_ins {
            books.set(&stand_in.name, Some(Held::StandIn));
        }
        for name in &batch.removed {
            let held = books.names_it(name).then_some(Held::Nothing);
            books.set(name, held);
        }
        books.tidy();
        self.wildcard_answered = books.wildcard();
        self.sent = Some(sent);
    }

    /// Books an ACK; says whether it was one. Unknown nonces change nothing.
    pub(super) fn acknowledge(&mut self, nonce: &str) -> bool {
        let Some(outstanding) = self.take_outstanding(nonce) else { return false };
        self.acked = Some(outstanding.sent);
        self.last_error = None;
        // It may have been refused in an earlier response and accepted now.
        for name in self.books.refused() {
            if let Some(version) = outstanding.version(&name)
                && self.books.held(&name).is_some_and(|held| held.refused(version))
            {
                self.books.set(&name, Some(Held::Version(version)));
            }
        }
        true
    }

    /// Books a NACK. Returns the names in the refused response that are also in a later one: if
    /// that is accepted, the client hears of them for the first time with it.
    pub(super) fn refuse(&mut self, nonce: &str, message: &Arc<str>) -> Vec<Arc<str>> {
        let Some(outstanding) = self.take_outstanding(nonce) else { return Vec::new() };
        let company = match outstanding.len() {
            1 => Company::Alone,
            _ => Company::Others,
        };
        // A stand-in alone cannot be what is wrong with a response.
        if outstanding.has_resources() {
            for name in &outstanding.stand_ins {
                if self.books.held(name) == Some(Held::StandIn) {
                    self.books.set(name, Some(Held::StandInRefused));
                }
            }
        }
        let sent_since = self.sent_since(&outstanding);
        for (resource, before) in outstanding.resources() {
            if self.books.held(&resource.name) == Some(Held::Version(resource.version)) {
                let version = resource.version;
                let refused = Held::Refused { version, company, before };
                self.books.set(&resource.name, Some(refused));
            }
        }
        // The client may still have what it was told to drop.
        for name in &outstanding.removed {
            if let None | Some(Held::Nothing) = self.books.held(name) {
                self.books.set(name, Some(Held::Something));
            }
        }
        if self.sent == Some(outstanding.sent) {
            self.last_error = Some(message.clone());
        }
        sent_since
    }

    /// The names of a refused response that are also in a later one.
    fn sent_since(&mut self, refused: &Outstanding) -> Vec<Arc<str>> {
        if self.outstanding.is_empty() {
            return Vec::new();
        }
        let mut before: BTreeMap<Arc<str>, Before> =
            refused.resources().map(|(resource, before)| (resource.name.clone(), before)).collect();
        let mut sent_since = Vec::new();
        for later in &mut self.outstanding {
            later.each(|resource, next| {
                if let Some(before) = before.remove(&resource.name) {
                    sent_since.push(resource.name.clone());
                    // What it had before this one it still has before the next one.
                    if before == Before::Nothing {
                        *next = Before::Nothing;
                    }
                }
            });
        }
        sent_since.sort();
        sent_since
    }

    // Answers come in the order of the responses, so what was sent before is settled as well: in
    // state of the world it was superseded, in delta it was answered before.
    fn take_outstanding(&mut self, nonce: &str) -> Option<Outstanding> {
        let nonce: u64 = nonce.parse().ok()?;
        let index = self.outstanding.iter().position(|o| o.sent.nonce == nonce)?;
        self.outstanding.drain(..=index).next_back()
    }
}
