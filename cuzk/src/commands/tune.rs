//! `cuzk tune gpu-threads`: the MSM in G2 on several numbers of threads, beside
//! synthesis, and the line of the configuration that follows from it.
//!
//! It measures the work that the engine does on this machine with this configuration. One
//! side is the MSM of a bundled request's witness, by the kernel of `cuzk-kernels` on a
//! pool of its own. The other side is the witness and the evaluation of the same request,
//! on synthesis' pool. It does not measure the C++ side's `b_g2_msm`, which only works
//! beside a device. The bases are multiples of the generator, so no parameters are
//! needed.
//!
//! The throttle stays down, whatever the configuration says. The time that a witness and
//! an evaluation give way is bounded. That bound hides the whole synthesis of a bundled
//! circuit and little of a full-size one's.

use std::sync::{Arc, Mutex, PoisonError};

use blstrs::{G2Affine, G2Projective, Scalar};
use cuzk_core::circuits;
use cuzk_core::config::Config;
use cuzk_filecoin::{Statement, WitnessContext, decode};
use cuzk_groth16::Circuit;
use cuzk_groth16::evaluate::{domain_buffers, evaluate_partition};
use cuzk_groth16::memory::buffer_pool;
use cuzk_kernels::msm::{PackedScalars, g2_bucket_bytes, g2_packed};
use cuzk_memory::NEVER_STOP;
use cuzk_memory::{Buffer, BufferPool};
use cuzk_pce::PackedQuery;
use cuzk_tune::beside::{Side, alone, beside};
use cuzk_tune::plot::{self, Line};
use cuzk_tune::sweep::{Point, Sweep, median, thread_counts};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rayon::ThreadPool;
use serde::Serialize;

use super::Context;
use super::demo::bundled_request;
use crate::args::TuneGpuThreads;
use crate::failure::Failure;
use crate::place::Place;
use crate::{output, progress};

/// Different bases; beyond that they repeat, which no cache can tell.
const DISTINCT_BASES: usize = 1 << 14;

/// Least pieces of work of each side in one sample.
const QUOTA: usize = 2;

pub(crate) fn gpu_threads(context: &Context, args: &TuneGpuThreads) -> Result<(), Failure> {
    let svg = args.svg.as_deref().map(Place::new).transpose()?;
    let spinner = progress::spinner("getting the compiled circuit");
    let work = Work::new(context, args)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    spinner.set_message("measuring");
    let sweep = work.measure(&thread_counts(cores), args.rounds, |round| {
        spinner.set_message(format!("measuring: round {round} of {}", args.rounds));
    })?;
    spinner.finish_and_clear();
    let report = Report::new(&work, &sweep, args, cores)
        .ok_or_else(|| Failure::failed("nothing was measured"))?;
    let printed = output::print_beside(
        svg.as_ref().is_some_and(Place::is_stdout),
        context.json,
        &report,
        text,
    );
    // Either is of use without the other.
    let drawn = svg.map_or(Ok(()), |svg| draw(&report, &svg));
    printed.and(drawn).map_err(Failure::reported)
}

fn draw(report: &Report, out: &Place) -> Result<(), Failure> {
    let axes = ["gpu_threads", "seconds"];
    let svg = plot::svg("gpu_threads", axes, &lines(&report.rows)).map_err(failed)?;
    out.write(svg.as_bytes())
}

/// The work of both sides.
struct Work {
    config: Config,
    job: Box<dyn Statement>,
    circuit: Circuit,
    synthesis_pool: ThreadPool,
    out: Mutex<[Buffer; 2]>,
    bases: Vec<G2Affine>,
    scalars: PackedQuery<Scalar>,
    /// As the engine has it: what one sum gives back, the next takes.
    memory: Arc<BufferPool>,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}

impl Work {
    fn new(context: &Context, args: &TuneGpuThreads) -> Result<Self, Failure> {
        let config = context.config.clone();
        let job = decode(&bundled_request(args.kind)?)?;
        let circuit = circuits::cached(job.circuit(), &config.srs.param_cache)?;
        let synthesis_pool = config.synthesis.pool()?;
        let witness = synthesis_pool.install(|| job.witness(0))?;
        let densities = circuit.densities();
        let scalars = witness.query(densities.b_input.iter(), &densities.b_aux);
        let memory = buffer_pool(config.memory.dealloc, u64::MAX);
        Ok(Self {
            bases: bases(scalars.as_slice().len),
            scalars,
            out: Mutex::new(domain_buffers(&circuit, &memory)?),
            memory,
            job,
            circuit,
            synthesis_pool,
            config,
        })
    }

