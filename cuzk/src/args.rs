//! The command line, as the user writes it.
//!
//! Nothing is read or checked here beyond the shape of each argument.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use cuzk_core::config::COUNT_MAX;
use cuzk_core::kinds::{CircuitId, ProofKind, SectorSize};
use cuzk_core::params::LIMIT_BYTES;
use cuzk_core::scheduler::priority::Priority;

use crate::commands::timeline::TimelineFile;

/// What was built: the version, and what the build's features add.
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
    /// Print JSON instead of text: one object, and where there are several results, as of
    /// several requests, one object a line. What fails has an object with `error` and
    /// `exit_code` in the place of its result.
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
    /// Print what completes this command line in a shell.
    Completions(Completions),
    /// Measure a stage and its peer, alternating, in one run.
    Bench(Bench),
    /// Measure what this machine wants, and print the configuration's line for it.
    #[command(subcommand)]
    Tune(Tune),
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// What to prove: porep, winning-post, window-post or snap-deals.
    #[arg(long, default_value_t = ProofKind::Porep)]
    pub(crate) kind: ProofKind,
    /// Keep the proof in FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write when everything ran into FILE: .svg is a waterfall with the devices'
    /// idle gaps, .json a trace for Perfetto.
    #[arg(long, value_name = "FILE", value_parser = TimelineFile::parser())]
    pub(crate) timeline: Option<TimelineFile>,
}

#[derive(Debug, Args)]
pub(crate) struct Prove {
    /// A request, a bare C1 output or a C1 wrapper, as JSON. Several are proved by
    /// one engine, side by side; what is wrong with one keeps no other from its proof, and
    /// the exit code is then the highest of all.
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) request: Vec<PathBuf>,
    /// Where the proof goes, as the raw bytes that the chain expects; one for each
    /// request, in the same order. Reports go to standard error where one is /dev/stdout.
    #[arg(long, value_name = "PROOF", required = true)]
    pub(crate) out: Vec<PathBuf>,
    /// What the job is called, one for each request or none: with a journal in the
    /// configuration a command that was interrupted (by SIGINT or SIGTERM, which it
    /// answers within ten seconds, or by anything else), given again, goes on with
    /// what is missing.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Vec<String>,
    /// How urgent all of it is: critical, high, normal or low. By the kind where
    /// nothing is said.
    #[arg(long)]
    pub(crate) priority: Option<Priority>,
    /// After so many seconds the proofs are of no use: what has not begun then is
    /// not proved any more.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) deadline_s: Option<u64>,
    /// Write when everything ran into FILE: .svg is a waterfall with the devices'
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
    /// Check every point of the parameters in the cache, the key and both queries over
    /// B against each other, and that the lengths are the circuit's.
    Verify(ParamsVerify),
    /// Compute multiples of the parameters' points and keep them beside the
    /// parameters, so that proofs on the CPU take less time. Worth it for PoSts.
    Prepare(ParamsPrepare),
}

#[derive(Debug, Args)]
pub(crate) struct ParamsPrepare {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The most that the file may take, on the disk and in memory; fewer multiples
    /// are kept where it is short.
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
    /// Needed for 512MiB and larger, where real parameters have the same name.
    #[arg(long)]
    pub(crate) i_know_these_are_insecure: bool,
}

/// Which circuit.
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
    /// Where the request goes.
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
    /// Check a compiled circuit's file and say what is in it.
    Inspect(PceInspect),
}

#[derive(Debug, Args)]
pub(crate) struct PceBuild {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// Where the compiled circuit goes.
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
    /// FILE it is that of --config, and without both the defaults.
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
    /// Whose completions.
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
    /// The sum of a random half of 2^LOG2 points in G1, as of a witness's ones.
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
    /// The same of a made-up circuit that fills a domain of 2^LOG2.
    DeviceShape,
    /// As many proofs as --runs on a GPU by two workers: how busy it is, and what
    /// grows.
    DeviceLoad,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// What to measure.
    #[arg(value_enum)]
    pub(crate) stage: BenchStage,
    /// The circuit's kind, for stages that have one.
    #[arg(long, default_value_t = ProofKind::WindowPost)]
    pub(crate) kind: ProofKind,
    /// The circuit's sector size. 2KiB has a bundled request; witnesses, and proofs of
    /// one partition, are measured at other sizes too, over a made-up sector. The
    /// parameters of other sizes must be there.
    #[arg(long, default_value_t = SectorSize::KiB2)]
    pub(crate) sector_size: SectorSize,
    /// The base-2 logarithm of the length, for transforms and sums.
    #[arg(long, value_name = "LOG2", default_value_t = 18, value_parser = clap::value_parser!(u32).range(1..=26))]
    pub(crate) size: u32,
    /// How many threads to use; 0 is one for each core. Of several numbers, as in
    /// 1,2, each is measured, and how much faster it is than the first; proofs are urgent
    /// ones then, which stay on these threads.
    #[arg(long, value_delimiter = ',', default_values_t = [0], value_parser = threads)]
    pub(crate) threads: Vec<usize>,
    /// How many alternating runs the medians are taken over.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// How many proofs are in flight, for interventions. Of several numbers each is
    /// measured.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4], value_parser = in_flight)]
    pub(crate) in_flight: Vec<usize>,
    /// What to set gpu_threads to where it is on alone, for interventions. Of
    /// several numbers each is an arm; half of the cores if there is none.
    #[arg(long, value_name = "THREADS", value_delimiter = ',', value_parser = threads)]
    pub(crate) gpu_threads: Vec<usize>,
    /// Draw what interventions measured into FILE; no other stage draws.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// This process is an arm of another one.
    #[arg(long, hide = true)]
    pub(crate) child: bool,
}

/// A size: a number of bytes, or with a unit.
fn size(text: &str) -> Result<ByteSize, String> {
    let size = text
        .parse()
        .ok()
        .filter(|size: &ByteSize| size.as_u64() > 0);
    // The parser's own words are of its inside.
    size.ok_or_else(|| "expected a size such as 2GiB, or a number of bytes".to_owned())
}

/// As many threads as a configuration takes; 0 is one for each core.
fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|&number: &usize| u64::try_from(number).is_ok_and(|number| number <= COUNT_MAX))
        .ok_or_else(|| format!("expected a number from 0 to {COUNT_MAX}"))
}

/// Callers of an engine: more than it has room for would measure its refusals.
fn in_flight(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|error| format!("{error}"))?;
    match number {
        1..=100 => Ok(number),
        _ => Err("expected a number from 1 to 100".to_owned()),
    }
}

impl Bench {
    /// The circuit that is asked for.
    pub(crate) fn circuit(&self) -> CircuitId {
        CircuitId {
            kind: self.kind,
            sector_size: self.sector_size,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tune {
    /// How many threads the sum in G2 should have beside synthesis.
    GpuThreads(TuneGpuThreads),
}

#[derive(Debug, Args)]
pub(crate) struct TuneGpuThreads {
    /// Whose bundled request is synthesised: porep, winning-post, window-post or
    /// snap-deals.
    #[arg(long, default_value_t = ProofKind::Porep)]
    pub(crate) kind: ProofKind,
    /// How many rounds the medians are taken over; every number of threads has
    /// its turn in each. With fewer than 5 nothing but all cores is recommended.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Draw the measurements into FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}
