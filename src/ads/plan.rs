//! What a push or a question means for one subscription, as a list of resources: the verdicts of
//! [`super::verdict`] over all names that are not settled, with nothing booked yet.

use super::subscription::{Batch, Subscription};
use super::verdict::{self, Verdict};
use crate::xds::{Resource, TypeUrl};
use std::sync::Arc;

/// Resources that were refused together with others are sent again in this many responses at most.
/// The guilty one is then in smaller company each time, and after a few pushes alone.
const MAX_PARTS: usize = 32;

/// What one push means for one subscription.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// To be sent in one response.
    pub(super) batch: Batch,
    /// To be sent in responses of their own.
    pub(super) apart: Vec<Batch>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.apart.is_empty()
    }

    /// The responses that carry the plan out.
    pub(super) fn into_batches(self) -> impl Iterator<Item = Batch> {
        Some(self.batch).filter(|b| !b.is_empty()).into_iter().chain(self.apart)
    }
}

/// What has to be said unasked. Nothing is said of a name that is gone when `leaving` holds for it:
/// something else is about to tell the client.
pub(super) fn push(subscription: &Subscription, leaving: impl Fn(&str) -> bool) -> Plan {
    let type_url = subscription.type_url;
    let mut batch = Batch::default();
    let mut suspects = Vec::new();
    for (resource, held) in subscription.books.unsettled() {
        match verdict::unasked(type_url, held.as_ref(), Some(resource.version)) {
            Verdict::SendApart => suspects.push(resource.clone()),
            verdict => add(&mut batch, verdict, type_url, &resource.name, Some(resource)),
        }
    }
    for (name, held) in subscription.books.absent() {
        if !leaving(name) {
            let verdict = verdict::unasked(type_url, held.as_ref(), None);
            add(&mut batch, verdict, type_url, name, None);
        }
    }
    Plan { batch, apart: apart(suspects) }
}

/// What has to be answered about these names, which the client wants.
pub(super) fn answer<'a>(
    subscription: &Subscription,
    names: impl IntoIterator<Item = &'a Arc<str>>,
) -> Batch {
    let type_url = subscription.type_url;
    let mut batch = Batch::default();
    for name in names {
        let resource = subscription.books.map().get(name);
        let verdict = verdict::asked(type_url, resource.map(|r| r.version));
        add(&mut batch, verdict, type_url, name, resource);
    }
    batch
}

fn add(
    batch: &mut Batch,
    verdict: Verdict,
    type_url: TypeUrl,
    name: &Arc<str>,
    resource: Option<&Resource>,
) {
    match verdict {
        Verdict::Silence => {}
        Verdict::Send | Verdict::SendApart => batch.resources.extend(resource.cloned()),
        Verdict::StandIn => batch.stand_ins.extend(verdict::stand_in(type_url, name)),
        Verdict::Remove => batch.removed.push(name.clone()),
    }
}

fn apart(suspects: Vec<Resource>) -> Vec<Batch> {
    let size = suspects.len().div_ceil(MAX_PARTS).max(1);
    suspects
        .chunks(size)
        .map(|chunk| Batch { resources: chunk.to_vec(), ..Batch::default() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspects_are_split_into_a_bounded_number_of_responses() {
        for (n, parts) in [(0, 0), (1, 1), (32, 32), (33, 17), (5000, 32)] {
            let suspects: Vec<Resource> =
                (0..n).map(|i| Resource::new(i.to_string(), Vec::new())).collect();
            let batches = apart(suspects);
            assert_eq!(batches.len(), parts, "{n}");
            assert_eq!(batches.iter().map(|b| b.resources.len()).sum::<usize>(), n);
        }
    }
}
