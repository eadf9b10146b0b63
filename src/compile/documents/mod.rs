//! The documents of all files, and which version of each is in force.
//!
//! Two promises are kept here. A document can break only itself, and a file only its documents.
//! Nothing disappears because it failed to parse: a document that was accepted once stays in
//! force, in its last good version, until it is mended or deleted. Everything else follows from
//! the files as they are, so the order in which they were read never shows.
//!
//! ```text
//! SourceFile --prepare (any thread)--> Prepared --take--> File: slots, findings
//!                                                            |
//!                        DocumentSet: who else claims an identity, what changed since
//! ```
//!
//! A change costs what is in its file: what all files together need (who claims an identity, who
//! is in force, what changed) is brought up to date for the documents of that file only.

mod identity;
mod last_good;
mod prepared;
#[cfg(test)]
mod tests;

pub use identity::Identity;
pub use prepared::{Entry, Prepared, prepare};

use crate::config::{Broken, SourceFile};
use crate::diag::{Code, Diagnostic, Diagnostics, Span};
use crate::kinds::{Decoded, Lower};
use identity::Key;
use last_good::LastGood;
use prepared::{Document, Foreign};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// All documents of all files.
#[derive(Debug)]
pub struct DocumentSet<D = Box<dyn Lower>> {
    files: BTreeMap<Arc<str>, File<D>>,
    /// Where each identity is claimed.
    claims: HashMap<Key, Claims>,
    /// Those that are claimed more than once.
    repeated: BTreeSet<Key>,
    /// What was in force, when [`DocumentSet::changes`] was asked last, for the identities that
    /// were touched since.
    touched: BTreeMap<Key, Option<Arc<Entry<D>>>>,
}

/// A document that came, went or changed.
#[derive(Debug)]
pub struct Change<D = Box<dyn Lower>> {
    /// What was in force before.
    pub before: Option<Arc<Entry<D>>>,
    /// What is in force now.
    pub after: Option<Arc<Entry<D>>>,
}

#[derive(Debug)]
struct File<D> {
    text: Arc<str>,
    /// In document order.
    slots: Vec<Slot<D>>,
    foreign: Foreign,
    broken: Vec<Broken>,
    /// Sorted.
    findings: Vec<Diagnostic>,
}

/// A document of ours in a file as it is now.
#[derive(Debug)]
struct Slot<D> {
    identity: Identity,
    key: Key,
    /// Where it stands now.
    span: Span,
    /// What there is to serve for it: this version, or the last good one.
    entry: Option<Arc<Entry<D>>>,
    presence: Presence,
    /// Whether its entry is the one that counts, of all with this identity.
    in_force: bool,
}

/// Whether the document can be told from the file as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Visible,
    /// It is thought to be in a part that cannot be read.
    Hidden,
}

/// The places that claim one identity, in path order and then in document order. There is nearly
/// always one.
#[derive(Debug)]
struct Claims {
    first: Place,
    others: Vec<Place>,
}

/// A slot: the file's path and the index in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    path: Arc<str>,
    slot: usize,
}

impl Claims {
    fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn add(&mut self, mut place: Place) {
        if place < self.first {
            std::mem::swap(&mut place, &mut self.first);
        }
        let at = self.others.partition_point(|other| *other < place);
        self.others.insert(at, place);
    }

    /// What is left without the places in that file.
    fn without(self, path: &str) -> Option<Claims> {
        let mut left = std::iter::once(self.first).chain(self.others).filter(|p| &*p.path != path);
        let first = left.next()?;
        Some(Claims { first, others: left.collect() })
    }
}

impl<D> Default for DocumentSet<D> {
    fn default() -> DocumentSet<D> {
        DocumentSet {
            files: BTreeMap::new(),
            claims: HashMap::new(),
            repeated: BTreeSet::new(),
            touched: BTreeMap::new(),
        }
    }
}

impl<D> DocumentSet<D> {
    /// A set without files.
    pub fn new() -> DocumentSet<D> {
        DocumentSet::default()
    }

    /// Whether this is the form in which the file was taken last.
    pub fn is_current(&self, source: &SourceFile) -> bool {
        self.files.get(&source.path).is_some_and(|file| file.text == source.text)
    }

