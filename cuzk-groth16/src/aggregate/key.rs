//! The part of the SRS that a number of proofs needs.
//!
//! Commitment keys have the names of SnarkPack, section 3.2: v in G2, and w in G1, which is
//! shifted by the number of proofs. The invariant: the number is a power of two and at least
//! 2; v has that length, and g twice that.

use blstrs::{G1Affine, G2Affine};

use super::error::AggregateError;
use super::srs::{InnerProductSrs, needed_in_g1};

/// The powers that are needed to aggregate a number of proofs.
#[derive(Clone, Debug)]
pub struct AggregationKey {
    proofs: usize,
    /// `α^i · H` and `β^i · H`, i below the number of proofs.
    v: [Vec<G2Affine>; 2],
    /// `α^i · G` and `β^i · G`, i below twice the number of proofs.
    g: [Vec<G1Affine>; 2],
}

impl AggregationKey {
    /// Takes what `proofs` proofs need out of an SRS.
    ///
    /// # Errors
    /// [`AggregateError::TooFew`], [`AggregateError::NotPowerOfTwo`], and
    /// [`AggregateError::SrsTooShort`].
    pub fn new(srs: &InnerProductSrs, proofs: usize) -> Result<Self, AggregateError> {
        check_number(proofs)?;
        let needed = needed_in_g1(proofs);
        let [alpha, beta] = &srs.secrets;
        let v = [&alpha.g2, &beta.g2].map(|powers| powers.get(..proofs));
        let g = [&alpha.g1, &beta.g1].map(|powers| powers.get(..needed));
        let ([Some(v0), Some(v1)], [Some(g0), Some(g1)]) = (v, g) else {
            let in_g1 = alpha.g1.len().min(beta.g1.len());
            let in_g2 = alpha.g2.len().min(beta.g2.len());
            let got = in_g1.min(in_g2.saturating_mul(2));
            return Err(AggregateError::SrsTooShort {
                proofs,
                needed,
                got,
            });
        };
        Ok(Self {
            proofs,
            v: [v0.to_vec(), v1.to_vec()],
            g: [g0.to_vec(), g1.to_vec()],
        })
    }

    /// The number of proofs that the key is for.
    #[must_use]
    pub fn proofs(&self) -> usize {
        self.proofs
    }

    /// The commitment key in G2.
    pub(super) fn v(&self) -> &[Vec<G2Affine>; 2] {
        &self.v
    }

    /// The powers in G1 from the first one on.
    pub(super) fn g(&self) -> &[Vec<G1Affine>; 2] {
        &self.g
    }

    /// The commitment key in G1.
    pub(super) fn w(&self) -> [&[G1Affine]; 2] {
        self.g
            .each_ref()
            .map(|powers| powers.get(self.proofs..).unwrap_or_default())
    }
}

/// Checks the number of proofs that are to be aggregated.
pub(super) fn check_number(proofs: usize) -> Result<(), AggregateError> {
    if proofs < 2 {
        return Err(AggregateError::TooFew { got: proofs });
    }
    if !proofs.is_power_of_two() {
        return Err(AggregateError::NotPowerOfTwo { got: proofs });
    }
    Ok(())
}
