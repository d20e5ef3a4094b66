//! Partitions on devices, so that a device that never answers is noticed, and keeps
//! neither a partition nor the engine's end waiting.
//!
//! Both of a device's calls are watched: the start of a partition and its finish. Not
//! a timer: one thread looks at all of them. The invariants: of the thread that
//! waits for a device and the thread that gave it up exactly one decides what becomes
//! of the partition; memory that a device may still use stays charged; a worker that
//! all devices share is replaced before anybody is told that it is lost.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use cuzk_scheduler::admission::{Reservation, Ticket};
use supraseal_sys::dealloc::trim_heap;

use super::shared::Shared;
use super::task::Task;
use crate::config::Gpus;
use crate::kinds::CircuitId;
use crate::{Error, Result};

/// How many looks are taken in the time that a device is given.
const LOOKS: u32 = 20;

/// Looks are no further apart. If nothing was in use between two that are, the engine is
/// at rest.
const REST: Duration = Duration::from_secs(1);

/// The time that devices are given at an end that does not wait for jobs. A region
/// takes seconds at most.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Watch {
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

/// What is asked of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) station: usize,
    pub(super) part: Part,
    /// Whether the device can fall silent.
    pub(super) is_watched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// By a worker of the device's own.
    Start,
    /// By a worker of all devices.
    Finish,
}

#[derive(Debug)]
struct Running {
    call: Call,
    since: Instant,
    thread: ThreadId,
    ticket: Ticket,
    memory: Reservation<CircuitId>,
    standing: Standing,
}

/// What is still to come of a call. Once its device was given up that is its answer and the
/// partition's being put elsewhere: the later of the two lets go of the memory, so that no
/// worker sees that nothing runs before the partition waits again.
#[derive(Debug)]
enum Standing {
    /// The answer, without which this would be done again.
    Awaited(Box<Task>),
    /// Both.
    GivenUp,
    /// The device answered after all; the partition is not put elsewhere yet.
    Answered,
    /// The partition was put elsewhere, or ended; the device has not answered.
    Settled,
}

/// A call that runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key(u64);

/// A partition whose device was given up.
struct Stalled {
    key: Key,
    call: Call,
    ticket: Ticket,
    again: Task,
}

/// A thread that works for devices, until this is dropped.
pub(super) struct AtDevice<'a>(&'a Watch);

