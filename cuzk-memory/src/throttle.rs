//! The throttle: work that stands aside for a neighbour that needs the memory bandwidth.
//!
//! A throttle is a count. Work that needs the memory system to itself (the MSM in G2 beside
//! a device that proves) raises it by one while it runs. Evaluation looks at the count now
//! and then. While it is above zero, the thread that looks *sleeps*. A yield to another
//! runnable thread would free no bandwidth when the run queue is empty. Rayon's own yield
//! would run the next chunk of the same work.
//!
//! A gate can also yield instead ([`ThrottleManner::Yield`]), so that the two can be compared.
//!
//! Invariant: a count that never falls again slows one call by at most [`wait_max`] in all,
//! however many threads and checks the call has.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI32, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// The longest time that one call stands aside: the wall-clock time in which at least one
/// of its threads slept.
///
/// The work that raises the count takes about half a second with 32 threads at full size. A
/// call that has waited that long has let one such run pass. A call that waited for every
/// further run would starve the device of witnesses.
pub const WAIT_MAX: Duration = Duration::from_millis(500);

/// The time that each row adds to [`wait_max`]. On two cores the MSM in G2 of a circuit
/// takes 0.07 µs a row (PoRep) to 3 µs (PoSt). Its evaluation takes 0.01 to 0.17 µs a row.
const WAIT_PER_ROW: Duration = Duration::from_micros(1);

/// Returns the longest time that a call over `rows` rows stands aside. It is about as long
/// as the MSM of a circuit of that size may take, and at most [`WAIT_MAX`]. A small circuit
/// moves little memory, and must not be held up by the MSM of a large one.
#[must_use]
pub fn wait_max(rows: usize) -> Duration {
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    WAIT_PER_ROW.saturating_mul(rows).min(WAIT_MAX)
}

/// One sleep. It is short compared with the work that raises the count, and long compared
/// with a wake-up, which takes time from that work. On two cores, the MSM in G2 took 6 to
/// 17 % longer beside sleeps of 100 µs than alone. Beside sleeps of this length it took 3
/// to 4 % longer.
const NAP: Duration = Duration::from_micros(500);

/// The way in which a thread gives way to the work that raised a throttle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThrottleManner {
    /// It sleeps until the count has fallen, at most [`wait_max`] a call.
    #[default]
    Sleep,
    /// It yields its core once. It goes on at once if no other thread wants the core.
    Yield,
}

impl ThrottleManner {
    /// All manners.
    pub const ALL: [Self; 2] = [Self::Sleep, Self::Yield];

    /// Returns the name that the configuration uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Yield => "yield",
        }
    }
}

/// One call's view of a throttle. Each thread of the call passes it between pieces of its
/// work.
#[derive(Debug)]
pub struct Gate<'a> {
    raised: Option<&'a AtomicI32>,
    wait_max: Duration,
    waited: Mutex<Waited>,
    yields: Option<Yields>,
}

/// The passes of a gate that yields.
#[derive(Debug)]
struct Yields {
    /// Every so many passes look at the count. It is not zero.
    every: usize,
    passes: AtomicUsize,
    yielded: AtomicUsize,
}

impl Yields {
    /// Returns true if this pass looks at the count.
    fn looks(&self) -> bool {
        let pass = self.passes.fetch_add(1, Ordering::Relaxed);
        pass.is_multiple_of(self.every)
    }
}

/// The wall-clock time in which at least one thread slept.
#[derive(Debug, Default)]
struct Waited {
    total: Duration,
    until: Option<Instant>,
}

impl Waited {
    /// Adds the part of `start..end` that no earlier sleep covered, and returns the total.
    fn add(&mut self, start: Instant, end: Instant) -> Duration {
        let from = self.until.map_or(start, |until| until.max(start));
        self.total += end.saturating_duration_since(from);
        self.until = Some(self.until.map_or(end, |until| until.max(end)));
        self.total
    }
}

impl<'a> Gate<'a> {
    /// Returns a gate that waits no longer than [`wait_max`] of `rows` rows. With `None` it
    /// never waits.
    #[must_use]
    pub fn new(throttle: Option<&'a AtomicI32>, rows: usize) -> Self {
        Self::with_bound(throttle, wait_max(rows))
    }

    fn with_bound(raised: Option<&'a AtomicI32>, wait_max: Duration) -> Self {
        Gate {
            raised,
            wait_max,
            waited: Mutex::default(),
            yields: None,
        }
    }

    /// Returns a gate that yields instead of sleeping. The first of every `every` passes
    /// looks at the count. With `None` the gate never yields.
    #[must_use]
    pub fn yielding(throttle: Option<&'a AtomicI32>, every: usize) -> Self {
        Gate {
            yields: Some(Yields {
                every: every.max(1),
                passes: AtomicUsize::new(0),
                yielded: AtomicUsize::new(0),
            }),
            ..Self::with_bound(throttle, Duration::ZERO)
        }
    }

