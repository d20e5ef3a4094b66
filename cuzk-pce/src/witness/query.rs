//! The scalars of a Groth16 query, chosen from a packed witness.
//!
//! A query ranges over some of the variables: those that stand in A, or in B. The chosen
//! values stay packed, so no value is widened on the way to an MSM. The values of a partition of
//! full size can be gigabytes, so all threads copy them, into memory of just their size.
//!
//! Invariant: scalar k of a query is the value of the k-th variable chosen,
//! inputs before auxiliaries; `bits` and `wide` are as in [`PackedWitness`].

use super::extend::fill_in_parallel;
use super::{PackedBuilder, PackedSlice, PackedWitness};
use crate::Density;
use cuzk_memory::{Checkpoint, Stopped};
use ff::PrimeField;
use rayon::prelude::*;

/// Words of a density whose values one thread copies at a time.
const PART_WORDS: usize = 1 << 10;

/// The scalars of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedQuery<S>(PackedWitness<S>);

impl<S: PrimeField> PackedQuery<S> {
    /// Returns the values of the public inputs of `witness` with these indices, then those
    /// of its auxiliary variables in `aux`. They are in the memory of the witness. If there
    /// is none left, this unwinds with [`NoMemory`](cuzk_memory::NoMemory). The threads of the
    /// current pool copy the values. Each passes `checkpoint` before every few thousand.
    ///
    /// # Errors
    /// [`Stopped`].
    ///
    /// # Panics
    /// If an index is not below the number of inputs, or `aux` is over more
    /// variables than there are.
    pub fn new(
        witness: &PackedWitness<S>,
        inputs: impl Iterator<Item = usize>,
        aux: &Density,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Self, Stopped> {
        let parts: Vec<&[u64]> = aux.words().chunks(PART_WORDS).collect();
        let inputs: Vec<S> = inputs.map(|index| witness.inputs[index]).collect();
        let chosen_of = |number: usize| chosen(witness, number * PART_WORDS, parts[number]);
        let lens: Vec<usize> = (0..parts.len())
            .into_par_iter()
            .map(|number| chosen_words(witness, number * PART_WORDS, parts[number]).sum())
            .collect();
        let mut query = PackedBuilder::with_capacity_in(
            witness.bits.allocator(),
            inputs.len() + aux.count(),
            inputs.len() + lens.iter().sum::<usize>(),
        );
        query.extend(&inputs);
        let mut before = query.wide_values.len();
        fill_in_parallel(&mut query.wide_values, &lens, chosen_of, checkpoint)?;
        for (number, part) in parts.iter().enumerate() {
            checkpoint.check()?;
            let words = (number * PART_WORDS, *part);
            before = append_chosen(&mut query, witness, words, before);
        }
        Ok(Self(query.into_witness()))
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

/// Appends the variables of `witness` that `masks` choose to a query, from word `start` on,
/// without the values of wide ones. Before these, `before` variables of the query are wide.
/// Returns how many are wide afterwards.
fn append_chosen<S: PrimeField>(
    query: &mut PackedBuilder<S>,
    witness: &PackedWitness<S>,
    (start, masks): (usize, &[u64]),
    mut before: usize,
) -> usize {
    for (at, &mask) in masks.iter().enumerate() {
        let (bits, wide) = (witness.bits[start + at], witness.wide[start + at]);
        // Variables are numbered with 32 bits.
        let rank = u32::try_from(before).unwrap_or(u32::MAX);
        let marks = (compress(bits, mask), compress(wide, mask));
        query.append_marks(marks, mask.count_ones() as usize, rank);
        before += (wide & mask).count_ones() as usize;
    }
    before
}

/// Returns how many wide variables each of `masks` chooses, from word `start` on.
fn chosen_words<S>(
    witness: &PackedWitness<S>,
    start: usize,
    masks: &[u64],
) -> impl Iterator<Item = usize> {
    let words = witness.wide[start..].iter().zip(masks);
    words.map(|(wide, mask)| (wide & mask).count_ones() as usize)
}

/// Returns the values of the wide variables that `masks` choose, from word `start` on.
fn chosen<S: PrimeField>(
    witness: &PackedWitness<S>,
    start: usize,
    masks: &[u64],
) -> impl Iterator<Item = S> {
    masks.iter().enumerate().flat_map(move |(at, &mask)| {
        let values = &witness.wide_values[witness.ranks[start + at] as usize..];
        let chosen = set_bits(witness.wide[start + at]).zip(values);
        let chosen = chosen.filter(move |(place, _)| mask >> place & 1 == 1);
        chosen.map(|(_, value)| *value)
    })
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
    use cuzk_memory::NEVER_STOP;
    use proptest::prelude::*;

    #[test]
    fn values_of_several_parts_are_in_order_and_a_query_can_be_stopped() {
        let len = 2 * PART_WORDS * 64 + 77;
        let value = |index: usize| Scalar::from(index as u64 % 5);
        let plain = [Scalar::from(1)].into_iter().chain((0..len).map(value));
        let witness = PackedBuilder::pack(&Witness::new(plain.collect(), 1).unwrap());
        let mut density = Density::new(len);
        density.insert_every(3, len / 2, 2);
        let query = PackedQuery::new(&witness, 0..1, &density, &NEVER_STOP).unwrap();
        let chosen = density.iter().map(value);
        let expected = [Scalar::from(1)].into_iter().chain(chosen);
        assert!(expected.eq((0..query.0.num_aux()).map(|index| query.0.aux(index))));
        let stopped = PackedQuery::new(&witness, 0..1, &density, &Checkpoint::asking(|| true));
        assert!(stopped.is_err());
    }

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
            let query =
                PackedQuery::new(&witness, inputs.iter().copied(), &density, &NEVER_STOP).unwrap();
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
