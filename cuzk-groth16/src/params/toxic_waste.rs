//! The secret behind a set of parameters.
//!
//! Real parameters come from a ceremony after which nobody knows it. Here it is
//! made from a number, for tests only: whoever knows it can prove anything.

use bellperson::groth16::VerifyingKey;
use blstrs::{Bls12, G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::error::GenerateError;

/// The trapdoors of Groth16 (eprint 2016/260, section 3.2) and the generators
/// that they multiply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToxicWaste {
    /// Generator of G1.
    pub g1: G1Affine,
    /// Generator of G2.
    pub g2: G2Affine,
    /// α
    pub alpha: Scalar,
    /// β
    pub beta: Scalar,
    /// γ
    pub gamma: Scalar,
    /// δ
    pub delta: Scalar,
    /// τ, the point at which polynomials are evaluated.
    pub tau: Scalar,
}

impl ToxicWaste {
    /// Insecure by design: α, β, γ, δ, τ, drawn in this order from ChaCha20
    /// seeded with `seed` (as `SeedableRng::seed_from_u64` expands it), and the
    /// standard generators. The same seed gives the same parameters everywhere.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        Self {
            g1: G1Affine::generator(),
            g2: G2Affine::generator(),
            alpha: Scalar::random(&mut rng),
            beta: Scalar::random(&mut rng),
            gamma: Scalar::random(&mut rng),
            delta: Scalar::random(&mut rng),
            tau: Scalar::random(&mut rng),
        }
    }

    /// Returns true if `key` was made from these values, as far as it tells: it knows
    /// nothing of τ by itself.
    #[must_use]
    pub fn is_of(&self, key: &VerifyingKey<Bls12>) -> bool {
        let in_g1 = |scalar: Scalar| (self.g1 * scalar).to_affine();
        let in_g2 = |scalar: Scalar| (self.g2 * scalar).to_affine();
        key.alpha_g1 == in_g1(self.alpha)
            && key.beta_g2 == in_g2(self.beta)
            && key.gamma_g2 == in_g2(self.gamma)
            && key.delta_g2 == in_g2(self.delta)
    }

    /// Refuses values for which the parameters would have points at infinity.
    pub(super) fn check(&self) -> Result<(), GenerateError> {
        let degenerate = [
            ("the generator of G1", self.g1.is_identity()),
            ("the generator of G2", self.g2.is_identity()),
            ("alpha", self.alpha.is_zero()),
            ("beta", self.beta.is_zero()),
            ("gamma", self.gamma.is_zero()),
            ("delta", self.delta.is_zero()),
            ("tau", self.tau.is_zero()),
        ];
        match degenerate
            .into_iter()
            .find(|(_, degenerate)| (*degenerate).into())
        {
            None => Ok(()),
            Some((what, _)) => Err(GenerateError::DegenerateWaste { what }),
        }
    }
}
