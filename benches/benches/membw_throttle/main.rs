//! The throttle: the MSM in G2 beside synthesis, with several reactions of synthesis
//! while the throttle is raised. It also measures the cost of the check while the
//! throttle is not raised. The C++ kernel and the engine's compute the MSM on all
//! cores. Synthesis has all of them or one thread.

use benches::{
    Result,
    circuit::Hashes,
    g2::{Kernel, Sum},
    mode::{Mode, cores},
    msm::Scalars,
    plot::{self, Line},
    porep::Porep,
    study::{Study, Timed, time},
    table,
    throttled::{self, Policy},
};
use blstrs::Scalar;
use criterion::Criterion;
use cuzk_memory::NEVER_STOP;
use cuzk_pce::{
    CHUNK_ROWS, PackedBuilder, PackedWitness, Program, R1cs, THROTTLE_CHUNKS, Witness, compile,
    evaluate, record, witness,
};
use ff::Field;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{
    hint::black_box,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    thread,
    time::Duration,
};

const ROUNDS: usize = 4;

/// The number of MSMs alone, each with one beside evaluations and one beside syntheses. An
/// MSM takes a tenth of a second, and two in a row differ by as much as the target allows.
const PAIRS: usize = 19;

/// How long evaluation runs before the sum starts beside it.
const LEAD: Duration = Duration::from_millis(20);

/// How many evaluations of the compiled circuit stand for one over CSR.
const COMPILED_FASTER: usize = 8;

/// The number of evaluations beside an MSM that they give way to. They need not last
/// longer than the MSM, because they wait for it.
const COMPILED_PAIRED: usize = 8;

/// How many syntheses run beside a sum: they last longer than it.
const SYNTHESES: usize = 2;

/// The challenges of which each has the witness: those of a partition.
const WITNESS_CHALLENGES: usize = 18;

/// Loads, on how many loads a check's cost is averaged.
const CHECKS: u32 = 10_000_000;

#[derive(Clone, Copy)]
struct Load {
    kernel: Kernel,
    points: usize,
    scalars: Scalars,
    /// True if synthesis has all cores, false if it has one thread.
    on_all: bool,
}

/// Sums that take about as long as each other: the engine's kernel is the
/// faster one.
const LOADS: [Load; 6] = [
    CPP_WITNESS,
    Load {
        points: 1 << 13,
        scalars: Scalars::Uniform,
        ..CPP_WITNESS
    },
    ENGINE_WITNESS,
    Load {
        points: 1 << 15,
        scalars: Scalars::Uniform,
        ..ENGINE_WITNESS
    },
    Load {
        on_all: false,
        ..CPP_WITNESS
    },
    Load {
        on_all: false,
        ..ENGINE_WITNESS
    },
];

const CPP_WITNESS: Load = Load {
    kernel: Kernel::Cpp,
    points: 1 << 17,
    scalars: Scalars::Witness,
    on_all: true,
};

const ENGINE_WITNESS: Load = Load {
    kernel: Kernel::Engine,
    points: 1 << 18,
    ..CPP_WITNESS
};

const SMOKE_LOADS: [Load; 3] = [
    SMOKE,
    Load {
        kernel: Kernel::Engine,
        ..SMOKE
    },
    Load {
        on_all: false,
        ..SMOKE
    },
];

const SMOKE: Load = Load {
    kernel: Kernel::Cpp,
    points: 64,
    scalars: Scalars::Uniform,
    on_all: true,
};

impl Load {
    fn name(self) -> String {
        let Load {
            kernel, scalars, ..
        } = self;
        let threads = self.threads();
        format!(
            "{}, {} {}, beside {threads}",
            kernel.name(),
            scalars.name(),
            self.points
        )
    }

    /// Synthesis'.
    fn threads(self) -> usize {
        if self.on_all { cores() } else { 1 }
    }

