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

/// What reading or compiling a circuit holds at most: 52 MB were measured for
/// the largest.
pub const READING_BYTES: u64 = 64 << 20;

const SCALAR_BYTES: u64 = size_of::<Scalar>() as u64;

/// A packed variable takes two bits, and a rank every 64 of them.
const PACKED_BITS: u64 = 3;

/// What proving a partition holds at once, in bytes: the vectors over the
/// domain, and the witness three times: as it is, and as the scalars of the A and
/// B queries.
#[must_use]
pub fn partition_bytes(circuit: &Circuit) -> u64 {
    let wide = circuit.program().num_variables() - circuit.num_boolean();
    let packed = circuit.program().num_aux() as u64 * PACKED_BITS / 8;
    buffer_bytes(circuit) + 3 * (packed + wide as u64 * SCALAR_BYTES) + SUMS_BYTES
}

/// What a partition holds once its device region is over, in bytes: the scalars
/// of the B query, and what the sum over them takes.
#[must_use]
pub fn finish_bytes(circuit: &Circuit) -> u64 {
    (partition_bytes(circuit) - buffer_bytes(circuit)) / 2
}

/// The vectors over the domain, in bytes: a, b and what the quotient needs beside
/// them.
#[must_use]
pub fn buffer_bytes(circuit: &Circuit) -> u64 {
    3 * circuit.domain_len() as u64 * SCALAR_BYTES
}

/// What a circuit holds for as long as it is kept, in bytes: its compiled form,
/// the densities, and its domain's table of twiddles.
#[must_use]
pub fn circuit_bytes(circuit: &Circuit) -> u64 {
    let densities = 3 * circuit.program().num_variables() / 8;
    let twiddles = circuit.domain_len() / 2 * size_of::<Scalar>();
    (circuit.program().resident_bytes() + densities + twiddles) as u64
}
