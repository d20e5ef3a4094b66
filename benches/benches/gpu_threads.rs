//! b_g2_msm on pools of several sizes, alone and beside synthesis.
//!
//! The pool's size is decided once a process, so each size is a child process
//! that waits for its turn.

use benches::{
    Result,
    child::{self, Child},
    circuit::Hashes,
    mode::{Mode, cores, plot_path, thread_counts},
    msm::{self, Scalars},
    plot::{self, Line},
    study::{Study, Timed, time},
    table,
};
use blstrs::{G2Affine, G2Projective, Scalar};
use criterion::Criterion;
use cuzk_pce::{R1cs, evaluate, record, witness};
use std::{cell::RefCell, hint::black_box, rc::Rc, thread, time::Duration};
use supraseal_sys::{GpuResources, b_g2_msm, b_g2_msm_scratch_bytes, set_gpu_threads};

const ROUNDS: usize = 6;

/// Work of both sides in one sample, chosen to take about as long on all
/// cores of two.
#[derive(Clone, Copy)]
struct Load {
    points: usize,
    scalars: Scalars,
    msms: usize,
    hashes: usize,
    syntheses: usize,
}

const LOADS: [Load; 2] = [
    Load {
        points: 1 << 17,
        scalars: Scalars::Witness,
        msms: 4,
        hashes: 10,
        syntheses: 3,
    },
    Load {
        points: 1 << 14,
        scalars: Scalars::Uniform,
        msms: 2,
        hashes: 10,
        syntheses: 3,
    },
];

const SMOKE_LOADS: [Load; 1] = [Load {
    points: 64,
    scalars: Scalars::Uniform,
    msms: 1,
    hashes: 1,
    syntheses: 1,
}];

fn loads(mode: Mode) -> &'static [Load] {
    mode.pick(&LOADS[..], &SMOKE_LOADS)
}

/// What a child answers: how long each side took, in nanoseconds; 0 for a side
/// that did not run.
#[derive(Clone, Copy)]
struct Sample {
    msms: Duration,
    syntheses: Duration,
}

impl Timed for Sample {
    /// Until both sides were done.
    fn wall(&self) -> Duration {
        self.msms.max(self.syntheses)
    }
}

impl Sample {
    fn write(self) -> String {
        format!("{} {}", self.msms.as_nanos(), self.syntheses.as_nanos())
    }

    fn read(line: &str) -> Result<Self> {
        let mut nanos = line
            .split(' ')
            .map(str::parse)
            .map(|n| n.map(Duration::from_nanos));
        match (nanos.next(), nanos.next()) {
            (Some(msms), Some(syntheses)) => Ok(Sample {
                msms: msms?,
                syntheses: syntheses?,
            }),
            _ => Err(format!("expected two durations, got {line:?}").into()),
        }
    }
}

/// What both sides work on.
struct Work {
    load: Load,
    bases: Vec<G2Affine>,
    scalars: Vec<Scalar>,
    r1cs: R1cs<Scalar>,
    resources: GpuResources,
}

impl Work {
    fn new(load: Load) -> Result<Self> {
        let blank = Hashes {
            count: load.hashes,
            blank: true,
        };
        Ok(Work {
            load,
            bases: msm::bases::<G2Projective>(load.points),
            scalars: load.scalars.make(load.points),
            r1cs: record(blank)?,
            resources: GpuResources::new()?,
        })
    }

    fn msms(&self) -> Result<()> {
        for _ in 0..self.load.msms {
            black_box(b_g2_msm(&self.resources, &self.bases, &self.scalars)?);
        }
        Ok(())
    }

    /// Witness and evaluation, on rayon's threads, unthrottled: what this
    /// compares is what the number of threads alone does.
    fn syntheses(&self) -> Result<()> {
        for _ in 0..self.load.syntheses {
            let witness = witness(Hashes {
                count: self.load.hashes,
                blank: false,
            })?;
            black_box(evaluate(&self.r1cs, &witness, None)?);
        }
        Ok(())
    }

