//! The bits of several partitions of a circuit, added up in one pass over the points.
//!
//! Nearly all scalars of some witnesses are bits. The points of the bits that are 1 are
//! summands of the MSMs over L, A and B. In a pass, each point is read, checked and decoded
//! once for all partitions, and takes one addition for all of them. The MSMs of each partition
//! then run over its other scalars only.
//!
//! Not a proof: without these sums a backend makes the same proof. The invariants:
//!
//! * Sums are used with the parameters that they were made with, and with no others.
//! * Sums from a wrong witness give a proof that the verifier rejects.

use std::fmt;
use std::sync::{Arc, Weak};

use blstrs::{G1Projective, G2Projective, Scalar};
use cuzk_kernels::msm::{self, Bits};
use cuzk_kernels::{Context, KernelError};
use cuzk_memory::{BufferPool, Checkpoint, Lent, Memory};
use cuzk_pce::{Density, PackedWitness, write_query_bits};
use group::Group;

use super::{BackendError, Randomness};
use crate::circuit::Circuit;
use crate::params::MappedParams;

/// The fewest variables that are bits. The bits of a smaller circuit take a millisecond or
/// two for each partition, which is less than a batch costs beside its pass.
const BITS_MIN: usize = 1 << 15;

/// Bits for each variable that is no bit, at least. The witness of most partitions of a batch
/// is written twice, and other values than bits take most of that time.
const BITS_PER_WIDE: usize = 4;

/// Partitions of one circuit, whose bits are added up together.
pub struct Batch<'a> {
    /// The circuit.
    pub circuit: &'a Circuit,
    /// The circuit's Groth16 parameters.
    pub params: &'a Arc<MappedParams>,
    /// The witness of each partition.
    pub witnesses: &'a [PackedWitness<Scalar>],
    /// True if the sums are for proofs with [`Randomness::Added`] as well.
    pub with_b_g1: bool,
    /// The source of large working memory.
    pub buffers: &'a BufferPool,
    /// Pauses or stops the pass.
    pub checkpoint: &'a Checkpoint<'a>,
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("circuit", &self.circuit)
            .field("partitions", &self.witnesses.len())
            .finish_non_exhaustive()
    }
}

/// The sums over the bits of one partition, for its proof with the same parameters.
#[derive(Clone, Debug)]
pub struct BitSums {
    params: Weak<MappedParams>,
    has_b_g1: bool,
    pub(super) points: BitPoints,
}

/// The sums of the points of the bits that are 1. By default there are none.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitPoints {
    pub(super) l: G1Projective,
    pub(super) a: G1Projective,
    pub(super) b_g1: G1Projective,
    pub(super) b_g2: G2Projective,
}

impl Default for BitPoints {
    fn default() -> Self {
        let zero = G1Projective::identity();
        Self {
            l: zero,
            a: zero,
            b_g1: zero,
            b_g2: G2Projective::identity(),
        }
    }
}

impl BitSums {
    /// Returns true if a proof with these parameters and this randomness can use the sums.
    pub(super) fn suit(&self, params: &Arc<MappedParams>, randomness: &Randomness) -> bool {
        let are_of_params = Weak::ptr_eq(&self.params, &Arc::downgrade(params));
        are_of_params && (self.has_b_g1 || !randomness.needs_b_g1())
    }
}

/// Returns true if a pass over several partitions of a circuit takes less time than their
/// MSMs save.
pub(super) fn saves_time(circuit: &Circuit) -> bool {
    let wide = circuit.wide().all;
    let bits = circuit.program().num_aux().saturating_sub(wide);
    bits >= BITS_MIN.max(wide.saturating_mul(BITS_PER_WIDE))
}

/// The sums of bases in G1 of all partitions of a batch.
pub(super) struct ColumnsInG1 {
    l: Vec<G1Projective>,
    a: Vec<G1Projective>,
    /// Empty if they were not asked for.
    b_g1: Vec<G1Projective>,
}