    fn sum(&self, pool: &ThreadPool) -> Result<(), Failure> {
        let slice = self.scalars.as_slice();
        let scalars = PackedScalars::new(slice.len, slice.bits, slice.wide, slice.values);
        let scalars = scalars.map_err(failed)?;
        let context = cuzk_kernels::Context {
            isa: self.config.cpu.isa,
            checkpoint: &NEVER_STOP,
            memory: &*self.memory,
        };
        let sum = pool.install(|| g2_packed(context, &self.bases[..], &scalars));
        std::hint::black_box(sum.map_err(failed)?);
        Ok(())
    }

    fn synthesis(&self) -> Result<(), Failure> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = &mut *out;
        self.synthesis_pool.install(|| {
            let memory = self.memory.array_memory();
            let context = WitnessContext {
                memory: &memory,
                ..self.config.cpu.isa.into()
            };
            let witness = self.job.witness_in(0, context)?;
            evaluate_partition(&self.circuit, &witness, [a, b], None, &NEVER_STOP)?;
            Ok(())
        })
    }

    /// Every number of threads once a round, and synthesis alone.
    fn measure(
        &self,
        counts: &[usize],
        rounds: u32,
        starts: impl Fn(u32),
    ) -> Result<Sweep, Failure> {
        let mut sweep = Sweep::default();
        let mut pools = Vec::new();
        for &threads in counts {
            let mut gpus = self.config.gpus.clone();
            gpus.gpu_threads = threads;
            pools.push(gpus.pool()?);
            sweep.points.push((threads, Point::default()));
        }
        let synthesis = || self.synthesis();
        let side = || Side::new(QUOTA, &synthesis);
        for round in 1..=rounds {
            starts(round);
            sweep.other_alone_s.push(alone(side())?.as_secs_f64());
            for (pool, (_, point)) in pools.iter().zip(&mut sweep.points) {
                let sum = || self.sum(pool);
                let sum_alone = alone(Side::new(QUOTA, &sum))?;
                let [sum_beside, synthesis] = beside(Side::new(QUOTA, &sum), side())?;
                point.alone_s.push(sum_alone.as_secs_f64());
                point.beside_s.push(sum_beside.as_secs_f64());
                point.other_beside_s.push(synthesis.as_secs_f64());
            }
        }
        Ok(sweep)
    }
}

/// One number of threads; medians over the rounds.
#[derive(Debug, Serialize)]
struct Row {
    gpu_threads: usize,
    sum_alone_s: f64,
    sum_beside_s: f64,
    synthesis_beside_s: f64,
    /// How much longer synthesis takes beside the sum than alone: 0 is nothing.
    synthesis_slow_down: f64,
    /// Both sides' rates beside each other, by their own alone on all cores.
    combined: f64,
    bucket_bytes: usize,
}

#[derive(Debug, Serialize)]
struct Report {
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
    synthesis_threads: usize,
    synthesis_alone_s: f64,
    rounds: u32,
    rows: Vec<Row>,
}

impl Report {
    /// `None` if nothing was measured.
    fn new(work: &Work, sweep: &Sweep, args: &TuneGpuThreads, cores: usize) -> Option<Self> {
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
            kind: args.kind.to_string(),
            points: scalars.len,
            cores,
            isa: work.config.cpu.isa.name(),
            synthesis_threads: work.config.synthesis.threads,
            synthesis_alone_s,
            rounds: args.rounds,
            rows,
        })
    }
}

fn lines(rows: &[Row]) -> [Line; 3] {
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

fn text(report: &Report) -> String {
    let mut lines = vec![
        format!(
            "# The MSM in G2 ({} points, {}) beside the synthesis of {} 2KiB on {} threads:",
            report.points, report.isa, report.kind, report.synthesis_threads,
        ),
        format!(
            "# medians of {} rounds on {} cores. Synthesis alone takes {:.3} s. `combined` is both",
            report.rounds, report.cores, report.synthesis_alone_s
        ),
        "# sides' rates beside each other, by their own alone on all cores.".to_owned(),
        "#".to_owned(),
        "# gpu_threads  sum alone  sum beside  synthesis beside  slow-down  combined  buckets"
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

/// `len` points of which none is the identity.
fn bases(len: usize) -> Vec<G2Affine> {
    let distinct = len.min(DISTINCT_BASES);
    let generator = G2Projective::generator();
    let multiples = std::iter::successors(Some(generator), |point| Some(point + generator));
    let multiples: Vec<G2Projective> = multiples.take(distinct).collect();
    let mut bases = vec![G2Affine::identity(); distinct];
    G2Projective::batch_normalize(&multiples, &mut bases);
    bases.into_iter().cycle().take(len).collect()
}
