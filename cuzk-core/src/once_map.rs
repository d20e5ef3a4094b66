//! Values that are expensive to make, made once each and shared.
//!
//! Not a cache: nothing goes by itself. The invariant: of several threads that ask
//! for a key at once one makes the value and the others wait for it, and an
//! error is not kept, so that the next to ask tries again.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Slot<V> = Arc<Mutex<Option<Arc<V>>>>;

/// Shared values by key.
pub struct OnceMap<K, V> {
    slots: Mutex<HashMap<K, Slot<V>>>,
}

impl<K, V> Default for OnceMap<K, V> {
    fn default() -> Self {
        Self {
            slots: Mutex::default(),
        }
    }
}

impl<K, V> fmt::Debug for OnceMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceMap").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash, V> OnceMap<K, V> {
    /// The value of `key`, made by `make` if no one has made it yet.
    ///
    /// # Errors
    /// What `make` returns.
    pub fn get_or_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        let slot = Arc::clone(lock(&self.slots).entry(key).or_default());
        let mut value = lock(&slot);
        match &*value {
            Some(made) => Ok(Arc::clone(made)),
            None => Ok(Arc::clone(value.insert(Arc::new(make()?)))),
        }
    }

    /// The value of `key`, if someone has made it.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        let slot = Arc::clone(lock(&self.slots).get(key)?);
        lock(&slot).clone()
    }

    /// Has `value` be what the next to ask for `key` gets; the one before lives on with
    /// those who have it.
    pub fn replace(&self, key: K, value: V) {
        let slot = Arc::clone(lock(&self.slots).entry(key).or_default());
        *lock(&slot) = Some(Arc::new(value));
    }

    /// Takes out the value of `key`, which lives on with those who have it. The
    /// next to ask makes it anew.
    pub fn remove(&self, key: &K) -> Option<Arc<V>> {
        let slot = lock(&self.slots).remove(key)?;
        lock(&slot).take()
    }
}

// A panic in `make` leaves its slot empty, which is as if no one had asked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn made_once_however_many_ask() {
        let map = OnceMap::default();
        let made = AtomicUsize::new(0);
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    let value = map.get_or_make("key", || {
                        made.fetch_add(1, Ordering::Relaxed);
                        Ok::<_, ()>(42)
                    });
                    assert_eq!(*value.unwrap(), 42);
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn nobody_waits_for_another_key() {
        let map = OnceMap::default();
        let began = Barrier::new(2);
        let (told, other_is_made) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let (map, began) = (&map, &began);
            let slow = scope.spawn(move || {
                map.get_or_make("slow", || {
                    began.wait();
                    other_is_made.recv_timeout(std::time::Duration::from_secs(60))
                })
            });
            began.wait();
            map.get_or_make("other", || Ok::<_, ()>(())).unwrap();
            told.send(()).unwrap();
            slow.join().unwrap().unwrap();
        });
    }

    #[test]
    fn what_is_replaced_lives_on_with_who_has_it() {
        let map = OnceMap::default();
        assert_eq!(map.get(&1), None);
        let old = map.get_or_make(1, || Ok::<_, ()>("old")).unwrap();
        map.replace(1, "new");
        map.replace(2, "other");
        let new = map.get_or_make(1, || Err("made again")).unwrap();
        assert_eq!(
            (*old, *new, map.get(&2).as_deref()),
            ("old", "new", Some(&"other"))
        );
    }

    #[test]
    fn an_error_is_tried_again() {
        let map = OnceMap::default();
        assert_eq!(map.get_or_make(1, || Err::<u8, _>("no")), Err("no"));
        assert_eq!(map.get_or_make(1, || Ok::<_, &str>(2)).as_deref(), Ok(&2));
    }
}