    /// Returns the arms that are measured beside the MSM. Arms that no engine has are
    /// measured beside one kernel only. One thread has only the engine's arms.
    fn arms(self) -> Vec<Arm> {
        let only_cpp = [
            Arm::Yield,
            Arm::ParkEveryChunk,
            Arm::FewerThreads,
            Arm::SynthesisSleep,
        ];
        let mut arms = Arm::ALL.to_vec();
        arms.retain(|arm| self.kernel == Kernel::Cpp || !only_cpp.contains(arm));
        arms.retain(|arm| self.on_all || arm.work() != What::Csr);
        arms
    }
}

/// The work beside the MSM.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Csr,
    Compiled,
    /// Witnesses of a PoRep's partition, each followed by an evaluation of the compiled
    /// circuit.
    Synthesis,
}

impl What {
    const ALL: [What; 3] = [What::Csr, What::Compiled, What::Synthesis];

    fn alone(self) -> &'static str {
        match self {
            What::Csr => "evaluation alone",
            What::Compiled => "compiled, alone",
            What::Synthesis => "synthesis, alone",
        }
    }

    /// Without a look at the throttle.
    fn off(self) -> Arm {
        match self {
            What::Csr => Arm::Off,
            What::Compiled => Arm::CompiledOff,
            What::Synthesis => Arm::SynthesisOff,
        }
    }
}

/// The reaction of the evaluation while the throttle is raised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    Off,
    Yield,
    Sleep,
    ParkEveryChunk,
    FewerThreads,
    CompiledOff,
    CompiledSleep,
    SynthesisOff,
    SynthesisSleep,
    SynthesisAside,
}

impl Arm {
    const ALL: [Arm; 10] = [
        Arm::Off,
        Arm::Yield,
        Arm::Sleep,
        Arm::ParkEveryChunk,
        Arm::FewerThreads,
        Arm::CompiledOff,
        Arm::CompiledSleep,
        Arm::SynthesisOff,
        Arm::SynthesisSleep,
        Arm::SynthesisAside,
    ];

    fn name(self) -> &'static str {
        match self {
            Arm::Off => "off",
            Arm::Yield => "yield every 64th",
            Arm::Sleep => "sleep every 64th",
            Arm::ParkEveryChunk => "sleep every chunk",
            Arm::FewerThreads => "every second thread sleeps",
            Arm::CompiledOff => "compiled, off",
            Arm::CompiledSleep => "compiled, sleep every chunk",
            Arm::SynthesisOff => "synthesis, off",
            Arm::SynthesisSleep => "synthesis, evaluation sleeps",
            Arm::SynthesisAside => "synthesis, witness too",
        }
    }

    fn work(self) -> What {
        match self {
            Arm::Off | Arm::Yield | Arm::Sleep | Arm::ParkEveryChunk | Arm::FewerThreads => {
                What::Csr
            }
            Arm::CompiledOff | Arm::CompiledSleep => What::Compiled,
            Arm::SynthesisOff | Arm::SynthesisSleep | Arm::SynthesisAside => What::Synthesis,
        }
    }
}

/// A circuit in both forms, and its values; and what a witness is written of.
struct Circuits {
    r1cs: R1cs<Scalar>,
    witness: Witness<Scalar>,
    program: Program<Scalar>,
    packed: PackedWitness<Scalar>,
    porep: Porep,
}

impl Circuits {
    fn new(hashes: usize, challenges: usize) -> Result<Self> {
        let circuit = |blank| Hashes {
            count: hashes,
            blank,
        };
        let witness = witness(circuit(false))?;
        Ok(Circuits {
            r1cs: record(circuit(true))?,
            program: compile(circuit(true))?,
            packed: PackedBuilder::pack(&witness),
            witness,
            porep: Porep::new(challenges)?,
        })
    }
}

/// The evaluated rows, and the work beside them.
struct Work<'a> {
    circuits: &'a Circuits,
    /// Where the compiled circuit's a and b go.
    out: Mutex<[Vec<Scalar>; 2]>,
    evaluations: usize,
    sum: Sum,
    pool: ThreadPool,
}

impl<'a> Work<'a> {
    fn new(load: Load, circuits: &'a Circuits, evaluations: usize) -> Result<Self> {
        let r1cs = &circuits.r1cs;
        let zeros = vec![Scalar::ZERO; r1cs.rows() + r1cs.num_inputs()];
        let threads = load.threads();
        Ok(Work {
            circuits,
            out: Mutex::new([zeros.clone(), zeros]),
            evaluations,
            sum: Sum::new(load.kernel, load.scalars, load.points, cores())?,
            pool: ThreadPoolBuilder::new().num_threads(threads).build()?,
        })
    }

