//! The device region of a CPU's proof: the quotient, and the MSMs in G1.
//!
//! Not the lock that it runs under, and not the MSM in G2 after it. The invariant: beside the
//! witness and the quotient, the scalars of one query exist at a time.

use blstrs::{G1Projective, Scalar};
use cuzk_kernels::msm::{self, MsmTerm, PackedScalars};
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::quotient::quotient_with;
use cuzk_kernels::{Context, KernelError};
use cuzk_memory::{Buffer, BufferPool};
use cuzk_pce::{Columns, Densities, PackedQuery, PackedSlice, PackedWitness};
use cuzk_timeline::{Stage, Trace};
use rayon::ThreadPool;

use crate::apart;
use crate::backend::assemble::Blinding;
use crate::backend::bit_sums::{BitPoints, BitSums};
use crate::backend::{BackendError, Randomness};
use crate::params::{MappedMultiples, MappedParams};

/// The input of the device region.
pub(super) struct Region<'a> {
    pub(super) domain: &'a Domain,
    pub(super) bases: (&'a MappedParams, Option<&'a MappedMultiples>),
    pub(super) densities: &'a Densities,
    /// The scalars of the MSMs over L, A and B.
    pub(super) witness: &'a PackedWitness<Scalar>,
    /// The sums over those of them that are 1, if they were made before.
    pub(super) bit_sums: Option<&'a BitSums>,
    pub(super) randomness: Randomness,
    pub(super) context: Context<'a>,
    /// Disposes of a query in its manner.
    pub(super) buffers: &'a BufferPool,
}

/// The results of the device region.
pub(super) struct RegionSums {
    pub(super) in_g1: SumsInG1,
    /// For the MSM in G2.
    pub(super) b_scalars: PackedQuery<Scalar>,
}

/// The sums of the MSMs in G1, with what the randomness adds to a proof.
pub(super) struct SumsInG1 {
    pub(super) h_and_l: G1Projective,
    pub(super) a: G1Projective,
    pub(super) blinding: Blinding,
}

impl Region<'_> {
    /// Computes the quotient of A and B on the witness, which takes the place of A, and
    /// the MSMs in G1.
    pub(super) fn run(
        self,
        a: &mut [Scalar],
        [mut b, mut scratch]: [Buffer; 2],
        pool: &ThreadPool,
        trace: Trace<'_>,
    ) -> Result<RegionSums, BackendError> {
        let Self {
            domain, context, ..
        } = self;
        // The caller holds the device.
        trace.time(Stage::Quotient, || {
            let (b, scratch) = (&mut b, &mut scratch);
            apart::install(pool, || quotient_with(domain, a, b, scratch, context))
        })??;
        // To the pool: the queries and the next partition want them now.
        drop((b, scratch));
        trace.time(Stage::Msm, || apart::install(pool, || self.sums_in_g1(a)))?
    }

    /// Computes the MSMs in G1, one after the other. Each is cut evenly for all threads, in
    /// large pieces: two of them beside each other would end with idle threads. `h` is the
    /// quotient.
    ///
    /// The scalars of a query are copied when their MSM begins. The wide ones of a WindowPoSt
    /// are gigabytes, for which there is no room beside the vectors of the quotient.
    fn sums_in_g1(&self, h: &[Scalar]) -> Result<RegionSums, BackendError> {
        let (context, bit_sums) = (self.context, self.bit_sums);
        let (params, multiples) = self.bases;
        let (witness, densities) = (self.witness, self.densities);
        let ones = points_of(bit_sums);
        // h has one coefficient less than the domain has points.
        let h = h.split_last().map_or(h, |(_, h)| h);
        let (h_bases, l_bases, a_bases) = (params.h(), params.l(), params.a());
        let h = MsmTerm::new(&h_bases, h).with_multiples(multiples.and_then(MappedMultiples::h));
        let l = MsmTerm::new(&l_bases, packed(witness.aux_slice(), bit_sums)?);
        let l = l.with_multiples(multiples.and_then(MappedMultiples::l));
        let h_and_l = msm::g1_of_terms(context, &[h, l])? + ones.l;

        let checkpoint = context.checkpoint;
        let inputs = 0..witness.num_inputs();
        let a_scalars = PackedQuery::new(witness, inputs, &densities.a_aux, checkpoint)?;
        let a = MsmTerm::new(&a_bases, packed(a_scalars.as_slice(), bit_sums)?);
        let a = a.with_multiples(multiples.and_then(MappedMultiples::a));
        let a = msm::g1_of_terms(context, &[a])? + ones.a;
        let bytes = a_scalars.resident_bytes() as u64;
        self.buffers.drop_later(a_scalars, bytes);

        let inputs = densities.b_input.iter();
        let b_scalars = PackedQuery::new(witness, inputs, &densities.b_aux, checkpoint)?;
        let b_g1 = || -> Result<_, KernelError> {
            let scalars = packed(b_scalars.as_slice(), bit_sums)?;
            Ok(msm::g1_packed(context, &params.b_g1(), &scalars)? + ones.b_g1)
        };
        let blinding = Blinding::new(self.randomness, b_g1)?;
        Ok(RegionSums {
            in_g1: SumsInG1 {
                h_and_l,
                a,
                blinding,
            },
            b_scalars,
        })
    }
}

/// Returns the scalars of an MSM: all of them, or those other than 1 if there are sums over
/// the others.
pub(super) fn packed<'a>(
    slice: PackedSlice<'a, Scalar>,
    bit_sums: Option<&BitSums>,
) -> Result<PackedScalars<'a>, KernelError> {
    let scalars = PackedScalars::new(slice.len, slice.bits, slice.wide, slice.values)?;
    Ok(match bit_sums {
        None => scalars,
        Some(_) => scalars.without_ones(),
    })
}

pub(super) fn points_of(bit_sums: Option<&BitSums>) -> BitPoints {
    bit_sums.map(|sums| sums.points).unwrap_or_default()
}
