//! The throttle: the sum in G2 beside evaluation, with several ideas of what
//! evaluation does while the throttle is raised, and what the check costs
//! while it is not. The sum is computed by the C++ kernel and by the engine's.

use benches::{
    Result,
    circuit::Hashes,
    g2::{Kernel, Sum},
    mode::{Mode, cores},
    msm::Scalars,
    study::{Study, Timed, time},
    table,
    throttled::{self, Policy},
};
use blstrs::Scalar;
use criterion::Criterion;
use cuzk_pce::{
    CHUNK_ROWS, PackedWitness, Program, R1cs, THROTTLE_CHUNKS, Witness, compile, evaluate, record,
    witness,
};
use ff::Field;
use std::{
    hint::black_box,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    thread,
    time::Duration,
};

const ROUNDS: usize = 5;

/// How long evaluation runs before the sum starts beside it.
const LEAD: Duration = Duration::from_millis(20);

/// How many evaluations of the compiled circuit stand for one over CSR.
const COMPILED_FASTER: usize = 8;

/// Loads, on how many loads a check's cost is averaged.
const CHECKS: u32 = 10_000_000;

#[derive(Clone, Copy)]
struct Load {
    kernel: Kernel,
    points: usize,
    scalars: Scalars,
}

/// Sums that take about as long as each other: the engine's kernel is the
/// faster one.
const LOADS: [Load; 4] = [
    Load {
        kernel: Kernel::Cpp,
        points: 1 << 17,
        scalars: Scalars::Witness,
    },
    Load {
        kernel: Kernel::Cpp,
        points: 1 << 13,
        scalars: Scalars::Uniform,
    },
    Load {
        kernel: Kernel::Engine,
        points: 1 << 18,
        scalars: Scalars::Witness,
    },
    Load {
        kernel: Kernel::Engine,
        points: 1 << 15,
        scalars: Scalars::Uniform,
    },
];

const SMOKE_LOADS: [Load; 2] = [
    Load {
        kernel: Kernel::Cpp,
        points: 64,
        scalars: Scalars::Uniform,
    },
    Load {
        kernel: Kernel::Engine,
        points: 64,
        scalars: Scalars::Uniform,
    },
];

impl Load {
    fn name(self) -> String {
        let Load {
            kernel, scalars, ..
        } = self;
        format!("{}, {} {}", kernel.name(), scalars.name(), self.points)
    }

    /// What is measured beside the sum. What no engine does is measured beside
    /// one kernel only.
    fn arms(self) -> Vec<Arm> {
        let only_cpp = [Arm::Yield, Arm::ParkEveryChunk];
        let mut arms = Arm::ALL.to_vec();
        arms.retain(|arm| self.kernel == Kernel::Cpp || !only_cpp.contains(arm));
        arms
    }
}

/// What evaluation does while the throttle is raised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    Off,
    Yield,
    Sleep,
    ParkEveryChunk,
    CompiledOff,
    CompiledSleep,
}

impl Arm {
    const ALL: [Arm; 6] = [
        Arm::Off,
        Arm::Yield,
        Arm::Sleep,
        Arm::ParkEveryChunk,
        Arm::CompiledOff,
        Arm::CompiledSleep,
    ];

    fn name(self) -> &'static str {
        match self {
            Arm::Off => "off",
            Arm::Yield => "yield every 64th",
            Arm::Sleep => "sleep every 64th",
            Arm::ParkEveryChunk => "sleep every chunk",
            Arm::CompiledOff => "compiled, off",
            Arm::CompiledSleep => "compiled, sleep every chunk",
        }
    }

    fn is_compiled(self) -> bool {
        matches!(self, Arm::CompiledOff | Arm::CompiledSleep)
    }
}

/// What is evaluated, and beside what.
struct Work {
    r1cs: R1cs<Scalar>,
    witness: Witness<Scalar>,
    program: Program<Scalar>,
    packed: PackedWitness<Scalar>,
    /// Where the compiled circuit's a and b go.
    out: Mutex<[Vec<Scalar>; 2]>,
    evaluations: usize,
    sum: Sum,
}

impl Work {
    fn new(load: Load, hashes: usize, evaluations: usize) -> Result<Self> {
        let circuit = |blank| Hashes {
            count: hashes,
            blank,
        };
        let r1cs = record(circuit(true))?;
        let witness = witness(circuit(false))?;
        let zeros = vec![Scalar::ZERO; r1cs.rows() + r1cs.num_inputs()];
        Ok(Work {
            program: compile(circuit(true))?,
            packed: PackedWitness::pack(&witness),
            out: Mutex::new([zeros.clone(), zeros]),
            r1cs,
            witness,
            evaluations,
            sum: Sum::new(load.kernel, load.scalars, load.points, cores())?,
        })
    }

    fn sum(&self) -> Result<Duration> {
        let (sum, wall) = time(|| self.sum.compute());
        black_box(sum?);
        Ok(wall)
    }

    fn evaluate(&self, arm: Arm) -> Result<()> {
        let (r1cs, witness) = (&self.r1cs, &self.witness);
        let throttle = self.sum.throttle();
        black_box(match arm {
            Arm::Off => evaluate(r1cs, witness, None)?,
            Arm::Sleep => evaluate(r1cs, witness, Some(throttle))?,
            Arm::Yield => throttled::evaluate(r1cs, witness, Policy::Yield, throttle)?,
            Arm::ParkEveryChunk => {
                throttled::evaluate(r1cs, witness, Policy::ParkEveryChunk, throttle)?
            }
            Arm::CompiledOff => return self.evaluate_compiled(None),
            Arm::CompiledSleep => return self.evaluate_compiled(Some(throttle)),
        });
        Ok(())
    }

