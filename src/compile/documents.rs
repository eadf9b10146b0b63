//! The documents of all files, and which version of each is in force.
//!
//! Two promises are kept here. A document can break only itself, and a file only its documents.
//! Nothing disappears because it failed to parse: a document that was accepted once stays in
//! force, in its last good version, until it is mended or deleted. Everything else follows from
//! the files as they are, so the order in which they were read never shows.

use crate::config::{
    Broken, Field, Header, PartialIdentity, RawDocument, SourceFile, nearest, read,
};
use crate::diag::{Code, Diagnostic, Diagnostics, Span};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

#[cfg(test)]
mod tests;

/// What a document is known by. The version is not part of it: `v1` and `v1beta1` of a kind are
/// one document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The API group, such as `networking.istio.io`; empty for Kubernetes' core kinds.
    pub group: Arc<str>,
    /// The kind.
    pub kind: Arc<str>,
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

/// What became of a document in the hands of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded<D> {
    /// It is valid, and this is what it says.
    Accepted(D),
    /// It is wrong; the kind has said why.
    Refused,
    /// It counts for nothing, and its kind has said so.
    Unserved,
    /// Its kind is not ours.
    Foreign,
}

/// A document in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<D> {
    /// As it was written, with positions.
    pub raw: RawDocument,
    /// As its kind understood it.
    pub value: D,
}

/// How kinds are asked: they add their findings and say what became of the document.
pub type DecodeFn<'f, D> = dyn Fn(&RawDocument, &mut Diagnostics) -> Decoded<D> + 'f;

/// All documents of all files.
#[derive(Debug)]
pub struct DocumentSet<D> {
    files: BTreeMap<Arc<str>, File<D>>,
}

#[derive(Debug)]
struct File<D> {
    text: Arc<str>,
    /// In document order.
    slots: Vec<Slot<D>>,
    foreign: Vec<Foreign>,
    broken: Vec<Broken>,
    diagnostics: Vec<Diagnostic>,
}

/// A document of ours in a file as it is now.
#[derive(Debug)]
struct Slot<D> {
    identity: Identity,
    /// A hash of the identity, so that tens of thousands of them are compared without their texts.
    key: u128,
    /// Where it stands now.
    span: Span,
    /// What is in force for it: this version, or the last good one.
    entry: Option<Arc<Entry<D>>>,
    presence: Presence,
}

/// Whether the document can be told from the file as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Visible,
    /// It is thought to be in a part that cannot be read.
    Hidden,
}

#[derive(Debug)]
struct Foreign {
    api_version: Arc<str>,
    kind: Arc<str>,
    span: Span,
}

impl<D> Default for DocumentSet<D> {
    fn default() -> DocumentSet<D> {
        DocumentSet { files: BTreeMap::new() }
    }
}

impl<D> DocumentSet<D> {
    /// A set without files.
    pub fn new() -> DocumentSet<D> {
        DocumentSet::default()
    }

    /// Takes a file in its present form. Costs nothing when the text is the one already known.
    pub fn replace_file(&mut self, source: SourceFile, decode: &DecodeFn<'_, D>) {
        let previous = self.files.remove(&source.path);
        let file = match previous {
            Some(file) if file.text == source.text => file,
            previous => File::read(&source, LastGood::new(previous), decode),
        };
        self.files.insert(source.path, file);
    }

    /// Forgets a file and its documents, last good versions included.
    pub fn remove_file(&mut self, path: &str) {
        self.files.remove(path);
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
    pub fn documents(&self) -> Vec<Arc<Entry<D>>> {
        let in_force = self.slots().filter_map(|slot| Some((slot.key, slot.entry.as_ref()?)));
        let mut seen = HashSet::new();
        in_force.filter(|(key, _)| seen.insert(*key)).map(|(_, entry)| entry.clone()).collect()
    }

    /// Everything there is to say about the files, in file order.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut all = Diagnostics::new();
        for file in self.files.values() {
            all.extend(file.diagnostics.iter().cloned());
        }
        self.report_duplicates(&mut all);
        self.report_foreign(&mut all);
        all.into_sorted()
    }

    fn slots(&self) -> impl Iterator<Item = &Slot<D>> {
        self.files.values().flat_map(|file| &file.slots)
    }

