//! The partitions that the engine and the ledger both have: by the engine's id and by the
//! ledger's.
//!
//! It is neither of the two. The invariants:
//!
//! * A partition of the ledger is here under both ids, or under none.
//! * A partition that began here or has ended is not offered any more.
//! * It takes no memory for inputs: it has as many partitions as the engine's queue.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuzk_cluster::message::WorkId;
use cuzk_core::Priority;
use cuzk_core::engine::{PartitionId, QueuedPartition, RemoteProof};

/// The threads that offer partitions. Sealing does not delay a PoSt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Urgent,
    Common,
}

/// The partitions of the engine that other machines may prove.
#[derive(Default)]
pub(super) struct Table {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    partitions: HashMap<PartitionId, Entry>,
    by_work: HashMap<WorkId, PartitionId>,
    /// The partitions to be offered, by lane.
    waiting: [VecDeque<PartitionId>; 2],
    /// The number of partitions that are being offered.
    in_hand: usize,
    is_stopped: bool,
}

struct Entry {
    queued: QueuedPartition,
    work: Option<WorkId>,
    /// The engine has begun it.
    is_begun: bool,
    /// Only this machine may prove it.
    is_alone: bool,
    /// The time since which nodes have it.
    taken: Option<Instant>,
    /// The proof of a node, which was verified.
    proof: Option<RemoteProof>,
}

/// A partition whose end the ledger has.
pub(super) struct Ended {
    pub(super) id: PartitionId,
    pub(super) proof: Option<RemoteProof>,
    /// The time since which nodes had it.
    pub(super) taken: Option<Instant>,
}

/// Returns true for work that begins here in any case, also while others have it.
pub(super) fn starts_here(priority: Priority) -> bool {
    priority == Priority::Critical
}

impl Lane {
    fn of(priority: Priority) -> Self {
        match priority {
            Priority::Critical | Priority::High => Self::Urgent,
            Priority::Normal | Priority::Low => Self::Common,
        }
    }
}

impl Entry {
    /// Returns true if it is to be offered.
    fn is_wanted(&self) -> bool {
        self.work.is_none() && (starts_here(self.queued.priority) || !self.is_begun)
    }
}

impl Table {
    /// Adds a partition of the engine, to be offered. One that was here before is new.
    pub(super) fn add(&self, queued: QueuedPartition) {
        let mut state = self.lock();
        let (id, lane) = (queued.id, Lane::of(queued.priority));
        let entry = Entry {
            queued,
            work: None,
            is_begun: false,
            is_alone: false,
            taken: None,
            proof: None,
        };
        let before = state.partitions.insert(id, entry);
        if let Some(work) = before.and_then(|before| before.work) {
            state.by_work.remove(&work);
        }
        state.waiting[lane as usize].push_back(id);
        drop(state);
        self.changed.notify_all();
    }

    /// Notes that the engine has begun a partition. Returns its id in the ledger, if it has one.
    pub(super) fn begin(&self, id: PartitionId) -> Option<WorkId> {
        let mut state = self.lock();
        let entry = state.partitions.get_mut(&id)?;
        entry.is_begun = true;
        entry.work
    }

    /// Removes a partition. Returns its id in the ledger, if it has one.
    pub(super) fn remove(&self, id: PartitionId) -> Option<WorkId> {
        let mut state = self.lock();
        let work = state.partitions.remove(&id)?.work?;
        state.by_work.remove(&work);
        Some(work)
    }

