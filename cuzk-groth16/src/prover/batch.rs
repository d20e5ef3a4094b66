//! Several proofs of one circuit.
//!
//! A few instances are synthesised side by side, and their bits are added up together where
//! that saves time. Their proofs are then made one after the other. The invariant: memory is
//! taken for the witnesses of a few instances, however many there are.

use bellperson::Circuit as Instance;
use blstrs::Scalar;
use cuzk_memory::NEVER_STOP;
use cuzk_pce::PackedWitness;
use cuzk_timeline::Timeline;
use rayon::prelude::*;

use super::{ProveError, Proved, Prover};
use crate::backend::{Batch, BitSums, Randomness};

/// Instances whose witnesses are in memory at once.
const TOGETHER: usize = 8;

/// Proves all instances, in order.
///
/// # Errors
/// [`ProveError::InBatch`], [`ProveError::Lengths`].
pub(super) fn prove_all<C: Instance<Scalar> + Send>(
    prover: &Prover,
    instances: Vec<C>,
    randomness: &[Randomness],
) -> Result<Vec<Proved>, ProveError> {
    if instances.len() != randomness.len() {
        return Err(ProveError::Lengths {
            circuits: instances.len(),
            randomness: randomness.len(),
        });
    }
    let mut proved = Vec::with_capacity(instances.len());
    let mut instances = instances.into_iter();
    for randomness in randomness.chunks(TOGETHER) {
        let first = proved.len();
        let chunk = instances.by_ref().take(randomness.len()).collect();
        let witnesses = synthesize(prover, chunk, first)?;
        let mut bit_sums = sum_bits(prover, &witnesses, randomness)?.into_iter();
        for (witness, randomness) in witnesses.into_iter().zip(randomness) {
            let one = prover.prove_witness(witness, *randomness, bit_sums.next());
            proved.push(one.map_err(in_batch(proved.len()))?);
        }
    }
    Ok(proved)
}

fn in_batch(index: usize) -> impl Fn(ProveError) -> ProveError {
    move |error| ProveError::InBatch {
        index,
        source: Box::new(error),
    }
}

/// Computes the witnesses of some instances side by side. The number of the first is `first`.
///
/// # Errors
/// That of the first instance that has one.
fn synthesize<C: Instance<Scalar> + Send>(
    prover: &Prover,
    instances: Vec<C>,
    first: usize,
) -> Result<Vec<PackedWitness<Scalar>>, ProveError> {
    let synthesize = || -> Vec<_> {
        let instances = instances.into_par_iter().with_max_len(1);
        let witnesses = instances.map(|instance| prover.witness(instance));
        witnesses.collect()
    };
    let witnesses = prover.device.pool().install(synthesize).into_iter();
    let numbered = witnesses.zip(first..);
    numbered
        .map(|(witness, index)| witness.map_err(in_batch(index)))
        .collect()
}

/// Adds up the bits of some witnesses in one pass over the points. Returns the sums of each,
/// or none if a pass does not save time.
fn sum_bits(
    prover: &Prover,
    witnesses: &[PackedWitness<Scalar>],
    randomness: &[Randomness],
) -> Result<Vec<BitSums>, ProveError> {
    let backend = prover.device.backend();
    let pays = backend.batch_footprint(&prover.circuit, witnesses.len());
    if witnesses.len() < 2 || pays.is_none() {
        return Ok(Vec::new());
    }
    let batch = Batch {
        circuit: &prover.circuit,
        params: &prover.params,
        witnesses,
        with_b_g1: randomness.iter().any(Randomness::needs_b_g1),
        buffers: prover.device.buffers(),
        checkpoint: &NEVER_STOP,
    };
    let timeline = Timeline::default();
    Ok(backend.sum_bits(&batch, timeline.trace(0, Some(0)).on_device(0))?)
}
