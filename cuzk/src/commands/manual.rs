//! `cuzk manual FOLDER`

use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Manual {
    /// The folder for the pages. It must exist.
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// Writes a manual page for `cli` and for each of its commands.
pub(crate) fn run(args: &Manual, cli: Command) -> Result<(), Failure> {
    let cli = cli.disable_help_subcommand(true);
    let written = clap_mangen::generate_to(cli, &args.folder);
    written.map_err(|error| Failure::file(&args.folder, &error))
}
