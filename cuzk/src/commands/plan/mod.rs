//! `cuzk plan`: predicts what machines will do, by simulation.
//!
//! Not the model, which is `cuzk-plan`: this reads files, measures costs and prints
//! results.

mod calibrate;
mod check;
mod disturbance;
mod report;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cuzk_filecoin::ProofKind;
use cuzk_plan::kind::Kind;
use cuzk_plan::load::Load;
use cuzk_plan::machine::Machine;
use cuzk_plan::picture;
use cuzk_plan::report::Report;
use cuzk_plan::seed;

use self::calibrate::Calibrate;
use self::check::Check;
use super::Context;
use crate::failure::{Failure, failed};
use crate::output;
use crate::output_path::OutputPath;

/// The largest description that is read.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// The kinds of proofs, as the engine and as the model know them.
const KINDS: [(ProofKind, Kind); 4] = [
    (ProofKind::Porep, Kind::Porep),
    (ProofKind::SnapDeals, Kind::SnapDeals),
    (ProofKind::WindowPost, Kind::WindowPost),
    (ProofKind::WinningPost, Kind::WinningPost),
];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Plan {
    /// The description of the machine. configs/machines has examples.
    #[arg(long, value_name = "FILE", required_unless_present = "check_seed")]
    pub(crate) machine: Option<PathBuf>,
    /// The load: proofs a day of each kind, deadlines and the number of machines.
    /// configs/loads has examples. Without it, only capacities are computed.
    #[arg(long, value_name = "FILE", requires = "machine")]
    pub(crate) load: Option<PathBuf>,
    /// Draw the throughput over the number of partition workers into FILE.
    #[arg(long, value_name = "FILE", requires = "machine")]
    pub(crate) svg: Option<PathBuf>,
    /// Compare the model with the published measurements of another engine, and print an
    /// object for each point.
    #[arg(long, conflicts_with = "machine")]
    pub(crate) check_seed: bool,
    #[command(subcommand)]
    pub(crate) command: Option<PlanCommand>,
}

impl Plan {
    /// Returns true if proofs are made on this machine. A prediction makes none.
    pub(crate) fn proves(&self) -> bool {
        match self.command {
            Some(PlanCommand::Calibrate(_) | PlanCommand::Check(_)) => true,
            None => false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Measure the costs of proofs on this machine, and write its description.
    Calibrate(Calibrate),
    /// Prove on this machine, and compare it with what the model predicts from its description.
    Check(Check),
}

pub(crate) fn run(context: &Context, args: &Plan) -> Result<(), Failure> {
    match (&args.command, &args.machine) {
        (Some(PlanCommand::Calibrate(args)), _) => calibrate::run(context, args),
        (Some(PlanCommand::Check(args)), _) => check::run(context, args),
        (None, Some(machine)) => plan(context, machine, args),
        (None, None) => check_seed(context),
    }
}

fn plan(context: &Context, machine: &Path, args: &Plan) -> Result<(), Failure> {
    let svg = args.svg.as_deref().map(OutputPath::new).transpose()?;
    let (name, text) = read(machine)?;
    let machine = Machine::parse(&name, &text).map_err(input)?;
    let load = match &args.load {
        Some(path) => {
            let (name, text) = read(path)?;
            Some(Load::parse(&name, &text).map_err(input)?)
        }
        None => None,
    };
    let report = Report::new(&machine, load.as_ref()).map_err(input)?;
    let is_stdout = svg.as_ref().is_some_and(OutputPath::is_stdout);
    output::print_beside(is_stdout, context.json, &report, report::text)?;
    if let Some(svg) = svg {
        let size = load.map_or(cuzk_plan::kind::SectorSize::GiB32, |load| load.sector_size);
        let drawn = picture::svg(&machine, size).map_err(input)?;
        svg.write(drawn.as_bytes())?;
    }
    Ok(())
}

fn input(error: impl std::fmt::Display) -> Failure {
    Failure::input(error.to_string())
}

/// Returns the name and the text of a description.
fn read(path: &Path) -> Result<(String, String), Failure> {
    let name = output::shown(path);
    let bytes = super::read(path, FILE_MAX_BYTES)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| Failure::input(format!("{name}: {error}; write it in UTF-8")))?;
    Ok((name, text))
}

fn check_seed(context: &Context) -> Result<(), Failure> {
    let machine = Machine::parse("seed-7995wx.toml", seed::MACHINE).map_err(failed)?;
    let points = seed::check(&machine).map_err(failed)?;
    if context.json {
        let print = |point| output::print(true, point, |_| String::new());
        return points.iter().try_for_each(print);
    }
    output::print_lines(&report::seed_text(&points))
}
