//! The whole engine with each intervention's key turned on alone: its proofs a second, and
//! the times of the parts.
//!
//! The number of gpu_threads is decided once per process. So each arm is a child process
//! with an engine of its own, which waits for its turn. All arms have their turn in every
//! round, in rotating order. Ratios are taken within a round, so that a slow minute of the
//! machine is slow for all arms.

mod arm;
mod child;
mod report;

use cuzk_filecoin::{CircuitId, SectorSize};
use cuzk_tune::machine::Host;

use self::arm::Arm;
use self::child::{Measured, answer};
use self::report::Report;
use super::circuit::bundled_job;
use crate::bench::args::Bench;
use crate::commands::Context;
use crate::commands::params::ensure_parameters;
use crate::failure::Failure;
use crate::output;
use crate::output_path::OutputPath;
use crate::progress::Doing;

/// Measures, or answers the questions of the process that does.
pub(super) fn run(context: &Context, args: &Bench, host: &Host) -> Result<(), Failure> {
    if args.child {
        return answer(context, args);
    }
    bundled_job(args)?;
    if args.svg.is_some() && args.threads.len() > 1 {
        return Err(Failure::input(
            "--svg: a picture is of one number of threads; give one with --threads",
        ));
    }
    let svg = args.svg.as_deref().map(OutputPath::new).transpose()?;
    let id = CircuitId {
        kind: args.kind(),
        sector_size: SectorSize::KiB2,
    };
    ensure_parameters(context, id)?;
    let doing = Doing::begin("starting an engine for each arm");
    let mut arms = Vec::new();
    for arm in Arm::all(&context.config, args) {
        arms.push(Measured::start(arm, args)?);
    }
    for round in 1..=args.runs {
        doing.now(&format!("round {round} of {}", args.runs));
        for (at, &in_flight) in args.in_flight.iter().enumerate() {
            for turn in 0..arms.len() {
                let turn = (round as usize + at + turn) % arms.len();
                arms[turn].sample(at, in_flight)?;
            }
        }
    }
    drop(doing);
    let report = Report::new(context, args, host, &arms)
        .ok_or_else(|| Failure::failed("nothing was measured"))?;
    let is_stdout = svg.as_ref().is_some_and(OutputPath::is_stdout);
    let printed = output::print_beside(is_stdout, context.json, &report, Report::text);
    // The report is useful without the drawing, and the drawing without the report.
    let drawn = svg.map_or(Ok(()), |svg| svg.write(report.svg()?.as_bytes()));
    printed.and(drawn).map_err(Failure::reported)
}
