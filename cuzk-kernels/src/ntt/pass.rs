//! A transform as few passes over memory.
//!
//! A layer l of the transform has 2^l blocks, each with one twiddle. A pass computes
//! several consecutive layers at once. Within a block of its first layer, columns of
//! elements do not interact. So a task copies a few columns into a cache-sized buffer,
//! computes all layers of the pass there, and copies them back.

use std::ops::Range;

use blstrs::Scalar;

use super::direction::Direction;
use super::twiddles::Twiddles;
use crate::arithmetic::{Arithmetic, sum_and_difference};
use crate::context::Context;
use crate::error::KernelError;
use crate::matrix::columns::{Shape, for_each_column_group};
use crate::matrix::rows::Area;

/// Most layers in a pass: 2^10 rows of eight columns are 256 KiB.
const LAYERS_MAX: u32 = 10;

/// The least number of elements that are multiplied before the first of them is added. A
/// read of a product that is still on its way to memory stalls the processor.
const RUN: usize = 16;

/// Natural order in, bit-reversed order out (Cooley–Tukey butterflies).
pub(super) fn scatter<A: Arithmetic>(
    values: &mut [Scalar],
    twiddles: &Twiddles,
    direction: Direction,
    context: Context<'_>,
) -> Result<(), KernelError> {
    let passes = passes(values.len().ilog2());
    let mut area = Area::take(context.memory, copied(values.len()))?;
    let rows = area.rows();
    for layers in passes {
        let shape = shape(values.len(), &layers);
        for_each_column_group(values, shape, (&rows, context), |block, width, columns| {
            for layer in layers.clone() {
                let depth = layer - layers.start;
                scatter_layer::<A>(columns, width, block << depth, depth, twiddles, direction);
            }
        })?;
    }
    Ok(())
}

/// Bit-reversed order in, natural order out (Gentleman–Sande butterflies).
pub(super) fn gather<A: Arithmetic>(
    values: &mut [Scalar],
    twiddles: &Twiddles,
    direction: Direction,
    context: Context<'_>,
) -> Result<(), KernelError> {
    let passes = passes(values.len().ilog2());
    let mut area = Area::take(context.memory, copied(values.len()))?;
    let rows = area.rows();
    for layers in passes.into_iter().rev() {
        let shape = shape(values.len(), &layers);
        for_each_column_group(values, shape, (&rows, context), |block, width, columns| {
            for layer in layers.clone().rev() {
                let depth = layer - layers.start;
                gather_layer::<A>(columns, width, block << depth, depth, twiddles, direction);
            }
        })?;
    }
    Ok(())
}

/// Splits the layers evenly into as few passes as possible.
fn passes(layers: u32) -> Vec<Range<u32>> {
    let count = layers.div_ceil(LAYERS_MAX);
    (0..count)
        .map(|i| layers * i / count..layers * (i + 1) / count)
        .collect()
}

/// Scalars that a task of such a transform copies together, at most.
pub(super) fn copied(len: usize) -> usize {
    let passes = passes(len.ilog2()).into_iter();
    let copied = passes.map(|layers| shape(len, &layers).copied());
    copied.max().unwrap_or(0)
}

fn shape(len: usize, layers: &Range<u32>) -> Shape {
    Shape {
        rows: 1 << layers.len(),
        columns: len >> layers.end,
    }
}

/// One layer of 2^`depth` blocks, the first of which is number `first_block`
/// of the whole transform.
fn scatter_layer<A: Arithmetic>(
    columns: &mut [Scalar],
    width: usize,
    first_block: usize,
    depth: u32,
    twiddles: &Twiddles,
    direction: Direction,
) {
    debug_assert_eq!(columns.len() % (width << (depth + 1)), 0);
    let block_len = columns.len() >> depth;
    let run = block_len.max(RUN);
    for (i, run) in columns.chunks_mut(run).enumerate() {
        let first_block = first_block + i * (run.len() / block_len);
        multiply_lower::<A>(run, block_len, first_block, twiddles, direction);
        sums_and_differences(run, block_len);
    }
}

/// The inverse of [`scatter_layer`] in the other direction, but for a factor
/// of two.
fn gather_layer<A: Arithmetic>(
    columns: &mut [Scalar],
    width: usize,
    first_block: usize,
    depth: u32,
    twiddles: &Twiddles,
    direction: Direction,
) {
    debug_assert_eq!(columns.len() % (width << (depth + 1)), 0);
    let block_len = columns.len() >> depth;
    let run = block_len.max(RUN);
    for (i, run) in columns.chunks_mut(run).enumerate() {
        let first_block = first_block + i * (run.len() / block_len);
        sums_and_differences(run, block_len);
        multiply_lower::<A>(run, block_len, first_block, twiddles, direction);
    }
}

/// Multiplies the lower halves of blocks by their twiddles. The first block of a
/// transform's layer has one.
#[inline(always)]
fn multiply_lower<A: Arithmetic>(
    blocks: &mut [Scalar],
    block_len: usize,
    first_block: usize,
    twiddles: &Twiddles,
    direction: Direction,
) {
    for (i, block) in blocks.chunks_exact_mut(block_len).enumerate() {
        if first_block + i == 0 {
            continue;
        }
        let twiddle = twiddles.get(first_block + i, direction);
        for value in &mut block[block_len / 2..] {
            A::multiply(value, &twiddle);
        }
    }
}

/// `(u, l) → (u + l, u − l)` of the upper and the lower halves of blocks.
#[inline(always)]
fn sums_and_differences(blocks: &mut [Scalar], block_len: usize) {
    for block in blocks.chunks_exact_mut(block_len) {
        let (upper, lower) = block.split_at_mut(block_len / 2);
        for (u, l) in upper.iter_mut().zip(lower) {
            sum_and_difference(u, l);
        }
    }
}
