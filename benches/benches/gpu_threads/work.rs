//! The work of both sides in a child.

use crate::{
    load::{Load, Other, Way},
    sample::Sample,
};
use benches::{
    Result,
    circuit::Hashes,
    g2::{Kernel, Msm},
    mode::cores,
    study::time,
};
use blstrs::Scalar;
use cuzk_memory::NEVER_STOP;
use cuzk_pce::{PackedWitness, Program, compile, packed_witness};
use cuzk_tune::{
    beside::{Side, alone, beside},
    counters::Counters,
};
use ff::Field;
use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};
use std::{
    hint::black_box,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Both sides of a load.
pub(crate) struct Work {
    load: Load,
    msm: Msm,
    program: Program<Scalar>,
    witness: PackedWitness<Scalar>,
    /// The vectors a and b.
    out: Mutex<[Vec<Scalar>; 2]>,
    /// The threads that the MSM leaves, or one if it leaves none.
    rest: ThreadPool,
}

impl Work {
    /// Prepares both sides, with the MSM on `threads` threads.
    pub(crate) fn new(load: Load, kernel: Kernel, threads: usize) -> Result<Self> {
        let circuit = |blank| Hashes {
            count: load.hashes,
            blank,
        };
        let program = compile(circuit(true))?;
        let zeros = vec![Scalar::ZERO; program.rows() + program.num_inputs()];
        Ok(Work {
            load,
            msm: Msm::new(kernel, load.scalars, load.points, threads)?,
            witness: packed_witness(circuit(false))?,
            program,
            out: Mutex::new([zeros.clone(), zeros]),
            rest: ThreadPoolBuilder::new()
                .num_threads(cores().saturating_sub(threads).max(1))
                .build()?,
        })
    }

    fn msm(&self) -> Result<()> {
        black_box(self.msm.compute()?);
        Ok(())
    }

    /// Does the other side's work once, on rayon's current threads.
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

    /// Evaluates without a throttle, because this target compares only numbers of threads.
    fn evaluation(&self) -> Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = &mut *out;
        Ok((self.program).evaluate_satisfied(&self.witness, [a, b], &NEVER_STOP)?)
    }

    /// Answers a question: the name of a side that runs alone, or of a way.
    pub(crate) fn answer(&self, question: &str) -> Result<Sample> {
        let way = Way::ALL.into_iter().find(|way| way.name() == question);
        let (msm, other) = (
            || self.msm(),
            || match way {
                Some(Way::Rest) => self.rest.install(|| self.other()),
                Some(Way::Beside) | None => self.other(),
            },
        );
        let msms = Side::new(self.load.msms, &msm);
        let others = Side::new(self.load.others, &other);
        let zero = Duration::ZERO;
        let work = || -> Result<(Duration, Duration)> {
            Ok(match question {
                "sum" => (alone(msms)?, zero),
                "other" => (zero, alone(others)?),
                _ => beside(msms, others, Into::into)?.into(),
            })
        };
        let ((times, wall), usage) = Counters::open().count(|| time(work))?;
        let (msm, other) = times?;
        Ok(Sample {
            msm,
            other,
            preemptions: usage.preemptions as f64 / wall.as_secs_f64(),
        })
    }
}
