//! The MSM in G2, and the work on the next partition beside it.

use std::sync::{Arc, Mutex, PoisonError};

use blstrs::{G2Affine, G2Projective, Scalar};
use cuzk_core::circuits;
use cuzk_core::config::{BG2, Config, Devices, Gpus};
use cuzk_filecoin::{ProofKind, Statement, WitnessContext, decode};
use cuzk_groth16::Circuit;
use cuzk_groth16::evaluate::{domain_buffers, evaluate_partition};
use cuzk_groth16::memory::buffer_pool;
use cuzk_kernels::msm::{PackedScalars, g2_packed};
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::quotient::quotient_with;
use cuzk_memory::{Buffer, BufferPool, NEVER_STOP};
use cuzk_pce::PackedQuery;
use cuzk_tune::beside::{Side, alone, beside};
use cuzk_tune::sweep::{Point, Sweep};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rayon::ThreadPool;
use serde::Serialize;
use supraseal_sys::device::device_count;

use crate::commands::Context;
use crate::commands::demo::bundled_request;
use crate::commands::params::check_cache;
use crate::failure::{Failure, failed};
use crate::threads::none_left;

/// The number of different bases. Longer lists repeat them, which makes no difference to a
/// cache.
const DISTINCT_BASES: usize = 1 << 14;

/// The least number of pieces of work of each side in one sample.
const QUOTA: usize = 2;

/// The work of the engine that the MSM runs beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Beside {
    /// The witness, the evaluation and the quotient, where the processor proves.
    Synthesis,
    /// The witness alone, where a GPU proves. The GPU evaluates.
    Witness,
}

impl Beside {
    /// Returns the work beside the MSM in an engine with these devices.
    fn of(gpus: &Gpus, gpu_count: impl FnOnce() -> u32) -> Result<Self, Failure> {
        let has_gpu = match &gpus.devices {
            Devices::Cpu => false,
            Devices::Ordinals(_) => true,
            Devices::Auto => gpu_count() > 0,
        };
        if has_gpu && gpus.b_g2 == BG2::Device {
            return Err(Failure::input(
                "gpus.b_g2 is \"device\": the GPU makes the MSM in G2, so no number of threads \
                 is better than another; set it to \"cpu\" or \"auto\" to measure",
            ));
        }
        Ok(if has_gpu {
            Self::Witness
        } else {
            Self::Synthesis
        })
    }

    /// Returns the words for people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Synthesis => "the synthesis and the quotient",
            Self::Witness => "the witness",
        }
    }
}

/// The work of both sides.
pub(super) struct Work {
    pub(super) kind: ProofKind,
    pub(super) beside: Beside,
    pub(super) config: Config,
    job: Box<dyn Statement>,
    circuit: Circuit,
    synthesis_pool: ThreadPool,
    domain: Arc<Domain>,
    /// The vectors A and B, and the scratch of the quotient.
    out: Mutex<[Buffer; 3]>,
    bases: Vec<G2Affine>,
    pub(super) scalars: PackedQuery<Scalar>,
    /// Like the engine's: an MSM reuses the memory of the one before.
    memory: Arc<BufferPool>,
}

impl Work {
    /// Prepares both sides for the bundled request of a kind.
    pub(super) fn new(context: &Context, kind: ProofKind) -> Result<Self, Failure> {
        let config = context.config.clone();
        let beside = Beside::of(&config.gpus, || device_count().unwrap_or(0))?;
        let job = decode(&bundled_request(kind)?)?;
        check_cache(&config.srs.param_cache)?;
        let circuit = circuits::cached(job.circuit(), &config.srs.param_cache)?;
        let synthesis_pool = config.synthesis.pool()?;
        let witness = synthesis_pool.install(|| job.witness(0))?;
        let densities = circuit.densities();
        let inputs = densities.b_input.iter();
        let query = || PackedQuery::new(&witness, inputs, &densities.b_aux, &NEVER_STOP);
        let scalars = synthesis_pool.install(query);
        let scalars = scalars.map_err(cuzk_groth16::Error::from)?;
        let memory = buffer_pool(config.memory.dealloc, u64::MAX);
        let domain = circuit.domain(config.cpu.isa, &synthesis_pool);
        let [a, b] = domain_buffers(&circuit, &memory)?;
        let scratch = memory.take(circuit.domain_len()).map_err(failed)?;
        Ok(Self {
            kind,
            beside,
            bases: bases(scalars.as_slice().len),
            scalars,
            domain: domain.map_err(failed)?,
            out: Mutex::new([a, b, scratch]),
            memory,
            job,
            circuit,
            synthesis_pool,
            config,
        })
    }

