//! The identity of a circuit: a blake3 hash of its dimensions and every row.
//!
//! A row is hashed on its own first. Its auxiliary columns are relative to the row's
//! greatest one (its *base*), and its inputs are absolute. The fingerprint is the hash of
//! the rows' digests and bases in order, then of the dimensions. So a form that keeps each
//! distinct row once can hash each of them once, and compute an equal fingerprint.
//!
//! Invariant: two systems have the same fingerprint exactly if they have the
//! same dimensions and the same terms in the same order, collisions aside.
//! It does not depend on where in memory or on disk the rows came from.

use crate::csr::{CsrMatrix, Row};
use ff::PrimeField;
use std::fmt;

/// Separates these hashes from every other use of blake3; a change of what is
/// hashed changes it.
const ROW_CONTEXT: &str = "cuzk-pce r1cs row v1";
const CIRCUIT_CONTEXT: &str = "cuzk-pce r1cs v1";

/// A circuit's identity, 32 bytes, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// A fingerprint read from where it was stored.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Fingerprint(bytes)
    }

    /// The bytes to store.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the fingerprint of a system with these matrices, over `num_inputs` public
    /// inputs and `num_aux` auxiliary variables.
    pub(crate) fn of<S: PrimeField>(
        [a, b, c]: [&CsrMatrix<S>; 3],
        (num_inputs, num_aux): (usize, usize),
    ) -> Self {
        let mut circuit = CircuitHasher::new();
        let mut row_bytes = Vec::new();
        for ((a, b), c) in a.rows_from(0).zip(b.rows_from(0)).zip(c.rows_from(0)) {
            let rows = [a, b, c];
            let base = base_of(&rows, num_inputs);
            row_bytes.clear();
            for row in rows {
                let cols = row.cols.iter().map(|&col| col as usize);
                let terms =
                    cols.zip(row.values)
                        .map(|(col, value)| match col.checked_sub(num_inputs) {
                            None => (true, col as u64, *value),
                            Some(aux) => (false, base - aux as u64, *value),
                        });
                push_part(&mut row_bytes, terms);
            }
            circuit.push(&row_digest(&row_bytes), base);
        }
        circuit.finish(num_inputs, num_aux, a.rows())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The greatest auxiliary index in the row, 0 if it has none.
fn base_of<S>(rows: &[Row<'_, S>; 3], num_inputs: usize) -> u64 {
    rows.iter()
        .flat_map(|row| row.cols)
        .filter_map(|&col| (col as usize).checked_sub(num_inputs))
        .max()
        .unwrap_or(0) as u64
}

/// Appends one matrix's part of a row: the number of terms, then the terms. A term is a
/// flag for inputs, an index and a coefficient. Indices of inputs are absolute, and those
/// of auxiliaries count back from the base.
pub(crate) fn push_part<S: PrimeField>(
    bytes: &mut Vec<u8>,
    terms: impl ExactSizeIterator<Item = (bool, u64, S)>,
) {
    bytes.extend((terms.len() as u64).to_le_bytes());
    for (is_input, index, value) in terms {
        bytes.push(u8::from(is_input));
        bytes.extend(index.to_le_bytes());
        bytes.extend_from_slice(value.to_repr().as_ref());
    }
}

/// The digest of a row whose three parts have been appended.
pub(crate) fn row_digest(row_bytes: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new_derive_key(ROW_CONTEXT)
        .update(row_bytes)
        .finalize()
        .as_bytes()
}

/// Hashes rows as they come; the dimensions, known last, close it.
#[derive(Debug)]
pub(crate) struct CircuitHasher {
    hasher: blake3::Hasher,
    /// Small updates are slow: rows wait here for a block's worth.
    pending: Vec<u8>,
}

const PENDING_BYTES: usize = 1 << 16;

impl CircuitHasher {
    pub(crate) fn new() -> Self {
        CircuitHasher {
            hasher: blake3::Hasher::new_derive_key(CIRCUIT_CONTEXT),
            pending: Vec::with_capacity(PENDING_BYTES + 40),
        }
    }

    pub(crate) fn push(&mut self, digest: &[u8; 32], base: u64) {
        self.pending.extend_from_slice(digest);
        self.pending.extend(base.to_le_bytes());
        if self.pending.len() >= PENDING_BYTES {
            self.hasher.update(&self.pending);
            self.pending.clear();
        }
    }

    pub(crate) fn finish(mut self, num_inputs: usize, num_aux: usize, rows: usize) -> Fingerprint {
        for dimension in [num_inputs, num_aux, rows] {
            self.pending.extend((dimension as u64).to_le_bytes());
        }
        self.hasher.update(&self.pending);
        Fingerprint(*self.hasher.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::CsrMatrix;
    use crate::r1cs::R1cs;
    use blstrs::Scalar;

    /// One row `coeff · x_col · 1 = 0` over two inputs and `aux` auxiliaries.
    fn circuit(col: u32, coeff: u64, aux: u32) -> Fingerprint {
        let m = |cols: Vec<u32>, values| {
            CsrMatrix::new(
                2 + aux,
                vec![0, u32::try_from(cols.len()).unwrap()],
                cols,
                values,
            )
            .unwrap()
        };
        let a = m(vec![col], vec![Scalar::from(coeff)]);
        let b = m(vec![0], vec![Scalar::from(1)]);
        R1cs::new(a, b, m(vec![], vec![]), 2, aux)
            .unwrap()
            .fingerprint()
    }

    #[test]
    fn every_part_counts() {
        let base = circuit(3, 5, 4);
        assert_eq!(circuit(3, 5, 4), base);
        for other in [
            circuit(1, 5, 4),
            circuit(4, 5, 4),
            circuit(3, 6, 4),
            circuit(3, 5, 5),
        ] {
            assert_ne!(other, base);
        }
    }

    #[test]
    fn prints_as_hexadecimal() {
        let print = Fingerprint::from_bytes([0xab; 32]);
        assert_eq!(print.to_string(), "ab".repeat(32));
        assert_eq!(format!("{print:?}"), format!("Fingerprint({print})"));
    }
}
