//! The place where a long computation asks if it may go on.
//!
//! A computation gives way in three ways. It is cancelled, it pauses while urgent work
//! runs, or it is throttled beside work that needs the memory bandwidth. A [`Checkpoint`]
//! carries all three. A computation calls [`Checkpoint::check`] between pieces of work that
//! take a thread a millisecond or a few. It holds no lock there, because other work may run
//! meanwhile on another pool.
//!
//! Invariant: a thread that waits for others (for a lock, for memory, for a value that
//! another thread makes) asks [`Checkpoint::is_cancelled`] and never pauses. It has no
//! core to give up, and it may hold something that the urgent work needs.

use std::fmt;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::heartbeat::Heartbeat;
use crate::pause::Pause;
use crate::sync::{Arc, AtomicBool};
use crate::throttle::Gate;

/// The computation was cancelled. Its output is of no use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// A flag that tells every computation of a job to stop. Clones share the flag.
///
/// A thread may be [paused](Pause) when the flag is raised: call [`Pause::wake`] after
/// [`Cancellation::cancel`].
#[derive(Clone, Debug)]
pub struct Cancellation(Arc<AtomicBool>);

impl Default for Cancellation {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }
}

impl Cancellation {
    /// Raises the flag, for good.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns true once the flag was raised.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Decides if a computation goes on, waits or stops.
///
/// ```
/// use cuzk_memory::{Cancellation, Checkpoint, Stopped};
///
/// let cancellation = Cancellation::default();
/// let checkpoint = Checkpoint::new(&cancellation);
/// assert_eq!(checkpoint.check(), Ok(()));
/// cancellation.cancel();
/// assert_eq!(checkpoint.check(), Err(Stopped));
/// ```
#[derive(Clone, Default)]
pub struct Checkpoint<'a> {
    stop: Stop<'a>,
    pause: Option<Arc<Pause>>,
    /// Shared by the clones, so that its bound holds for all of them together.
    throttle: Option<StdArc<Gate<'a>>>,
    heartbeat: Option<Heartbeat>,
}

/// A checkpoint that lets everything go on, for work that nothing stops.
pub static NEVER_STOP: Checkpoint<'static> = Checkpoint::never();

/// The source of cancellation.
#[derive(Clone, Default)]
enum Stop<'a> {
    #[default]
    Never,
    Flag(Cancellation),
    Asked(StdArc<dyn Fn() -> bool + Send + Sync + 'a>),
}

