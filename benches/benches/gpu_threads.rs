//! The sum in G2 on several numbers of threads, alone and beside synthesis, by
//! the C++ kernel and by the engine's own.
//!
//! The C++ pool's size is decided once a process, so each size is a child
//! process that waits for its turn. The engine's kernel has a pool of rayon's,
//! and is run the same way, so that nothing else is different.

use benches::{
    Result,
    child::{self, Child},
    circuit::Hashes,
    g2::{Kernel, Sum},
    mode::{Mode, cores, thread_counts},
    msm::Scalars,
    plot::{self, Line},
    study::{Study, Timed},
    table,
};
use blstrs::Scalar;
use criterion::Criterion;
use cuzk_pce::{PackedWitness, Program, compile, packed_witness};
use cuzk_tune::{
    beside::{Side, alone, beside},
    sweep::{Point, Sweep, median},
};
use ff::Field;
use rayon::prelude::*;
use std::{
    cell::RefCell,
    hint::black_box,
    rc::Rc,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use supraseal_sys::set_gpu_threads;

const ROUNDS: usize = 5;

/// The least work of both sides in one sample. Beside each other, the side
/// that is done goes on until the other is done too, so that there is never
/// one side alone.
#[derive(Clone, Copy)]
struct Load {
    points: usize,
    scalars: Scalars,
    sums: usize,
    hashes: usize,
    syntheses: usize,
}

const LOADS: [Load; 2] = [
    Load {
        points: 1 << 17,
        scalars: Scalars::Witness,
        sums: 4,
        hashes: 10,
        syntheses: 3,
    },
    Load {
        points: 1 << 14,
        scalars: Scalars::Uniform,
        sums: 2,
        hashes: 10,
        syntheses: 3,
    },
];

const SMOKE_LOADS: [Load; 1] = [Load {
    points: 64,
    scalars: Scalars::Uniform,
    sums: 1,
    hashes: 1,
    syntheses: 1,
}];

fn loads(mode: Mode) -> &'static [Load] {
    mode.pick(&LOADS[..], &SMOKE_LOADS)
}

/// What a child answers: how long one sum and one synthesis took, on average
/// over the sample; 0 for a side that did not run.
#[derive(Clone, Copy)]
struct Sample {
    sum: Duration,
    synthesis: Duration,
}

impl Timed for Sample {
    /// The slower side's: what a pipeline of the two would be held up by.
    fn wall(&self) -> Duration {
        self.sum.max(self.synthesis)
    }
}

impl Sample {
    fn write(self) -> String {
        format!("{} {}", self.sum.as_nanos(), self.synthesis.as_nanos())
    }

    fn read(line: &str) -> Result<Self> {
        let mut nanos = line
            .split(' ')
            .map(str::parse)
            .map(|n| n.map(Duration::from_nanos));
        match (nanos.next(), nanos.next()) {
            (Some(sum), Some(synthesis)) => Ok(Sample {
                sum: sum?,
                synthesis: synthesis?,
            }),
            _ => Err(format!("expected two durations, got {line:?}").into()),
        }
    }
}

/// What both sides work on.
struct Work {
    load: Load,
    sum: Sum,
    program: Program<Scalar>,
    witness: PackedWitness<Scalar>,
    /// Where a and b go.
    out: Mutex<[Vec<Scalar>; 2]>,
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
        })
    }

    fn sum(&self) -> Result<()> {
        black_box(self.sum.compute()?);
        Ok(())
    }

    /// Witness and evaluation, on all of rayon's threads, unthrottled: what
    /// this compares is what the number of threads alone does.
    fn synthesis(&self) -> Result<()> {
        let hash = |_| {
            packed_witness::<Scalar, _>(Hashes {
                count: 1,
                blank: false,
            })
        };
        let hashes = (0..self.load.hashes).into_par_iter().map(hash);
        black_box(hashes.collect::<std::result::Result<Vec<_>, _>>()?);
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = &mut *out;
        Ok(self.program.evaluate_into(&self.witness, a, b, None)?)
    }

    fn answer(&self, question: &str) -> Result<Sample> {
        let (sum, synthesis) = (|| self.sum(), || self.synthesis());
        let sums = Side::new(self.load.sums, &sum);
        let syntheses = Side::new(self.load.syntheses, &synthesis);
        let zero = Duration::ZERO;
        let (sum, synthesis) = match question {
            "sum" => (alone(sums)?, zero),
            "synthesis" => (zero, alone(syntheses)?),
            _ => beside(sums, syntheses)?.into(),
        };
        Ok(Sample { sum, synthesis })
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

fn synthesis_s(sample: &Sample) -> f64 {
    sample.synthesis.as_secs_f64()
}

/// The arms of one kernel and one number of threads.
struct Arms {
    kernel: Kernel,
    threads: usize,
    sum: usize,
    both: usize,
}

struct Measured<'a> {
    load: Load,
    study: Study<'a, Sample>,
    synthesis: usize,
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
            None => child.insert(Child::start(&self.argument)?),
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
    let (mut arms, mut synthesis) = (Vec::new(), None);
    for kernel in Kernel::ALL {
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
            synthesis.get_or_insert_with(|| arm("synthesis", "synthesis".to_owned()));
            let name = |what| format!("{}/{threads} threads/{what}", kernel.name());
            arms.push(Arms {
                kernel,
                threads,
                sum: arm("sum", name("alone")),
                both: arm("both", name("both")),
            });
        }
    }
    let group = format!("gpu_threads/{}", load.scalars.name());
    study.bench(criterion, &group, mode, ROUNDS)?;
    Ok(Measured {
        load,
        study,
        synthesis: synthesis.ok_or("there are no threads")?,
        arms,
    })
}

