//! The only way for proof bytes to leave a prover.
//!
//! Not a second implementation of the verifier: bellperson's is the reference.
//! The invariant: a [`VerifiedProof`] exists only for bytes that, read back,
//! the verifier accepted for the statement's public inputs.

use bellperson::SynthesisError;
use bellperson::groth16::{PreparedVerifyingKey, Proof, verify_proof};
use blstrs::{Bls12, Scalar};

/// Bytes of a proof: two G1 points and one of G2, compressed.
pub const PROOF_BYTES: usize = 192;

/// A proof, as the chain expects it, after verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedProof([u8; PROOF_BYTES]);

impl VerifiedProof {
    /// The bytes: π_A, π_B, π_C, each compressed.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; PROOF_BYTES] {
        &self.0
    }

    /// One that nobody has verified, for tests of what becomes of proofs.
    #[cfg(feature = "test-hooks")]
    #[must_use]
    pub fn unchecked(bytes: [u8; PROOF_BYTES]) -> Self {
        Self(bytes)
    }
}

/// The verifier rejected a proof, so it was withheld.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proof does not verify and was withheld: {problem}")]
pub struct Rejected {
    /// Why, as far as the verifier can tell.
    pub problem: String,
}

/// Verifies `proof`, as it will be read by others.
///
/// # Errors
/// [`Rejected`].
pub fn verify(
    key: &PreparedVerifyingKey<Bls12>,
    proof: &Proof<Bls12>,
    public_inputs: &[Scalar],
) -> Result<VerifiedProof, Rejected> {
    let reject = |problem: String| Rejected { problem };
    let mut bytes = Vec::with_capacity(PROOF_BYTES);
    proof
        .write(&mut bytes)
        .map_err(|error| reject(error.to_string()))?;
    let bytes = <[u8; PROOF_BYTES]>::try_from(bytes)
        .map_err(|bytes| reject(format!("it has {} bytes, not {PROOF_BYTES}", bytes.len())))?;
    let read = Proof::<Bls12>::read(&bytes[..]).map_err(|error| reject(error.to_string()))?;
    match verify_proof(key, &read, public_inputs) {
        Ok(true) => Ok(VerifiedProof(bytes)),
        Ok(false) => Err(reject("the pairing equation does not hold".into())),
        // bellperson's word for another number of public inputs than the key is for.
        Err(SynthesisError::MalformedVerifyingKey) => Err(reject(format!(
            "{} public inputs were given, and the verifying key is of a circuit with another \
             number of them",
            public_inputs.len()
        ))),
        Err(error) => Err(reject(error.to_string())),
    }
}
