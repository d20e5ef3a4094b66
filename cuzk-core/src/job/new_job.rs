//! A job when it is accepted, and what records its progress.
//!
//! Not the job, which has a state of its own from then on. The invariant: what is here does
//! not change while the job is proved.

use std::sync::Arc;
use std::time::Instant;

use cuzk_filecoin::CircuitId;
use cuzk_groth16::verify::VerifiedProof;
use cuzk_scheduler::priority::{Patience, Priority};

use super::Outcome;

/// Keeps a job's progress beyond the life of this process.
pub(crate) trait Record: Send + Sync {
    /// Records the proof of a partition that is not the last.
    fn partition(&self, partition: usize, proof: &VerifiedProof);
    /// Records the end of the job.
    fn end(&self, outcome: &Outcome);
}

/// A job when it is accepted.
pub(crate) struct NewJob {
    pub(crate) number: u64,
    pub(crate) id: Option<String>,
    /// The span in which it was submitted. Its log lines lie within.
    pub(crate) caller: tracing::Span,
    pub(crate) circuit: CircuitId,
    pub(crate) partitions: usize,
    pub(crate) priority: Priority,
    pub(crate) patience: Patience,
    pub(crate) accepted: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) record: Option<Arc<dyn Record>>,
}
