//! The end of a run: after a number of inputs, or after some time of the processor.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::SECONDS;

/// How long a run may be late. Asking for the time of the processor takes as long as some inputs.
const LATE: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Limit {
    count: u64,
    started: Duration,
    /// The processor time at which the run ends, and when it was compared last.
    until: Option<(Duration, Instant)>,
}

impl Limit {
    /// The end is after `count` mutants, or when [`SECONDS`] says.
    pub(crate) fn of_environment(count: u64) -> Self {
        let seconds = std::env::var(SECONDS).ok();
        let seconds = seconds.map(|seconds| Duration::from_secs(seconds.parse().unwrap()));
        let started = cpu_time();
        Self {
            count,
            started,
            until: seconds.map(|seconds| (started + seconds, Instant::now())),
        }
    }

    /// The end is after `count` mutants.
    #[cfg(test)]
    pub(crate) fn mutants(count: u64) -> Self {
        Self {
            count,
            started: cpu_time(),
            until: None,
        }
    }

    /// Returns true for a run whose inputs are the same each time.
    pub(crate) fn is_count(&self) -> bool {
        self.until.is_none()
    }

    /// Returns true if the run ends after `tried` mutants.
    pub(crate) fn is_over(&mut self, tried: u64) -> bool {
        let Some((until, looked)) = &mut self.until else {
            return tried >= self.count;
        };
        if looked.elapsed() < LATE {
            return false;
        }
        *looked = Instant::now();
        cpu_time() >= *until
    }

    /// Returns the time that the process has computed since the start of the run.
    pub(crate) fn spent(&self) -> Duration {
        cpu_time().saturating_sub(self.started)
    }
}

/// Returns the time that this process has computed.
fn cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let times = [usage.user_time(), usage.system_time()];
    times
        .iter()
        .map(|time| Duration::from_micros(time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64))
        .sum()
}
