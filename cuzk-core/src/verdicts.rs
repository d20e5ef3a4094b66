//! The verifier's verdicts on the proofs of a simulation.
//!
//! Only tests have this module. To verify a proof takes longer than all other steps of a
//! simulated partition. A run has many proofs, of which few differ. The invariant: a verdict
//! is the verifier's, on these bytes and this public input.

use std::collections::HashMap;
use std::sync::RwLock;

use bellperson::groth16::Proof;
use blstrs::{Bls12, Scalar};
use cuzk_groth16::verify::VerifiedProof;

/// The bytes of a proof, and the public input.
type Judged = (Vec<u8>, [u8; 32]);

static VERDICTS: RwLock<Option<HashMap<Judged, Option<VerifiedProof>>>> = RwLock::new(None);

/// Notes the verdict of the verifier: the verified proof, or none.
pub(crate) fn note_verdict(proof: &Proof<Bls12>, input: Scalar, verdict: Option<VerifiedProof>) {
    let (bytes, verdicts) = (bytes(proof), VERDICTS.write());
    if let (Some(bytes), Ok(mut verdicts)) = (bytes, verdicts) {
        let verdicts = verdicts.get_or_insert_default();
        verdicts.insert((bytes, input.to_bytes_le()), verdict);
    }
}

/// Returns the verdict on a proof of a simulation; none if nobody noted one.
pub(crate) fn verdict(proof: &Proof<Bls12>, inputs: &[Scalar]) -> Option<Option<VerifiedProof>> {
    let &[input] = inputs else { return None };
    verdict_on_bytes(bytes(proof)?, input)
}

/// Returns the verdict on the bytes of a proof, as [`verdict`] does.
pub(crate) fn verdict_on_bytes(bytes: Vec<u8>, input: Scalar) -> Option<Option<VerifiedProof>> {
    let verdicts = VERDICTS.read().ok()?;
    let judged: Judged = (bytes, input.to_bytes_le());
    verdicts.as_ref()?.get(&judged).copied()
}

fn bytes(proof: &Proof<Bls12>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    proof.write(&mut bytes).ok()?;
    Some(bytes)
}