    /// Takes a file in its present form, and decides what is in force. A document that is as it
    /// was, at the place where it was, stays the same entry.
    pub fn take(&mut self, prepared: Prepared<D>) {
        if self.is_current(&prepared.source) {
            return;
        }
        let path = prepared.source.path.clone();
        let mut touched: BTreeSet<Key> = BTreeSet::new();
        touched.extend(prepared.documents.iter().map(|document| document.key));
        touched.extend(self.keys_of(&path));
        self.note(&touched);
        self.disclaim(&path);
        let file = File::decide(prepared, LastGood::new(self.files.remove(&path)));
        // What was hidden was in the file before, so no other key is touched.
        self.claim(&path, &file);
        self.files.insert(path, file);
        self.settle(&touched);
    }

    /// Forgets a file and its documents, last good versions included.
    pub fn remove_file(&mut self, path: &str) {
        let touched: BTreeSet<Key> = self.keys_of(path).collect();
        self.note(&touched);
        self.disclaim(path);
        self.files.remove(path);
        self.settle(&touched);
    }

    /// The labels of the known files, in path order.
    pub fn files(&self) -> impl Iterator<Item = &Arc<str>> {
        self.files.keys()
    }

    /// The text of a file, as it was read last.
    pub fn text(&self, path: &str) -> Option<&Arc<str>> {
        self.files.get(path).map(|file| &file.text)
    }

    /// The documents in force, in path order and then in document order; of several with one
    /// identity the first counts. The order of reading does not show.
    pub fn documents(&self) -> impl Iterator<Item = &Arc<Entry<D>>> {
        self.slots().filter(|slot| slot.in_force).filter_map(|slot| slot.entry.as_ref())
    }

    /// What came, went or changed since this was asked last, in no order that means anything.
    /// A document that only moved is among them: it is another entry, with another place.
    pub fn changes(&mut self) -> Vec<Change<D>> {
        let touched = std::mem::take(&mut self.touched);
        let changes = touched.into_iter().filter_map(|(key, before)| {
            let after = self.in_force(key).cloned();
            let is_same = match (&before, &after) {
                (Some(before), Some(after)) => Arc::ptr_eq(before, after),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            (!is_same).then_some(Change { before, after })
        });
        changes.collect()
    }

    /// Everything there is to say about the files, in file order.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut all = Diagnostics::new();
        for file in self.files.values() {
            all.extend(file.findings.iter().cloned());
        }
        self.report_duplicates(&mut all);
        self.report_foreign(&mut all);
        // Cheap: all but the last two are in order already.
        all.into_sorted()
    }

    fn slots(&self) -> impl Iterator<Item = &Slot<D>> {
        self.files.values().flat_map(|file| &file.slots)
    }

    fn slot(&self, place: &Place) -> Option<&Slot<D>> {
        self.files.get(&place.path)?.slots.get(place.slot)
    }

    fn keys_of(&self, path: &str) -> impl Iterator<Item = Key> {
        self.files.get(path).into_iter().flat_map(|file| &file.slots).map(|slot| slot.key)
    }

    /// The entry that counts for an identity.
    fn in_force(&self, key: Key) -> Option<&Arc<Entry<D>>> {
        let places = self.claims.get(&key).into_iter().flat_map(Claims::places);
        places.filter_map(|place| self.slot(place)).find_map(|slot| slot.entry.as_ref())
    }

    /// Notes what is in force for these identities before it may change.
    fn note(&mut self, keys: &BTreeSet<Key>) {
        for key in keys {
            if !self.touched.contains_key(key) {
                let before = self.in_force(*key).cloned();
                self.touched.insert(*key, before);
            }
        }
    }

    /// Takes back what a file claims.
    fn disclaim(&mut self, path: &str) {
        let keys: BTreeSet<Key> = self.keys_of(path).collect();
        for key in keys {
            if let Some(claims) = self.claims.remove(&key)
                && let Some(left) = claims.without(path)
            {
                self.claims.insert(key, left);
            }
        }
    }

    fn claim(&mut self, path: &Arc<str>, file: &File<D>) {
        for (index, slot) in file.slots.iter().enumerate() {
            let place = Place { path: path.clone(), slot: index };
            match self.claims.get_mut(&slot.key) {
                Some(claims) => claims.add(place),
                None => {
                    let claims = Claims { first: place, others: Vec::new() };
                    self.claims.insert(slot.key, claims);
                }
            }
        }
    }

