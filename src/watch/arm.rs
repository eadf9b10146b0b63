//! Watches on directories: one each, not recursive, armed again when a directory is replaced.

use super::scan::Interest;
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::sync::Notify;

/// What the thread that gets the events shares with the one that sets the watches.
#[derive(Debug, Default)]
struct Shared {
    /// Which entries of which directories matter.
    interests: BTreeMap<PathBuf, Interest>,
    /// Watched directories that were removed or renamed: the system has dropped their watches, even
    /// when there is a directory of that name again (with the same inode number, as happens).
    lost: BTreeSet<PathBuf>,
}

/// Device, inode and time of birth: inode numbers are used again.
type Identity = (u64, u64, Option<SystemTime>);

/// The watches that are set, by directory, with the identity that the directory had then.
#[derive(Debug)]
pub struct Arms {
    watcher: Option<RecommendedWatcher>,
    shared: Arc<Mutex<Shared>>,
    armed: BTreeMap<PathBuf, Identity>,
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
    /// Wakes `wake` whenever something may have changed. Where the system has no watches, nothing
    /// does.
    pub fn new(wake: Arc<Notify>) -> Arms {
        let shared = Arc::<Mutex<Shared>>::default();
        let of_thread = shared.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let matters = match event {
                Ok(event) => {
                    of_thread.lock().unwrap_or_else(PoisonError::into_inner).notice(&event)
                }
                // Errors and overflows are reasons to look too.
                Err(_) => true,
            };
            if matters {
                wake.notify_one();
            }
        });
        Arms { watcher: watcher.ok(), shared, armed: BTreeMap::new() }
    }

    /// No watches at all: only the poll looks.
    pub fn none() -> Arms {
        Arms { watcher: None, shared: Arc::default(), armed: BTreeMap::new() }
    }

    /// Watches exactly these directories.
    pub fn set(&mut self, directories: &BTreeMap<PathBuf, Interest>) -> Armed {
        let Some(watcher) = &mut self.watcher else { return Armed::Incomplete };
        let lost = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.interests.clone_from(directories);
            std::mem::take(&mut shared.lost)
        };
        let mut result = Armed::AsBefore;
        let gone: Vec<PathBuf> = self
            .armed
            .iter()
            .filter(|(path, id)| {
                let same = identity(path) == Some(**id) && !lost.contains(*path);
                !directories.contains_key(*path) || !same
            })
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

impl Shared {
    /// Whether the event is a reason to look. Our own reading is none, nor is what happens to other
    /// entries of a directory of which only some matter.
    fn notice(&mut self, event: &Event) -> bool {
        let moved = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
            EventKind::Access(_) => false,
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => true,
        };
        if matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))) {
            let gone = event.paths.iter().filter(|path| self.interests.contains_key(*path));
            self.lost.extend(gone.cloned());
        }
        moved && (event.paths.is_empty() || event.paths.iter().any(|path| self.includes(path)))
    }

    fn includes(&self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return true };
        // An event of a directory itself names the directory; its parent may be unknown to us.
        self.interests.contains_key(path)
            || self.interests.get(parent).is_none_or(|i| i.includes(name))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|m| (m.dev(), m.ino(), m.created().ok()))
}
