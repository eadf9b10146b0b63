//! Who shares a listener with whom: Istio's table of HTTP, TCP and sniffed ports that meet on one
//! address, oldest first.

use super::{Owner, Share};
use crate::generate::plan::Because;
use crate::generate::plan::listener::{Claim, Does, Draft, MatchTable};
use crate::model::Protocol;
use std::collections::BTreeMap;
use std::collections::btree_map;

/// What a listener is so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// HTTP takes everything.
    Http,
    /// TCP and TLS chains.
    Tcp,
    /// HTTP is told apart by looking at the first bytes.
    Sniffed,
}

/// What one service port brings to a listener.
pub(super) struct Entry<'a> {
    owner: Owner<'a>,
    kind: Kind,
    chains: Vec<Draft>,
    /// Why it is there.
    because: Because,
    /// The egress listener that it belongs to; other ones cannot change it.
    pub egress: Option<usize>,
    pub binds: bool,
}

impl<'a> Entry<'a> {
    pub fn http(owner: Owner<'a>, chain: Draft, because: Because) -> Entry<'a> {
        Entry::new(owner, Kind::Http, vec![chain], because)
    }

    pub fn tcp(owner: Owner<'a>, chains: Vec<Draft>, because: Because) -> Entry<'a> {
        Entry::new(owner, Kind::Tcp, chains, because)
    }

    pub fn sniffed(owner: Owner<'a>, chains: Vec<Draft>, because: Because) -> Entry<'a> {
        Entry::new(owner, Kind::Sniffed, chains, because)
    }

    /// A listener that binds and that no service may join.
    pub fn locked(owner: Owner<'a>, chain: Draft, because: Because) -> Entry<'a> {
        Entry { binds: true, ..Entry::new(owner, Kind::Http, vec![chain], because) }
    }

    fn new(owner: Owner<'a>, kind: Kind, chains: Vec<Draft>, because: Because) -> Entry<'a> {
        Entry { owner, kind, chains, because, egress: None, binds: false }
    }
}

/// What came of adding an entry.
#[derive(Default)]
pub(super) struct Outcome<'a> {
    /// Whether its HTTP connection manager is on the listener now.
    pub has_http: bool,
    /// What was left out, if anything.
    pub conflict: Option<Conflict<'a>>,
}

impl Outcome<'_> {
    /// Says that what was left out concerns only what is not HTTP.
    fn unless_http(mut self) -> Self {
        if let Some(conflict) = &mut self.conflict {
            conflict.what.push_str(" unless it speaks HTTP");
        }
        self
    }
}

/// Something that was left out.
pub(super) struct Conflict<'a> {
    /// Who was first.
    pub with: Owner<'a>,
    /// Which part of it, as a continuation of "… on 0.0.0.0_80"; empty for all.
    pub what: String,
}

/// The listeners by address and port.
#[derive(Default)]
pub(super) struct Table<'a> {
    listeners: BTreeMap<(String, u16), Listener<'a>>,
}

struct Listener<'a> {
    owner: Owner<'a>,
    kind: Kind,
    egress: Option<usize>,
    binds: bool,
    because: Because,
    chains: Vec<Draft>,
    /// Whose each chain is.
    owners: Vec<Owner<'a>>,
    /// Which chains are connection managers.
    http: Vec<usize>,
    matches: MatchTable<usize>,
}

impl<'a> Table<'a> {
    /// Puts a listener where none is yet.
    pub fn insert(&mut self, bind: String, port: u16, entry: Entry<'a>) {
        self.add(bind, port, entry);
    }

