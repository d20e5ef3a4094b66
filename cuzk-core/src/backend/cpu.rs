//! The backend that every machine has.
//!
//! It keeps the same stages, locks and pools as a device would, so that the
//! engine is exercised whole without one. The invariant: `gpu_mtx` is held
//! while the transforms and the sums in G1 run, and by nothing else; the
//! throttle is raised while the sum in G2 runs.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bellperson::groth16::Proof;
use blstrs::{Bls12, G1Projective, G2Projective, Scalar};
use cuzk_kernels::msm::{self, PackedScalars};
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::quotient::quotient_with;
use cuzk_kernels::{Isa, KernelError};
use cuzk_pce::{Columns, PackedQuery, PackedSlice, PackedWitness};
use rayon::ThreadPool;
use supraseal_sys::GpuResources;
use supraseal_sys::dealloc::dealloc_async;

use super::assemble::{Sums, assemble};
use super::{Backend, BackendError, Pending, Randomness, Synthesized};
use crate::circuit::Circuit;
use crate::memory::buffer::Buffer;
use crate::once_map::OnceMap;
use crate::params::MappedParams;
use crate::timeline::{Stage, Trace};

/// Proves with the kernels of `cuzk-kernels`.
pub struct CpuBackend {
    resources: Arc<GpuResources>,
    pool: Arc<ThreadPool>,
    b_g2_pool: Arc<ThreadPool>,
    isa: Isa,
    /// By the logarithm of their size.
    domains: OnceMap<u32, Domain>,
}

impl fmt::Debug for CpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuBackend")
            .field("isa", &self.isa)
            .finish_non_exhaustive()
    }
}

impl CpuBackend {
    /// A backend that runs on `pool` with the best instructions there are, its
    /// device region under the lock of `resources`.
    #[must_use]
    pub fn new(resources: Arc<GpuResources>, pool: Arc<ThreadPool>) -> Self {
        Self {
            resources,
            b_g2_pool: Arc::clone(&pool),
            pool,
            isa: Isa::best(),
            domains: OnceMap::default(),
        }
    }

    /// The same with a pool of its own for the sum in G2.
    #[must_use]
    pub fn with_b_g2_pool(self, b_g2_pool: Arc<ThreadPool>) -> Self {
        Self { b_g2_pool, ..self }
    }

    /// The same with these instructions.
    #[must_use]
    pub fn with_isa(self, isa: Isa) -> Self {
        Self { isa, ..self }
    }

    /// h = (a·b − c) / Z in coefficients, in place of a.
    fn quotient(&self, a: &mut Buffer, mut b: Buffer) -> Result<(), BackendError> {
        let mut scratch = a.pool().take(a.len())?;
        let log_size = a.len().trailing_zeros();
        let domain = self
            .domains
            .get_or_make(log_size, || Domain::with(self.isa, log_size))?;
        Ok(quotient_with(&domain, a, &mut b, &mut scratch)?)
    }

    fn sums_in_g1(
        &self,
        circuit: &Circuit,
        params: &MappedParams,
        witness: &PackedWitness<Scalar>,
        h: &[Scalar],
    ) -> Result<SumsInG1, BackendError> {
        let densities = circuit.densities();
        let a = witness.query(0..witness.num_inputs(), &densities.a_aux);
        let b = witness.query(densities.b_input.iter(), &densities.b_aux);
        // h has one coefficient less than the domain has points.
        let h = h.split_last().map_or(h, |(_, h)| h);
        Ok(SumsInG1 {
            h: msm::g1_with(self.isa, &params.h(), h)?,
            l: msm::g1_packed(self.isa, &params.l(), &packed(witness.aux_slice())?)?,
            a: msm::g1_packed(self.isa, &params.a(), &packed(a.as_slice())?)?,
            b_g1: msm::g1_packed(self.isa, &params.b_g1(), &packed(b.as_slice())?)?,
            b_scalars: b,
        })
    }

    /// Σ wᵢ·Bᵢ in G2. Synthesis gives way while it runs.
    fn sum_in_g2(
        &self,
        params: &MappedParams,
        scalars: &PackedQuery<Scalar>,
    ) -> Result<G2Projective, BackendError> {
        let _raised = self.resources.raise_throttle();
        let scalars = packed(scalars.as_slice())?;
        Ok(self
            .b_g2_pool
            .install(|| msm::g2_packed(self.isa, &params.b_g2(), &scalars))?)
    }
}

fn packed(slice: PackedSlice<'_, Scalar>) -> Result<PackedScalars<'_>, KernelError> {
    PackedScalars::new(slice.len, slice.bits, slice.wide, slice.values)
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn prove_start<'a>(
        &'a self,
        partition: Synthesized,
        trace: Trace<'_>,
    ) -> Result<Box<dyn Pending + 'a>, BackendError> {
        let Synthesized {
            circuit,
            params,
            witness,
            mut a,
            b,
        } = partition;
        let asked = Instant::now();
        let device = self.resources.lock_gpu()?;
        trace.waited(Stage::LockWait, asked);
        trace.time(Stage::Quotient, || {
            self.pool.install(|| self.quotient(&mut a, b))
        })?;
        let sums = trace.time(Stage::Msm, || {
            self.pool
                .install(|| self.sums_in_g1(&circuit, &params, &witness, &a))
        });
        drop(device);
        drop(a);
        dealloc_async(witness);
        Ok(Box::new(PendingOnCpu {
            backend: self,
            params,
            sums: sums?,
        }))
    }
}

struct SumsInG1 {
    h: G1Projective,
    l: G1Projective,
    a: G1Projective,
    b_g1: G1Projective,
    /// The scalars of both sums over B; the one in G2 is still to come.
    b_scalars: PackedQuery<Scalar>,
}

struct PendingOnCpu<'a> {
    backend: &'a CpuBackend,
    params: Arc<MappedParams>,
    sums: SumsInG1,
}

impl Pending for PendingOnCpu<'_> {
    fn finish(
        self: Box<Self>,
        randomness: Randomness,
        trace: Trace<'_>,
    ) -> Result<Proof<Bls12>, BackendError> {
        let SumsInG1 {
            h,
            l,
            a,
            b_g1,
            b_scalars,
        } = self.sums;
        let b_g2 = trace.time(Stage::BG2, || {
            self.backend.sum_in_g2(&self.params, &b_scalars)
        })?;
        let sums = Sums {
            h,
            l,
            a,
            b_g1,
            b_g2,
        };
        trace.time(Stage::Assemble, || {
            assemble(self.params.vk(), &sums, randomness)
        })
    }
}
