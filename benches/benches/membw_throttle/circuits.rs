//! The circuit that is evaluated, and the partition whose witnesses are written.

use benches::{Result, circuit::Hashes, porep::Porep};
use blstrs::Scalar;
use cuzk_pce::{PackedBuilder, PackedWitness, Program, R1cs, Witness, compile, record, witness};

/// A circuit and its witness, each in both forms, and the inputs of witnesses.
pub(crate) struct Circuits {
    pub(crate) r1cs: R1cs<Scalar>,
    pub(crate) witness: Witness<Scalar>,
    pub(crate) program: Program<Scalar>,
    pub(crate) packed: PackedWitness<Scalar>,
    pub(crate) porep: Porep,
}

impl Circuits {
    /// Makes a circuit of so many hashes, and a partition of so many challenges.
    pub(crate) fn new(hashes: usize, challenges: usize) -> Result<Self> {
        let circuit = |blank| Hashes {
            count: hashes,
            blank,
        };
        let witness = witness(circuit(false))?;
        Ok(Circuits {
            r1cs: record(circuit(true))?,
            program: compile(circuit(true))?,
            packed: PackedBuilder::pack(&witness),
            witness,
            porep: Porep::new(challenges)?,
        })
    }
}
