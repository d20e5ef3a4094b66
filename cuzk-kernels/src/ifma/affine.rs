//! Batched affine additions, eight at a time.

use std::marker::PhantomData;

use blstrs::{G1Affine, G2Affine};

use super::Ifma;
use super::field::coordinate::Coordinate;
use super::field::fp::Fp;
use super::field::fp2::Fp2;
use super::field::lanes::{LANES, each_lane};
use super::group::{
    Early, Group, active_lanes, lanes_of, negative_lanes, prefetch_group, prefetch_x,
};
use super::points::Point;
use crate::affine::{Addition, BATCH, Coordinates, Kernel};
use crate::isa::Isa;

/// Groups of lanes between asking for a point and using it.
const PREFETCH_GROUPS: usize = 4;

/// The [`Kernel`] on points `A` with coordinates `C`.
pub(crate) struct Affine<A, C> {
    token: Ifma,
    curve: PhantomData<(A, C)>,
}

/// G1.
pub(crate) type G1 = Affine<G1Affine, Fp>;

/// G2.
pub(crate) type G2 = Affine<G2Affine, Fp2>;

impl<A, C> Affine<A, C> {
    pub(crate) fn new(token: Ifma) -> Self {
        Affine {
            token,
            curve: PhantomData,
        }
    }
}

impl<A, C> Clone for Affine<A, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, C> Copy for Affine<A, C> {}

impl<A, C> Kernel for Affine<A, C>
where
    A: Coordinates<Base = C::Base>,
    C: Coordinate,
{
    type Affine = A;
    type Point = Point<C::Stored>;
    type Step = Group<C>;
    const STEPS: usize = BATCH / LANES;

    fn isa(self) -> Isa {
        self.token.into()
    }

    fn steps(self) -> Vec<Group<C>> {
        vec![Group::new(self.token); Self::STEPS]
    }

    fn points_of(self, bytes: &[u8]) -> Option<&[Self::Point]> {
        bytemuck::try_cast_slice(bytes).ok()
    }

    fn bytes_of(self, points: &[Self::Point]) -> &[u8] {
        bytemuck::cast_slice(points)
    }

    fn infinity(self) -> Self::Point {
        Point::infinity::<C>()
    }

    fn import(self, from: &[A], to: &mut [Self::Point]) {
        for (from, to) in from.chunks(LANES).zip(to.chunks_mut(LANES)) {
            let point = |i: usize| from.get(i).copied().unwrap_or_else(A::identity);
            let points: [A; LANES] = std::array::from_fn(point);
            super::import_group::<A, C>(self.token, &points, to);
        }
    }

    fn import_encoded(self, encoded: &[u8], indices: &[u32], to: &mut [Self::Point]) -> bool {
        let point_bytes = size_of::<[C::Encoded; 2]>();
        let whole = encoded.len() / point_bytes * point_bytes;
        let Ok(encoded) = bytemuck::try_cast_slice(&encoded[..whole]) else {
            return false;
        };
        super::decode::<C>(self.token, encoded, indices, to)
    }

    fn export(self, from: &[Self::Point], to: &mut [A]) {
        for (from, to) in from.chunks(LANES).zip(to.chunks_mut(LANES)) {
            super::export_group::<A, C>(self.token, from, to);
        }
    }

    fn negate(self, point: &Self::Point) -> Self::Point {
        if C::is_infinity(&point.x) {
            *point
        } else {
            Point {
                x: point.x,
                y: C::negative(&point.y),
            }
        }
    }

    fn accumulate(
        self,
        targets: &mut [Self::Point],
        sources: &[Self::Point],
        additions: &[Addition],
        groups: &mut [Group<C>],
    ) {
        self.accumulate_before(&[], targets, sources, additions, groups);
    }

    fn accumulate_before(
        self,
        next: &[Addition],
        targets: &mut [Self::Point],
        sources: &[Self::Point],
        additions: &[Addition],
        groups: &mut [Group<C>],
    ) {
        let mut early = Early(next);
        for batch in additions.chunks(BATCH) {
            let batch = (batch, &mut *groups, &mut early);
            super::accumulate(self.token, self, targets, sources, batch);
        }
    }

    fn double(self, points: &mut [Self::Point], groups: &mut [Group<C>]) {
        for points in points.chunks_mut(BATCH) {
            super::double(self.token, points, groups);
        }
    }
}

