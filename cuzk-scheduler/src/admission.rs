//! Work that waits for its turn and for its memory, under one lock.
//!
//! This is not an allocator: it counts. It is one monitor, and not a queue beside a
//! budget. The reason is that "the most urgent work, once its memory is free" is one
//! condition. A worker that had taken work and then waited for memory would not see
//! more urgent work.
//!
//! The invariants:
//!
//! * The charged memory never exceeds the limits. Work that is not critical never uses
//!   the reserve.
//! * The work of a lane is admitted in the order of its [`Rank`]. Small work does not
//!   overtake large work that waits for memory. This holds across lanes, too: more
//!   urgent work keeps the memory that it needs, even if its worker is busy.
//! * Work that waits here holds no memory that others wait for, because all that it
//!   needs is charged at once.
//! * A need that can never fit is reported at once, and does not wait.
//! * Memory of abandoned work stays charged, and nobody waits for it, because it may
//!   never be freed. A need that does not fit beside it is reported so.
//! * A thing that several pieces of work share (a circuit) is charged once. It stays
//!   charged while nobody uses it. When work waits, idle things are evicted, least
//!   recently used first, and things that critical work used last of all.
//! * An evicted thing is charged anew only after it is freed.
//! * Work that is held has no turn, keeps no memory for itself, and delays nobody.

mod memory;
mod monitor;
mod need;
mod reservation;
mod survey;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;
use std::time::Instant;

use self::memory::Room;
use self::monitor::{Monitor, MonitorCharges, State, Waiting};
use self::reservation::Class;
use self::work::LANE_LIST;
use crate::priority::{Priority, Rank};
use crate::sync::{Arc, MutexGuard, lock, wait};

pub use self::monitor::KeepOpen;
pub use self::need::{Limits, Need, OverBudget};
pub use self::reservation::{Evicted, Reservation};
pub use self::survey::{LetGo, SharedThing, Usage, Users, WaitingWork};
pub use self::work::{Entrance, Lane, Refused, Ticket, Turn};

/// Work in order, and its memory. `T` is a piece of work. `K` is the key of a thing
/// that pieces of work share.
pub struct Admission<T, K> {
    limits: Limits,
    monitor: Arc<Monitor<T, K>>,
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
    /// Returns an admission in which nothing waits and nothing is used.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let monitor = Arc::new(Monitor::new());
        Self { limits, monitor }
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Adds all `items` to `lane`, with the arrival time `since`, or none of them.
    /// `entrance` tells if they wait for room, and if they enter after closing.
    ///
    /// # Errors
    /// [`Refused::Full`] if they do not all fit, [`Refused::Closed`].
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

    /// Keeps the workers waiting for more work, even if this is closed and nothing
    /// waits or runs. Take it while something waits or runs.
    #[must_use]
    pub fn keep_open(&self) -> KeepOpen<T, K> {
        KeepOpen::new(&self.monitor)
    }

    /// Puts admitted work back to its place in a lane, however much waits. For work
    /// that turned out to need other memory, or that must be done again. Call it before
    /// its reservation is dropped; otherwise a worker could see that nothing is left,
    /// and end.
    pub fn put_back(&self, lane: Lane, ticket: Ticket, item: T, need: Need<K>) {
        let waiting = Waiting { item, need };
        self.lock().insert(lane, ticket.rank, waiting);
        self.monitor.changed.notify_all();
    }

    /// Waits until the next work of `lane` has its memory, and takes it. Returns none
    /// once this is closed, nothing waits, and nothing could be put back.
    pub fn next(&self, lane: Lane) -> Option<Turn<T, K>> {
        let mut state = self.lock();
        loop {
            match self.turn(&mut state, lane) {
                Some(turn) => {
                    drop(state);
                    // The next work may fit as well, for another worker.
                    self.monitor.changed.notify_all();
                    return Some(turn);
                }
                None if state.closed && state.is_over() => return None,
                None => state = wait(&self.monitor.changed, state),
            }
        }
    }

