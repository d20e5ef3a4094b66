//! The only way for proof bytes to leave the engine.
//!
//! Not a second implementation of the verifier: bellperson's is the reference.
//! The invariant: a [`VerifiedProof`] exists only for bytes that, read back,
//! the verifier accepted for the statement's public inputs.

use bellperson::groth16::{PreparedVerifyingKey, Proof, verify_proof};
use blstrs::{Bls12, Scalar};

use crate::kinds::verify::PARTITION_PROOF_BYTES;
use crate::{Error, Result};

/// One partition's proof, as the chain expects it, after verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedProof([u8; PARTITION_PROOF_BYTES]);

impl VerifiedProof {
    /// The bytes: π_A, π_B, π_C, each compressed.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; PARTITION_PROOF_BYTES] {
        &self.0
    }

    /// One that nobody has verified, for tests of what becomes of proofs.
    #[cfg(test)]
    pub(crate) fn unchecked(bytes: [u8; PARTITION_PROOF_BYTES]) -> Self {
        Self(bytes)
    }
}

/// Verifies `proof` of `partition`, as it will be read by others.
///
/// # Errors
/// [`Error::Rejected`].
pub fn verify_partition(
    key: &PreparedVerifyingKey<Bls12>,
    proof: &Proof<Bls12>,
    public_inputs: &[Scalar],
    partition: usize,
) -> Result<VerifiedProof> {
    let reject = |problem: String| Error::Rejected { partition, problem };
    let mut bytes = Vec::with_capacity(PARTITION_PROOF_BYTES);
    proof
        .write(&mut bytes)
        .map_err(|error| reject(error.to_string()))?;
    let bytes = <[u8; PARTITION_PROOF_BYTES]>::try_from(bytes).map_err(|bytes| {
        reject(format!(
            "it has {} bytes, not {PARTITION_PROOF_BYTES}",
            bytes.len()
        ))
    })?;
    let read = Proof::<Bls12>::read(&bytes[..]).map_err(|error| reject(error.to_string()))?;
    match verify_proof(key, &read, public_inputs) {
        Ok(true) => Ok(VerifiedProof(bytes)),
        Ok(false) => Err(reject("the pairing equation does not hold".into())),
        Err(error) => Err(reject(error.to_string())),
    }
}
