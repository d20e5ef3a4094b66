//! Proofs without a circuit: who knows the toxic waste makes a proof of any inputs.

use bellperson::groth16::{PreparedVerifyingKey, Proof, VerifyingKey, prepare_verifying_key};
use blstrs::{Bls12, G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Public inputs of a proof.
const INPUTS: usize = 3;

/// Proofs that verify, with their inputs and their key.
pub(crate) struct Proofs {
    pub(crate) key: PreparedVerifyingKey<Bls12>,
    pub(crate) inputs: Vec<Vec<Scalar>>,
    pub(crate) proofs: Vec<Proof<Bls12>>,
}

fn in_g1(scalar: Scalar) -> G1Affine {
    (G1Affine::generator() * scalar).to_affine()
}

fn in_g2(scalar: Scalar) -> G2Affine {
    (G2Affine::generator() * scalar).to_affine()
}

impl Proofs {
    pub(crate) fn new(len: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(len as u64);
        let mut scalar = || Scalar::random(&mut rng);
        let [alpha, beta, gamma, delta] = [(); 4].map(|()| scalar());
        let ic = [(); INPUTS + 1].map(|()| scalar());
        let (mut inputs, mut proofs) = (Vec::new(), Vec::new());
        for _ in 0..len {
            let of_this = [(); INPUTS].map(|()| scalar());
            let terms = of_this.iter().zip(&ic[1..]).map(|(x, ic)| x * ic);
            let sum = ic[0] + terms.sum::<Scalar>();
            let (a, b) = (scalar(), scalar());
            // The equation of verification, Groth (eprint 2016/260), section 3.2.
            let c = (a * b - alpha * beta - sum * gamma) * delta.invert().unwrap();
            proofs.push(Proof {
                a: in_g1(a),
                b: in_g2(b),
                c: in_g1(c),
            });
            inputs.push(of_this.to_vec());
        }
        let key = VerifyingKey {
            alpha_g1: in_g1(alpha),
            beta_g1: in_g1(beta),
            beta_g2: in_g2(beta),
            gamma_g2: in_g2(gamma),
            delta_g1: in_g1(delta),
            delta_g2: in_g2(delta),
            ic: ic.map(in_g1).to_vec(),
        };
        let key = prepare_verifying_key(&key);
        Self {
            key,
            inputs,
            proofs,
        }
    }
}
