//! Proofs made with the toxic waste of the test parameters: Groth16's simulator (eprint
//! 2016/260, section 3.2).
//!
//! Not a prover: there is no witness. A sector of thirteen partitions takes a fraction of a
//! second in place of a minute, for tests that need valid proofs as an input. The invariant: the
//! proofs follow from the public inputs and the verifying key alone, so they are the same in
//! each run.

use std::path::Path;

use bellperson::groth16::{Proof, VerifyingKey};
use blstrs::{Bls12, G1Projective, Scalar};
use cuzk_filecoin::Statement;
use cuzk_groth16::params::{GenerateOptions, ToxicWaste, read_verifying_key};
use ff::Field;
use group::Curve;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::{circuit_with_params, files, id};

/// Returns a valid proof of each partition of a statement over a smallest circuit, one after
/// the other as compressed points, 192 bytes each. The parameters are those of the folder
/// `cache`, a [`param_cache`](crate::param_cache).
#[must_use]
pub fn simulated_proofs(statement: &dyn Statement, cache: &Path) -> Vec<u8> {
    let kind = statement.circuit().kind;
    assert_eq!(statement.circuit(), id(kind), "test parameters are of 2KiB");
    let _in_the_cache = circuit_with_params(kind, cache);
    let key = read_verifying_key(&cache.join(files(kind).vk)).unwrap();
    let waste = ToxicWaste::from_seed(GenerateOptions::default().seed);
    assert!(waste.is_of(&key), "the parameters are of another seed");
    let mut bytes = Vec::new();
    for partition in 0..statement.partitions() {
        let inputs = statement.public_inputs(partition).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(partition as u64);
        let ab = [Scalar::random(&mut rng), Scalar::random(&mut rng)];
        let proof = simulated_proof(&waste, &key, &inputs, ab);
        proof.write(&mut bytes).unwrap();
    }
    bytes
}

/// Returns the proof with A = a·G1 and B = b·G2. Only C = ((ab − αβ)·G1 − γ·Σ xᵢ·ICᵢ)/δ solves
/// the verifier's equation e(A, B) = e(α, β)·e(Σ xᵢ·ICᵢ, γ)·e(C, δ).
fn simulated_proof(
    waste: &ToxicWaste,
    key: &VerifyingKey<Bls12>,
    inputs: &[Scalar],
    [a, b]: [Scalar; 2],
) -> Proof<Bls12> {
    assert_eq!(inputs.len() + 1, key.ic.len());
    // The first input of a circuit is ONE.
    let inputs = std::iter::once(&Scalar::ONE).chain(inputs);
    let terms = key.ic.iter().zip(inputs);
    let inputs_in_g1: G1Projective = terms.map(|(point, input)| point * input).sum();
    let products = waste.g1 * (a * b - waste.alpha * waste.beta);
    let c = (products - inputs_in_g1 * waste.gamma) * waste.delta.invert().unwrap();
    Proof {
        a: (waste.g1 * a).to_affine(),
        b: (waste.g2 * b).to_affine(),
        c: c.to_affine(),
    }
}
