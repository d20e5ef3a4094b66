//! One MSM, the work beside it, and the durations of both.

use crate::{
    arm::{Arm, Workload},
    circuits::Circuits,
    load::Load,
};
use benches::{
    Result,
    g2::Msm,
    mode::cores,
    study::{Timed, time},
    throttled::{self, Policy},
};
use blstrs::Scalar;
use cuzk_memory::NEVER_STOP;
use cuzk_pce::evaluate;
use ff::Field;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{
    hint::black_box,
    sync::{Mutex, PoisonError, atomic::AtomicI32},
    thread,
    time::Duration,
};

/// The time for which evaluation runs before the MSM starts beside it.
const LEAD: Duration = Duration::from_millis(20);

/// The number of evaluations of the compiled circuit that stand for one over CSR.
const COMPILED_FASTER: usize = 8;

/// The number of syntheses beside an MSM. They last longer than the MSM.
pub(crate) const SYNTHESES: usize = 2;

/// The duration of each side; zero for a side that did not run.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) msm: Duration,
    pub(crate) evaluations: Duration,
}

impl Sample {
    pub(crate) fn msm_s(&self) -> f64 {
        self.msm.as_secs_f64()
    }

    pub(crate) fn evaluations_s(&self) -> f64 {
        self.evaluations.as_secs_f64()
    }
}

impl Timed for Sample {
    fn wall(&self) -> Duration {
        self.msm.max(self.evaluations)
    }
}

/// The MSM, and the work beside it.
pub(crate) struct Work<'a> {
    pub(crate) circuits: &'a Circuits,
    /// The vectors a and b of the compiled circuit.
    out: Mutex<[Vec<Scalar>; 2]>,
    evaluations: usize,
    msm: Msm,
    pool: ThreadPool,
}

impl<'a> Work<'a> {
    /// Prepares both sides, with `evaluations` over CSR beside an MSM.
    pub(crate) fn new(load: Load, circuits: &'a Circuits, evaluations: usize) -> Result<Self> {
        let r1cs = &circuits.r1cs;
        let zeros = vec![Scalar::ZERO; r1cs.rows() + r1cs.num_inputs()];
        let threads = load.threads();
        Ok(Work {
            circuits,
            out: Mutex::new([zeros.clone(), zeros]),
            evaluations,
            msm: Msm::new(load.kernel, load.scalars, load.points, cores())?,
            pool: ThreadPoolBuilder::new().num_threads(threads).build()?,
        })
    }

    /// Returns the count that is raised while the MSM is computed.
    pub(crate) fn throttle(&self) -> &AtomicI32 {
        self.msm.throttle()
    }

    /// Computes the MSM and returns its duration.
    pub(crate) fn msm(&self) -> Result<Duration> {
        let (point, wall) = time(|| self.msm.compute());
        black_box(point?);
        Ok(wall)
    }

    /// Does the arm's work once, on rayon's current threads.
    fn evaluate(&self, arm: Arm) -> Result<()> {
        let Circuits { r1cs, witness, .. } = self.circuits;
        let throttle = self.throttle();
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

    /// Evaluates the compiled circuit, with looks at `throttle`.
    pub(crate) fn evaluate_compiled(&self, throttle: Option<&AtomicI32>) -> Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = &mut *out;
        let Circuits {
            program, packed, ..
        } = self.circuits;
        let throttled = NEVER_STOP.throttled(throttle, program.rows());
        program.evaluate_satisfied(packed, [a, b], &throttled)?;
        Ok(())
    }

    /// Writes a witness and evaluates the circuit, each with looks at a throttle.
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

    /// Returns the number of repetitions that last clearly longer than the MSM.
    pub(crate) fn count(&self, arm: Arm) -> usize {
        match arm.work() {
            Workload::Csr => self.evaluations,
            Workload::Compiled => self.evaluations * COMPILED_FASTER,
            Workload::Synthesis => SYNTHESES,
        }
    }

    /// Does the arm's work `count` times and returns the duration.
    fn evaluations(&self, arm: Arm, count: usize) -> Result<Duration> {
        let all = || (0..count).try_for_each(|_| self.evaluate(arm));
        let (result, wall) = time(|| self.pool.install(all));
        result.map(|()| wall)
    }

    /// Measures the MSM alone.
    pub(crate) fn msm_alone(&self) -> Result<Sample> {
        Ok(Sample {
            msm: self.msm()?,
            evaluations: Duration::ZERO,
        })
    }

    /// Measures this work alone, without a look at the throttle.
    pub(crate) fn evaluations_alone(&self, workload: Workload) -> Result<Sample> {
        let arm = workload.off();
        Ok(Sample {
            msm: Duration::ZERO,
            evaluations: self.evaluations(arm, self.count(arm))?,
        })
    }

    /// Measures the MSM and `count` evaluations beside each other.
    pub(crate) fn both(&self, arm: Arm, count: usize) -> Result<Sample> {
        thread::scope(|scope| {
            let evaluations = scope.spawn(|| self.evaluations(arm, count));
            thread::sleep(LEAD);
            let msm = self.msm()?;
            match evaluations.join() {
                Ok(evaluations) => Ok(Sample {
                    msm,
                    evaluations: evaluations?,
                }),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}
