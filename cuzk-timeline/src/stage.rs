//! The stages that a partition passes.

use std::fmt;

use serde::Serialize;

/// A stage of a partition, or of a whole job, in the order of the pipeline; then the
/// background work of the engine.
///
/// [`Device`](Self::Device) and [`Finish`](Self::Finish) are whole regions, and so is
/// [`Columns`](Self::Columns).
/// [`Quotient`](Self::Quotient) and [`Msm`](Self::Msm) are parts of the first.
/// [`BG2Wait`](Self::BG2Wait), [`Assemble`](Self::Assemble) and [`Verify`](Self::Verify)
/// are parts of the second. So is [`BG2`](Self::BG2), unless a GPU is beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Waiting for a decoding worker.
    DecodeWait,
    /// Parsing and validating the request.
    Decode,
    /// Waiting for a synthesis worker.
    QueueWait,
    /// Recording or loading the compiled circuit.
    Circuit,
    /// Mapping and checking the Groth16 parameters.
    Params,
    /// Waiting until the partition's memory is free.
    MemoryWait,
    /// Writing the witness natively.
    Witness,
    /// Computing the witness by running the circuit. Used for a shape that has no
    /// native writer.
    CircuitWitness,
    /// Adding up the points of the bits of several partitions in one pass, under the
    /// device's lock. One of the partitions has the span.
    Columns,
    /// Evaluating A·w and B·w.
    Evaluate,
    /// Waiting for a device worker.
    ReadyWait,
    /// Making the other inputs of the device, before its lock is taken. On the CPU
    /// these are memory and the scalars of the MSMs over A and B.
    Prepare,
    /// Bringing the witness to a GPU, before its lock is taken: waiting for a worker of
    /// the C++ side, and uploading. The circuit goes with it if it is not there.
    Staging,
    /// Waiting for the device's lock.
    LockWait,
    /// The whole time under the device's lock, in which the device is busy.
    Device,
    /// The quotient h, on the device.
    Quotient,
    /// The MSMs over H, L, A and B in G1, on the device.
    Msm,
    /// Waiting for a finishing worker.
    FinishWait,
    /// All steps from the device's results to a verified proof.
    Finish,
    /// Waiting for the MSM over B in G2, which began beside a GPU's region.
    BG2Wait,
    /// The MSM over B in G2 on the host, outside the device's lock. Beside a GPU it begins
    /// before the lock is taken.
    BG2,
    /// Putting the proof together.
    Assemble,
    /// Checking the proof.
    Verify,
    /// Being proved by another machine, which the span's lane names.
    Elsewhere,
    /// Returning memory to the system.
    Dealloc,
    /// Making multiples of the parameters' points, in the background. It belongs to no job.
    Multiples,
    /// Comparing parameters with the network's digests, in the background. It belongs to no
    /// job.
    Digests,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 27] = [
        Self::DecodeWait,
        Self::Decode,
        Self::QueueWait,
        Self::Circuit,
        Self::Params,
        Self::MemoryWait,
        Self::Witness,
        Self::CircuitWitness,
        Self::Columns,
        Self::Evaluate,
        Self::ReadyWait,
        Self::Prepare,
        Self::Staging,
        Self::LockWait,
        Self::Device,
        Self::Quotient,
        Self::Msm,
        Self::FinishWait,
        Self::Finish,
        Self::BG2Wait,
        Self::BG2,
        Self::Assemble,
        Self::Verify,
        Self::Elsewhere,
        Self::Dealloc,
        Self::Multiples,
        Self::Digests,
    ];

    /// Returns the stage's name, as timelines, spans and metrics use it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DecodeWait => "decode_wait",
            Self::Decode => "decode",
            Self::QueueWait => "queue_wait",
            Self::Circuit => "circuit",
            Self::Params => "params",
            Self::MemoryWait => "memory_wait",
            Self::Witness => "witness",
            Self::CircuitWitness => "circuit_witness",
            Self::Columns => "columns",
            Self::Evaluate => "evaluate",
            Self::ReadyWait => "ready_wait",
            Self::Prepare => "prepare",
            Self::Staging => "staging",
            Self::LockWait => "lock_wait",
            Self::Device => "device",
            Self::Quotient => "quotient",
            Self::Msm => "msm",
            Self::FinishWait => "finish_wait",
            Self::Finish => "finish",
            Self::BG2Wait => "b_g2_wait",
            Self::BG2 => "b_g2",
            Self::Assemble => "assemble",
            Self::Verify => "verify",
            Self::Elsewhere => "elsewhere",
            Self::Dealloc => "dealloc",
            Self::Multiples => "multiples",
            Self::Digests => "digests",
        }
    }

    /// Returns true if a partition lies in a queue during this stage, without a thread.
    pub(crate) fn is_queued(self) -> bool {
        matches!(
            self,
            Self::DecodeWait
                | Self::QueueWait
                | Self::MemoryWait
                | Self::ReadyWait
                | Self::FinishWait
        )
    }

    /// Returns true if the device is busy during this stage: its lock is held.
    pub(crate) fn is_busy(self) -> bool {
        matches!(self, Self::Device | Self::Columns)
    }

    /// Returns true if nothing is computed during this stage.
    #[must_use]
    pub fn is_wait(self) -> bool {
        self.is_queued() || matches!(self, Self::LockWait | Self::BG2Wait)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_there_once_and_named_as_in_json() {
        assert!(Stage::ALL.is_sorted_by(|a, b| a < b));
        assert_eq!(Stage::ALL.len(), Stage::Digests as usize + 1);
        for stage in Stage::ALL {
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.name());
        }
    }
}
