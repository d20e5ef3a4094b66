//! The command line, as the user writes it. Each command has its arguments in its own
//! file. Nothing is read or checked here beyond the shape of each argument.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::bench::Bench;
use crate::commands::completions::Completions;
use crate::commands::config::ConfigCommand;
use crate::commands::demo::Demo;
use crate::commands::params::Params;
use crate::commands::pce::Pce;
use crate::commands::prove::Prove;
use crate::commands::synth::Synth;
use crate::commands::tune::Tune;
use crate::commands::vanilla::Vanilla;
use crate::commands::verify::Verify;

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
