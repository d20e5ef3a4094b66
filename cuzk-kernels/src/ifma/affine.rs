//! Batched affine additions, eight at a time.

#![allow(unsafe_code)] // enters functions that enable the instructions, and points are plain data

use std::marker::PhantomData;

use blstrs::{G1Affine, G2Affine};
use bytemuck::{Pod, Zeroable};

use super::Ifma;
use super::coordinate::Coordinate;
use super::fp::Fp;
use super::fp2::Fp2;
use super::lanes::{LANES, each_lane, lanes_with};
use crate::affine::{Addition, BATCH, Coordinates, Kernel, prefetch};
use crate::isa::Isa;
use cuzk_memory::Plain;

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

/// A point in memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Point<S> {
    x: S,
    y: S,
}

// SAFETY: any words are a point in memory, if not one of the curve, zeros too.
unsafe impl<S: Zeroable> Zeroable for Point<S> {}

// SAFETY: `repr(C)`, and two of the same type leave no padding between or after
// them; S is plain itself.
unsafe impl<S: Pod> Pod for Point<S> {}

// SAFETY: any words are one, and there is no padding.
unsafe impl<S: Pod + Send + Sync> Plain for Point<S> {}

/// Eight additions in progress. Nobody else reads one, since a coordinate proves the
/// instructions.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Group<C> {
    /// Denominators of the slopes, never zero.
    denominator: C,
    /// Product of the denominators before these.
    prefix: C,
    /// Lanes whose sum is still to be computed and stored.
    active: u8,
    /// Lanes that double a point.
    doubles: u8,
    /// What is left of a register.
    _rest: [u8; REGISTER_BYTES - 2],
}

/// Coordinates are of so many bytes, or a multiple.
const REGISTER_BYTES: usize = 64;

// SAFETY: any bytes are one: a coordinate is registers, all values of which are valid,
// and what only a token may give is not taken out without one (the fields are this
// module's). `repr(C)`, and what coordinates leave of a register is bytes.
unsafe impl<C: Coordinate> Plain for Group<C> {}

impl<C: Coordinate> Group<C> {
    fn new(token: Ifma) -> Group<C> {
        const {
            assert!(size_of::<C>().is_multiple_of(REGISTER_BYTES));
            assert!(size_of::<Self>() == 2 * size_of::<C>() + REGISTER_BYTES);
        }
        Group {
            denominator: C::one(token),
            prefix: C::one(token),
            active: 0,
            doubles: 0,
            _rest: [0; REGISTER_BYTES - 2],
        }
    }

    /// Whether all lanes add different points.
    #[inline(always)]
    fn is_usual(&self) -> bool {
        self.active == u8::MAX && self.doubles == 0
    }
}

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
        Point {
            x: C::infinity(),
            y: C::infinity(),
        }
    }

    fn import(self, from: &[A], to: &mut [Self::Point]) {
        for (from, to) in from.chunks(LANES).zip(to.chunks_mut(LANES)) {
            let point = |i: usize| from.get(i).copied().unwrap_or_else(A::identity);
            let points: [A; LANES] = std::array::from_fn(point);
            // SAFETY: the token proves the instructions.
            unsafe { self.import_group(&points, to) }
        }
    }

    fn import_encoded(self, encoded: &[u8], indices: &[u32], to: &mut [Self::Point]) -> bool {
        let point_bytes = size_of::<[C::Encoded; 2]>();
        let whole = encoded.len() / point_bytes * point_bytes;
        let Ok(encoded) = bytemuck::try_cast_slice(&encoded[..whole]) else {
            return false;
        };
        // SAFETY: the token proves the instructions.
        unsafe { self.decode(encoded, indices, to) }
    }

    fn export(self, from: &[Self::Point], to: &mut [A]) {
        for (from, to) in from.chunks(LANES).zip(to.chunks_mut(LANES)) {
            // SAFETY: the token proves the instructions.
            unsafe { self.export_group(from, to) }
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
        for batch in additions.chunks(BATCH) {
            // SAFETY: the token proves the instructions.
            unsafe {
                let product = self.prepare(targets, sources, batch, groups);
                self.complete(targets, sources, batch, groups, product.invert(self.token));
            }
        }
    }

    fn double(self, points: &mut [Self::Point], groups: &mut [Group<C>]) {
        for points in points.chunks_mut(BATCH) {
            // SAFETY: the token proves the instructions.
            unsafe {
                let product = self.prepare_doubles(points, groups);
                self.complete_doubles(points, groups, product.invert(self.token));
            }
        }
    }
}

