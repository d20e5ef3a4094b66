//! The inner-product SRS: powers of two secrets, α and β, in both groups.
//!
//! Filecoin's has 2^20 + 1 powers, from two ceremonies. `n` proofs need the first `2n` in G1
//! and the first `n` in G2, so no more than those are read of a file. Gailly, Maller and
//! Nitulescu: "SnarkPack: Practical SNARK Aggregation", eprint 2021/529, section 3.
//!
//! Not a file: that is `srs_file`. The invariant: the points of an SRS are in their groups,
//! and none is at infinity.

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::fixed_base::{G1Table, G2Table};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::error::AggregateError;

/// The powers of one secret s in both groups: `s^i · G` and `s^i · H`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Powers {
    pub(super) g1: Vec<G1Affine>,
    pub(super) g2: Vec<G2Affine>,
}

/// Powers of two secrets in both groups, or the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerProductSrs {
    /// Those of α, then those of β.
    pub(super) secrets: [Powers; 2],
}

impl InnerProductSrs {
    /// Makes an SRS for up to `proofs` proofs, insecure by design: α and β are drawn from
    /// ChaCha20 seeded with `seed`. The same seed gives the same SRS everywhere.
    ///
    /// # Errors
    /// [`AggregateError::Kernel`] if the multiplication of the generators fails.
    pub fn insecure(seed: u64, proofs: usize) -> Result<Self, AggregateError> {
        let [alpha, beta] = secrets_of(seed);
        Ok(Self {
            secrets: [
                Powers::of(alpha, proofs.saturating_mul(2))?,
                Powers::of(beta, proofs.saturating_mul(2))?,
            ],
        })
    }

    /// Returns true if the SRS begins as [`Self::insecure`] makes it from this seed.
    #[must_use]
    pub fn is_of_seed(&self, seed: u64) -> bool {
        let begins = |(powers, secret): (&Powers, Scalar)| {
            let first = (G1Affine::generator() * secret).to_affine();
            powers.g1.get(1) == Some(&first)
        };
        self.secrets.iter().zip(secrets_of(seed)).all(begins)
    }
}

/// Draws α and β.
fn secrets_of(seed: u64) -> [Scalar; 2] {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    [(); 2].map(|()| Scalar::random(&mut rng))
}

impl Powers {
    fn of(secret: Scalar, len: usize) -> Result<Self, AggregateError> {
        let powers: Vec<Scalar> = powers(secret, len).collect();
        let mut g1 = vec![G1Affine::identity(); len];
        let mut g2 = vec![G2Affine::identity(); len];
        G1Table::new(G1Affine::generator(), len).mul_many(&powers, &mut g1)?;
        G2Table::new(G2Affine::generator(), len).mul_many(&powers, &mut g2)?;
        Ok(Self { g1, g2 })
    }
}

/// 1, s, s², …
pub(super) fn powers(s: Scalar, len: usize) -> impl Iterator<Item = Scalar> {
    std::iter::successors(Some(Scalar::ONE), move |power| Some(power * s)).take(len)
}

/// Powers of each secret in G1 that `proofs` proofs need.
pub(super) fn needed_in_g1(proofs: usize) -> usize {
    proofs.saturating_mul(2)
}
