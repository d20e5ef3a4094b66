//! The last step of a Groth16 proof, from the MSMs and two random scalars to π
//! (Groth, eprint 2016/260, section 3.2).
//!
//! A proof's π_A and π_B are uniform and π_C follows from them, in either of two
//! ways. Groth's paper adds r·δ and s·δ while the proof is made, which takes the
//! MSM over B in G1 besides the one in G2. Or a proof with r = s = 0 is scaled
//! and shifted once it is made, which takes three multiplications instead of
//! that MSM. The invariant: what leaves a backend is as random either way.

use bellperson::groth16::{Proof, VerifyingKey};
use blstrs::{Bls12, G1Projective, G2Projective, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;

use super::BackendError;

/// The random scalars of a proof.
#[derive(Clone, Copy, Debug)]
pub enum Randomness {
    /// Groth, "On the Size of Pairing-based Non-interactive Arguments", eprint
    /// 2016/260, section 3.2: what other provers do, so that proofs can be
    /// compared.
    Added {
        /// Blinds π_A.
        r: Scalar,
        /// Blinds π_B.
        s: Scalar,
    },
    /// A proof without randomness, randomized afterwards. See Bowe and Gabizon, eprint
    /// 2018/187. See also Baghery, Kohlweiss, Siim and Volkhov, "Another Look at Extraction
    /// and Randomization of Groth's zk-SNARK", eprint 2020/811.
    ///
    /// With a uniform scale and a uniform shift, π_A and π_B are uniform and independent,
    /// as those of the other way are. The verifier's equation leaves one π_C to go with
    /// them. (Unless π_A was the identity, which one in 2^254 is.)
    Scaled(Scaling),
}

impl Randomness {
    /// Returns fresh scalars from the operating system's generator.
    #[must_use]
    pub fn from_os() -> Self {
        let mut rng = rand::rngs::OsRng;
        loop {
            let (scale, shift) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
            if let Some(scaling) = Scaling::new(scale, shift) {
                return Self::Scaled(scaling);
            }
        }
    }

    /// Returns true if the MSM over B in G1 is needed.
    #[must_use]
    pub fn needs_b_g1(&self) -> bool {
        matches!(self, Self::Added { .. })
    }
}

/// The multiplier and the shift of a proof. The multiplier has an inverse.
#[derive(Clone, Copy, Debug)]
pub struct Scaling {
    scale: Scalar,
    inverse: Scalar,
    shift: Scalar,
}

impl Scaling {
    /// π_A/`scale`, `scale`·(π_B + `shift`·δ), π_C + `shift`·π_A; `None` for a
    /// `scale` of zero.
    #[must_use]
    pub fn new(scale: Scalar, shift: Scalar) -> Option<Self> {
        Option::from(scale.invert()).map(|inverse| Self {
            scale,
            inverse,
            shift,
        })
    }
}

/// The MSMs that every proof takes, each without the key's own terms.
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

/// A proof's randomness, with the MSM that only one kind of it takes.
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
    /// Returns the blinding of a proof. `b_g1` computes the MSM over B in G1, if it is
    /// needed.
    ///
    /// # Errors
    /// The error of `b_g1`.
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

/// Returns the proof. Without randomness, π_A = α + A, π_B = β + B, π_C = H + L.
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
