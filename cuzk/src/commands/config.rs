//! `cuzk config check FILE`

use cuzk_core::Config;

use crate::args::ConfigCommand;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(command: &ConfigCommand, json: bool) -> Result<(), Failure> {
    let ConfigCommand::Check(args) = command;
    let config = Config::load(&args.file).map_err(cuzk_core::Error::from)?;
    output::print(json, &config, |config| {
        config.to_toml().trim_end().to_owned()
    })
}
