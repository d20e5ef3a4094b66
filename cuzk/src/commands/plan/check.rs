//! `cuzk plan check`: the model's predictions beside this machine's proofs.
//!
//! It calibrates nothing, so that a description is held to work that it was not made from. It
//! proves the bundled requests with several proofs in flight, by the engine as it is
//! configured. The invariants:
//!
//! * The model simulates as many proofs in flight as were proved.
//! * The engine computes with the instructions that the description's costs are of.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use cuzk_core::Engine;
use cuzk_core::job::JobOptions;
use cuzk_core::scheduler::priority::Priority;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_plan::capacity::closed;
use cuzk_plan::kind;
use cuzk_plan::machine::{Instructions, Machine};
use cuzk_tune::machine::Host;
use cuzk_tune::others::Others;
use serde::Serialize;

use super::calibrate::instructions;
use super::disturbance::reasons;
use super::report::{line, percent};
use super::{Context, KINDS, input, read};
use crate::commands::demo::bundled_request;
use crate::commands::for_one_command;
use crate::commands::params::ensure_parameters;
use crate::failure::Failure;
use crate::in_flight::in_flight;
use crate::machine::OnMachine;
use crate::output;
use crate::progress::Doing;

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The description of this machine, which `cuzk plan calibrate` writes.
    #[arg(long, value_name = "FILE")]
    pub(crate) machine: PathBuf,
    /// The kinds of proofs. Default: all four.
    #[arg(long, value_delimiter = ',')]
    pub(crate) kind: Vec<ProofKind>,
    /// The number of proofs of a measurement.
    #[arg(long, value_name = "PROOFS", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) c: u32,
    /// The number of proofs in flight. Several numbers are all measured.
    #[arg(long, value_name = "PROOFS", value_delimiter = ',', default_value = "1,2,4",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) j: Vec<u32>,
    /// The number of rounds. Each measurement has its turn in every round, and its median
    /// counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
}

/// A prediction and the measurement that belongs to it.
#[derive(Debug, Serialize)]
struct Row {
    kind: &'static str,
    c: u32,
    j: u32,
    /// The wall time a proof, in seconds: the median of the rounds.
    measured_s: f64,
    /// The least and the most of the rounds, in seconds.
    measured_range_s: [f64; 2],
    /// The same, as the model predicts it.
    model_s: f64,
    /// The prediction over the measurement, less 1.
    difference: f64,
}

pub(super) fn run(context: &Context, args: &Check) -> Result<(), Failure> {
    let (name, described) = read(&args.machine)?;
    let machine = Machine::parse(&name, &described).map_err(input)?;
    check_instructions(
        &name,
        machine.cpu.isa,
        instructions(context.config.cpu.isa)?,
    )?;
    let kinds = KINDS
        .iter()
        .filter(|(kind, _)| args.kind.is_empty() || args.kind.contains(kind));
    let kinds: Vec<_> = kinds.copied().collect();
    let doing = Doing::begin("getting parameters");
    for (kind, _) in &kinds {
        let circuit = CircuitId {
            kind: *kind,
            sector_size: SectorSize::KiB2,
        };
        ensure_parameters(context, circuit)?;
    }
    let mut config = context.config.clone();
    // As `cuzk plan calibrate` has it.
    config.srs.multiples = Vec::new();
    let engine = for_one_command(Engine::start(config)?);
    let mut seconds = vec![Vec::new(); kinds.len() * args.j.len()];
    let others = Others::begin();
    for round in 1..=args.rounds {
        let mut measured = seconds.iter_mut();
        for (kind, _) in &kinds {
            doing.now(&format!("round {round} of {}: {kind}", args.rounds));
            // The first proof loads the circuit and maps the parameters.
            prove(&engine, *kind, 1, 1)?;
            for (j, measured) in args.j.iter().zip(measured.by_ref()) {
                measured.push(prove(&engine, *kind, args.c, *j)?);
            }
        }
    }
    let others_share = others.share();
    engine.shutdown();
    drop(doing);
    let points = kinds
        .iter()
        .flat_map(|(_, kind)| args.j.iter().map(move |j| (*kind, *j)));
    let mut rows = Vec::new();
    for ((kind, j), measured) in points.zip(seconds) {
        rows.push(row(&machine, kind, (args.c, j), measured)?);
    }
    warn(&rows, machine.others_share, others_share);
    let machine = &Host::read(Path::new("/"), context.config.cpu.isa.name());
    if context.json {
        return rows.iter().try_for_each(|row| {
            output::print(true, &OnMachine { row, machine }, |_| String::new())
        });
    }
    output::print_lines(&format!("{machine}\n{}", text(&rows)))
}

