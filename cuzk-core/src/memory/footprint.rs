//! How much memory a partition needs, from its circuit's dimensions.
//!
//! Upper bounds of what the stages hold at once, so that it can be reserved
//! before it is allocated.

use blstrs::Scalar;

use crate::circuit::Circuit;

/// Buckets, recoded scalars and decoded points of the sums. An allowance and not
/// a measurement: the points are decoded in bounded chunks, so it does not grow
/// with the circuit as the rest does.
const SUMS_BYTES: u64 = 192 << 20;

/// What proving a partition holds at once, in bytes: the witness, the scalars of
/// the A and B queries gathered from it, and three vectors over the domain: a, b
/// and what the quotient needs beside them.
#[must_use]
pub fn partition_bytes(circuit: &Circuit) -> u64 {
    let scalar_bytes = size_of::<Scalar>() as u64;
    let lengths = circuit.query_lengths();
    let variables = circuit.program().num_variables();
    let domain = lengths.h + 1;
    let scalars = variables + lengths.a + lengths.b + 3 * domain;
    scalars as u64 * scalar_bytes + SUMS_BYTES
}

/// What a compiled circuit holds for as long as it is kept, in bytes.
#[must_use]
pub fn circuit_bytes(circuit: &Circuit) -> u64 {
    let densities = 3 * circuit.program().num_variables() / 8;
    (circuit.program().resident_bytes() + densities) as u64
}
