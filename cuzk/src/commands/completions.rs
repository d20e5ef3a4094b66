//! `cuzk completions SHELL`

use clap::CommandFactory;
use clap_complete::generate;

use crate::args::{Cli, Completions};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    // It panics where it cannot write.
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "cuzk", &mut script);
    output::print_lines(String::from_utf8_lossy(&script).trim_end())
}
