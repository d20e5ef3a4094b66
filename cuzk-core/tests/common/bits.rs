//! A circuit of many bits, under the name of a real one: for tests of what a circuit must
//! have many bits for.

use std::path::Path;
use std::sync::Arc;

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError};
use blstrs::Scalar;
use cuzk_core::circuits;
use cuzk_filecoin::{CircuitId, Error, ProofKind, Statement, WitnessContext, Writer};
use cuzk_groth16::params::{GenerateOptions, ParamCache};
use cuzk_pce::{PackedWitness, program};

use super::tiny;

const BITS: u64 = 40_000;

/// That so many of the bits are set.
#[derive(Clone, Copy)]
struct Bits {
    seed: u64,
    lie: u64,
}

impl Bits {
    fn bit(self, index: u64) -> u64 {
        let mixed = (index ^ self.seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 63
    }

    fn count(self) -> Scalar {
        Scalar::from((0..BITS).map(|index| self.bit(index)).sum::<u64>() + self.lie)
    }
}

impl Circuit<Scalar> for Bits {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let count = cs.alloc_input(|| "count", || Ok(self.count()))?;
        let mut all = LinearCombination::<Scalar>::zero();
        for index in 0..BITS {
            let value = Scalar::from(self.bit(index));
            let bit = cs.alloc(|| format!("bit {index}"), || Ok(value))?;
            let not = |lc| lc + CS::one() - bit;
            cs.enforce(|| format!("is bit {index}"), |lc| lc + bit, not, |lc| lc);
            all = all + bit;
        }
        cs.enforce(|| "counted", |_| all, |lc| lc + CS::one(), |lc| lc + count);
        Ok(())
    }
}

/// Puts the circuit, under the name of a kind, and its parameters into a folder.
pub(crate) fn generate(kind: ProofKind, folder: &Path) {
    let blank = Bits { seed: 0, lie: 0 };
    let program = cuzk_pce::compile(blank).unwrap();
    let id = tiny::id(kind);
    let path = circuits::cache_path(id, folder).unwrap();
    program::write(&path, &program, &id.to_string()).unwrap();
    let files = circuits::parameter_files(id).unwrap();
    ParamCache::new(folder)
        .ensure_generated(&files, &program, GenerateOptions::default(), |_, _| ())
        .unwrap();
}

/// A job of so many partitions. Jobs of another seed have other bits.
#[derive(Clone, Copy)]
pub(crate) struct BitsJob {
    pub(crate) kind: ProofKind,
    pub(crate) partitions: usize,
    pub(crate) seed: u64,
    /// True if the statement of its first partition is false.
    pub(crate) is_false: bool,
}

pub(crate) fn job(kind: ProofKind, partitions: usize, seed: u64) -> Arc<dyn Statement> {
    Arc::new(BitsJob {
        kind,
        partitions,
        seed,
        is_false: false,
    })
}

impl BitsJob {
    fn bits(&self, partition: usize) -> Bits {
        Bits {
            seed: self.seed + partition as u64,
            lie: u64::from(self.is_false && partition == 0),
        }
    }
}

impl Statement for BitsJob {
    fn circuit(&self) -> CircuitId {
        tiny::id(self.kind)
    }

    fn partitions(&self) -> usize {
        self.partitions
    }

    fn writer(&self) -> Writer {
        Writer::Circuit
    }

    fn witness_in(
        &self,
        partition: usize,
        _: WitnessContext<'_>,
    ) -> Result<PackedWitness<Scalar>, Error> {
        Ok(cuzk_pce::packed_witness(self.bits(partition)).unwrap())
    }

    fn public_inputs(&self, partition: usize) -> Result<Vec<Scalar>, Error> {
        Ok(vec![self.bits(partition).count()])
    }

    fn partition_request(&self, partition: usize) -> Result<Vec<u8>, Error> {
        Ok(partition.to_le_bytes().to_vec())
    }
}
