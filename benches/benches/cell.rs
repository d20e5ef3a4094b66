//! The cell: many recorded machine runs, executed again over several threads,
//! with the packed cell and the two that it replaces.

use benches::{
    Result,
    mode::{Mode, thread_counts},
    plot::{self, Line},
    study::{Study, Timed, mean, median, time},
    table,
    vm::{BigFelt, Felt, Mismatch, Program, Trace, re_execute},
};
use criterion::Criterion;
use cuzk_pce::cell::{EnumCell, PackedCell};
use cuzk_tune::counters::{Counters, Usage};
use std::{cell::RefCell, time::Duration};

/// Cells written by all traces of one run together.
const CELLS_IN_ALL: u64 = 1 << 21;
/// Cells of one machine: within the L1, about the L2, and far beyond it. The
/// last is also so large that the allocator maps the memory of every arm anew.
/// At a size in between, the allocator would keep the memory of small cells and
/// unmap that of large ones.
const MEMORY_CELLS: [u64; 3] = [1 << 10, 1 << 16, 1 << 21];
const ROUNDS: usize = 5;

struct Arm {
    name: &'static str,
    cell_bytes: usize,
    run: fn(&[Trace], usize) -> std::result::Result<(), Mismatch>,
}

/// The first is the article's starting point, the second what the third
/// replaces.
const ARMS: [Arm; 3] = [
    Arm {
        name: "enum, heap integer",
        cell_bytes: size_of::<EnumCell<BigFelt>>(),
        run: re_execute::<EnumCell<BigFelt>>,
    },
    Arm {
        name: "enum, limbs",
        cell_bytes: size_of::<EnumCell<Felt>>(),
        run: re_execute::<EnumCell<Felt>>,
    },
    Arm {
        name: "packed",
        cell_bytes: size_of::<PackedCell<Felt>>(),
        run: re_execute::<PackedCell<Felt>>,
    },
];

struct Sample {
    wall: Duration,
    usage: Usage,
}

impl Timed for Sample {
    fn wall(&self) -> Duration {
        self.wall
    }
}

struct Workload {
    program: Program,
    cells: u64,
    traces: Vec<Trace>,
}

impl Workload {
    fn record(program: Program, cells: u64, cells_in_all: u64, threads: usize) -> Result<Self> {
        // A whole number of traces a thread, so that none waits at the end.
        let threads = threads as u64;
        let traces = (cells_in_all / cells).max(1).next_multiple_of(threads);
        let traces = (0..traces)
            .map(|seed| Trace::record(program, cells, seed))
            .collect::<std::result::Result<_, _>>()?;
        Ok(Workload {
            program,
            cells,
            traces,
        })
    }

    fn name(&self) -> String {
        format!("{} {}", self.program.name(), self.cells)
    }
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let counters = RefCell::new(Counters::open());
    let mut criterion = Criterion::default().configure_from_args();
    let (cells_in_all, sizes) = mode.pick((CELLS_IN_ALL, &MEMORY_CELLS[..]), (64, &[16]));
    let threads_max = thread_counts().last().copied().unwrap_or(1);
    let (mut rows, mut summary) = (Vec::new(), Vec::new());
    for program in Program::ALL {
        for &cells in sizes {
            let workload = Workload::record(program, cells, cells_in_all, threads_max)?;
            let measured = measure(&workload, &counters, &mut criterion, mode)?;
            rows.extend(measured.rows(&workload));
            summary.extend(measured.summary(&workload));
            measured.draw(&workload)?;
        }
    }
    if mode == Mode::Measure {
        print_sizes();
        table::print(
            "re_execute: means over the rounds; `faster` is by how much the packed cell is, and \
             `processor` the same in user and system time, medians over the rounds",
            &[
                "workload",
                "threads",
                "arm",
                "mean",
                "user",
                "system",
                "faults",
                "cache misses",
                "faster",
                "processor",
            ],
            &rows,
        );
        println!("\nSummary\n{}", summary.join("\n"));
    }
    criterion.final_summary();
    Ok(())
}