    /// Adds what a service port brings.
    pub fn add(&mut self, bind: String, port: u16, entry: Entry<'a>) -> Outcome<'a> {
        match self.listeners.entry((bind, port)) {
            btree_map::Entry::Vacant(place) => {
                let listener = place.insert(Listener {
                    owner: entry.owner,
                    kind: entry.kind,
                    egress: entry.egress,
                    binds: entry.binds,
                    because: entry.because,
                    chains: Vec::with_capacity(entry.chains.len()),
                    owners: Vec::with_capacity(entry.chains.len()),
                    http: Vec::new(),
                    matches: MatchTable::default(),
                });
                listener.append(entry.owner, entry.chains)
            }
            btree_map::Entry::Occupied(mut place) => place.get_mut().merge(entry),
        }
    }

    /// What was agreed on. A listener without chains is none.
    pub fn into_shares(self) -> Vec<Share> {
        self.listeners
            .into_iter()
            .filter(|(_, listener)| !listener.chains.is_empty())
            .map(|((bind, port), listener)| Share {
                bind,
                port,
                binds: listener.binds,
                chains: listener.chains,
                because: listener.because,
            })
            .collect()
    }
}

impl<'a> Listener<'a> {
    fn merge(&mut self, mut entry: Entry<'a>) -> Outcome<'a> {
        if self.egress != entry.egress {
            // An earlier egress listener keeps exactly its own services; that is what it is for.
            // The forward proxy is nobody's wish for this service, so it is told.
            let conflict = self.egress.is_none().then(|| self.all_of_it());
            return Outcome { has_http: false, conflict };
        }
        if self.owner.protocol != entry.owner.protocol
            && [self.owner.protocol, entry.owner.protocol].into_iter().any(server_speaks_first)
        {
            return Outcome { has_http: false, conflict: Some(self.all_of_it()) };
        }
        match (self.kind, entry.kind) {
            // The connection manager is there already; the virtual hosts come with its routes.
            (Kind::Http | Kind::Sniffed, Kind::Http) => return Outcome::default(),
            (Kind::Sniffed, Kind::Sniffed) if entry.owner.protocol.is_http() => {
                return Outcome::default();
            }
            (Kind::Sniffed, Kind::Sniffed) => {
                let served = entry.chains.iter().any(|chain| is_http(chain) && self.serves(chain));
                entry.chains.retain(|chain| !is_http(chain));
                let outcome = self.append(entry.owner, entry.chains);
                return if served { outcome.unless_http() } else { outcome };
            }
            // HTTP takes everything here, also what cannot be told to be something else.
            (Kind::Http, Kind::Sniffed) => {
                let conflict = (!entry.owner.protocol.is_http()).then(|| self.all_of_it());
                return Outcome { has_http: false, conflict }.unless_http();
            }
            (Kind::Tcp, Kind::Tcp) => {}
            (Kind::Http | Kind::Sniffed, Kind::Tcp) | (Kind::Tcp, Kind::Http | Kind::Sniffed) => {
                self.kind = Kind::Sniffed;
            }
        }
        let outcome = self.append(entry.owner, entry.chains);
        if outcome.has_http { outcome.unless_http() } else { outcome }
    }

    /// Whether the listener has the connection manager of this chain.
    fn serves(&self, wanted: &Draft) -> bool {
        self.http.iter().any(|&position| same_route(&self.chains[position], wanted))
    }

    fn append(&mut self, owner: Owner<'a>, chains: Vec<Draft>) -> Outcome<'a> {
        let mut outcome = Outcome::default();
        for mut chain in chains {
            let claim = self.matches.claim(&mut chain.matches, self.chains.len());
            let same = |other: usize| self.chains[other].does.is_same(&chain.does);
            match claim {
                Claim::Whole => {}
                Claim::Without { names, owner: other } => {
                    if !same(other) {
                        outcome.conflict.get_or_insert(Conflict {
                            with: self.owners[other],
                            what: format!(" for SNI {}", names.join(", ")),
                        });
                    }
                }
                Claim::Nothing { owner: other } => {
                    // Several services under one rule bring the same chain each.
                    if !same(other) {
                        outcome.conflict.get_or_insert(Conflict {
                            with: self.owners[other],
                            what: part(&chain),
                        });
                    }
                    continue;
                }
            }
            if is_http(&chain) {
                outcome.has_http = true;
                self.http.push(self.chains.len());
            }
            self.chains.push(chain);
            self.owners.push(owner);
        }
        outcome
    }

    fn all_of_it(&self) -> Conflict<'a> {
        Conflict { with: self.owner, what: String::new() }
    }
}

fn part(chain: &Draft) -> String {
    match chain.matches.server_names.as_slice() {
        [] => String::new(),
        names => format!(" for SNI {}", names.join(", ")),
    }
}

fn is_http(chain: &Draft) -> bool {
    match chain.does {
        Does::Http(_) => true,
        Does::Tcp(_) => false,
    }
}

fn same_route(a: &Draft, b: &Draft) -> bool {
    a.does.route().is_some_and(|route| b.does.route() == Some(route))
}

/// Protocols whose client waits for the server: looking at the first bytes would hang.
fn server_speaks_first(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Mongo | Protocol::MySql)
}
