//! The server's view of one client for one type: what it asked for, what it was told, and what it
//! acknowledged. Pure bookkeeping; what is worth saying is decided in [`super::verdict`].

use super::interest::Interest;
use crate::xds::{Resource, TypeUrl, Version};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How many responses may be unacknowledged before the oldest is forgotten. A NACK of a forgotten
/// response is still reported, but cannot be traced to its resources.
const MAX_OUTSTANDING: usize = 64;

/// What a client has under one name, as far as we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// This version: it was sent, or the client said on reconnecting that it has it.
    Version(Version),
    /// Some version that we cannot compare, or perhaps none any more.
    Something,
    /// An empty stand-in for a resource that does not exist.
    StandIn,
    /// A stand-in was sent together with something that it refused, so it may have nothing.
    StandInRefused,
    /// Nothing: it was told that the resource does not exist.
    Nothing,
    /// It refused a response that held this version. What it has instead is its own affair.
    Refused {
        /// The version that was in the refused response.
        version: Version,
        /// What else was in it.
        company: Company,
        /// What it may have instead.
        before: Before,
    },
}

/// What a client had under a name before it was sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing, or an empty stand-in.
    Nothing,
    /// A real resource.
    Something,
}

/// Who else was in a refused response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// Nobody, so this resource is the bad one.
    Alone,
    /// Others, so this resource may be a good one that was refused with a bad one.
    Others,
}

/// What goes into one response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Resources that exist.
    pub(super) resources: Vec<Resource>,
    /// Empty resources in place of ones that do not.
    pub(super) stand_ins: Vec<Resource>,
    /// Names that do not exist (delta only).
    pub(super) removed: Vec<Arc<str>>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.stand_ins.is_empty() && self.removed.is_empty()
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

#[derive(Debug)]
struct SentResource {
    name: Arc<str>,
    version: Version,
    before: Before,
}

#[derive(Debug)]
struct Outstanding {
    sent: Sent,
    resources: Vec<SentResource>,
    stand_ins: Vec<Arc<str>>,
    removed: Vec<Arc<str>>,
}

