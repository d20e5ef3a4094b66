//! The MSM in G2 on several numbers of threads, alone and beside synthesis, by the
//! C++ kernel and by the engine's own. The bench also measures the effect of cores of
//! its own for the MSM. The bench `membw_throttle` measures giving way.
//!
//! The C++ pool's size is decided once a process, so each size is a child
//! process that waits for its turn. The engine's kernel has a pool of rayon's,
//! and is run the same way, so that nothing else is different.

use benches::{
    Result,
    circuit::Hashes,
    g2::{Kernel, Sum},
    mode::{Mode, cores, thread_counts},
    msm::Scalars,
    plot::{self, Line},
    study::{Study, Timed, time},
    table,
};
use blstrs::Scalar;
use criterion::Criterion;
use cuzk_memory::NEVER_STOP;
use cuzk_pce::{PackedWitness, Program, compile, packed_witness};
use cuzk_tune::{
    beside::{Side, alone, beside},
    child::{self, Child},
    counters::Counters,
    sweep::{Point, Sweep, median},
};
use ff::Field;
use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};
use std::{
    cell::RefCell,
    env,
    hint::black_box,
    process::Command,
    rc::Rc,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use supraseal_sys::set_gpu_threads;

/// One or two other settings than all cores are told from luck by 8 of 9.
const ROUNDS: usize = 9;

/// Comes before a child's argument.
const CHILD: &str = "--child";

/// The least work of both sides in one sample. Beside each other, the side
/// that is done goes on until the other is done too, so that there is never
/// one side alone.
#[derive(Clone, Copy)]
struct Load {
    points: usize,
    scalars: Scalars,
    sums: usize,
    other: Other,
    hashes: usize,
    others: usize,
    kernels: &'static [Kernel],
}

/// The work beside the MSM.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    /// Both of what follows, one after the other.
    Synthesis,
    Witness,
    Evaluation,
}

impl Other {
    fn name(self) -> &'static str {
        match self {
            Other::Synthesis => "synthesis",
            Other::Witness => "witness",
            Other::Evaluation => "evaluation",
        }
    }
}

/// How the other side makes room for the MSM.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Nothing: it has all cores.
    Beside,
    /// It runs on the cores that the sum leaves, for as long as both run.
    Rest,
}

impl Way {
    /// The last is what all numbers of threads are compared with.
    const ALL: [Way; 2] = [Way::Rest, Way::Beside];

    fn name(self) -> &'static str {
        match self {
            Way::Beside => "all cores",
            Way::Rest => "the rest",
        }
    }

    /// Returns true if it differs from the others.
    fn differs(self, threads: usize) -> bool {
        match self {
            Way::Beside => true,
            Way::Rest => threads < cores(),
        }
    }
}

const WITNESS_SUM: Load = Load {
    points: 1 << 17,
    scalars: Scalars::Witness,
    sums: 4,
    other: Other::Synthesis,
    hashes: 10,
    others: 3,
    kernels: &Kernel::ALL,
};

const LOADS: [Load; 4] = [
    WITNESS_SUM,
    Load {
        points: 1 << 14,
        scalars: Scalars::Uniform,
        sums: 2,
        ..WITNESS_SUM
    },
    // The parts of synthesis, beside the kernel that the engine has beside them.
    Load {
        other: Other::Witness,
        kernels: &[Kernel::Engine],
        ..WITNESS_SUM
    },
    Load {
        other: Other::Evaluation,
        others: 30,
        kernels: &[Kernel::Engine],
        ..WITNESS_SUM
    },
];

const SMOKE_LOADS: [Load; 1] = [Load {
    points: 64,
    scalars: Scalars::Uniform,
    sums: 1,
    other: Other::Synthesis,
    hashes: 1,
    others: 1,
    kernels: &Kernel::ALL,
}];

fn loads(mode: Mode) -> &'static [Load] {
    mode.pick(&LOADS[..], &SMOKE_LOADS)
}

/// The answer of a child: the mean time of one piece of work of each side over the
/// sample; 0 for a side that did not run.
#[derive(Clone, Copy)]
struct Sample {
    sum: Duration,
    other: Duration,
    /// How often a second a thread with work lost its core.
    preemptions: f64,
}

