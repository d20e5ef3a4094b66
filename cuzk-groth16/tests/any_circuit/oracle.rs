//! bellperson as the oracle: the same parameters, and the same proof bytes.

use std::sync::Arc;

use bellperson::groth16::{
    Parameters, create_proof, generate_parameters, prepare_verifying_key, verify_proof,
};
use bellperson::{Circuit as Instance, ConstraintSystem, SynthesisError};
use blstrs::{Bls12, Scalar};
use cuzk_groth16::backend::Randomness;
use cuzk_groth16::params::ToxicWaste;
use cuzk_groth16::{Prover, RowCheck, compile, setup};
use cuzk_pce::packed_witness;
use cuzk_testing::circuits::{Mimc, Sha256Chain};
use group::prime::PrimeCurveAffine;

use crate::edges::{Edge, OneMore};
use crate::known::Poseidon;
use crate::random::Random;

/// Any of the circuits that are held against bellperson. Both provers are compiled for each type
/// of circuit that they get: once for this one, and not once for each of them.
#[derive(Clone)]
pub(crate) enum Any {
    Edge(Edge),
    Mimc(Mimc),
    OneMore(OneMore),
    Poseidon(Poseidon),
    Random(Random),
    Sha256(Sha256Chain),
}

impl Instance<Scalar> for Any {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        match self {
            Self::Edge(circuit) => circuit.synthesize(cs),
            Self::Mimc(circuit) => circuit.synthesize(cs),
            Self::OneMore(circuit) => circuit.synthesize(cs),
            Self::Poseidon(circuit) => circuit.synthesize(cs),
            Self::Random(circuit) => circuit.synthesize(cs),
            Self::Sha256(circuit) => circuit.synthesize(cs),
        }
    }
}

/// Fixed, so that proofs can be compared.
pub(crate) fn randomness() -> [Scalar; 2] {
    [0x5eed, 0x0dd5].map(Scalar::from)
}

pub(crate) fn added() -> Randomness {
    let [r, s] = randomness();
    Randomness::Added { r, s }
}

pub(crate) fn waste() -> ToxicWaste {
    ToxicWaste::from_seed(7)
}

/// A prover with its circuit and parameters in memory.
pub(crate) fn in_memory<C: Instance<Scalar>>(blank: C) -> Prover {
    let circuit = Arc::new(compile("any", blank).unwrap());
    let params = Arc::new(setup(&circuit, &waste()).unwrap());
    Prover::new(circuit, params).unwrap()
}

/// A prover of the same circuit and parameters, which are mapped from files.
pub(crate) fn from_files(prover: &Prover) -> Prover {
    let folder = tempfile::tempdir().unwrap();
    let [circuit, params] = ["any.circuit", "any.params"].map(|name| folder.path().join(name));
    prover.circuit().write(&circuit).unwrap();
    prover.params().write(&params).unwrap();
    // Their files are gone afterwards, but mapped.
    Prover::open("any", &circuit, &params).unwrap()
}

/// bellperson's parameters of the same waste.
pub(crate) fn their_params(blank: Any) -> Parameters<Bls12> {
    let waste = waste();
    generate_parameters::<Bls12, _>(
        blank,
        waste.g1.to_curve(),
        waste.g2.to_curve(),
        waste.alpha,
        waste.beta,
        waste.gamma,
        waste.delta,
        waste.tau,
    )
    .unwrap()
}

/// Checks that the parameters of a circuit are bellperson's, and the proofs of an instance too.
/// Proofs are made in memory and out of files, with rows compared and with counts compared.
pub(crate) fn agree(blank: Any, instance: Any) {
    let prover = in_memory(blank.clone());
    let theirs = their_params(blank);
    let mut bytes = Vec::new();
    theirs.write(&mut bytes).unwrap();
    assert!(prover.params().bytes() == bytes, "the parameters differ");
    agree_with(&theirs, prover, instance);
}

/// As [`agree`], with parameters that are known to be the same.
pub(crate) fn agree_with(theirs: &Parameters<Bls12>, prover: Prover, instance: Any) {
    let [r, s] = randomness();
    let expected = create_proof::<Bls12, _, _>(instance.clone(), theirs, r, s).unwrap();
    let inputs = packed_witness(instance.clone()).unwrap().inputs()[1..].to_vec();
    let key = prepare_verifying_key(&theirs.vk);
    assert!(verify_proof(&key, &expected, &inputs).unwrap());
    let mut bytes = Vec::new();
    expected.write(&mut bytes).unwrap();
    let opened = from_files(&prover);
    for prover in [prover, opened] {
        let proof = prover.prove_with(instance.clone(), added()).unwrap();
        assert_eq!(proof.as_bytes()[..], bytes);
        let prover = prover.with_row_check(RowCheck::Counts);
        let proof = prover.prove_with(instance.clone(), added()).unwrap();
        assert_eq!(proof.as_bytes()[..], bytes);
        // Of another randomness, which bellperson's verifier accepts.
        let random = prover.prove_unverified(instance.clone(), Randomness::from_os());
        assert!(verify_proof(&key, &random.unwrap(), &inputs).unwrap());
    }
}
