//! The result of a partition, as a worker reports it.
//!
//! It is not an answer: a worker can lie, so the owner verifies each proof. The invariant: a
//! result names its partition and its node, and is short.

use serde::{Deserialize, Serialize};

use super::{Message, MessageError, WorkId, bounded};
use crate::name::Name;

/// The most bytes of a partition's proof. A Groth16 proof over BLS12-381 has 192.
pub const PROOF_BYTES_MAX: usize = 1024;
/// The most bytes of a failure's reason.
pub const REASON_BYTES_MAX: usize = 2048;

/// The reason for which a worker has no proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The reason, for people.
    pub reason: String,
}

/// A proof, or the reason for which there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkResult {
    /// The bytes of a proof that nobody has verified yet.
    Proof(Vec<u8>),
    /// The worker could not prove it.
    Failure(Failure),
}

/// The result of a partition on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The partition.
    pub id: WorkId,
    /// The node that worked on it.
    pub node: Name,
    /// The attempt that the node worked on.
    pub attempt: u32,
    /// The time from the delivery to the result.
    pub elapsed_ms: u64,
    /// The result.
    pub result: WorkResult,
}

impl Failure {
    /// Returns a failure with the first bytes of a reason that may be long.
    #[must_use]
    pub fn new(reason: &str) -> Self {
        let end = (0..=REASON_BYTES_MAX.min(reason.len()))
            .rev()
            .find(|end| reason.is_char_boundary(*end));
        let reason = reason.get(..end.unwrap_or(0)).unwrap_or_default();
        Self {
            reason: reason.to_owned(),
        }
    }
}

impl Message for Outcome {
    const KIND: u8 = 2;
    const BYTES_MAX: usize = 4 << 10;

    fn check(&self) -> Result<(), MessageError> {
        match &self.result {
            WorkResult::Proof(proof) => bounded("proof", "bytes", proof.len(), PROOF_BYTES_MAX),
            WorkResult::Failure(failure) => {
                bounded("reason", "bytes", failure.reason.len(), REASON_BYTES_MAX)
            }
        }
    }
}
