//! The last step of a Groth16 proof: sums and two random scalars in, π out
//! (Groth, eprint 2016/260, section 3.2).

use bellperson::groth16::{Proof, VerifyingKey};
use blstrs::{Bls12, G1Projective, G2Projective, Scalar};
use group::Curve;
use group::prime::PrimeCurveAffine;

use super::BackendError;
use super::randomness::{Randomness, Scaling};

/// The sums that every proof takes, each without the key's own terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    /// Σ hᵢ·Hᵢ over the quotient's coefficients, and Σ wᵢ·Lᵢ over the aux
    /// variables.
    pub(super) h_and_l: G1Projective,
    /// Σ wᵢ·Aᵢ over the inputs and the aux variables that appear in A.
    pub(super) a: G1Projective,
    /// Σ wᵢ·Bᵢ in G2 over the variables that appear in B.
    pub(super) b_g2: G2Projective,
}

/// A proof's randomness, with the sum that only one kind of it takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blinding {
    Added {
        r: Scalar,
        s: Scalar,
        /// Σ wᵢ·Bᵢ in G1.
        b_g1: G1Projective,
    },
    Scaled(Scaling),
}

impl Blinding {
    /// `b_g1` is called if the sum over B in G1 is needed.
    ///
    /// # Errors
    /// What `b_g1` returns.
    pub(super) fn new<E>(
        randomness: Randomness,
        b_g1: impl FnOnce() -> Result<G1Projective, E>,
    ) -> Result<Self, E> {
        Ok(match randomness {
            Randomness::Added { r, s } => Self::Added {
                r,
                s,
                b_g1: b_g1()?,
            },
            Randomness::Scaled(scaling) => Self::Scaled(scaling),
        })
    }
}

/// The proof. Without randomness, π_A = α + A, π_B = β + B, π_C = H + L.
///
/// Added: π_A + r·δ, π_B + s·δ, π_C + s·(π_A + r·δ) + r·(β + B). The paper's
/// π_C has r·(β + B + s·δ) − r·s·δ for its last term; the two terms in δ cancel.
///
/// Scaled by t and shifted by u: π_A/t, t·(π_B + u·δ), π_C + u·π_A.
///
/// # Errors
/// [`BackendError::IdentityDelta`].
pub(super) fn assemble(
    vk: &VerifyingKey<Bls12>,
    sums: &Sums,
    blinding: &Blinding,
) -> Result<Proof<Bls12>, BackendError> {
    if bool::from(vk.delta_g1.is_identity() | vk.delta_g2.is_identity()) {
        return Err(BackendError::IdentityDelta);
    }
    let a = sums.a + vk.alpha_g1;
    let b = sums.b_g2 + vk.beta_g2;
    let c = sums.h_and_l;
    let (a, b, c) = match *blinding {
        Blinding::Added { r, s, b_g1 } => {
            let a = a + vk.delta_g1 * r;
            (a, b + vk.delta_g2 * s, c + a * s + (b_g1 + vk.beta_g1) * r)
        }
        Blinding::Scaled(Scaling {
            scale,
            inverse,
            shift,
        }) => (
            a * inverse,
            (b + vk.delta_g2 * shift) * scale,
            c + a * shift,
        ),
    };
    Ok(Proof {
        a: a.to_affine(),
        b: b.to_affine(),
        c: c.to_affine(),
    })
}
