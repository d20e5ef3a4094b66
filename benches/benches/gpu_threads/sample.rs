//! One sample of both sides.

use benches::{Result, study::Timed};
use std::time::Duration;

/// The answer of a child: the mean time of one piece of work of each side. It is 0 for a
/// side that did not run.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) msm: Duration,
    pub(crate) other: Duration,
    /// The number of times in a second at which a thread with work lost its core.
    pub(crate) preemptions: f64,
}

impl Timed for Sample {
    /// Returns the slower side's time, which would hold up a pipeline of the two.
    fn wall(&self) -> Duration {
        self.msm.max(self.other)
    }
}

impl Sample {
    pub(crate) fn msm_s(&self) -> f64 {
        self.msm.as_secs_f64()
    }

    pub(crate) fn other_s(&self) -> f64 {
        self.other.as_secs_f64()
    }

    pub(crate) fn preemptions(&self) -> f64 {
        self.preemptions
    }

    /// Returns a line for `read`.
    pub(crate) fn write(self) -> String {
        let Sample {
            msm,
            other,
            preemptions,
        } = self;
        format!("{} {} {preemptions}", msm.as_nanos(), other.as_nanos())
    }

    /// Parses a line of `write`.
    pub(crate) fn read(line: &str) -> Result<Self> {
        let [msm, other, preemptions] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("expected two durations and a count, got {line:?}").into());
        };
        Ok(Sample {
            msm: Duration::from_nanos(msm.parse()?),
            other: Duration::from_nanos(other.parse()?),
            preemptions: preemptions.parse()?,
        })
    }
}
