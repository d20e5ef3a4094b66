//! `cuzk config`: check, show, compare, make and carry over configurations.
//!
//! Not the configuration, which is `cuzk-core`'s. The invariant: a file that a command writes
//! is one that `cuzk config check` accepts on this machine, or a note in it says what is missing.

mod diff;
mod import;
mod init;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cuzk_core::Config;
use cuzk_core::config::place_problems;
use cuzk_core::error::ErrorCode;

use crate::failure::Failure;
use crate::output::{self, shown};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the configuration that a file resolves to, or every error in it. Without
    /// FILE it is the file of --config, and without both it is the defaults. Files and
    /// folders that the configuration names are looked at, too.
    Check(ConfigFile),
    /// Print the keys whose values differ from the defaults on this machine.
    Diff(ConfigFile),
    /// Look at this machine and write a configuration for it, with every key explained.
    Init(init::ConfigInit),
    /// Print our form of a configuration of the existing daemon, and name each key that has
    /// no counterpart.
    Import(import::ConfigImport),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// The configuration file, if --config does not name it.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

impl ConfigFile {
    /// Returns the file; none for the defaults. `given` is the file that `--config` names.
    fn path<'a>(&'a self, given: Option<&'a Path>) -> Result<Option<&'a Path>, Failure> {
        match (self.file.as_deref(), given) {
            (Some(file), Some(given)) => Err(Failure::input(format!(
                "--config {} and {} are two files; give one",
                shown(given),
                shown(file)
            ))),
            (file, given) => Ok(file.or(given)),
        }
    }
}

/// `given` is the file that `--config` names.
pub(crate) fn run(
    command: &ConfigCommand,
    given: Option<&Path>,
    json: bool,
) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check(args) => check(args.path(given)?, json),
        ConfigCommand::Diff(args) => diff::run(args.path(given)?, json),
        ConfigCommand::Init(args) => init::run(args, json),
        ConfigCommand::Import(args) => import::run(args, json),
    }
}

fn load(file: Option<&Path>) -> Result<Config, Failure> {
    match file {
        Some(file) => Ok(Config::load(file)?),
        None => Ok(Config::default()),
    }
}

fn check(file: Option<&Path>, json: bool) -> Result<(), Failure> {
    let config = load(file)?;
    check_places(&config, file)?;
    output::print(json, &config, |config| {
        config.to_toml().trim_end().to_owned()
    })
}

/// Checks the files and folders that a configuration names, and who may call.
fn check_places(config: &Config, file: Option<&Path>) -> Result<(), Failure> {
    let mut problems: Vec<_> = place_problems(config)
        .iter()
        .map(ToString::to_string)
        .collect();
    if problems.is_empty() {
        problems = cuzk_server::check::problems(config);
    }
    if problems.is_empty() {
        return Ok(());
    }
    let origin = file.map_or_else(|| "of the defaults".to_owned(), shown);
    let lines: Vec<_> = problems
        .iter()
        .map(|problem| format!("\n  {problem}"))
        .collect();
    let message = format!(
        "configuration {origin} is not usable on this machine:{}",
        lines.concat()
    );
    Err(Failure::new(ErrorCode::Configuration, message))
}
