//! The cell: many recorded machine runs, executed again over several threads, with the
//! packed cell and the two that it replaces.
//!
//! A thread runs one machine at a time, so there are as many machines at once as threads.
//! Some of the numbers of threads are above the number of cores.
//!
//! `cargo bench -p benches --bench cell -- --threads 1,2,8 --instances 16,64` chooses the
//! sizes; so do `--cells` and `--rounds`.

use benches::{
    Result,
    article::{CACHE_MISSES, HARDWARE_THREADS, Row},
    mode::{Mode, cores, thread_counts},
    plot::{self, Line},
    sizes::Sizes,
    study::{Study, Timed, mean, median, time},
    table,
    vm::{BigFelt, Felt, Mismatch, Program, Trace, re_execute},
};
use criterion::Criterion;
use cuzk_pce::cell::{EnumCell, PackedCell};
use cuzk_tune::counters::{Counters, Usage};
use std::{cell::RefCell, time::Duration};

/// Cells written by all traces of one run together, if their number is not given.
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
const PACKED: usize = ARMS.len() - 1;

struct Sample {
    wall: Duration,
    usage: Usage,
}

impl Timed for Sample {
    fn wall(&self) -> Duration {
        self.wall
    }
}

/// The sizes that are measured, each with each.
struct Plan {
    threads: Vec<usize>,
    /// Machines in all; by default as many as have [`CELLS_IN_ALL`] together.
    instances: Vec<Option<usize>>,
    cells: Vec<u64>,
    rounds: usize,
}

impl Plan {
    fn new(sizes: &Sizes, mode: Mode) -> Self {
        let more_than_cores = [2 * cores()];
        let threads = || thread_counts().into_iter().chain(more_than_cores);
        let cells = mode.pick(&MEMORY_CELLS[..], &[16]);
        let instances = sizes.instances.clone();
        Plan {
            threads: (sizes.threads.clone()).unwrap_or_else(|| threads().collect()),
            instances: instances.map_or(vec![None], |all| all.into_iter().map(Some).collect()),
            cells: (sizes.cells.clone()).unwrap_or_else(|| cells.to_vec()),
            rounds: sizes.rounds.unwrap_or(ROUNDS),
        }
    }

    /// A whole number of machines a thread, so that none waits at the end.
    fn instances(&self, given: Option<usize>, cells: u64, mode: Mode) -> usize {
        let most = self.threads.iter().copied().max().unwrap_or(1);
        let in_all = mode.pick(CELLS_IN_ALL, 64) / cells;
        let in_all = usize::try_from(in_all.max(1)).unwrap_or(usize::MAX);
        given.unwrap_or_else(|| in_all.next_multiple_of(most))
    }
}

struct Workload {
    program: Program,
    cells: u64,
    traces: Vec<Trace>,
}

impl Workload {
    fn record(program: Program, cells: u64, instances: usize) -> Result<Self> {
        let traces = (0..instances as u64)
            .map(|seed| Trace::record(program, cells, seed))
            .collect::<std::result::Result<_, _>>()?;
        Ok(Workload {
            program,
            cells,
            traces,
        })
    }

    fn name(&self) -> String {
        let (program, instances) = (self.program.name(), self.traces.len());
        format!("{program} {} x {instances}", self.cells)
    }
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let sizes = Sizes::of(Mode::arguments())?;
    let plan = Plan::new(&sizes, mode);
    let counters = RefCell::new(Counters::open());
    let mut criterion = Criterion::default();
    if sizes.is_default() {
        criterion = criterion.configure_from_args();
    }
    let mut report = Report::default();
    for program in Program::ALL {
        for &cells in &plan.cells {
            for &given in &plan.instances {
                let instances = plan.instances(given, cells, mode);
                let workload = Workload::record(program, cells, instances)?;
                let measured = measure(&workload, &plan, &counters, &mut criterion, mode)?;
                report.add(&measured);
                measured.draw()?;
            }
        }
    }
    if mode == Mode::Measure {
        report.print();
    }
    criterion.final_summary();
    Ok(())
}

/// A study a number of threads.
struct Measured<'a> {
    workload: &'a Workload,
    sweeps: Vec<(usize, Study<'a, Sample>)>,
}

fn measure<'a>(
    workload: &'a Workload,
    plan: &Plan,
    counters: &'a RefCell<Counters>,
    criterion: &mut Criterion,
    mode: Mode,
) -> Result<Measured<'a>> {
    let mut sweeps = Vec::new();
    for &threads in &plan.threads {
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
        study.bench(criterion, &group, mode, plan.rounds)?;
        sweeps.push((threads, study));
    }
    Ok(Measured { workload, sweeps })
}

