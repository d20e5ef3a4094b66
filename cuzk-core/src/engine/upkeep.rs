//! Multiples of bases that are made in the background: because a kind of proof is to
//! have them, or because the file beside the parameters is of others, or damaged.
//!
//! Not a stage: no partition waits for it. It has one thread of its own, stands still
//! while critical work runs, and shares the cores with all other work for the half
//! minute that it takes. The invariants: its memory is charged before it is used, and
//! who waits for it keeps nobody else from it; what failed is not tried again until
//! somebody puts another file there; it ends at its next chunk when the engine does, and
//! leaves the file as it was.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cuzk_kernels::{Checkpoint, Context};
use cuzk_scheduler::admission::Need;
use cuzk_scheduler::pause::Pause;
use cuzk_scheduler::priority::Priority;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::lanes::unwinding_is_an_error;
use super::shared::{Shared, cannot_start};
use crate::kinds::CircuitId;
use crate::params::{ParamsError, writing_bytes};
use crate::{Error, Result};

/// How long it waits before it looks again whether there is memory.
const LOOK: Duration = Duration::from_secs(1);

/// What there is to be made.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    /// Circuits whose multiples are to be looked at, the one in work in front.
    asked: Mutex<VecDeque<CircuitId>>,
    changed: Condvar,
    closed: AtomicBool,
    /// Those for which there is no room, and of which that was told.
    without_room: Mutex<HashSet<CircuitId>>,
}

/// What came of looking at a circuit's multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    /// They are as good as they get.
    Done,
    /// There is no memory at this moment.
    NoMemory,
}

/// Stands still for critical work, and stops with the engine.
struct UpkeepCheckpoint<'a> {
    upkeep: &'a Upkeep,
    pause: &'a Pause,
}

impl Checkpoint for UpkeepCheckpoint<'_> {
    fn pass(&self) -> bool {
        self.pause.pass(|| self.upkeep.is_closed());
        !self.upkeep.is_closed()
    }
}

impl Upkeep {
    /// Has the multiples of a circuit's bases looked at, and made if need be, unless
    /// that is under way.
    pub(super) fn ask(&self, id: CircuitId) {
        let mut asked = self.lock();
        if !asked.contains(&id) {
            asked.push_back(id);
            self.changed.notify_all();
        }
    }

    /// The circuits that were asked for and are not done with.
    pub(super) fn asked(&self) -> Vec<String> {
        self.lock().iter().map(CircuitId::to_string).collect()
    }

    /// Waits for a circuit that was asked for; none once this is closed.
    fn next(&self) -> Option<CircuitId> {
        let mut asked = self.lock();
        while asked.is_empty() && !self.is_closed() {
            let woken = self.changed.wait(asked);
            asked = woken.unwrap_or_else(PoisonError::into_inner);
        }
        asked.front().copied().filter(|_| !self.is_closed())
    }

    /// The one in front is done with.
    fn done(&self) {
        self.lock().pop_front();
    }

    /// Has the others come before the one in front, after a while.
    fn postpone(&self) {
        let mut asked = self.lock();
        if let Some(id) = asked.pop_front() {
            asked.push_back(id);
        }
        if !self.is_closed() {
            drop(self.changed.wait_timeout(asked, LOOK));
        }
    }

    /// There is no room for a circuit's. Whether that is new.
    fn has_no_room(&self, id: CircuitId) -> bool {
        self.without_room().insert(id)
    }

    fn has_room(&self, id: CircuitId) {
        self.without_room().remove(&id);
    }

    fn without_room(&self) -> MutexGuard<'_, HashSet<CircuitId>> {
        let without_room = self.without_room.lock();
        without_room.unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    // Set under the lock, so that nobody begins to wait after the last wake-up.
    fn close(&self) {
        let asked = self.lock();
        self.closed.store(true, Ordering::Relaxed);
        drop(asked);
        self.changed.notify_all();
    }

    // Every change under the lock leaves a queue.
    fn lock(&self) -> MutexGuard<'_, VecDeque<CircuitId>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The upkeep's thread.
    pub(super) fn keep_up_until_closed(&self) {
        while let Some(id) = self.upkeep.next() {
            match unwinding_is_an_error("upkeep", || self.look_at_multiples(id)) {
                Ok(Looked::NoMemory) => {
                    self.upkeep.postpone();
                    continue;
                }
                Err(error) if !self.upkeep.is_closed() => tracing::warn!(
                    circuit = %id,
                    %error,
                    "the multiples of its parameters' points could not be made; proofs take \
                     longer without them: take the kind out of srs.multiples for no further \
                     attempt, or make them with `cuzk params prepare`"
                ),
                Ok(Looked::Done) | Err(_) => {}
            }
            self.upkeep.done();
        }
    }

