//! A set of small numbers.

/// A set of small numbers, small enough itself for the first-level cache.
pub(super) struct BitSet(Vec<u64>);

impl BitSet {
    pub(super) fn new(len: usize) -> BitSet {
        BitSet(vec![0; len.div_ceil(64)])
    }

    /// Adds a number; whether it was not there before.
    #[inline]
    pub(super) fn insert(&mut self, number: usize) -> bool {
        let word = &mut self.0[number / 64];
        let bit = 1 << (number % 64);
        let absent = *word & bit == 0;
        *word |= bit;
        absent
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Empties it, for numbers up to `len`. It grows to that and no further.
    pub(super) fn reset(&mut self, len: usize) {
        let words = len.div_ceil(64);
        self.0.clear();
        self.0.reserve_exact(words);
        self.0.resize(words, 0);
    }

    /// Returns the words: bit i of word i / 64 is number i.
    pub(super) fn words(&self) -> &[u64] {
        &self.0
    }
}
