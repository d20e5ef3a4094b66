//! The only way for the bytes of an aggregate to leave.
//!
//! Not a second implementation of the verifier: bellperson's is the reference. The invariant:
//! a [`VerifiedAggregate`] exists only for bytes that, read back, the verifier accepted for
//! the public inputs.

use bellperson::groth16::PreparedVerifyingKey;
use bellperson::groth16::aggregate::{
    AggregateProof as Read, AggregateVersion as TheirVersion, VerifierSRS, verify_aggregate_proof,
};
use blstrs::{Bls12, Scalar};
use rand::rngs::OsRng;

use super::key::AggregationKey;
use super::proof::AggregateProof;
use super::version::AggregateVersion;
use crate::verify::Rejected;

/// An aggregate, as the chain expects it, after verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedAggregate(Vec<u8>);

impl VerifiedAggregate {
    /// The bytes of the aggregate.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The public side of an aggregate.
#[derive(Clone, Copy)]
pub struct Claim<'a> {
    /// The verifying key of the circuit.
    pub verifying_key: &'a PreparedVerifyingKey<Bls12>,
    /// The version of the transcript.
    pub version: AggregateVersion,
    /// The bytes that the first challenge includes.
    pub included: &'a [u8],
    /// The public inputs of each proof, in order.
    pub inputs: &'a [Vec<Scalar>],
}

/// Verifies an aggregate, as it will be read by others.
///
/// # Errors
/// [`Rejected`].
pub fn verify(
    key: &AggregationKey,
    claim: Claim<'_>,
    aggregate: &AggregateProof,
) -> Result<VerifiedAggregate, Rejected> {
    let bytes = aggregate
        .to_bytes()
        .map_err(|error| reject(error.to_string()))?;
    verify_bytes(key, claim, bytes)
}

/// Verifies the bytes of an aggregate, whoever made it.
///
/// # Errors
/// [`Rejected`].
pub fn verify_bytes(
    key: &AggregationKey,
    claim: Claim<'_>,
    bytes: Vec<u8>,
) -> Result<VerifiedAggregate, Rejected> {
    let mut rest = bytes.as_slice();
    let read = Read::read(&mut rest).map_err(|error| reject(error.to_string()))?;
    let (len, proofs) = (rest.len(), read.tmipp.gipa.nproofs);
    if len != 0 {
        return Err(reject(format!("{len} bytes follow the aggregate")));
    }
    if usize::try_from(proofs) != Ok(key.proofs()) {
        return Err(reject(format!(
            "it is of {proofs} proofs, not of {}",
            key.proofs()
        )));
    }
    let version = match claim.version {
        AggregateVersion::V1 => TheirVersion::V1,
        AggregateVersion::V2 => TheirVersion::V2,
    };
    let verified = verify_aggregate_proof(
        &verifier_srs(key),
        claim.verifying_key,
        OsRng,
        claim.inputs,
        &read,
        claim.included,
        version,
    );
    match verified {
        Ok(true) => Ok(VerifiedAggregate(bytes)),
        Ok(false) => Err(reject("a pairing equation does not hold".into())),
        Err(error) => Err(reject(error.to_string())),
    }
}

fn reject(problem: String) -> Rejected {
    Rejected { problem }
}

/// The part of the SRS that the verifier takes. Aggregates of instances alone look at the last
/// power, so any point stands for it.
fn verifier_srs(key: &AggregationKey) -> VerifierSRS<Bls12> {
    let ([v_alpha, v_beta], [g_alpha, g_beta]) = (key.v(), key.g());
    VerifierSRS {
        n: key.proofs(),
        g: g_alpha[0].into(),
        h: v_alpha[0].into(),
        g_alpha: g_alpha[1].into(),
        g_beta: g_beta[1].into(),
        h_alpha: v_alpha[1].into(),
        h_beta: v_beta[1].into(),
        h_alpha_d: v_alpha[0].into(),
    }
}
