//! What a push or a question means for one subscription, as a list of resources: the verdicts of
//! [`super::verdict`] over all names, with nothing booked yet.

use super::subscription::{Batch, Subscription};
use super::verdict::{self, Verdict};
use crate::xds::{Resource, ResourceSet};
use std::collections::BTreeSet;
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
pub(super) fn push(
    subscription: &Subscription,
    resources: &ResourceSet,
    leaving: impl Fn(&str) -> bool,
) -> Plan {
    let type_url = subscription.type_url;
    let mut batch = Batch::default();
    let mut suspects = Vec::new();
    for resource in resources.of_type(type_url).filter(|r| subscription.wants(&r.name)) {
        let held = subscription.held(&resource.name);
        match verdict::unasked(type_url, held, Some(resource.version)) {
            Verdict::SendApart => suspects.push(resource.clone()),
            verdict => add(&mut batch, verdict, subscription, resources, &resource.name),
        }
    }
    let held = subscription.all_held().map(|(name, _)| name);
    let gone: BTreeSet<&Arc<str>> = subscription
        .interest
        .names()
        .chain(held)
        .filter(|name| resources.get(type_url, name).is_none() && !leaving(name))
        .collect();
    for name in gone {
        let verdict = verdict::unasked(type_url, subscription.held(name), None);
        add(&mut batch, verdict, subscription, resources, name);
    }
    Plan { batch, apart: apart(suspects) }
}

/// What has to be answered about these names.
pub(super) fn answer<'a>(
    subscription: &Subscription,
    resources: &ResourceSet,
    names: impl IntoIterator<Item = &'a Arc<str>>,
) -> Batch {
    let type_url = subscription.type_url;
    let mut batch = Batch::default();
    for name in names {
        let current = resources.get(type_url, name).map(|r| r.version);
        let verdict = verdict::asked(type_url, current);
        add(&mut batch, verdict, subscription, resources, name);
    }
    batch
}

fn add(
    batch: &mut Batch,
    verdict: Verdict,
    subscription: &Subscription,
    resources: &ResourceSet,
    name: &Arc<str>,
) {
    let type_url = subscription.type_url;
    match verdict {
        Verdict::Silence => {}
        Verdict::Send | Verdict::SendApart => {
            batch.resources.extend(resources.get(type_url, name).cloned());
        }
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
