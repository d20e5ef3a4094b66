//! The aggregate, and its bytes as the chain reads them.
//!
//! Not a verifier: bellperson's is the reference. The invariant: no product of pairings in it
//! is 1, which the compressed form cannot express.

use blstrs::{Compress, G1Affine, G2Affine, Gt};
use group::Group;

use super::commitment::Commitment;
use super::error::AggregateError;

/// An aggregate of Groth16 proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateProof {
    pub(super) statement: Statement,
    pub(super) proofs: u32,
    pub(super) rounds: Vec<Round>,
    pub(super) last: Last,
    pub(super) openings: Openings,
}

/// The values that the argument proves something of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The commitment to all A and B.
    pub(super) com_ab: Commitment,
    /// The commitment to all C.
    pub(super) com_c: Commitment,
    /// `Π e(A_i, r^i · B_i)`
    pub(super) ip_ab: Gt,
    /// `Σ r^i · C_i`
    pub(super) agg_c: G1Affine,
}

/// The cross terms of a round: left ones pair the right half of a vector with the left half
/// of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) com_ab: [Commitment; 2],
    pub(super) com_c: [Commitment; 2],
    pub(super) z_ab: [Gt; 2],
    pub(super) z_c: [G1Affine; 2],
}

/// The vectors when they have one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) a: G1Affine,
    pub(super) b: G2Affine,
    pub(super) c: G1Affine,
    /// The commitment keys of α and β.
    pub(super) v: [G2Affine; 2],
    pub(super) w: [G1Affine; 2],
}

/// Openings that show that the last commitment keys are the right ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Openings {
    pub(super) v: [G2Affine; 2],
    pub(super) w: [G1Affine; 2],
}

impl AggregateProof {
    /// The number of proofs in the aggregate.
    #[must_use]
    pub fn proofs(&self) -> usize {
        self.proofs as usize
    }

    /// Returns the bytes that the chain's verifier reads.
    ///
    /// # Errors
    /// [`AggregateError::Degenerate`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, AggregateError> {
        let mut bytes = Bytes::default();
        bytes.commitment(&self.statement.com_ab)?;
        bytes.commitment(&self.statement.com_c)?;
        bytes.gt(&self.statement.ip_ab)?;
        bytes.g1(&self.statement.agg_c);
        bytes.0.extend(self.proofs.to_le_bytes());
        for commitment in self.rounds.iter().flat_map(|round| &round.com_ab) {
            bytes.commitment(commitment)?;
        }
        for commitment in self.rounds.iter().flat_map(|round| &round.com_c) {
            bytes.commitment(commitment)?;
        }
        for product in self.rounds.iter().flat_map(|round| &round.z_ab) {
            bytes.gt(product)?;
        }
        for sum in self.rounds.iter().flat_map(|round| &round.z_c) {
            bytes.g1(sum);
        }
        bytes.g1(&self.last.a);
        bytes.g2(&self.last.b);
        bytes.g1(&self.last.c);
        self.last.v.iter().for_each(|point| bytes.g2(point));
        self.last.w.iter().for_each(|point| bytes.g1(point));
        self.openings.v.iter().for_each(|point| bytes.g2(point));
        self.openings.w.iter().for_each(|point| bytes.g1(point));
        Ok(bytes.0)
    }
}

/// Bytes that are being written.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn g1(&mut self, point: &G1Affine) {
        self.0.extend(point.to_compressed());
    }

    fn g2(&mut self, point: &G2Affine) {
        self.0.extend(point.to_compressed());
    }

    fn commitment(&mut self, commitment: &Commitment) -> Result<(), AggregateError> {
        commitment.0.iter().try_for_each(|part| self.gt(part))
    }

    /// Six of the twelve components say it all but for 1.
    fn gt(&mut self, value: &Gt) -> Result<(), AggregateError> {
        if value.is_identity().into() {
            return Err(AggregateError::Degenerate);
        }
        // Writing to a vector cannot fail.
        value
            .write_compressed(&mut self.0)
            .map_err(|_| AggregateError::Degenerate)
    }
}
