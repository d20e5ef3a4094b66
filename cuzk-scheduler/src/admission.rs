//! Work that waits for its turn and for its memory, under one lock.
//!
//! Not an allocator: it counts. One monitor and not a queue beside a budget,
//! because "the most urgent work, once its memory is free" is one condition: a
//! worker that had taken work and then waited for memory would keep what is more
//! urgent from being seen. The invariants:
//!
//! * What is charged never exceeds the limits, and what is not critical never
//!   takes the reserve.
//! * The work of a lane is admitted in the order of its [`Rank`]; nothing small
//!   overtakes something large that waits for memory. Nor does it in another lane:
//!   what is more urgent there keeps the room that it needs, though its worker may be
//!   busy.
//! * Whoever waits here holds no memory that others wait for: all that a piece
//!   of work needs is charged at once.
//! * What could never fit is told at once, not waited for.
//! * Memory of work that was given up, which nobody may ever free, stays charged
//!   and keeps nobody waiting: what does not fit beside it is told so.
//! * What several pieces of work share (a circuit) is charged once, stays charged
//!   while nobody uses it, and goes, least recently used first, when someone waits;
//!   what critical work used goes last. It is charged anew only once it is gone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::time::Instant;

use crate::priority::{Patience, Priority, Rank};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, wait};

/// More memory than there can ever be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed_bytes} bytes of memory are needed and the budget leaves {available_bytes}; \
     raise [memory] total_budget, or use a machine with more memory"
)]
pub struct OverBudget {
    /// What was asked for.
    pub needed_bytes: u64,
    /// What there would be with nothing else running.
    pub available_bytes: u64,
}

/// What may wait and what may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many pieces of work may wait.
    pub capacity: usize,
    /// The memory that all work together may use.
    pub total_bytes: u64,
    /// The part of it that only critical work may use.
    pub critical_reserve_bytes: u64,
    /// How long work waits for more urgent work.
    pub patience: Patience,
}

/// The memory that a piece of work needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need<K> {
    /// Its own.
    pub own_bytes: u64,
    /// What it shares with all work that names the same key, and its size.
    pub shared: Option<(K, u64)>,
}

impl<K> Need<K> {
    /// Memory that nothing else uses.
    #[must_use]
    pub fn own(own_bytes: u64) -> Self {
        Self {
            own_bytes,
            shared: None,
        }
    }

    fn total(&self) -> u64 {
        let shared = self.shared.as_ref().map_or(0, |(_, bytes)| *bytes);
        self.own_bytes.saturating_add(shared)
    }

    fn shared_with(&self, key: &K) -> u64
    where
        K: Eq,
    {
        let shared = self.shared.as_ref();
        let shared = shared.filter(|(named, _)| named == key);
        shared.map_or(0, |(_, bytes)| *bytes)
    }
}

/// Which workers take a piece of work. Work is of one lane, and so is a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Whatever has no reason to be elsewhere.
    Common,
    /// Critical work that must not wait for a worker: the slot that nothing else
    /// can take.
    Critical,
    /// Work that failed elsewhere.
    Retry,
}

const LANES: usize = 3;

/// By which door work comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// If no more waits then than may.
    IfRoom,
    /// However much waits: for what is bounded elsewhere.
    AtOnce,
    /// However much waits, for work of a job that was let in before: also when this is
    /// closed, but not when it is over, which it is not as long as the caller has a
    /// [`KeepOpen`].
    Again,
}

/// Why work was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As much waits already as may.
    Full,
    /// Nothing is let in any more.
    Closed,
}

/// The place of admitted work, to put it back there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    rank: Rank,
}

impl Ticket {
    /// Where it stands in the order of work.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.rank
    }
}

/// Work whose turn it is.
#[derive(Debug)]
pub enum Turn<T, K> {
    /// It may use its memory now.
    Admitted {
        /// The work.
        item: T,
        /// Its place.
        ticket: Ticket,
        /// Its memory, until this is dropped.
        memory: Reservation<K>,
        /// What had to go for it. No longer charged, so to be freed first.
        evicted: Evicted<K>,
    },
    /// Its memory can never be free.
    Impossible {
        /// The work.
        item: T,
        /// Its place.
        ticket: Ticket,
        /// What is missing.
        over: OverBudget,
        /// No memory. Until this is dropped the work counts as running, so that it can
        /// be put back: nobody who sees nothing left ends before.
        held: Reservation<K>,
    },
}

