//! How an evaluation reads a witness, whatever form it has.

use super::Witness;
use ff::PrimeField;

/// The values of every variable, read one by one or as runs of bits.
///
/// Indices are below the counts; auxiliaries are numbered from 0.
pub trait Columns<S>: Sync {
    /// Number of public inputs, ONE among them.
    fn num_inputs(&self) -> usize;

    /// Number of auxiliary variables.
    fn num_aux(&self) -> usize;

    /// Value of a public input.
    fn input(&self, index: usize) -> S;

    /// Value of an auxiliary variable.
    fn aux(&self, index: usize) -> S;

    /// The values of `length` auxiliaries from `start` on as bits, the first
    /// the lowest, if all of them are 0 or 1. `length` is 1 to 64.
    fn bits(&self, start: usize, length: usize) -> Option<u64>;
}

impl<S: PrimeField> Columns<S> for Witness<S> {
    fn num_inputs(&self) -> usize {
        Witness::num_inputs(self)
    }

    fn num_aux(&self) -> usize {
        self.aux().len()
    }

    #[inline]
    fn input(&self, index: usize) -> S {
        self.inputs()[index]
    }

    #[inline]
    fn aux(&self, index: usize) -> S {
        self.aux()[index]
    }

    #[inline]
    fn bits(&self, start: usize, length: usize) -> Option<u64> {
        let mut bits = 0;
        for (k, value) in self.aux()[start..start + length].iter().enumerate() {
            if *value == S::ONE {
                bits |= 1 << k;
            } else if *value != S::ZERO {
                return None;
            }
        }
        Some(bits)
    }
}
