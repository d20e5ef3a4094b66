//! The state of an admission under its lock, with the condition variable for its
//! changes.

use std::collections::BTreeMap;
use std::hash::Hash;

use super::memory::{Memory, Room};
use super::need::{Limits, Need};
use super::reservation::{Charged, Charges, Class};
use super::work::{LANE_LIST, LANES, Lane};
use crate::priority::Rank;
use crate::sync::{Arc, Condvar, Mutex, lock};

pub(super) struct Monitor<T, K> {
    pub(super) state: Mutex<State<T, K>>,
    pub(super) changed: Condvar,
}

impl<T, K> Monitor<T, K> {
    pub(super) fn new() -> Self {
        let state = State {
            waiting: [const { BTreeMap::new() }; LANES],
            next_sequence: 0,
            closed: false,
            kept_open: 0,
            holds: None,
            memory: Memory::default(),
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }
}

/// A place in a lane. The number distinguishes work that was put back from a copy of it.
pub(super) type Place = (Rank, u64);

pub(super) struct State<T, K> {
    /// Waiting work, by lane.
    pub(super) waiting: [BTreeMap<Place, Waiting<T, K>>; LANES],
    pub(super) next_sequence: u64,
    pub(super) closed: bool,
    /// The number of [`KeepOpen`]s.
    pub(super) kept_open: usize,
    /// Decides which work has no turn.
    pub(super) holds: Option<fn(&T) -> bool>,
    pub(super) memory: Memory<K>,
}

pub(super) struct Waiting<T, K> {
    pub(super) item: T,
    pub(super) need: Need<K>,
}

impl<T, K: Eq + Hash + Clone> State<T, K> {
    /// Returns true if work that is `before` this one would wait for memory if `memory`
    /// were the charged memory. That wait ends: running work ends, and idle things are
    /// evicted. Work that could not fit even then is not counted, because nobody waits
    /// for it.
    pub(super) fn would_delay(
        &self,
        before: impl Fn(Rank) -> bool,
        memory: &Memory<K>,
        limits: &Limits,
    ) -> bool {
        let firsts = LANE_LIST.into_iter().filter_map(|lane| self.first(lane));
        let mut firsts = firsts.filter(|((rank, _), _)| before(*rank));
        firsts.any(|((rank, _), Waiting { need, .. })| {
            let critical = rank.is_critical();
            self.memory.check(need, critical, limits).is_ok()
                && matches!(memory.room(need, critical, limits), Room::Later)
        })
    }

    /// Returns the work of a lane that has the next turn, with its place.
    pub(super) fn first(&self, lane: Lane) -> Option<(Place, &Waiting<T, K>)> {
        let mut waiting = self.waiting[lane as usize].iter();
        let first = waiting.find(|(_, waiting)| !self.is_held(&waiting.item));
        first.map(|(place, waiting)| (*place, waiting))
    }

    pub(super) fn is_held(&self, item: &T) -> bool {
        self.holds.is_some_and(|holds| holds(item))
    }

    pub(super) fn insert(&mut self, lane: Lane, rank: Rank, waiting: Waiting<T, K>) {
        let place = (rank, self.next_sequence);
        self.waiting[lane as usize].insert(place, waiting);
        self.next_sequence += 1;
    }

    pub(super) fn num_waiting(&self) -> usize {
        self.waiting.iter().map(BTreeMap::len).sum()
    }

    pub(super) fn is_over(&self) -> bool {
        self.num_waiting() == 0 && self.memory.users().all() == 0 && self.kept_open == 0
    }
}

/// The right to add work again after closing. It holds no memory. See
/// [`Admission::keep_open`](super::Admission::keep_open).
pub struct KeepOpen<T, K>(Arc<Monitor<T, K>>);

impl<T, K> KeepOpen<T, K> {
    pub(super) fn new(monitor: &Arc<Monitor<T, K>>) -> Self {
        lock(&monitor.state).kept_open += 1;
        Self(Arc::clone(monitor))
    }
}

impl<T, K> Drop for KeepOpen<T, K> {
    fn drop(&mut self) {
        lock(&self.0.state).kept_open -= 1;
        self.0.changed.notify_all();
    }
}

/// A type of its own, because loom's `Arc` cannot hold a trait object.
pub(super) struct MonitorCharges<T, K>(pub(super) Arc<Monitor<T, K>>);

impl<T, K> Charges<K> for MonitorCharges<T, K>
where
    T: Send,
    K: Eq + Hash + Clone + Send,
{
    fn release(&self, class: Class, own_bytes: u64) {
        self.change(|memory| memory.release(class, own_bytes));
    }

    fn abandon(&self, given_up: Charged<'_, K>) {
        self.change(|memory| memory.abandon(&given_up));
    }

    fn end(&self, ended: Charged<'_, K>) {
        self.change(|memory| memory.end(&ended));
    }

    fn freed(&self, keys: &[K]) {
        self.change(|memory| memory.freed(keys));
    }
}

impl<T, K> MonitorCharges<T, K> {
    /// Changes the memory under the lock, and wakes all that wait.
    fn change(&self, change: impl FnOnce(&mut Memory<K>)) {
        change(&mut lock(&self.0.state).memory);
        self.0.changed.notify_all();
    }
}