impl Measured<'_> {
    fn rows(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (threads, study) in &self.sweeps {
            for arm in 0..ARMS.len() {
                rows.push(row(&self.workload.name(), *threads, study, arm));
            }
        }
        rows
    }

    /// A line for each number of threads and each arm but the packed one.
    fn summary(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (threads, study) in &self.sweeps {
            let name = self.workload.name();
            lines.push(format!("  {name}, {threads} threads: packed ran"));
            for arm in 0..PACKED {
                let faster = table::figure(faster(study, arm), table::times);
                lines.push(format!(
                    "    {faster} times faster than {}",
                    study.name(arm)
                ));
            }
        }
        lines
    }

    /// For each number of threads: the article's time and factors, then ours.
    fn beside_article(&self) -> Vec<Vec<String>> {
        let row = |(threads, study): &(usize, Study<'_, Sample>)| {
            let theirs = Row::of(*threads);
            let factor = |arm: usize| theirs.map(|row| row.factors()[arm]);
            let ours_s = mean(wall_s(study, PACKED));
            vec![
                self.workload.name(),
                threads.to_string(),
                table::figure(theirs.map(|row| row.packed_s), table::seconds),
                table::figure(factor(1), table::times),
                table::figure(factor(0), table::times),
                table::figure(ours_s, table::seconds),
                table::figure(mean_factor(study, 1), table::times),
                table::figure(mean_factor(study, 0), table::times),
            ]
        };
        self.sweeps.iter().map(row).collect()
    }

    fn draw(&self) -> Result<()> {
        let workload = self.workload;
        let (program, instances) = (workload.program.name(), workload.traces.len());
        let name = format!("cell-{program}-{}-{instances}", workload.cells);
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

/// The tables that are printed at the end.
#[derive(Default)]
struct Report {
    rows: Vec<Vec<String>>,
    summary: Vec<String>,
    beside_article: Vec<Vec<String>>,
}

impl Report {
    fn add(&mut self, measured: &Measured<'_>) {
        self.rows.extend(measured.rows());
        self.summary.extend(measured.summary());
        self.beside_article.extend(measured.beside_article());
    }

    fn print(&self) {
        let bytes = |arm: &Arm| vec![arm.name.to_owned(), arm.cell_bytes.to_string()];
        table::print(
            "bytes of a cell (the heap integer allocates 32 more, with the allocator's own)",
            &["arm", "bytes"],
            &ARMS.iter().map(bytes).collect::<Vec<_>>(),
        );
        table::print(
            "re_execute: means over the rounds; `faster` is by how much the packed cell is, and \
             `processor` the same in user and system time, medians over the rounds. A workload \
             is a program, the cells of a machine, and the machines",
            &[
                "workload",
                "threads",
                "arm",
                "mean",
                "user",
                "system",
                "faults",
                "preemptions",
                "cache misses",
                "dTLB misses",
                "faster",
                "processor",
            ],
            &self.rows,
        );
        println!("\nSummary\n{}", self.summary.join("\n"));
        let [heap, limbs, packed] = CACHE_MISSES;
        table::print(
            &format!(
                "the article's table ({HARDWARE_THREADS} hardware threads) beside ours ({}): mean \
                 seconds of the packed cell, and by how many times it is faster in the mean. The \
                 article's cache misses: {heap} with the heap integer, {limbs} with limbs, \
                 {packed} packed",
                cores()
            ),
            &[
                "workload",
                "threads",
                "article: packed",
                "limbs",
                "heap integer",
                "ours: packed",
                "limbs",
                "heap integer",
            ],
            &self.beside_article,
        );
    }
}

fn wall_s<'a>(study: &'a Study<'_, Sample>, arm: usize) -> impl Iterator<Item = f64> + 'a {
    let samples = study.samples(arm).iter();
    samples.map(|sample| sample.wall.as_secs_f64())
}

/// Returns by how much the packed cell is faster than an arm, in the median over rounds.
fn faster(study: &Study<'_, Sample>, arm: usize) -> Option<f64> {
    study.ratio(arm, PACKED, |sample| sample.wall.as_secs_f64())
}

/// Returns by how much the packed cell is faster as the article computes it: one mean
/// divided by the other.
fn mean_factor(study: &Study<'_, Sample>, arm: usize) -> Option<f64> {
    let [arm, packed] = [arm, PACKED].map(|arm| mean(wall_s(study, arm)));
    Some(arm? / packed?)
}

fn row(workload: &str, threads: usize, study: &Study<'_, Sample>, arm: usize) -> Vec<String> {
    let samples = study.samples(arm);
    let mean_of = |of: fn(&Sample) -> f64| mean(samples.iter().map(of));
    // One round that could not be counted leaves nothing to average.
    let counted = |of: fn(&Usage) -> Option<u64>| {
        let counts = samples.iter().map(|sample| of(&sample.usage));
        let counts: Option<Vec<f64>> = counts.map(|count| count.map(|n| n as f64)).collect();
        table::figure(counts.and_then(|n| median(n.into_iter())), table::count)
    };
    let processor = study.ratio(arm, PACKED, |sample| {
        (sample.usage.user + sample.usage.system).as_secs_f64()
    });
    vec![
        workload.to_owned(),
        threads.to_string(),
        study.name(arm).to_owned(),
        table::figure(mean_of(|s| s.wall.as_secs_f64()), table::seconds),
        table::figure(mean_of(|s| s.usage.user.as_secs_f64()), table::seconds),
        table::figure(mean_of(|s| s.usage.system.as_secs_f64()), table::seconds),
        table::figure(mean_of(|s| s.usage.page_faults as f64), table::count),
        table::figure(mean_of(|s| s.usage.preemptions as f64), table::count),
        counted(|usage| usage.cache_misses),
        counted(|usage| usage.dtlb_misses),
        table::figure(faster(study, arm), table::times),
        table::figure(processor, table::times),
    ]
}