/// What waits and what is used at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Pieces of work that wait.
    pub waiting: usize,
    /// Pieces of work that were admitted and have neither ended nor been given
    /// up.
    pub running: usize,
    /// All that is charged.
    pub used_bytes: u64,
    /// The part of it that would go if someone waited.
    pub idle_bytes: u64,
    /// What may be charged.
    pub total_bytes: u64,
}

/// Work in order, and the memory it runs in. `T` is a piece of work, `K` names
/// what pieces of work share.
pub struct Admission<T, K> {
    limits: Limits,
    monitor: Arc<Monitor<T, K>>,
}

struct Monitor<T, K> {
    state: Mutex<State<T, K>>,
    changed: Condvar,
}

struct State<T, K> {
    /// By lane. The number tells apart work that was put back from a copy of it.
    waiting: [BTreeMap<(Rank, u64), Waiting<T, K>>; LANES],
    next_sequence: u64,
    closed: bool,
    /// How many [`KeepOpen`]s there are.
    stays: usize,
    memory: Memory<K>,
}

struct Waiting<T, K> {
    item: T,
    need: Need<K>,
}

#[derive(Clone)]
struct Memory<K> {
    critical_bytes: u64,
    other_bytes: u64,
    /// The parts of both that belong to work that was given up.
    stranded_critical_bytes: u64,
    stranded_other_bytes: u64,
    reservations: usize,
    shared: HashMap<K, Shared>,
    /// What was evicted and is not gone yet.
    going: HashSet<K>,
    /// Counts ends of use, to order them.
    clock: u64,
}

#[derive(Clone)]
struct Shared {
    bytes: u64,
    users: usize,
    /// Whether critical work is or was among them.
    critical: bool,
    /// Of the users those that were given up: it will not be idle again.
    stranded: usize,
    last_used: u64,
}

/// Whether work can have its memory.
enum Room<K> {
    /// Once these are gone.
    Now(Vec<K>),
    Later,
}

impl<K: Eq + Hash + Clone> Memory<K> {
    fn shared_bytes(&self) -> u64 {
        self.shared.values().map(|shared| shared.bytes).sum()
    }

    fn used_bytes(&self) -> u64 {
        self.critical_bytes + self.other_bytes + self.shared_bytes()
    }

    fn idle_bytes(&self) -> u64 {
        let idle = self.shared.values().filter(|shared| shared.users == 0);
        idle.map(|shared| shared.bytes).sum()
    }

    /// What work that was given up shares, and keeps from work of this need.
    fn lost_bytes(&self, need: &Need<K>) -> u64 {
        let lost = self.shared.iter().filter(|(_, shared)| shared.stranded > 0);
        let lost = lost.map(|(key, shared)| shared.bytes.saturating_sub(need.shared_with(key)));
        lost.sum()
    }

    /// What is charged once work of this need is, if nothing goes for it.
    fn used_with(&self, need: &Need<K>) -> u64 {
        let used = self.used_bytes() + need.own_bytes;
        let Some((key, bytes)) = &need.shared else {
            return used;
        };
        match self.shared.get(key) {
            Some(shared) => used - shared.bytes + shared.charged_for(*bytes),
            None => used + bytes,
        }
    }

    /// Whether there can be room once what runs has ended, and if not why.
    fn check(&self, need: &Need<K>, critical: bool, limits: &Limits) -> Result<(), OverBudget> {
        // As in `room`: critical work that was given up is within the reserve.
        let reserve_bytes = if critical {
            self.stranded_critical_bytes
        } else {
            limits
                .critical_reserve_bytes
                .max(self.stranded_critical_bytes)
        };
        let kept_bytes = reserve_bytes
            .saturating_add(self.stranded_other_bytes)
            .saturating_add(self.lost_bytes(need));
        let over = OverBudget {
            needed_bytes: need.total(),
            available_bytes: limits.total_bytes.saturating_sub(kept_bytes),
        };
        if over.needed_bytes > over.available_bytes {
            return Err(over);
        }
        Ok(())
    }