    /// Takes the next work of `lane` if it has its memory now. Returns none if nothing
    /// waits, or if the next work must wait for memory. A simulation calls it, which has
    /// one thread and must not wait.
    #[must_use]
    pub fn try_next(&self, lane: Lane) -> Option<Turn<T, K>> {
        let mut state = self.lock();
        let turn = self.turn(&mut state, lane)?;
        drop(state);
        self.monitor.changed.notify_all();
        Some(turn)
    }

    fn turn(&self, state: &mut State<T, K>, lane: Lane) -> Option<Turn<T, K>> {
        let limits = &self.limits;
        let (place, first) = state.first(lane)?;
        let (rank, _) = place;
        let (critical, ticket) = (rank.is_critical(), Ticket { rank });
        let class = Class::of_work(critical);
        if let Err(over) = state.memory.check(&first.need, critical, limits) {
            let Waiting { item, .. } = state.waiting[lane as usize].remove(&place)?;
            let nothing = Need::own(0);
            state.memory.charge(&nothing, class, &[]);
            return Some(Turn::Impossible {
                item,
                ticket,
                over,
                held: self.reservation(nothing, class),
            });
        }
        let Room::Now(evicted) = state.memory.room(&first.need, critical, limits) else {
            return None;
        };
        let mut memory = state.memory.clone();
        memory.charge(&first.need, class, &evicted);
        if state.would_delay(|other| other < rank, &memory, limits) {
            return None;
        }
        let Waiting { item, need } = state.waiting[lane as usize].remove(&place)?;
        state.memory = memory;
        Some(Turn::Admitted {
            item,
            ticket,
            memory: self.reservation(need, class),
            evicted: Evicted::new(self.charges(), evicted),
        })
    }

    /// Fails if work of this need could never get its memory, as far as is known before
    /// its turn.
    ///
    /// # Errors
    /// The missing memory.
    pub fn check(&self, priority: Priority, need: &Need<K>) -> Result<(), OverBudget> {
        let critical = priority == Priority::Critical;
        self.lock().memory.check(need, critical, &self.limits)
    }

    /// Charges memory for work in the background, which has no place in the order. Succeeds
    /// only if the memory is free now, beside the reserve and without any eviction.
    ///
    /// Critical work that waits keeps the memory that it needs. Other waiting work may
    /// wait longer because of this reservation. If it kept its memory, too, no
    /// reservation would succeed as long as any work waits for memory.
    #[must_use]
    pub fn reserve(&self, need: &Need<K>) -> Option<Reservation<K>> {
        let (memory, _) = self.reserve_as(Class::Background, need)?;
        Some(memory)
    }

    /// Charges memory for work that has no place in the order and that somebody waits for.
    /// Succeeds like [`Self::reserve`], but evicts idle things. Free what was evicted before
    /// the memory is used.
    #[must_use]
    pub fn reserve_evicting(&self, need: &Need<K>) -> Option<(Reservation<K>, Evicted<K>)> {
        self.reserve_as(Class::Common, need)
    }

    fn reserve_as(&self, class: Class, need: &Need<K>) -> Option<(Reservation<K>, Evicted<K>)> {
        let mut state = self.lock();
        let Room::Now(evicted) = state.memory.room(need, false, &self.limits) else {
            return None;
        };
        if state.closed || class == Class::Background && !evicted.is_empty() {
            return None;
        }
        let mut memory = state.memory.clone();
        memory.charge(need, class, &evicted);
        if state.would_delay(|other| other.is_critical(), &memory, &self.limits) {
            return None;
        }
        state.memory = memory;
        drop(state);
        let memory = self.reservation(need.clone(), class);
        Some((memory, Evicted::new(self.charges(), evicted)))
    }

    /// Lets go of a shared thing that nobody uses.
    #[must_use]
    pub fn let_go(&self, key: &K) -> LetGo<K> {
        let mut state = self.lock();
        let let_go = state.memory.let_go(key);
        drop(state);
        match let_go {
            None => LetGo::Absent,
            Some(Err(users)) => LetGo::InUse(users),
            Some(Ok(bytes)) => LetGo::Evicted {
                evicted: Evicted::new(self.charges(), vec![key.clone()]),
                bytes,
            },
        }
    }