    fn answer(&self, question: &str) -> Result<Sample> {
        let run = |side: &str, work: &dyn Fn() -> Result<()>| {
            if question != side && question != "both" {
                return Ok(Duration::ZERO);
            }
            let (result, wall) = time(work);
            result.map(|()| wall)
        };
        thread::scope(|scope| {
            let msms = scope.spawn(|| run("msm", &|| self.msms()));
            let syntheses = run("synthesis", &|| self.syntheses())?;
            match msms.join() {
                Ok(msms) => Ok(Sample {
                    msms: msms?,
                    syntheses,
                }),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// A child: its threads and its load are the argument.
fn serve(argument: &str) -> Result<()> {
    let (threads, load) = argument
        .split_once(' ')
        .ok_or("expected threads and load")?;
    set_gpu_threads(threads.parse()?)?;
    let (mode, at) = load.split_once(' ').ok_or("expected mode and load")?;
    let mode = if mode == "measure" {
        Mode::Measure
    } else {
        Mode::Smoke
    };
    let load = loads(mode)
        .get(at.parse::<usize>()?)
        .ok_or("no such load")?;
    let work = Work::new(*load)?;
    child::serve(|question| Ok(work.answer(question)?.write()))
}

/// The arms of one number of threads.
struct Arms {
    threads: usize,
    msm: usize,
    synthesis: usize,
    both: usize,
}

struct Measured<'a> {
    load: Load,
    study: Study<'a, Sample>,
    arms: Vec<Arms>,
}

fn measure(
    mode: Mode,
    at: usize,
    load: Load,
    criterion: &mut Criterion,
) -> Result<Measured<'static>> {
    let mut study = Study::new();
    let mut arms = Vec::new();
    for threads in thread_counts() {
        let mode = mode.pick("measure", "smoke");
        // Started by the first question, so that listing starts nothing.
        let child = Rc::new(RefCell::new(None));
        let mut arm = |question: &'static str| {
            let child = Rc::clone(&child);
            study.arm(format!("{question}/{threads} threads"), move || {
                let mut child = child.borrow_mut();
                let child = match child.as_mut() {
                    Some(child) => child,
                    None => child.insert(Child::start(&format!("{threads} {mode} {at}"))?),
                };
                Sample::read(&child.ask(question)?)
            })
        };
        arms.push(Arms {
            threads,
            msm: arm("msm"),
            synthesis: arm("synthesis"),
            both: arm("both"),
        });
    }
    let group = format!("gpu_threads/{}", load.scalars.name());
    study.bench(criterion, &group, mode, ROUNDS)?;
    Ok(Measured { load, study, arms })
}

impl Measured<'_> {
    fn rows(&self) -> Vec<Vec<String>> {
        self.arms.iter().map(|arms| self.row(arms)).collect()
    }

    fn row(&self, arms: &Arms) -> Vec<String> {
        let study = &self.study;
        let msm = |sample: &Sample| sample.msms.as_secs_f64() / self.load.msms as f64;
        let synthesis =
            |sample: &Sample| sample.syntheses.as_secs_f64() / self.load.syntheses as f64;
        let all_cores = self.arms.last().map_or(arms.both, |last| last.both);
        let throughput = study.ratio(all_cores, arms.both, |sample| sample.wall().as_secs_f64());
        let threads = u32::try_from(arms.threads).unwrap_or(u32::MAX);
        let scratch = b_g2_msm_scratch_bytes(self.load.points, threads);
        vec![
            format!("{} {}", self.load.scalars.name(), self.load.points),
            arms.threads.to_string(),
            table::figure(study.median(arms.msm, msm), table::seconds),
            table::figure(study.median(arms.both, msm), table::seconds),
            table::figure(study.median(arms.synthesis, synthesis), table::seconds),
            table::figure(study.median(arms.both, synthesis), table::seconds),
            table::figure(
                study.ratio(arms.both, arms.synthesis, synthesis),
                table::percent_over,
            ),
            table::figure(study.median_s(arms.both), table::seconds),
            table::figure(throughput, table::times),
            table::mebibytes(scratch.buckets as f64),
        ]
    }

    fn draw(&self) -> Result<()> {
        let Some(path) = plot_path(&format!("gpu_threads-{}", self.load.scalars.name())) else {
            return Ok(());
        };
        let line = |name: &str, of: &dyn Fn(&Arms) -> Option<f64>| Line {
            name: name.to_owned(),
            points: (self.arms.iter())
                .filter_map(|arms| Some((arms.threads as f64, of(arms)?)))
                .collect(),
        };
        let study = &self.study;
        let lines = [
            line("b_g2_msm alone", &|arms| study.median_s(arms.msm)),
            line("b_g2_msm beside synthesis", &|arms| {
                study.median(arms.both, |sample| sample.msms.as_secs_f64())
            }),
            line("synthesis beside b_g2_msm", &|arms| {
                study.median(arms.both, |sample| sample.syntheses.as_secs_f64())
            }),
            line("both", &|arms| study.median_s(arms.both)),
        ];
        plot::draw(&path, "gpu_threads", "seconds", &lines)
    }
}

fn main() -> Result<()> {
    if let Some(argument) = child::argument() {
        return serve(&argument);
    }
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let mut rows = Vec::new();
    for (at, &load) in loads(mode).iter().enumerate() {
        let measured = measure(mode, at, load, &mut criterion)?;
        rows.extend(measured.rows());
        measured.draw()?;
    }
    if mode == Mode::Measure {
        let title = format!(
            "gpu_threads on {} cores, beside synthesis on as many; medians, of one b_g2_msm and one \
             synthesis. `both` is until both sides are done, `throughput` its inverse against \
             all cores",
            cores()
        );
        let header = [
            "scalars",
            "gpu_threads",
            "msm alone",
            "msm beside",
            "synthesis alone",
            "synthesis beside",
            "slow-down",
            "both",
            "throughput",
            "buckets",
        ];
        table::print(&title, &header, &rows);
    }
    criterion.final_summary();
    Ok(())
}