impl<A, C> Affine<A, C>
where
    A: Coordinates<Base = C::Base>,
    C: Coordinate,
{
    /// Computes the denominators and their running product, and carries out
    /// the additions that need none.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn prepare(
        self,
        targets: &mut [Point<C::Stored>],
        sources: &[Point<C::Stored>],
        batch: &[Addition],
        groups: &mut [Group<C>],
    ) -> C {
        let mut product = C::one(self.token);
        for (i, (chunk, group)) in batch.chunks(LANES).zip(groups).enumerate() {
            prefetch_x(targets, sources, batch, i + PREFETCH_GROUPS);
            let lanes = lanes_of(chunk);
            let (denominator, unusual) = self.run(targets, sources, &lanes);
            // One by one: put together elsewhere, they would be copied here.
            group.denominator = denominator;
            group.prefix = product;
            group.active = active_lanes(chunk.len());
            group.doubles = 0;
            if unusual != 0 || chunk.len() < LANES {
                self.settle(group, unusual, targets, sources, chunk);
            }
            product = product.mul(&group.denominator);
        }
        product
    }

    /// Settles the lanes of a group that need no slope or that double, and
    /// makes every denominator a nonzero one.
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    fn settle(
        self,
        group: &mut Group<C>,
        unusual: u8,
        targets: &mut [Point<C::Stored>],
        sources: &[Point<C::Stored>],
        additions: &[Addition],
    ) {
        for (lane, addition) in additions.iter().enumerate() {
            if unusual >> lane & 1 == 0 {
                continue;
            }
            let target = &mut targets[addition.target as usize];
            let source = self.signed(&sources[addition.source()], addition.negative());
            if C::is_infinity(&source.x) {
                group.active &= !(1 << lane);
            } else if C::is_infinity(&target.x) {
                group.active &= !(1 << lane);
                *target = source;
            } else if C::equal(&target.x, &source.x) {
                if C::equal(&target.y, &C::negative(&source.y)) {
                    group.active &= !(1 << lane);
                    *target = self.infinity();
                } else {
                    group.doubles |= 1 << lane;
                }
            }
        }
        let y = self.target_y(targets, &lanes_of(additions));
        group.denominator = group.denominator.blend(&y.add(&y), group.doubles);
        let one = C::one(self.token);
        group.denominator = group.denominator.blend(&one, !group.active);
    }

    /// Computes and stores the sums, last group first; `inverse` is that of
    /// the product of all denominators.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    pub(super) fn complete(
        self,
        targets: &mut [Point<C::Stored>],
        sources: &[Point<C::Stored>],
        (batch, groups, early): (&[Addition], &[Group<C>], &mut Early<'_>),
        mut inverse: C,
    ) {
        for (i, (chunk, group)) in batch.chunks(LANES).zip(groups).enumerate().rev() {
            prefetch_group(targets, sources, batch, i.wrapping_sub(PREFETCH_GROUPS));
            let lanes = lanes_of(chunk);
            early.some(targets, sources);
            let this_inverse = inverse.mul(&group.prefix);
            early.some(targets, sources);
            if group.is_usual() {
                let slope = self.rise(targets, sources, &lanes).mul(&this_inverse);
                early.some(targets, sources);
                self.add(targets, sources, &lanes, u8::MAX, &slope);
            } else {
                self.complete_unusual(targets, sources, &lanes, group, &this_inverse);
            }
            early.some(targets, sources);
            inverse = inverse.mul(&group.denominator);
        }
    }

    /// Computes and stores the sums of a group some of whose lanes double a
    /// point or have nothing to add. Kept apart, because values that come from
    /// either of two places have to be in memory.
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    fn complete_unusual(
        self,
        targets: &mut [Point<C::Stored>],
        sources: &[Point<C::Stored>],
        lanes: &[Addition; LANES],
        group: &Group<C>,
        this_inverse: &C,
    ) {
        let square = self.target_x(targets, lanes).square();
        let tangent = square.add(&square).add(&square);
        let rise = self.rise(targets, sources, lanes);
        let slope = rise.blend(&tangent, group.doubles).mul(this_inverse);
        self.add(targets, sources, lanes, group.active, &slope);
    }

    /// Adds points that lie on lines of these slopes.
    #[inline(always)]
    fn add(
        self,
        targets: &mut [Point<C::Stored>],
        sources: &[Point<C::Stored>],
        lanes: &[Addition; LANES],
        active: u8,
        slope: &C,
    ) {
        let square = slope.square();
        let x1 = self.target_x(targets, lanes);
        let x2 = self.source_x(sources, lanes);
        let x3 = square.sub_both_reduced(&x1, &x2);
        let run = x1.sub(&x3);
        self.store_lanes(targets, lanes, active, &x3, |point| &mut point.x);
        let rise = run.mul(slope);
        let y3 = rise.sub_reduced(&self.target_y(targets, lanes));
        self.store_lanes(targets, lanes, active, &y3, |point| &mut point.y);
    }

    /// The differences of x, and the lanes where they may be no denominators.
    #[inline(always)]
    fn run(
        self,
        targets: &[Point<C::Stored>],
        sources: &[Point<C::Stored>],
        lanes: &[Addition; LANES],
    ) -> (C, u8) {
        let x1 = each_lane(|lane| &targets[lanes[lane].target as usize].x);
        let x2 = each_lane(|lane| &sources[lanes[lane].source()].x);
        C::difference(self.token, x2, x1)
    }

    /// The differences of y.
    #[inline(always)]
    fn rise(
        self,
        targets: &[Point<C::Stored>],
        sources: &[Point<C::Stored>],
        lanes: &[Addition; LANES],
    ) -> C {
        let y1 = self.target_y(targets, lanes);
        let y2 = C::load(
            self.token,
            each_lane(|lane| &sources[lanes[lane].source()].y),
        );
        y2.signed_sub(&y1, negative_lanes(self.token, lanes))
    }

    #[inline(always)]
    fn target_x(self, targets: &[Point<C::Stored>], lanes: &[Addition; LANES]) -> C {
        let x = |lane: usize| &targets[lanes[lane].target as usize].x;
        C::load(self.token, each_lane(x))
    }

    #[inline(always)]
    fn target_y(self, targets: &[Point<C::Stored>], lanes: &[Addition; LANES]) -> C {
        let y = |lane: usize| &targets[lanes[lane].target as usize].y;
        C::load(self.token, each_lane(y))
    }

    #[inline(always)]
    fn source_x(self, sources: &[Point<C::Stored>], lanes: &[Addition; LANES]) -> C {
        let x = |lane: usize| &sources[lanes[lane].source()].x;
        C::load(self.token, each_lane(x))
    }

    /// Writes a coordinate of the active lanes.
    #[inline(always)]
    fn store_lanes(
        self,
        targets: &mut [Point<C::Stored>],
        lanes: &[Addition; LANES],
        active: u8,
        values: &C,
        coordinate: impl Fn(&mut Point<C::Stored>) -> &mut C::Stored,
    ) {
        let rows = values.rows(self.token);
        each_lane(|lane| {
            if active >> lane & 1 != 0 {
                let target = &mut targets[lanes[lane].target as usize];
                C::store(&rows, lane, coordinate(target));
            }
        });
    }
}

#[cfg(test)]
mod tests;