fn print_sizes() {
    let rows: Vec<_> = (ARMS.iter())
        .map(|arm| vec![arm.name.to_owned(), arm.cell_bytes.to_string()])
        .collect();
    table::print(
        "bytes of a cell (the heap integer allocates 32 more, with the allocator's own)",
        &["arm", "bytes"],
        &rows,
    );
}

/// A study a number of threads.
struct Measured<'a> {
    sweeps: Vec<(usize, Study<'a, Sample>)>,
}

fn measure<'a>(
    workload: &'a Workload,
    counters: &'a RefCell<Counters>,
    criterion: &mut Criterion,
    mode: Mode,
) -> Result<Measured<'a>> {
    let mut sweeps = Vec::new();
    for threads in thread_counts() {
        let mut study = Study::new();
        for arm in &ARMS {
            study.arm(arm.name, move || {
                let run = || time(|| (arm.run)(&workload.traces, threads));
                let ((result, wall), usage) = counters.borrow_mut().count(run)?;
                result?;
                Ok(Sample { wall, usage })
            });
        }
        let group = format!("cell/{}/{threads} threads", workload.name());
        study.bench(criterion, &group, mode, ROUNDS)?;
        sweeps.push((threads, study));
    }
    Ok(Measured { sweeps })
}

impl Measured<'_> {
    fn rows(&self, workload: &Workload) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (threads, study) in &self.sweeps {
            for arm in 0..ARMS.len() {
                rows.push(row(workload, *threads, study, arm));
            }
        }
        rows
    }

    /// A line for each number of threads and each arm but the packed one.
    fn summary(&self, workload: &Workload) -> Vec<String> {
        let mut lines = Vec::new();
        for (threads, study) in &self.sweeps {
            lines.push(format!(
                "  {}, {threads} threads: packed ran",
                workload.name()
            ));
            for arm in 0..ARMS.len() - 1 {
                let faster = table::figure(faster(study, arm), table::times);
                lines.push(format!(
                    "    {faster} times faster than {}",
                    study.name(arm)
                ));
            }
        }
        lines
    }

    fn draw(&self, workload: &Workload) -> Result<()> {
        let name = format!("cell-{}-{}", workload.program.name(), workload.cells);
        let line = |arm: usize| Line {
            name: ARMS[arm].name.to_owned(),
            points: (self.sweeps.iter())
                .filter_map(|(threads, study)| Some((*threads as f64, study.median_s(arm)?)))
                .collect(),
        };
        let lines: Vec<_> = (0..ARMS.len()).map(line).collect();
        plot::draw(&name, &workload.name(), "seconds", &lines)
    }
}

/// By how much the packed cell is faster than an arm.
fn faster(study: &Study<'_, Sample>, arm: usize) -> Option<f64> {
    study.ratio(arm, ARMS.len() - 1, |sample| sample.wall.as_secs_f64())
}

fn row(workload: &Workload, threads: usize, study: &Study<'_, Sample>, arm: usize) -> Vec<String> {
    let samples = study.samples(arm);
    let mean_of = |of: fn(&Sample) -> f64| mean(samples.iter().map(of));
    let misses = samples.iter().map(|s| s.usage.cache_misses);
    // One round that could not be counted leaves nothing to average.
    let misses: Option<Vec<f64>> = misses
        .map(|count| count.map(|count| count as f64))
        .collect();
    let packed = ARMS.len() - 1;
    let processor = study.ratio(arm, packed, |sample| {
        (sample.usage.user + sample.usage.system).as_secs_f64()
    });
    vec![
        workload.name(),
        threads.to_string(),
        study.name(arm).to_owned(),
        table::figure(mean_of(|s| s.wall.as_secs_f64()), table::seconds),
        table::figure(mean_of(|s| s.usage.user.as_secs_f64()), table::seconds),
        table::figure(mean_of(|s| s.usage.system.as_secs_f64()), table::seconds),
        table::figure(mean_of(|s| s.usage.page_faults as f64), table::count),
        table::figure(misses.and_then(|m| median(m.into_iter())), table::count),
        table::figure(faster(study, arm), table::times),
        table::figure(processor, table::times),
    ]
}
