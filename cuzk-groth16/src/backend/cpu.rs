//! The backend that every machine has.
//!
//! It keeps the same stages, locks and pools as a device would, so that the
//! engine is exercised whole without one. The invariants:
//!
//! * `gpu_mtx` is held while the transforms and the MSMs in G1 run, and by nothing else.
//! * The throttle is raised while the MSM in G2 runs.
//! * A thread that holds it waits for the pools by [`apart`] only. So jobs of one pool may prove,
//!   if that pool is not the backend's.
//! * A partition's checkpoint pauses and stops all of them. A paused one keeps the lock
//!   and the throttle. The work that preempts it therefore runs on a backend with
//!   resources and pools of its own.

mod region;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bellperson::groth16::Proof;
use blstrs::{Bls12, G2Projective, Scalar};
use cuzk_kernels::msm::{self, MsmTerm};
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::{Context, Isa};
use cuzk_memory::{Checkpoint, ThrottleManner};
use cuzk_pce::{PackedQuery, PackedWitness};
use cuzk_timeline::{Stage, Trace};
use rayon::ThreadPool;
use supraseal_sys::GpuResources;

use self::region::{Region, RegionSums, SumsInG1, packed, points_of};
use super::assemble::{Sums, assemble};
use super::bit_sums::{self, Batch, BitSums};
use super::footprint::{CpuWorkspace, Footprint, SynthesisShare, batch_footprint};
use super::{Backend, BackendError, Evaluation, Pending, Synthesized};
use crate::apart;
use crate::circuit::Circuit;
use crate::evaluate::{Throttle, domain_buffers, evaluate_partition};
use crate::params::{MappedMultiples, MappedParams, Shapes, SharedFile};
use cuzk_memory::{Buffer, BufferPool};

/// Proves with the kernels of `cuzk-kernels`.
pub struct CpuBackend {
    resources: Arc<GpuResources>,
    pool: Arc<ThreadPool>,
    b_g2_pool: Arc<ThreadPool>,
    isa: Isa,
}

impl fmt::Debug for CpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuBackend")
            .field("isa", &self.isa)
            .finish_non_exhaustive()
    }
}

impl CpuBackend {
    /// Returns a backend that runs on `pool` with the best instructions of this machine.
    /// Its device region runs under the lock of `resources`.
    #[must_use]
    pub fn new(resources: Arc<GpuResources>, pool: Arc<ThreadPool>) -> Self {
        Self {
            resources,
            b_g2_pool: Arc::clone(&pool),
            pool,
            isa: Isa::best(),
        }
    }

    /// Returns the backend with a pool of its own for the MSM in G2.
    #[must_use]
    pub fn with_b_g2_pool(self, b_g2_pool: Arc<ThreadPool>) -> Self {
        Self { b_g2_pool, ..self }
    }

    /// Returns the backend with these instructions.
    #[must_use]
    pub fn with_isa(self, isa: Isa) -> Self {
        Self { isa, ..self }
    }

    /// Makes all that the device region needs besides the partition.
    fn prepare(&self, partition: &Synthesized) -> Result<Prepared, BackendError> {
        let Synthesized {
            circuit,
            params,
            evaluation,
            ..
        } = partition;
        let multiples = params.multiples(circuit, self.isa, &self.pool);
        // An engine has told it, with its advice.
        if let Some(error) = multiples.take_problem() {
            tracing::warn!(%error, "this file of multiples is not used");
        }
        Ok(Prepared {
            domain: circuit.domain(self.isa, &self.pool)?,
            multiples,
            scratch: evaluation.buffers().take(circuit.domain_len())?,
        })
    }

    /// Evaluates A and B on a witness, if synthesis left that to the backend.
    fn evaluate(
        &self,
        circuit: &Circuit,
        witness: &PackedWitness<Scalar>,
        buffers: &Arc<BufferPool>,
        checkpoint: &Checkpoint<'_>,
        trace: Trace<'_>,
    ) -> Result<[Buffer; 2], BackendError> {
        let [mut a, mut b] = domain_buffers(circuit, buffers)?;
        let out = [&mut *a, &mut *b];
        let throttle = Some(Throttle {
            count: self.resources.throttle(),
            manner: ThrottleManner::Sleep,
        });
        trace.time_throttled(Stage::Evaluate, |stood_aside| {
            let time = apart::install(&self.pool, || {
                evaluate_partition(circuit, witness, out, throttle, checkpoint)
            })??;
            stood_aside.set(time);
            Ok::<_, BackendError>(())
        })?;
        Ok([a, b])
    }

    /// Returns the workspace with so many threads beside the MSM in G2.
    fn workspace(&self, threads: usize) -> CpuWorkspace {
        CpuWorkspace {
            isa: self.isa,
            threads,
            b_g2_threads: self.b_g2_pool.current_num_threads(),
        }
    }

