//! The bytes of points that proofs on the CPU read from the parameters.
//!
//! Not a measurement: what a file system reads ahead, or has in memory, is not counted. The
//! points of the multiples are not counted either.

use cuzk_pce::Density;

use crate::circuit::Circuit;

/// The bytes that Linux reads around a page that is not in memory, unless it is told
/// otherwise.
const READ_AROUND_BYTES: usize = 128 << 10;

const G1_BYTES: usize = 96;
const G2_BYTES: usize = 192;

/// The bytes of points that the proofs of partitions read, if none of them stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointsRead {
    /// For each pass over the bits of several partitions.
    pub for_pass_bytes: u64,
    /// For each partition.
    pub for_partition_bytes: u64,
}

impl PointsRead {
    /// Returns what partitions of a circuit read of which each is proved without the others:
    /// the points of H, L, A and B in G2.
    #[must_use]
    pub fn alone(circuit: &Circuit) -> Self {
        let [bits, h] = [bits_bytes(circuit), h_bytes(circuit)];
        Self {
            for_pass_bytes: 0,
            for_partition_bytes: bits + h,
        }
    }

    /// Returns what partitions read whose bits are added up together. The pass reads the points
    /// of L, A and B in G2. Each partition reads those of H, and those of its variables that
    /// are no bits, with what lies around them.
    #[must_use]
    pub fn in_batch(circuit: &Circuit) -> Self {
        Self {
            for_pass_bytes: bits_bytes(circuit),
            for_partition_bytes: h_bytes(circuit) + around_wide_bytes(circuit),
        }
    }

    /// Returns the bytes for so many partitions with one pass.
    #[must_use]
    pub fn of_partitions(self, partitions: u64) -> u64 {
        self.for_pass_bytes + partitions * self.for_partition_bytes
    }
}

fn h_bytes(circuit: &Circuit) -> u64 {
    (circuit.query_lengths().h * G1_BYTES) as u64
}

/// Returns the bytes of the points over which bits are added up.
fn bits_bytes(circuit: &Circuit) -> u64 {
    let lengths = circuit.query_lengths();
    ((lengths.l + lengths.a) * G1_BYTES + lengths.b * G2_BYTES) as u64
}

/// Returns the bytes of the parts of L, A and B in G2 in which a point lies whose variable is
/// no bit.
fn around_wide_bytes(circuit: &Circuit) -> u64 {
    let program = circuit.program();
    let densities = circuit.densities();
    let bits = program.boolean_columns();
    let all = (0..program.num_aux()).filter(|index| !bits.contains(*index));
    let (in_a, in_b) = (program.num_inputs(), densities.b_input.count());
    let a = (0..in_a).chain(wide_places(in_a, &densities.a_aux, &bits));
    let b = (0..in_b).chain(wide_places(in_b, &densities.b_aux, &bits));
    let parts = parts_of(all, G1_BYTES) + parts_of(a, G1_BYTES) + parts_of(b, G2_BYTES);
    (parts * READ_AROUND_BYTES) as u64
}

/// Returns the places in a query of the variables that are no bits, ascending.
fn wide_places<'a>(
    inputs: usize,
    aux: &'a Density,
    bits: &'a Density,
) -> impl Iterator<Item = usize> + 'a {
    let in_order = aux.iter().enumerate();
    let wide = in_order.filter(|(_, index)| !bits.contains(*index));
    wide.map(move |(place, _)| inputs + place)
}

/// Returns the number of parts in which one of these places lies. They ascend.
fn parts_of(places: impl Iterator<Item = usize>, point_bytes: usize) -> usize {
    let mut next = 0;
    let mut count = 0;
    for place in places {
        let first = place * point_bytes / READ_AROUND_BYTES;
        let last = ((place + 1) * point_bytes - 1) / READ_AROUND_BYTES;
        let new = (last + 1).saturating_sub(first.max(next));
        count += new;
        next = next.max(last + 1);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_once() {
        let in_part = READ_AROUND_BYTES / G1_BYTES;
        let parts = |places: &[usize]| parts_of(places.iter().copied(), G1_BYTES);
        assert_eq!(parts(&[]), 0);
        assert_eq!(parts(&[0, 1, 2]), 1);
        // The last point of the first part ends in the second.
        assert_eq!(parts(&[in_part]), 2);
        assert_eq!(parts(&[in_part, in_part + 1]), 2);
        assert_eq!(parts(&[0, 10 * in_part]), 2);
    }
}
