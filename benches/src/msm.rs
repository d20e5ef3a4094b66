//! Points and scalars to multiply and add.

use blstrs::Scalar;
use ff::Field;
use group::{Curve, Group, prime::PrimeCurveAffine};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The distribution of the scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalars {
    /// As a Filecoin witness: 98.4 % zeros and ones, half and half.
    Witness,
    /// Uniform.
    Uniform,
}

impl Scalars {
    /// A word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Scalars::Witness => "witness",
            Scalars::Uniform => "uniform",
        }
    }

    /// `len` of them, the same every time.
    pub fn make(self, len: usize) -> Vec<Scalar> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut scalar = || match self {
            Scalars::Witness if rng.gen_bool(0.984) => Scalar::from(u64::from(rng.r#gen::<bool>())),
            _ => Scalar::random(&mut rng),
        };
        (0..len).map(|_| scalar()).collect()
    }
}

/// The first `len` multiples of the generator.
pub fn bases<P>(len: usize) -> Vec<P::AffineRepr>
where
    P: Curve + Group,
    P::AffineRepr: PrimeCurveAffine<Curve = P>,
{
    let multiples =
        std::iter::successors(Some(P::generator()), |point| Some(*point + P::generator()));
    let multiples: Vec<P> = multiples.take(len).collect();
    let mut bases = vec![P::AffineRepr::identity(); len];
    P::batch_normalize(&multiples, &mut bases);
    bases
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::{G1Affine, G1Projective};

    #[test]
    fn a_witness_is_mostly_bits() {
        let small = |scalar: &&Scalar| **scalar == Scalar::ZERO || **scalar == Scalar::ONE;
        let witness = Scalars::Witness.make(10_000);
        let bits = witness.iter().filter(small).count();
        assert!((9_700..9_950).contains(&bits), "{bits}");
        assert_eq!(Scalars::Uniform.make(100).iter().filter(small).count(), 0);
        assert_eq!(witness, Scalars::Witness.make(10_000));
    }

    #[test]
    fn bases_are_multiples() {
        let bases = bases::<G1Projective>(5);
        let five = G1Projective::generator() * Scalar::from(5);
        assert_eq!(bases[4], G1Affine::from(five));
    }
}
