//! The MSM in G2, and synthesis beside it.

use std::sync::{Arc, Mutex, PoisonError};

use blstrs::{G2Affine, G2Projective, Scalar};
use cuzk_core::circuits;
use cuzk_core::config::Config;
use cuzk_filecoin::{ProofKind, Statement, WitnessContext, decode};
use cuzk_groth16::Circuit;
use cuzk_groth16::evaluate::{domain_buffers, evaluate_partition};
use cuzk_groth16::memory::buffer_pool;
use cuzk_kernels::msm::{PackedScalars, g2_packed};
use cuzk_memory::{Buffer, BufferPool, NEVER_STOP};
use cuzk_pce::PackedQuery;
use cuzk_tune::beside::{Side, alone, beside};
use cuzk_tune::sweep::{Point, Sweep};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rayon::ThreadPool;

use crate::commands::Context;
use crate::commands::demo::bundled_request;
use crate::failure::{Failure, failed};

/// The number of different bases. Longer lists repeat them, which makes no difference to a
/// cache.
const DISTINCT_BASES: usize = 1 << 14;

/// The least number of pieces of work of each side in one sample.
const QUOTA: usize = 2;

/// The work of both sides.
pub(super) struct Work {
    pub(super) kind: ProofKind,
    pub(super) config: Config,
    job: Box<dyn Statement>,
    circuit: Circuit,
    synthesis_pool: ThreadPool,
    out: Mutex<[Buffer; 2]>,
    bases: Vec<G2Affine>,
    pub(super) scalars: PackedQuery<Scalar>,
    /// Like the engine's: an MSM reuses the memory of the one before.
    memory: Arc<BufferPool>,
}

impl Work {
    /// Prepares both sides for the bundled request of a kind.
    pub(super) fn new(context: &Context, kind: ProofKind) -> Result<Self, Failure> {
        let config = context.config.clone();
        let job = decode(&bundled_request(kind)?)?;
        let circuit = circuits::cached(job.circuit(), &config.srs.param_cache)?;
        let synthesis_pool = config.synthesis.pool()?;
        let witness = synthesis_pool.install(|| job.witness(0))?;
        let densities = circuit.densities();
        let scalars = PackedQuery::new(&witness, densities.b_input.iter(), &densities.b_aux);
        let memory = buffer_pool(config.memory.dealloc, u64::MAX);
        Ok(Self {
            kind,
            bases: bases(scalars.as_slice().len),
            scalars,
            out: Mutex::new(domain_buffers(&circuit, &memory)?),
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
        let context = cuzk_kernels::Context {
            isa: self.config.cpu.isa,
            checkpoint: &NEVER_STOP,
            memory: &*self.memory,
        };
        let point = pool.install(|| g2_packed(context, &self.bases[..], &scalars));
        std::hint::black_box(point.map_err(failed)?);
        Ok(())
    }

    fn synthesis(&self) -> Result<(), Failure> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = &mut *out;
        self.synthesis_pool.install(|| {
            let memory = self.memory.array_memory();
            let context = WitnessContext {
                memory: &memory,
                ..self.config.cpu.isa.into()
            };
            let witness = self.job.witness_in(0, context)?;
            evaluate_partition(&self.circuit, &witness, [a, b], None, &NEVER_STOP)?;
            Ok(())
        })
    }

    /// Measures every number of threads, and synthesis alone, once a round.
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
        let synthesis = || self.synthesis();
        let side = || Side::new(QUOTA, &synthesis);
        for round in 1..=rounds {
            starts(round);
            sweep.other_alone_s.push(alone(side())?.as_secs_f64());
            for (pool, (_, point)) in pools.iter().zip(&mut sweep.points) {
                let msm = || self.msm(pool);
                let msm_alone = alone(Side::new(QUOTA, &msm))?;
                let [msm_beside, synthesis] = beside(Side::new(QUOTA, &msm), side())?;
                point.alone_s.push(msm_alone.as_secs_f64());
                point.beside_s.push(msm_beside.as_secs_f64());
                point.other_beside_s.push(synthesis.as_secs_f64());
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