    fn room(&self, need: &Need<K>, critical: bool, limits: &Limits) -> Room<K> {
        if self.going.iter().any(|key| names(need, key)) {
            return Room::Later;
        }
        // Critical work is charged against everything; other work leaves the
        // reserve alone, whether or not critical work uses it at the moment.
        let within = |freed: u64| {
            let used = self.used_with(need) - freed;
            let reserve = limits.critical_reserve_bytes.max(self.critical_bytes);
            let others = used - self.critical_bytes;
            used <= limits.total_bytes && (critical || others + reserve <= limits.total_bytes)
        };
        let mut idle: Vec<_> = self
            .shared
            .iter()
            .filter(|(key, shared)| shared.users == 0 && !names(need, key))
            .collect();
        idle.sort_unstable_by_key(|(_, shared)| (shared.critical, shared.last_used));
        let mut evicted = Vec::new();
        let mut freed = 0;
        for (key, shared) in idle {
            if within(freed) {
                break;
            }
            freed += shared.bytes;
            evicted.push(key.clone());
        }
        if within(freed) {
            Room::Now(evicted)
        } else {
            Room::Later
        }
    }

    fn charge(&mut self, need: &Need<K>, critical: bool, evicted: &[K]) {
        for key in evicted {
            self.shared.remove(key);
            self.going.insert(key.clone());
        }
        if let Some((key, bytes)) = &need.shared {
            let shared = self.shared.entry(key.clone()).or_insert(Shared {
                bytes: 0,
                users: 0,
                critical: false,
                stranded: 0,
                last_used: 0,
            });
            shared.bytes = shared.charged_for(*bytes);
            shared.critical |= critical;
            shared.users += 1;
        }
        *self.own(critical) += need.own_bytes;
        self.reservations += 1;
    }

    fn end_use(&mut self, key: &K, stranded: bool) {
        self.clock += 1;
        if let Some(shared) = self.shared.get_mut(key) {
            shared.users -= 1;
            shared.stranded -= usize::from(stranded);
            shared.last_used = self.clock;
        }
    }

    fn own(&mut self, critical: bool) -> &mut u64 {
        if critical {
            &mut self.critical_bytes
        } else {
            &mut self.other_bytes
        }
    }

    fn stranded(&mut self, critical: bool) -> &mut u64 {
        if critical {
            &mut self.stranded_critical_bytes
        } else {
            &mut self.stranded_other_bytes
        }
    }
}

impl Shared {
    /// What is charged once someone uses it who says that it has so many bytes: it may
    /// be larger or smaller than it was, but those who use it go on with what they have.
    fn charged_for(&self, bytes: u64) -> u64 {
        if self.users == 0 {
            bytes
        } else {
            self.bytes.max(bytes)
        }
    }
}

fn names<K: Eq>(need: &Need<K>, key: &K) -> bool {
    need.shared.as_ref().is_some_and(|(named, _)| named == key)
}

