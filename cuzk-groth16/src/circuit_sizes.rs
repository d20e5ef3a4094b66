//! The sizes of a circuit from which the memory of its partitions follows.
//!
//! Not the circuit, whose rows are walked through for seconds to count its variables. The file of
//! a compiled circuit announces the counts, so they are known in milliseconds. The invariant: a
//! proof is charged by counts of the rows, whatever a file announces.

use blstrs::Scalar;
use cuzk_pce::{Program, VariableCounts};

use crate::query_lengths::QueryLengths;

/// How many auxiliary variables are not proved to be bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wide {
    /// Of all.
    pub all: usize,
    /// Of those in A.
    pub in_a: usize,
    /// Of those in B.
    pub in_b: usize,
}

impl Wide {
    /// Returns the counts of a circuit with these variables.
    pub(crate) fn of(variables: &VariableCounts) -> Self {
        Self {
            all: variables.wide as usize,
            in_a: variables.wide_in_a as usize,
            in_b: variables.wide_in_b as usize,
        }
    }
}

/// The sizes of a circuit, in variables and rows where the name of a field says no unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitSizes {
    /// Public inputs, ONE among them.
    pub num_inputs: usize,
    /// Auxiliary variables.
    pub num_aux: usize,
    /// Constraints.
    pub rows: usize,
    /// The variables of each sort.
    pub variables: VariableCounts,
    /// The compiled form, as it is in memory or mapped, in bytes.
    pub resident_bytes: usize,
    /// See [`Circuit::written_in_parts`](crate::Circuit::written_in_parts).
    part_variables: usize,
}

impl CircuitSizes {
    /// Returns the sizes of a program whose rows have these variables. A writer of its
    /// witnesses has at most so many variables a thread apart.
    pub(crate) fn of(
        program: &Program<Scalar>,
        variables: VariableCounts,
        part_variables: usize,
    ) -> Self {
        Self {
            num_inputs: program.num_inputs(),
            num_aux: program.num_aux(),
            rows: program.rows(),
            variables,
            resident_bytes: program.resident_bytes(),
            part_variables,
        }
    }

    /// Returns how many auxiliary variables of a witness are apart at once while so many
    /// threads write it.
    #[must_use]
    pub fn variables_apart(&self, threads: usize) -> usize {
        self.part_variables
            .saturating_mul(threads)
            .min(self.num_aux)
    }

    /// Returns the size of the domain of a proof's polynomials. That is the constraints
    /// and one row more for each public input, rounded up to a power of two.
    #[must_use]
    pub fn domain_len(&self) -> usize {
        (self.rows + self.num_inputs).next_power_of_two()
    }

    /// Returns how many auxiliary variables the rows do not prove to be bits.
    #[must_use]
    pub fn wide(&self) -> Wide {
        Wide::of(&self.variables)
    }

    /// Returns the number of points of each query of the circuit's parameters.
    #[must_use]
    pub fn query_lengths(&self) -> QueryLengths {
        let VariableCounts {
            a_aux,
            b_inputs,
            b_aux,
            ..
        } = self.variables;
        QueryLengths {
            ic: self.num_inputs,
            h: self.domain_len() - 1,
            l: self.num_aux,
            a: self.num_inputs + a_aux as usize,
            b: b_inputs as usize + b_aux as usize,
        }
    }
}
