//! The backend that every machine has.
//!
//! It keeps the same stages, locks and pools as a device would, so that the
//! engine is exercised whole without one. The invariant: `gpu_mtx` is held
//! while the transforms and the sums in G1 run, and by nothing else.

use std::sync::Arc;
use std::time::Instant;

use bellperson::groth16::Proof;
use blstrs::{Bls12, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_kernels::KernelError;
use cuzk_kernels::msm::{self, Bases};
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::quotient::quotient;
use cuzk_pce::{Evaluated, PackedWitness};
use ff::Field;
use group::Group;
use group::prime::PrimeCurveAffine;
use rayon::ThreadPool;
use rayon::prelude::*;
use supraseal_sys::dealloc::dealloc_async;
use supraseal_sys::{GpuResources, b_g2_msm};

use super::assemble::{Sums, assemble};
use super::{Backend, BackendError, Pending, Randomness, Synthesized};
use crate::circuit::Circuit;
use crate::params::MappedParams;
use crate::timeline::{Stage, Trace};

/// How many points of B in G2 are in memory at once: 12 MiB of them.
const B_G2_CHUNK: usize = 1 << 16;

/// Proves with the kernels of `cuzk-kernels` and the C++ `b_g2_msm`.
#[derive(Debug)]
pub struct CpuBackend {
    resources: Arc<GpuResources>,
    pool: Arc<ThreadPool>,
}

impl CpuBackend {
    /// A backend whose device region runs on `pool`, under the lock of
    /// `resources`.
    #[must_use]
    pub fn new(resources: Arc<GpuResources>, pool: Arc<ThreadPool>) -> Self {
        Self { resources, pool }
    }

    fn sums_in_g1(
        &self,
        circuit: &Circuit,
        params: &MappedParams,
        witness: &PackedWitness<Scalar>,
        h: &[Scalar],
    ) -> Result<SumsInG1, BackendError> {
        let densities = circuit.densities();
        let plain = witness.to_plain();
        let (inputs, aux) = (plain.inputs(), plain.aux());
        let a = gather(inputs, aux, 0..inputs.len(), densities.a_aux.iter());
        let b = gather(
            inputs,
            aux,
            densities.b_input.iter(),
            densities.b_aux.iter(),
        );
        Ok(SumsInG1 {
            h: msm::g1_stream(&params.h(), h)?,
            l: msm::g1_stream(&params.l(), aux)?,
            a: msm::g1_stream(&params.a(), &a)?,
            b_g1: msm::g1_stream(&params.b_g1(), &b)?,
            b_scalars: b,
        })
    }
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
            evaluated,
        } = partition;
        let Evaluated { a, b } = evaluated;
        let domain = Domain::for_len(a.len())?;
        let asked = Instant::now();
        let device = self.resources.lock_gpu()?;
        trace.waited(Stage::LockWait, asked);
        let h = trace.time(Stage::Quotient, || {
            self.pool.install(|| quotient_of(&domain, a, b))
        })?;
        let sums = trace.time(Stage::Msm, || {
            self.pool
                .install(|| self.sums_in_g1(&circuit, &params, &witness, &h))
        });
        drop(device);
        dealloc_async((h, witness));
        Ok(Box::new(PendingOnCpu {
            backend: self,
            params,
            sums: sums?,
        }))
    }
}

/// h = (a·b − c) / Z in coefficients, without the last one, which is zero. The
/// vectors are padded with zeros to the domain in place of being copied.
fn quotient_of(
    domain: &Domain,
    mut a: Vec<Scalar>,
    mut b: Vec<Scalar>,
) -> Result<Vec<Scalar>, KernelError> {
    a.resize(domain.size(), Scalar::ZERO);
    b.resize(domain.size(), Scalar::ZERO);
    quotient(domain, &mut a, &mut b)?;
    dealloc_async(b);
    a.truncate(domain.size() - 1);
    Ok(a)
}

/// The scalars of a query: the chosen inputs, then the chosen aux variables.
fn gather(
    inputs: &[Scalar],
    aux: &[Scalar],
    chosen_inputs: impl Iterator<Item = usize>,
    chosen_aux: impl Iterator<Item = usize>,
) -> Vec<Scalar> {
    chosen_inputs
        .map(|index| inputs[index])
        .chain(chosen_aux.map(|index| aux[index]))
        .collect()
}

struct SumsInG1 {
    h: G1Projective,
    l: G1Projective,
    a: G1Projective,
    b_g1: G1Projective,
    /// The scalars of both sums over B; the one in G2 is still to come.
    b_scalars: Vec<Scalar>,
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
        dealloc_async(b_scalars);
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

impl CpuBackend {
    /// Σ wᵢ·Bᵢ in G2, chunk by chunk. The throttle stays raised throughout, so
    /// that synthesis does not come back between two chunks.
    fn sum_in_g2(
        &self,
        params: &MappedParams,
        scalars: &[Scalar],
    ) -> Result<G2Projective, BackendError> {
        let _raised = self.resources.raise_throttle();
        let bases = params.b_g2();
        let terms: Vec<(usize, Scalar)> = scalars
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, scalar)| !bool::from(scalar.is_zero()))
            .collect();
        let mut sum = G2Projective::identity();
        for terms in terms.chunks(B_G2_CHUNK) {
            let points = self.pool.install(|| decode(&bases, terms))?;
            let scalars: Vec<Scalar> = terms.iter().map(|(_, scalar)| *scalar).collect();
            sum += b_g2_msm(&self.resources, &points, &scalars)?;
        }
        Ok(sum)
    }
}

/// The bases that the terms name.
fn decode(
    bases: &impl Bases<G2Affine>,
    terms: &[(usize, Scalar)],
) -> Result<Vec<G2Affine>, KernelError> {
    let read = |&(index, _): &(usize, Scalar)| {
        let mut point = [G2Affine::identity()];
        bases.read(index, &mut point)?;
        Ok(point[0])
    };
    terms.par_iter().map(read).collect()
}
