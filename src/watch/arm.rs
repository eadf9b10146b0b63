//! Watches on directories: one each, not recursive, armed again when a directory is replaced.

use super::scan::Interest;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Which entries of which directories matter; shared with the thread that gets the events.
type Interests = Arc<Mutex<BTreeMap<PathBuf, Interest>>>;

/// The watches that are set, by directory, with the identity that the directory had then.
#[derive(Debug)]
pub struct Arms {
    watcher: Option<RecommendedWatcher>,
    interests: Interests,
    armed: BTreeMap<PathBuf, (u64, u64)>,
}

/// What setting the watches came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Armed {
    /// Nothing new: everything was watched while it was looked at.
    AsBefore,
    /// New watches were set, so something may have moved between the look and now.
    New,
    /// Some directory is not watched.
    Incomplete,
}

impl Arms {
    /// Wakes `wake` whenever something may have changed. Without watches where the system has none.
    pub fn new(wake: Arc<Notify>) -> Arms {
        let interests = Interests::default();
        let shared = interests.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let matters = match event {
                Ok(event) => {
                    matters(&event, &shared.lock().unwrap_or_else(PoisonError::into_inner))
                }
                // Errors and overflows are reasons to look too.
                Err(_) => true,
            };
            if matters {
                wake.notify_one();
            }
        });
        Arms { watcher: watcher.ok(), interests, armed: BTreeMap::new() }
    }

    /// No watches at all: only the poll looks.
    pub fn none() -> Arms {
        Arms { watcher: None, interests: Interests::default(), armed: BTreeMap::new() }
    }

    /// Watches exactly these directories.
    pub fn set(&mut self, directories: &BTreeMap<PathBuf, Interest>) -> Armed {
        let Some(watcher) = &mut self.watcher else { return Armed::Incomplete };
        self.interests.lock().unwrap_or_else(PoisonError::into_inner).clone_from(directories);
        let mut result = Armed::AsBefore;
        let gone: Vec<PathBuf> = self
            .armed
            .iter()
            .filter(|(path, id)| !directories.contains_key(*path) || identity(path) != Some(**id))
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            // The kernel has dropped the watch of a directory that is gone; that is fine.
            let _ = watcher.unwatch(&path);
            self.armed.remove(&path);
        }
        for path in directories.keys() {
            if self.armed.contains_key(path) {
                continue;
            }
            let Some(id) = identity(path) else { continue };
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.armed.insert(path.clone(), id);
                    if result == Armed::AsBefore {
                        result = Armed::New;
                    }
                }
                Err(_) => result = Armed::Incomplete,
            }
        }
        result
    }
}

/// Our own reading must not wake us, nor must strangers in a directory that only names a root.
fn matters(event: &Event, interests: &BTreeMap<PathBuf, Interest>) -> bool {
    let moved = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    };
    let ours = |path: &PathBuf| {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return true };
        // An event of a directory itself names the directory; its parent may be unknown to us.
        interests.contains_key(path) || interests.get(parent).is_none_or(|i| i.includes(name))
    };
    moved && (event.paths.is_empty() || event.paths.iter().any(ours))
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|m| (m.dev(), m.ino()))
}