/// The server's view of one client for one type.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) type_url: TypeUrl,
    pub(super) interest: Interest,
    held: BTreeMap<Arc<str>, Held>,
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
    pub(super) fn new(type_url: TypeUrl) -> Subscription {
        Subscription {
            type_url,
            interest: Interest::Legacy,
            held: BTreeMap::new(),
            wildcard_answered: false,
            outstanding: VecDeque::new(),
            sent: None,
            acked: None,
            last_error: None,
            reported: false,
        }
    }

    /// Whether everything of the type is asked for. Endpoints, routes and secrets know no
    /// wildcard: asking for all of them asks for nothing.
    pub(super) fn wildcard(&self) -> bool {
        self.type_url.supports_wildcard() && self.interest.wildcard()
    }

    /// Whether this name is asked for.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.wildcard() || self.interest.names_it(name)
    }

    /// What the client has under this name.
    pub(super) fn held(&self, name: &str) -> Option<&Held> {
        self.held.get(name)
    }

    /// Everything that the client has, sorted by name.
    pub(super) fn all_held(&self) -> impl Iterator<Item = (&Arc<str>, &Held)> {
        self.held.iter()
    }

    /// What the client refused and may still need.
    pub(super) fn refused(&self) -> Vec<Arc<str>> {
        let refused = self.held.iter().filter(|(_, held)| matches!(held, Held::Refused { .. }));
        refused.map(|(name, _)| name.clone()).collect()
    }

    /// Names that were asked for and not answered yet.
    pub(super) fn unanswered(&self) -> Vec<Arc<str>> {
        self.interest.names().filter(|name| !self.held.contains_key(*name)).cloned().collect()
    }

    /// Whether "all of them" was asked for and not answered yet.
    pub(super) fn wildcard_unanswered(&self) -> bool {
        self.wildcard() && !self.wildcard_answered
    }

    /// To be called after the interest changed: forgets what the client no longer asked for,
    /// because it has dropped that, and must get it again when it asks again.
    pub(super) fn prune(&mut self) {
        if self.wildcard() {
            return;
        }
        self.wildcard_answered = false;
        let interest = &self.interest;
        self.held.retain(|name, _| interest.names_it(name));
    }

    /// The client dropped this name, although it may be asked for through the wildcard.
    pub(super) fn forget(&mut self, name: &str) {
        self.held.remove(name);
    }

    /// The client starts over: nothing that was sent counts.
    pub(super) fn restart(&mut self) {
        self.held.clear();
        self.outstanding.clear();
        self.wildcard_answered = false;
        self.last_error = None;
    }

    /// The client says on reconnecting that it has these.
    pub(super) fn claim(&mut self, versions: impl IntoIterator<Item = (Arc<str>, String)>) {
        for (name, version) in versions {
            let held = match version.parse() {
                Ok(version) => Held::Version(version),
                Err(_) => Held::Something,
            };
            self.held.insert(name, held);
        }
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
        let resources = batch.resources.iter().map(|resource| SentResource {
            name: resource.name.clone(),
            version: resource.version,
            before: self.held.get(&resource.name).map_or(Before::Nothing, Held::before),
        });
        let resources = resources.collect();
        let booked = [(&batch.resources, false), (&batch.stand_ins, true)];
        for (resources, stand_in) in booked {
            for resource in resources {
                // What goes out unasked (endpoints ahead of their subscription) is not booked, so
                // that the client's own question is still answered.
                if self.wants(&resource.name) {
                    let held =
                        if stand_in { Held::StandIn } else { Held::Version(resource.version) };
                    self.held.insert(resource.name.clone(), held);
                }
            }
        }
        for name in &batch.removed {
            if self.interest.names_it(name) {
                self.held.insert(name.clone(), Held::Nothing);
            } else {
                self.held.remove(name);
            }
        }
        self.wildcard_answered = self.wildcard();
        self.sent = Some(sent);
        if self.outstanding.len() == MAX_OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Outstanding {
            sent,
            resources,
            stand_ins: batch.stand_ins.iter().map(|r| r.name.clone()).collect(),
            removed: batch.removed.clone(),
        });
    }

    /// Books names as absent after a complete state-of-the-world response that omits them, and
    /// forgets everything else that the response did not hold.
    pub(super) fn record_complete(&mut self, contains: impl Fn(&str) -> bool) {
        let interest = &self.interest;
        self.held.retain(|name, _| contains(name) || interest.names_it(name));
        let missing: Vec<Arc<str>> =
            self.interest.names().filter(|name| !contains(name)).cloned().collect();
        self.held.extend(missing.into_iter().map(|name| (name, Held::Nothing)));
    }

    /// Books an ACK; says whether it was one. Unknown nonces change nothing.
    pub(super) fn acknowledge(&mut self, nonce: &str) -> bool {
        let Some(outstanding) = self.take_outstanding(nonce) else { return false };
        self.acked = Some(outstanding.sent);
        self.last_error = None;
        // It may have been refused in an earlier response and accepted now.
        for SentResource { name, version, .. } in outstanding.resources {
            match self.held.get_mut(&name) {
                Some(held @ Held::Refused { .. }) if held.refused(version) => {
                    *held = Held::Version(version);
                }
                _ => {}
            }
        }
        true
    }

    /// Books a NACK. Returns the names in the refused response that are also in a later one: if
    /// that is accepted, the client hears of them for the first time with it.
    pub(super) fn refuse(&mut self, nonce: &str, message: &Arc<str>) -> Vec<Arc<str>> {
        let Some(outstanding) = self.take_outstanding(nonce) else { return Vec::new() };
        let mut sent_since = Vec::new();
        let Outstanding { resources, stand_ins, removed, .. } = &outstanding;
        let company = match resources.len() + stand_ins.len() + removed.len() {
            1 => Company::Alone,
            _ => Company::Others,
        };
        // A stand-in alone cannot be what is wrong with a response.
        let stand_ins = if resources.is_empty() { Vec::new() } else { stand_ins.clone() };
        for name in stand_ins {
            if let Some(held @ Held::StandIn) = self.held.get_mut(&name) {
                *held = Held::StandInRefused;
            }
        }
        for SentResource { name, version, before } in outstanding.resources {
            let mut later = self.outstanding.iter_mut().flat_map(|o| &mut o.resources);
            if let Some(next) = later.find(|r| r.name == name) {
                sent_since.push(name.clone());
                // What it had before this one it still has before the next one.
                if before == Before::Nothing {
                    next.before = Before::Nothing;
                }
            }
            if let Some(held) = self.held.get_mut(&name)
                && *held == Held::Version(version)
            {
                *held = Held::Refused { version, company, before };
            }
        }
        // The client may still have what it was told to drop.
        for name in outstanding.removed {
            match self.held.get(&name) {
                None | Some(Held::Nothing) if self.wants(&name) => {
                    self.held.insert(name, Held::Something);
                }
                _ => {}
            }
        }
        if self.sent == Some(outstanding.sent) {
            self.last_error = Some(message.clone());
        }
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

impl Held {
    /// Whether this version was refused.
    fn refused(&self, of: Version) -> bool {
        matches!(self, Held::Refused { version, .. } if *version == of)
    }

    fn before(&self) -> Before {
        match self {
            Held::Version(_) | Held::Something => Before::Something,
            Held::Refused { before, .. } => *before,
            Held::StandIn | Held::StandInRefused | Held::Nothing => Before::Nothing,
        }
    }

    /// Whether it may be a real resource, not a stand-in or nothing.
    pub(super) fn is_real(&self) -> bool {
        match self {
            Held::Version(_) | Held::Something | Held::Refused { .. } => true,
            Held::StandIn | Held::StandInRefused | Held::Nothing => false,
        }
    }
}