    fn sum(&self) -> Result<Duration> {
        let (sum, wall) = time(|| self.sum.compute());
        black_box(sum?);
        Ok(wall)
    }

    fn evaluate(&self, arm: Arm) -> Result<()> {
        let Circuits { r1cs, witness, .. } = self.circuits;
        let throttle = self.sum.throttle();
        let throttled = |policy| throttled::evaluate(r1cs, witness, policy, throttle);
        black_box(match arm {
            Arm::Off => evaluate(r1cs, witness, None)?,
            Arm::Sleep => evaluate(r1cs, witness, Some(throttle))?,
            Arm::Yield => throttled(Policy::Yield)?,
            Arm::ParkEveryChunk => throttled(Policy::ParkEveryChunk)?,
            Arm::FewerThreads => throttled(Policy::FewerThreads)?,
            Arm::CompiledOff => return self.evaluate_compiled(None),
            Arm::CompiledSleep => return self.evaluate_compiled(Some(throttle)),
            Arm::SynthesisOff => return self.synthesize(None, None),
            Arm::SynthesisSleep => return self.synthesize(None, Some(throttle)),
            Arm::SynthesisAside => return self.synthesize(Some(throttle), Some(throttle)),
        });
        Ok(())
    }

    fn evaluate_compiled(&self, throttle: Option<&AtomicI32>) -> Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = &mut *out;
        let Circuits {
            program, packed, ..
        } = self.circuits;
        let throttled = NEVER_STOP.throttled(throttle, program.rows());
        program.evaluate_satisfied(packed, [a, b], &throttled)?;
        Ok(())
    }

    /// A witness, and the evaluation of the circuit, each with looks at a throttle.
    fn synthesize(
        &self,
        in_witness: Option<&AtomicI32>,
        in_evaluation: Option<&AtomicI32>,
    ) -> Result<()> {
        // As the engine writes a witness.
        let aside = NEVER_STOP.throttled(in_witness, self.circuits.program.rows());
        black_box(self.circuits.porep.witness(&aside)?);
        self.evaluate_compiled(in_evaluation)
    }

    /// As many evaluations as last clearly longer than the sum.
    fn count(&self, arm: Arm) -> usize {
        match arm.work() {
            What::Csr => self.evaluations,
            What::Compiled => self.evaluations * COMPILED_FASTER,
            What::Synthesis => SYNTHESES,
        }
    }

    fn evaluations(&self, arm: Arm, count: usize) -> Result<Duration> {
        let all = || (0..count).try_for_each(|_| self.evaluate(arm));
        let (result, wall) = time(|| self.pool.install(all));
        result.map(|()| wall)
    }

    fn alone(&self) -> Result<Sample> {
        Ok(Sample {
            sum: self.sum()?,
            evaluations: Duration::ZERO,
        })
    }

    fn both(&self, arm: Arm, count: usize) -> Result<Sample> {
        thread::scope(|scope| {
            let evaluations = scope.spawn(|| self.evaluations(arm, count));
            thread::sleep(LEAD);
            let sum = self.sum()?;
            match evaluations.join() {
                Ok(evaluations) => Ok(Sample {
                    sum,
                    evaluations: evaluations?,
                }),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Looks at the throttle while two MSMs run. The second begins when the first is
    /// half done. Returns the highest count, and the lowest one between their ends.
    ///
    /// # Errors
    /// If either count differs from that of two workers.
    fn two_workers(&self) -> Result<(i32, i32)> {
        let throttle = self.sum.throttle();
        let done = [AtomicBool::new(false), AtomicBool::new(false)];
        let half = self.sum()? / 2;
        thread::scope(|scope| {
            let workers: Vec<_> = (done.iter().zip([Duration::ZERO, half]))
                .map(|(done, wait)| {
                    scope.spawn(move || {
                        thread::sleep(wait);
                        let result = self.sum();
                        done.store(true, Ordering::SeqCst);
                        result
                    })
                })
                .collect();
            let (mut highest, mut lowest) = (0, i32::MAX);
            let done = |at: usize| done[at].load(Ordering::SeqCst);
            while !(done(0) && done(1)) {
                let one_out = done(0) || done(1);
                let count = throttle.load(Ordering::SeqCst);
                highest = highest.max(count);
                // A worker lowers it just before it says that it is done.
                thread::sleep(Duration::from_millis(2));
                if one_out && !(done(0) && done(1)) {
                    lowest = lowest.min(count);
                }
            }
            for worker in workers {
                match worker.join() {
                    Ok(result) => result?,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
            }
            match (highest, lowest) {
                (2, 1 | i32::MAX) => Ok((highest, lowest)),
                _ => Err(format!(
                    "two workers in the sum: expected a throttle of 2, and of 1 when one is out, \
                     got {highest} and {lowest}"
                )
                .into()),
            }
        })
    }
}

/// How long each side took; zero for one that did not run.
#[derive(Clone, Copy)]
struct Sample {
    sum: Duration,
    evaluations: Duration,
}

impl Timed for Sample {
    fn wall(&self) -> Duration {
        self.sum.max(self.evaluations)
    }
}

fn sum_s(sample: &Sample) -> f64 {
    sample.sum.as_secs_f64()
}

fn evaluations_s(sample: &Sample) -> f64 {
    sample.evaluations.as_secs_f64()
}

/// The result of one load: the rows of the table, and each arm's MSM for the plot.
struct Measured {
    rows: Vec<Vec<String>>,
    sums: Vec<(Arm, f64)>,
}

/// Each policy beside the sum.
fn beside(work: &Work<'_>, load: Load, criterion: &mut Criterion, mode: Mode) -> Result<Measured> {
    let mut study = Study::new();
    let sum_alone = study.arm("sum alone", || work.alone());
    let is_measured = |what: &What| load.arms().iter().any(|arm| arm.work() == *what);
    let alone: Vec<_> = (What::ALL.into_iter().filter(is_measured))
        .map(|what| {
            let run = move || {
                Ok(Sample {
                    sum: Duration::ZERO,
                    evaluations: work.evaluations(what.off(), work.count(what.off()))?,
                })
            };
            (what, study.arm(what.alone(), run))
        })
        .collect();
    let arms: Vec<_> = (load.arms().into_iter())
        .map(|arm| {
            (
                arm,
                study.arm(arm.name(), move || work.both(arm, work.count(arm))),
            )
        })
        .collect();
    let group = format!("membw_throttle/{}", load.name());
    study.bench(criterion, &group, mode, ROUNDS)?;

    let sums = (arms.iter())
        .filter_map(|&(arm, at)| Some((arm, study.median(at, sum_s)?)))
        .collect();
    let by_themselves = (alone.iter().map(|&(_, at)| at))
        .chain([sum_alone])
        .map(|at| row(load, &study, sum_alone, at, None));
    let beside = arms.iter().map(|&(arm, at)| {
        let alone = alone.iter().find(|(what, _)| *what == arm.work());
        row(load, &study, sum_alone, at, alone.map(|&(_, at)| at))
    });
    let rows = by_themselves.chain(beside).collect();
    Ok(Measured { rows, sums })
}

/// Measures the engine's arms again and again: evaluations and whole syntheses. Each time
/// the MSM runs alone before or after it. Returns rows of the table.
fn paired(
    work: &Work<'_>,
    load: Load,
    criterion: &mut Criterion,
    mode: Mode,
) -> Result<Vec<Vec<String>>> {
    let mut study = Study::new();
    let alone = study.arm("sum alone", || work.alone());
    let beside = [
        (Arm::CompiledSleep, COMPILED_PAIRED),
        (Arm::SynthesisAside, SYNTHESES),
    ];
    let beside = beside.map(|(arm, count)| study.arm(arm.name(), move || work.both(arm, count)));
    let group = format!("membw_throttle/{}, paired", load.name());
    study.bench(criterion, &group, mode, PAIRS)?;
    let rows = beside.map(|beside| paired_row(load, &study, alone, beside));
    Ok(rows.to_vec())
}

fn paired_row(load: Load, study: &Study<'_, Sample>, alone: usize, beside: usize) -> Vec<String> {
    let mut ratios: Vec<f64> = (study.samples(beside).iter().zip(study.samples(alone)))
        .map(|(beside, alone)| sum_s(beside) / sum_s(alone))
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let quarter = |quarters: usize| ratios.get(ratios.len() * quarters / 4).copied();
    let within = ratios.iter().filter(|&&ratio| ratio <= 1.1).count();
    vec![
        load.name(),
        study.name(beside).to_owned(),
        table::figure(study.median(alone, sum_s), table::seconds),
        table::figure(study.ratio(beside, alone, sum_s), table::percent_over),
        table::figure(quarter(1), table::percent_over),
        table::figure(quarter(3), table::percent_over),
        format!("{within} of {}", ratios.len()),
    ]
}

/// One arm's, with what it lost against `alone`.
fn row(
    load: Load,
    study: &Study<'_, Sample>,
    sum_alone: usize,
    arm: usize,
    alone: Option<usize>,
) -> Vec<String> {
    let sum = study.median(arm, sum_s).filter(|&sum| sum > 0.0);
    let evaluations = study.median(arm, evaluations_s).filter(|&s| s > 0.0);
    let losses = alone.map(|alone| {
        let alone = study.samples(alone).iter().map(evaluations_s);
        (study.samples(arm).iter().zip(alone))
            .map(|(sample, alone)| (evaluations_s(sample) - alone) / sum_s(sample))
    });
    let slow_down = sum.and_then(|_| study.ratio(arm, sum_alone, sum_s));
    vec![
        load.name(),
        study.name(arm).to_owned(),
        table::figure(sum, table::seconds),
        table::figure(slow_down, table::percent_over),
        table::figure(evaluations, table::seconds),
        table::figure(losses.and_then(benches::study::median), table::times),
    ]
}

/// Evaluation with no throttle and with one that is never raised, and what the
/// checks of one evaluation cost; returns the rows of the table.
fn unraised(work: &Work<'_>, criterion: &mut Criterion, mode: Mode) -> Result<Vec<Vec<String>>> {
    let lowered = AtomicI32::new(0);
    let mut study = Study::new();
    let plain = [None, Some(&lowered)].map(|throttle| {
        study.arm(arm_name("CSR", throttle), move || {
            let (result, wall) =
                time(|| evaluate(&work.circuits.r1cs, &work.circuits.witness, throttle));
            black_box(result?);
            Ok(wall)
        })
    });
    let compiled = [None, Some(&lowered)].map(|throttle| {
        study.arm(arm_name("compiled", throttle), move || {
            let (result, wall) = time(|| work.evaluate_compiled(throttle));
            result.map(|()| wall)
        })
    });
    study.bench(criterion, "membw_throttle/check", mode, ROUNDS * 2)?;
    let (raised, loads) = time(|| {
        (0..CHECKS)
            .filter(|_| black_box(&lowered).load(Ordering::Acquire) > 0)
            .count()
    });
    black_box(raised);
    let check_s = loads.as_secs_f64() / f64::from(CHECKS);
    let row = |what: &str, [without, with]: [usize; 2], checks: usize| {
        let measured = study.ratio(with, without, |wall| wall.as_secs_f64());
        let share = |evaluation| format!("{:.6} %", checks as f64 * check_s / evaluation * 100.0);
        vec![
            what.to_owned(),
            table::figure(study.median_s(without), table::seconds),
            table::figure(measured, table::percent_over),
            checks.to_string(),
            table::seconds(check_s),
            table::figure(study.median_s(without), share),
        ]
    };
    let chunks = work.circuits.r1cs.rows().div_ceil(CHUNK_ROWS);
    Ok(vec![
        row(
            "CSR, every 64th chunk of A and of B",
            plain,
            2 * chunks.div_ceil(THROTTLE_CHUNKS),
        ),
        row("compiled, every chunk", compiled, chunks),
    ])
}

fn arm_name(what: &str, throttle: Option<&AtomicI32>) -> String {
    let throttle = throttle.map_or("no throttle", |_| "throttle not raised");
    format!("{what}, {throttle}")
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let loads = mode.pick(&LOADS[..], &SMOKE_LOADS);
    let (hashes, challenges, evaluations) = mode.pick((24, WITNESS_CHALLENGES, 4), (1, 1, 1));
    let circuits = Circuits::new(hashes, challenges)?;
    let mut rows = Vec::new();
    let mut sums = Vec::new();
    let mut pairs = Vec::new();
    let mut checks = Vec::new();
    let mut counts = Vec::new();
    for (at, &load) in loads.iter().enumerate() {
        let work = Work::new(load, &circuits, evaluations)?;
        let measured = beside(&work, load, &mut criterion, mode)?;
        rows.extend(measured.rows);
        sums.push((load, measured.sums));
        pairs.extend(paired(&work, load, &mut criterion, mode)?);
        if at == 0 {
            checks = unraised(&work, &mut criterion, mode)?;
        }
        if mode == Mode::Measure && load.on_all {
            counts.push((load, work.two_workers()?));
        }
    }
    if mode == Mode::Measure {
        report(&rows, &pairs, &checks, &counts);
        Kernel::ALL
            .into_iter()
            .try_for_each(|kernel| draw(kernel, &sums))?;
    }
    criterion.final_summary();
    Ok(())
}

/// The sum over a witness beside each arm that was measured on both numbers of
/// threads.
fn draw(kernel: Kernel, sums: &[(Load, Vec<(Arm, f64)>)]) -> Result<()> {
    let of_kernel = |load: &Load| load.kernel == kernel && load.scalars == Scalars::Witness;
    let line = |arm: Arm| Line {
        name: arm.name().to_owned(),
        points: (sums.iter().rev())
            .filter(|(load, _)| of_kernel(load))
            .flat_map(|(load, sums)| sums.iter().map(|sum| (load.threads(), sum)))
            .filter(|(_, (of, _))| *of == arm)
            .map(|(threads, (_, sum_s))| (threads as f64, *sum_s))
            .collect(),
    };
    let lines: Vec<_> = (Arm::ALL.into_iter().map(line))
        .filter(|line| line.points.len() > 1)
        .collect();
    plot::draw(
        &format!("membw_throttle-{}", kernel.name()),
        "one MSM in G2 beside synthesis on so many threads",
        "seconds",
        &lines,
    )
}

fn report(
    rows: &[Vec<String>],
    pairs: &[Vec<String>],
    checks: &[Vec<String>],
    counts: &[(Load, (i32, i32))],
) {
    let title = format!(
        "membw_throttle: one MSM in G2 on {} cores beside evaluations of A and B over CSR, eight \
         times as many of the compiled circuit, or two syntheses, on so many threads; \
         medians. `loss` is what those lost, in the sum's time beside them",
        cores()
    );
    let header = [
        "kernel, scalars",
        "throttle",
        "sum",
        "against alone",
        "evaluations",
        "loss",
    ];
    table::print(&title, &header, rows);
    let header = [
        "kernel, scalars",
        "beside",
        "sum alone",
        "beside, median",
        "lower quartile",
        "upper quartile",
        "within 10 %",
    ];
    table::print(
        "the sum beside what the engine does, throttled as it does, against the sum alone just \
         before or after; over pairs",
        &header,
        pairs,
    );
    let header = [
        "evaluation and its checks",
        "evaluation",
        "not raised",
        "checks",
        "one check",
        "all, by an evaluation",
    ];
    table::print(
        "the check while the throttle is not raised",
        &header,
        checks,
    );
    let rows: Vec<_> = (counts.iter())
        .map(|(load, (highest, lowest))| {
            let seen = (*lowest != i32::MAX).then_some(f64::from(*lowest));
            vec![
                load.name(),
                highest.to_string(),
                table::figure(seen, table::count),
            ]
        })
        .collect();
    let header = [
        "kernel, scalars",
        "highest count",
        "lowest while one is left",
    ];
    table::print("two workers in the sum", &header, &rows);
}
