//! `cuzk synth --request FILE --partition N [--check]`

use std::path::PathBuf;
use std::time::Instant;

use blstrs::Scalar;
use clap::Args;
use cuzk_core::circuits;
use cuzk_filecoin::{CircuitId, blank, decode};
use cuzk_groth16::evaluate::{domain_buffers, evaluate_partition};
use cuzk_groth16::memory::buffer_pool;
use cuzk_memory::Dealloc;
use cuzk_memory::NEVER_STOP;
use ff::Field;
use rayon::prelude::*;
use serde::Serialize;

use super::params::check_cache;
use super::{Context, read_request};
use crate::failure::Failure;
use crate::memory::peak_rss_bytes;
use crate::output;
use crate::progress::Doing;

#[derive(Debug, Args)]
pub(crate) struct Synth {
    /// The request.
    #[arg(long, value_name = "FILE")]
    pub(crate) request: PathBuf,
    /// The partition, counted from 0.
    #[arg(long, default_value_t = 0)]
    pub(crate) partition: usize,
    /// Check every constraint, and name the first that does not hold.
    #[arg(long)]
    pub(crate) check: bool,
}

/// The number of scalars that one task touches.
const TOUCH_TASK: usize = 1 << 16;

#[derive(Debug, Serialize)]
struct SynthReport {
    rows: usize,
    witness_s: f64,
    /// The time to map the vectors and to touch all their pages. An engine does that for its
    /// first partition only.
    buffers_s: f64,
    evaluate_s: f64,
    witness_bytes: usize,
    peak_rss_bytes: Option<u64>,
    #[serde(flatten)]
    check: Option<Check>,
}

/// The result of `--check`. No row is bad in a satisfied circuit.
#[derive(Debug, Serialize)]
struct Check {
    satisfied: bool,
    first_bad_row: Option<usize>,
    /// The part of the vanilla proof that the row is about, as the circuit names it.
    part: Option<String>,
}

impl Check {
    /// Names the first row that is not satisfied, if there is one.
    fn of(id: CircuitId, first_bad_row: Option<usize>) -> Result<Self, Failure> {
        let part = first_bad_row.map(|row| part(id, row));
        Ok(Self {
            satisfied: first_bad_row.is_none(),
            first_bad_row,
            part: part.transpose()?.flatten(),
        })
    }
}

pub(crate) fn run(context: &Context, args: &Synth) -> Result<(), Failure> {
    let request = read_request(&args.request)?;
    let of_file =
        |error: cuzk_filecoin::Error| Failure::from(error).of(output::shown(&args.request));
    // Outside of a pool, rayon starts one of its own, and panics where there is no thread for it.
    let pool = context.config.synthesis.pool()?;
    let job = pool.install(|| decode(&request)).map_err(of_file)?;
    check_partition(args.partition, job.partitions())?;
    check_cache(&context.config.srs.param_cache)?;
    let doing = Doing::begin("getting the compiled circuit");
    let circuit = circuits::cached(job.circuit(), &context.config.srs.param_cache)?;
    drop(doing);
    let isa = context.config.cpu.isa;

    let started = Instant::now();
    let witness = pool.install(|| job.witness_in(args.partition, isa.into()))?;
    let witness_s = started.elapsed().as_secs_f64();

    let buffers = buffer_pool(Dealloc::Recycle, 0);
    let started = Instant::now();
    let [mut a, mut b] = domain_buffers(&circuit, &buffers)?;
    pool.install(|| touch([&mut a, &mut b]));
    let buffers_s = started.elapsed().as_secs_f64();

    let started = Instant::now();
    pool.install(|| evaluate_partition(&circuit, &witness, [&mut a, &mut b], None, &NEVER_STOP))?;
    let evaluate_s = started.elapsed().as_secs_f64();

    let check = match args.check {
        false => None,
        true => {
            let first_bad_row = pool.install(|| circuit.first_bad_row(&witness))?;
            Some(Check::of(job.circuit(), first_bad_row)?)
        }
    };
    let report = SynthReport {
        rows: circuit.program().rows(),
        witness_s,
        buffers_s,
        evaluate_s,
        witness_bytes: witness.resident_bytes(),
        peak_rss_bytes: peak_rss_bytes(),
        check,
    };
    output::print(context.json, &report, text)?;
    let Some((Some(row), part)) = report.check.map(|check| (check.first_bad_row, check.part))
    else {
        return Ok(());
    };
    let error = cuzk_core::Error::Unsatisfied {
        partition: args.partition,
        row,
        part,
    };
    Err(Failure::from(error).reported())
}

/// Returns the name of a row, for which the circuit is synthesised up to it.
fn part(id: CircuitId, row: usize) -> Result<Option<String>, Failure> {
    let doing = Doing::begin("naming the constraint");
    let part = blank::row_name(id, row);
    drop(doing);
    Ok(part?)
}

fn check_partition(partition: usize, partitions: usize) -> Result<(), Failure> {
    if partition < partitions {
        return Ok(());
    }
    Err(Failure::input(format!(
        "--partition: {partition} is out of range; this request has {partitions} partition(s), \
         counted from 0"
    )))
}

/// Writes to every page, so that none is mapped while the evaluation is timed.
fn touch(vectors: [&mut [Scalar]; 2]) {
    for vector in vectors {
        vector
            .par_chunks_mut(TOUCH_TASK)
            .for_each(|task| task.fill(Scalar::ZERO));
    }
}

fn text(report: &SynthReport) -> String {
    let mut text = format!(
        "{} rows: witness {:.3} s ({} bytes), buffers {:.3} s, a and b {:.3} s",
        report.rows, report.witness_s, report.witness_bytes, report.buffers_s, report.evaluate_s
    );
    match &report.check {
        None => {}
        Some(Check {
            first_bad_row: None,
            ..
        }) => text.push_str("; every constraint holds"),
        Some(Check {
            first_bad_row: Some(row),
            part,
            ..
        }) => {
            text.push_str(&format!(
                "; constraint {row} is the first that does not hold"
            ));
            if let Some(part) = part {
                text.push_str(&format!(" ({part})"));
            }
        }
    }
    text
}