    fn msm(&self, pool: &ThreadPool) -> Result<(), Failure> {
        let slice = self.scalars.as_slice();
        let scalars = PackedScalars::new(slice.len, slice.bits, slice.wide, slice.values);
        let scalars = scalars.map_err(failed)?;
        let point = pool.install(|| g2_packed(self.context(), &self.bases[..], &scalars));
        std::hint::black_box(point.map_err(failed)?);
        Ok(())
    }

    fn context(&self) -> cuzk_kernels::Context<'_> {
        cuzk_kernels::Context {
            isa: self.config.cpu.isa,
            checkpoint: &NEVER_STOP,
            memory: &*self.memory,
        }
    }

    /// The work on the next partition that the engine does at the same time.
    fn next_partition(&self) -> Result<(), Failure> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b, scratch] = &mut *out;
        self.synthesis_pool.install(|| {
            let memory = self.memory.array_memory();
            let context = WitnessContext {
                memory: &memory,
                ..self.config.cpu.isa.into()
            };
            let witness = self.job.witness_in(0, context)?;
            if self.beside == Beside::Witness {
                return Ok(());
            }
            evaluate_partition(&self.circuit, &witness, [a, b], None, &NEVER_STOP)?;
            quotient_with(&self.domain, a, b, scratch, self.context()).map_err(failed)
        })
    }

    /// Measures every number of threads, and the other work alone, once a round.
    pub(super) fn measure(
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
        let next_partition = || self.next_partition();
        let side = || Side::new(QUOTA, &next_partition);
        for round in 1..=rounds {
            starts(round);
            sweep.other_alone_s.push(alone(side())?.as_secs_f64());
            for (pool, (_, point)) in pools.iter().zip(&mut sweep.points) {
                let msm = || self.msm(pool);
                let msm_alone = alone(Side::new(QUOTA, &msm))?;
                let sums = Side::new(QUOTA, &msm);
                let [msm_beside, other] = beside(sums, side(), |error| none_left(&error))?;
                point.alone_s.push(msm_alone.as_secs_f64());
                point.beside_s.push(msm_beside.as_secs_f64());
                point.other_beside_s.push(other.as_secs_f64());
            }
        }
        Ok(sweep)
    }
}

/// Returns `len` points of which none is the identity.
fn bases(len: usize) -> Vec<G2Affine> {
    let distinct = len.min(DISTINCT_BASES);
    let generator = G2Projective::generator();
    let multiples = std::iter::successors(Some(generator), |point| Some(point + generator));
    let multiples: Vec<G2Projective> = multiples.take(distinct).collect();
    let mut bases = vec![G2Affine::identity(); distinct];
    G2Projective::batch_normalize(&multiples, &mut bases);
    bases.into_iter().cycle().take(len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_beside_the_msm_is_that_of_the_engines_devices() {
        let of = |devices, b_g2, count| {
            let mut gpus = Config::default().gpus;
            (gpus.devices, gpus.b_g2) = (devices, b_g2);
            Beside::of(&gpus, || count).map_err(|error| error.to_string())
        };
        let one = Devices::Ordinals(vec![0]);
        for (devices, count, beside) in [
            (Devices::Cpu, 4, Beside::Synthesis),
            (Devices::Auto, 0, Beside::Synthesis),
            (Devices::Auto, 2, Beside::Witness),
            (one.clone(), 0, Beside::Witness),
        ] {
            assert_eq!(of(devices, BG2::Auto, count), Ok(beside));
        }
        assert_eq!(of(Devices::Cpu, BG2::Device, 0), Ok(Beside::Synthesis));
        let refused = of(one, BG2::Device, 0).unwrap_err();
        assert!(refused.contains("gpus.b_g2"), "{refused}");
    }
}
