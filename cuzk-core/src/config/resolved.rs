//! The configuration that the engine sees: defaults filled in, keywords
//! resolved against the machine, ranges checked, units in the names.
//!
//! What is checked, and how, is `resolve`'s. The invariant: printing a
//! [`Config`] and reading it again gives the same value.

use std::path::PathBuf;
use std::time::Duration;

use cuzk_fetch::Source;
use cuzk_groth16::CircuitForm;
use cuzk_groth16::backend::CpuWorkspace;
use cuzk_kernels::Isa;
use cuzk_scheduler::priority::Patience;
use rayon::{ThreadPool, ThreadPoolBuilder};
use supraseal_sys::device::BG2;

use super::cluster::Cluster;
use super::problem::ConfigError;
use super::server::Server;
use cuzk_filecoin::ProofKind;
use cuzk_memory::{Dealloc, ThrottleManner};

/// The whole configuration, resolved. Serialised, it has the keys of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Groth16 parameters.
    pub srs: Srs,
    /// Witnesses and constraint evaluation.
    pub synthesis: Synthesis,
    /// What proves.
    pub gpus: Gpus,
    /// How the CPU computes.
    pub cpu: Cpu,
    /// How much memory may be used.
    pub memory: Memory,
    /// How far stages run ahead and when they yield.
    pub pipeline: Pipeline,
    /// What is accepted, in which order, and what is kept.
    pub jobs: Jobs,
    /// The daemon.
    pub server: Server,
    /// The machines that prove together.
    pub cluster: Cluster,
    /// What is written to stderr.
    pub logging: Logging,
}

impl Config {
    /// Returns the workspace of a partition that the CPU proves.
    #[must_use]
    pub fn cpu_workspace(&self) -> CpuWorkspace {
        CpuWorkspace {
            isa: self.cpu.isa,
            threads: self.synthesis.threads,
            b_g2_threads: self.gpus.gpu_threads,
        }
    }

    /// Returns the configuration of an engine inside a daemon. The memory of the daemon's
    /// requests is taken off what the engine may use, so that both together stay within
    /// `memory.total_budget`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::RequestMemory`] if nothing is left for the engine.
    pub fn beside_requests(&self) -> Result<Self, ConfigError> {
        let request_bytes = self.server.request_memory_bytes;
        let usable_bytes = self.memory.usable_bytes();
        if request_bytes >= usable_bytes {
            return Err(ConfigError::RequestMemory {
                request_bytes,
                usable_bytes,
            });
        }
        let mut config = self.clone();
        // The engine takes the margin off what the machine has left at the start, too.
        config.memory.safety_margin_bytes += request_bytes;
        // Other jobs keep some room.
        let reserve_max_bytes = (usable_bytes - request_bytes) / 2;
        let reserve_bytes = &mut config.memory.critical_reserve_bytes;
        *reserve_bytes = (*reserve_bytes).min(reserve_max_bytes);
        Ok(config)
    }
}

/// Groth16 parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Srs {
    /// Folder of the `.params` and `.vk` files; UTF-8 where it came from a file
    /// or the environment.
    pub param_cache: PathBuf,
    /// Kinds whose parameters' points the engine makes multiples of, in the background,
    /// where there are none and the CPU proves.
    pub multiples: Vec<ProofKind>,
    /// True if the engine compares the network's parameters with their digests, once, in the
    /// background.
    pub check_digests: bool,
    /// Where parameters are fetched from, on demand only.
    pub sources: Vec<Source>,
}

/// Witnesses and constraint evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synthesis {
    /// Threads of the synthesis pool, at least 1.
    pub threads: usize,
    /// Partitions synthesised at a time, at least 1.
    pub partition_workers: usize,
    /// The form of the rows that are evaluated.
    pub circuit: CircuitForm,
}

impl Synthesis {
    /// A pool of `threads` threads.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Threads`] when the operating system gives fewer.
    pub fn pool(&self) -> Result<ThreadPool, ConfigError> {
        pool(self.threads, "pool")
    }
}

