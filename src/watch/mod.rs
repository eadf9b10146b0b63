//! Disk -> changes.
//!
//! Events of the file system only say "look again"; the truth is a rescan by content. So a lost
//! event costs time, never truth, and every way of saving a file (in place, rename over, symlink
//! swap) is the same. A slow poll stands behind the events.
//!
//! - [`scan`]: what is there now, and which directories decide about it;
//! - `settle`: when to look after something moved;
//! - `arm`: watches on these directories;
//! - [`watch`]: the task that ties them together.

mod arm;
mod mounts;
mod scan;
mod settle;
mod task;

pub use scan::{Found, Interest, Roots, Scanner};
pub use settle::{Settle, SettleOptions};
pub use task::{Polling, Rescan, WatchOptions, watch};

use crate::config::{SecretFiles, SourceFile};
use crate::diag::Diagnostic;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What changed since the last time.
#[derive(Debug, Default)]
pub struct Changes {
    /// Configuration files that are new or have other content.
    pub changed: Vec<SourceFile>,
    /// Labels of configuration files that are gone.
    pub removed: Vec<Arc<str>>,
    /// The mesh configuration, when it changed; `Some(None)` when it is gone.
    pub mesh: Option<Option<SourceFile>>,
    /// Directories below the secrets directory that are new or have other content.
    pub secrets_changed: Vec<SecretFiles>,
    /// Names of those that are gone.
    pub secrets_removed: Vec<Arc<str>>,
    /// Everything that cannot be read right now, changed or not.
    pub problems: Vec<Diagnostic>,
    /// Whether every root could be read.
    pub complete: bool,
}

impl Changes {
    /// Whether any content changed (problems aside).
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
            && self.removed.is_empty()
            && self.mesh.is_none()
            && self.secrets_changed.is_empty()
            && self.secrets_removed.is_empty()
    }

    /// The difference between two looks at the disk.
    pub fn between(before: &Found, now: &Found) -> Changes {
        let (changed, removed) = difference(&before.config, &now.config);
        let (secrets_changed, secrets_removed) = difference(&before.secrets, &now.secrets);
        Changes {
            changed: changed.into_iter().cloned().collect(),
            removed,
            mesh: (before.mesh != now.mesh).then(|| now.mesh.clone()),
            secrets_changed: secrets_changed.into_iter().cloned().collect(),
            secrets_removed,
            problems: now.problems.clone(),
            complete: now.complete,
        }
    }
}

/// What is new or other, and what is gone.
fn difference<'a, T: PartialEq>(
    before: &BTreeMap<Arc<str>, T>,
    now: &'a BTreeMap<Arc<str>, T>,
) -> (Vec<&'a T>, Vec<Arc<str>>) {
    let changed = now.iter().filter(|(key, value)| before.get(*key) != Some(*value));
    let removed = before.keys().filter(|key| !now.contains_key(*key));
    (changed.map(|(_, value)| value).collect(), removed.cloned().collect())
}
