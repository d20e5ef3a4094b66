//! Proof bytes against a statement's public inputs.
//!
//! Not for proofs of our own making, which `cuzk_groth16::verify` lets out or not.
//! The invariant: [`Verdict::Valid`] means that bellperson's verifier accepted
//! every partition over inputs computed from the statement alone.

use bellperson::groth16::{PreparedVerifyingKey, Proof, verify_proof, verify_proofs_batch};
use blstrs::{Bls12, Scalar};
use rand::rngs::OsRng;

use crate::Error;
use crate::kinds::Statement;

/// Bytes of one partition's proof: two G1 points and one of G2, compressed.
pub const PARTITION_PROOF_BYTES: usize = 192;

/// The verdict of the verifier.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The proof is one of the statement.
    Valid,
    /// It is not.
    Invalid(Rejection),
}

impl Verdict {
    /// Returns true if the proof was accepted.
    pub fn is_valid(&self) -> bool {
        *self == Self::Valid
    }
}

/// Why a proof was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// There are too few or too many bytes.
    #[error("expected {expected} bytes, {PARTITION_PROOF_BYTES} a partition, got {got}")]
    Length {
        /// The length for the number of partitions.
        expected: usize,
        /// The length found.
        got: usize,
    },
    /// The bytes are not points of the right groups.
    #[error("partition {partition}: not the encoding of a proof: {problem}")]
    Encoding {
        /// The partition.
        partition: usize,
        /// The problem that the decoder found.
        problem: String,
    },
    /// The verifying key does not take as many inputs as the statement has.
    #[error("the verifying key is of another circuit, not for {inputs} public inputs")]
    VerifyingKey {
        /// The public inputs of the statement.
        inputs: usize,
    },
    /// The pairing equation does not hold.
    #[error("partition {partition}: the pairing equation does not hold")]
    Equation {
        /// The first partition for which it does not.
        partition: usize,
    },
    /// The bytes are no aggregate of the statement's proofs.
    #[error("not the aggregate of the {partitions} partitions: {problem}")]
    Aggregate {
        /// The number of the statement's partitions.
        partitions: usize,
        /// The problem that the verifier found.
        problem: String,
    },
    /// The proofs library refused to look at it.
    #[error("filecoin-proofs-api: {problem}")]
    Reference {
        /// Its message.
        problem: String,
    },
}

/// Verifies the proofs of all partitions, one after the other in `proof`.
///
/// # Errors
///
/// As [`Statement::public_inputs`].
pub fn verify(
    statement: &dyn Statement,
    proof: &[u8],
    key: &PreparedVerifyingKey<Bls12>,
) -> Result<Verdict, Error> {
    let inputs: Vec<Vec<Scalar>> = (0..statement.partitions())
        .map(|k| statement.public_inputs(k))
        .collect::<Result<_, _>>()?;
    Ok(match check_all(&inputs, proof, key) {
        Ok(()) => Verdict::Valid,
        Err(rejection) => Verdict::Invalid(rejection),
    })
}

fn check_all(
    inputs: &[Vec<Scalar>],
    proof: &[u8],
    key: &PreparedVerifyingKey<Bls12>,
) -> Result<(), Rejection> {
    check_length(inputs.len() * PARTITION_PROOF_BYTES, proof)?;
    let proofs = proof
        .chunks_exact(PARTITION_PROOF_BYTES)
        .enumerate()
        .map(|(partition, bytes)| read(partition, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    let borrowed: Vec<&Proof<Bls12>> = proofs.iter().collect();
    // The one error that a verifier has is that of a key for other inputs.
    let wrong_key = |_| Rejection::VerifyingKey {
        inputs: inputs.first().map_or(0, Vec::len),
    };
    if verify_proofs_batch(key, &mut OsRng, &borrowed, inputs).map_err(wrong_key)? {
        return Ok(());
    }
    // A batch does not say which one; looking again is cheap and rare.
    let wrong = proofs
        .iter()
        .zip(inputs)
        .position(|(proof, inputs)| !verify_proof(key, proof, inputs).unwrap_or(false));
    Err(Rejection::Equation {
        partition: wrong.unwrap_or(0),
    })
}

fn check_length(expected: usize, proof: &[u8]) -> Result<(), Rejection> {
    if proof.len() == expected {
        Ok(())
    } else {
        Err(Rejection::Length {
            expected,
            got: proof.len(),
        })
    }
}

/// Decodes a proof; points off the curve, outside the subgroup or at infinity
/// are refused.
fn read(partition: usize, bytes: &[u8]) -> Result<Proof<Bls12>, Rejection> {
    Proof::read(bytes).map_err(|problem| Rejection::Encoding {
        partition,
        problem: problem.to_string(),
    })
}
