//! What a file held in force before, and which of its documents are still meant to be there.

use super::identity::Key;
use super::prepared::Entry;
use super::{File, Identity, Presence, Slot};
use crate::config::Broken;
use crate::diag::Span;
use std::collections::HashMap;
use std::sync::Arc;

/// What the file held in force before; each version can be claimed once.
pub(super) struct LastGood<D> {
    former: Vec<Former<D>>,
    /// By identity, the indices of `former` in document order, last first.
    index: HashMap<Key, Vec<usize>>,
    broken: Vec<Broken>,
}

struct Former<D> {
    identity: Identity,
    entry: Option<Arc<Entry<D>>>,
    presence: Presence,
}

impl<D> LastGood<D> {
    pub fn new(previous: Option<File<D>>) -> LastGood<D> {
        let (slots, broken) = previous.map(|file| (file.slots, file.broken)).unwrap_or_default();
        let mut index: HashMap<Key, Vec<usize>> = HashMap::with_capacity(slots.len());
        for (at, slot) in slots.iter().enumerate().rev() {
            index.entry(slot.key).or_default().push(at);
        }
        let former = slots
            .into_iter()
            .map(|Slot { identity, entry, presence, .. }| Former { identity, entry, presence })
            .collect();
        LastGood { former, index, broken }
    }

    /// The former version of a document that is still there.
    pub fn claim(&mut self, key: Key) -> Option<Arc<Entry<D>>> {
        let at = self.index.get_mut(&key)?.pop()?;
        self.former.get_mut(at)?.entry.take()
    }

    /// What is thought to be in the parts that cannot be read now, or to be misspelt.
    pub fn claim_hidden(
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
