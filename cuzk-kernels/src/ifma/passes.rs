//! The passes of a transform, and the lanes of their tasks.

use std::ops::Range;

use super::lanes::{LANES, each_lane};
use crate::matrix::reverse::reverse;

/// Most layers in a pass: 2^11 rows of 320 bytes fit a second-level cache.
const LAYERS_MAX: u32 = 11;

/// The lanes of a task.
#[derive(Clone, Copy)]
pub(super) enum Lanes {
    /// Eight columns of one block.
    Columns { block: usize, first: usize },
    /// Eight blocks of one column, whose numbers with their bits reversed are
    /// consecutive: so are the places of a row's values in reversed order.
    Blocks {
        blocks: [usize; LANES],
        first_reversed: usize,
    },
}

impl Lanes {
    /// Returns true if all are of a layer's first block, whose twiddle is one.
    #[inline(always)]
    pub(super) fn are_of_the_first_block(&self) -> bool {
        matches!(self, Lanes::Columns { block: 0, .. })
    }
}

/// One pass over the values: the blocks of its first layer are matrices with
/// a row for every combination of its layers' choices.
pub(super) struct Pass {
    pub(super) layers: u32,
    pub(super) rows: usize,
    columns: usize,
    /// Logarithm of the number of blocks.
    pub(super) log_blocks: u32,
}

impl Pass {
    fn new(len: usize, layers: &Range<u32>) -> Pass {
        Pass {
            layers: layers.end - layers.start,
            rows: 1 << layers.len(),
            columns: len >> layers.end,
            log_blocks: layers.start,
        }
    }

    /// Returns true if no layer comes after this pass's in natural order.
    pub(super) fn is_last(&self) -> bool {
        self.columns == 1
    }

    /// Returns true if no layer comes before this pass's in natural order.
    pub(super) fn is_first(&self) -> bool {
        self.log_blocks == 0
    }

    pub(super) fn tasks(&self) -> usize {
        (self.columns << self.log_blocks) / LANES
    }

    /// The lanes of a task. Columns and blocks are powers of two, and one of
    /// them at least eight.
    pub(super) fn lanes(&self, task: usize) -> Lanes {
        if self.columns == 1 {
            let first_reversed = task * LANES;
            Lanes::Blocks {
                blocks: each_lane(|lane| reverse(first_reversed + lane, self.log_blocks)),
                first_reversed,
            }
        } else {
            let groups = self.columns / LANES;
            Lanes::Columns {
                block: task / groups,
                first: task % groups * LANES,
            }
        }
    }

    /// The indices of a row's values.
    #[inline(always)]
    pub(super) fn indices(&self, lanes: &Lanes, row: usize) -> [usize; LANES] {
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
pub(super) fn passes(len: usize) -> Vec<Pass> {
    let layers = len.ilog2();
    let count = layers.div_ceil(LAYERS_MAX).max(2);
    (0..count)
        .map(|i| Pass::new(len, &(layers * i / count..layers * (i + 1) / count)))
        .collect()
}

/// Rows of the pass that has most.
pub(super) fn rows_max(passes: &[Pass]) -> usize {
    passes.iter().map(|pass| pass.rows).max().unwrap_or(0)
}
