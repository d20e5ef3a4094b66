//! The command line, as the user writes it.
//!
//! Nothing is read or checked here beyond the shape of each argument.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use cuzk_core::config::COUNT_MAX;
use cuzk_core::scheduler::priority::Priority;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_groth16::params::LIMIT_BYTES;

use crate::timeline::TimelineFile;

/// The version, and the features of the build.
const LONG_VERSION: &str = if cfg!(feature = "peer-supraseal") {
    concat!(
        env!("CARGO_PKG_VERSION"),
        "\nfeatures: cuda, peer-supraseal"
    )
} else if cfg!(feature = "cuda") {
    concat!(env!("CARGO_PKG_VERSION"), "\nfeatures: cuda")
} else {
    concat!(
        env!("CARGO_PKG_VERSION"),
        "\nfeatures: none; without cuda it proves on the CPU"
    )
};

/// Proves Filecoin storage: a vanilla proof in, a verified Groth16 proof out.
#[derive(Debug, Parser)]
#[command(version, long_version = LONG_VERSION, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// Read the configuration from FILE instead of using the defaults.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON instead of text: one object, or one object a line if there are several
    /// results. A failure has an object with `error` and `exit_code` in place of its result.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prove the bundled 2 KiB sector from nothing, and print where the time went.
    Demo(Demo),
    /// Prove a request and verify the proof.
    Prove(Prove),
    /// Verify a proof against its request.
    Verify(Verify),
    /// Make and check Groth16 parameters.
    #[command(subcommand)]
    Params(Params),
    /// Make a request: small sectors are sealed, large ones are sparse.
    Vanilla(Vanilla),
    /// Compile circuits and look into compiled ones.
    #[command(subcommand)]
    Pce(Pce),
    /// Compute the witness and the constraint evaluations of one partition.
    Synth(Synth),
    /// Check and show the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the completions of this command line for a shell.
    Completions(Completions),
    /// Measure a stage and its peer, alternating, in one run.
    Bench(Bench),
    /// Measure this machine, and print the line to configure.
    #[command(subcommand)]
    Tune(Tune),
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The kind of proof: porep, winning-post, window-post or snap-deals.
    #[arg(long, default_value_t = ProofKind::Porep)]
    pub(crate) kind: ProofKind,
    /// Keep the proof in FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write the times of all stages into FILE: .svg is a waterfall with the devices'
    /// idle gaps, .json a trace for Perfetto.
    #[arg(long, value_name = "FILE", value_parser = TimelineFile::parser())]
    pub(crate) timeline: Option<TimelineFile>,
}

#[derive(Debug, Args)]
pub(crate) struct Prove {
    /// A request, a bare C1 output or a C1 wrapper, as JSON. One engine proves several
    /// requests side by side. An error in one costs no other its proof; the exit code is
    /// the highest of all.
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) request: Vec<PathBuf>,
    /// The file for the proof, as the raw bytes that the chain expects; one for each
    /// request, in the same order. If one is /dev/stdout, reports go to standard error.
    #[arg(long, value_name = "PROOF", required = true)]
    pub(crate) out: Vec<PathBuf>,
    /// The name of the job, one for each request or none. If the configuration names a
    /// journal, an interrupted command that is given again proves only the missing
    /// partitions. The command answers SIGINT and SIGTERM within ten seconds.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Vec<String>,
    /// The priority of all requests: critical, high, normal or low. By default each kind
    /// has its own.
    #[arg(long)]
    pub(crate) priority: Option<Priority>,
    /// Seconds after which the proofs are useless. A partition that has not begun by then
    /// is not proved.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) deadline_s: Option<u64>,
    /// Write the times of all stages into FILE: .svg is a waterfall with the devices'
    /// idle gaps, .json a trace for Perfetto.
    #[arg(long, value_name = "FILE", value_parser = TimelineFile::parser())]
    pub(crate) timeline: Option<TimelineFile>,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The request that was proved.
    #[arg(long, value_name = "FILE")]
    pub(crate) request: PathBuf,
    /// The proof, as raw bytes.
    #[arg(long, value_name = "PROOF")]
    pub(crate) proof: PathBuf,
    /// Ask filecoin-proofs-api's own verifier too. It finds the verifying key
    /// only through FIL_PROOFS_PARAMETER_CACHE.
    #[arg(long)]
    pub(crate) reference: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Params {
    /// Make insecure test parameters, under the names the proofs libraries use.
    Generate(ParamsGenerate),
    /// Check every point of the parameters in the cache, the key and both queries of B
    /// against each other, and the lengths against the circuit.
    Verify(ParamsVerify),
    /// Compute multiples of the parameters' points and keep them beside the
    /// parameters, so that proofs on the CPU take less time. Worth it for PoSts.
    Prepare(ParamsPrepare),
}

