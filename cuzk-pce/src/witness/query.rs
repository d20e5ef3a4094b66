//! The scalars of a Groth16 query, chosen from a packed witness.
//!
//! A query ranges over some of the variables: those that stand in A, or in B. The chosen
//! values stay packed, so no value is widened on the way to an MSM.
//!
//! Invariant: scalar k of a query is the value of the k-th variable chosen,
//! inputs before auxiliaries; `bits` and `wide` are as in [`PackedWitness`].

use super::{PackedBuilder, PackedSlice, PackedWitness};
use crate::Density;
use ff::PrimeField;

/// The scalars of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedQuery<S>(PackedWitness<S>);

impl<S: PrimeField> PackedQuery<S> {
    /// Returns the values of the public inputs of `witness` with these indices, then those
    /// of its auxiliary variables in `aux`. They are in the memory of the witness. If there
    /// is none left, this unwinds with [`NoMemory`](cuzk_memory::NoMemory).
    ///
    /// # Panics
    /// If an index is not below the number of inputs, or `aux` is over more
    /// variables than there are.
    pub fn new(
        witness: &PackedWitness<S>,
        inputs: impl Iterator<Item = usize>,
        aux: &Density,
    ) -> Self {
        let memory = witness.bits.allocator();
        let mut query =
            PackedBuilder::with_capacity_in(memory, aux.count(), witness.wide_values.len());
        for index in inputs {
            query.push(witness.inputs[index]);
        }
        for (at, &mask) in aux.words().iter().enumerate() {
            let (bits, wide) = (witness.bits[at], witness.wide[at]);
            let values = &witness.wide_values[witness.ranks[at] as usize..];
            let chosen = set_bits(wide)
                .zip(values)
                .filter(|(place, _)| mask >> place & 1 == 1);
            query.append_word(
                (compress(bits, mask), compress(wide, mask)),
                mask.count_ones() as usize,
                chosen.map(|(_, value)| *value),
            );
        }
        Self(query.into_witness())
    }

    /// Returns the bytes held.
    pub fn resident_bytes(&self) -> usize {
        self.0.resident_bytes()
    }
}

/// Writes the bits of [`PackedQuery::new`] into `out`, without the other scalars. Bit i of
/// word i / 64 is set if scalar i of the query is 1. `out` has a word for each 64 scalars. Bits
/// past its end are dropped. A public input or a variable that does not exist is 0.
pub fn write_query_bits<S: PrimeField>(
    witness: &PackedWitness<S>,
    inputs: impl Iterator<Item = usize>,
    aux: &Density,
    out: &mut [u64],
) {
    out.fill(0);
    let mut bits = BitWriter { out, len: 0 };
    for index in inputs {
        let is_one = witness.inputs.get(index) == Some(&S::ONE);
        bits.append(is_one.into(), 1);
    }
    for (word, &mask) in witness.bits.iter().zip(aux.words()) {
        bits.append(compress(*word, mask), mask.count_ones() as usize);
    }
}

/// Bits that are written one after the other.
struct BitWriter<'a> {
    /// Zero from bit `len` on.
    out: &'a mut [u64],
    len: usize,
}

impl BitWriter<'_> {
    /// Appends the lowest `count` bits of `word`, at most 64. The others are zero.
    fn append(&mut self, word: u64, count: usize) {
        let (at, shift) = (self.len / 64, self.len % 64);
        if let Some(low) = self.out.get_mut(at) {
            *low |= word << shift;
        }
        if shift + count > 64
            && let Some(high) = self.out.get_mut(at + 1)
        {
            *high |= word >> (64 - shift);
        }
        self.len += count;
    }
}

impl<S: PrimeField> PackedQuery<S> {
    /// Returns the scalars.
    pub fn as_slice(&self) -> PackedSlice<'_, S> {
        self.0.aux_slice()
    }
}

fn set_bits(word: u64) -> impl Iterator<Item = u32> {
    let mut left = word;
    std::iter::from_fn(move || {
        let bit = left.trailing_zeros();
        left &= left.checked_sub(1)?;
        Some(bit)
    })
}

/// The bits of `word` where `mask` has one, moved together at the low end.
fn compress(word: u64, mask: u64) -> u64 {
    if mask == u64::MAX {
        return word;
    }
    let (mut left, mut place, mut result) = (mask, 0, 0);
    while left != 0 {
        // A run of chosen bits at a time: masks are mostly long runs.
        let start = left.trailing_zeros();
        let length = (left >> start).trailing_ones();
        let run = u64::MAX >> (64 - length);
        result |= (word >> start & run) << place;
        place += length;
        left &= !(run << start);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, Witness};
    use blstrs::Scalar;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn compresses_bit_by_bit(word: u64, mask: u64) {
            let chosen = set_bits(mask).enumerate();
            let expected = chosen.fold(0, |sum, (k, place)| sum | (word >> place & 1) << k);
            prop_assert_eq!(compress(word, mask), expected);
        }

        #[test]
        fn chooses_the_values_of_the_variables(
            values in prop::collection::vec((0..4u64, any::<bool>()), 0..400),
            none_before in 0..200usize,
            inputs in prop::collection::vec(0..3usize, 0..5),
        ) {
            let aux = values.iter().map(|(value, _)| Scalar::from(*value));
            let plain: Vec<_> = [1, 5, 6].map(Scalar::from).into_iter().chain(aux).collect();
            let witness = PackedBuilder::pack(&Witness::new(plain, 3).unwrap());
            let mut density = Density::new(values.len());
            for (index, (_, chosen)) in values.iter().enumerate().skip(none_before) {
                if *chosen {
                    density.insert(index);
                }
            }
            let query = PackedQuery::new(&witness, inputs.iter().copied(), &density);
            let expected: Vec<_> = inputs
                .iter()
                .map(|&index| witness.input(index))
                .chain(density.iter().map(|index| witness.aux(index)))
                .collect();
            let got: Vec<_> = (0..query.0.num_aux()).map(|index| query.0.aux(index)).collect();
            prop_assert_eq!(got, expected);
            let slice = query.as_slice();
            let wide: u32 = slice.wide.iter().map(|word| word.count_ones()).sum();
            prop_assert_eq!(wide as usize, slice.values.len());
            // Its bits alone are the same, whatever was in their place.
            let mut bits = vec![u64::MAX; slice.len.div_ceil(64)];
            write_query_bits(&witness, inputs.iter().copied(), &density, &mut bits);
            prop_assert_eq!(&bits[..], &slice.bits[..bits.len()]);
            let short = bits.len() / 2;
            let mut first = vec![u64::MAX; short];
            write_query_bits(&witness, inputs.iter().copied(), &density, &mut first);
            prop_assert_eq!(&first[..], &bits[..short]);
        }
    }
}