    /// Returns the things that are charged for sharing.
    #[must_use]
    pub fn shared_things(&self) -> Vec<SharedThing<K>> {
        self.lock().memory.shared_things()
    }

    /// Holds the work for which `holds` returns true, now and when it comes: it has no
    /// turn. With none, all work has its turn again.
    pub fn hold(&self, holds: Option<fn(&T) -> bool>) {
        self.lock().holds = holds;
        self.monitor.changed.notify_all();
    }

    /// Has the workers look again, because the answers of what holds work have changed.
    pub fn wake(&self) {
        drop(self.lock());
        self.monitor.changed.notify_all();
    }

    /// Calls `visit` with each piece of work that waits, in the order of each lane. It is
    /// called under the lock.
    pub fn visit_waiting(&self, mut visit: impl FnMut(&T, WaitingWork)) {
        let state = self.lock();
        for (lane, waiting) in LANE_LIST.into_iter().zip(&state.waiting) {
            let mut ahead = 0;
            for Waiting { item, need } in waiting.values() {
                let is_held = state.is_held(item);
                let needed_bytes = state.memory.missing_bytes(need);
                visit(
                    item,
                    WaitingWork {
                        lane,
                        ahead,
                        needed_bytes,
                        is_held,
                    },
                );
                ahead += usize::from(!is_held);
            }
        }
    }

    /// Gives the waiting work for which `is_moved` returns true the place of another
    /// priority and time of arrival. Among itself it keeps its order. Critical work stays
    /// critical, and other work does not become critical, because their memory is charged
    /// apart.
    pub fn rerank(&self, priority: Priority, since: Instant, is_moved: impl Fn(&T) -> bool) {
        let mut state = self.lock();
        for lane in &mut state.waiting {
            let placed = std::mem::take(lane).into_iter();
            let placed = placed.map(|((rank, number), waiting)| {
                let rank = match is_moved(&waiting.item) {
                    true => rank.moved(priority, since, self.limits.patience),
                    false => rank,
                };
                ((rank, number), waiting)
            });
            *lane = placed.collect();
        }
        drop(state);
        self.monitor.changed.notify_all();
    }

    /// Returns the reservation of memory that was charged.
    fn reservation(&self, need: Need<K>, class: Class) -> Reservation<K> {
        let shared = need.shared.map(|(key, _)| key);
        Reservation::new(self.charges(), need.own_bytes, shared, class)
    }

    fn charges(&self) -> std::sync::Arc<MonitorCharges<T, K>> {
        std::sync::Arc::new(MonitorCharges(Arc::clone(&self.monitor)))
    }

    /// Removes the waiting work for which `keep` returns false, and returns it with its
    /// place. `keep` is asked in the order of each lane.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) -> Vec<(T, Ticket)> {
        let mut out = Vec::new();
        let mut state = self.lock();
        for lane in &mut state.waiting {
            let waiting = std::mem::take(lane).into_iter();
            let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
                waiting.partition(|(_, waiting)| keep(&waiting.item));
            *lane = kept;
            let with_place = |((rank, _), gone): (_, Waiting<T, K>)| (gone.item, Ticket { rank });
            out.extend(gone.into_iter().map(with_place));
        }
        drop(state);
        self.monitor.changed.notify_all();
        out
    }

    /// Refuses all new work. Waiting work is still admitted.
    pub fn close(&self) {
        self.lock().closed = true;
        self.monitor.changed.notify_all();
    }

    /// Returns true if new work is refused.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Returns the numbers of pieces of work and of bytes.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let state = self.lock();
        Usage {
            waiting: state.num_waiting(),
            running: state.memory.users().work,
            in_background: state.memory.users().in_background,
            used_bytes: state.memory.used_bytes(),
            idle_bytes: state.memory.idle_bytes(),
            total_bytes: self.limits.total_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T, K>> {
        lock(&self.monitor.state)
    }
}