    /// Returns how often threads have yielded in this gate.
    #[must_use]
    pub fn yielded(&self) -> usize {
        let yields = self.yields.as_ref();
        yields.map_or(0, |yields| yields.yielded.load(Ordering::Relaxed))
    }

    /// Sleeps while the count is above zero and the call's bound is not used up. Costs one
    /// atomic load when the count is zero. A gate that yields does so once instead.
    pub fn pass(&self) {
        let Some(raised) = self.raised else { return };
        if let Some(yields) = &self.yields {
            if yields.looks() && raised.load(Ordering::Acquire) > 0 {
                yields.yielded.fetch_add(1, Ordering::Relaxed);
                thread::yield_now();
            }
            return;
        }
        if raised.load(Ordering::Acquire) <= 0 || self.waited() >= self.wait_max {
            return;
        }
        loop {
            let start = Instant::now();
            thread::sleep(NAP);
            let waited = self.lock().add(start, Instant::now());
            if raised.load(Ordering::Acquire) <= 0 || waited >= self.wait_max {
                return;
            }
        }
    }

    /// Returns the wall-clock time in which at least one thread has slept in this gate so far.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.lock().total
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waited> {
        // Nothing panics while the lock is held, so the total is consistent.
        self.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_throttle_never_waits() {
        let count = AtomicI32::new(0);
        for gate in [Gate::new(None, 1000), Gate::new(Some(&count), 1000)] {
            gate.pass();
            assert_eq!(gate.waited(), Duration::ZERO);
        }
        let negative = AtomicI32::new(-1);
        let gate = Gate::new(Some(&negative), 1000);
        gate.pass();
        assert_eq!(gate.waited(), Duration::ZERO);
    }

    #[test]
    fn a_raised_throttle_waits_until_it_is_lowered() {
        let count = AtomicI32::new(2);
        let gate = Gate::with_bound(Some(&count), Duration::from_secs(60));
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2 {
                    thread::sleep(Duration::from_millis(10));
                    count.fetch_sub(1, Ordering::Release);
                }
            });
            gate.pass();
            assert_eq!(count.load(Ordering::Acquire), 0);
        });
        assert!(gate.waited() > Duration::ZERO);
    }

    #[test]
    fn a_lost_decrement_costs_the_bound_once() {
        let count = AtomicI32::new(1);
        let bound = Duration::from_millis(200);
        let gate = Gate::with_bound(Some(&count), bound);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        gate.pass();
                    }
                });
            }
        });
        // 50 passes a thread, one bound: had each waited on its own, this were 10 s.
        let waited = gate.waited();
        assert!(
            waited >= bound && waited < Duration::from_secs(5),
            "{waited:?}"
        );
        gate.pass();
        assert_eq!(gate.waited(), waited);
    }

    #[test]
    fn who_waits_goes_on_when_it_is_lowered_or_the_bound_is_over() {
        let count = AtomicI32::new(1);
        let start = Instant::now();
        Gate::new(Some(&count), 20_000).pass();
        assert!(start.elapsed() >= wait_max(20_000));
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(5));
                count.store(0, Ordering::Release);
            });
            Gate::new(Some(&count), usize::MAX).pass();
        });
        assert_eq!(count.load(Ordering::Acquire), 0);
    }

    #[test]
    fn a_gate_that_yields_looks_at_every_so_many_passes_and_never_sleeps() {
        let count = AtomicI32::new(1);
        let gate = Gate::yielding(Some(&count), 64);
        for _ in 0..129 {
            gate.pass();
        }
        assert_eq!((gate.yielded(), gate.waited()), (3, Duration::ZERO));
        count.store(0, Ordering::Release);
        let lowered = Gate::yielding(Some(&count), 1);
        let absent = Gate::yielding(None, 0);
        for gate in [&lowered, &absent] {
            gate.pass();
            assert_eq!(gate.yielded(), 0);
        }
    }

    #[test]
    fn a_small_circuit_waits_less() {
        assert_eq!(wait_max(0), Duration::ZERO);
        assert_eq!(wait_max(1000), 1000 * WAIT_PER_ROW);
        assert_eq!(wait_max(1 << 27), WAIT_MAX);
        assert_eq!(wait_max(usize::MAX), WAIT_MAX);
    }

    #[test]
    fn overlapping_sleeps_count_once() {
        let t = Instant::now();
        let at = |ms| t + Duration::from_millis(ms);
        let mut waited = Waited::default();
        waited.add(at(0), at(10));
        waited.add(at(2), at(12));
        waited.add(at(3), at(11));
        assert_eq!(waited.total, Duration::from_millis(12));
        waited.add(at(100), at(105));
        assert_eq!(waited.total, Duration::from_millis(17));
    }
}
