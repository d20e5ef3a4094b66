//! Blocks of additions in progress, and the denominators of their slopes.
//!
//! Not the sums. Invariant: the additions of a block have slopes. The others are carried out
//! while blocks are made.

use super::coordinate::{Coordinate, multiply};
use super::limbs::Work;
use super::points::{Components, words};
use super::sums::Points;
use super::words::{Words, difference};
use super::{BLOCK, GROUPS};
use crate::affine::{Addition, Kernel, Step, prefetch};
use ff::Field;

/// Additions between asking for a point and using it.
const PREFETCH: usize = 24;

/// Additions that the serial kernel carries out together.
const UNUSUAL: usize = 64;

/// Sixteen additions in progress, in memory that is lent.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Block<const N: usize> {
    /// Denominators of the slopes, never zero.
    pub(super) denominators: Coordinate<N>,
    /// Products of the denominators before these.
    pub(super) prefixes: Coordinate<N>,
    pub(super) additions: [Addition; BLOCK],
}

/// The field's one, for all points.
#[target_feature(enable = "avx2,fma")]
pub(super) fn one<A: Components<N>, const N: usize>() -> Coordinate<N> {
    let point = A::from_xy(A::Base::ONE, A::Base::ONE);
    Coordinate::splat(&words::<A, N>(&point)[0])
}

/// Carries out unusual additions, and lists the others in blocks. Returns how many were listed,
/// and in each lane the product of its denominators.
#[target_feature(enable = "avx2,fma")]
pub(super) fn prepare<A: Components<N>, const N: usize>(
    targets: &mut [A],
    sources: &[A],
    batch: &[Addition],
    (blocks, work): (&mut [Block<N>], &mut Work),
) -> (usize, Coordinate<N>) {
    let mut products = one::<A, N>();
    let mut unusual = [Addition::ZERO; UNUSUAL];
    let (mut count, mut unusual_count) = (0, 0);
    for (i, addition) in batch.iter().enumerate() {
        if let Some(later) = batch.get(i + PREFETCH) {
            prefetch(&targets[later.target as usize]);
            prefetch(&sources[later.source()]);
        }
        let target = &words(&targets[addition.target as usize])[0];
        if is_usual(target, &words(&sources[addition.source()])[0]) {
            blocks[count / BLOCK].additions[count % BLOCK] = *addition;
            count += 1;
            if count % BLOCK == 0 {
                list(
                    targets,
                    sources,
                    (&mut blocks[count / BLOCK - 1], work),
                    &mut products,
                );
            }
            continue;
        }
        unusual[unusual_count] = *addition;
        unusual_count += 1;
        if unusual_count == UNUSUAL {
            carry_out(targets, sources, &unusual);
            unusual_count = 0;
        }
    }
    carry_out(targets, sources, &unusual[..unusual_count]);
    if count % BLOCK != 0 {
        let block = &mut blocks[count / BLOCK];
        // The lanes that are left repeat the last, and are not stored.
        let last = block.additions[count % BLOCK - 1];
        block.additions[count % BLOCK..].fill(last);
        list(targets, sources, (block, work), &mut products);
    }
    (count, products)
}

/// Returns true if the line through points with these x has a slope: neither is 0, as infinity's
/// is, and they are not the same.
#[inline(always)]
fn is_usual<const N: usize>(a: &[Words; N], b: &[Words; N]) -> bool {
    let (a, b) = (a.as_flattened(), b.as_flattened());
    let any = |words: u64, word: u64| words | word;
    let first = a.iter().copied().fold(0, any);
    let second = b.iter().copied().fold(0, any);
    let between = a.iter().zip(b).map(|(a, b)| a ^ b).fold(0, any);
    first != 0 && second != 0 && between != 0
}

/// Carries out a few additions whatever they are, one after the other.
#[cold]
#[inline(never)]
fn carry_out<A: Components<N>, const N: usize>(
    targets: &mut [A],
    sources: &[A],
    additions: &[Addition],
) {
    let mut steps = [Step::BLANK; UNUSUAL];
    A::serial().accumulate(targets, sources, additions, &mut steps);
}

/// Computes the denominators of a block.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn list<A: Components<N>, const N: usize>(
    targets: &[A],
    sources: &[A],
    (block, work): (&mut Block<N>, &mut Work),
    products: &mut Coordinate<N>,
) {
    let points = Points {
        targets,
        sources,
        additions: &block.additions,
    };
    for component in 0..N {
        for group in 0..GROUPS {
            let (target, source) = (
                points.target(group, 0, component),
                points.source(group, 0, component),
            );
            block.denominators.0[component][group] = difference(&source, &target);
        }
    }
    if N > 1 {
        block.denominators.carry();
    }
    block.prefixes = *products;
    multiply(&block.prefixes, &block.denominators, work, products);
}
