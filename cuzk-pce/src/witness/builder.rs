//! A packed witness while it is being written, variable by variable.
//!
//! A caller adds a word of bits, or one value, which is kept as a bit if it is one. Parts
//! that were built apart are joined in order, so that they can be built in parallel.
//!
//! Not checked against any circuit: the order of the variables is the
//! writer's promise. Invariant: `bits`, `wide` and `ranks` have a word for
//! every 64 variables begun, with nothing set past the last variable.

use super::extend::extend_in_parallel;
use super::{PackedWitness, Witness, WitnessError};
use cuzk_memory::{Array, ArrayMemory, Checkpoint, Stopped};
use ff::PrimeField;

/// Collects the values of a witness, in the order of allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBuilder<S> {
    inputs: Vec<S>,
    num_aux: usize,
    bits: Array<u64>,
    wide: Array<u64>,
    ranks: Array<u32>,
    pub(super) wide_values: Array<S>,
}

impl<S: PrimeField> Default for PackedBuilder<S> {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl<S: PrimeField> PackedBuilder<S> {
    /// An empty one on the heap, with room for `num_aux` auxiliary variables of
    /// which `num_wide` are neither 0 nor 1. It grows when there are more.
    pub fn with_capacity(num_aux: usize, num_wide: usize) -> Self {
        Self::with_capacity_in(&ArrayMemory::HEAP, num_aux, num_wide)
    }

    /// Returns an empty builder as [`Self::with_capacity`], in `memory`. Its witness, and
    /// the queries of that witness, are in `memory` too.
    pub fn with_capacity_in(memory: &ArrayMemory, num_aux: usize, num_wide: usize) -> Self {
        let words = num_aux / 64 + 2;
        PackedBuilder {
            inputs: Vec::new(),
            num_aux: 0,
            bits: Array::with_capacity_in(words, memory.clone()),
            wide: Array::with_capacity_in(words, memory.clone()),
            ranks: Array::with_capacity_in(words, memory.clone()),
            wide_values: Array::with_capacity_in(num_wide, memory.clone()),
        }
    }

    /// Packs a plain witness, on the heap.
    pub fn pack(witness: &Witness<S>) -> PackedWitness<S> {
        let mut builder = Self::with_capacity(witness.aux().len(), 0);
        for input in witness.inputs() {
            builder.push_input(*input);
        }
        for value in witness.aux() {
            builder.push(*value);
        }
        builder.into_witness()
    }

    /// Auxiliary variables so far.
    pub fn num_aux(&self) -> usize {
        self.num_aux
    }

    /// The public inputs so far.
    pub fn inputs(&self) -> &[S] {
        &self.inputs
    }

    /// The next public input. The first one of a witness is ONE.
    pub fn push_input(&mut self, value: S) {
        self.inputs.push(value);
    }

    /// The next auxiliary variable, whatever its value.
    #[inline]
    pub fn push(&mut self, value: S) {
        if value == S::ONE {
            self.push_bits(1, 1);
        } else if value == S::ZERO {
            self.push_bits(0, 1);
        } else {
            let shift = self.num_aux % 64;
            self.begin_word_if(shift == 0);
            if let Some(wide) = self.wide.last_mut() {
                *wide |= 1 << shift;
            }
            self.wide_values.push(value);
            self.num_aux += 1;
        }
    }

    /// The next auxiliary variables, whatever their values.
    #[inline]
    pub fn extend(&mut self, values: &[S]) {
        for value in values {
            self.push(*value);
        }
    }

    /// The next `length` auxiliary variables are bits, the lowest of `word`
    /// the first. Bits of `word` from `length` on do not matter.
    ///
    /// # Panics
    /// If `length` is more than 64.
    #[inline]
    pub fn push_bits(&mut self, word: u64, length: u32) {
        assert!(length <= 64, "a word has 64 bits");
        if length == 0 {
            return;
        }
        let word = word & u64::MAX >> (64 - length);
        let shift = self.num_aux % 64;
        self.begin_word_if(shift == 0);
        if let Some(last) = self.bits.last_mut() {
            *last |= word << shift;
        }
        if shift + length as usize > 64 {
            self.begin_word_if(true);
            if let Some(last) = self.bits.last_mut() {
                *last = word >> (64 - shift);
            }
        }
        self.num_aux += length as usize;
    }