impl Measured<'_> {
    fn of(&self, kernel: Kernel) -> impl Iterator<Item = &Arms> {
        self.arms.iter().filter(move |arms| arms.kernel == kernel)
    }

    fn sweep(&self, kernel: Kernel) -> Sweep {
        let all =
            |arm: usize, of: fn(&Sample) -> f64| self.study.samples(arm).iter().map(of).collect();
        let point = |arms: &Arms| Point {
            alone_s: all(arms.sum, sum_s),
            beside_s: all(arms.both, sum_s),
            other_beside_s: all(arms.both, synthesis_s),
        };
        Sweep {
            other_alone_s: all(self.synthesis, synthesis_s),
            points: (self.of(kernel).map(|arms| (arms.threads, point(arms)))).collect(),
        }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let rows = Kernel::ALL.into_iter().flat_map(|kernel| {
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
        let slow_down = study.ratio(arms.both, self.synthesis, synthesis_s);
        vec![
            format!("{} {}", load.scalars.name(), load.points),
            arms.kernel.name().to_owned(),
            arms.threads.to_string(),
            table::figure(study.median(arms.sum, sum_s), table::seconds),
            table::figure(study.median(arms.both, sum_s), table::seconds),
            table::figure(study.median(self.synthesis, synthesis_s), table::seconds),
            table::figure(study.median(arms.both, synthesis_s), table::seconds),
            table::figure(slow_down, table::percent_over),
            table::figure(median(combined), table::times) + if chosen { " *" } else { "" },
            table::mebibytes(buckets as f64),
        ]
    }

    fn draw(&self, kernel: Kernel) -> Result<()> {
        let line = |name: &str, of: &dyn Fn(&Arms) -> Option<f64>| Line {
            name: name.to_owned(),
            points: (self.of(kernel))
                .filter_map(|arms| Some((arms.threads as f64, of(arms)?)))
                .collect(),
        };
        let study = &self.study;
        let lines = [
            line("sum alone", &|arms| study.median(arms.sum, sum_s)),
            line("sum beside synthesis", &|arms| {
                study.median(arms.both, sum_s)
            }),
            line("synthesis alone", &|_| {
                study.median(self.synthesis, synthesis_s)
            }),
            line("synthesis beside the sum", &|arms| {
                study.median(arms.both, synthesis_s)
            }),
        ];
        let name = format!("gpu_threads-{}-{}", self.load.scalars.name(), kernel.name());
        plot::draw(&name, "gpu_threads", "seconds", &lines)
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
        if mode == Mode::Measure {
            Kernel::ALL
                .into_iter()
                .try_for_each(|kernel| measured.draw(kernel))?;
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
        "gpu_threads on {} cores: the sum in G2 beside synthesis on all of them; medians, of one \
         sum and one synthesis. `combined` is the sum of both sides' rates beside each other, \
         each by its own alone on all cores; * is what `cuzk tune gpu-threads` would choose",
        cores()
    );
    let header = [
        "scalars",
        "kernel",
        "gpu_threads",
        "sum alone",
        "sum beside",
        "synthesis alone",
        "synthesis beside",
        "slow-down",
        "combined",
        "buckets",
    ];
    table::print(&title, &header, rows);
}
