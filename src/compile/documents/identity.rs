//! What a document is known by, across files and versions.

use crate::config::{Header, PartialIdentity, nearest};
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

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

/// A hash of an identity, so that tens of thousands of them are compared without their texts.
/// Identities with equal keys are taken for equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(u128);

impl Identity {
    /// The identity of a document with that header.
    pub fn of(header: &Header) -> Identity {
        Identity {
            group: header.group().into(),
            kind: header.kind.clone(),
            namespace: header.namespace.clone(),
            name: header.name.clone(),
        }
    }

    /// A hash of all four parts.
    pub(super) fn key(&self) -> Key {
        let mut hasher = Xxh3::new();
        for part in [&self.group, &self.kind, &self.namespace, &self.name] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Key(hasher.digest128())
    }

    /// Whether the other is this document with a slip in its kind or group, or without its group.
    pub(super) fn is_misspelt_as(&self, other: &Identity) -> bool {
        (&self.namespace, &self.name) == (&other.namespace, &other.name)
            && nearest(&other.kind, [&*self.kind]).is_some()
            && (other.group.is_empty() || nearest(&other.group, [&*self.group]).is_some())
    }

    /// Whether a text that tells so much may be this document.
    pub(super) fn may_be(&self, partial: &PartialIdentity) -> bool {
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
