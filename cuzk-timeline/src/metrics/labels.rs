//! The values of the labels of metrics.

/// The reason for which a job was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The request is invalid.
    Invalid,
    /// The parameters of its circuit are missing.
    MissingParameters,
    /// The request id was used before, with another input.
    Conflict,
    /// The queue is full.
    Busy,
    /// It needs more memory than the whole budget.
    Memory,
    /// It could not be proved before its deadline.
    Deadline,
    /// The engine is shutting down.
    ShuttingDown,
    /// The engine failed for a reason of its own.
    Internal,
}

impl Refusal {
    /// Returns the value of the label `reason`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::MissingParameters => "missing_parameters",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::Memory => "memory",
            Self::Deadline => "deadline",
            Self::ShuttingDown => "shutting_down",
            Self::Internal => "internal",
        }
    }
}

/// The way in which an accepted job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// With a verified proof.
    Proved,
    /// With an error.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The engine was shut down before the job's end.
    ShutDown,
}

impl Outcome {
    /// Returns the value of the label `outcome`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::ShutDown => "shut_down",
        }
    }
}

/// A kind of fault of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It returned an error.
    Error,
    /// Its code panicked.
    Panic,
    /// It took longer than its time limit.
    Stall,
    /// It returned a proof that the verifier rejected.
    Rejected,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Error, Self::Panic, Self::Stall, Self::Rejected];

    /// Returns the value of the label `fault`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Stall => "stall",
            Self::Rejected => "rejected",
        }
    }
}

/// A kind of thing that can be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evicted {
    /// Groth16 parameters.
    Params,
    /// A compiled circuit.
    Circuit,
    /// Buffers that were kept for the next partition.
    Buffers,
}

impl Evicted {
    /// Returns the value of the label `what`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Circuit => "circuit",
            Self::Buffers => "buffers",
        }
    }
}
