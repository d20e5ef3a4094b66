//! Pings systemd's watchdog while the daemon works.
//!
//! Not the remedy: systemd ends a daemon that stops pinging, and starts it again. The
//! invariants: a daemon without work is alive. A daemon with work is alive only while the
//! engine's checkpoints advance, and the async runtime must advance in either case.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::error::ErrorCode;
use tokio::task::AbortHandle;

use super::notify;

/// A sign of life of the engine. Calls may block on the engine's locks: a call that never
/// returns is one more reason not to ping.
pub trait Pulse: Send + Sync + 'static {
    /// Returns true if the engine has no work.
    fn is_idle(&self) -> bool;

    /// Returns a counter that advances while work advances.
    fn checkpoints(&self) -> u64;
}

/// The shortest time after which a part that stands still counts as hung. Work between two
/// checkpoints takes much less, also on a machine that is overloaded.
const STILL_MIN: Duration = Duration::from_secs(30);

/// Pings in the watchdog's time. One may be late.
const PINGS: u32 = 3;

/// Returns the time after which a part that stands still counts as hung, where systemd
/// waits `watchdog` for a ping.
#[must_use]
pub fn still_max(watchdog: Duration) -> Duration {
    (watchdog / 2).max(STILL_MIN)
}

/// The counters of the daemon at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// True if the engine has no work.
    pub is_idle: bool,
    /// The engine's counter.
    pub checkpoints: u64,
    /// The async runtime's counter.
    pub ticks: u64,
}

/// A part of the daemon that must advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The engine, while it has work.
    Engine,
    /// The async runtime, which serves the calls.
    Runtime,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Engine => "the engine has work, and none of its checkpoints was reached",
            Self::Runtime => "the async runtime, which serves the calls, has not run",
        })
    }
}

/// How the daemon stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All parts advance.
    Alive,
    /// A part has stood still for longer than it may.
    Hung {
        /// The part.
        part: Part,
        /// The time for which it has stood still.
        still: Duration,
    },
}

/// A counter, and the time for which it has not advanced.
#[derive(Clone, Copy, Debug, Default)]
struct Stillness {
    /// None before the first look, and while the part need not advance.
    count: Option<u64>,
    still: Duration,
}

impl Stillness {
    /// Takes the counter's value after the time `passed`. None means that it need not
    /// advance.
    fn note(&mut self, count: Option<u64>, passed: Duration) {
        if count.is_some() && count == self.count {
            self.still = self.still.saturating_add(passed);
        } else {
            self.still = Duration::ZERO;
        }
        self.count = count;
    }
}

/// Judges from counters whether the daemon works. It reads no clock.
#[derive(Debug)]
pub struct Liveness {
    still_max: Duration,
    /// The most time that one look counts. A machine that was suspended, or a process that
    /// was stopped, stood still as a whole: this time says nothing about a part.
    look_max: Duration,
    looked: Option<Instant>,
    engine: Stillness,
    runtime: Stillness,
}

impl Liveness {
    /// Returns a judge that looks every `interval`. A part that stands still for longer
    /// than `still_max` counts as hung.
    #[must_use]
    pub fn new(still_max: Duration, interval: Duration) -> Self {
        Self {
            still_max,
            look_max: interval.saturating_mul(2),
            looked: None,
            engine: Stillness::default(),
            runtime: Stillness::default(),
        }
    }

    /// Takes the counters at `now` and returns how the daemon stands.
    pub fn look(&mut self, now: Instant, sample: Sample) -> Verdict {
        let passed = self.looked.replace(now).map_or(Duration::ZERO, |looked| {
            now.saturating_duration_since(looked).min(self.look_max)
        });
        let checkpoints = (!sample.is_idle).then_some(sample.checkpoints);
        self.engine.note(checkpoints, passed);
        self.runtime.note(Some(sample.ticks), passed);
        let parts = [(Part::Runtime, self.runtime), (Part::Engine, self.engine)];
        let hung = parts.iter().find(|(_, it)| it.still > self.still_max);
        hung.map_or(Verdict::Alive, |&(part, Stillness { still, .. })| {
            Verdict::Hung { part, still }
        })
    }
}

/// The thread that pings. It ends when this is dropped.
#[derive(Debug)]
pub struct Watchdog {
    _stop: mpsc::Sender<()>,
    ticking: AbortHandle,
}

impl Watchdog {
    /// Starts to ping if systemd expects it: `None` if it does not. Called in the async
    /// runtime that serves.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start(pulse: Arc<impl Pulse>) -> io::Result<Option<Self>> {
        let Some(watchdog) = sd_notify::watchdog_enabled().filter(|time| !time.is_zero()) else {
            return Ok(None);
        };
        let interval = watchdog / PINGS;
        let liveness = Liveness::new(still_max(watchdog), interval);
        Self::start_with(pulse, liveness, interval, notify::alive).map(Some)
    }

    /// Starts to look every `interval`, and to call `ping` where `liveness` finds the
    /// daemon alive. Called in the async runtime that serves.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start_with(
        pulse: Arc<impl Pulse>,
        liveness: Liveness,
        interval: Duration,
        ping: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let ticks = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = mpsc::channel();
        let seen = Arc::clone(&ticks);
        let sample = move || Sample {
            is_idle: pulse.is_idle(),
            checkpoints: pulse.checkpoints(),
            ticks: seen.load(Ordering::Relaxed),
        };
        let name = "cuzk-watchdog".to_owned();
        thread::Builder::new().name(name).spawn(move || {
            watch(&stopped, liveness, interval, sample, ping);
        })?;
        // Twice an interval, so that each look finds a new value.
        let ticking = tokio::spawn(tick(ticks, interval / 2)).abort_handle();
        Ok(Self {
            _stop: stop,
            ticking,
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The thread is not joined, because it may wait for an engine that hangs.
        self.ticking.abort();
    }
}

async fn tick(ticks: Arc<AtomicU64>, interval: Duration) {
    loop {
        ticks.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(interval).await;
    }
}

fn watch(
    stopped: &mpsc::Receiver<()>,
    mut liveness: Liveness,
    interval: Duration,
    sample: impl Fn() -> Sample,
    ping: impl Fn(),
) {
    let mut was_hung = false;
    loop {
        let verdict = liveness.look(Instant::now(), sample());
        match verdict {
            Verdict::Alive => ping(),
            Verdict::Hung { part, still } if !was_hung => tracing::error!(
                code = %ErrorCode::Internal,
                "{part} for {} s; the watchdog is not pinged, so systemd ends this process \
                 and starts it again",
                still.as_secs()
            ),
            Verdict::Hung { .. } => {}
        }
        let is_hung = verdict != Verdict::Alive;
        if was_hung && !is_hung {
            tracing::warn!("the daemon advances again; the watchdog is pinged");
        }
        was_hung = is_hung;
        if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
