//! Work that is done once for everybody who would get the same.
//!
//! A [`Memo`] keeps what was made under a key of `Arc`s and plain values: the narrow input, which is
//! all that the making code is handed. What it reads of the view beside that, its [`Viewer`] notes.
//! So an entry can be used again exactly when nothing that was read differs; it cannot go stale.
//! Many proxies that connect at once wait for the first of them instead of all making the same.

use super::view::{Class, Looks, View, Viewer};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Results by narrow input and by what was read of the view.
pub struct Memo<K, T> {
    slots: Mutex<HashMap<K, Arc<Slot<T>>>>,
    /// Nearly everything of one sort is made with the same looks, so they are kept once.
    looks: Mutex<Vec<Arc<Looks>>>,
    made: AtomicU64,
    reused: AtomicU64,
}

/// How often a part was made, and how often one was there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uses {
    /// Made.
    pub made: u64,
    /// Found.
    pub reused: u64,
}

/// What is known for one input.
struct Slot<T> {
    entries: Mutex<Vec<Entry<T>>>,
    /// Held by who makes something for views of this kind, so that others like it wait instead of
    /// making the same. Views of other kinds may need something else, so they go on side by side,
    /// once there is a first result to compare with.
    turns: Mutex<Vec<Turn>>,
}

/// What is held by who makes something for views of a kind; `None` is the first of all.
type Turn = (Option<Class>, Arc<Mutex<()>>);

struct Entry<T> {
    /// The view for which it was made, and what was read of that.
    view: Arc<View>,
    looks: Arc<Looks>,
    value: Arc<T>,
}

impl<K, T> Default for Memo<K, T> {
    fn default() -> Memo<K, T> {
        Memo {
            slots: Mutex::default(),
            looks: Mutex::default(),
            made: AtomicU64::new(0),
            reused: AtomicU64::new(0),
        }
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot { entries: Mutex::default(), turns: Mutex::default() }
    }
}

impl<K, T> fmt::Debug for Memo<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash, T> Memo<K, T> {
    /// What is known for this input, else what `make` makes of it. `viewer` learns what the value
    /// depends on. For small things: who comes while another makes one makes one too.
    pub fn get(&self, key: K, viewer: &Viewer<'_>, make: impl FnOnce(&Viewer<'_>) -> T) -> Arc<T> {
        let slot = lock(&self.slots).entry(key).or_default().clone();
        self.find(&slot, viewer).unwrap_or_else(|| self.make(&slot, viewer, make))
    }

    /// The same for big things: who comes while another makes one waits for that.
    pub fn get_once(
        &self,
        key: K,
        viewer: &Viewer<'_>,
        make: impl FnOnce(&Viewer<'_>) -> T,
    ) -> Arc<T> {
        let slot = lock(&self.slots).entry(key).or_default().clone();
        if let Some(known) = self.find(&slot, viewer) {
            return known;
        }
        let turn = slot.turn(None);
        let first = lock(&turn);
        if let Some(known) = self.find(&slot, viewer) {
            return known;
        }
        if lock(&slot.entries).is_empty() {
            return self.make(&slot, viewer, make);
        }
        drop(first);
        let turn = slot.turn(Some(viewer.view().class()));
        let _mine = lock(&turn);
        self.find(&slot, viewer).unwrap_or_else(|| self.make(&slot, viewer, make))
    }

    /// What was asked for so far.
    pub fn uses(&self) -> Uses {
        Uses {
            made: self.made.load(Ordering::Relaxed),
            reused: self.reused.load(Ordering::Relaxed),
        }
    }

    fn find(&self, slot: &Slot<T>, viewer: &Viewer<'_>) -> Option<Arc<T>> {
        let found = slot.find(viewer)?;
        self.reused.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    fn make(
        &self,
        slot: &Slot<T>,
        viewer: &Viewer<'_>,
        make: impl FnOnce(&Viewer<'_>) -> T,
    ) -> Arc<T> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let own = Viewer::new(viewer.view());
        let value = Arc::new(make(&own));
        let looks = self.shared(own.looks());
        viewer.adopt(&looks);
        let view = viewer.view().clone();
        lock(&slot.entries).push(Entry { view, looks, value: value.clone() });
        value
    }

    fn shared(&self, looks: Looks) -> Arc<Looks> {
        let mut known = lock(&self.looks);
        if let Some(same) = known.iter().find(|same| ***same == looks) {
            return same.clone();
        }
        let looks = Arc::new(looks);
        known.push(looks.clone());
        looks
    }

    /// Forgets every entry for which `keep` does not hold.
    pub fn retain(&self, keep: impl Fn(&K, &Arc<T>) -> bool) {
        lock(&self.looks).retain(|looks| Arc::strong_count(looks) > 1);
        lock(&self.slots).retain(|key, slot| {
            let mut entries = lock(&slot.entries);
            entries.retain(|entry| keep(key, &entry.value));
            // Somebody who is just making something for it holds the slot too.
            !entries.is_empty() || Arc::strong_count(slot) > 1
        });
    }

    /// Forgets what nobody else holds.
    pub fn sweep(&self) {
        self.retain(|_, value| Arc::strong_count(value) > 1);
    }
}

impl<T> Slot<T> {
    fn find(&self, viewer: &Viewer<'_>) -> Option<Arc<T>> {
        let entries = lock(&self.entries);
        let entry = entries.iter().find(|entry| entry.looks.agree(&entry.view, viewer.view()))?;
        viewer.adopt(&entry.looks);
        Some(entry.value.clone())
    }

    fn turn(&self, class: Option<Class>) -> Arc<Mutex<()>> {
        let mut turns = lock(&self.turns);
        match turns.iter().find(|(of, _)| *of == class) {
            Some((_, turn)) => turn.clone(),
            None => {
                let turn = Arc::<Mutex<()>>::default();
                turns.push((class, turn.clone()));
                turn
            }
        }
    }
}

/// Locks. The tables hold finished values only, so they are good after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A key that is an `Arc`'s identity. It holds the `Arc`, so its address is not given to another
/// value while the key is kept.
pub struct Same<T: ?Sized>(pub Arc<T>);

impl<T: ?Sized> Clone for Same<T> {
    fn clone(&self) -> Same<T> {
        Same(self.0.clone())
    }
}

impl<T: ?Sized> PartialEq for Same<T> {
    fn eq(&self, other: &Same<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> Eq for Same<T> {}

impl<T: ?Sized> Hash for Same<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}

impl<T: ?Sized> fmt::Debug for Same<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Same({:p})", Arc::as_ptr(&self.0).cast::<()>())
    }
}
