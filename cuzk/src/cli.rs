//! The command line, as the user writes it. Each command has its arguments in its own
//! file. Nothing is read or checked here beyond the shape of each argument.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::bench::Bench;
use crate::commands::aggregate::Aggregate;
use crate::commands::await_::Await;
use crate::commands::cancel::Cancel;
use crate::commands::completions::Completions;
use crate::commands::config::ConfigCommand;
use crate::commands::demo::Demo;
use crate::commands::doctor::Doctor;
use crate::commands::drain::Drain;
use crate::commands::evict::Evict;
use crate::commands::manual::Manual;
use crate::commands::params::Params;
use crate::commands::pce::Pce;
use crate::commands::plan::Plan;
use crate::commands::preload::Preload;
use crate::commands::prove::Prove;
use crate::commands::proxy::ProxyArgs;
use crate::commands::reload::Reload;
use crate::commands::serve::Serve;
use crate::commands::status::Status;
use crate::commands::submit::Submit;
use crate::commands::support_bundle::SupportBundle;
use crate::commands::synth::Synth;
use crate::commands::top::Top;
use crate::commands::tune::Tune;
use crate::commands::vanilla::Vanilla;
use crate::commands::verify::Verify;
use crate::commands::version::Version;
use crate::commands::worker::WorkerArgs;
use crate::sweep::Sweep;

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
    /// Aggregate proofs of replication, and verify the aggregate.
    Aggregate(Aggregate),
    /// Run the engine as a daemon, until Ctrl-C or SIGTERM.
    Serve(Serve),
    /// Prove the partitions of daemons in a cluster, until Ctrl-C or SIGTERM.
    Worker(WorkerArgs),
    /// Have a daemon prove a request, and wait for the proof.
    Submit(Submit),
    /// Wait for a job of a daemon, and write its proof.
    Await(Await),
    /// Print the state of a daemon.
    Status(Status),
    /// Show the state of a daemon, again every second, until Ctrl-C.
    Top(Top),
    /// End jobs of a daemon.
    Cancel(Cancel),
    /// Make a daemon load circuits and parameters before they are needed.
    Preload(Preload),
    /// Make a daemon free the memory of circuits and parameters that nothing uses.
    Evict(Evict),
    /// Make a daemon finish what runs, and keep new PoRep and SnapDeals for later.
    Drain(Drain),
    /// Make a daemon read its configuration again.
    Reload(Reload),
    /// Fetch, make and check Groth16 parameters.
    #[command(subcommand)]
    Params(Params),
    /// Make a request: small sectors are sealed, large ones are sparse.
    Vanilla(Vanilla),
    /// Compile circuits and look into compiled ones.
    #[command(subcommand)]
    Pce(Pce),
    /// Compute the witness and the constraint evaluations of one partition.
    Synth(Synth),
    /// Give a client without TLS a unix socket, and take its calls to a daemon over TLS.
    Proxy(ProxyArgs),
    /// Check, compare, make and carry over configurations.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look for everything that keeps this machine from proving, or from proving well.
    Doctor(Doctor),
    /// Collect what a person who helps must see, without secrets and miner ids.
    SupportBundle(SupportBundle),
    /// Print the version; with --verbose the features, the kernels and the machine, too.
    Version(Version),
    /// Print the completions of this command line for a shell.
    Completions(Completions),
    /// Write the manual pages of this command line into a folder.
    Manual(Manual),
    /// Measure a stage and its peer, alternating, in one run.
    Bench(Bench),
    /// Say what machines will do, by simulation of their pipeline.
    Plan(Plan),
    /// Measure the whole engine under c proofs with j in flight, with each intervention.
    Sweep(Sweep),
    /// Measure this machine, and print the line to configure.
    #[command(subcommand)]
    Tune(Tune),
}

impl Command {
    /// Returns true if the command computes on pools of threads as an engine does, and does not
    /// look at the address space by itself. It names each command, so that a new one is decided
    /// here.
    pub(crate) fn starts_pools(&self) -> bool {
        match self {
            Self::Demo(_)
            | Self::Prove(_)
            | Self::Verify(_)
            | Self::Aggregate(_)
            | Self::Params(_)
            | Self::Vanilla(_)
            | Self::Pce(_)
            | Self::Synth(_)
            | Self::Bench(_)
            | Self::Sweep(_)
            | Self::Tune(_) => true,
            Self::Plan(plan) => plan.proves(),
            // They look before their first thread, in whichever program they are.
            Self::Serve(_) | Self::Worker(_) => false,
            Self::Submit(_)
            | Self::Await(_)
            | Self::Status(_)
            | Self::Top(_)
            | Self::Cancel(_)
            | Self::Preload(_)
            | Self::Evict(_)
            | Self::Drain(_)
            | Self::Reload(_)
            | Self::Proxy(_)
            | Self::Config(_)
            | Self::Doctor(_)
            | Self::SupportBundle(_)
            | Self::Version(_)
            | Self::Completions(_)
            | Self::Manual(_) => false,
        }
    }
}
