//! Values that are expensive to make, made once each and shared.
//!
//! Not a cache: nothing goes by itself. The invariants:
//!
//! * If several threads ask for a key at once, one makes the value. The others wait for
//!   it, each as long as it likes.
//! * A making that ends with an error or a panic leaves nothing. The next thread to ask
//!   tries again; a thread that waited already may be the next.
//! * A value that was removed or replaced while it was made is its maker's alone.
//! * A making waits for rayon by [`apart`](crate::apart) only. Otherwise its thread could begin
//!   a job that asks for the same key. Such a thread would wait for itself; it panics instead.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use cuzk_memory::{Checkpoint, Stopped};

/// How often who waits looks whether to go on.
const LOOK: Duration = Duration::from_millis(1);

/// Shared values by key.
pub struct OnceMap<K, V> {
    state: Mutex<State<K, V>>,
    changed: Condvar,
}

struct State<K, V> {
    slots: HashMap<K, Slot<V>>,
    /// How many were begun, to tell one making of a key from another.
    begun: u64,
}

enum Slot<V> {
    /// The number of the making, and the thread that makes it.
    Making(u64, ThreadId),
    Made(Arc<V>),
}

impl<K, V> Default for OnceMap<K, V> {
    fn default() -> Self {
        let state = State {
            slots: HashMap::new(),
            begun: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }
}

impl<K, V> fmt::Debug for OnceMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceMap").finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash, V> OnceMap<K, V> {
    /// Returns the value of `key`. `make` makes it, if no thread has made it yet.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn get_or_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        self.make_unless(key, || None, make)
    }

    /// Returns the value of `key`. `make` makes it, if no thread has made it yet. A thread
    /// that waits for another to make it asks every millisecond or so if `checkpoint` is
    /// cancelled; it never pauses.
    ///
    /// # Errors
    /// The error of `make`, or [`Stopped`].
    pub fn get_or_make_unless_stopped<E: From<Stopped>>(
        &self,
        key: K,
        checkpoint: &Checkpoint<'_>,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let stop = || checkpoint.is_cancelled().then(|| Stopped.into());
        self.make_unless(key, stop, make)
    }

    fn make_unless<E>(
        &self,
        key: K,
        stop: impl Fn() -> Option<E>,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        loop {
            match self.made_or_begun(&key) {
                Turn::Made(value) => return Ok(value),
                Turn::Ours(number) => {
                    let making = Making {
                        map: self,
                        key,
                        number,
                    };
                    return make().map(|value| making.done(value));
                }
                Turn::Others => {}
            }
            if let Some(error) = stop() {
                return Err(error);
            }
        }
    }

    /// Returns the value of `key`, if a thread has made it or is about to.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        let is_being_made =
            |state: &mut State<K, V>| state.slots.get(key).is_some_and(Slot::is_others_making);
        let state = self.changed.wait_while(self.lock(), is_being_made);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.slots.get(key).and_then(Slot::made)
    }

    /// Returns the value of `key`, if a thread has made it.
    pub fn made(&self, key: &K) -> Option<Arc<V>> {
        self.lock().slots.get(key).and_then(Slot::made)
    }

    /// Has `value` be what the next to ask for `key` gets; the one before lives on with
    /// those who have it.
    pub fn replace(&self, key: K, value: V) {
        let value = Slot::Made(Arc::new(value));
        // Dropped once the lock is released.
        let _before = self.lock().slots.insert(key, value);
        self.changed.notify_all();
    }

    /// Takes out the value of `key`, which lives on with those who have it. The
    /// next to ask makes it anew.
    pub fn remove(&self, key: &K) -> Option<Arc<V>> {
        let slot = self.lock().slots.remove(key)?;
        self.changed.notify_all();
        slot.made()
    }

    /// Takes out the values of all keys for which `which` is true, like [`Self::remove`].
    pub fn remove_all(&self, which: impl Fn(&K) -> bool) {
        let mut state = self.lock();
        let removed: Vec<_> = state.slots.extract_if(|key, _| which(key)).collect();
        drop(state);
        self.changed.notify_all();
        // Not under the lock.
        drop(removed);
    }

    /// Returns the next step for `key`, after a moment if another thread makes it.
    fn made_or_begun(&self, key: &K) -> Turn<V> {
        let mut state = self.lock();
        match state.slots.get(key) {
            Some(Slot::Made(value)) => Turn::Made(Arc::clone(value)),
            Some(slot @ Slot::Making(..)) => {
                slot.is_others_making();
                drop(self.changed.wait_timeout(state, LOOK));
                Turn::Others
            }
            None => {
                state.begun += 1;
                let number = state.begun;
                state
                    .slots
                    .insert(key.clone(), Slot::Making(number, thread::current().id()));
                Turn::Ours(number)
            }
        }
    }

    // The state is whole after a panic, because every change is one step.
    fn lock(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Slot<V> {
    /// Returns true if another thread makes the value.
    ///
    /// # Panics
    /// If the calling thread makes it, which would wait for ever.
    fn is_others_making(&self) -> bool {
        match self {
            Self::Making(_, maker) => {
                let is_own = *maker == thread::current().id();
                assert!(!is_own, "a thread waits for a value that it makes itself");
                true
            }
            Self::Made(_) => false,
        }
    }

    fn made(&self) -> Option<Arc<V>> {
        match self {
            Self::Made(value) => Some(Arc::clone(value)),
            Self::Making(..) => None,
        }
    }
}

/// The next step for a key.
enum Turn<V> {
    Made(Arc<V>),
    /// To make it, under this number.
    Ours(u64),
    /// To look again.
    Others,
}

/// A making, which leaves nothing unless it is done.
struct Making<'a, K: Clone + Eq + Hash, V> {
    map: &'a OnceMap<K, V>,
    key: K,
    number: u64,
}