impl<A, C> Affine<A, C>
where
    A: Coordinates<Base = C::Base>,
    C: Coordinate,
{
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
    fn import_group(self, from: &[A; LANES], to: &mut [Point<C::Stored>]) {
        let x = C::import_x(self.token, from.each_ref().map(A::x)).rows(self.token);
        let y = C::import_y(self.token, from.each_ref().map(A::y)).rows(self.token);
        for (lane, (to, from)) in to.iter_mut().zip(from).enumerate() {
            if bool::from(from.is_identity()) {
                *to = self.infinity();
            } else {
                C::store(&x, lane, &mut to.x);
                C::store(&y, lane, &mut to.y);
            }
        }
    }

    /// Reads the encoded points with these indices; whether all are there, and on the
    /// curve.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
    fn decode(
        self,
        encoded: &[[C::Encoded; 2]],
        indices: &[u32],
        to: &mut [Point<C::Stored>],
    ) -> bool {
        if indices.iter().any(|index| *index as usize >= encoded.len()) {
            return false;
        }
        let mut groups = indices.chunks(LANES).zip(to.chunks_mut(LANES));
        groups.all(|(indices, to)| {
            let last = indices.len() - 1;
            let point = |lane: usize| &encoded[indices[lane.min(last)] as usize];
            self.decode_group(each_lane(point), to)
        })
    }

    /// Reads encoded points; whether they are on the curve. By accident one in
    /// 2^49 that is not is taken for one that is, and a forger can make one:
    /// what is computed from points that nobody vouches for must be verified.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
    fn decode_group(self, from: [&[C::Encoded; 2]; LANES], to: &mut [Point<C::Stored>]) -> bool {
        let x = C::decode_x(self.token, each_lane(|lane| &from[lane][0]));
        let y = C::decode_y(self.token, each_lane(|lane| &from[lane][1]));
        let (Some(x), Some(y)) = (x, y) else {
            return false;
        };
        let cube_and_b = x.square().mul(&x).sub_reduced(&C::minus_b(self.token));
        let on_curve = y.square().sub_reduced(&cube_and_b).perhaps_zero();
        let (x, y) = (x.rows(self.token), y.rows(self.token));
        for (lane, to) in to.iter_mut().enumerate() {
            C::store(&x, lane, &mut to.x);
            C::store(&y, lane, &mut to.y);
        }
        on_curve == u8::MAX
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    fn export_group(self, from: &[Point<C::Stored>], to: &mut [A]) {
        let lane = |i: usize| &from[i.min(from.len() - 1)];
        let points: [&Point<C::Stored>; LANES] = std::array::from_fn(lane);
        let x = C::load(self.token, points.map(|point| &point.x)).export_x(self.token);
        let y = C::load(self.token, points.map(|point| &point.y)).export_y(self.token);
        for (lane, (to, from)) in to.iter_mut().zip(from).enumerate() {
            *to = if C::is_infinity(&from.x) {
                A::identity()
            } else {
                A::from_xy(x[lane], y[lane])
            };
        }
    }

    /// Computes the denominators and their running product, and carries out
    /// the additions that need none.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    fn prepare(
        self,
        targets: &mut [Point<C::Stored>],
        sources: &[Point<C::Stored>],
        batch: &[Addition],
        groups: &mut [Group<C>],
    ) -> C {
        let mut product = C::one(self.token);
        for (i, (chunk, group)) in batch.chunks(LANES).zip(groups).enumerate() {
            self.prefetch(targets, sources, batch, i + PREFETCH_GROUPS);
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
    fn complete(
        self,
        targets: &mut [Point<C::Stored>],
        sources: &[Point<C::Stored>],
        batch: &[Addition],
        groups: &[Group<C>],
        mut inverse: C,
    ) {
        for (i, (chunk, group)) in batch.chunks(LANES).zip(groups).enumerate().rev() {
            self.prefetch(targets, sources, batch, i.wrapping_sub(PREFETCH_GROUPS));
            let lanes = lanes_of(chunk);
            let this_inverse = inverse.mul(&group.prefix);
            if group.is_usual() {
                let slope = self.rise(targets, sources, &lanes).mul(&this_inverse);
                self.add(targets, sources, &lanes, u8::MAX, &slope);
            } else {
                self.complete_unusual(targets, sources, &lanes, group, &this_inverse);
            }
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

    /// Computes the denominators of tangents and their running product.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    fn prepare_doubles(self, points: &[Point<C::Stored>], groups: &mut [Group<C>]) -> C {
        let one = C::one(self.token);
        let mut product = one;
        for (points, group) in points.chunks(LANES).zip(groups) {
            let lane = |lane: usize| &points[lane.min(points.len() - 1)];
            let x = C::load(self.token, each_lane(|i| &lane(i).x));
            let y = C::load(self.token, each_lane(|i| &lane(i).y));
            let infinite = x.infinite();
            group.denominator = y.add(&y).blend(&one, infinite);
            group.prefix = product;
            group.active = active_lanes(points.len()) & !infinite;
            group.doubles = u8::MAX;
            product = product.mul(&group.denominator);
        }
        product
    }

    /// Computes and stores the doubles, last group first; `inverse` is that of
    /// the product of all denominators.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
    fn complete_doubles(
        self,
        points: &mut [Point<C::Stored>],
        groups: &[Group<C>],
        mut inverse: C,
    ) {
        for (points, group) in points.chunks_mut(LANES).zip(groups).rev() {
            let this_inverse = inverse.mul(&group.prefix);
            inverse = inverse.mul(&group.denominator);
            let last = points.len() - 1;
            let x = C::load(self.token, each_lane(|i| &points[i.min(last)].x));
            let y = C::load(self.token, each_lane(|i| &points[i.min(last)].y));
            let square = x.square();
            let slope = square.add(&square).add(&square).mul(&this_inverse);
            let x3 = slope.square().sub_both_reduced(&x, &x);
            let y3 = slope.mul(&x.sub(&x3)).sub_reduced(&y);
            let (x, y) = (x3.rows(self.token), y3.rows(self.token));
            for (lane, point) in points.iter_mut().enumerate() {
                if group.active >> lane & 1 != 0 {
                    C::store(&x, lane, &mut point.x);
                    C::store(&y, lane, &mut point.y);
                }
            }
        }
    }

    /// Asks for the points of a later group.
    #[inline(always)]
    fn prefetch(
        self,
        targets: &[Point<C::Stored>],
        sources: &[Point<C::Stored>],
        batch: &[Addition],
        group: usize,
    ) {
        for addition in batch.chunks(LANES).nth(group).unwrap_or_default() {
            prefetch(&targets[addition.target as usize]);
            prefetch(&sources[addition.source()]);
        }
    }
}

/// An addition for each lane; a short group repeats its last.
#[inline(always)]
fn lanes_of(chunk: &[Addition]) -> [Addition; LANES] {
    chunk.try_into().unwrap_or_else(|_| padded(chunk))
}

#[cold]
#[inline(never)]
fn padded(chunk: &[Addition]) -> [Addition; LANES] {
    each_lane(|lane| chunk[lane.min(chunk.len() - 1)])
}

/// The first `len` lanes.
#[inline(always)]
fn active_lanes(len: usize) -> u8 {
    u8::MAX >> (LANES - len)
}

/// The lanes whose source is subtracted.
#[inline(always)]
fn negative_lanes(token: Ifma, lanes: &[Addition; LANES]) -> u8 {
    lanes_with::<{ Addition::SIGN_BIT }>(token, &bytemuck::cast(*lanes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affine::CurveOf;
    use crate::affine::tests::check_kernel;
    use blstrs::Scalar;
    use ff::Field;
    use group::UncompressedEncoding;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Encoded points come out as decoded ones do, wherever they stand, and
    /// what is no point is noticed in every lane.
    fn check_encodings<A, C>(kernel: Affine<A, C>)
    where
        A: Coordinates<Base = C::Base> + UncompressedEncoding + From<CurveOf<Affine<A, C>>>,
        C: Coordinate,
    {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let points: Vec<A> = (0..21)
            .map(|_| (A::generator() * Scalar::random(&mut rng)).into())
            .collect();
        let encode = |point: &A| point.to_uncompressed().as_ref().to_vec();
        let encoded: Vec<Vec<u8>> = points.iter().map(encode).collect();
        for len in [1, 7, 8, 9, 21] {
            let indices: Vec<u32> = (0..len).map(|i| (i * 5 + 2) % 21).collect();
            let mut got = vec![kernel.infinity(); indices.len()];
            assert!(kernel.import_encoded(&encoded.concat(), &indices, &mut got));
            let mut decoded = vec![A::identity(); got.len()];
            kernel.export(&got, &mut decoded);
            let expected: Vec<A> = indices.iter().map(|i| points[*i as usize]).collect();
            assert_eq!(decoded, expected);
        }
        let indices: Vec<u32> = (0..21).collect();
        let mut to = vec![kernel.infinity(); 21];
        let point_bytes = encoded[0].len();
        for at in 0..21 {
            let good = encoded.concat();
            assert!(!kernel.import_encoded(&good[..good.len() - 1], &indices, &mut to));
            let start = at * point_bytes;
            for byte in [0, 1, point_bytes / 2 - 1, point_bytes / 2, point_bytes - 1] {
                let mut bad = good.clone();
                bad[start + byte] ^= 0x40;
                assert!(
                    !kernel.import_encoded(&bad, &indices, &mut to),
                    "{at} {byte}"
                );
            }
            let mut infinite = good.clone();
            infinite[start..start + point_bytes].copy_from_slice(&encode(&A::identity()));
            assert!(!kernel.import_encoded(&infinite, &indices, &mut to));
            let mut unreduced = good;
            unreduced[start..start + point_bytes].fill(0x1f);
            assert!(!kernel.import_encoded(&unreduced, &indices, &mut to));
        }
    }

    #[test]
    fn encoded_points_are_read_in_g1() {
        if let Some(token) = Ifma::detect() {
            check_encodings(G1::new(token));
        }
    }

    #[test]
    fn encoded_points_are_read_in_g2() {
        if let Some(token) = Ifma::detect() {
            check_encodings(G2::new(token));
        }
    }

    #[test]
    fn g1_additions_agree_with_the_group_law() {
        if let Some(token) = Ifma::detect() {
            check_kernel(G1::new(token));
        }
    }

    #[test]
    fn g2_additions_agree_with_the_group_law() {
        if let Some(token) = Ifma::detect() {
            check_kernel(G2::new(token));
        }
    }
}
