//! The last step of a Groth16 proof: five sums and two random scalars in, π
//! out (Groth, eprint 2016/260, section 3.2).

use bellperson::groth16::{Proof, VerifyingKey};
use blstrs::{Bls12, G1Projective, G2Projective};
use group::Curve;
use group::prime::PrimeCurveAffine;

use super::{BackendError, Randomness};

/// The five sums of a proof, each without the key's own terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    /// Σ hᵢ·Hᵢ over the quotient's coefficients.
    pub(super) h: G1Projective,
    /// Σ wᵢ·Lᵢ over the aux variables.
    pub(super) l: G1Projective,
    /// Σ wᵢ·Aᵢ over the inputs and the aux variables that appear in A.
    pub(super) a: G1Projective,
    /// Σ wᵢ·Bᵢ in G1 over the variables that appear in B.
    pub(super) b_g1: G1Projective,
    /// The same in G2.
    pub(super) b_g2: G2Projective,
}

/// π_A = α + A + r·δ, π_B = β + B + s·δ, π_C = H + L + s·π_A + r·(β + B).
///
/// The paper's π_C has r·(β + B + s·δ) − r·s·δ for its last term; the two
/// terms in δ cancel.
///
/// # Errors
/// [`BackendError::IdentityDelta`].
pub(super) fn assemble(
    vk: &VerifyingKey<Bls12>,
    sums: &Sums,
    Randomness { r, s }: Randomness,
) -> Result<Proof<Bls12>, BackendError> {
    if bool::from(vk.delta_g1.is_identity() | vk.delta_g2.is_identity()) {
        return Err(BackendError::IdentityDelta);
    }
    let a = sums.a + vk.alpha_g1 + vk.delta_g1 * r;
    let b = sums.b_g2 + vk.beta_g2 + vk.delta_g2 * s;
    let c = sums.h + sums.l + a * s + (sums.b_g1 + vk.beta_g1) * r;
    Ok(Proof {
        a: a.to_affine(),
        b: b.to_affine(),
        c: c.to_affine(),
    })
}
