//! `cuzk manual FOLDER`

use std::path::PathBuf;

use clap::{Args, Command};
use cuzk_core::error::ErrorCode;

use crate::failure::Failure;
use crate::shown::shown;

#[derive(Debug, Args)]
pub(crate) struct Manual {
    /// The folder for the pages. It must exist.
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// Writes a manual page for `cli` and for each of its commands.
pub(crate) fn run(args: &Manual, cli: Command) -> Result<(), Failure> {
    if !args.folder.is_dir() {
        let message = format!("{}: no such folder; make it first", shown(&args.folder));
        return Err(Failure::new(ErrorCode::File, message));
    }
    let cli = cli.disable_help_subcommand(true);
    let written = clap_mangen::generate_to(cli, &args.folder);
    written.map_err(|error| Failure::file(&args.folder, &error))
}