impl Timed for Sample {
    /// The slower side's: what a pipeline of the two would be held up by.
    fn wall(&self) -> Duration {
        self.sum.max(self.other)
    }
}

impl Sample {
    fn write(self) -> String {
        let Sample {
            sum,
            other,
            preemptions,
        } = self;
        format!("{} {} {preemptions}", sum.as_nanos(), other.as_nanos())
    }

    fn read(line: &str) -> Result<Self> {
        let [sum, other, preemptions] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("expected two durations and a count, got {line:?}").into());
        };
        Ok(Sample {
            sum: Duration::from_nanos(sum.parse()?),
            other: Duration::from_nanos(other.parse()?),
            preemptions: preemptions.parse()?,
        })
    }
}

/// The work of both sides.
struct Work {
    load: Load,
    sum: Sum,
    program: Program<Scalar>,
    witness: PackedWitness<Scalar>,
    /// Where a and b go.
    out: Mutex<[Vec<Scalar>; 2]>,
    /// The threads that the sum leaves, if it leaves any.
    rest: ThreadPool,
}

impl Work {
    fn new(load: Load, kernel: Kernel, threads: usize) -> Result<Self> {
        let circuit = |blank| Hashes {
            count: load.hashes,
            blank,
        };
        let program = compile(circuit(true))?;
        let zeros = vec![Scalar::ZERO; program.rows() + program.num_inputs()];
        Ok(Work {
            load,
            sum: Sum::new(kernel, load.scalars, load.points, threads)?,
            witness: packed_witness(circuit(false))?,
            program,
            out: Mutex::new([zeros.clone(), zeros]),
            rest: ThreadPoolBuilder::new()
                .num_threads(cores().saturating_sub(threads).max(1))
                .build()?,
        })
    }

    fn sum(&self) -> Result<()> {
        black_box(self.sum.compute()?);
        Ok(())
    }

    /// On rayon's current threads.
    fn other(&self) -> Result<()> {
        match self.load.other {
            Other::Synthesis => {
                self.witness()?;
                self.evaluation()
            }
            Other::Witness => self.witness(),
            Other::Evaluation => self.evaluation(),
        }
    }

    fn witness(&self) -> Result<()> {
        let hash = |_| {
            packed_witness::<Scalar, _>(Hashes {
                count: 1,
                blank: false,
            })
        };
        let hashes = (0..self.load.hashes).into_par_iter().map(hash);
        black_box(hashes.collect::<std::result::Result<Vec<_>, _>>()?);
        Ok(())
    }

    /// Unthrottled: what this compares is what the numbers of threads alone do.
    fn evaluation(&self) -> Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = &mut *out;
        Ok((self.program).evaluate_satisfied(&self.witness, [a, b], &NEVER_STOP)?)
    }

    /// The question is a side that is alone, or what the other side does because
    /// of the sum.
    fn answer(&self, question: &str) -> Result<Sample> {
        let way = Way::ALL.into_iter().find(|way| way.name() == question);
        let (sum, other) = (
            || self.sum(),
            || match way {
                Some(Way::Rest) => self.rest.install(|| self.other()),
                Some(Way::Beside) | None => self.other(),
            },
        );
        let sums = Side::new(self.load.sums, &sum);
        let others = Side::new(self.load.others, &other);
        let zero = Duration::ZERO;
        let work = || -> Result<(Duration, Duration)> {
            Ok(match question {
                "sum" => (alone(sums)?, zero),
                "other" => (zero, alone(others)?),
                _ => beside(sums, others)?.into(),
            })
        };
        let ((times, wall), usage) = Counters::open().count(|| time(work))?;
        let (sum, other) = times?;
        Ok(Sample {
            sum,
            other,
            preemptions: usage.preemptions as f64 / wall.as_secs_f64(),
        })
    }
}

