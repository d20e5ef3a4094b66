//! What a partition goes through.

use std::fmt;

use serde::Serialize;

/// What a partition, or a whole job, goes through, in order.
///
/// [`Device`](Self::Device) and [`Finish`](Self::Finish) are whole regions:
/// [`Quotient`](Self::Quotient) and [`Msm`](Self::Msm) are parts of the one,
/// [`BG2`](Self::BG2), [`Assemble`](Self::Assemble) and [`Verify`](Self::Verify) of
/// the other.
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
    /// Computing the witness by running the circuit, for a shape that has no
    /// native writer.
    CircuitWitness,
    /// Evaluating A·w and B·w.
    Evaluate,
    /// Waiting for a device worker.
    ReadyWait,
    /// Making what the device needs besides the partition, before its lock is
    /// taken: on the CPU the scalars of the sums over A and B, and memory.
    Prepare,
    /// Waiting for the device's lock.
    LockWait,
    /// All that runs under the device's lock. What the device is busy with.
    Device,
    /// The quotient h, on the device.
    Quotient,
    /// The sums over H, L, A and B in G1, on the device.
    Msm,
    /// Waiting for a finishing worker.
    FinishWait,
    /// All that turns what the device left into a verified proof.
    Finish,
    /// The sum over B in G2, outside the device's lock.
    BG2,
    /// Putting the proof together.
    Assemble,
    /// Checking the proof.
    Verify,
    /// Returning memory to the system.
    Dealloc,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 21] = [
        Self::DecodeWait,
        Self::Decode,
        Self::QueueWait,
        Self::Circuit,
        Self::Params,
        Self::MemoryWait,
        Self::Witness,
        Self::CircuitWitness,
        Self::Evaluate,
        Self::ReadyWait,
        Self::Prepare,
        Self::LockWait,
        Self::Device,
        Self::Quotient,
        Self::Msm,
        Self::FinishWait,
        Self::Finish,
        Self::BG2,
        Self::Assemble,
        Self::Verify,
        Self::Dealloc,
    ];

    /// The stage's name in timelines, spans and metrics.
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
            Self::Evaluate => "evaluate",
            Self::ReadyWait => "ready_wait",
            Self::Prepare => "prepare",
            Self::LockWait => "lock_wait",
            Self::Device => "device",
            Self::Quotient => "quotient",
            Self::Msm => "msm",
            Self::FinishWait => "finish_wait",
            Self::Finish => "finish",
            Self::BG2 => "b_g2",
            Self::Assemble => "assemble",
            Self::Verify => "verify",
            Self::Dealloc => "dealloc",
        }
    }

    /// Whether a partition lies in a queue meanwhile, with no thread of its own.
    #[must_use]
    pub fn is_queued(self) -> bool {
        matches!(
            self,
            Self::DecodeWait
                | Self::QueueWait
                | Self::MemoryWait
                | Self::ReadyWait
                | Self::FinishWait
        )
    }

    /// Whether nothing is computed meanwhile.
    #[must_use]
    pub fn is_wait(self) -> bool {
        self.is_queued() || self == Self::LockWait
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
        assert_eq!(Stage::ALL.len(), Stage::Dealloc as usize + 1);
        for stage in Stage::ALL {
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.name());
        }
    }
}