/// Says why predictions are off, if they are. `costs` and `check` are the shares of others while
/// the costs were measured, and while they were checked.
fn warn(rows: &[Row], costs: Option<f64>, check: Option<f64>) {
    let differences = rows.iter().map(|row| row.difference);
    let worst = differences.max_by(|a, b| a.abs().total_cmp(&b.abs()));
    for reason in reasons(worst.unwrap_or(0.0), costs, check) {
        output::say(format_args!("warning: {reason}"));
    }
}

/// Returns an error unless the costs of the file of this name are of the engine's instructions.
fn check_instructions(
    file: &str,
    described: Instructions,
    used: Instructions,
) -> Result<(), Failure> {
    if described == used {
        return Ok(());
    }
    let (described, used) = (described.name(), used.name());
    Err(input(format!(
        "{file}: cpu.isa: the costs are of the instructions {described:?}, and this engine \
         computes with {used:?}; describe this machine with `cuzk plan calibrate`, or write [cpu] \
         isa = {described:?} into the configuration"
    )))
}

/// Makes `c` proofs with `j` in flight, and returns the seconds a proof.
fn prove(engine: &Engine, kind: ProofKind, c: u32, j: u32) -> Result<f64, Failure> {
    let request = bundled_request(kind)?;
    // Priority `normal` for every kind, because critical jobs run one after the other.
    let options = JobOptions {
        priority: Some(Priority::Normal),
        ..JobOptions::default()
    };
    let started = Instant::now();
    in_flight(c as usize, j as usize, || {
        engine.submit_with(&request, options.clone())?.wait()?;
        Ok(())
    })?;
    Ok(started.elapsed().as_secs_f64() / f64::from(c))
}

fn row(
    machine: &Machine,
    kind: kind::Kind,
    (c, j): (u32, u32),
    mut measured: Vec<f64>,
) -> Result<Row, Failure> {
    let proofs = (c as usize, j as usize);
    let outcome = closed(machine, kind, kind::SectorSize::KiB2, proofs).map_err(input)?;
    measured.sort_by(f64::total_cmp);
    let of = |share: usize| measured[(measured.len() - 1) * share / 2];
    let model_s = outcome.s_per_proof();
    Ok(Row {
        kind: kind.name(),
        c,
        j,
        measured_s: of(1),
        measured_range_s: [of(0), of(2)],
        model_s,
        difference: model_s / of(1).max(1e-9) - 1.0,
    })
}

/// Returns predictions beside measurements, as a table.
fn text(rows: &[Row]) -> String {
    let mut text =
        String::from("kind           c   j  measured (least to most)       model  difference");
    for row in rows {
        let [least, most] = row.measured_range_s;
        line(
            &mut text,
            format_args!(
                "{:12} {:3} {:3} {:7.3} s ({least:.3} to {most:.3}) {:7.3} s {:>11}",
                row.kind,
                row.c,
                row.j,
                row.measured_s,
                row.model_s,
                percent(row.difference)
            ),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_other_instructions_are_not_compared() {
        for described in Instructions::ALL {
            for used in Instructions::ALL {
                let checked = check_instructions("this.toml", described, used);
                assert_eq!(checked.is_ok(), described == used);
                let Err(failure) = checked else { continue };
                let text = failure.to_string();
                for named in ["this.toml", "cpu.isa", described.name(), used.name()] {
                    assert!(text.contains(named), "{text}");
                }
            }
        }
    }
}
