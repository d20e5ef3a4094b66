//! The one pairing, where signatures are generic in it.

use bellperson::groth16::{Proof, VerifyingKey};
use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use pairing::{Engine, MultiMillerLoop};

/// A pairing with the groups of BLS12-381, which is [`Bls12`].
pub trait Bls12381:
    MultiMillerLoop
    + Engine<
        Fr = Scalar,
        G1 = G1Projective,
        G1Affine = G1Affine,
        G2 = G2Projective,
        G2Affine = G2Affine,
    >
{
}

impl Bls12381 for Bls12 {}

pub(super) fn named_proof<E: Bls12381>(proof: Proof<Bls12>) -> Proof<E> {
    Proof {
        a: proof.a,
        b: proof.b,
        c: proof.c,
    }
}

pub(super) fn named_key<E: Bls12381>(key: &VerifyingKey<Bls12>) -> VerifyingKey<E> {
    VerifyingKey {
        alpha_g1: key.alpha_g1,
        beta_g1: key.beta_g1,
        beta_g2: key.beta_g2,
        gamma_g2: key.gamma_g2,
        delta_g1: key.delta_g1,
        delta_g2: key.delta_g2,
        ic: key.ic.clone(),
    }
}