/// A child: the argument is its kernel, its threads, the mode and the load.
fn serve(argument: &str) -> Result<()> {
    let [kernel, threads, mode, load] = argument.split(' ').collect::<Vec<_>>()[..] else {
        return Err("expected kernel, threads, mode and load".into());
    };
    let kernel = Kernel::ALL.into_iter().find(|k| k.name() == kernel);
    let kernel = kernel.ok_or("no such kernel")?;
    let mode = if mode == "measure" {
        Mode::Measure
    } else {
        Mode::Smoke
    };
    let load = loads(mode).get(load.parse::<usize>()?);
    let load = *load.ok_or("no such load")?;
    set_gpu_threads(threads.parse()?)?;
    let work = Work::new(load, kernel, threads.parse()?)?;
    child::serve(|question| Ok(work.answer(question)?.write()))
}

fn sum_s(sample: &Sample) -> f64 {
    sample.sum.as_secs_f64()
}

fn other_s(sample: &Sample) -> f64 {
    sample.other.as_secs_f64()
}

fn preemptions(sample: &Sample) -> f64 {
    sample.preemptions
}

/// One kernel on one number of threads, and one way beside it.
struct Arms {
    kernel: Kernel,
    threads: usize,
    way: Way,
    sum: usize,
    both: usize,
}

struct Measured<'a> {
    load: Load,
    study: Study<'a, Sample>,
    other: usize,
    arms: Vec<Arms>,
}

/// A child that is started by the first question, so that listing starts none.
struct Lazy {
    argument: String,
    child: RefCell<Option<Child>>,
}

impl Lazy {
    fn ask(&self, question: &str) -> Result<Sample> {
        let mut child = self.child.borrow_mut();
        let child = match child.as_mut() {
            Some(child) => child,
            None => {
                let mut command = Command::new(env::current_exe()?);
                child.insert(Child::start(command.args([CHILD, &self.argument]))?)
            }
        };
        Sample::read(&child.ask(question)?)
    }
}

fn measure(
    mode: Mode,
    at: usize,
    load: Load,
    criterion: &mut Criterion,
) -> Result<Measured<'static>> {
    let mut study = Study::new();
    let (mut arms, mut other) = (Vec::new(), None);
    for &kernel in load.kernels {
        for threads in thread_counts() {
            let mode = mode.pick("measure", "smoke");
            let child = Rc::new(Lazy {
                argument: format!("{} {threads} {mode} {at}", kernel.name()),
                child: RefCell::default(),
            });
            let mut arm = |question: &'static str, name: String| {
                let child = Rc::clone(&child);
                study.arm(name, move || child.ask(question))
            };
            // The same whatever the kernel and its threads.
            other.get_or_insert_with(|| arm("other", load.other.name().to_owned()));
            let name = |what| format!("{}/{threads} threads/{what}", kernel.name());
            let sum = arm("sum", name("alone"));
            for way in Way::ALL {
                if way.differs(threads) {
                    arms.push(Arms {
                        kernel,
                        threads,
                        way,
                        sum,
                        both: arm(way.name(), name(way.name())),
                    });
                }
            }
        }
    }
    let group = format!("gpu_threads/{}/{}", load.scalars.name(), load.other.name());
    study.bench(criterion, &group, mode, ROUNDS)?;
    Ok(Measured {
        load,
        study,
        other: other.ok_or("there are no threads")?,
        arms,
    })
}

