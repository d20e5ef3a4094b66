//! The twiddles of a transform.

use super::Ifma;
use super::field::fr::{Fr, Words};
use super::field::lanes::{LANES, each_lane};
use super::passes::Lanes;

/// The table of twiddles, each sixteen times as large, as [`Fr`] wants
/// factors.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    token: Ifma,
    entries: &'a [Words],
    minus_one: &'a Words,
}

impl<'a> Table<'a> {
    /// `minus_one` is sixteen times −1.
    pub(crate) fn new(token: Ifma, entries: &'a [Words], minus_one: &'a Words) -> Table<'a> {
        Table {
            token,
            entries,
            minus_one,
        }
    }

    pub(super) fn token(&self) -> Ifma {
        self.token
    }

    /// The twiddle of block i; for the inverse, its negative inverse.
    #[inline(always)]
    fn entry<const INVERSE: bool>(&self, i: usize) -> &'a Words {
        match (INVERSE, i) {
            (false, _) => &self.entries[i],
            (true, 0) => self.minus_one,
            (true, _) => &self.entries[i ^ ((1 << i.ilog2()) - 1)],
        }
    }

    /// The twiddles of block j at a depth below the blocks of the lanes.
    #[inline(always)]
    pub(super) fn get<const INVERSE: bool>(&self, lanes: &Lanes, depth: u32, j: usize) -> Fr {
        match lanes {
            Lanes::Columns { block, .. } => {
                Fr::broadcast(self.token, self.entry::<INVERSE>((block << depth) + j))
            }
            Lanes::Blocks { blocks, .. } => {
                let index = |lane: usize| (blocks[lane] << depth) + j;
                let entries = each_lane(|lane| self.entry::<INVERSE>(index(lane)));
                Fr::gather(self.token, entries)
            }
        }
    }

    /// Entries of the table, or their negative inverses.
    #[inline(always)]
    pub(super) fn entries<const INVERSE: bool>(&self, indices: [usize; LANES]) -> Fr {
        Fr::gather(
            self.token,
            each_lane(|lane| self.entry::<INVERSE>(indices[lane])),
        )
    }

    /// An entry of the table, or its negative inverse, in all lanes.
    #[inline(always)]
    pub(super) fn splat<const INVERSE: bool>(&self, index: usize) -> Fr {
        Fr::broadcast(self.token, self.entry::<INVERSE>(index))
    }
}
