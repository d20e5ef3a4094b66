//! Where a synthesized partition becomes a proof.
//!
//! A backend is a value, opened by the caller that starts an engine. It is not told of
//! jobs, queues or requests. The invariants:
//!
//! * [`Backend::prove_start`] holds the device's lock for the device region only.
//! * [`Pending::finish`] runs outside of it.
//! * The proof that a backend returns has not been verified yet.

mod assemble;
mod bit_sums;
mod cpu;
mod cuda;
pub mod footprint;
mod host_b_g2;

use std::fmt;
use std::sync::Arc;

use bellperson::groth16::Proof;
use blstrs::{Bls12, Scalar};
use cuzk_kernels::KernelError;
use cuzk_memory::{Checkpoint, Stopped};
use cuzk_pce::PackedWitness;
use cuzk_timeline::Trace;
use supraseal_sys::{Code, GpuResources, Status};

use crate::apart::NoThreads;
use crate::circuit::Circuit;
use crate::params::{MappedParams, ParamsError, Shapes};
use crate::{Culprit, Error};
use cuzk_memory::{Buffer, BufferPool};

pub use assemble::{Randomness, Scaling};
pub use bit_sums::{Batch, BitSums};
pub use cpu::CpuBackend;
pub use cuda::CudaBackend;
pub use footprint::{CpuWorkspace, Footprint, SynthesisShare};
pub use host_b_g2::HostBG2;

/// One device of an engine: the backend that proves on it, and the C++ side's resources
/// that guard it.
pub struct Device {
    /// The device's lock and throttle. The devices of an engine were made
    /// [beside](GpuResources::beside) each other, since it looks at one throttle.
    pub resources: Arc<GpuResources>,
    /// The backend that proves on it.
    pub backend: Arc<dyn Backend>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.backend.name()).finish()
    }
}

/// A partition after synthesis: all a backend needs to prove it.
pub struct Synthesized {
    /// The circuit, for its densities.
    pub circuit: Arc<Circuit>,
    /// The circuit's Groth16 parameters.
    pub params: Arc<MappedParams>,
    /// The value of every variable.
    pub witness: PackedWitness<Scalar>,
    /// A and B on it, or the order to evaluate them.
    pub evaluation: Evaluation,
    /// The sums over its bits, if they were made with those of other partitions. A backend
    /// may ignore them.
    pub bit_sums: Option<BitSums>,
    /// The randomness that makes its proof zero-knowledge.
    pub randomness: Randomness,
    /// Pauses or stops the backend's work on it. A backend passes it every millisecond
    /// or a few while it computes, and only asks if it is cancelled while it waits.
    pub checkpoint: Checkpoint<'static>,
}

/// A·w and B·w over the circuit's domain: its rows, a row for each public input,
/// zeros.
pub enum Evaluation {
    /// Both vectors.
    Done([Buffer; 2]),
    /// Left to the backend. One that wants vectors for it takes them from here.
    Left(Arc<BufferPool>),
}

impl Evaluation {
    /// Returns the pool that vectors over the domain come from.
    #[must_use]
    pub fn buffers(&self) -> &Arc<BufferPool> {
        match self {
            Self::Done([a, _]) => a.pool(),
            Self::Left(buffers) => buffers,
        }
    }
}

impl fmt::Debug for Synthesized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Synthesized")
            .field("circuit", &self.circuit)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

/// Turns synthesized partitions into proofs, on one device.
pub trait Backend: Send + Sync {
    /// The backend's name in messages and metrics.
    fn name(&self) -> &'static str;

    /// Returns true if it computes on this machine's cores. Its work can then be paused for
    /// more urgent work, and it cannot stop answering alone.
    fn is_this_cpu(&self) -> bool {
        false
    }

    /// Returns the memory on the host that a partition holds while this backend proves it.
    /// `shapes` are those of the multiples that its parameters have. `share` is the part
    /// that synthesis takes on the host, which is contained.
    fn footprint(&self, circuit: &Circuit, shapes: &Shapes, share: SynthesisShare) -> Footprint;

    /// Returns the most host memory that it keeps for a circuit, in bytes: neither what a
    /// partition holds, nor what every backend has (see
    /// [`circuit_bytes`](footprint::circuit_bytes)).
    fn kept_bytes(&self, _circuit: &Circuit) -> u64 {
        0
    }

