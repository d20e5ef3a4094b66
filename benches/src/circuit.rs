//! A circuit of the shape that storage proofs have: SHA-256, bit by bit.

use bellperson::{
    Circuit, ConstraintSystem, SynthesisError,
    gadgets::{
        boolean::{AllocatedBit, Boolean},
        sha256::sha256,
    },
};
use ff::PrimeField;

/// Independent SHA-256 hashes of 64 bytes, some 45,000 rows each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hashes {
    /// How many.
    pub count: usize,
    /// True if values are unknown.
    pub blank: bool,
}

impl<S: PrimeField> Circuit<S> for Hashes {
    fn synthesize<CS: ConstraintSystem<S>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        for hash in 0..self.count {
            let mut cs = cs.namespace(|| format!("hash {hash}"));
            let preimage = (0..512usize)
                .map(|bit| {
                    let value = (!self.blank).then_some((bit * 7 + hash) % 3 == 0);
                    let name = || format!("bit {bit}");
                    AllocatedBit::alloc(cs.namespace(name), value).map(Boolean::from)
                })
                .collect::<Result<Vec<_>, _>>()?;
            sha256(cs.namespace(|| "sha256"), &preimage)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use cuzk_pce::{cell::check_circuit, check, record, witness};
    use ff::Field;

    #[test]
    fn is_satisfied_and_mostly_bits() {
        let circuit = Hashes {
            count: 2,
            blank: false,
        };
        let blank = Hashes {
            blank: true,
            ..circuit
        };
        let r1cs = record::<Scalar, _>(blank).unwrap();
        let witness = witness::<Scalar, _>(circuit).unwrap();
        assert_eq!(check(&r1cs, &witness), Ok(None));
        let bit = |value: &&Scalar| **value == Scalar::ZERO || **value == Scalar::ONE;
        assert!(witness.aux().iter().filter(bit).count() * 100 > witness.aux().len() * 98);
        assert!((80_000..100_000).contains(&r1cs.rows()), "{}", r1cs.rows());
    }

    /// The memory of cells says the same of a real gadget as recorded rows.
    #[test]
    fn its_densities_are_the_recorded_ones() {
        let circuit = Hashes {
            count: 1,
            blank: false,
        };
        let checked = check_circuit::<Scalar, _>(circuit).unwrap();
        assert_eq!(checked.violation, None);
        let blank = Hashes {
            blank: true,
            ..circuit
        };
        let r1cs = record::<Scalar, _>(blank).unwrap();
        assert_eq!(checked.densities, r1cs.densities());
        assert_eq!(checked.rows, r1cs.rows());
    }
}
