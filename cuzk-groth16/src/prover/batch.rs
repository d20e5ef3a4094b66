//! Several proofs of one circuit.
//!
//! A few instances are synthesised side by side, and their bits are added up together where
//! that saves time. Their proofs are then made one after the other. The invariant: memory is
//! taken for the witnesses of a few instances, however many there are.

use bellperson::Circuit as Instance;
use blstrs::Scalar;
use cuzk_memory::NEVER_STOP;
use cuzk_pce::PackedWitness;
use cuzk_timeline::Trace;
use rayon::prelude::*;

use super::{ProveError, Proved, Prover};
use crate::apart;
use crate::backend::{Batch, BitSums, Randomness};

/// Instances whose witnesses are in memory at once.
const TOGETHER: usize = 8;

/// Proves all instances, in order.
///
/// # Errors
/// [`ProveError::InBatch`], [`ProveError::Lengths`], [`ProveError::OwnThread`].
pub(super) fn prove_all<C: Instance<Scalar> + Send>(
    prover: &Prover,
    instances: Vec<C>,
    randomness: &[Randomness],
) -> Result<Vec<Proved>, ProveError> {
    prover.device.check_caller()?;
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
        let (witnesses, traces) = synthesize(prover, chunk, first)?;
        let mut bit_sums = sum_bits(prover, &witnesses, randomness, &traces)?.into_iter();
        for ((witness, trace), randomness) in witnesses.into_iter().zip(traces).zip(randomness) {
            let one = prover.prove_witness(witness, *randomness, bit_sums.next(), trace);
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

/// Witnesses, and the handles that record the stages of their proofs.
type Traced<'p> = (Vec<PackedWitness<Scalar>>, Vec<Trace<'p>>);

/// Computes the witnesses of some instances side by side. The number of the first is `first`.
///
/// # Errors
/// That of the first instance that has one.
fn synthesize<C: Instance<Scalar> + Send>(
    prover: &Prover,
    instances: Vec<C>,
    first: usize,
) -> Result<Traced<'_>, ProveError> {
    let traces: Vec<_> = (instances.iter())
        .map(|_| prover.device.next_trace())
        .collect();
    let synthesize = || -> Vec<_> {
        let instances = instances.into_par_iter().zip(&traces).with_max_len(1);
        let witnesses = instances.map(|(instance, trace)| prover.witness(instance, *trace));
        witnesses.collect()
    };
    let witnesses = apart::install(prover.device.pool(), synthesize)?.into_iter();
    let numbered = witnesses.zip(first..);
    let witnesses: Result<_, _> = numbered
        .map(|(witness, index)| witness.map_err(in_batch(index)))
        .collect();
    Ok((witnesses?, traces))
}

/// Adds up the bits of some witnesses in one pass over the points. Returns the sums of each,
/// or none if a pass does not save time. The pass is in the record of the first.
fn sum_bits(
    prover: &Prover,
    witnesses: &[PackedWitness<Scalar>],
    randomness: &[Randomness],
    traces: &[Trace<'_>],
) -> Result<Vec<BitSums>, ProveError> {
    let backend = prover.device.backend();
    let pays = backend.batch_footprint(&prover.circuit, witnesses.len());
    let (Some(trace), Some(_), 2..) = (traces.first(), pays, witnesses.len()) else {
        return Ok(Vec::new());
    };
    let batch = Batch {
        circuit: &prover.circuit,
        params: &prover.params,
        witnesses,
        with_b_g1: randomness.iter().any(Randomness::needs_b_g1),
        buffers: prover.device.buffers(),
        checkpoint: &NEVER_STOP,
    };
    Ok(backend.sum_bits(&batch, trace.on_device(0))?)
}