impl Watch {
    pub(super) fn new(gpus: &Gpus) -> Self {
        Self {
            limit: gpus.stall,
            look: (gpus.stall.min(gpus.rest) / LOOKS).clamp(Duration::from_millis(1), REST),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The current thread hands a partition to a device, which may use `memory`
    /// until it answers.
    pub(super) fn begin(
        &self,
        call: Call,
        task: &Task,
        ticket: Ticket,
        memory: Reservation<CircuitId>,
    ) -> Key {
        let mut state = self.lock();
        let key = state.next_key;
        state.next_key += 1;
        let running = Running {
            call,
            since: Instant::now(),
            thread: thread::current().id(),
            ticket,
            memory,
            standing: Standing::Awaited(Box::new(task.again())),
        };
        state.running.insert(key, running);
        Key(key)
    }

    /// The device answered with `done`, which is handed on with its memory; unless it was
    /// given up before. Then nobody wants it, and it is let go of before its memory is
    /// free, and before its thread is waited for again: it may hold vectors, or wait for
    /// its device.
    pub(super) fn answered<T>(
        &self,
        Key(key): Key,
        done: T,
    ) -> Option<(T, Reservation<CircuitId>)> {
        let mut state = self.lock();
        let is_awaited = |call: &Running| matches!(call.standing, Standing::Awaited(_));
        if state.running.get(&key).is_some_and(is_awaited) {
            let call = state.running.remove(&key)?;
            return Some((done, call.memory));
        }
        drop(state);
        // What was given up stays so.
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

    /// The partition was put elsewhere: nobody waits for the device any more.
    fn strand(&self, Key(key): Key) {
        let mut state = self.lock();
        let Some(call) = state.running.get_mut(&key) else {
            return;
        };
        if let Standing::Answered = call.standing {
            state.running.remove(&key);
        } else {
            call.standing = Standing::Settled;
            call.memory.strand();
        }
    }

    /// From now on no device is given more than [`GRACE`].
    pub(super) fn hurry(&self) {
        self.lock().hurried.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Nobody waits for the thread of this call any more, unless the device has
    /// answered meanwhile.
    fn lose(&self, Key(key): Key) {
        let mut state = self.lock();
        let State { running, lost, .. } = &mut *state;
        let call = running.get(&key);
        let call = call.filter(|call| !matches!(call.standing, Standing::Answered));
        lost.extend(call.map(|call| call.thread));
        drop(state);
        self.changed.notify_all();
    }

    /// The current thread works for devices.
    pub(super) fn enter(&self) -> AtDevice<'_> {
        AtDevice(self)
    }

    /// Waits until a worker has ended; false if it waits for a device that
    /// was given up.
    pub(super) fn has_ended(&self, worker: ThreadId) -> bool {
        let undecided =
            |state: &mut State| !state.gone.contains(&worker) && !state.lost.contains(&worker);
        let state = self.changed.wait_while(self.lock(), undecided);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.gone.contains(&worker)
    }

    /// Waits for the next look; whether there is one.
    fn next_look(&self) -> bool {
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

    /// The calls that have taken too long, each told once: from now on their devices
    /// are given up.
    fn stalled(&self) -> Vec<Stalled> {
        let mut state = self.lock();
        let State {
            running, hurried, ..
        } = &mut *state;
        let no_grace = hurried.is_some_and(|since| since.elapsed() > GRACE);
        let late = |running: &Running| {
            running.call.is_watched && (no_grace || running.since.elapsed() > self.limit)
        };
        let late = running.iter_mut().filter(|(_, running)| late(running));
        let stalled = late.filter_map(|(key, running)| {
            let given_up = |standing: &mut _| std::mem::replace(standing, Standing::GivenUp);
            let is_awaited = matches!(running.standing, Standing::Awaited(_));
            let standing = is_awaited.then(|| given_up(&mut running.standing));
            let Some(Standing::Awaited(again)) = standing else {
                return None;
            };
            Some(Stalled {
                key: Key(*key),
                call: running.call,
                ticket: running.ticket,
                again: *again,
            })
        });
        stalled.collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stalled {
    /// Whether the thread that waits is one that all devices share.
    fn is_of_all(&self) -> bool {
        self.call.part == Part::Finish
    }
}

impl Drop for AtDevice<'_> {
    fn drop(&mut self) {
        self.0.lock().gone.insert(thread::current().id());
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// `replace` begins a worker that takes the place of a lost one.
    pub(super) fn watch_until_closed(&self, replace: impl Fn(usize) -> Result<()>) {
        let (mut lost, mut replaced) = (0, 0);
        let mut looked = Instant::now();
        while self.watch.next_look() {
            let stalled = self.watch.stalled();
            lost += stalled.iter().filter(|stalled| stalled.is_of_all()).count();
            while replaced < lost && self.is_replaced(&replace, replaced) {
                replaced += 1;
            }
            for stalled in stalled {
                let key = stalled.key;
                self.watch.lose(key);
                let state = Arc::clone(&stalled.again.state);
                self.guarded("watch", &state, || self.has_stalled(stalled));
                self.watch.strand(key);
            }
            if looked.elapsed() >= REST {
                looked = Instant::now();
                if self.buffers.give_up_at_rest() {
                    trim_heap();
                }
            }
            // What only a rested device can take may have waited for its rest.
            if self.stations.any_is_rested() {
                self.ready.wake();
            }
        }
    }

    /// Whether the next replacement began; if not it is tried again at the next look.
    fn is_replaced(&self, replace: &impl Fn(usize) -> Result<()>, replaced: usize) -> bool {
        let begun = replace(self.config.pipeline.finish_workers + replaced);
        if let Err(error) = &begun {
            tracing::error!(%error, "a finish worker is lost to a device that does not answer");
        }
        begun.is_ok()
    }

    fn has_stalled(&self, stalled: Stalled) {
        let Stalled {
            call: Call { station, .. },
            ticket,
            again,
            ..
        } = stalled;
        let error = Error::Stalled {
            partition: again.partition,
            after_s: self.watch.limit.as_secs(),
        };
        self.give_up(station, &error.to_string());
        self.retry(station, again, ticket, error);
    }
}

#[cfg(test)]
mod tests {
    use cuzk_scheduler::admission::{Admission, Entrance, Lane, Limits, Need, Turn};
    use cuzk_scheduler::priority::{Priority, Rank};

    use super::*;
    use crate::config::Config;
    use crate::job::{JobState, NewJob};
    use crate::kinds::{ProofKind, SectorSize};

    const BYTES: u64 = 7;

    /// A partition that a device does not answer for, and what its memory is charged to.
    fn given_up(watch: &Watch) -> (Stalled, Admission<Task, CircuitId>) {
        let now = Instant::now();
        let (priority, patience) = (Priority::Normal, Config::default().jobs.patience);
        let circuit = CircuitId {
            kind: ProofKind::Porep,
            sector_size: SectorSize::KiB2,
        };
        let job = Arc::new(JobState::new(NewJob {
            number: 0,
            id: None,
            circuit,
            partitions: 1,
            priority,
            rank: Rank::new(priority, now, 0, patience),
            accepted: now,
            deadline: None,
            record: None,
        }));
        let admission = Admission::new(Limits {
            capacity: 1,
            total_bytes: BYTES,
            critical_reserve_bytes: 0,
            patience,
        });
        let item = (Task::new(job, 0), Need::own(BYTES));
        let lane = Lane::Common;
        let items = vec![item];
        let submitted = admission.submit(Entrance::IfRoom, lane, priority, now, items);
        submitted.unwrap();
        let Some(Turn::Admitted {
            item,
            ticket,
            memory,
            ..
        }) = admission.next(lane)
        else {
            panic!("there is room");
        };
        let call = Call {
            station: 0,
            part: Part::Finish,
            is_watched: true,
        };
        watch.begin(call, &item, ticket, memory);
        let stalled = loop {
            if let Some(stalled) = watch.stalled().pop() {
                break stalled;
            }
        };
        (stalled, admission)
    }

    fn impatient() -> Watch {
        let stall = Duration::ZERO;
        Watch::new(&Gpus {
            stall,
            ..Config::default().gpus
        })
    }

    /// A worker that saw that nothing runs or waits would end before the partition is
    /// put back.
    #[test]
    fn a_late_answer_leaves_the_partition_running_until_it_is_put_elsewhere() {
        let watch = impatient();
        let (stalled, admission) = given_up(&watch);
        assert!(watch.answered(stalled.key, ()).is_none());
        watch.lose(stalled.key);
        assert!(watch.lock().lost.is_empty(), "its worker works on");
        assert_eq!(admission.usage().running, 1);
        watch.strand(stalled.key);
        let usage = admission.usage();
        assert_eq!((usage.running, usage.used_bytes), (0, 0));
    }

    #[test]
    fn memory_of_a_silent_device_stays_charged_until_it_answers() {
        let watch = impatient();
        let (stalled, admission) = given_up(&watch);
        watch.lose(stalled.key);
        assert_eq!(watch.lock().lost.len(), 1);
        watch.strand(stalled.key);
        let usage = admission.usage();
        assert_eq!((usage.running, usage.used_bytes), (0, BYTES));
        assert!(watch.answered(stalled.key, ()).is_none());
        assert_eq!(admission.usage().used_bytes, 0);
        assert!(watch.lock().lost.is_empty() && watch.lock().running.is_empty());
    }

    /// Looks at its end at what there is, as vectors have their memory until then.
    struct AtEnd<F: FnMut()>(F);

    impl<F: FnMut()> Drop for AtEnd<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    /// The partition may be put elsewhere before the device answers, and while what it
    /// answered with is let go of.
    #[test]
    fn memory_stays_charged_until_what_came_too_late_is_gone() {
        for settled_before in [true, false] {
            let watch = impatient();
            let (stalled, admission) = given_up(&watch);
            let settle = || {
                watch.lose(stalled.key);
                watch.strand(stalled.key);
            };
            let mut seen = None;
            if settled_before {
                settle();
            }
            let done = AtEnd(|| {
                if !settled_before {
                    settle();
                }
                seen = Some((admission.usage().used_bytes, watch.lock().lost.len()));
            });
            assert!(watch.answered(stalled.key, done).is_none());
            assert_eq!(seen, Some((BYTES, 1)), "{settled_before}");
            assert_eq!(admission.usage().used_bytes, 0);
            assert!(watch.lock().lost.is_empty() && watch.lock().running.is_empty());
        }
    }
}
