//! Why a push happens, and how two reasons become one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a change is about: the kinds of documents that changed, and by how much that narrows the
/// work. Finer keys are not needed: content hashes decide what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Changed {
    /// Only endpoints of services.
    Endpoints,
    /// Anything else.
    Config,
}

/// The reasons that istiod counts in `pilot_push_triggers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Documents changed.
    Config,
    /// Only endpoints changed.
    Endpoint,
    /// Secrets changed.
    Secret,
    /// The mesh configuration changed.
    Global,
    /// Somebody asked for it.
    Debug,
}

impl Reason {
    /// istiod's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Config => "config",
            Reason::Endpoint => "endpoint",
            Reason::Secret => "secret",
            Reason::Global => "global",
            Reason::Debug => "debug",
        }
    }
}

/// A request to push. Requests that wait are merged; the merge keeps the older start and the newer
/// payload, and loses no reason.
#[derive(Debug, PartialEq, Eq)]
pub struct PushRequest<P> {
    /// What changed; never empty.
    pub changed: BTreeSet<Changed>,
    /// How often each reason was given.
    pub reasons: BTreeMap<Reason, usize>,
    /// What is to be pushed; `None` while it is not made yet.
    pub payload: Option<Arc<P>>,
}

// Not derived: a clone shares the payload, which need not be `Clone`.
impl<P> Clone for PushRequest<P> {
    fn clone(&self) -> PushRequest<P> {
        PushRequest {
            changed: self.changed.clone(),
            reasons: self.reasons.clone(),
            payload: self.payload.clone(),
        }
    }
}

impl<P> PushRequest<P> {
    /// One change for one reason.
    pub fn new(changed: Changed, reason: Reason) -> PushRequest<P> {
        PushRequest {
            changed: BTreeSet::from([changed]),
            reasons: BTreeMap::from([(reason, 1)]),
            payload: None,
        }
    }

    /// Whether nothing but endpoints changed.
    pub fn only_endpoints(&self) -> bool {
        self.changed.iter().all(|c| *c == Changed::Endpoints)
    }

    /// Both: all changes, all reasons added up, the newer payload where there is one.
    #[must_use]
    pub fn merge(mut self, newer: PushRequest<P>) -> PushRequest<P> {
        self.changed.extend(newer.changed);
        for (reason, count) in newer.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        self.payload = newer.payload.or(self.payload);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(changed: Changed, reason: Reason, payload: Option<u32>) -> PushRequest<u32> {
        PushRequest { payload: payload.map(Arc::new), ..PushRequest::new(changed, reason) }
    }

    #[test]
    fn a_merge_unites_changes_adds_reasons_and_takes_the_newer_payload() {
        let older = request(Changed::Endpoints, Reason::Endpoint, Some(1));
        let newer = request(Changed::Config, Reason::Config, Some(2));
        let merged = older.merge(newer).merge(request(Changed::Config, Reason::Config, None));
        assert_eq!(merged.changed, BTreeSet::from([Changed::Endpoints, Changed::Config]));
        assert_eq!(merged.reasons, BTreeMap::from([(Reason::Config, 2), (Reason::Endpoint, 1)]));
        assert_eq!(merged.payload.as_deref(), Some(&2));
    }

    #[test]
    fn endpoints_and_something_else_is_not_only_endpoints() {
        let endpoints = request(Changed::Endpoints, Reason::Endpoint, None);
        assert!(endpoints.only_endpoints());
        assert!(!endpoints.merge(request(Changed::Config, Reason::Config, None)).only_endpoints());
    }
}