impl Batch<'_> {
    /// Adds up bases in G1 on the current pool: one pass over L, one over A, and one over B if
    /// that is asked for.
    ///
    /// # Errors
    /// As those of an MSM.
    pub(super) fn sums_in_g1(&self, context: Context<'_>) -> Result<ColumnsInG1, BackendError> {
        let Self {
            circuit, params, ..
        } = self;
        let slices = self.witnesses.iter().map(PackedWitness::aux_slice);
        let columns = slices.map(|slice| Bits::new(slice.len, slice.bits));
        let columns: Result<Vec<_>, _> = columns.collect();
        let l = msm::g1_columns(context, &params.l(), &columns?)?;
        let inputs: Vec<_> = (0..circuit.program().num_inputs()).collect();
        let query = QueryBits::choose(self, &inputs, &circuit.densities().a_aux, context.memory)?;
        let a = msm::g1_columns(context, &params.a(), &query.columns()?)?;
        drop(query);
        let b_g1 = if self.with_b_g1 {
            let query = self.b_bits(context.memory)?;
            msm::g1_columns(context, &params.b_g1(), &query.columns()?)?
        } else {
            Vec::new()
        };
        Ok(ColumnsInG1 { l, a, b_g1 })
    }

    /// Adds up the bases of B in G2 on the current pool.
    ///
    /// # Errors
    /// As those of an MSM.
    pub(super) fn sums_in_g2(
        &self,
        context: Context<'_>,
    ) -> Result<Vec<G2Projective>, BackendError> {
        let query = self.b_bits(context.memory)?;
        let bases = self.params.b_g2();
        Ok(msm::g2_columns(context, &bases, &query.columns()?)?)
    }

    fn b_bits<'m>(&self, memory: &'m dyn Memory) -> Result<QueryBits<'m>, KernelError> {
        let densities = self.circuit.densities();
        let inputs: Vec<_> = densities.b_input.iter().collect();
        QueryBits::choose(self, &inputs, &densities.b_aux, memory)
    }

    /// Returns the sums of each partition.
    pub(super) fn bit_sums(&self, in_g1: &ColumnsInG1, b_g2: &[G2Projective]) -> Vec<BitSums> {
        let ColumnsInG1 { l, a, b_g1 } = in_g1;
        let sums = l.iter().zip(a).zip(b_g2).enumerate();
        let sums = sums.map(|(partition, ((l, a), b_g2))| BitSums {
            params: Arc::downgrade(self.params),
            has_b_g1: self.with_b_g1,
            points: BitPoints {
                l: *l,
                a: *a,
                b_g1: b_g1
                    .get(partition)
                    .map_or_else(G1Projective::identity, |sum| *sum),
                b_g2: *b_g2,
            },
        });
        sums.collect()
    }
}

/// The bits of a query of each partition.
struct QueryBits<'m> {
    /// Scalars of the query.
    len: usize,
    columns: Vec<Lent<'m, u64>>,
}

impl<'m> QueryBits<'m> {
    /// Chooses those of the inputs with these indices, and of the variables in `aux`.
    fn choose(
        batch: &Batch<'_>,
        inputs: &[usize],
        aux: &Density,
        memory: &'m dyn Memory,
    ) -> Result<Self, KernelError> {
        let len = inputs.len() + aux.count();
        let choose = |witness: &PackedWitness<Scalar>| {
            let mut words = Lent::take(memory, len.div_ceil(64))?;
            write_query_bits(witness, inputs.iter().copied(), aux, &mut words);
            batch.checkpoint.check()?;
            Ok(words)
        };
        let columns = batch.witnesses.iter().map(choose);
        let columns = columns.collect::<Result<_, KernelError>>()?;
        Ok(Self { len, columns })
    }

    fn columns(&self) -> Result<Vec<Bits<'_>>, KernelError> {
        let columns = self.columns.iter();
        columns.map(|words| Bits::new(self.len, words)).collect()
    }
}
