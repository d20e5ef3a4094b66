//! The arguments of `cuzk bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cuzk_core::config::COUNT_MAX;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchStage {
    /// Compile a circuit.
    Pce,
    /// Compute a witness.
    Witness,
    /// Evaluate the constraints on a witness.
    Eval,
    /// One transform over the scalar field.
    Ntt,
    /// A multi-scalar multiplication in G1.
    MsmG1,
    /// A multi-scalar multiplication in G2.
    MsmG2,
    /// The sum of a random half of 2^LOG2 points in G1, as for the ones of a witness.
    SumG1,
    /// Aggregate as many proofs as --proofs.
    Aggregate,
    /// Generate test parameters.
    Params,
    /// A whole proof from its request.
    Prove,
    /// The engine around the proofs: urgent jobs, many jobs, overhead.
    Engine,
    /// The whole engine with each intervention's key on alone: dealloc,
    /// gpu_threads, throttle.
    Interventions,
    /// A job through `cuzk serve`, against one of an engine in this process, with
    /// WinningPoSt and with a PoRep request of 52 MB. Both sides have the same
    /// configuration and get the same bytes, and each has a journal in a temporary folder.
    /// The PoRep request is the bundled one, with spaces in the JSON of its C1 output. So
    /// both sides decode and keep 52 MB.
    Server,
    /// The time that a cluster adds to a job, with a worker that has the proofs already. It needs a
    /// configuration with `[cluster] servers`, and takes no work of other daemons.
    Cluster,
    /// A proof on a GPU, from its witness on.
    Device,
    /// A proof on a GPU of a made-up circuit that fills a domain of 2^LOG2.
    DeviceShape,
    /// As many proofs as --runs on a GPU by two workers: how busy it is, and which
    /// resources grow.
    DeviceLoad,
}

impl BenchStage {
    /// Returns true for a stage that is one kernel.
    pub(crate) fn is_kernel(self) -> bool {
        matches!(self, Self::Ntt | Self::MsmG1 | Self::MsmG2 | Self::SumG1)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// The stage to measure.
    #[arg(value_enum)]
    pub(crate) stage: BenchStage,
    /// The circuit's kind, for stages that have one. Default: window-post. The server measures
    /// winning-post and porep, or the one of them that is named here.
    #[arg(long)]
    pub(crate) kind: Option<ProofKind>,
    /// The circuit's sector size. 2KiB has a bundled request. Witnesses, and proofs of
    /// one partition, are measured at other sizes too, over a made-up sector. The
    /// parameters of other sizes must exist.
    #[arg(long, default_value_t = SectorSize::KiB2)]
    pub(crate) sector_size: SectorSize,
    /// The base-2 logarithm of the length, for transforms, MSMs and sums.
    #[arg(long, value_name = "LOG2", default_value_t = 18, value_parser = clap::value_parser!(u32).range(1..=26))]
    pub(crate) size: u32,
    /// The number of proofs of an aggregate, a power of two.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = proofs)]
    pub(crate) proofs: u16,
    /// The number of threads; 0 is one for each core. Several numbers, as in 1,2, are all
    /// measured, each with its speed-up over the first. Proofs are then critical, so that
    /// they stay on these threads.
    #[arg(long, value_delimiter = ',', default_values_t = [0], value_parser = threads)]
    pub(crate) threads: Vec<usize>,
    /// The number of alternating runs that the medians are taken over.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// The number of proofs in flight, for interventions. Several numbers are all
    /// measured.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4], value_parser = in_flight)]
    pub(crate) in_flight: Vec<usize>,
    /// The value of gpu_threads in the arm that sets it alone, for interventions. Each of
    /// several numbers is an arm. Default: half of the cores.
    #[arg(long, value_name = "THREADS", value_delimiter = ',', value_parser = threads)]
    pub(crate) gpu_threads: Vec<usize>,
    /// Draw the result of interventions into FILE; no other stage draws.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Measure WinningPoSts of a daemon alone and under a flood, as many as --runs each: the
    /// median, the 99th percentile and the resident memory. 1,000 connections send a byte a
    /// second, 64 clients send 200 MiB each again and again, and 20 PoReps queue. The
    /// senders have the lowest priority for the processor, because they stand for other
    /// machines. For server only.
    #[arg(long)]
    pub(crate) flood: bool,
    /// Measure ours without the peer, after a run that is not measured. For transforms, MSMs and
    /// sums only.
    #[arg(long)]
    pub(crate) alone: bool,
    /// This process is an arm of another one.
    #[arg(long, hide = true)]
    pub(crate) child: bool,
}

impl Bench {
    /// Returns the kind for stages that have one kind.
    pub(crate) fn kind(&self) -> ProofKind {
        self.kind.unwrap_or(ProofKind::WindowPost)
    }

    /// Returns the circuit that the arguments name.
    pub(crate) fn circuit(&self) -> CircuitId {
        CircuitId {
            kind: self.kind(),
            sector_size: self.sector_size,
        }
    }
}

/// Parses a number of threads that a configuration accepts; 0 is one for each core.
fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|&number: &usize| u64::try_from(number).is_ok_and(|number| number <= COUNT_MAX))
        .ok_or_else(|| format!("expected a number from 0 to {COUNT_MAX}"))
}

/// Parses the number of proofs of an aggregate.
fn proofs(text: &str) -> Result<u16, String> {
    let number = text.parse().ok();
    number
        .filter(|number: &u16| *number >= 2 && number.is_power_of_two())
        .ok_or_else(|| "expected a power of two from 2 to 32768".to_owned())
}

/// Parses a number of callers. More callers than the engine has room for would measure its
/// refusals.
fn in_flight(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|error| format!("{error}"))?;
    match number {
        1..=100 => Ok(number),
        _ => Err("expected a number from 1 to 100".to_owned()),
    }
}