    /// Returns true if it evaluates A and B itself, so that nobody else need hold the
    /// vectors. It also takes a partition that is evaluated.
    fn evaluates(&self) -> bool {
        false
    }

    /// Returns the memory on the host that [`Self::sum_bits`] takes for so many partitions,
    /// with all their witnesses and the writing of one. Returns none if a pass over several
    /// partitions of this circuit does not pay.
    fn batch_footprint(&self, _circuit: &Circuit, _partitions: usize) -> Option<Footprint> {
        None
    }

    /// Adds up the bits of several partitions in one pass over the points, under the device's
    /// lock. Returns the sums of each partition, in order. Returns none if it has no such
    /// pass, or if there is one partition only.
    ///
    /// # Errors
    /// As [`Self::prove_start`].
    fn sum_bits(
        &self,
        _batch: &Batch<'_>,
        _trace: Trace<'_>,
    ) -> std::result::Result<Vec<BitSums>, BackendError> {
        Ok(Vec::new())
    }

    /// Lets go of what is kept for a circuit. It is made anew when needed.
    fn evict(&self, _circuit: &Circuit) {}

    /// Lets go of what is kept for parameters in whose place are others.
    fn evict_params(&self, _params: &MappedParams) {}

    /// Runs the device region: the quotient and the MSMs in G1. The returned rest keeps the
    /// backend, so that another thread may finish it.
    ///
    /// # Errors
    /// Parameters with an undecodable point, a failing device, or
    /// [`BackendError::Stopped`].
    fn prove_start(
        self: Arc<Self>,
        partition: Synthesized,
        trace: Trace<'_>,
    ) -> std::result::Result<Box<dyn Pending>, BackendError>;
}

/// A proof whose device region is over.
pub trait Pending: Send {
    /// Runs the rest, outside the device's lock, and assembles the proof.
    ///
    /// # Errors
    /// As [`Backend::prove_start`].
    fn finish(self: Box<Self>, trace: Trace<'_>)
    -> std::result::Result<Proof<Bls12>, BackendError>;
}

/// Why a backend made no proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// A transform or an MSM on the CPU.
    #[error(transparent)]
    Kernel(KernelError),
    /// The partition's checkpoint said so.
    #[error("stopped")]
    Stopped,
    /// A parameter that cannot be used.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The C++ side.
    #[error(transparent)]
    Native(Status),
    /// A and B on the witness.
    #[error(transparent)]
    Evaluation(Box<Error>),
    /// Memory for a vector over the domain.
    #[error("no memory for a vector over the domain: {0}")]
    Memory(#[from] std::io::Error),
    /// The system has no thread that waits for a caller of another pool.
    #[error(transparent)]
    Threads(#[from] NoThreads),
    /// The verifying key's δ is the identity: whoever made the parameters can
    /// learn the witness from a proof.
    #[error(
        "the parameters' delta is the identity, which is an attack on the prover; \
         fetch the parameters anew"
    )]
    IdentityDelta,
}

impl BackendError {
    /// Returns the cause, as far as the error tells.
    #[must_use]
    pub fn culprit(&self) -> Culprit {
        match self {
            Self::Params(_) | Self::IdentityDelta | Self::Kernel(KernelError::Bases(_)) => {
                Culprit::Input
            }
            Self::Native(status) => match status.code() {
                Code::CircuitTooLarge => Culprit::Size,
                Code::InvalidPoint | Code::LengthMismatch | Code::InvalidArgument => Culprit::Input,
                _ => Culprit::Device,
            },
            _ => Culprit::Device,
        }
    }
}

impl From<Error> for BackendError {
    fn from(error: Error) -> Self {
        match error {
            Error::Stopped => Self::Stopped,
            Error::Memory(error) => Self::Memory(error),
            error => Self::Evaluation(Box::new(error)),
        }
    }
}

impl From<Stopped> for BackendError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<Status> for BackendError {
    fn from(status: Status) -> Self {
        match status.code() {
            Code::Stopped => Self::Stopped,
            _ => Self::Native(status),
        }
    }
}

impl From<KernelError> for BackendError {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Stopped => Self::Stopped,
            error => Self::Kernel(error),
        }
    }
}
