//! Circuits of other people's gadgets.

use bellpepper_core::num::AllocatedNum;
use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use cuzk_testing::circuits::{Mimc, Sha256Chain};
use neptune::circuit2::poseidon_hash_allocated;
use neptune::poseidon::PoseidonConstants;
use typenum::U4;

use crate::oracle::{Any, added, agree, in_memory};

#[test]
fn mimc_as_in_bellpersons_example() {
    let blank = Mimc::blank(322);
    agree(Any::Mimc(blank.clone()), Any::Mimc(blank.with([3, 5])));
    // The public input is the image that MiMC has by its definition.
    let prover = in_memory(blank.clone());
    let instance = blank.with([3, 5]);
    let image = instance.image().unwrap();
    let proof = prover.prove_unverified(instance, added()).unwrap();
    cuzk_groth16::verify(prover.key(), &proof, &[image]).unwrap();
    cuzk_groth16::verify(prover.key(), &proof, &[image + image]).unwrap_err();
}

#[test]
fn a_block_of_sha256() {
    let blank = Sha256Chain::blank(1);
    agree(Any::Sha256(blank.clone()), Any::Sha256(blank.with(0xa5)));
}

/// Hashes of hashes. The gadget writes its own values if it is asked for values only.
#[derive(Clone)]
pub(crate) struct Poseidon {
    preimage: Option<[u64; 4]>,
}

impl Circuit<Scalar> for Poseidon {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let constants = PoseidonConstants::<Scalar, U4>::new();
        let numbers = (0..4).map(|at| {
            let cs = cs.namespace(|| format!("number {at}"));
            let value = self.preimage.map(|preimage| Scalar::from(preimage[at]));
            AllocatedNum::alloc(cs, || value.ok_or(SynthesisError::AssignmentMissing))
        });
        let mut numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        for hash in 0..3 {
            let cs = cs.namespace(|| format!("hash {hash}"));
            let digest = poseidon_hash_allocated(cs, numbers.clone(), &constants)?;
            numbers.remove(0);
            numbers.push(digest);
        }
        numbers[3].inputize(cs.namespace(|| "digest"))
    }
}

#[test]
fn hashes_of_neptunes_poseidon() {
    let preimage = Some([1, 2, 3, u64::MAX]);
    let circuit = |preimage| Any::Poseidon(Poseidon { preimage });
    agree(circuit(None), circuit(preimage));
}