impl<T, K> fmt::Debug for Admission<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl<T, K> Admission<T, K>
where
    T: Send + 'static,
    K: Eq + Hash + Clone + Send + 'static,
{
    /// Nothing waits and nothing is used.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let memory = Memory {
            critical_bytes: 0,
            other_bytes: 0,
            stranded_critical_bytes: 0,
            stranded_other_bytes: 0,
            reservations: 0,
            shared: HashMap::new(),
            going: HashSet::new(),
            clock: 0,
        };
        let state = State {
            waiting: [const { BTreeMap::new() }; LANES],
            next_sequence: 0,
            closed: false,
            stays: 0,
            memory,
        };
        let monitor = Arc::new(Monitor {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        Self { limits, monitor }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Lets `items` into `lane` together, as having arrived at `since`, or none of
    /// them.
    ///
    /// # Errors
    /// [`Refused::Full`] when they do not all fit, [`Refused::Closed`]; as `entrance`
    /// says.
    pub fn submit(
        &self,
        entrance: Entrance,
        lane: Lane,
        priority: Priority,
        since: Instant,
        items: Vec<(T, Need<K>)>,
    ) -> Result<(), Refused> {
        let mut state = self.lock();
        let is_closed = match entrance {
            Entrance::IfRoom | Entrance::AtOnce => state.closed,
            Entrance::Again => state.closed && state.is_over(),
        };
        if is_closed {
            return Err(Refused::Closed);
        }
        let room = self.limits.capacity.saturating_sub(state.num_waiting());
        if entrance == Entrance::IfRoom && items.len() > room {
            return Err(Refused::Full);
        }
        for (item, need) in items {
            let rank = Rank::new(priority, since, state.next_sequence, self.limits.patience);
            state.insert(lane, rank, Waiting { item, need });
        }
        drop(state);
        self.monitor.changed.notify_all();
        Ok(())
    }

    /// Keeps this from being over: workers wait for more, also when it is closed and
    /// nothing waits and runs. To be taken while something does.
    #[must_use]
    pub fn keep_open(&self) -> KeepOpen<T, K> {
        self.lock().stays += 1;
        KeepOpen(Arc::clone(&self.monitor))
    }

    /// Puts admitted work in its place in a lane, however much waits: because it
    /// turned out to need other memory, or has to be done again. To be called before its
    /// reservation is dropped, so that a worker who sees nothing left is right.
    pub fn put_back(&self, lane: Lane, ticket: Ticket, item: T, need: Need<K>) {
        let waiting = Waiting { item, need };
        self.lock().insert(lane, ticket.rank, waiting);
        self.monitor.changed.notify_all();
    }

    /// Waits until the next work of `lane` has its memory, and takes it; none
    /// once this is closed and nothing waits or could be put back.
    pub fn next(&self, lane: Lane) -> Option<Turn<T, K>> {
        let mut state = self.lock();
        loop {
            match self.turn(&mut state, lane) {
                Some(turn) => {
                    drop(state);
                    // What is behind it may fit as well, for another worker.
                    self.monitor.changed.notify_all();
                    return Some(turn);
                }
                None if state.closed && state.is_over() => return None,
                None => state = wait(&self.monitor.changed, state),
            }
        }
    }

    fn turn(&self, state: &mut State<T, K>, lane: Lane) -> Option<Turn<T, K>> {
        let limits = &self.limits;
        let (&(rank, _), first) = state.waiting[lane as usize].first_key_value()?;
        let (critical, ticket) = (rank.is_critical(), Ticket { rank });
        if let Err(over) = state.memory.check(&first.need, critical, limits) {
            let (_, Waiting { item, .. }) = state.waiting[lane as usize].pop_first()?;
            let nothing = Need::own(0);
            state.memory.charge(&nothing, critical, &[]);
            return Some(Turn::Impossible {
                item,
                ticket,
                over,
                held: self.reservation(nothing, critical),
            });
        }
        let Room::Now(evicted) = state.memory.room(&first.need, critical, limits) else {
            return None;
        };
        let mut memory = state.memory.clone();
        memory.charge(&first.need, critical, &evicted);
        if state.takes_the_room_of(|other| other < rank, &memory, limits) {
            return None;
        }
        let (_, Waiting { item, need }) = state.waiting[lane as usize].pop_first()?;
        state.memory = memory;
        Some(Turn::Admitted {
            item,
            ticket,
            memory: self.reservation(need, critical),
            evicted: self.evicted(evicted),
        })
    }

    fn evicted(&self, keys: Vec<K>) -> Evicted<K> {
        Evicted {
            charges: std::sync::Arc::new(ChargesOf(Arc::clone(&self.monitor))),
            keys,
        }
    }

    /// Whether work of this need could ever have its memory, as far as is known before
    /// its turn.
    ///
    /// # Errors
    /// If not.
    pub fn check(&self, priority: Priority, need: &Need<K>) -> Result<(), OverBudget> {
        let critical = priority == Priority::Critical;
        self.lock().memory.check(need, critical, &self.limits)
    }

    /// Charges memory for work that has no place in the order, if it is free at this
    /// moment, beside the reserve and without anything going for it. Critical work that
    /// waits keeps the room that it needs. Other work may wait longer for this: would it
    /// keep its room, too, there would be none for this as long as memory is what work
    /// waits for.
    #[must_use]
    pub fn reserve(&self, need: &Need<K>) -> Option<Reservation<K>> {
        let mut state = self.lock();
        match state.memory.room(need, false, &self.limits) {
            Room::Now(evicted) if evicted.is_empty() && !state.closed => {}
            Room::Now(_) | Room::Later => return None,
        }
        let mut memory = state.memory.clone();
        memory.charge(need, false, &[]);
        if state.takes_the_room_of(|other| other.is_critical(), &memory, &self.limits) {
            return None;
        }
        state.memory = memory;
        drop(state);
        Some(self.reservation(need.clone(), false))
    }

    /// Of what was charged.
    fn reservation(&self, need: Need<K>, critical: bool) -> Reservation<K> {
        Reservation {
            charges: std::sync::Arc::new(ChargesOf(Arc::clone(&self.monitor))),
            own_bytes: need.own_bytes,
            shared: need.shared.map(|(key, _)| key),
            critical,
            stranded: false,
        }
    }

    /// Takes out the waiting work that `keep` is false for.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut out = Vec::new();
        let mut state = self.lock();
        for lane in &mut state.waiting {
            let waiting = std::mem::take(lane).into_iter();
            let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
                waiting.partition(|(_, waiting)| keep(&waiting.item));
            *lane = kept;
            out.extend(gone.into_values().map(|waiting| waiting.item));
        }
        drop(state);
        self.monitor.changed.notify_all();
        out
    }

    /// Lets nothing more in. What waits is still admitted.
    pub fn close(&self) {
        self.lock().closed = true;
        self.monitor.changed.notify_all();
    }

    /// Whether nothing more is let in.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// What waits and what is used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let state = self.lock();
        Usage {
            waiting: state.num_waiting(),
            running: state.memory.reservations,
            used_bytes: state.memory.used_bytes(),
            idle_bytes: state.memory.idle_bytes(),
            total_bytes: self.limits.total_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T, K>> {
        lock(&self.monitor.state)
    }
}

impl<T, K: Eq + Hash + Clone> State<T, K> {
    /// Whether, once `memory` is what is used, something that is `before` this would wait
    /// for it. It does not wait for ever: what runs ends, what is idle goes, and what could
    /// not fit even then is not waited for.
    fn takes_the_room_of(
        &self,
        before: impl Fn(Rank) -> bool,
        memory: &Memory<K>,
        limits: &Limits,
    ) -> bool {
        let firsts = self.waiting.iter().filter_map(BTreeMap::first_key_value);
        let mut firsts = firsts.filter(|((rank, _), _)| before(*rank));
        firsts.any(|((rank, _), Waiting { need, .. })| {
            let critical = rank.is_critical();
            self.memory.check(need, critical, limits).is_ok()
                && matches!(memory.room(need, critical, limits), Room::Later)
        })
    }
}

impl<T, K> State<T, K> {
    fn insert(&mut self, lane: Lane, rank: Rank, waiting: Waiting<T, K>) {
        let place = (rank, self.next_sequence);
        self.waiting[lane as usize].insert(place, waiting);
        self.next_sequence += 1;
    }

    fn num_waiting(&self) -> usize {
        self.waiting.iter().map(BTreeMap::len).sum()
    }

    fn is_over(&self) -> bool {
        self.num_waiting() == 0 && self.memory.reservations == 0 && self.stays == 0
    }
}

/// The right to let work in again; see [`Admission::keep_open`]. It has no memory.
pub struct KeepOpen<T, K>(Arc<Monitor<T, K>>);

impl<T, K> Drop for KeepOpen<T, K> {
    fn drop(&mut self) {
        lock(&self.0.state).stays -= 1;
        self.0.changed.notify_all();
    }
}

/// Where a reservation is given back, without a word of what `T` is.
trait Charges<K>: Send + Sync {
    /// Some of a reservation's own memory is free.
    fn release(&self, critical: bool, own_bytes: u64);
    /// Nobody waits for it any more.
    fn strand(&self, critical: bool, own_bytes: u64, shared: Option<&K>);
    /// All that is left of it is free, and what it shares has a user less.
    fn end(&self, over: Over<'_, K>);
    /// What was evicted is gone.
    fn gone(&self, keys: &[K]);
}

/// A reservation at its end.
struct Over<'a, K> {
    own_bytes: u64,
    shared: Option<&'a K>,
    critical: bool,
    stranded: bool,
}

/// A type of its own, since a modelled `Arc` makes no trait objects.
struct ChargesOf<T, K>(Arc<Monitor<T, K>>);

impl<T, K> Charges<K> for ChargesOf<T, K>
where
    T: Send,
    K: Eq + Hash + Clone + Send,
{
    fn release(&self, critical: bool, own_bytes: u64) {
        *lock(&self.0.state).memory.own(critical) -= own_bytes;
        self.0.changed.notify_all();
    }

    fn strand(&self, critical: bool, own_bytes: u64, shared: Option<&K>) {
        let mut state = lock(&self.0.state);
        let memory = &mut state.memory;
        *memory.stranded(critical) += own_bytes;
        memory.reservations -= 1;
        if let Some(shared) = shared.and_then(|key| memory.shared.get_mut(key)) {
            shared.stranded += 1;
        }
        drop(state);
        self.0.changed.notify_all();
    }

    fn end(&self, over: Over<'_, K>) {
        let mut state = lock(&self.0.state);
        *state.memory.own(over.critical) -= over.own_bytes;
        if over.stranded {
            *state.memory.stranded(over.critical) -= over.own_bytes;
        } else {
            state.memory.reservations -= 1;
        }
        if let Some(key) = over.shared {
            state.memory.end_use(key, over.stranded);
        }
        drop(state);
        self.0.changed.notify_all();
    }

    fn gone(&self, keys: &[K]) {
        let mut state = lock(&self.0.state);
        for key in keys {
            state.memory.going.remove(key);
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

/// What has to go for work that was admitted. Nobody is charged for any of it anew until
/// this is dropped, so that there are no two of what is charged once: to be dropped when
/// it is freed.
pub struct Evicted<K> {
    charges: std::sync::Arc<dyn Charges<K>>,
    keys: Vec<K>,
}

impl<K> Deref for Evicted<K> {
    type Target = [K];

    fn deref(&self) -> &[K] {
        &self.keys
    }
}

impl<K> Drop for Evicted<K> {
    fn drop(&mut self) {
        if !self.keys.is_empty() {
            self.charges.gone(&self.keys);
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Evicted<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Evicted").field(&self.keys).finish()
    }
}

/// Memory that may be used until this is dropped.
pub struct Reservation<K> {
    charges: std::sync::Arc<dyn Charges<K>>,
    own_bytes: u64,
    shared: Option<K>,
    critical: bool,
    stranded: bool,
}

impl<K> Reservation<K> {
    /// What it allows, without what is shared.
    #[must_use]
    pub fn own_bytes(&self) -> u64 {
        self.own_bytes
    }

    /// Gives back all but `own_bytes` of it, since they were freed.
    pub fn shrink_to(&mut self, own_bytes: u64) {
        debug_assert!(!self.stranded);
        let surplus = self.own_bytes.saturating_sub(own_bytes);
        self.own_bytes -= surplus;
        self.charges.release(self.critical, surplus);
    }

    /// Its work was given up, though its memory is still in use: it stays charged
    /// until this is dropped, but nothing more comes of it, and nobody waits for
    /// that. To be called after the work was put back, if it is.
    pub fn abandon(&mut self) {
        if !std::mem::replace(&mut self.stranded, true) {
            let shared = self.shared.as_ref();
            self.charges.strand(self.critical, self.own_bytes, shared);
        }
    }
}

impl<K> Drop for Reservation<K> {
    fn drop(&mut self) {
        self.charges.end(Over {
            own_bytes: self.own_bytes,
            shared: self.shared.as_ref(),
            critical: self.critical,
            stranded: self.stranded,
        });
    }
}

impl<K> fmt::Debug for Reservation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("own_bytes", &self.own_bytes)
            .finish_non_exhaustive()
    }
}
