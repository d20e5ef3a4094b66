//! The whole program beside the parts: proofs a second of the engine with each
//! intervention's key turned on alone, and what the parts took meanwhile.
//!
//! The number of gpu_threads is decided once a process. So each arm is a child process
//! with an engine of its own, which waits for its turn. All arms have their turn in every
//! round, in rotating order. Ratios are taken within a round, so that a slow minute of the
//! machine is slow for all arms.

mod arm;
mod report;

use std::env;
use std::process::Command;

use cuzk_filecoin::{CircuitId, SectorSize};
use cuzk_tune::child::{self, Child};

use self::arm::{Arm, Sample};
use self::report::Report;
use super::circuit::bundled_job;
use crate::args::Bench;
use crate::commands::Context;
use crate::commands::params::ensure_parameters;
use crate::failure::Failure;
use crate::place::Place;
use crate::{output, progress};

/// Measures, or answers the questions of the process that does.
pub(super) fn run(context: &Context, args: &Bench) -> Result<(), Failure> {
    if args.child {
        return answer(context, args);
    }
    bundled_job(args)?;
    if args.svg.is_some() && args.threads.len() > 1 {
        return Err(Failure::input("--svg: with one number of --threads only"));
    }
    let svg = args.svg.as_deref().map(Place::new).transpose()?;
    let id = CircuitId {
        kind: args.kind,
        sector_size: SectorSize::KiB2,
    };
    ensure_parameters(context, id, 0, false)?;
    let spinner = progress::spinner("starting an engine for each arm");
    let mut arms = Vec::new();
    for arm in Arm::all(&context.config, args) {
        arms.push(Measured::start(arm, args)?);
    }
    for round in 1..=args.runs {
        spinner.set_message(format!("round {round} of {}", args.runs));
        for (at, &in_flight) in args.in_flight.iter().enumerate() {
            for turn in 0..arms.len() {
                let turn = (round as usize + at + turn) % arms.len();
                arms[turn].sample(at, in_flight)?;
            }
        }
    }
    spinner.finish_and_clear();
    let report =
        Report::new(context, args, &arms).ok_or_else(|| Failure::failed("nothing was measured"))?;
    let is_stdout = svg.as_ref().is_some_and(Place::is_stdout);
    let printed = output::print_beside(is_stdout, context.json, &report, Report::text);
    // Either is of use without the other.
    let drawn = svg.map_or(Ok(()), |svg| svg.write(report.svg()?.as_bytes()));
    printed.and(drawn).map_err(Failure::reported)
}

/// An arm's child, and what it answered.
struct Measured {
    arm: Arm,
    child: Child,
    /// By number of proofs in flight, then by round.
    samples: Vec<Vec<Sample>>,
}

impl Measured {
    /// Starts the arm's process; its engine has proved once when this returns.
    fn start(arm: Arm, args: &Bench) -> Result<Self, Failure> {
        let mut command = Command::new(env::current_exe().map_err(failed)?);
        // The same arguments say the same configuration and the same work.
        command.args(env::args_os().skip(1)).arg("--child");
        let mut measured = Self {
            arm,
            child: Child::start(&mut command).map_err(failed)?,
            samples: vec![Vec::new(); args.in_flight.len()],
        };
        let setup = serde_json::to_string(&measured.arm).map_err(failed)?;
        measured.child.ask(&setup).map_err(failed)?;
        Ok(measured)
    }

    fn sample(&mut self, at: usize, in_flight: usize) -> Result<(), Failure> {
        let answer = self.child.ask(&in_flight.to_string()).map_err(failed)?;
        let sample = serde_json::from_str(&answer).map_err(failed)?;
        self.samples[at].push(sample);
        Ok(())
    }
}

/// The child: the first line is its arm, each other one a number of proofs in
/// flight, answered with a sample.
fn answer(context: &Context, args: &Bench) -> Result<(), Failure> {
    let mut engine = None;
    let served: Result<(), Served> = child::serve(|line| match &mut engine {
        None => {
            let arm: Arm = serde_json::from_str(line).map_err(failed)?;
            engine = Some(arm::Running::start(&arm, context, args)?);
            Ok("started".to_owned())
        }
        Some(engine) => {
            let sample = engine.sample(line.parse().map_err(failed)?)?;
            Ok(serde_json::to_string(&sample).map_err(failed)?)
        }
    });
    served.map_err(|Served(failure)| failure)
}

/// Why a child stopped serving.
struct Served(Failure);

impl From<std::io::Error> for Served {
    fn from(error: std::io::Error) -> Self {
        Self(failed(error))
    }
}

impl From<Failure> for Served {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}