    fn evaluate_compiled(&self, throttle: Option<&AtomicI32>) -> Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = &mut *out;
        (self.program).evaluate_satisfied(&self.packed, [a, b], throttle, &|| true)?;
        Ok(())
    }

    /// As many evaluations as last clearly longer than the sum.
    fn evaluations(&self, arm: Arm) -> Result<Duration> {
        let faster = if arm.is_compiled() {
            COMPILED_FASTER
        } else {
            1
        };
        let count = self.evaluations * faster;
        let (result, wall) = time(|| (0..count).try_for_each(|_| self.evaluate(arm)));
        result.map(|()| wall)
    }

    fn both(&self, arm: Arm) -> Result<Sample> {
        thread::scope(|scope| {
            let evaluations = scope.spawn(|| self.evaluations(arm));
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

    /// Looks at the throttle while two sums run, the second from half of the
    /// first one on; the highest count, and the lowest between the end of one
    /// and of the other.
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
                thread::sleep(Duration::from_micros(200));
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
            Ok((highest, lowest))
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

/// Each policy beside the sum; returns the rows of the table.
fn beside(
    work: &Work,
    load: Load,
    criterion: &mut Criterion,
    mode: Mode,
) -> Result<Vec<Vec<String>>> {
    let mut study = Study::new();
    let sum_alone = study.arm("sum alone", || {
        Ok(Sample {
            sum: work.sum()?,
            evaluations: Duration::ZERO,
        })
    });
    let [alone, compiled_alone] = [
        ("evaluation alone", Arm::Off),
        ("compiled, alone", Arm::CompiledOff),
    ]
    .map(|(name, arm)| {
        study.arm(name, move || {
            Ok(Sample {
                sum: Duration::ZERO,
                evaluations: work.evaluations(arm)?,
            })
        })
    });
    let arms: Vec<_> = (load.arms().into_iter())
        .map(|arm| (arm, study.arm(arm.name(), move || work.both(arm))))
        .collect();
    let group = format!("membw_throttle/{}", load.name());
    study.bench(criterion, &group, mode, ROUNDS)?;

    let name = load.name();
    let row = |(arm, alone): (usize, Option<usize>)| {
        let sum = study.median(arm, sum_s).filter(|&sum| sum > 0.0);
        let evaluations = study.median(arm, evaluations_s).filter(|&s| s > 0.0);
        let losses = alone.map(|alone| {
            let alone = study.samples(alone).iter().map(evaluations_s);
            (study.samples(arm).iter().zip(alone))
                .map(|(sample, alone)| (evaluations_s(sample) - alone) / sum_s(sample))
        });
        let slow_down = sum.and_then(|_| study.ratio(arm, sum_alone, sum_s));
        vec![
            name.clone(),
            study.name(arm).to_owned(),
            table::figure(sum, table::seconds),
            table::figure(slow_down, table::percent_over),
            table::figure(evaluations, table::seconds),
            table::figure(losses.and_then(benches::study::median), table::times),
        ]
    };
    let beside = arms.into_iter().map(|(arm, at)| {
        let alone = if arm.is_compiled() {
            compiled_alone
        } else {
            alone
        };
        (at, Some(alone))
    });
    let by_themselves = [sum_alone, alone, compiled_alone].map(|at| (at, None));
    Ok(by_themselves.into_iter().chain(beside).map(row).collect())
}

/// Evaluation with no throttle and with one that is never raised, and what the
/// checks of one evaluation cost; returns the rows of the table.
fn unraised(work: &Work, criterion: &mut Criterion, mode: Mode) -> Result<Vec<Vec<String>>> {
    let lowered = AtomicI32::new(0);
    let mut study = Study::new();
    let plain = [None, Some(&lowered)].map(|throttle| {
        study.arm(arm_name("CSR", throttle), move || {
            let (result, wall) = time(|| evaluate(&work.r1cs, &work.witness, throttle));
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
    let chunks = work.r1cs.rows().div_ceil(CHUNK_ROWS);
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
    let (hashes, evaluations) = mode.pick((24, 4), (1, 1));
    let mut rows = Vec::new();
    let mut checks = Vec::new();
    let mut counts = Vec::new();
    for (at, &load) in loads.iter().enumerate() {
        let work = Work::new(load, hashes, evaluations)?;
        rows.extend(beside(&work, load, &mut criterion, mode)?);
        if at == 0 {
            checks = unraised(&work, &mut criterion, mode)?;
        }
        if mode == Mode::Measure {
            counts.push((load, work.two_workers()?));
        }
    }
    if mode == Mode::Measure {
        report(&rows, &checks, &counts);
    }
    criterion.final_summary();
    Ok(())
}

fn report(rows: &[Vec<String>], checks: &[Vec<String>], counts: &[(Load, (i32, i32))]) {
    let title = format!(
        "membw_throttle: one sum in G2 beside evaluations of A and B over CSR or, eight times \
         as many, of the compiled circuit, both on {} cores; medians. `loss` is what evaluation \
         lost, in the sum's time beside it",
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
