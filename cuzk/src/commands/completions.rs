//! `cuzk completions SHELL`

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell that completes.
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Prints the completions of `cli`.
pub(crate) fn run(args: &Completions, mut cli: Command) -> Result<(), Failure> {
    // Written to memory first, because `generate` panics if it cannot write.
    let mut script = Vec::new();
    generate(args.shell, &mut cli, "cuzk", &mut script);
    output::print_lines(String::from_utf8_lossy(&script).trim_end())
}
