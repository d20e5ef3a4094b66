//! Where a synthesized partition becomes a proof.
//!
//! A backend is a value, chosen when the engine starts. It is not told of
//! jobs, queues or requests. The invariants: [`Backend::prove_start`] holds the
//! device's lock for the device region only, [`Pending::finish`] runs outside
//! it, and what a backend returns has not been verified yet.

mod assemble;
mod cpu;
mod cuda;
mod randomness;

use std::fmt;
use std::sync::Arc;

use bellperson::groth16::Proof;
use blstrs::{Bls12, Scalar};
use cuzk_kernels::KernelError;
use cuzk_memory::{Checkpoint, Stopped};
use cuzk_pce::PackedWitness;
use rayon::ThreadPool;
use supraseal_sys::device::{DeviceOptions, DeviceProver, device_count};
use supraseal_sys::{Code, GpuResources, Status};

use crate::circuit::Circuit;
use crate::config::{Config, Devices, device_queues_problem};
use crate::params::{MappedParams, ParamsError};
use crate::timeline::Trace;
use crate::{Culprit, Error, Result};
use cuzk_memory::{Buffer, BufferPool};

pub use cpu::CpuBackend;
pub use cuda::CudaBackend;
pub use randomness::{Randomness, Scaling};

/// Whether this build can prove on a GPU. The configuration refuses to name one
/// that nothing would use.
pub const PROVES_ON_GPU: bool = cfg!(feature = "cuda");

/// One device of an engine: what proves on it, and the C++ side's resources that
/// guard it.
pub struct Device {
    /// The device's lock and throttle. The devices of an engine were made
    /// [beside](GpuResources::beside) each other, since it looks at one throttle.
    pub resources: Arc<GpuResources>,
    /// What proves on it.
    pub backend: Arc<dyn Backend>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.backend.name()).finish()
    }
}

/// The devices that the configuration names: the CPU, whose device region runs
/// on `pool`; the GPUs with these ordinals; or all that CUDA shows and this
/// build runs on, and the CPU if there is none.
///
/// None of them proves elsewhere what it failed to: that is the engine's, which
/// counts the fault.
///
/// # Errors
/// What the C++ side says of a GPU that was asked for, or the operating system
/// of threads.
pub fn devices(config: &Config, pool: &Arc<ThreadPool>) -> Result<Vec<Device>> {
    let gpus = match &config.gpus.devices {
        Devices::Cpu => Vec::new(),
        Devices::Ordinals(ordinals) => named_gpus(config, ordinals)?,
        Devices::Auto => all_gpus(config)?,
    };
    if gpus.is_empty() {
        return Ok(vec![cpu_device(config, pool)?]);
    }
    warn_of_few_queues();
    Ok(gpus)
}

/// Warns of an environment in which CUDA keeps a device's streams waiting for each other.
pub fn warn_of_few_queues() {
    if let Some(problem) = device_queues_problem() {
        tracing::warn!("{problem}");
    }
}

fn resources() -> Result<GpuResources> {
    GpuResources::new().map_err(|error| Error::Start {
        problem: error.to_string(),
    })
}

fn cpu_device(config: &Config, pool: &Arc<ThreadPool>) -> Result<Device> {
    let resources = Arc::new(resources()?);
    let backend = CpuBackend::new(Arc::clone(&resources), Arc::clone(pool))
        .with_b_g2_pool(Arc::new(config.gpus.pool()?))
        .with_isa(config.cpu.isa);
    let backend = Arc::new(backend);
    Ok(Device { resources, backend })
}

fn named_gpus(config: &Config, ordinals: &[u32]) -> Result<Vec<Device>> {
    let machine = resources()?;
    let gpu = |&ordinal: &u32| {
        open_gpu(config, ordinal, &machine).map_err(|error| Error::Start {
            problem: format!("GPU {ordinal}: {error}"),
        })
    };
    ordinals.iter().map(gpu).collect()
}

/// Every GPU that CUDA shows and that can be opened.
fn all_gpus(config: &Config) -> Result<Vec<Device>> {
    let machine = resources()?;
    let count = device_count().unwrap_or_else(|error| {
        tracing::warn!(%error, "no GPU is used");
        0
    });
    let gpu = |ordinal| match open_gpu(config, ordinal, &machine) {
        Ok(device) => Some(device),
        Err(error) => {
            tracing::warn!(ordinal, %error, "a GPU is not used");
            None
        }
    };
    Ok((0..count).filter_map(gpu).collect())
}

/// A GPU of the machine, whose resources are those that all its GPUs are beside.
fn open_gpu(
    config: &Config,
    ordinal: u32,
    machine: &GpuResources,
) -> std::result::Result<Device, Status> {
    let workers = u32::try_from(config.gpus.gpu_workers_per_device).unwrap_or(u32::MAX);
    let options = DeviceOptions {
        memory_bytes: config.gpus.memory_limit_bytes,
        workers,
        b_g2: config.gpus.b_g2,
        stall_limit: config.gpus.stall,
    };
    let resources = Arc::new(machine.beside()?);
    let device = DeviceProver::open(ordinal, &options, Arc::clone(&resources))?;
    if let Ok(info) = device.info() {
        tracing::info!(ordinal, ?info, "a GPU");
    }
    let backend = Arc::new(CudaBackend::new(Arc::new(device)).with_workers(workers));
    Ok(Device { resources, backend })
}

/// A partition after synthesis: all a backend needs to prove it.
pub struct Synthesized {
    /// The circuit, for its densities.
    pub circuit: Arc<Circuit>,
    /// The circuit's Groth16 parameters.
    pub params: Arc<MappedParams>,
    /// The value of every variable.
    pub witness: PackedWitness<Scalar>,
    /// What A and B are on it, or that the backend is to see to that.
    pub evaluation: Evaluation,
    /// What will make its proof zero-knowledge.
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
    /// Where vectors over the domain come from.
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

    /// Whether it computes on this machine's cores: then its work can stand still
    /// while more urgent work has them, and it cannot fall silent alone.
    fn is_this_cpu(&self) -> bool {
        false
    }

    /// The host memory that it keeps for a circuit, in bytes, at most; not what a
    /// partition holds, and not what every backend has (see
    /// [`circuit_bytes`](crate::memory::footprint::circuit_bytes)).
    fn kept_bytes(&self, _circuit: &Circuit) -> u64 {
        0
    }

    /// Whether it evaluates A and B itself, so that nobody else need hold the
    /// vectors. What it is given evaluated it takes as well.
    fn evaluates(&self) -> bool {
        false
    }

    /// Lets go of what is kept for a circuit. It is made anew when needed.
    fn evict(&self, _circuit: &Circuit) {}

    /// Lets go of what is kept for parameters in whose place are others.
    fn evict_params(&self, _params: &MappedParams) {}

    /// Runs the device region: the quotient and the sums in G1. What is left to
    /// do keeps the backend, so that another thread may finish it.
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
    /// Runs what is left, outside the device's lock, and assembles the proof.
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
    /// A transform or a sum on the CPU.
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
    #[error("no memory for a vector over the domain: {0}; lower memory.total_budget")]
    Memory(#[from] std::io::Error),
    /// The verifying key's δ is the identity: whoever made the parameters can
    /// learn the witness from a proof.
    #[error(
        "the parameters' delta is the identity, which is an attack on the prover; \
         fetch the parameters anew"
    )]
    IdentityDelta,
}

impl BackendError {
    /// What is to blame.
    #[must_use]
    pub fn culprit(&self) -> Culprit {
        match self {
            Self::Params(_) | Self::IdentityDelta => Culprit::Input,
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
