//! Calls of devices that run, so that a device that never answers is noticed, and
//! keeps neither a partition nor the engine's end waiting.
//!
//! Both calls of a device are watched: the start of a partition and its finish. Not a
//! timer: one thread looks at all calls. The invariants: of the thread that waits for a
//! device and the thread that gave it up exactly one decides what becomes of the
//! partition; memory that a device may still use stays charged; a worker that all
//! devices share is replaced before anyone learns that it is lost.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use cuzk_scheduler::admission::{Reservation, Ticket};
use cuzk_scheduler::clock;

use crate::config::Gpus;
use crate::engine::assets::AssetKey;
use crate::engine::attempt::Attempt;
#[cfg(test)]
use crate::planted::{Plant, is_planted};

/// The number of looks in the time that a device is given.
const LOOKS: u32 = 20;

/// The longest time between two looks. The engine is at rest if it used no memory for
/// so long.
pub(in crate::engine) const REST: Duration = Duration::from_secs(1);

/// The time that devices are given at a shutdown that does not wait for jobs. A device
/// region takes seconds at most.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(in crate::engine) struct Watchdog {
    limit: Duration,
    look: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_key: u64,
    running: HashMap<u64, Running>,
    /// The workers that wait for a device that was given up.
    lost: HashSet<ThreadId>,
    /// The workers that have ended.
    gone: HashSet<ThreadId>,
    hurried: Option<Instant>,
    closed: bool,
}

/// One call of a device.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct DeviceCall {
    pub(in crate::engine) device: usize,
    pub(in crate::engine) part: CallPart,
    /// True if the device can stop answering.
    pub(in crate::engine) is_watched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum CallPart {
    /// The device region, called by a worker of this device.
    Start,
    /// The rest, called by a worker that all devices share.
    Finish,
}

#[derive(Debug)]
struct Running {
    call: DeviceCall,
    since: Instant,
    thread: ThreadId,
    ticket: Ticket,
    memory: Reservation<AssetKey>,
    standing: Standing,
}

/// What a call still waits for. A device that was given up owes its answer, and its
/// partition has to be put elsewhere. The later of the two gives the memory back, so that
/// no worker sees an idle engine before the partition waits again.
#[derive(Debug)]
enum Standing {
    /// The answer. Without it this attempt is made.
    Awaited(Box<Attempt>),
    /// The answer and the partition's new place.
    GivenUp,
    /// The partition's new place: the device answered after all.
    Answered,
    /// The answer: the partition was put elsewhere, or ended.
    Settled,
}

/// The number of a call that runs.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct CallKey(u64);

/// A partition whose device was given up.
pub(in crate::engine) struct StalledCall {
    pub(in crate::engine) key: CallKey,
    pub(in crate::engine) call: DeviceCall,
    pub(in crate::engine) ticket: Ticket,
    /// The attempt to make elsewhere.
    pub(in crate::engine) again: Attempt,
}

/// A thread that works for devices, until this is dropped.
pub(in crate::engine) struct DeviceThread<'a>(&'a Watchdog);