    /// The next `64 * words.len()` auxiliary variables are bits, the lowest of
    /// the first word the first.
    pub fn push_words(&mut self, words: &[u64]) {
        let shift = self.num_aux % 64;
        if shift == 0 {
            self.bits.extend_from_slice(words);
        } else {
            for word in words {
                if let Some(last) = self.bits.last_mut() {
                    *last |= word << shift;
                }
                self.bits.push(word >> (64 - shift));
            }
        }
        self.wide.resize(self.bits.len(), 0);
        let rank = u32::try_from(self.wide_values.len()).unwrap_or(u32::MAX);
        self.ranks.resize(self.bits.len(), rank);
        self.num_aux += 64 * words.len();
    }

    /// Appends the public inputs and the auxiliary variables of another builder.
    pub fn append(&mut self, other: &Self) {
        self.append_all_but_values(other, self.wide_values.len());
        self.wide_values.extend_from_slice(&other.wide_values);
    }

    /// Appends another builder without the values of its wide variables. Before these,
    /// `before` variables are wide.
    fn append_all_but_values(&mut self, other: &Self, before: usize) {
        self.inputs.extend_from_slice(&other.inputs);
        // Variables are numbered with 32 bits.
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        let words = other.bits.iter().zip(&other.wide).zip(&other.ranks);
        for (at, ((&bits, &wide), &rank)) in words.enumerate() {
            let length = (other.num_aux - at * 64).min(64);
            self.append_marks((bits, wide), length, before + rank);
        }
    }

    /// Words of up to 64 variables, before which `rank` variables are wide.
    pub(super) fn append_marks(&mut self, (bits, wide): (u64, u64), length: usize, rank: u32) {
        let shift = self.num_aux % 64;
        self.num_aux += length;
        if length == 0 {
            return;
        }
        if shift == 0 {
            self.push_word(bits, wide, rank);
            return;
        }
        if let (Some(last), Some(last_wide)) = (self.bits.last_mut(), self.wide.last_mut()) {
            *last |= bits << shift;
            *last_wide |= wide << shift;
        }
        if shift + length > 64 {
            let in_last = (wide << shift).count_ones();
            self.push_word(bits >> (64 - shift), wide >> (64 - shift), rank + in_last);
        }
    }

    /// Appends other builders, in order.
    pub fn append_all(&mut self, others: &[Self]) {
        self.reserve_words(others);
        let values = others.iter().map(|other| other.wide_values.len());
        self.wide_values.reserve(values.sum());
        for other in others {
            self.append(other);
        }
    }

    /// Appends other builders, in order, on all threads of the current pool: for parts that
    /// are mostly values. Each thread passes `checkpoint` before it copies the values of a
    /// part.
    ///
    /// # Errors
    /// [`Stopped`]; nothing is appended then.
    pub fn append_in_parallel(
        &mut self,
        others: &[Self],
        checkpoint: &Checkpoint<'_>,
    ) -> Result<(), Stopped> {
        let mut before = self.wide_values.len();
        let values: Vec<&[S]> = others.iter().map(|other| &other.wide_values[..]).collect();
        extend_in_parallel(&mut self.wide_values, &values, checkpoint)?;
        self.reserve_words(others);
        for other in others {
            self.append_all_but_values(other, before);
            before += other.wide_values.len();
        }
        Ok(())
    }

    fn reserve_words(&mut self, others: &[Self]) {
        let words = others.iter().map(Self::num_aux).sum::<usize>() / 64 + 2;
        self.bits.reserve(words);
        self.wide.reserve(words);
        self.ranks.reserve(words);
    }

    fn push_word(&mut self, bits: u64, wide: u64, rank: u32) {
        self.bits.push(bits);
        self.wide.push(wide);
        self.ranks.push(rank);
    }

    #[inline]
    fn begin_word_if(&mut self, begins: bool) {
        if begins {
            // Variables are numbered with 32 bits.
            let rank = u32::try_from(self.wide_values.len()).unwrap_or(u32::MAX);
            self.push_word(0, 0, rank);
        }
    }

    /// The witness.
    ///
    /// # Errors
    /// [`WitnessError::NotOne`] if the first public input is not ONE.
    pub fn finish(self) -> Result<PackedWitness<S>, WitnessError> {
        if self.inputs.first() != Some(&S::ONE) {
            return Err(WitnessError::NotOne);
        }
        Ok(self.into_witness())
    }

    /// The witness, of which it is known that ONE comes first.
    pub(super) fn into_witness(mut self) -> PackedWitness<S> {
        // 64 bits from anywhere are in two words.
        for _ in self.bits.len()..self.num_aux / 64 + 2 {
            self.begin_word_if(true);
        }
        PackedWitness {
            inputs: self.inputs,
            num_aux: self.num_aux,
            bits: self.bits,
            wide: self.wide,
            ranks: self.ranks,
            wide_values: self.wide_values,
        }
    }
}

#[cfg(test)]
mod tests;
