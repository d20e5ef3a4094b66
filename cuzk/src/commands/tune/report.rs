//! The result: a row for each number of threads, and the number to configure.

use std::path::Path;

use cuzk_kernels::msm::g2_bucket_bytes;
use cuzk_tune::machine::Host;
use cuzk_tune::plot::Line;
use cuzk_tune::sweep::{Point, Sweep, median};
use serde::Serialize;

use super::work::{Beside, Work};

/// The medians over the rounds for one number of threads.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    gpu_threads: usize,
    sum_alone_s: f64,
    sum_beside_s: f64,
    synthesis_beside_s: f64,
    /// The additional time of synthesis beside the MSM, by its time alone.
    synthesis_slow_down: f64,
    /// The sum of both sides' rates beside each other, each by its own rate alone on all
    /// cores.
    combined: f64,
    bucket_bytes: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The number to write into the configuration.
    gpu_threads: usize,
    toml: String,
    /// The one with the best median. It is not `gpu_threads` if too few rounds say
    /// that it is better than all cores.
    best_gpu_threads: usize,
    /// Rounds in which the best one was better than all cores.
    better_rounds: usize,
    kind: String,
    points: usize,
    cores: usize,
    isa: &'static str,
    machine: Host,
    /// The other side: all of synthesis, or the witness.
    beside: Beside,
    synthesis_threads: usize,
    synthesis_alone_s: f64,
    rounds: u32,
    pub(super) rows: Vec<Row>,
}

impl Report {
    /// Returns the report, or `None` if nothing was measured.
    pub(super) fn new(work: &Work, sweep: &Sweep, rounds: u32, cores: usize) -> Option<Self> {
        let choice = sweep.choose()?;
        let synthesis_alone_s = median(&sweep.other_alone_s)?;
        let scalars = work.scalars.as_slice();
        let row = |(at, (threads, point)): (usize, &(usize, Point))| {
            let synthesis_beside_s = median(&point.other_beside_s)?;
            Some(Row {
                gpu_threads: *threads,
                sum_alone_s: median(&point.alone_s)?,
                sum_beside_s: median(&point.beside_s)?,
                synthesis_beside_s,
                synthesis_slow_down: synthesis_beside_s / synthesis_alone_s - 1.0,
                combined: median(&sweep.combined(at))?,
                bucket_bytes: g2_bucket_bytes(work.config.cpu.isa, scalars.values.len(), *threads),
            })
        };
        let rows: Vec<Row> = sweep
            .points
            .iter()
            .enumerate()
            .map(row)
            .collect::<Option<_>>()?;
        let gpu_threads = rows.get(choice.at)?.gpu_threads;
        Some(Self {
            gpu_threads,
            toml: format!("[gpus]\ngpu_threads = {gpu_threads}"),
            best_gpu_threads: rows.get(choice.best)?.gpu_threads,
            better_rounds: choice.better_rounds,
            kind: work.kind.to_string(),
            points: scalars.len,
            cores,
            isa: work.config.cpu.isa.name(),
            machine: Host::read(Path::new("/"), work.config.cpu.isa.name()),
            beside: work.beside,
            synthesis_threads: work.config.synthesis.threads,
            synthesis_alone_s,
            rounds,
            rows,
        })
    }
}

/// Returns the lines of the picture.
pub(super) fn lines(rows: &[Row]) -> [Line; 3] {
    let line = |name: &str, of: fn(&Row) -> f64| Line {
        name: name.to_owned(),
        points: (rows.iter())
            .map(|row| (row.gpu_threads as f64, of(row)))
            .collect(),
    };
    [
        line("MSM in G2 alone", |row| row.sum_alone_s),
        line("MSM in G2 beside synthesis", |row| row.sum_beside_s),
        line("synthesis beside the MSM", |row| row.synthesis_beside_s),
    ]
}

/// Returns the report for people: comments, and the line of the configuration.
pub(super) fn text(report: &Report) -> String {
    let mut lines = vec![
        format!(
            "# The MSM in G2 ({} points, {}) beside {} of {} 2KiB on {} threads:",
            report.points,
            report.isa,
            report.beside.words(),
            report.kind,
            report.synthesis_threads,
        ),
        format!(
            "# medians of {} rounds on {} cores. The other work alone takes {:.3} s. `combined` is both",
            report.rounds, report.cores, report.synthesis_alone_s
        ),
        "# sides' rates beside each other, by their own alone on all cores.".to_owned(),
        format!("# {}", report.machine),
        "#".to_owned(),
        "# gpu_threads  sum alone  sum beside      other beside  slow-down  combined  buckets"
            .to_owned(),
    ];
    lines.extend(report.rows.iter().map(|row| {
        format!(
            "# {:>11} {:>8.3} s {:>9.3} s {:>15.3} s {:>+8.1} % {:>9.2} {:>4.1} MiB",
            row.gpu_threads,
            row.sum_alone_s,
            row.sum_beside_s,
            row.synthesis_beside_s,
            row.synthesis_slow_down * 100.0,
            row.combined,
            row.bucket_bytes as f64 / f64::from(1 << 20),
        )
    }));
    if report.best_gpu_threads != report.gpu_threads {
        lines.push(format!(
            "#\n# {} has the best median, but was better than all cores in {} of {} rounds only.",
            report.best_gpu_threads, report.better_rounds, report.rounds
        ));
    }
    lines.push(report.toml.clone());
    lines.join("\n")
}
