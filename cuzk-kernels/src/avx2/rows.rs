//! Rows of a transform's task, and its twiddles.

use blst::blst_fr;
use blstrs::Scalar;

use super::scalar::{ScalarLimbs, ScalarWords, load_twiddles};
use super::{Avx2, LANES};
use crate::matrix::{cells, passes};

/// Four lanes of a task.
pub(super) type Lanes = passes::Lanes<LANES>;

/// One pass over the values.
pub(super) type Pass = passes::Pass<LANES>;

/// The values of a task's lanes.
pub(super) type Cells<'a> = cells::Cells<'a, Scalar, LANES>;

/// Places for the values of a task's lanes, in reversed order.
pub(super) type Reversed<'a> = cells::Reversed<'a, Scalar, LANES>;

/// Four values of a row, in memory that is lent.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Row(pub(super) ScalarLimbs);

/// The table of twiddles.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    /// Proves the instructions.
    token: Avx2,
    entries: &'a [Scalar],
    minus_one: &'a Scalar,
}

impl<'a> Table<'a> {
    pub(crate) fn new(token: Avx2, entries: &'a [Scalar], minus_one: &'a Scalar) -> Self {
        Self {
            token,
            entries,
            minus_one,
        }
    }

    #[inline(always)]
    pub(super) fn token(&self) -> Avx2 {
        self.token
    }

    /// The twiddle of block i; for the inverse, its negative inverse.
    #[inline(always)]
    fn entry<const INVERSE: bool>(&self, i: usize) -> ScalarWords {
        words(match (INVERSE, i) {
            (false, _) => &self.entries[i],
            (true, 0) => self.minus_one,
            (true, _) => &self.entries[i ^ ((1 << i.ilog2()) - 1)],
        })
    }

    /// Entries of the table, or their negative inverses.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn entries<const INVERSE: bool>(&self, indices: [usize; LANES]) -> ScalarLimbs {
        let entries = indices.map(|index| self.entry::<INVERSE>(index));
        load_twiddles(entries.each_ref())
    }

    /// The twiddles of block j at a depth below the blocks of the lanes.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn get<const INVERSE: bool>(
        &self,
        lanes: &Lanes,
        depth: u32,
        j: usize,
    ) -> ScalarLimbs {
        match lanes {
            Lanes::Columns { block, .. } => self.entries::<INVERSE>([(block << depth) + j; LANES]),
            Lanes::Blocks { blocks, .. } => {
                self.entries::<INVERSE>(blocks.map(|block| (block << depth) + j))
            }
        }
    }
}

/// The words of a scalar.
pub(super) fn words(value: &Scalar) -> ScalarWords {
    blst_fr::from(*value).l
}
