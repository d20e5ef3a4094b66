//! The children: each is a process with the engine of one arm.

use std::env;
use std::process::Command;

use cuzk_tune::child::{self, Child};

use super::arm::{Arm, Running, Sample};
use crate::bench::args::Bench;
use crate::commands::Context;
use crate::failure::{Failure, failed};

/// An arm's child, and its answers.
pub(super) struct Measured {
    pub(super) arm: Arm,
    child: Child,
    /// By number of proofs in flight, then by round.
    pub(super) samples: Vec<Vec<Sample>>,
}

impl Measured {
    /// Starts the arm's process; its engine has proved once when this returns.
    pub(super) fn start(arm: Arm, args: &Bench) -> Result<Self, Failure> {
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

    /// Asks for one more sample of the number of proofs in flight at place `at`.
    pub(super) fn sample(&mut self, at: usize, in_flight: usize) -> Result<(), Failure> {
        let answer = self.child.ask(&in_flight.to_string()).map_err(failed)?;
        let sample = serde_json::from_str(&answer).map_err(failed)?;
        self.samples[at].push(sample);
        Ok(())
    }
}

/// Runs as the child. The first line is its arm. Each other line is a number of proofs in
/// flight, and is answered with a sample.
pub(super) fn answer(context: &Context, args: &Bench) -> Result<(), Failure> {
    let mut engine = None;
    let served: Result<(), Served> = child::serve(|line| match &mut engine {
        None => {
            let arm: Arm = serde_json::from_str(line).map_err(failed)?;
            engine = Some(Running::start(&arm, context, args)?);
            Ok("started".to_owned())
        }
        Some(engine) => {
            let sample = engine.sample(line.parse().map_err(failed)?)?;
            Ok(serde_json::to_string(&sample).map_err(failed)?)
        }
    });
    served.map_err(|Served(failure)| failure)
}

/// The reason for which a child stopped serving.
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
