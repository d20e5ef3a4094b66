//! The command line of the cuzk proving engine.
//!
//! Not the engine: every command is a thin layer over `cuzk-core`. The invariants:
//!
//! * Results go to standard output and everything else to standard error.
//! * With `--json` a failure is reported in place of its result.
//! * The exit code is 0 for success, 2 for bad input and 1 for a failure. It is 128 plus the
//!   signal's number if a signal ended the command. Of several failures the highest counts.

#![forbid(unsafe_code)]

mod bench;
mod circuit_args;
mod cli;
mod commands;
mod failure;
mod failure_report;
mod in_flight;
mod interrupt;
mod logging;
mod machine;
mod memory;
mod output;
mod output_path;
mod progress;
mod shown;
mod signal;
mod sweep;
mod threads;
mod timeline;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};
use crate::commands::Context;
use crate::commands::tune::Tune;
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => usage(&error),
    };
    let json = cli.json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure_report::say(&failure);
            if json {
                failure_report::report(&failure);
            }
            failure.exit_code()
        }
    }
}

/// Ends the process if the arguments are wrong, or ask for help.
fn usage(error: &clap::Error) -> ! {
    let json = std::env::args_os().any(|argument| argument == "--json");
    // The parser writes an argument as it is.
    let written = error.render().to_string();
    let text = shown::without_users(&written);
    if error.use_stderr() && json {
        let problem = text.split("\n\n").next().unwrap_or_default();
        let failure = Failure::of_parser(problem.trim_start_matches("error: ").trim_end());
        failure_report::report(&failure);
    }
    if error.use_stderr() && (text != written || text.contains(shown::turns)) {
        output::say(text.trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

fn run(cli: Cli) -> Result<(), Failure> {
    match &cli.command {
        // These report every error of a file by themselves, or need none, so they come before
        // the configuration is loaded.
        Command::Config(command) => {
            return commands::config::run(command, cli.config.as_deref(), cli.json);
        }
        Command::Doctor(args) => {
            return commands::doctor::run(args, cli.config.as_deref(), cli.json);
        }
        Command::SupportBundle(args) => {
            return commands::support_bundle::run(args, cli.config.as_deref(), cli.json);
        }
        Command::Version(args) => return commands::version::run(args, cli.json),
        Command::Completions(args) => return commands::completions::run(args, Cli::command()),
        Command::Manual(args) => return commands::manual::run(args, Cli::command()),
        _ => {}
    }
    let context = Context::new(cli.config.as_deref(), cli.json)?;
    if cli.command.starts_pools() {
        context.check_address_space()?;
    }
    match cli.command {
        Command::Demo(args) => commands::demo::run(&context, &args),
        Command::Prove(args) => commands::prove::run(&context, &args),
        Command::Verify(args) => commands::verify::run(&context, &args),
        Command::Aggregate(args) => commands::aggregate::run(&context, &args),
        Command::Serve(args) => commands::serve::run(&context, &args, cli.config),
        Command::Worker(args) => commands::worker::run(&context, &args),
        Command::Submit(args) => commands::submit::run(&context, &args),
        Command::Await(args) => commands::await_::run(&context, &args),
        Command::Status(args) => commands::status::run(&context, &args),
        Command::Top(args) => commands::top::run(&context, &args),
        Command::Cancel(args) => commands::cancel::run(&context, &args),
        Command::Preload(args) => commands::preload::run(&context, &args),
        Command::Evict(args) => commands::evict::run(&context, &args),
        Command::Drain(args) => commands::drain::run(&context, &args),
        Command::Reload(args) => commands::reload::run(&context, &args),
        Command::Params(args) => commands::params::run(&context, &args),
        Command::Vanilla(args) => commands::vanilla::run(&context, &args),
        Command::Pce(args) => commands::pce::run(&context, &args),
        Command::Synth(args) => commands::synth::run(&context, &args),
        Command::Plan(args) => commands::plan::run(&context, &args),
        Command::Proxy(args) => commands::proxy::run(&context, args),
        // They came before the configuration.
        Command::Config(_)
        | Command::Doctor(_)
        | Command::SupportBundle(_)
        | Command::Version(_)
        | Command::Completions(_)
        | Command::Manual(_) => Ok(()),
        Command::Bench(args) => bench::run(&context, &args),
        Command::Sweep(args) => sweep::run(&context, &args),
        Command::Tune(Tune::GpuThreads(args)) => commands::tune::gpu_threads(&context, &args),
    }
}
