//! A witness in as many bits as it has: zeros and ones as bits, everything
//! else at full width.
//!
//! Of a real PoRep witness 98 in 100 values are 0 or 1. So this form is some twenty times
//! smaller than the plain one, and a run of bits is read with two loads.
//!
//! Invariant: an auxiliary variable is *wide* exactly if it is neither 0 nor
//! 1. Wide values stand in order, and `ranks` counts those before each word.

use super::{Columns, Witness};
use cuzk_memory::Array;
use ff::PrimeField;

/// The values of every variable, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedWitness<S> {
    pub(super) inputs: Vec<S>,
    pub(super) num_aux: usize,
    /// Bit i of word i / 64 is auxiliary i, or 0 if that is wide. There is one
    /// word more than needed, so that 64 bits from anywhere are in two words.
    pub(super) bits: Array<u64>,
    /// Bit i of word i / 64: auxiliary i is wide.
    pub(super) wide: Array<u64>,
    /// By word: wide auxiliaries before it.
    pub(super) ranks: Array<u32>,
    pub(super) wide_values: Array<S>,
}

/// Values in order: bit i of word i / 64 of `bits`, or the next of `values`
/// where `wide` has a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedSlice<'a, S> {
    /// Number of values.
    pub len: usize,
    /// The values that are 1.
    pub bits: &'a [u64],
    /// The values that are neither 0 nor 1.
    pub wide: &'a [u64],
    /// Those values.
    pub values: &'a [S],
}

impl<S: PrimeField> PackedWitness<S> {
    /// Returns all auxiliary variables: the scalars of the query L.
    pub fn aux_slice(&self) -> PackedSlice<'_, S> {
        PackedSlice {
            len: self.num_aux,
            bits: &self.bits,
            wide: &self.wide,
            values: &self.wide_values,
        }
    }

    /// The plain form, twenty times as large or so.
    pub fn to_plain(&self) -> Witness<S> {
        let aux = (0..self.num_aux).map(|index| self.aux(index));
        let values = self.inputs.iter().copied().chain(aux).collect();
        Witness {
            values,
            num_inputs: self.inputs.len(),
        }
    }

    /// Public inputs, ONE first.
    pub fn inputs(&self) -> &[S] {
        &self.inputs
    }

    /// By word of the bitmaps: wide auxiliary variables before it.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// Number of auxiliary variables that are neither 0 nor 1.
    pub fn num_wide(&self) -> usize {
        self.wide_values.len()
    }

    /// Bytes held.
    pub fn resident_bytes(&self) -> usize {
        size_of_val(&self.inputs[..])
            + size_of_val(&self.bits[..])
            + size_of_val(&self.wide[..])
            + size_of_val(&self.ranks[..])
            + size_of_val(&self.wide_values[..])
    }
}

/// The 64 bits from `start` on.
#[inline]
fn window(words: &[u64], start: usize) -> u64 {
    let (at, shift) = (start / 64, start % 64);
    let low = words[at] >> shift;
    // Shifting by 64 is not shifting: in two steps it is.
    low | words[at + 1] << 1 << (63 - shift)
}

impl<S: PrimeField> Columns<S> for PackedWitness<S> {
    fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    fn num_aux(&self) -> usize {
        self.num_aux
    }

    #[inline]
    fn input(&self, index: usize) -> S {
        self.inputs[index]
    }

    #[inline]
    fn aux(&self, index: usize) -> S {
        let (at, shift) = (index / 64, index % 64);
        if self.wide[at] >> shift & 1 == 1 {
            let before = self.wide[at] & ((1 << shift) - 1);
            self.wide_values[(self.ranks[at] + before.count_ones()) as usize]
        } else if self.bits[at] >> shift & 1 == 1 {
            S::ONE
        } else {
            S::ZERO
        }
    }

    #[inline]
    fn bits(&self, start: usize, length: usize) -> Option<u64> {
        let mask = u64::MAX >> (64 - length);
        if window(&self.wide, start) & mask != 0 {
            return None;
        }
        Some(window(&self.bits, start) & mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::witness::PackedBuilder;
    use blstrs::Scalar;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_what_was_packed(
            values in prop::collection::vec(prop_oneof![20 => 0..2u64, 1 => 2..9u64], 0..300),
            start in any::<prop::sample::Index>(),
            length in 1..=64usize,
        ) {
            let values: Vec<_> = [1, 7].into_iter().chain(values).map(Scalar::from).collect();
            let plain = Witness::new(values, 2).unwrap();
            let packed = PackedBuilder::pack(&plain);
            prop_assert_eq!(&packed.to_plain(), &plain);
            prop_assert_eq!(packed.num_inputs(), 2);
            prop_assert_eq!(packed.num_aux(), Columns::num_aux(&plain));
            prop_assert_eq!(packed.input(1), Scalar::from(7));
            for (i, value) in plain.aux().iter().enumerate() {
                prop_assert_eq!(packed.aux(i), *value);
            }
            if length <= packed.num_aux() {
                let start = start.index(packed.num_aux() - length + 1);
                prop_assert_eq!(packed.bits(start, length), plain.bits(start, length));
            }
        }
    }
}
