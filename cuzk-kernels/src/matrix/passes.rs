//! The passes of a transform in lanes, and the lanes of their tasks.
//!
//! Not the instructions: there are `L` lanes.

use std::array::from_fn as each_lane;
use std::ops::Range;

use super::reverse::reverse;

/// Most layers in a pass: 2^11 rows of 192 or 320 bytes fit a second-level cache.
const LAYERS_MAX: u32 = 11;

/// The lanes of a task.
#[derive(Clone, Copy)]
pub(crate) enum Lanes<const L: usize> {
    /// Columns of one block.
    Columns { block: usize, first: usize },
    /// Blocks of one column, whose numbers with their bits reversed are
    /// consecutive: so are the places of a row's values in reversed order.
    Blocks {
        blocks: [usize; L],
        first_reversed: usize,
    },
}

impl<const L: usize> Lanes<L> {
    /// Returns true if all are of a layer's first block, whose twiddle is one.
    #[inline(always)]
    pub(crate) fn are_of_the_first_block(&self) -> bool {
        matches!(self, Lanes::Columns { block: 0, .. })
    }
}

/// One pass over the values: the blocks of its first layer are matrices with
/// a row for every combination of its layers' choices.
pub(crate) struct Pass<const L: usize> {
    pub(crate) layers: u32,
    pub(crate) rows: usize,
    columns: usize,
    /// Logarithm of the number of blocks.
    pub(crate) log_blocks: u32,
}

impl<const L: usize> Pass<L> {
    fn new(len: usize, layers: &Range<u32>) -> Pass<L> {
        Pass {
            layers: layers.end - layers.start,
            rows: 1 << layers.len(),
            columns: len >> layers.end,
            log_blocks: layers.start,
        }
    }

    /// Returns true if no layer comes after this pass's in natural order.
    pub(crate) fn is_last(&self) -> bool {
        self.columns == 1
    }

    /// Returns true if no layer comes before this pass's in natural order.
    pub(crate) fn is_first(&self) -> bool {
        self.log_blocks == 0
    }

    /// The values of all tasks.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        (self.rows * self.columns) << self.log_blocks
    }

    pub(crate) fn tasks(&self) -> usize {
        (self.columns << self.log_blocks) / L
    }

    /// The lanes of a task. Columns and blocks are powers of two, and one of
    /// them at least `L`.
    pub(crate) fn lanes(&self, task: usize) -> Lanes<L> {
        if self.columns == 1 {
            let first_reversed = task * L;
            Lanes::Blocks {
                blocks: each_lane(|lane| reverse(first_reversed + lane, self.log_blocks)),
                first_reversed,
            }
        } else {
            let groups = self.columns / L;
            Lanes::Columns {
                block: task / groups,
                first: task % groups * L,
            }
        }
    }

    /// The indices of a row's values.
    #[inline(always)]
    pub(crate) fn indices(&self, lanes: &Lanes<L>, row: usize) -> [usize; L] {
        match lanes {
            Lanes::Columns { block, first } => {
                let start = (block * self.rows + row) * self.columns + first;
                each_lane(|lane| start + lane)
            }
            Lanes::Blocks { blocks, .. } => each_lane(|lane| blocks[lane] * self.rows + row),
        }
    }
}

/// The passes of a transform, of which there are at least two. The lanes of the
/// last are blocks, those of the others columns.
pub(crate) fn passes<const L: usize>(len: usize) -> Vec<Pass<L>> {
    let layers = len.ilog2();
    let count = layers.div_ceil(LAYERS_MAX).max(2);
    (0..count)
        .map(|i| Pass::new(len, &(layers * i / count..layers * (i + 1) / count)))
        .collect()
}

/// Rows of the pass that has most.
pub(crate) fn rows_max<const L: usize>(passes: &[Pass<L>]) -> usize {
    passes.iter().map(|pass| pass.rows).max().unwrap_or(0)
}