    fn report_duplicates(&self, all: &mut Diagnostics) {
        let mut seen = HashSet::new();
        let repeated: HashSet<u128> =
            self.slots().map(|slot| slot.key).filter(|key| !seen.insert(*key)).collect();
        if repeated.is_empty() {
            return;
        }
        let mut slots: Vec<&Slot<D>> =
            self.slots().filter(|slot| repeated.contains(&slot.key)).collect();
        slots.sort_by_key(|slot| &slot.identity);
        for same in slots.chunk_by(|a, b| a.identity == b.identity) {
            let [first, _, ..] = same else { continue };
            let in_force = same.iter().find(|slot| slot.entry.is_some()).unwrap_or(first);
            let others = same.iter().filter(|slot| !std::ptr::eq(**slot, *in_force));
            for other in others {
                let message = format!(
                    "{} is defined more than once; the one at {} counts",
                    other.identity, in_force.span
                );
                all.push(
                    Diagnostic::new(Code::DuplicateDocument, message)
                        .at(other.span.clone())
                        .on(other.identity.to_string())
                        .related(in_force.span.clone(), "this one counts")
                        .help("rename or delete one of them"),
                );
            }
        }
    }

    fn report_foreign(&self, all: &mut Diagnostics) {
        let mut kinds: BTreeMap<(&str, &str), (usize, &Span)> = BTreeMap::new();
        for foreign in self.files.values().flat_map(|file| &file.foreign) {
            kinds.entry((&foreign.kind, &foreign.api_version)).or_insert((0, &foreign.span)).0 += 1;
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
    fn read(source: &SourceFile, mut last_good: LastGood<D>, decode: &DecodeFn<'_, D>) -> File<D> {
        let reading = read(source);
        let mut diagnostics = Diagnostics::new();
        let mut slots = Vec::with_capacity(reading.documents.len());
        let mut foreign = Vec::new();
        let mut strangers = Vec::new();
        for raw in reading.documents {
            let identity = Identity::of(&raw.header);
            let span = raw.header.span.clone();
            // Claimed in any case: this document has taken the place of its former self.
            let former = last_good.claim(&identity);
            let entry = match decode(&raw, &mut diagnostics) {
                Decoded::Accepted(value) => Some(Arc::new(Entry { raw, value })),
                Decoded::Refused => {
                    match former {
                        Some(_) => diagnostics.push(served_still(&identity, &span)),
                        None => strangers.push((identity.clone(), span.clone())),
                    }
                    former
                }
                Decoded::Unserved => {
                    strangers.push((identity, span));
                    continue;
                }
                Decoded::Foreign => {
                    strangers.push((identity, span));
                    let span = raw.span(&Field::root("kind"));
                    let Header { api_version, kind, .. } = raw.header;
                    foreign.push(Foreign { api_version, kind, span });
                    continue;
                }
            };
            slots.push(Slot {
                key: identity.key(),
                identity,
                span,
                entry,
                presence: Presence::Visible,
            });
        }
        for (identity, entry, span) in last_good.claim_hidden(&reading.broken, &strangers) {
            diagnostics.push(served_still(&identity, &span));
            slots.push(Slot {
                key: identity.key(),
                identity,
                span,
                entry: Some(entry),
                presence: Presence::Hidden,
            });
        }
        slots.sort_by_key(|slot| slot.span.start);
        diagnostics.extend(reading.diagnostics);
        let diagnostics = diagnostics.into_sorted();
        let text = source.text.clone();
        File { text, slots, foreign, broken: reading.broken, diagnostics }
    }
}

fn served_still(identity: &Identity, span: &Span) -> Diagnostic {
    let message =
        format!("the last good version of {identity} stays in force until this is mended");
    Diagnostic::new(Code::LastGoodServed, message).at(span.clone()).on(identity.to_string())
}

/// What the file held in force before; each version can be claimed once.
struct LastGood<D> {
    former: Vec<Former<D>>,
    /// By identity, the indices of `former` in document order, last first.
    index: BTreeMap<Identity, Vec<usize>>,
    broken: Vec<Broken>,
}

struct Former<D> {
    identity: Identity,
    entry: Option<Arc<Entry<D>>>,
    presence: Presence,
}

impl<D> LastGood<D> {
    fn new(previous: Option<File<D>>) -> LastGood<D> {
        let (slots, broken) = previous.map(|file| (file.slots, file.broken)).unwrap_or_default();
        let mut index: BTreeMap<Identity, Vec<usize>> = BTreeMap::new();
        for (at, slot) in slots.iter().enumerate().rev() {
            index.entry(slot.identity.clone()).or_default().push(at);
        }
        let former = slots
            .into_iter()
            .map(|Slot { identity, entry, presence, .. }| Former { identity, entry, presence })
            .collect();
        LastGood { former, index, broken }
    }

    /// The former version of a document that is still there.
    fn claim(&mut self, identity: &Identity) -> Option<Arc<Entry<D>>> {
        let at = self.index.get_mut(identity)?.pop()?;
        self.former.get_mut(at)?.entry.take()
    }

    /// What is thought to be in the parts that cannot be read now, or to be misspelt.
    fn claim_hidden(
        mut self,
        broken: &[Broken],
        strangers: &[(Identity, Span)],
    ) -> Vec<(Identity, Arc<Entry<D>>, Span)> {
        let mut hidden = Vec::new();
        let mut productive = vec![false; broken.len()];
        for evidence in [Evidence::Named, Evidence::Similar, Evidence::Circumstantial] {
            let mut named_by = Vec::new();
            for former in &mut self.former {
                let found = match evidence {
                    Evidence::Named => {
                        let at = broken.iter().position(|part| names(part, &former.identity));
                        named_by.extend(at);
                        at.map(|at| &broken[at].span)
                    }
                    Evidence::Similar => strangers
                        .iter()
                        .find(|(stranger, _)| former.identity.is_misspelt_as(stranger))
                        .map(|(_, span)| span),
                    Evidence::Circumstantial => broken
                        .iter()
                        .zip(&productive)
                        .find(|(part, productive)| {
                            let is_new =
                                !self.broken.iter().any(|b| b.identities == part.identities);
                            !**productive && (is_new || former.presence == Presence::Hidden)
                        })
                        .map(|(part, _)| &part.span),
                };
                if let Some(span) = found
                    && let Some(entry) = former.entry.take()
                {
                    hidden.push((former.identity.clone(), entry, span.clone()));
                }
            }
            for at in named_by {
                // Of several documents in one part, others may be hidden still.
                productive[at] = broken[at].identities.len() == 1;
            }
        }
        hidden
    }
}

/// Why a document is thought to be still there, the strongest reason first.
#[derive(Debug, Clone, Copy)]
enum Evidence {
    /// A part that cannot be read says its kind and name.
    Named,
    /// A document of that name has nearly that kind.
    Similar,
    /// It vanished when a part broke; half-typed names tell the wrong thing. A part that was
    /// broken before hides nothing new: what vanishes beside it was deleted.
    Circumstantial,
}

/// Whether a part that cannot be read says that it is this document.
fn names(part: &Broken, identity: &Identity) -> bool {
    part.identities
        .iter()
        .any(|told| told.kind.is_some() && told.name.is_some() && identity.may_be(told))
}

impl Identity {
    /// A hash of all four parts. Identities with equal keys are taken for equal.
    fn key(&self) -> u128 {
        let mut hasher = Xxh3::new();
        for part in [&self.group, &self.kind, &self.namespace, &self.name] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.digest128()
    }

    /// The identity of a document with that header.
    pub fn of(header: &Header) -> Identity {
        Identity {
            group: header.group().into(),
            kind: header.kind.clone(),
            namespace: header.namespace.clone(),
            name: header.name.clone(),
        }
    }

    /// Whether the other is this document with a slip in its kind or group, or without its group.
    fn is_misspelt_as(&self, other: &Identity) -> bool {
        (&self.namespace, &self.name) == (&other.namespace, &other.name)
            && nearest(&other.kind, [&*self.kind]).is_some()
            && (other.group.is_empty() || nearest(&other.group, [&*self.group]).is_some())
    }

    /// Whether a text that tells so much may be this document.
    fn may_be(&self, partial: &PartialIdentity) -> bool {
        let fits = |told: &Option<String>, own: &str| told.as_deref().is_none_or(|t| t == own);
        let group =
            partial.api_version.as_deref().map(|v| v.split_once('/').map_or("", |(g, _)| g));
        fits(&partial.kind, &self.kind)
            && fits(&partial.name, &self.name)
            && fits(&partial.namespace, &self.namespace)
            && group.is_none_or(|group| group == &*self.group)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}
