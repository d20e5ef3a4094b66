//! Batched affine additions, sixteen at a time.

use std::marker::PhantomData;

use blstrs::{G1Affine, G2Affine};
use ff::Field;

use super::block::{Block, prepare};
use super::coordinate::{Coordinate, multiply, square};
use super::limbs::{Work, carried};
use super::points::{Components, words, words_mut};
use super::sums::{Points, new_x, new_y, rises, store};
use super::words::{self as residues, load, reduced};
use super::{Avx2, BLOCK, LANES};
use crate::affine::{Addition, BATCH, Kernel};
use crate::isa::Isa;

/// The [`Kernel`] on points `A` with coordinates of N components.
pub(crate) struct Affine<A, const N: usize> {
    token: Avx2,
    curve: PhantomData<A>,
}

/// G1.
pub(crate) type G1 = Affine<G1Affine, 1>;

/// G2.
pub(crate) type G2 = Affine<G2Affine, 2>;

impl<A, const N: usize> Affine<A, N> {
    pub(crate) fn new(token: Avx2) -> Self {
        Self {
            token,
            curve: PhantomData,
        }
    }
}

impl<A, const N: usize> Clone for Affine<A, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, const N: usize> Copy for Affine<A, N> {}

impl<A: Components<N>, const N: usize> Kernel for Affine<A, N> {
    type Affine = A;
    type Point = A;
    type Step = Block<N>;
    const STEPS: usize = BATCH / BLOCK;

    fn isa(self) -> Isa {
        self.token.into()
    }

    fn steps(self) -> Vec<Block<N>> {
        let one = super::one::<A, N>(self.token);
        let blank = Block {
            denominators: one,
            prefixes: one,
            additions: [Addition::ZERO; BLOCK],
        };
        vec![blank; Self::STEPS]
    }

    fn infinity(self) -> A {
        A::identity()
    }

    fn import(self, from: &[A], to: &mut [A]) {
        to.copy_from_slice(from);
    }

    fn import_encoded(self, encoded: &[u8], indices: &[u32], to: &mut [A]) -> bool {
        super::decode(self.token, encoded, indices, to)
    }

    fn export(self, from: &[A], to: &mut [A]) {
        to.copy_from_slice(from);
    }

    fn negate(self, point: &A) -> A {
        A::serial().negate(point)
    }

    fn accumulate(
        self,
        targets: &mut [A],
        sources: &[A],
        additions: &[Addition],
        blocks: &mut [Block<N>],
    ) {
        super::accumulate(self.token, targets, sources, additions, blocks);
    }
}

/// Carries out additions, a batch after the other.
#[target_feature(enable = "avx2,fma")]
pub(super) fn accumulate<A: Components<N>, const N: usize>(
    targets: &mut [A],
    sources: &[A],
    additions: &[Addition],
    blocks: &mut [Block<N>],
) {
    let mut work = Work::new();
    for batch in additions.chunks(BATCH) {
        let (count, products) = prepare(targets, sources, batch, (blocks, &mut work));
        if count == 0 {
            continue;
        }
        let Some(inverses) = invert::<A, N>(&products) else {
            debug_assert!(false, "a denominator is zero");
            return;
        };
        let blocks = &blocks[..count.div_ceil(BLOCK)];
        complete(targets, sources, (blocks, count), inverses, &mut work);
    }
}

/// Replaces products, none of which is zero, by their inverses.
#[target_feature(enable = "avx2,fma")]
fn invert<A: Components<N>, const N: usize>(products: &Coordinate<N>) -> Option<Coordinate<N>> {
    let mut all = [A::identity(); BLOCK];
    for component in 0..N {
        for (points, limbs) in all.chunks_mut(LANES).zip(&products.0[component]) {
            for (point, residue) in points.iter_mut().zip(reduced(limbs)) {
                words_mut(point)[0][component] = residue;
            }
        }
    }
    let mut product = A::Base::ONE;
    let mut prefixes = [A::Base::ONE; BLOCK];
    for (prefix, point) in prefixes.iter_mut().zip(&all) {
        *prefix = product;
        product *= point.x();
    }
    let mut inverse = Option::<A::Base>::from(product.invert())?;
    for (point, prefix) in all.iter_mut().zip(prefixes).rev() {
        let this: A::Base = prefix * inverse;
        inverse *= point.x();
        *point = A::from_xy(this, this);
    }
    let mut inverses = *products;
    for component in 0..N {
        for (points, limbs) in all.chunks(LANES).zip(&mut inverses.0[component]) {
            let residues = std::array::from_fn(|lane| &words(&points[lane])[0][component]);
            *limbs = carried(&residues::limbs(&load(residues)));
        }
    }
    Some(inverses)
}

/// Carries out the additions of the blocks, last block first; `inverse` is that of the product
/// of all denominators.
#[target_feature(enable = "avx2,fma")]
fn complete<A: Components<N>, const N: usize>(
    targets: &mut [A],
    sources: &[A],
    (blocks, count): (&[Block<N>], usize),
    inverse: Coordinate<N>,
    work: &mut Work,
) {
    let mut buffers = [inverse; 5];
    let [inverse, next, slopes, runs, scratch] = &mut buffers;
    let (mut inverse, mut next) = (inverse, next);
    for (i, block) in blocks.iter().enumerate().rev() {
        let additions = &block.additions;
        if let Some(before) = i.checked_sub(1) {
            let additions = &blocks[before].additions;
            Points {
                targets: &*targets,
                sources,
                additions,
            }
            .prefetch();
        }
        let points = Points {
            targets: &*targets,
            sources,
            additions,
        };
        rises(&points, scratch);
        multiply(inverse, &block.prefixes, work, runs);
        multiply(scratch, runs, work, slopes);
        multiply(inverse, &block.denominators, work, next);
        std::mem::swap(&mut inverse, &mut next);
        square(slopes, work, scratch);
        let active = (count - i * BLOCK).min(BLOCK);
        // All points are read before one is written.
        let xs = new_x(&points, scratch, runs);
        store(targets, &additions[..active], 0, &xs);
        multiply(runs, slopes, work, scratch);
        let points = Points {
            targets: &*targets,
            sources,
            additions,
        };
        let ys = new_y(&points, scratch);
        store(targets, &additions[..active], 1, &ys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affine::encodings::check_encodings;
    use crate::affine::tests::check_kernel;

    #[test]
    fn encoded_points_are_read_in_g1() {
        if let Some(token) = crate::testing::avx2() {
            check_encodings(G1::new(token));
        }
    }

    #[test]
    fn encoded_points_are_read_in_g2() {
        if let Some(token) = crate::testing::avx2() {
            check_encodings(G2::new(token));
        }
    }

    #[test]
    fn g1_additions_agree_with_the_group_law() {
        if let Some(token) = crate::testing::avx2() {
            check_kernel(G1::new(token));
        }
    }

    #[test]
    fn g2_additions_agree_with_the_group_law() {
        if let Some(token) = crate::testing::avx2() {
            check_kernel(G2::new(token));
        }
    }
}
