//! One part on the rows of a stretch.
//!
//! The bits of a small part's variables are gathered into words, a word for
//! each variable, and each row is looked up by its bits. Whether values *are*
//! bits is asked of the witness every time: if not, rows are run from their
//! items.

use super::runner::Runner;
use crate::{
    program::{
        part::{GENERAL, Part},
        stretch::Stretch,
    },
    witness::Columns,
};
use ff::PrimeField;

/// Some turns of one of the shapes of a stretch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane<'a> {
    pub(super) stretch: &'a Stretch<'a>,
    /// Which of the shapes that take turns.
    pub(super) at: usize,
    /// The cursor of its first row in the stretch.
    pub(super) cursor: usize,
    /// How far the cursor goes from turn to turn.
    pub(super) advance: usize,
    /// The first turn.
    pub(super) first: usize,
    /// How many turns.
    pub(super) count: usize,
}

impl Lane<'_> {
    /// At most `count` of the turns from `done` on.
    #[inline]
    pub(super) fn part(self, done: usize, count: usize) -> Self {
        Lane {
            first: self.first + done,
            count: (self.count - done).min(count),
            ..self
        }
    }

    /// How far a variable of a small part moves from turn to turn.
    #[inline(always)]
    pub(super) fn stride(&self, matrix: usize, variable: usize) -> usize {
        match self.stretch.drift {
            None => self.advance,
            Some(drift) => drift.strides.of(self.at, matrix, variable),
        }
    }

    /// How many turns' bits are gathered at a time.
    #[inline]
    pub(super) fn step(&self) -> usize {
        match self.advance {
            _ if self.stretch.drift.is_some() => 32,
            0 | 1 => 64,
            2 => 32,
            _ => 1,
        }
    }

    /// The cursor of a turn, counted from the lane's first.
    #[inline]
    pub(super) fn cursor(&self, turn: usize) -> usize {
        self.cursor + (self.first + turn) * self.advance
    }

    /// The terminal of a turn, counted from the lane's first.
    #[inline]
    pub(super) fn terminal(&self, turn: usize) -> u32 {
        self.stretch.terminal(self.first + turn, self.at)
    }
}

impl<S: PrimeField, W: Columns<S>> Runner<'_, S, W> {
    /// One matrix's part on a lane; the results go to every place of `out`
    /// that is a multiple of the stretch's period.
    #[inline]
    pub(super) fn part(&self, part: u32, matrix: usize, lane: &Lane<'_>, out: &mut [S]) {
        let small = self.prepared.part(part);
        match small.variables {
            GENERAL => self.each_row(matrix, lane, out),
            0 => {
                let value = self.prepared.integers()[usize::from(small.sums[0]) % 128];
                let places = out.iter_mut().step_by(lane.stretch.period);
                places.take(lane.count).for_each(|place| *place = value);
            }
            1 => self.small_part::<1>(small, matrix, lane, out),
            2 => self.small_part::<2>(small, matrix, lane, out),
            _ => self.small_part::<3>(small, matrix, lane, out),
        }
    }

    fn each_row(&self, matrix: usize, lane: &Lane<'_>, out: &mut [S]) {
        let places = out.iter_mut().step_by(lane.stretch.period);
        for (turn, place) in places.take(lane.count).enumerate() {
            let shape = self.shape(lane.terminal(turn));
            let items = self.view.part(shape.parts[matrix]);
            *place = self.row(items, lane.cursor(turn));
        }
    }

    #[inline]
    fn small_part<const V: usize>(
        &self,
        small: &Part,
        matrix: usize,
        lane: &Lane<'_>,
        out: &mut [S],
    ) {
        let step = lane.step();
        let mut done = 0;
        while done < lane.count {
            let lane = lane.part(done, step);
            let period = lane.stretch.period;
            let out = &mut out[done * period..][..(lane.count - 1) * period + 1];
            match (self.words::<V>(small, matrix, &lane), period) {
                (Some(words), 1) => self.look_up::<V, 1>(small, words, out),
                (Some(words), _) => self.look_up::<V, 2>(small, words, out),
                (None, _) => self.each_row(matrix, &lane, out),
            }
            done += lane.count;
        }
    }

    /// For each variable its bits, row by row; `None` if one of them is none.
    #[inline(always)]
    fn words<const V: usize>(
        &self,
        small: &Part,
        matrix: usize,
        lane: &Lane<'_>,
    ) -> Option<[u64; V]> {
        let mut words = [0; V];
        for (variable, (word, col)) in words.iter_mut().zip(small.cols).enumerate() {
            *word = self.lane_bits(lane, col, lane.stride(matrix, variable))?;
        }
        Some(words)
    }

    /// A variable's bits on at most [`Lane::step`] turns; higher bits do not
    /// matter. `col` is its column in the stretch's first turn.
    #[inline(always)]
    pub(super) fn lane_bits(&self, lane: &Lane<'_>, col: u32, stride: usize) -> Option<u64> {
        let start = lane.cursor + lane.first * stride - col as usize;
        match stride {
            1 => self.witness.bits(start, lane.count),
            2 => Some(every_second(self.witness.bits(start, 2 * lane.count - 1)?)),
            // One variable, if not one turn.
            _ => Some(0u64.wrapping_sub(self.witness.bits(start, 1)?)),
        }
    }

    /// Writes every `PERIOD`th place.
    #[inline(always)]
    fn look_up<const V: usize, const PERIOD: usize>(
        &self,
        small: &Part,
        mut words: [u64; V],
        out: &mut [S],
    ) {
        let integers = self.prepared.integers();
        let at = |choice: usize| &integers[usize::from(small.sums[choice % 8]) % 128];
        let (zero, one) = (at(0), at(1));
        for places in out.chunks_mut(PERIOD) {
            if V == 1 {
                places[0] = if words[0] & 1 == 0 { *zero } else { *one };
                words[0] >>= 1;
                continue;
            }
            let mut choice = 0;
            for (variable, word) in words.iter_mut().enumerate() {
                choice |= usize::from(*word & 1 == 1) << variable;
                *word >>= 1;
            }
            places[0] = *at(choice);
        }
    }
}

/// Bits 0, 2, 4 and so on, next to each other.
#[inline]
pub(super) fn every_second(bits: u64) -> u64 {
    let mut bits = bits & 0x5555_5555_5555_5555;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) & 0x0000_0000_ffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn takes_every_second_bit(bits in any::<u64>()) {
            let naive = (0..32).fold(0, |all, k| all | (bits >> (2 * k) & 1) << k);
            prop_assert_eq!(every_second(bits), naive);
        }
    }
}