impl<'a> Checkpoint<'a> {
    /// Returns a checkpoint at which nothing stops, pauses or throttles.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            stop: Stop::Never,
            pause: None,
            throttle: None,
            heartbeat: None,
        }
    }

    /// Returns a checkpoint that stops a computation once `cancellation` is raised.
    #[must_use]
    pub fn new(cancellation: &Cancellation) -> Self {
        Self {
            stop: Stop::Flag(cancellation.clone()),
            ..Self::never()
        }
    }

    /// Returns a checkpoint that stops a computation when `is_cancelled` returns true.
    ///
    /// [`Self::is_cancelled`] calls it once, and so does [`Self::check`], unless a thread
    /// is paused. So tests can count the calls or block in them. It may be called on every
    /// thread that computes.
    #[must_use]
    pub fn asking(is_cancelled: impl Fn() -> bool + Send + Sync + 'a) -> Self {
        Self {
            stop: Stop::Asked(StdArc::new(is_cancelled)),
            ..Self::never()
        }
    }

    /// Has each [`Self::check`] counted as a sign of life.
    #[must_use]
    pub fn counted_by(self, heartbeat: &Heartbeat) -> Self {
        Self {
            heartbeat: Some(heartbeat.clone()),
            ..self
        }
    }

    /// Adds a pause: [`Self::check`] blocks while urgent work runs.
    #[must_use]
    pub fn paused_by(self, pause: &Arc<Pause>) -> Self {
        Self {
            pause: Some(Arc::clone(pause)),
            ..self
        }
    }

    /// Returns this checkpoint without its pause, for work that urgent work may wait for.
    #[must_use]
    pub fn unpaused(&self) -> Self {
        Self {
            pause: None,
            ..self.clone()
        }
    }

    /// Returns this checkpoint with another throttle in place of its own, if it has one.
    /// [`Self::check`] sleeps while `raised` is above zero, in all no longer than
    /// [`wait_max`](crate::wait_max) of `rows` rows. With `None` it never sleeps.
    #[must_use]
    pub fn throttled(&self, raised: Option<&'a AtomicI32>, rows: usize) -> Self {
        match raised {
            Some(_) => self.gated(Gate::new(raised, rows)),
            None => Self {
                throttle: None,
                ..self.clone()
            },
        }
    }

    /// Returns this checkpoint with another throttle in place of its own, if it has one:
    /// [`Self::check`] passes `gate`.
    #[must_use]
    pub fn gated(&self, gate: Gate<'a>) -> Self {
        Self {
            throttle: Some(StdArc::new(gate)),
            ..self.clone()
        }
    }

    /// Returns the wall-clock time in which at least one thread has slept for the throttle so
    /// far. Clones of a checkpoint count together.
    #[must_use]
    pub fn stood_aside(&self) -> Duration {
        let gate = self.throttle.as_ref();
        gate.map_or(Duration::ZERO, |gate| gate.waited())
    }

    /// Returns true if the computation was cancelled. Answers at once: for threads that
    /// wait for others.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        match &self.stop {
            Stop::Never => false,
            Stop::Flag(cancellation) => cancellation.is_cancelled(),
            Stop::Asked(is_cancelled) => is_cancelled(),
        }
    }

    /// Lets the computation go on, after a sleep while the throttle is raised and after a
    /// pause while urgent work runs. Call it on every thread that computes, between pieces
    /// of its work; all threads of a pool may be blocked in here. Costs one load each for
    /// throttle, pause and cancellation where nothing is raised, and one atomic addition
    /// where it is counted.
    ///
    /// # Errors
    /// [`Stopped`] if the computation was cancelled, even while it was paused.
    #[inline]
    pub fn check(&self) -> Result<(), Stopped> {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.beat();
        }
        if let Some(gate) = &self.throttle {
            gate.pass();
        }
        if let Some(pause) = &self.pause {
            pause.pass(|| self.is_cancelled());
        }
        if self.is_cancelled() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Checkpoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoint")
            .field("pause", &self.pause)
            .field("throttle", &self.throttle)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;
    use crate::throttle::wait_max;
    use cuzk_bounded::BoundedJoin;

    #[test]
    fn nothing_stops_what_never_stops() {
        assert!(!NEVER_STOP.is_cancelled());
        assert_eq!(Checkpoint::default().check(), Ok(()));
    }

    #[test]
    fn a_cancelled_computation_stops_whether_it_runs_or_is_paused() {
        let pause = Arc::new(Pause::default());
        let cancellation = Cancellation::default();
        let checkpoint = Checkpoint::new(&cancellation).paused_by(&pause);
        assert_eq!(checkpoint.check(), Ok(()));
        let _urgent = pause.raise();
        assert_eq!(checkpoint.unpaused().check(), Ok(()));
        assert!(!checkpoint.is_cancelled());
        thread::scope(|scope| {
            let paused = scope.spawn(|| checkpoint.check());
            cancellation.cancel();
            pause.wake();
            assert_eq!(paused.join_bounded().unwrap(), Err(Stopped));
        });
        assert_eq!(checkpoint.clone().check(), Err(Stopped));
    }

    #[test]
    fn each_check_asks_once() {
        let asked = AtomicUsize::new(0);
        let checkpoint = Checkpoint::asking(|| asked.fetch_add(1, Ordering::Relaxed) >= 2);
        let checks = [(); 3].map(|()| checkpoint.check());
        assert_eq!(checks, [Ok(()), Ok(()), Err(Stopped)]);
        assert!(checkpoint.is_cancelled());
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn each_check_is_a_sign_of_life_also_of_clones() {
        let heartbeat = Heartbeat::default();
        let checkpoint = Checkpoint::asking(|| true).counted_by(&heartbeat);
        assert_eq!(checkpoint.check(), Err(Stopped));
        assert_eq!(checkpoint.unpaused().check(), Err(Stopped));
        assert_eq!(checkpoint.throttled(None, 1).check(), Err(Stopped));
        assert!(
            checkpoint.is_cancelled(),
            "a thread that waits is no sign of life"
        );
        assert_eq!(heartbeat.count(), 3);
    }

    #[test]
    fn the_clones_of_a_throttled_checkpoint_share_one_bound() {
        const ROWS: usize = 20_000;
        let raised = AtomicI32::new(1);
        let throttled = NEVER_STOP.throttled(Some(&raised), ROWS);
        let clone = throttled.clone();
        throttled.check().unwrap();
        let stood_aside = throttled.stood_aside();
        assert!(stood_aside >= wait_max(ROWS));
        clone.check().unwrap();
        assert_eq!(clone.stood_aside(), stood_aside);
        let free = clone.throttled(None, ROWS);
        free.check().unwrap();
        assert_eq!(free.stood_aside(), Duration::ZERO);
    }
}
