//! Bits on their way into a witness, gathered in a register.
//!
//! A run is not a growing buffer. Its user lends room for the most bits that there can be.
//! So the loop over the rounds of a hash holds only a word, a shift and a pointer. The run
//! goes to the builder as a whole.
//!
//! Invariant: `pending` holds the `pending_bits` (less than 64) bits after
//! the full words, and nothing above them.

use cuzk_pce::PackedBuilder;
use ff::PrimeField;

/// Gathers bits, the first the lowest of the first word.
#[derive(Debug)]
pub(crate) struct BitRun<'a> {
    words: &'a mut [u64],
    full: usize,
    pending: u64,
    pending_bits: u32,
}

impl<'a> BitRun<'a> {
    /// An empty run, with room for 64 bits a word.
    pub(crate) fn new(words: &'a mut [u64]) -> Self {
        BitRun {
            words,
            full: 0,
            pending: 0,
            pending_bits: 0,
        }
    }

    /// The next `length` bits, the lowest of `bits` first. None is set above
    /// them, and `length` is at most 64.
    ///
    /// # Panics
    /// If there is no more room.
    #[inline(always)]
    pub(crate) fn push(&mut self, bits: u64, length: u32) {
        debug_assert!(length == 64 || bits >> length == 0);
        self.pending |= bits << self.pending_bits;
        let filled = self.pending_bits + length;
        if filled < 64 {
            self.pending_bits = filled;
            return;
        }
        self.words[self.full] = self.pending;
        self.full += 1;
        // The bits that did not fit. A shift by 64 takes two steps.
        self.pending = bits >> 1 >> (63 - self.pending_bits);
        self.pending_bits = filled - 64;
    }

    /// Those bits of `bits` that `mask` selects, the lowest first.
    pub(crate) fn push_masked(&mut self, bits: u64, mask: u64) {
        let (mut bits, mut mask) = (bits & mask, mask);
        while mask != 0 {
            let skipped = mask.trailing_zeros();
            (bits, mask) = (bits >> skipped, mask >> skipped);
            let length = mask.trailing_ones();
            self.push(bits & u64::MAX >> (64 - length), length);
            if length == 64 {
                return;
            }
            (bits, mask) = (bits >> length, mask >> length);
        }
    }

    /// Hands the run to a builder.
    pub(crate) fn write_to<S: PrimeField>(self, builder: &mut PackedBuilder<S>) {
        let BitRun {
            words,
            full,
            pending,
            pending_bits,
        } = self;
        builder.push_words(&words[..full]);
        builder.push_bits(pending, pending_bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_run_is_its_bits(
            before in 0..64u32,
            pushes in prop::collection::vec((any::<u64>(), 0..=64u32), 0..40),
            masked in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..20),
        ) {
            let mut room = [0; 64];
            let mut run = BitRun::new(&mut room);
            let mut naive = PackedBuilder::<Scalar>::default();
            let mut ours = PackedBuilder::<Scalar>::default();
            for builder in [&mut naive, &mut ours] {
                builder.push(Scalar::from(5));
                builder.push_bits(!0, before);
            }
            for (bits, length) in pushes {
                let bits = if length == 0 { 0 } else { bits & u64::MAX >> (64 - length) };
                run.push(bits, length);
                naive.push_bits(bits, length);
            }
            for (bits, thick, thin) in masked {
                let mask = thick | thin;
                run.push_masked(bits, mask);
                for k in (0..64).filter(|k| mask >> k & 1 == 1) {
                    naive.push_bits(bits >> k & 1, 1);
                }
            }
            run.write_to(&mut ours);
            prop_assert_eq!(ours, naive);
        }
    }

    #[test]
    fn all_of_a_word() {
        let mut room = [0; 2];
        let mut run = BitRun::new(&mut room);
        run.push_masked(3, u64::MAX);
        run.push_masked(7, 0);
        assert_eq!((run.full, run.pending, run.pending_bits), (1, 0, 0));
        assert_eq!(room[0], 3);
    }
}
