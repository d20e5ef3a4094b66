//! A run of the model: its requests, and how it is made.

use crate::contention::Interference;
use crate::kind::{Kind, SectorSize};
use crate::outcome::Proof;

/// A request for a proof.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The kind of the proof.
    pub kind: Kind,
    /// The time at which it arrives, in seconds.
    pub asked_s: f64,
}

/// How a run is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The size of the sectors.
    pub size: SectorSize,
    /// The requests that are in flight at most. Others are made when one ends.
    pub in_flight: usize,
    /// The mechanisms of contention.
    pub interference: Interference,
    /// The partitions that go through the pipeline as one. More than one makes long runs
    /// of large fleets affordable; the stages of a group do not overlap each other.
    pub group: u32,
}

/// A request whose proof is not complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) kind: Kind,
    pub(crate) asked_s: f64,
    pub(crate) partitions_left: u32,
}

impl Live {
    /// Records that some of its partitions were proved. Returns the proof if none are left.
    pub(crate) fn proved(&mut self, partitions: u32, now_s: f64) -> Option<Proof> {
        self.partitions_left -= partitions;
        (self.partitions_left == 0).then_some(Proof {
            kind: self.kind,
            asked_s: self.asked_s,
            ended_s: now_s,
        })
    }
}
