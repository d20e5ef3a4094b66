//! `cuzk config check [FILE]`

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cuzk_core::Config;

use crate::failure::Failure;
use crate::output;

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

/// `given` is the file that `--config` names.
pub(crate) fn run(
    command: &ConfigCommand,
    given: Option<&Path>,
    json: bool,
) -> Result<(), Failure> {
    let ConfigCommand::Check(args) = command;
    let file = match (args.file.as_deref(), given) {
        (Some(file), Some(given)) => {
            return Err(Failure::input(format!(
                "--config {} and {} are two files to check; give one",
                given.display(),
                file.display()
            )));
        }
        (file, given) => file.or(given),
    };
    let config = match file {
        Some(file) => Config::load(file).map_err(cuzk_core::Error::from)?,
        None => Config::default(),
    };
    output::print(json, &config, |config| {
        config.to_toml().trim_end().to_owned()
    })
}