    fn context<'a>(&self, checkpoint: &'a Checkpoint<'_>, buffers: &'a BufferPool) -> Context<'a> {
        Context {
            isa: self.isa,
            checkpoint,
            memory: buffers,
        }
    }

    /// Computes Σ wᵢ·Bᵢ in G2. Synthesis gives way while it runs.
    fn sum_in_g2(
        &self,
        (params, multiples): (&MappedParams, Option<&MappedMultiples>),
        scalars: &PackedQuery<Scalar>,
        bit_sums: Option<&BitSums>,
        context: Context<'_>,
    ) -> Result<G2Projective, BackendError> {
        let bases = params.b_g2();
        let part = MsmTerm::new(&bases, packed(scalars.as_slice(), bit_sums)?)
            .with_multiples(multiples.and_then(MappedMultiples::b_g2));
        let _raised = self.resources.raise_throttle();
        let sum = apart::install(&self.b_g2_pool, || msm::g2_of_terms(context, &[part]))??;
        Ok(sum + points_of(bit_sums).b_g2)
    }
}

/// The input of the device region besides the partition, made before the device's lock
/// is taken.
struct Prepared {
    domain: Arc<Domain>,
    multiples: Arc<SharedFile>,
    /// As long as the domain.
    scratch: Buffer,
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn is_this_cpu(&self) -> bool {
        true
    }

    fn footprint(&self, circuit: &Circuit, shapes: &Shapes, share: SynthesisShare) -> Footprint {
        let threads = share.threads.max(self.pool.current_num_threads());
        self.workspace(threads).footprint(&circuit.sizes(), shapes)
    }

    fn batch_footprint(&self, circuit: &Circuit, partitions: usize) -> Option<Footprint> {
        let workspace = self.workspace(self.pool.current_num_threads());
        let pays = bit_sums::saves_time(circuit);
        pays.then(|| batch_footprint(&circuit.sizes(), &workspace, partitions))
    }

    fn sum_bits(&self, batch: &Batch<'_>, trace: Trace<'_>) -> Result<Vec<BitSums>, BackendError> {
        let partitions = batch.witnesses.len();
        if partitions < 2 {
            return Ok(Vec::new());
        }
        let context = self.context(batch.checkpoint, batch.buffers);
        let asked = Instant::now();
        let _device = self.resources.lock_gpu_while(batch.checkpoint)?;
        trace.waited(Stage::LockWait, asked);
        trace.serving(partitions).time(Stage::Columns, || {
            let in_g1 = apart::install(&self.pool, || batch.sums_in_g1(context))??;
            let _raised = self.resources.raise_throttle();
            let b_g2 = apart::install(&self.b_g2_pool, || batch.sums_in_g2(context))??;
            Ok(batch.bit_sums(&in_g1, &b_g2))
        })
    }

    fn prove_start(
        self: Arc<Self>,
        partition: Synthesized,
        trace: Trace<'_>,
    ) -> Result<Box<dyn Pending>, BackendError> {
        let Prepared {
            domain,
            multiples,
            scratch,
        } = trace.time(Stage::Prepare, || self.prepare(&partition))?;
        let Synthesized {
            circuit,
            params,
            witness,
            evaluation,
            bit_sums,
            randomness,
            checkpoint,
        } = partition;
        let bit_sums = bit_sums.filter(|sums| sums.suit(&params, &randomness));
        let buffers = Arc::clone(evaluation.buffers());
        let [mut a, b] = match evaluation {
            Evaluation::Done(vectors) => vectors,
            Evaluation::Left(buffers) => {
                self.evaluate(&circuit, &witness, &buffers, &checkpoint, trace)?
            }
        };
        let region = Region {
            domain: &domain,
            bases: (&params, multiples.usable()),
            densities: circuit.densities(),
            witness: &witness,
            bit_sums: bit_sums.as_ref(),
            randomness,
            context: self.context(&checkpoint, &buffers),
            buffers: &buffers,
        };
        let asked = Instant::now();
        let device = self.resources.lock_gpu_while(&checkpoint)?;
        trace.waited(Stage::LockWait, asked);
        let sums = trace.time(Stage::Device, || {
            region.run(&mut a, [b, scratch], &self.pool, trace)
        });
        drop(device);
        drop(a);
        let bytes = witness.resident_bytes() as u64;
        buffers.drop_later(trace.timed_drop(witness), bytes);
        let RegionSums { in_g1, b_scalars } = sums?;
        Ok(Box::new(PendingOnCpu {
            sums: in_g1,
            backend: self,
            params,
            multiples,
            b_scalars,
            bit_sums,
            buffers,
            checkpoint,
        }))
    }
}

struct PendingOnCpu {
    backend: Arc<CpuBackend>,
    params: Arc<MappedParams>,
    multiples: Arc<SharedFile>,
    sums: SumsInG1,
    b_scalars: PackedQuery<Scalar>,
    bit_sums: Option<BitSums>,
    buffers: Arc<BufferPool>,
    checkpoint: Checkpoint<'static>,
}

impl Pending for PendingOnCpu {
    fn finish(self: Box<Self>, trace: Trace<'_>) -> Result<Proof<Bls12>, BackendError> {
        let SumsInG1 {
            h_and_l,
            a,
            blinding,
        } = self.sums;
        let bases = (&*self.params, self.multiples.usable());
        let context = self.backend.context(&self.checkpoint, &self.buffers);
        let b_g2 = trace.time(Stage::BG2, || {
            let bit_sums = self.bit_sums.as_ref();
            self.backend
                .sum_in_g2(bases, &self.b_scalars, bit_sums, context)
        })?;
        let sums = Sums { h_and_l, a, b_g2 };
        trace.time(Stage::Assemble, || {
            assemble(self.params.vk(), &sums, &blinding)
        })
    }
}
