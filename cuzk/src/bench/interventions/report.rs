//! The result: a row for each arm and number of proofs in flight.

use std::thread;

use cuzk_tune::machine::Host;
use cuzk_tune::plot::{self, Line};
use cuzk_tune::sweep::{is_better, median};
use serde::Serialize;

use super::arm::Sample;
use super::child::Measured;
use crate::bench::args::Bench;
use crate::commands::Context;
use crate::failure::{Failure, failed};

/// Medians over the rounds, of one proof.
#[derive(Debug, Serialize)]
struct Row {
    arm: String,
    dealloc: String,
    gpu_threads: usize,
    throttle: bool,
    in_flight: usize,
    proof_s: f64,
    /// Throughput by that of the first arm in the same round.
    ratio: f64,
    /// Rounds in which this arm was the faster one.
    better_rounds: usize,
    /// True if enough rounds show that it is faster, false if slower, `None` if neither.
    faster: Option<bool>,
    b_g2_s: f64,
    witness_s: f64,
    evaluate_s: f64,
    device_s: f64,
    system_s: f64,
    page_faults: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tlb_shootdowns: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    stage: &'static str,
    machine: Host,
    kind: String,
    cores: usize,
    threads: usize,
    partition_workers: usize,
    rounds: u32,
    rows: Vec<Row>,
}

impl Report {
    /// Returns the report, or `None` if nothing was measured.
    pub(super) fn new(
        context: &Context,
        args: &Bench,
        host: &Host,
        arms: &[Measured],
    ) -> Option<Self> {
        let mut rows = Vec::new();
        for (at, &in_flight) in args.in_flight.iter().enumerate() {
            for arm in arms {
                rows.push(row(arm, arms.first()?, at, in_flight)?);
            }
        }
        Some(Self {
            stage: "interventions",
            machine: host.clone(),
            kind: args.kind().to_string(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            threads: arms.first()?.arm.threads,
            partition_workers: context.config.synthesis.partition_workers,
            rounds: args.runs,
            rows,
        })
    }

    pub(super) fn text(&self) -> String {
        let mut lines = vec![
            self.machine.to_string(),
            format!(
                "The whole engine with each key on alone: {} 2KiB, {} partition worker(s), {} \
                 threads on {} cores; medians of {} rounds.",
                self.kind, self.partition_workers, self.threads, self.cores, self.rounds
            ),
            "`ratio` is throughput by that of `all off`; < and > where the rounds say that it \
             differs (one-sided sign test, 5 %). Then the parts, of one proof."
                .to_owned(),
            String::new(),
            "in flight  arm                  s/proof  ratio  better   b_g2  witness  evaluate  \
             device  system    faults  TLB shootdowns"
                .to_owned(),
        ];
        lines.extend(self.rows.iter().map(|row| self.line(row)));
        lines.join("\n")
    }

    fn line(&self, row: &Row) -> String {
        let mark = match row.faster {
            Some(true) => '>',
            Some(false) => '<',
            None => ' ',
        };
        let shootdowns = row.tlb_shootdowns;
        let shootdowns = shootdowns.map_or_else(|| "n/a".to_owned(), |count| format!("{count:.0}"));
        format!(
            "{:>9}  {:<20} {:>7.4}  {:>5.3}{mark} {:>3}/{:<3} {:>6.4} {:>8.4} {:>9.4} {:>7.4} \
             {:>7.4} {:>9.0} {:>15}",
            row.in_flight,
            row.arm,
            row.proof_s,
            row.ratio,
            row.better_rounds,
            self.rounds,
            row.b_g2_s,
            row.witness_s,
            row.evaluate_s,
            row.device_s,
            row.system_s,
            row.page_faults,
            shootdowns,
        )
    }

    /// Returns a picture with a line for each arm: seconds a proof over proofs in flight.
    pub(super) fn svg(&self) -> Result<String, Failure> {
        let mut lines: Vec<Line> = Vec::new();
        for row in &self.rows {
            let point = (row.in_flight as f64, row.proof_s);
            match lines.iter_mut().find(|line| line.name == row.arm) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    name: row.arm.clone(),
                    points: vec![point],
                }),
            }
        }
        let title = format!("{} 2KiB, the whole engine", self.kind);
        plot::svg(&title, ["proofs in flight", "seconds a proof"], &lines).map_err(failed)
    }
}

fn row(measured: &Measured, first: &Measured, at: usize, in_flight: usize) -> Option<Row> {
    let (samples, off) = (measured.samples.get(at)?, first.samples.get(at)?);
    let middle = |of: fn(&Sample) -> f64| median(&samples.iter().map(of).collect::<Vec<_>>());
    let ratios = samples.iter().zip(off);
    let ratios: Vec<f64> = ratios.map(|(own, off)| off.proof_s / own.proof_s).collect();
    let inverses: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
    let faster = match (is_better(&ratios, 1), is_better(&inverses, 1)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let shootdowns: Option<Vec<f64>> = samples.iter().map(|s| s.tlb_shootdowns).collect();
    Some(Row {
        arm: measured.arm.name.clone(),
        dealloc: measured.arm.dealloc.clone(),
        gpu_threads: measured.arm.gpu_threads,
        throttle: measured.arm.throttle,
        in_flight,
        proof_s: middle(|s| s.proof_s)?,
        ratio: median(&ratios)?,
        better_rounds: ratios.iter().filter(|&&ratio| ratio > 1.0).count(),
        faster,
        b_g2_s: middle(|s| s.b_g2_s)?,
        witness_s: middle(|s| s.witness_s)?,
        evaluate_s: middle(|s| s.evaluate_s)?,
        device_s: middle(|s| s.device_s)?,
        system_s: middle(|s| s.system_s)?,
        page_faults: middle(|s| s.page_faults)?,
        tlb_shootdowns: shootdowns.and_then(|counts| median(&counts)),
    })
}
