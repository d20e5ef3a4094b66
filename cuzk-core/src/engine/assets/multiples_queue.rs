//! Circuits whose multiples of the parameters' points are to be made in the background:
//! because the kind is configured to have them, or because the file beside the
//! parameters is damaged or of other parameters.
//!
//! Not the work: that is the multiples maker's, a thread of its own. The invariants: a
//! circuit that waits for memory keeps no other waiting; the refusal of a circuit for
//! want of memory is reported once.

use std::collections::{HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuzk_filecoin::CircuitId;
use cuzk_memory::Cancellation;

/// How long the maker waits before it asks again for memory.
const MEMORY_POLL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(in crate::engine) struct MultiplesQueue {
    /// The circuit in work is in front.
    asked: Mutex<VecDeque<CircuitId>>,
    changed: Condvar,
    closed: Cancellation,
    /// Circuits for which there is no room, and whose refusal was reported.
    without_room: Mutex<HashSet<CircuitId>>,
}

impl MultiplesQueue {
    /// Queues a circuit, unless it is queued or in work, or the queue is closed.
    pub(in crate::engine) fn ask(&self, id: CircuitId) {
        let mut asked = self.lock();
        if !asked.contains(&id) && !self.is_closed() {
            asked.push_back(id);
            self.changed.notify_all();
        }
    }

    /// Returns the circuits that are queued or in work.
    pub(in crate::engine) fn asked(&self) -> Vec<String> {
        self.lock().iter().map(CircuitId::to_string).collect()
    }

    /// Waits for a circuit, and returns it; none once the queue is closed.
    pub(in crate::engine) fn next(&self) -> Option<CircuitId> {
        let mut asked = self.lock();
        while asked.is_empty() && !self.is_closed() {
            let woken = self.changed.wait(asked);
            asked = woken.unwrap_or_else(PoisonError::into_inner);
        }
        asked.front().copied().filter(|_| !self.is_closed())
    }

    /// Takes out the circuit in work.
    pub(in crate::engine) fn done(&self) {
        self.lock().pop_front();
    }

    /// Puts the circuit in work behind the others, and waits a while.
    pub(in crate::engine) fn postpone(&self) {
        let mut asked = self.lock();
        if let Some(id) = asked.pop_front() {
            asked.push_back(id);
        }
        if !self.is_closed() {
            drop(self.changed.wait_timeout(asked, MEMORY_POLL));
        }
    }

    /// Notes that there is no room for a circuit. Returns true if that is new.
    pub(in crate::engine) fn has_no_room(&self, id: CircuitId) -> bool {
        self.without_room().insert(id)
    }

    /// Notes that there is room for a circuit.
    pub(in crate::engine) fn has_room(&self, id: CircuitId) {
        self.without_room().remove(&id);
    }

    fn without_room(&self) -> MutexGuard<'_, HashSet<CircuitId>> {
        let without_room = self.without_room.lock();
        without_room.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the flag that is raised when the queue is closed.
    pub(in crate::engine) fn cancellation(&self) -> &Cancellation {
        &self.closed
    }

    pub(in crate::engine) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    // Set under the lock, so that no thread begins to wait after the last wake-up.
    pub(in crate::engine) fn close(&self) {
        let asked = self.lock();
        self.closed.cancel();
        drop(asked);
        self.changed.notify_all();
    }

    // Every change under the lock leaves a queue.
    fn lock(&self) -> MutexGuard<'_, VecDeque<CircuitId>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use cuzk_filecoin::{ProofKind, SectorSize};

    #[test]
    fn a_circuit_that_waits_for_memory_lets_others_come_first() {
        let queue = MultiplesQueue::default();
        let [first, second] = [ProofKind::WinningPost, ProofKind::WindowPost].map(|kind| {
            let sector_size = SectorSize::KiB2;
            CircuitId { kind, sector_size }
        });
        for id in [first, first, second] {
            queue.ask(id);
        }
        assert_eq!(queue.next(), Some(first));
        let began = Instant::now();
        queue.postpone();
        assert!(began.elapsed() >= MEMORY_POLL, "it asks again too soon");
        assert_eq!(queue.next(), Some(second));
        queue.done();
        assert_eq!(queue.next(), Some(first));
        queue.close();
        queue.postpone();
        assert_eq!(queue.next(), None);
        let asked = queue.asked();
        queue.ask(second);
        assert_eq!(queue.asked(), asked);
    }

    #[test]
    fn a_lack_of_room_is_new_once() {
        let queue = MultiplesQueue::default();
        let id = CircuitId {
            kind: ProofKind::WindowPost,
            sector_size: SectorSize::KiB2,
        };
        let told = [queue.has_no_room(id), queue.has_no_room(id)];
        assert_eq!(told, [true, false]);
        queue.has_room(id);
        assert!(queue.has_no_room(id));
    }
}
