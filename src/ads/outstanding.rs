//! A response that was sent and not acknowledged yet.

use super::books::Books;
use super::held::Before;
use super::subscription::{Batch, Sent};
use crate::xds::{Resource, ResourceMap, Version};
use std::sync::Arc;

/// A response that was sent and not acknowledged yet.
#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) sent: Sent,
    resources: Resources,
    /// What the client had before, in the order of the resources.
    before: Vec<Before>,
    /// How many others there were, of which nothing is booked.
    ahead: usize,
    pub(super) stand_ins: Vec<Arc<str>>,
    pub(super) removed: Vec<Arc<str>>,
}

/// The resources in a response.
#[derive(Debug)]
enum Resources {
    /// The first response of a type has everything, to everybody.
    All(ResourceMap),
    Some(Vec<Resource>),
}

impl Outstanding {
    /// What is to be remembered of a response, before it is booked.
    pub(super) fn of(sent: Sent, batch: &Batch, books: &Books) -> Outstanding {
        let map = books.map();
        let all = batch.departing.is_empty() && batch.resources.len() == map.len();
        let (resources, before) = if all {
            (Resources::All(map.clone()), map.iter().map(|r| books.before(r)).collect())
        } else {
            let departing = batch.departing.iter().map(|resource| {
                books.held(&resource.name).map_or(Before::Nothing, |held| held.before())
            });
            let before = batch.resources.iter().map(|r| books.before(r)).chain(departing).collect();
            let resources = batch.resources.iter().chain(&batch.departing).cloned().collect();
            (Resources::Some(resources), before)
        };
        Outstanding {
            sent,
            resources,
            before,
            ahead: batch.ahead.len(),
            stand_ins: batch.stand_ins.iter().map(|r| r.name.clone()).collect(),
            removed: batch.removed.clone(),
        }
    }

    /// How much there was in it.
    pub(super) fn len(&self) -> usize {
        self.before.len() + self.ahead + self.stand_ins.len() + self.removed.len()
    }

    /// Whether there was more in it than stand-ins and removals.
    pub(super) fn has_resources(&self) -> bool {
        self.before.len() + self.ahead > 0
    }

    /// The resources in it, with what the client had before.
    pub(super) fn resources(&self) -> impl Iterator<Item = (&Resource, Before)> {
        self.resources.iter().zip(self.before.iter().copied())
    }

    /// Looks at each resource, and may correct what the client had before.
    pub(super) fn each(&mut self, mut look: impl FnMut(&Resource, &mut Before)) {
        for (resource, before) in self.resources.iter().zip(&mut self.before) {
            look(resource, before);
        }
    }

    /// The version of this name that was in it.
    pub(super) fn version(&self, name: &str) -> Option<Version> {
        let resource = match &self.resources {
            Resources::All(map) => map.get(name),
            Resources::Some(resources) => resources.iter().find(|r| &*r.name == name),
        };
        resource.map(|resource| resource.version)
    }
}

impl Resources {
    fn iter(&self) -> Box<dyn Iterator<Item = &Resource> + '_> {
        match self {
            Resources::All(map) => Box::new(map.iter()),
            Resources::Some(resources) => Box::new(resources.iter()),
        }
    }
}
