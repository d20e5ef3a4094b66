//! The result of a simulated run.

use crate::activity::Used;
use crate::kind::Kind;

/// A proof of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proof {
    /// Its kind.
    pub kind: Kind,
    /// The time of its request, in seconds.
    pub asked_s: f64,
    /// The time of its end, in seconds.
    pub ended_s: f64,
}

/// The busy times of a machine, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    /// Of all synthesis workers together, waits for a place in the queue apart.
    pub synthesis_s: f64,
    /// Of these workers while they wait for a place in the queue behind them.
    pub blocked_s: f64,
    /// Of all device locks together.
    pub locked_s: f64,
    /// Of all device workers together.
    pub device_workers_s: f64,
    /// In which a worker of each device, or more, had a partition.
    pub devices_s: f64,
    /// In which a synthesis worker was free and work waited for its memory.
    pub memory_wait_s: f64,
    /// The cores and the memory.
    pub used: Used,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The proofs, in the order of their ends.
    pub proofs: Vec<Proof>,
    /// The end of the last one, in seconds.
    pub end_s: f64,
    /// The partitions that were proved.
    pub partitions: u64,
    /// The busy times.
    pub busy: Busy,
    /// Requests whose memory can never be free.
    pub impossible: u64,
    /// The most memory that was charged, in bytes.
    pub peak_bytes: u64,
}

impl Outcome {
    /// Adds the outcome of another machine of the same fleet.
    pub(crate) fn add(&mut self, other: Self) {
        self.proofs.extend(other.proofs);
        self.end_s = self.end_s.max(other.end_s);
        self.partitions += other.partitions;
        self.impossible += other.impossible;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        let (busy, more) = (&mut self.busy, other.busy);
        busy.synthesis_s += more.synthesis_s;
        busy.blocked_s += more.blocked_s;
        busy.locked_s += more.locked_s;
        busy.device_workers_s += more.device_workers_s;
        busy.devices_s += more.devices_s;
        busy.memory_wait_s += more.memory_wait_s;
        busy.used.thread_s += more.used.thread_s;
        busy.used.gb += more.used.gb;
    }

    /// Returns the wall time a proof, from the first request to the last end, in seconds.
    #[must_use]
    pub fn s_per_proof(&self) -> f64 {
        self.end_s / (self.proofs.len().max(1)) as f64
    }

    /// Returns the time between ends, in seconds a proof, without the run's first and
    /// last quarter: how fast a full pipeline is.
    #[must_use]
    pub fn steady_s_per_proof(&self) -> f64 {
        let ends: Vec<f64> = self.proofs.iter().map(|proof| proof.ended_s).collect();
        let (first, last) = (ends.len() / 4, ends.len() * 3 / 4);
        match (ends.get(first), ends.get(last)) {
            (Some(from), Some(to)) if last > first => (to - from) / (last - first) as f64,
            _ => self.s_per_proof(),
        }
    }
}