impl<K: Clone + Eq + Hash, V> Making<'_, K, V> {
    fn done(self, value: V) -> Arc<V> {
        let value = Arc::new(value);
        if let Some(slot) = self.slot(&mut self.map.lock()) {
            *slot = Slot::Made(Arc::clone(&value));
        }
        value
    }

    /// The slot of this making, unless it was removed or replaced.
    fn slot<'s>(&self, state: &'s mut State<K, V>) -> Option<&'s mut Slot<V>> {
        let slot = state.slots.get_mut(&self.key)?;
        matches!(slot, Slot::Making(number, _) if *number == self.number).then_some(slot)
    }
}

impl<K: Clone + Eq + Hash, V> Drop for Making<'_, K, V> {
    fn drop(&mut self) {
        let mut state = self.map.lock();
        if self.slot(&mut state).is_some() {
            state.slots.remove(&self.key);
        }
        drop(state);
        self.map.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use cuzk_bounded::{BoundedBarrier, BoundedJoin};

    const MOMENTS: Duration = Duration::from_secs(60);

    #[test]
    fn made_once_however_many_ask() {
        let map = OnceMap::default();
        let made = AtomicUsize::new(0);
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait_bounded();
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

    /// Returns the result of `during`, and the value of "slow", which is made after it.
    fn while_slow_is_made<R>(
        map: &OnceMap<&'static str, u8>,
        during: impl FnOnce() -> R,
    ) -> (R, Arc<u8>) {
        let began = Barrier::new(2);
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            // Dropped if `during` panics, so that the other ends.
            let tell = tell;
            let began = &began;
            let slow = scope.spawn(move || {
                map.get_or_make("slow", || {
                    began.wait_bounded();
                    told.recv_timeout(MOMENTS)
                })
            });
            began.wait_bounded();
            let result = during();
            tell.send(1).unwrap();
            (result, slow.join_bounded().unwrap().unwrap())
        })
    }

    #[test]
    fn nobody_waits_for_another_key() {
        let map = OnceMap::default();
        while_slow_is_made(&map, || {
            map.get_or_make("other", || Ok::<_, ()>(0)).unwrap()
        });
    }

    #[test]
    fn who_waits_may_leave() {
        let map = OnceMap::default();
        let asked = AtomicUsize::new(0);
        let (left, _) = while_slow_is_made(&map, || {
            let third_time = || (asked.fetch_add(1, Ordering::Relaxed) == 2).then_some("left");
            map.make_unless("slow", third_time, || Ok(2))
        });
        assert_eq!((left, asked.into_inner()), (Err("left"), 3));
        // A value that exists is returned at once.
        let value = map.make_unless("slow", || Some("left"), || Ok(2));
        assert_eq!(value.as_deref(), Ok(&1));
    }

    #[test]
    fn what_is_removed_or_replaced_while_it_is_made_is_its_makers() {
        let map = OnceMap::default();
        let (removed, made) = while_slow_is_made(&map, || map.remove(&"slow"));
        assert_eq!((removed, *made, map.get(&"slow")), (None, 1, None));
        let ((), made) = while_slow_is_made(&map, || map.replace("slow", 2));
        assert_eq!((*made, map.remove(&"slow").as_deref()), (1, Some(&2)));
        let ((), made) = while_slow_is_made(&map, || map.remove_all(|key| *key == "slow"));
        assert_eq!((*made, map.get(&"slow")), (1, None));
        // Made again meanwhile: the first maker leaves that alone.
        let (again, made) = while_slow_is_made(&map, || {
            map.remove(&"slow");
            map.get_or_make("slow", || Ok::<_, ()>(3)).unwrap()
        });
        assert_eq!(
            (*again, *made, map.get(&"slow").as_deref()),
            (3, 1, Some(&3))
        );
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
        map.remove_all(|key| *key == 2);
        assert_eq!((map.get(&1).as_deref(), map.get(&2)), (Some(&"new"), None));
    }

    #[test]
    fn what_could_not_be_made_leaves_nothing_and_is_tried_again() {
        let map = OnceMap::default();
        let is_empty = || map.lock().slots.is_empty();
        assert_eq!(map.get_or_make(1, || Err::<u8, _>("no")), Err("no"));
        assert!(is_empty());
        let panics = || map.get_or_make(1, || -> Result<u8, ()> { panic!("as a test asks") });
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert!(is_empty());
        assert_eq!(map.get_or_make(1, || Ok::<_, &str>(2)).as_deref(), Ok(&2));
    }

    /// That is what a job of rayon would do that a making begins while it waits.
    #[test]
    fn who_waits_for_itself_panics() {
        let map = OnceMap::default();
        type Asks = fn(&OnceMap<u8, u8>) -> bool;
        let both: [Asks; 2] = [
            |map| map.get_or_make(1, || Ok::<_, ()>(2)).is_ok(),
            |map| map.get(&1).is_some(),
        ];
        for asks in both {
            let itself = || map.get_or_make(1, || Ok::<_, ()>(asks(&map).into()));
            let panic = catch_unwind(AssertUnwindSafe(itself)).unwrap_err();
            let told = panic.downcast::<&str>().unwrap();
            assert!(told.contains("makes itself"), "{told}");
            // It leaves nothing.
            assert_eq!(map.made(&1), None);
        }
        assert_eq!(map.get_or_make(1, || Ok::<_, ()>(3)).as_deref(), Ok(&3));
    }

    /// A thread that waited for a failed making tries next.
    #[test]
    fn who_waited_tries_again() {
        let map = OnceMap::default();
        let began = Barrier::new(2);
        let asked = AtomicUsize::new(0);
        thread::scope(|scope| {
            let failing = scope.spawn(|| {
                map.get_or_make(1, || {
                    began.wait_bounded();
                    while asked.load(Ordering::Relaxed) == 0 {
                        thread::yield_now();
                    }
                    Err::<u8, _>("no")
                })
            });
            began.wait_bounded();
            let waits = || {
                asked.fetch_add(1, Ordering::Relaxed);
                None
            };
            let value = map.make_unless(1, waits, || Ok::<_, &str>(2));
            assert_eq!(value.as_deref(), Ok(&2));
            assert_eq!(failing.join_bounded().unwrap(), Err("no"));
        });
    }
}
