//! Points doubled in batches, eight at a time.
//!
//! Not additions: no point is of order two, so every denominator is twice a y.

use super::Ifma;
use super::field::coordinate::Coordinate;
use super::field::lanes::{LANES, each_lane};
use super::group::{Group, active_lanes};
use super::points::Point;

/// Computes the denominators of tangents and their running product.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) fn prepare_doubles<C: Coordinate>(
    token: Ifma,
    points: &[Point<C::Stored>],
    groups: &mut [Group<C>],
) -> C {
    let one = C::one(token);
    let mut product = one;
    for (points, group) in points.chunks(LANES).zip(groups) {
        let lane = |lane: usize| &points[lane.min(points.len() - 1)];
        let x = C::load(token, each_lane(|i| &lane(i).x));
        let y = C::load(token, each_lane(|i| &lane(i).y));
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
pub(super) fn complete_doubles<C: Coordinate>(
    points: &mut [Point<C::Stored>],
    groups: &[Group<C>],
    mut inverse: C,
    token: Ifma,
) {
    for (points, group) in points.chunks_mut(LANES).zip(groups).rev() {
        let this_inverse = inverse.mul(&group.prefix);
        inverse = inverse.mul(&group.denominator);
        let last = points.len() - 1;
        let x = C::load(token, each_lane(|i| &points[i.min(last)].x));
        let y = C::load(token, each_lane(|i| &points[i.min(last)].y));
        let square = x.square();
        let slope = square.add(&square).add(&square).mul(&this_inverse);
        let x3 = slope.square().sub_both_reduced(&x, &x);
        let y3 = slope.mul(&x.sub(&x3)).sub_reduced(&y);
        let (x, y) = (x3.rows(token), y3.rows(token));
        for (lane, point) in points.iter_mut().enumerate() {
            if group.active >> lane & 1 != 0 {
                C::store(&x, lane, &mut point.x);
                C::store(&y, lane, &mut point.y);
            }
        }
    }
}