    /// Waits for the next partition of a lane that is to be offered; none once it is stopped.
    pub(super) fn next(&self, lane: Lane) -> Option<PartitionId> {
        let mut state = self.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(id) = state.waiting[lane as usize].pop_front() {
                state.in_hand += 1;
                return Some(id);
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that a thread has done what [`Table::next`] gave it.
    pub(super) fn done(&self) {
        self.lock().in_hand -= 1;
    }

    /// Returns true if no partition is to be offered.
    pub(super) fn has_offered_all(&self) -> bool {
        let state = self.lock();
        state.in_hand == 0 && state.waiting.iter().all(VecDeque::is_empty)
    }

    /// Returns a partition, if it is to be offered.
    pub(super) fn wanted(&self, id: PartitionId) -> Option<QueuedPartition> {
        let state = self.lock();
        let entry = state.partitions.get(&id)?;
        entry.is_wanted().then(|| entry.queued.clone())
    }

    /// Calls `offer` if a partition is still to be offered, and notes the id that it returns.
    /// The ledger's calls about the id wait meanwhile, so `offer` is to return at once.
    pub(super) fn offer<E>(
        &self,
        id: PartitionId,
        offer: impl FnOnce() -> Result<WorkId, E>,
    ) -> Option<Result<WorkId, E>> {
        let mut state = self.lock();
        let entry = state.partitions.get_mut(&id)?;
        if !entry.is_wanted() {
            return None;
        }
        let offered = offer();
        if let Ok(work) = offered {
            entry.work = Some(work);
            state.by_work.insert(work, id);
        }
        Some(offered)
    }

    /// Notes that only this machine may prove a partition.
    pub(super) fn keep_alone(&self, id: PartitionId) {
        if let Some(entry) = self.lock().partitions.get_mut(&id) {
            entry.is_alone = true;
        }
    }

    /// Returns true if other machines may prove a partition, or it is still to be offered.
    pub(super) fn has(&self, id: PartitionId) -> bool {
        let state = self.lock();
        state
            .partitions
            .get(&id)
            .is_some_and(|entry| !entry.is_alone)
    }

    /// Returns the engine's id of a partition of the ledger.
    pub(super) fn id(&self, work: &WorkId) -> Option<PartitionId> {
        self.lock().by_work.get(work).copied()
    }

    /// Notes that nodes have a partition. Calls `hold` with it if the engine has not begun it
    /// and need not begin it.
    pub(super) fn taken(&self, work: &WorkId, hold: impl FnOnce(PartitionId)) {
        self.change(work, |id, entry| {
            entry.taken.get_or_insert_with(Instant::now);
            if !entry.is_begun && !starts_here(entry.queued.priority) {
                hold(id);
            }
        });
    }

    /// Notes that no node has a partition any more. Calls `give_back` with it if the engine
    /// has not begun it.
    pub(super) fn returned(&self, work: &WorkId, give_back: impl FnOnce(PartitionId)) {
        self.change(work, |id, entry| {
            entry.taken = None;
            if !entry.is_begun {
                give_back(id);
            }
        });
    }

    /// Keeps the verified proof of a partition until the ledger has its end.
    pub(super) fn keep(&self, work: &WorkId, proof: RemoteProof) {
        self.change(work, |_, entry| entry.proof = Some(proof));
    }

    /// Removes a partition whose end the ledger has.
    pub(super) fn end(&self, work: &WorkId) -> Option<Ended> {
        let mut state = self.lock();
        let id = state.by_work.remove(work)?;
        let entry = state.partitions.remove(&id)?;
        Some(Ended {
            id,
            proof: entry.proof,
            taken: entry.taken,
        })
    }

    /// Ends the threads that wait for partitions.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    fn change(&self, work: &WorkId, change: impl FnOnce(PartitionId, &mut Entry)) {
        let mut state = self.lock();
        let Some(id) = state.by_work.get(work).copied() else {
            return;
        };
        if let Some(entry) = state.partitions.get_mut(&id) {
            change(id, entry);
        }
    }

    // Every change is whole before anything that can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use cuzk_bounded::BoundedJoin;
    use cuzk_core::ProofKind;
    use cuzk_filecoin::{CircuitId, SectorSize};

    use super::*;

    const WORK: WorkId = WorkId([7; 32]);

    fn queued(partition: usize, priority: Priority) -> QueuedPartition {
        QueuedPartition {
            id: PartitionId { job: 1, partition },
            job_id: None,
            circuit: CircuitId {
                kind: ProofKind::Porep,
                sector_size: SectorSize::KiB2,
            },
            priority,
        }
    }

    fn offered(table: &Table, id: PartitionId) -> bool {
        table.offer(id, || Ok::<_, Infallible>(WORK)).is_some()
    }

    #[test]
    fn a_partition_that_began_or_ended_is_not_offered() {
        let table = Table::default();
        let [first, second, third] = [0, 1, 2].map(|number| queued(number, Priority::Normal));
        let ids = [first.id, second.id, third.id];
        for queued in [first, second, third] {
            table.add(queued);
        }
        assert_eq!(table.next(Lane::Common), Some(ids[0]));
        assert!(!table.has_offered_all());
        assert_eq!(table.begin(ids[0]), None, "the ledger does not know it");
        assert!(table.wanted(ids[0]).is_none() && !offered(&table, ids[0]));
        assert_eq!(table.remove(ids[1]), None);
        assert!(table.wanted(ids[1]).is_none() && !offered(&table, ids[1]));
        assert!(offered(&table, ids[2]));
        assert!(!offered(&table, ids[2]), "once");
        assert_eq!(table.id(&WORK), Some(ids[2]));
        assert!(table.has(ids[2]) && !table.has(ids[1]));
        table.keep_alone(ids[2]);
        assert!(!table.has(ids[2]));
        assert_eq!(table.remove(ids[2]), Some(WORK));
        assert_eq!(table.id(&WORK), None);
    }

    #[test]
    fn critical_work_is_offered_although_it_began_and_is_never_held() {
        let table = Table::default();
        let critical = queued(0, Priority::Critical);
        let id = critical.id;
        table.add(critical);
        assert_eq!(table.next(Lane::Urgent), Some(id));
        table.begin(id);
        assert!(offered(&table, id));
        table.taken(&WORK, |_| panic!("it is held"));
        let ended = table.end(&WORK).unwrap();
        assert!(ended.id == id && ended.taken.is_some() && ended.proof.is_none());
        assert!(table.end(&WORK).is_none());
    }

    #[test]
    fn a_partition_is_held_while_nodes_have_it_unless_it_began_here() {
        let table = Table::default();
        let common = queued(0, Priority::Normal);
        let id = common.id;
        table.add(common);
        assert!(offered(&table, id));
        let mut calls = Vec::new();
        table.taken(&WORK, |id| calls.push(("held", id)));
        table.returned(&WORK, |id| calls.push(("back", id)));
        assert_eq!(calls, [("held", id), ("back", id)]);
        assert_eq!(table.begin(id), Some(WORK));
        table.taken(&WORK, |_| panic!("it is held"));
        table.returned(&WORK, |_| panic!("it runs"));
    }

    #[test]
    fn a_thread_that_waits_ends_with_the_table() {
        let table = Table::default();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| table.next(Lane::Common));
            table.stop();
            assert_eq!(waits.join_bounded().unwrap(), None);
        });
    }
}
