//! A transform as few passes over memory.
//!
//! A layer l of the transform has 2^l blocks, each with one twiddle. A pass
//! takes several consecutive layers at once: within a block of its first
//! layer, columns of elements do not interact, so a task copies a few columns
//! into a cache-sized buffer, does all layers of the pass there, and copies
//! them back.

use std::ops::Range;

use blstrs::Scalar;

use super::columns::{Shape, for_each_column_group};
use super::twiddles::Twiddles;
use crate::arithmetic::Arithmetic;
use crate::checkpoint::Checkpoint;
use crate::error::KernelError;

/// Most layers in a pass: 2^10 rows of eight columns are 256 KiB.
const LAYERS_MAX: u32 = 10;

/// Whether roots or inverse roots are used. The transforms do not scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Powers of the root.
    Forward,
    /// Powers of the inverse root.
    Inverse,
}

/// Natural order in, bit-reversed order out (Cooley–Tukey butterflies).
pub(super) fn scatter<A: Arithmetic>(
    values: &mut [Scalar],
    twiddles: &Twiddles,
    direction: Direction,
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    for layers in passes(values.len().ilog2()) {
        let shape = shape(values.len(), &layers);
        for_each_column_group(values, shape, checkpoint, |block, width, columns| {
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
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError> {
    for layers in passes(values.len().ilog2()).into_iter().rev() {
        let shape = shape(values.len(), &layers);
        for_each_column_group(values, shape, checkpoint, |block, width, columns| {
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
    for (i, block) in columns.chunks_exact_mut(block_len).enumerate() {
        let twiddle = twiddles.get(first_block + i, direction);
        let (upper, lower) = block.split_at_mut(block_len / 2);
        for (u, l) in upper.iter_mut().zip(lower) {
            // In place wherever it can be: a result of blst that is copied while
            // still on its way to memory stalls the processor.
            let mut product = *l;
            A::multiply(&mut product, &twiddle);
            *l = *u;
            A::subtract(l, &product);
            A::add(u, &product);
        }
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
    for (i, block) in columns.chunks_exact_mut(block_len).enumerate() {
        let twiddle = twiddles.get(first_block + i, direction);
        let (upper, lower) = block.split_at_mut(block_len / 2);
        for (u, l) in upper.iter_mut().zip(lower) {
            let lower = *l;
            *l = *u;
            A::subtract(l, &lower);
            A::multiply(l, &twiddle);
            A::add(u, &lower);
        }
    }
}
