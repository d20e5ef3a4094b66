//! `cuzk config check [FILE]`

use std::path::Path;

use cuzk_core::Config;

use crate::args::ConfigCommand;
use crate::failure::Failure;
use crate::output;

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