    /// Marks which slot counts for each of these identities.
    fn settle(&mut self, keys: &BTreeSet<Key>) {
        for key in keys {
            let Some(claims) = self.claims.get(key) else {
                self.repeated.remove(key);
                continue;
            };
            if claims.others.is_empty() {
                self.repeated.remove(key);
            } else {
                self.repeated.insert(*key);
            }
            let mut is_free = true;
            for place in claims.places() {
                let file = self.files.get_mut(&place.path);
                if let Some(slot) = file.and_then(|file| file.slots.get_mut(place.slot)) {
                    slot.in_force = is_free && slot.entry.is_some();
                    is_free &= !slot.in_force;
                }
            }
        }
    }

    fn report_duplicates(&self, all: &mut Diagnostics) {
        for claims in self.repeated.iter().filter_map(|key| self.claims.get(key)) {
            let same: Vec<&Slot<D>> =
                claims.places().filter_map(|place| self.slot(place)).collect();
            let Some(counts) = same.iter().find(|slot| slot.in_force).or(same.first()) else {
                continue;
            };
            for other in same.iter().filter(|slot| !std::ptr::eq(**slot, *counts)) {
                let message = format!(
                    "{} is defined more than once; the one at {} counts",
                    other.identity, counts.span
                );
                all.push(
                    Diagnostic::new(Code::DuplicateDocument, message)
                        .at(other.span.clone())
                        .on(other.identity.to_string())
                        .related(counts.span.clone(), "this one counts")
                        .help("rename or delete one of them"),
                );
            }
        }
    }

    fn report_foreign(&self, all: &mut Diagnostics) {
        let mut kinds: BTreeMap<(&str, &str), (usize, &Span)> = BTreeMap::new();
        let foreign = self.files.values().flat_map(|file| &file.foreign);
        for ((kind, api_version), (count, span)) in foreign {
            kinds.entry((kind, api_version)).or_insert((0, span)).0 += count;
        }
        for ((kind, api_version), (count, span)) in kinds {
            let message = match count {
                1 => format!("kind {kind} ({api_version}) is ignored: 1 document"),
                _ => format!("kind {kind} ({api_version}) is ignored: {count} documents"),
            };
            all.push(Diagnostic::new(Code::KindIgnored, message).at(span.clone()));
        }
    }
}

impl<D> File<D> {
    /// Which version of each document there is to serve.
    fn decide(prepared: Prepared<D>, mut last_good: LastGood<D>) -> File<D> {
        let Prepared { source, documents, foreign, broken, findings } = prepared;
        let mut served_still = Vec::new();
        let mut slots = Vec::with_capacity(documents.len());
        let mut strangers = Vec::new();
        for Document { identity, key, span, decoded } in documents {
            // Claimed in any case: this document has taken the place of its former self.
            let former = last_good.claim(key);
            let entry = match decoded {
                Decoded::Accepted(entry) => match former {
                    Some(former) if former.is_same_as(&entry) => Some(former),
                    Some(_) | None => Some(entry),
                },
                Decoded::Refused => {
                    match former {
                        Some(_) => served_still.push(still(&identity, &span)),
                        None => strangers.push((identity.clone(), span.clone())),
                    }
                    former
                }
                Decoded::NotYet | Decoded::Foreign => {
                    strangers.push((identity, span));
                    continue;
                }
            };
            slots.push(Slot::new(identity, key, span, entry, Presence::Visible));
        }
        for (identity, entry, span) in last_good.claim_hidden(&broken, &strangers) {
            served_still.push(still(&identity, &span));
            let key = identity.key();
            slots.push(Slot::new(identity, key, span, Some(entry), Presence::Hidden));
        }
        slots.sort_by_key(|slot| slot.span.start);
        let mut all = Diagnostics::new();
        all.extend(findings);
        all.extend(served_still);
        File { text: source.text, slots, foreign, broken, findings: all.into_sorted() }
    }
}

impl<D> Slot<D> {
    fn new(
        identity: Identity,
        key: Key,
        span: Span,
        entry: Option<Arc<Entry<D>>>,
        presence: Presence,
    ) -> Slot<D> {
        Slot { identity, key, span, entry, presence, in_force: false }
    }
}

fn still(identity: &Identity, span: &Span) -> Diagnostic {
    let message =
        format!("the last good version of {identity} stays in force until this is mended");
    Diagnostic::new(Code::LastGoodServed, message).at(span.clone()).on(identity.to_string())
}