#[derive(Debug, Args)]
pub(crate) struct ParamsPrepare {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The largest size of the file, on the disk and in memory. A smaller size keeps
    /// fewer multiples.
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(LIMIT_BYTES), value_parser = size)]
    pub(crate) limit: ByteSize,
}

#[derive(Debug, Args)]
pub(crate) struct ParamsVerify {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ParamsGenerate {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The seed from which the toxic waste is drawn; the same seed gives the
    /// same parameters.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Needed for 512MiB and larger, because real parameters have the same name.
    #[arg(long)]
    pub(crate) i_know_these_are_insecure: bool,
}

/// The circuit to work on.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CircuitArgs {
    /// porep, winning-post, window-post or snap-deals.
    #[arg(long)]
    pub(crate) kind: ProofKind,
    /// 2KiB, 8MiB, 512MiB, 32GiB or 64GiB.
    #[arg(long)]
    pub(crate) sector_size: SectorSize,
}

impl CircuitArgs {
    pub(crate) fn id(self) -> CircuitId {
        CircuitId {
            kind: self.kind,
            sector_size: self.sector_size,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Vanilla {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The file for the request.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The seed from which the sector's data and randomness are drawn.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pce {
    /// Compile a circuit into a file.
    Build(PceBuild),
    /// Check a compiled circuit's file and describe its content.
    Inspect(PceInspect),
}

#[derive(Debug, Args)]
pub(crate) struct PceBuild {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The file for the compiled circuit.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PceInspect {
    /// A compiled circuit.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Synth {
    /// The request.
    #[arg(long, value_name = "FILE")]
    pub(crate) request: PathBuf,
    /// The partition, counted from 0.
    #[arg(long, default_value_t = 0)]
    pub(crate) partition: usize,
    /// Check every constraint, and name the first that does not hold.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the configuration that a file resolves to, or every error in it. Without
    /// FILE it is the file of --config, and without both it is the defaults.
    Check(ConfigCheck),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCheck {
    /// The configuration file, if --config does not name it.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell that completes.
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

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
    /// Generate test parameters.
    Params,
    /// A whole proof from its request.
    Prove,
    /// The engine around the proofs: urgent jobs, many jobs, overhead.
    Engine,
    /// The whole engine with each intervention's key on alone: dealloc,
    /// gpu_threads, throttle.
    Interventions,
    /// A proof on a GPU, from its witness on.
    Device,
    /// A proof on a GPU of a made-up circuit that fills a domain of 2^LOG2.
    DeviceShape,
    /// As many proofs as --runs on a GPU by two workers: how busy it is, and which
    /// resources grow.
    DeviceLoad,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// The stage to measure.
    #[arg(value_enum)]
    pub(crate) stage: BenchStage,
    /// The circuit's kind, for stages that have one.
    #[arg(long, default_value_t = ProofKind::WindowPost)]
    pub(crate) kind: ProofKind,
    /// The circuit's sector size. 2KiB has a bundled request. Witnesses, and proofs of
    /// one partition, are measured at other sizes too, over a made-up sector. The
    /// parameters of other sizes must exist.
    #[arg(long, default_value_t = SectorSize::KiB2)]
    pub(crate) sector_size: SectorSize,
    /// The base-2 logarithm of the length, for transforms, MSMs and sums.
    #[arg(long, value_name = "LOG2", default_value_t = 18, value_parser = clap::value_parser!(u32).range(1..=26))]
    pub(crate) size: u32,
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
    /// This process is an arm of another one.
    #[arg(long, hide = true)]
    pub(crate) child: bool,
}

/// Parses a size: a number of bytes, or a number with a unit.
fn size(text: &str) -> Result<ByteSize, String> {
    let size = text
        .parse()
        .ok()
        .filter(|size: &ByteSize| size.as_u64() > 0);
    // The parser's own error speaks of its internals.
    size.ok_or_else(|| "expected a size such as 2GiB, or a number of bytes".to_owned())
}

/// Parses a number of threads that a configuration accepts; 0 is one for each core.
fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|&number: &usize| u64::try_from(number).is_ok_and(|number| number <= COUNT_MAX))
        .ok_or_else(|| format!("expected a number from 0 to {COUNT_MAX}"))
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

impl Bench {
    /// Returns the circuit that the arguments name.
    pub(crate) fn circuit(&self) -> CircuitId {
        CircuitId {
            kind: self.kind,
            sector_size: self.sector_size,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tune {
    /// Find the best number of threads for the MSM in G2 beside synthesis.
    GpuThreads(TuneGpuThreads),
}

#[derive(Debug, Args)]
pub(crate) struct TuneGpuThreads {
    /// The kind whose bundled request is synthesised: porep, winning-post, window-post or
    /// snap-deals.
    #[arg(long, default_value_t = ProofKind::Porep)]
    pub(crate) kind: ProofKind,
    /// The number of rounds that the medians are taken over; every number of threads has
    /// its turn in each. With fewer than 5, only all cores are recommended.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Draw the measurements into FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}