fn pool(threads: usize, name: &'static str) -> Result<ThreadPool, ConfigError> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(move |index| format!("cuzk-{name}-{index}"))
        .build();
    pool.map_err(|source| ConfigError::Threads { threads, source })
}

/// What proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpus {
    /// The devices.
    pub devices: Devices,
    /// Threads of the pool that works beside the GPUs, at least 1.
    pub gpu_threads: usize,
    /// Workers of each device, at least 1.
    pub gpu_workers_per_device: usize,
    /// Faults in a row after which a device gets no more work, at least 1.
    pub faults_max: u32,
    /// How long a partition may be on a device before the device counts as
    /// stalled.
    pub stall: Duration,
    /// How long a device that gets no more work rests before it is tried again;
    /// twice as long each time.
    pub rest: Duration,
    /// The place of the MSM in G2 of a GPU's proofs.
    pub b_g2: BG2,
    /// The most memory to take of each GPU, bytes, above zero; all that is free
    /// where there is no limit.
    pub memory_limit_bytes: Option<u64>,
}

impl Gpus {
    /// A pool of `gpu_threads` threads.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Threads`] when the operating system gives fewer.
    pub fn pool(&self) -> Result<ThreadPool, ConfigError> {
        pool(self.gpu_threads, "gpu-threads")
    }
}

/// How the CPU computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpu {
    /// The instructions of transforms and sums.
    pub isa: Isa,
}

/// The devices that prove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    /// The CPU alone.
    Cpu,
    /// Every GPU that CUDA shows; the CPU where it shows none. Only in a build
    /// that drives GPUs: elsewhere it resolves to [`Devices::Cpu`].
    Auto,
    /// These GPUs, in CUDA's order; not empty, none twice.
    Ordinals(Vec<u32>),
}

/// How much memory may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// All that the engine may use, bytes, above zero.
    pub total_budget_bytes: u64,
    /// The part of it that is never reserved, bytes, above zero and below
    /// `total_budget_bytes`.
    pub safety_margin_bytes: u64,
    /// The part of what is left that only critical jobs may use, bytes.
    pub critical_reserve_bytes: u64,
    /// What becomes of the vectors of a partition that is done.
    pub dealloc: Dealloc,
}

impl Memory {
    /// Returns the budget without its margin, bytes.
    #[must_use]
    pub fn usable_bytes(&self) -> u64 {
        self.total_budget_bytes
            .saturating_sub(self.safety_margin_bytes)
    }
}

/// How far stages run ahead and when they yield.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Synthesised partitions that may wait for a prover, at least 1.
    pub synthesis_lookahead: usize,
    /// Partitions finished at a time, at least 1.
    pub finish_workers: usize,
    /// The most partitions whose bits are added up in one pass over the points, at least 1.
    pub max_batch: usize,
    /// True if synthesis yields memory bandwidth while the MSM in G2 runs.
    pub throttle: bool,
    /// How it does.
    pub throttle_manner: ThrottleManner,
}

/// What is accepted, in which order, and what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jobs {
    /// Partitions that may wait, at least 1.
    pub queued_partitions: usize,
    /// Results kept for callers who ask again, at least 1.
    pub results_kept: usize,
    /// How long they are kept.
    pub results_kept_for: Duration,
    /// How long jobs wait for more urgent ones.
    pub patience: Patience,
    /// The journal's file.
    pub journal: Option<PathBuf>,
}

/// What is written to stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logging {
    /// Least severity written.
    pub level: LogLevel,
    /// Text or JSON.
    pub format: LogFormat,
}

/// Least severity written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Failures.
    Error,
    /// What an operator should look at.
    Warn,
    /// Jobs and their ends.
    Info,
    /// Stages.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// Every level, from the quietest.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    /// The level's name, as the file spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Both formats.
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];

    /// The format's name, as the file spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}
