//! The throttle: b_g2_msm beside evaluation, with several ideas of what
//! evaluation does while the throttle is raised, and what the check costs
//! while it is not.

use benches::{
    Result,
    circuit::Hashes,
    mode::{Mode, cores},
    msm::{self, Scalars},
    study::{Study, Timed, time},
    table,
    throttled::{self, Policy},
};
use blstrs::{G2Affine, G2Projective, Scalar};
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
use supraseal_sys::{GpuResources, b_g2_msm};

const ROUNDS: usize = 6;

/// How long evaluation runs before b_g2_msm starts beside it.
const LEAD: Duration = Duration::from_millis(20);

/// How many evaluations of the compiled circuit stand for one over CSR.
const COMPILED_FASTER: usize = 8;

/// Loads, on how many loads a check's cost is averaged.
const CHECKS: u32 = 10_000_000;

#[derive(Clone, Copy)]
struct Load {
    points: usize,
    scalars: Scalars,
}

const LOADS: [Load; 2] = [
    Load {
        points: 1 << 17,
        scalars: Scalars::Witness,
    },
    Load {
        points: 1 << 13,
        scalars: Scalars::Uniform,
    },
];

const SMOKE_LOADS: [Load; 1] = [Load {
    points: 64,
    scalars: Scalars::Uniform,
}];

/// What evaluation does while the throttle is raised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    Off,
    Yield,
    Engine,
    ParkEveryChunk,
    CompiledOff,
    CompiledEngine,
}

impl Arm {
    const ALL: [Arm; 6] = [
        Arm::Off,
        Arm::Yield,
        Arm::Engine,
        Arm::ParkEveryChunk,
        Arm::CompiledOff,
        Arm::CompiledEngine,
    ];