impl Measured<'_> {
    fn of(&self, kernel: Kernel) -> impl Iterator<Item = &Arms> {
        self.arms.iter().filter(move |arms| arms.kernel == kernel)
    }

    /// Every number of threads and way; the last is all threads, nothing done
    /// because of them.
    fn sweep(&self, kernel: Kernel) -> Sweep {
        let all =
            |arm: usize, of: fn(&Sample) -> f64| self.study.samples(arm).iter().map(of).collect();
        let point = |arms: &Arms| Point {
            alone_s: all(arms.sum, sum_s),
            beside_s: all(arms.both, sum_s),
            other_beside_s: all(arms.both, other_s),
        };
        Sweep {
            other_alone_s: all(self.other, other_s),
            points: (self.of(kernel).map(|arms| (arms.threads, point(arms)))).collect(),
        }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let rows = self.load.kernels.iter().flat_map(|&kernel| {
            let sweep = self.sweep(kernel);
            let chosen = sweep.choose().map(|choice| choice.at);
            let arms = self.of(kernel).enumerate();
            let row = |(at, arms)| self.row(arms, &sweep.combined(at), chosen == Some(at));
            arms.map(row).collect::<Vec<_>>()
        });
        rows.collect()
    }

    fn row(&self, arms: &Arms, combined: &[f64], chosen: bool) -> Vec<String> {
        let (study, load) = (&self.study, self.load);
        let buckets = (arms.kernel).bucket_bytes(load.scalars, load.points, arms.threads);
        let slow_down = study.ratio(arms.both, self.other, other_s);
        vec![
            format!("{} {}", load.scalars.name(), load.points),
            load.other.name().to_owned(),
            arms.kernel.name().to_owned(),
            arms.threads.to_string(),
            arms.way.name().to_owned(),
            table::figure(study.median(arms.sum, sum_s), table::seconds),
            table::figure(study.median(arms.both, sum_s), table::seconds),
            table::figure(study.median(self.other, other_s), table::seconds),
            table::figure(study.median(arms.both, other_s), table::seconds),
            table::figure(slow_down, table::percent_over),
            table::figure(study.median(arms.both, preemptions), table::count),
            table::figure(median(combined), table::times) + if chosen { " *" } else { "" },
            table::mebibytes(buckets as f64),
        ]
    }

    fn draw(&self, kernel: Kernel) -> Result<()> {
        let line = |name: String, way: Way, of: &dyn Fn(&Arms) -> Option<f64>| Line {
            name,
            points: (self.of(kernel).filter(|arms| arms.way == way))
                .filter_map(|arms| Some((arms.threads as f64, of(arms)?)))
                .collect(),
        };
        let (study, other) = (&self.study, self.load.other.name());
        let mut lines = vec![
            line("sum alone".to_owned(), Way::Beside, &|arms| {
                study.median(arms.sum, sum_s)
            }),
            line(format!("{other} alone"), Way::Beside, &|_| {
                study.median(self.other, other_s)
            }),
        ];
        for way in Way::ALL {
            let on = format!("{other}: {}", way.name());
            lines.push(line(format!("sum, {on}"), way, &|arms| {
                study.median(arms.both, sum_s)
            }));
            lines.push(line(on, way, &|arms| study.median(arms.both, other_s)));
        }
        let scalars = self.load.scalars.name();
        let name = format!("gpu_threads-{scalars}-{other}-{}", kernel.name());
        plot::draw(&name, "gpu_threads", "seconds", &lines)
    }
}

fn main() -> Result<()> {
    let mut args = env::args().skip(1);
    if let (Some(CHILD), Some(argument)) = (args.next().as_deref(), args.next()) {
        return serve(&argument);
    }
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let mut rows = Vec::new();
    for (at, &load) in loads(mode).iter().enumerate() {
        let measured = measure(mode, at, load, &mut criterion)?;
        rows.extend(measured.rows());
        if mode == Mode::Measure {
            (load.kernels.iter()).try_for_each(|&kernel| measured.draw(kernel))?;
        }
    }
    if mode == Mode::Measure {
        report(&rows);
    }
    criterion.final_summary();
    Ok(())
}

fn report(rows: &[Vec<String>]) {
    let title = format!(
        "gpu_threads on {} cores: the MSM in G2 beside another work; medians, of one piece of \
         each. `on` is where the other work runs meanwhile: on all cores or on those that the MSM \
         leaves. `combined` is the sum of both sides' rates beside each \
         other, each by its own alone on all cores; * is the best, if enough rounds say that it \
         is better than gpu_threads and the other work on all cores, else that",
        cores()
    );
    let header = [
        "scalars",
        "beside",
        "kernel",
        "gpu_threads",
        "on",
        "sum alone",
        "sum beside",
        "other alone",
        "other beside",
        "slow-down",
        "preemptions/s",
        "combined",
        "buckets",
    ];
    table::print(&title, &header, rows);
}
