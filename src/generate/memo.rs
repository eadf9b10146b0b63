//! Work that is done once for everybody who would get the same.
//!
//! A [`Memo`] keeps what was made under a key of `Arc`s and plain values: the narrow input, which is
//! all that the making code is handed. What it reads of the view beside that, its [`Viewer`] notes.
//! So an entry can be used again exactly when nothing that was read differs; it cannot go stale.

use super::view::{Looks, View, Viewer};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Results by narrow input and by what was read of the view.
pub struct Memo<K, T> {
    slots: Mutex<HashMap<K, Vec<Entry<T>>>>,
}

struct Entry<T> {
    /// The view for which it was made, and what was read of that.
    view: Arc<View>,
    looks: Looks,
    value: Arc<T>,
}

impl<K, T> Default for Memo<K, T> {
    fn default() -> Memo<K, T> {
        Memo { slots: Mutex::default() }
    }
}

impl<K, T> fmt::Debug for Memo<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash, T> Memo<K, T> {
    /// What is known for this input, else what `make` makes of it. `viewer` learns what the value
    /// depends on.
    ///
    /// Two callers that come at the same moment may both make it; the first to finish is kept.
    pub fn get(&self, key: K, viewer: &Viewer<'_>, make: impl FnOnce(&Viewer<'_>) -> T) -> Arc<T> {
        if let Some(entries) = self.lock().get(&key)
            && let Some(entry) = find(entries, viewer)
        {
            viewer.adopt(&entry.looks);
            return entry.value.clone();
        }
        let own = Viewer::new(viewer.view());
        let made = Arc::new(make(&own));
        let looks = own.looks();
        viewer.adopt(&looks);
        let mut slots = self.lock();
        let entries = slots.entry(key).or_default();
        if let Some(entry) = find(entries, viewer) {
            return entry.value.clone();
        }
        entries.push(Entry { view: viewer.view().clone(), looks, value: made.clone() });
        made
    }

    /// Forgets every entry for which `keep` does not hold.
    pub fn retain(&self, keep: impl Fn(&K, &Arc<T>) -> bool) {
        self.lock().retain(|key, entries| {
            entries.retain(|entry| keep(key, &entry.value));
            !entries.is_empty()
        });
    }

    /// Forgets what nobody else holds.
    pub fn sweep(&self) {
        self.retain(|_, value| Arc::strong_count(value) > 1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Vec<Entry<T>>>> {
        // The table holds finished values only, so it is good after a panic.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'e, T>(entries: &'e [Entry<T>], viewer: &Viewer<'_>) -> Option<&'e Entry<T>> {
    entries.iter().find(|entry| entry.looks.agree(&entry.view, viewer.view()))
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