    fn name(self) -> &'static str {
        match self {
            Arm::Off => "off",
            Arm::Yield => "yield every 64",
            Arm::Engine => "engine",
            Arm::ParkEveryChunk => "park every chunk",
            Arm::CompiledOff => "compiled, off",
            Arm::CompiledEngine => "compiled, engine",
        }
    }

    fn is_compiled(self) -> bool {
        matches!(self, Arm::CompiledOff | Arm::CompiledEngine)
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
    bases: Vec<G2Affine>,
    scalars: Vec<Scalar>,
    resources: GpuResources,
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
            bases: msm::bases::<G2Projective>(load.points),
            scalars: load.scalars.make(load.points),
            resources: GpuResources::new()?,
        })
    }

    fn msm(&self, points: usize) -> Result<Duration> {
        let (bases, scalars) = (&self.bases[..points], &self.scalars[..points]);
        let (sum, wall) = time(|| b_g2_msm(&self.resources, bases, scalars));
        black_box(sum?);
        Ok(wall)
    }

    fn evaluate(&self, arm: Arm) -> Result<()> {
        let (r1cs, witness) = (&self.r1cs, &self.witness);
        let throttle = self.resources.throttle();
        black_box(match arm {
            Arm::Off => evaluate(r1cs, witness, None)?,
            Arm::Engine => evaluate(r1cs, witness, Some(throttle))?,
            Arm::Yield => throttled::evaluate(r1cs, witness, Policy::Yield, throttle)?,
            Arm::ParkEveryChunk => {
                throttled::evaluate(r1cs, witness, Policy::ParkEveryChunk, throttle)?
            }
            Arm::CompiledOff => return self.evaluate_compiled(None),
            Arm::CompiledEngine => return self.evaluate_compiled(Some(throttle)),
        });
        Ok(())
    }

    fn evaluate_compiled(&self, throttle: Option<&AtomicI32>) -> Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = &mut *out;
        self.program.evaluate_into(&self.packed, a, b, throttle)?;
        Ok(())
    }

    /// As many evaluations as last clearly longer than b_g2_msm.
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
            let msm = self.msm(self.bases.len())?;
            match evaluations.join() {
                Ok(evaluations) => Ok(Sample {
                    msm,
                    evaluations: evaluations?,
                }),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Looks at the throttle while a longer and a shorter b_g2_msm run; the
    /// highest count, and the lowest between the end of one and of the other.
    fn two_workers(&self) -> Result<(i32, i32)> {
        let throttle = self.resources.throttle();
        let done = [AtomicBool::new(false), AtomicBool::new(false)];
        let points = self.bases.len();
        thread::scope(|scope| {
            let workers: Vec<_> = (done.iter().zip([points, points / 4]))
                .map(|(done, points)| {
                    scope.spawn(move || {
                        let result = self.msm(points);
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
    msm: Duration,
    evaluations: Duration,
}

impl Timed for Sample {
    fn wall(&self) -> Duration {
        self.msm.max(self.evaluations)
    }
}

fn msm_s(sample: &Sample) -> f64 {
    sample.msm.as_secs_f64()
}

fn evaluations_s(sample: &Sample) -> f64 {
    sample.evaluations.as_secs_f64()
}

/// Each policy beside b_g2_msm; returns the rows of the table.
fn beside(
    work: &Work,
    load: Load,
    criterion: &mut Criterion,
    mode: Mode,
) -> Result<Vec<Vec<String>>> {
    let mut study = Study::new();
    let msm_alone = study.arm("b_g2_msm alone", || {
        Ok(Sample {
            msm: work.msm(work.bases.len())?,
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
                msm: Duration::ZERO,
                evaluations: work.evaluations(arm)?,
            })
        })
    });
    let arms = Arm::ALL.map(|arm| study.arm(arm.name(), move || work.both(arm)));
    let group = format!("membw_throttle/{}", load.scalars.name());
    study.bench(criterion, &group, mode, ROUNDS)?;

    let name = format!("{} {}", load.scalars.name(), load.points);
    let row = |(arm, alone): (usize, Option<usize>)| {
        let msm = study.median(arm, msm_s).filter(|&msm| msm > 0.0);
        let evaluations = study.median(arm, evaluations_s).filter(|&s| s > 0.0);
        let losses = alone.map(|alone| {
            let alone = study.samples(alone).iter().map(evaluations_s);
            (study.samples(arm).iter().zip(alone))
                .map(|(sample, alone)| (evaluations_s(sample) - alone) / msm_s(sample))
        });
        let slow_down = msm.and_then(|_| study.ratio(arm, msm_alone, msm_s));
        vec![
            name.clone(),
            study.name(arm).to_owned(),
            table::figure(msm, table::seconds),
            table::figure(slow_down, table::percent_over),
            table::figure(evaluations, table::seconds),
            table::figure(losses.and_then(benches::study::median), table::times),
        ]
    };
    let beside = Arm::ALL.into_iter().zip(arms).map(|(arm, at)| {
        let alone = if arm.is_compiled() {
            compiled_alone
        } else {
            alone
        };
        (at, Some(alone))
    });
    let by_themselves = [msm_alone, alone, compiled_alone].map(|at| (at, None));
    Ok(by_themselves.into_iter().chain(beside).map(row).collect())
}

/// Evaluation with no throttle and with one that is never raised, and what the
/// checks of one evaluation cost; returns the rows of the table.
fn unraised(work: &Work, criterion: &mut Criterion, mode: Mode) -> Result<Vec<Vec<String>>> {
    let lowered = AtomicI32::new(0);
    let mut study = Study::new();
    let without = study.arm("no throttle", || {
        let (result, wall) = time(|| evaluate(&work.r1cs, &work.witness, None));
        black_box(result?);
        Ok(wall)
    });
    let with = study.arm("throttle not raised", || {
        let (result, wall) = time(|| evaluate(&work.r1cs, &work.witness, Some(&lowered)));
        black_box(result?);
        Ok(wall)
    });
    study.bench(criterion, "membw_throttle/check", mode, ROUNDS * 2)?;
    let (raised, loads) = time(|| {
        (0..CHECKS)
            .filter(|_| black_box(&lowered).load(Ordering::Acquire) > 0)
            .count()
    });
    black_box(raised);
    let check_s = loads.as_secs_f64() / f64::from(CHECKS);
    let chunks = 2 * work.r1cs.rows().div_ceil(CHUNK_ROWS);
    let checks = 2 * work.r1cs.rows().div_ceil(CHUNK_ROWS * THROTTLE_CHUNKS);
    let share = |checks: usize| {
        table::figure(study.median_s(without), |evaluation| {
            let share = checks as f64 * check_s / evaluation;
            format!("{:.6} %", share * 100.0)
        })
    };
    let measured = study.ratio(with, without, |wall| wall.as_secs_f64());
    let row = |what: &str, figure: String| vec![what.to_owned(), figure];
    Ok(vec![
        row(
            "evaluation, median",
            table::figure(study.median_s(without), table::seconds),
        ),
        row(
            "with a throttle that is not raised",
            table::figure(measured, table::percent_over),
        ),
        row("one check", table::seconds(check_s)),
        row(&format!("{checks} checks, of an evaluation"), share(checks)),
        row(
            &format!("{chunks} checks, were every chunk to check"),
            share(chunks),
        ),
    ])
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
        "membw_throttle: one b_g2_msm beside evaluations of A and B over CSR or, eight times \
         as many, of the compiled circuit, both on {} cores; medians. `loss` is what evaluation \
         lost, in b_g2_msm's time beside it",
        cores()
    );
    let header = [
        "scalars",
        "throttle",
        "b_g2_msm",
        "against alone",
        "evaluations",
        "loss",
    ];
    table::print(&title, &header, rows);
    table::print("the check", &["what", "figure"], checks);
    let rows: Vec<_> = (counts.iter())
        .map(|(load, (highest, lowest))| {
            let seen = (*lowest != i32::MAX).then_some(f64::from(*lowest));
            vec![
                load.scalars.name().to_owned(),
                highest.to_string(),
                table::figure(seen, table::count),
            ]
        })
        .collect();
    let header = ["scalars", "highest count", "lowest while one is left"];
    table::print("two workers in b_g2_msm", &header, &rows);
}
