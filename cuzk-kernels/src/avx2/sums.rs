//! The points of a block, and the coordinates of their sums.

use std::arch::x86_64::*;

use super::coordinate::{Coordinate, zip};
use super::limbs::carried;
use super::points::{Components, words, words_mut};
use super::words::{self as residues, Natural, Words, load, reduced, signed_difference, sum};
use super::{BLOCK, GROUPS, LANES};
use crate::affine::{Addition, prefetch};

/// The points of a block.
#[derive(Clone, Copy)]
pub(super) struct Points<'a, A> {
    pub(super) targets: &'a [A],
    pub(super) sources: &'a [A],
    pub(super) additions: &'a [Addition; BLOCK],
}

impl<A> Points<'_, A> {
    /// The additions of a group.
    #[inline(always)]
    fn group(&self, group: usize) -> [Addition; LANES] {
        std::array::from_fn(|lane| self.additions[LANES * group + lane])
    }

    /// A component of x (0) or y (1) of a group's targets.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn target<const N: usize>(
        &self,
        group: usize,
        axis: usize,
        component: usize,
    ) -> Natural
    where
        A: Components<N>,
    {
        let point = |addition: Addition| &self.targets[addition.target as usize];
        load(
            self.group(group)
                .map(|addition| &words(point(addition))[axis][component]),
        )
    }

    /// A component of x (0) or y (1) of a group's sources.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn source<const N: usize>(
        &self,
        group: usize,
        axis: usize,
        component: usize,
    ) -> Natural
    where
        A: Components<N>,
    {
        let point = |addition: Addition| &self.sources[addition.source()];
        load(
            self.group(group)
                .map(|addition| &words(point(addition))[axis][component]),
        )
    }

    /// All ones in the lanes of a group whose source is subtracted.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn negative(&self, group: usize) -> __m256i {
        let mask = |addition: Addition| i64::from(addition.negative()).wrapping_neg();
        bytemuck::cast(self.group(group).map(mask))
    }

    /// Asks for the points.
    pub(super) fn prefetch(&self) {
        for addition in self.additions {
            prefetch(&self.targets[addition.target as usize]);
            prefetch(&self.sources[addition.source()]);
        }
    }
}

/// The differences of y, carried in the extension.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) fn rises<A: Components<N>, const N: usize>(
    points: &Points<'_, A>,
    to: &mut Coordinate<N>,
) {
    for component in 0..N {
        for group in 0..GROUPS {
            let (source, target) = (
                points.source(group, 1, component),
                points.target(group, 1, component),
            );
            let negative = points.negative(group);
            to.0[component][group] = signed_difference(&source, negative, &target);
        }
    }
    to.carry();
}

/// Residues of sixteen points.
pub(super) type Residues<const N: usize> = [[[Words; LANES]; GROUPS]; N];

/// The x of the sums, from the squares of the slopes. `runs` becomes the difference of the
/// targets' x and these.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) fn new_x<A: Components<N>, const N: usize>(
    points: &Points<'_, A>,
    squares: &Coordinate<N>,
    runs: &mut Coordinate<N>,
) -> Residues<N> {
    let mut xs = [[[[0; 6]; LANES]; GROUPS]; N];
    for (component, xs) in xs.iter_mut().enumerate() {
        for (group, new) in xs.iter_mut().enumerate() {
            let (target, source) = (
                points.target(group, 0, component),
                points.source(group, 0, component),
            );
            let both = sum(&target, &source);
            let x = zip(&squares.0[component][group], &both, |a, b| {
                _mm256_sub_pd(a, b)
            });
            let run = zip(&residues::limbs(&target), &x, |a, b| _mm256_sub_pd(a, b));
            runs.0[component][group] = carried(&run);
            *new = reduced(&x);
        }
    }
    xs
}

/// The y of the sums, from the products of the runs and the slopes.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) fn new_y<A: Components<N>, const N: usize>(
    points: &Points<'_, A>,
    products: &Coordinate<N>,
) -> Residues<N> {
    let mut ys = [[[[0; 6]; LANES]; GROUPS]; N];
    for (component, ys) in ys.iter_mut().enumerate() {
        for (group, new) in ys.iter_mut().enumerate() {
            let target = residues::limbs(&points.target(group, 1, component));
            let y = zip(&products.0[component][group], &target, |a, b| {
                _mm256_sub_pd(a, b)
            });
            *new = reduced(&y);
        }
    }
    ys
}

/// Writes x (0) or y (1) of the targets.
#[inline]
pub(super) fn store<A: Components<N>, const N: usize>(
    targets: &mut [A],
    additions: &[Addition],
    axis: usize,
    values: &Residues<N>,
) {
    for (i, addition) in additions.iter().enumerate() {
        let target = words_mut(&mut targets[addition.target as usize]);
        for (component, values) in values.iter().enumerate() {
            target[axis][component] = values[i / LANES][i % LANES];
        }
    }
}
