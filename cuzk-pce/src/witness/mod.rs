//! A witness: the values of every variable of one circuit instance.
//!
//! Invariant: values are contiguous, `[inputs | aux]`, and the first input is
//! the constant ONE. That says nothing about satisfying a circuit: see
//! [`crate::check`].

mod builder;
mod columns;
mod cs;
mod extend;
mod packed;
mod packed_cs;
mod query;

pub use builder::PackedBuilder;
pub use columns::Columns;
pub use cs::WitnessCs;
pub use packed::{PackedSlice, PackedWitness};
pub use packed_cs::PackedWitnessCs;
pub use query::{PackedQuery, write_query_bits};

use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use ff::PrimeField;

/// Why there is no witness.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// The circuit could not compute its values.
    #[error("the circuit's values could not be computed: {0}")]
    Synthesis(#[from] SynthesisError),
    /// More public inputs were announced than there are values.
    #[error("witness: {num_inputs} public inputs announced, but only {values} values given")]
    TooFewValues {
        /// Public inputs announced.
        num_inputs: usize,
        /// Values given.
        values: usize,
    },
    /// The first public input must be the constant ONE.
    #[error("witness: the first public input must be the constant ONE")]
    NotOne,
}

/// The values of every variable, `[inputs | aux]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness<S> {
    values: Vec<S>,
    num_inputs: usize,
}

impl<S: PrimeField> Witness<S> {
    /// Takes `[inputs | aux]`, of which the first `num_inputs` are public.
    ///
    /// # Errors
    /// [`WitnessError::TooFewValues`] or [`WitnessError::NotOne`].
    pub fn new(values: Vec<S>, num_inputs: usize) -> Result<Self, WitnessError> {
        if num_inputs > values.len() {
            return Err(WitnessError::TooFewValues {
                num_inputs,
                values: values.len(),
            });
        }
        if num_inputs == 0 || values.first() != Some(&S::ONE) {
            return Err(WitnessError::NotOne);
        }
        Ok(Witness { values, num_inputs })
    }
}

impl<S> Witness<S> {
    /// All values, inputs first.
    pub fn values(&self) -> &[S] {
        &self.values
    }

    /// Number of public inputs, ONE among them.
    pub fn num_inputs(&self) -> usize {
        self.num_inputs
    }

    /// Public inputs, ONE first.
    pub fn inputs(&self) -> &[S] {
        &self.values[..self.num_inputs]
    }

    /// Auxiliary variables, in the order of their allocation.
    pub fn aux(&self) -> &[S] {
        &self.values[self.num_inputs..]
    }

    /// All values, inputs first, and the number of inputs.
    pub fn into_parts(self) -> (Vec<S>, usize) {
        (self.values, self.num_inputs)
    }

    /// Bytes held.
    pub fn resident_bytes(&self) -> usize {
        size_of_val(&self.values[..])
    }
}

/// Computes the values of `circuit`; its rows are not even built.
///
/// # Errors
/// [`WitnessError::Synthesis`] if the circuit has no complete witness.
pub fn witness<S: PrimeField, C: Circuit<S>>(circuit: C) -> Result<Witness<S>, WitnessError> {
    let mut cs = WitnessCs::new();
    cs.alloc_input(|| "ONE", || Ok(S::ONE))?;
    circuit.synthesize(&mut cs)?;
    cs.finish()
}

/// As [`witness()`], packed value by value.
///
/// # Errors
/// As [`witness()`].
pub fn packed_witness<S: PrimeField, C: Circuit<S>>(
    circuit: C,
) -> Result<PackedWitness<S>, WitnessError> {
    let mut cs = PackedWitnessCs::new();
    cs.alloc_input(|| "ONE", || Ok(S::ONE))?;
    circuit.synthesize(&mut cs)?;
    cs.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record, testing::*};
    use bellperson::util_cs::test_cs::TestConstraintSystem;
    use blstrs::Scalar;
    use proptest::prelude::*;

    proptest! {
        /// Values stand where the recorded rows look for them.
        #[test]
        fn values_are_bellpersons_in_the_recorded_order(circuit in random_circuit()) {
            let mut theirs = TestConstraintSystem::new();
            circuit.clone().synthesize(&mut theirs).unwrap();
            let r1cs = record(circuit.blank()).unwrap();
            let ours = witness(circuit).unwrap();
            prop_assert_eq!(ours.inputs(), theirs.scalar_inputs());
            prop_assert_eq!(ours.aux(), theirs.scalar_aux());
            prop_assert_eq!(ours.num_inputs(), r1cs.num_inputs());
            prop_assert_eq!(ours.values().len(), r1cs.num_variables());
        }
    }

    #[test]
    fn a_blank_circuit_has_no_witness() {
        assert!(matches!(
            witness(RandomCircuit::squares(3).blank()),
            Err(WitnessError::Synthesis(SynthesisError::AssignmentMissing))
        ));
    }

    #[test]
    fn refuses_what_is_no_witness() {
        let values = |first: u64| vec![Scalar::from(first), Scalar::from(2)];
        assert!(Witness::new(values(1), 2).is_ok());
        assert!(matches!(
            Witness::new(values(1), 3),
            Err(WitnessError::TooFewValues {
                num_inputs: 3,
                values: 2
            })
        ));
        assert!(matches!(
            Witness::new(values(2), 1),
            Err(WitnessError::NotOne)
        ));
        assert!(matches!(
            Witness::new(values(1), 0),
            Err(WitnessError::NotOne)
        ));
    }
}
