//! How many points the queries of a circuit's parameters have.

use blstrs::Scalar;
use cuzk_pce::{Densities, Program};

/// How many points a circuit has in each query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLengths {
    /// Public inputs, with ONE.
    pub ic: usize,
    /// The domain's size less one.
    pub h: usize,
    /// Aux variables.
    pub l: usize,
    /// Public inputs, and aux variables in A.
    pub a: usize,
    /// Variables in B, for both of its queries.
    pub b: usize,
}

impl QueryLengths {
    /// The lengths for a circuit, whose rows are completed by one of the form
    /// `input · 0 = 0` for each public input.
    #[must_use]
    pub fn of(circuit: &Program<Scalar>, densities: &Densities) -> Self {
        let rows = circuit.rows() + circuit.num_inputs();
        Self {
            ic: circuit.num_inputs(),
            h: rows.next_power_of_two() - 1,
            l: circuit.num_aux(),
            a: circuit.num_inputs() + densities.a_aux.count(),
            b: densities.b_input.count() + densities.b_aux.count(),
        }
    }
}