impl Watchdog {
    pub(super) fn new(gpus: &Gpus) -> Self {
        Self {
            limit: gpus.stall,
            look: (gpus.stall.min(gpus.rest) / LOOKS).clamp(Duration::from_millis(1), REST),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Notes that the current thread calls a device with a partition. The device may use
    /// `memory` until it answers.
    pub(in crate::engine) fn begin(
        &self,
        call: DeviceCall,
        attempt: &Attempt,
        ticket: Ticket,
        memory: Reservation<AssetKey>,
    ) -> CallKey {
        let mut state = self.lock();
        let key = state.next_key;
        state.next_key += 1;
        let running = Running {
            call,
            since: clock::now(),
            thread: thread::current().id(),
            ticket,
            memory,
            standing: Standing::Awaited(Box::new(attempt.again())),
        };
        state.running.insert(key, running);
        CallKey(key)
    }

    /// Takes the device's answer `done`, and returns it with its memory. An answer of a
    /// device that was given up is dropped: before its memory is free and before its
    /// thread is waited for again, since it may hold vectors, or wait for its device.
    pub(in crate::engine) fn answered<T>(
        &self,
        CallKey(key): CallKey,
        done: T,
    ) -> Option<(T, Reservation<AssetKey>)> {
        let mut state = self.lock();
        let is_awaited = |call: &Running| matches!(call.standing, Standing::Awaited(_));
        if state.running.get(&key).is_some_and(is_awaited) {
            let call = state.running.remove(&key)?;
            return Some((done, call.memory));
        }
        #[cfg(test)]
        if is_planted(Plant::LateAnswerCounts) {
            let call = state.running.remove(&key)?;
            return Some((done, call.memory));
        }
        drop(state);
        // A call that was given up stays so.
        drop(done);
        self.answered_late(key);
        None
    }

    fn answered_late(&self, key: u64) {
        let mut state = self.lock();
        let Some(call) = state.running.remove(&key) else {
            return;
        };
        state.lost.remove(&call.thread);
        if let Standing::GivenUp = call.standing {
            let standing = Standing::Answered;
            state.running.insert(key, Running { standing, ..call });
        }
    }

    /// Notes that the partition was put elsewhere: nothing waits for the device any more.
    pub(in crate::engine) fn abandon(&self, CallKey(key): CallKey) {
        let mut state = self.lock();
        let Some(call) = state.running.get_mut(&key) else {
            return;
        };
        if let Standing::Answered = call.standing {
            state.running.remove(&key);
        } else {
            call.standing = Standing::Settled;
            call.memory.abandon();
        }
    }

    /// Returns true if the device's answer to a call is still awaited.
    #[cfg(test)]
    pub(in crate::engine) fn is_awaited(&self, CallKey(key): CallKey) -> bool {
        let state = self.lock();
        let call = state.running.get(&key);
        call.is_some_and(|call| matches!(call.standing, Standing::Awaited(_)))
    }

    /// Gives every device at most [`GRACE`] from now on.
    pub(in crate::engine) fn hurry(&self) {
        self.lock().hurried.get_or_insert_with(clock::now);
        self.changed.notify_all();
    }

    pub(in crate::engine) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Counts the thread of this call as lost, unless the device has answered meanwhile.
    pub(in crate::engine) fn lose(&self, CallKey(key): CallKey) {
        let mut state = self.lock();
        let State { running, lost, .. } = &mut *state;
        let call = running.get(&key);
        let call = call.filter(|call| !matches!(call.standing, Standing::Answered));
        lost.extend(call.map(|call| call.thread));
        drop(state);
        self.changed.notify_all();
    }

    /// Notes that the current thread works for devices.
    pub(in crate::engine) fn enter(&self) -> DeviceThread<'_> {
        DeviceThread(self)
    }

    /// Waits until a worker has ended. Returns false if it waits for a device that was
    /// given up.
    pub(in crate::engine) fn has_ended(&self, worker: ThreadId) -> bool {
        let undecided =
            |state: &mut State| !state.gone.contains(&worker) && !state.lost.contains(&worker);
        let state = self.changed.wait_while(self.lock(), undecided);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.gone.contains(&worker)
    }

    /// Waits until it is time to look at the calls. Returns false once this is closed.
    pub(in crate::engine) fn next_look(&self) -> bool {
        let state = self.lock();
        let is_hurried = state.hurried.is_some();
        let look = if is_hurried {
            self.look.min(GRACE / LOOKS)
        } else {
            self.look
        };
        let (state, _) = self
            .changed
            .wait_timeout_while(state, look, |state| {
                !state.closed && state.hurried.is_some() == is_hurried
            })
            .unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    /// Returns the calls that have taken too long, each once, the oldest first. From now on
    /// their devices are given up.
    pub(in crate::engine) fn stalled(&self) -> Vec<StalledCall> {
        let mut state = self.lock();
        let State {
            running, hurried, ..
        } = &mut *state;
        let no_grace = hurried.is_some_and(|since| clock::since(since) > GRACE);
        let late = |running: &Running| {
            running.call.is_watched && (no_grace || clock::since(running.since) > self.limit)
        };
        let late = running.iter_mut().filter(|(_, running)| late(running));
        let stalled = late.filter_map(|(key, running)| {
            let given_up = |standing: &mut _| std::mem::replace(standing, Standing::GivenUp);
            let is_awaited = matches!(running.standing, Standing::Awaited(_));
            let standing = is_awaited.then(|| given_up(&mut running.standing));
            let Some(Standing::Awaited(again)) = standing else {
                return None;
            };
            Some(StalledCall {
                key: CallKey(*key),
                call: running.call,
                ticket: running.ticket,
                again: *again,
            })
        });
        let mut stalled: Vec<_> = stalled.collect();
        stalled.sort_unstable_by_key(|call| call.key.0);
        stalled
    }

    /// Returns true if a device computes and has time left to answer.
    pub(in crate::engine) fn any_computes(&self) -> bool {
        let state = self.lock();
        state.running.values().any(|running| {
            let is_awaited = matches!(running.standing, Standing::Awaited(_));
            running.call.is_watched && is_awaited && clock::since(running.since) <= self.limit
        })
    }

    /// The time that a device is given to answer.
    pub(in crate::engine) fn limit(&self) -> Duration {
        self.limit
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StalledCall {
    /// Returns true if the thread that waits is one that all devices share.
    pub(in crate::engine) fn is_of_all(&self) -> bool {
        self.call.part == CallPart::Finish
    }
}

impl Drop for DeviceThread<'_> {
    fn drop(&mut self) {
        self.0.lock().gone.insert(thread::current().id());
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