    /// Ends it at its next chunk.
    pub(super) fn end_upkeep(&self) {
        self.upkeep.close();
        self.pause.wake();
    }

    /// Looks at a circuit's multiples once there is memory for making them.
    fn look_at_multiples(&self, id: CircuitId) -> Result<Looked> {
        let Some(need) = self.need_for_multiples(id) else {
            return Ok(Looked::Done);
        };
        match self.admission.check(Priority::Low, &need) {
            Ok(()) => self.upkeep.has_room(id),
            Err(over) if self.upkeep.has_no_room(id) => return Err(over.into()),
            Err(_) => return Ok(Looked::Done),
        }
        let Some(_memory) = self.admission.reserve(&need) else {
            return Ok(Looked::NoMemory);
        };
        // What is kept from partitions gives way, as it does for them.
        let waits = || !self.upkeep.is_closed();
        self.buffers.make_room(&[], self.free_bytes(), &waits);
        self.renew_multiples(id)?;
        Ok(Looked::Done)
    }

    /// Makes them if need be, with the memory that was charged.
    fn renew_multiples(&self, id: CircuitId) -> Result<()> {
        let leave = || self.upkeep.is_closed().then_some(Error::ShuttingDown);
        let checkpoint = UpkeepCheckpoint {
            upkeep: &self.upkeep,
            pause: &self.pause,
        };
        let circuit = self.circuit(id, &checkpoint, &leave)?;
        let params = self.params(id, &circuit, &leave)?;
        let context = Context {
            isa: self.config.cpu.isa,
            checkpoint: &checkpoint,
            memory: &*self.buffers,
        };
        let (params, threads) = (params.mapped(), self.config.synthesis.threads);
        let started = Instant::now();
        let wanted = self.wants_multiples(id);
        let renew = || params.renew_multiples(&circuit, context, threads, wanted);
        match one_thread()?.install(renew) {
            Ok(true) => tracing::info!(
                circuit = %id,
                elapsed_s = started.elapsed().as_secs_f64(),
                "multiples of the parameters' points were made; sums use them from now on"
            ),
            Ok(false) | Err(ParamsError::Stopped) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Memory for the work, and for the circuit with its files; none if nobody has that
    /// any more.
    fn need_for_multiples(&self, id: CircuitId) -> Option<Need<CircuitId>> {
        let circuit = self.circuits.get(&id)?;
        Some(Need {
            own_bytes: writing_bytes(&circuit, self.config.cpu.isa).unwrap_or(0),
            // Of its files as they are now.
            shared: Some(self.needs.shared(id)?),
        })
    }
}

/// A pool for work that is in nobody's way.
fn one_thread() -> Result<ThreadPool> {
    let builder = ThreadPoolBuilder::new().num_threads(1);
    let named = builder.thread_name(|_| "cuzk-upkeep-0".to_owned());
    named.build().map_err(cannot_start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{ProofKind, SectorSize};

    #[test]
    fn who_waits_for_memory_lets_others_come_first() {
        let upkeep = Upkeep::default();
        let [first, second] = [ProofKind::WinningPost, ProofKind::WindowPost].map(|kind| {
            let sector_size = SectorSize::KiB2;
            CircuitId { kind, sector_size }
        });
        for id in [first, first, second] {
            upkeep.ask(id);
        }
        assert_eq!(upkeep.next(), Some(first));
        upkeep.postpone();
        assert_eq!(upkeep.next(), Some(second));
        upkeep.done();
        assert_eq!(upkeep.next(), Some(first));
        upkeep.close();
        upkeep.postpone();
        assert_eq!(upkeep.next(), None);
    }

    #[test]
    fn that_there_is_no_room_is_new_once() {
        let upkeep = Upkeep::default();
        let id = CircuitId {
            kind: ProofKind::WindowPost,
            sector_size: SectorSize::KiB2,
        };
        let told = [upkeep.has_no_room(id), upkeep.has_no_room(id)];
        assert_eq!(told, [true, false]);
        upkeep.has_room(id);
        assert!(upkeep.has_no_room(id));
    }
}
