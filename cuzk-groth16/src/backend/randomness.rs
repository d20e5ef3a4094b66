//! What makes a proof zero-knowledge: two random scalars, and where they go.
//!
//! A proof's π_A and π_B are uniform and π_C follows from them, in either of two
//! ways. Groth's paper adds r·δ and s·δ while the proof is made, which takes the
//! sum over B in G1 besides the one in G2. Or a proof with r = s = 0 is scaled
//! and shifted once it is made, which takes three multiplications instead of
//! that sum. The invariant: what leaves a backend is as random either way.

use blstrs::Scalar;
use ff::Field;

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
    /// A proof without randomness, randomized: Bowe and Gabizon, eprint 2018/187;
    /// Baghery, Kohlweiss, Siim and Volkhov, "Another Look at Extraction and
    /// Randomization of Groth's zk-SNARK", eprint 2020/811. With a uniform scale
    /// and a uniform shift π_A and π_B are uniform and independent, as those of
    /// the other way are, and the verifier's equation leaves one π_C to go with
    /// them. (Unless π_A was the identity, which one in 2^254 is.)
    Scaled(Scaling),
}

impl Randomness {
    /// Fresh scalars from the operating system's generator.
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

    /// Whether the sum over B in G1 is needed.
    #[must_use]
    pub fn needs_b_g1(&self) -> bool {
        matches!(self, Self::Added { .. })
    }
}

/// What a proof is multiplied by and moved by. The multiplier has an inverse.
#[derive(Clone, Copy, Debug)]
pub struct Scaling {
    pub(super) scale: Scalar,
    pub(super) inverse: Scalar,
    pub(super) shift: Scalar,
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
