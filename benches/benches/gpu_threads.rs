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
    study::{Study, Timed},
    table,
};
use blstrs::{G2Affine, G2Projective, Scalar};
use criterion::Criterion;
use cuzk_pce::{R1cs, evaluate, record, witness};
use std::{
    cell::RefCell,
    hint::black_box,
    rc::Rc,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};
use supraseal_sys::{GpuResources, b_g2_msm, b_g2_msm_scratch_bytes, set_gpu_threads};

const ROUNDS: usize = 6;

/// The least work of both sides in one sample. Beside each other, the side
/// that is done goes on until the other is done too, so that there is never
/// one side alone.
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

/// What a child answers: how long one b_g2_msm and one synthesis took, on
/// average over the sample; 0 for a side that did not run.
#[derive(Clone, Copy)]
struct Sample {
    msm: Duration,
    synthesis: Duration,
}

impl Timed for Sample {
    /// The slower side's: what a pipeline of the two would be held up by.
    fn wall(&self) -> Duration {
        self.msm.max(self.synthesis)
    }
}

impl Sample {
    fn write(self) -> String {
        format!("{} {}", self.msm.as_nanos(), self.synthesis.as_nanos())
    }

    fn read(line: &str) -> Result<Self> {
        let mut nanos = line
            .split(' ')
            .map(str::parse)
            .map(|n| n.map(Duration::from_nanos));
        match (nanos.next(), nanos.next()) {
            (Some(msm), Some(synthesis)) => Ok(Sample {
                msm: msm?,
                synthesis: synthesis?,
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

    fn msm(&self) -> Result<()> {
        black_box(b_g2_msm(&self.resources, &self.bases, &self.scalars)?);
        Ok(())
    }

    /// Witness and evaluation, on rayon's threads, unthrottled: what this
    /// compares is what the number of threads alone does.
    fn synthesis(&self) -> Result<()> {
        let witness = witness(Hashes {
            count: self.load.hashes,
            blank: false,
        })?;
        black_box(evaluate(&self.r1cs, &witness, None)?);
        Ok(())
    }

    fn answer(&self, question: &str) -> Result<Sample> {
        let side = |name: &str, quota| Side::new(quota, question == name || question == "both");
        let msms = side("msm", self.load.msms);
        let syntheses = side("synthesis", self.load.syntheses);
        thread::scope(|scope| {
            let msm = scope.spawn(|| msms.repeat(&syntheses, || self.msm()));
            let synthesis = syntheses.repeat(&msms, || self.synthesis())?;
            match msm.join() {
                Ok(msm) => Ok(Sample {
                    msm: msm?,
                    synthesis,
                }),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// One of the two sides: how much it has done, and must do.
struct Side {
    quota: usize,
    runs: bool,
    done: AtomicUsize,
}

impl Side {
    fn new(quota: usize, runs: bool) -> Self {
        Side {
            quota,
            runs,
            done: AtomicUsize::new(0),
        }
    }

    fn is_done(&self) -> bool {
        !self.runs || self.done.load(Ordering::Relaxed) >= self.quota
    }

    /// Works until both sides have done their quota; returns the mean time of
    /// a piece of work.
    fn repeat(&self, other: &Side, work: impl Fn() -> Result<()>) -> Result<Duration> {
        if !self.runs {
            return Ok(Duration::ZERO);
        }
        let start = Instant::now();
        while !(self.is_done() && other.is_done()) {
            if let Err(error) = work() {
                // The other side must not wait for this one.
                self.done.store(self.quota, Ordering::Relaxed);
                return Err(error);
            }
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        let done = u32::try_from(self.done.load(Ordering::Relaxed))?;
        Ok(start.elapsed() / done)
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

fn msm_s(sample: &Sample) -> f64 {
    sample.msm.as_secs_f64()
}

fn synthesis_s(sample: &Sample) -> f64 {
    sample.synthesis.as_secs_f64()
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

    /// Both sides' rates beside each other, each as a part of its own rate
    /// alone on all cores. Without any loss or gain the sum is 1.
    fn combined(&self, arms: &Arms) -> Option<f64> {
        let all_cores = self.arms.last()?;
        let study = &self.study;
        let msm = study.median(all_cores.msm, msm_s)? / study.median(arms.both, msm_s)?;
        let synthesis = study.median(all_cores.synthesis, synthesis_s)?
            / study.median(arms.both, synthesis_s)?;
        Some(msm + synthesis)
    }

    fn row(&self, arms: &Arms) -> Vec<String> {
        let study = &self.study;
        let threads = u32::try_from(arms.threads).unwrap_or(u32::MAX);
        let scratch = b_g2_msm_scratch_bytes(self.load.points, threads);
        let slow_down = study.ratio(arms.both, arms.synthesis, synthesis_s);
        vec![
            format!("{} {}", self.load.scalars.name(), self.load.points),
            arms.threads.to_string(),
            table::figure(study.median(arms.msm, msm_s), table::seconds),
            table::figure(study.median(arms.both, msm_s), table::seconds),
            table::figure(study.median(arms.synthesis, synthesis_s), table::seconds),
            table::figure(study.median(arms.both, synthesis_s), table::seconds),
            table::figure(slow_down, table::percent_over),
            table::figure(self.combined(arms), table::times),
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
                study.median(arms.both, msm_s)
            }),
            line("synthesis alone", &|arms| study.median_s(arms.synthesis)),
            line("synthesis beside b_g2_msm", &|arms| {
                study.median(arms.both, synthesis_s)
            }),
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
            "gpu_threads on {} cores, beside synthesis on as many; medians, of one b_g2_msm and \
             one synthesis. `combined` is the sum of both sides' rates beside each other, each \
             by its own alone on all cores",
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
            "combined",
            "buckets",
        ];
        table::print(&title, &header, &rows);
    }
    criterion.final_summary();
    Ok(())
}
