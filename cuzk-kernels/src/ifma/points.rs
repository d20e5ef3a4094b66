//! Points in memory, and their conversion from and to the callers' forms.

use super::Ifma;
use super::field::coordinate::Coordinate;
use super::field::lanes::{LANES, each_lane};
use crate::affine::Coordinates;

/// A point in memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Point<S> {
    pub(super) x: S,
    pub(super) y: S,
}

impl<S> Point<S> {
    /// Returns the neutral element.
    pub(super) fn infinity<C: Coordinate<Stored = S>>() -> Self {
        Point {
            x: C::infinity(),
            y: C::infinity(),
        }
    }
}

/// Converts eight points, or the first of them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn import_group<A, C>(token: Ifma, from: &[A; LANES], to: &mut [Point<C::Stored>])
where
    A: Coordinates<Base = C::Base>,
    C: Coordinate,
{
    let x = C::import_x(token, from.each_ref().map(A::x)).rows(token);
    let y = C::import_y(token, from.each_ref().map(A::y)).rows(token);
    for (lane, (to, from)) in to.iter_mut().zip(from).enumerate() {
        if bool::from(from.is_identity()) {
            *to = Point::infinity::<C>();
        } else {
            C::store(&x, lane, &mut to.x);
            C::store(&y, lane, &mut to.y);
        }
    }
}

/// Reads the encoded points with these indices. Returns true if all are there, and on the
/// curve.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn decode<C: Coordinate>(
    token: Ifma,
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
        decode_group::<C>(token, each_lane(point), to)
    })
}

/// Reads encoded points. Returns true if all are on the curve. Points whose x is zero are refused,
/// as blst does: their order is three.
///
/// All limbs of the equation are compared. A forger can make the lowest limb fit. The other limbs take
/// 3 of 33 ns a point in G1, and 4 of 113 ns in G2. That was measured once with and without them in
/// turns, for 2^12 points on one thread of a busy Intel Xeon (family 6, model 207).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
fn decode_group<C: Coordinate>(
    token: Ifma,
    from: [&[C::Encoded; 2]; LANES],
    to: &mut [Point<C::Stored>],
) -> bool {
    let x = C::decode_x(token, each_lane(|lane| &from[lane][0]));
    let y = C::decode_y(token, each_lane(|lane| &from[lane][1]));
    let (Some(x), Some(y)) = (x, y) else {
        return false;
    };
    let cube_and_b = x.square().mul(&x).sub_reduced(&C::minus_b(token));
    let on_curve = y.square().sub_reduced(&cube_and_b).is_zero() & !x.is_zero();
    let (x, y) = (x.rows(token), y.rows(token));
    for (lane, to) in to.iter_mut().enumerate() {
        C::store(&x, lane, &mut to.x);
        C::store(&y, lane, &mut to.y);
    }
    on_curve == u8::MAX
}

/// Converts eight points back, or the first of them.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) fn export_group<A, C>(token: Ifma, from: &[Point<C::Stored>], to: &mut [A])
where
    A: Coordinates<Base = C::Base>,
    C: Coordinate,
{
    let lane = |i: usize| &from[i.min(from.len() - 1)];
    let points: [&Point<C::Stored>; LANES] = std::array::from_fn(lane);
    let x = C::load(token, points.map(|point| &point.x)).export_x(token);
    let y = C::load(token, points.map(|point| &point.y)).export_y(token);
    for (lane, (to, from)) in to.iter_mut().zip(from).enumerate() {
        *to = if C::is_infinity(&from.x) {
            A::identity()
        } else {
            A::from_xy(x[lane], y[lane])
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::fp::Fp;
    use super::super::field::fp2::Fp2;
    use super::*;
    use blstrs::{Fp as BlstFp, Fp2 as BlstFp2};
    use ff::Field;

    /// y² − x³ − 4 of the forged points. Its residue in the lanes is 2^52, whose lowest limb is
    /// that of zero. On the isomorphic curve the value is 2^-1248 times this one. Its
    /// Montgomery form is 2^416 times that.
    fn forged_difference() -> BlstFp {
        (0..1248 - 416 + 52).fold(BlstFp::ONE, |power, _| power.double())
    }

    /// The coordinates of a point off its curve by `difference`.
    fn off_by<F: Field>(b: F, difference: F) -> (F, F) {
        let mut x = F::ONE;
        loop {
            let y: Option<F> = (x.square() * x + b + difference).sqrt().into();
            match y {
                Some(y) => return (x, y),
                None => x += F::ONE,
            }
        }
    }

    fn accepted<C: Coordinate>(token: Ifma, point: [C::Encoded; 2]) -> bool {
        let mut to = vec![Point::infinity::<C>(); 1];
        crate::ifma::decode::<C>(token, &[point], &[0], &mut to)
    }

    #[test]
    fn a_point_whose_lowest_limb_is_forged_is_refused() {
        let Some(token) = crate::testing::token() else {
            return;
        };
        let four = BlstFp::ONE.double().double();
        let encoded = |(x, y): (BlstFp, BlstFp)| [x.to_bytes_be(), y.to_bytes_be()];
        assert!(accepted::<Fp>(token, encoded(off_by(four, BlstFp::ZERO))));
        for difference in [forged_difference(), -forged_difference(), BlstFp::ONE] {
            assert!(!accepted::<Fp>(token, encoded(off_by(four, difference))));
        }
    }

    #[test]
    fn a_point_of_g2_with_a_forged_component_is_refused() {
        let Some(token) = crate::testing::token() else {
            return;
        };
        let four = BlstFp::ONE.double().double();
        let b = BlstFp2::new(four, four);
        let component = |f: BlstFp2| [f.c1().to_bytes_be(), f.c0().to_bytes_be()];
        let encoded = |(x, y): (BlstFp2, BlstFp2)| [component(x), component(y)];
        assert!(accepted::<Fp2>(token, encoded(off_by(b, BlstFp2::ZERO))));
        let forged = forged_difference();
        for difference in [
            BlstFp2::new(forged, BlstFp::ZERO),
            BlstFp2::new(BlstFp::ZERO, forged),
            BlstFp2::new(forged, -forged),
        ] {
            assert!(!accepted::<Fp2>(token, encoded(off_by(b, difference))));
        }
    }
}
