//! Coordinates of eight points, and their operations.
//!
//! There are three kinds of values, all in limbs of 52 bits. *Stored* values, below 2.25 p
//! in each component, are the coordinates of points in memory. *Products* are below 4.2 p.
//! Every result is a *factor*, below 32 p.
//!
//! Montgomery's radix is 2^416. Instead of multiplying x and y by that, points
//! move to the isomorphic curve of (u²x, u³y) with u = 2^-208. There the number
//! x is its own Montgomery form, and that of y is y / 2^208, which is half of a
//! reduction. The addition law does not see the difference.

use bytemuck::Pod;
use ff::Field;

use super::Ifma;
use super::lanes::LANES;

/// A coordinate of eight points.
pub(crate) trait Coordinate: Copy + Send + Sync + 'static {
    /// The coordinate of one point in memory.
    type Stored: Pod + Send + Sync;
    /// The rows of a transposed value.
    type Rows;
    /// The coordinate as blst has it.
    type Base: Field;

    fn one(token: Ifma) -> Self;
    fn load(token: Ifma, from: [&Self::Stored; LANES]) -> Self;
    /// `a − b` of stored x, and the lanes where it may be zero or where one of them
    /// marks infinity.
    fn difference(token: Ifma, a: [&Self::Stored; LANES], b: [&Self::Stored; LANES]) -> (Self, u8);
    fn rows(&self, token: Ifma) -> Self::Rows;
    fn store(rows: &Self::Rows, lane: usize, to: &mut Self::Stored);

    /// A product of factors.
    fn mul(&self, other: &Self) -> Self;
    /// A product.
    fn square(&self) -> Self;
    /// A sum, to be used as a factor only.
    fn add(&self, other: &Self) -> Self;
    /// `self − other` of stored values.
    fn sub(&self, other: &Self) -> Self;
    /// `±self − other` of stored values, negated in the lanes of `negative`.
    fn signed_sub(&self, other: &Self, negative: u8) -> Self;
    /// `self − a`, fit to be stored, of a product and a stored value.
    fn sub_reduced(&self, a: &Self) -> Self;
    /// `self − a − b`, fit to be stored, of a product and stored values.
    fn sub_both_reduced(&self, a: &Self, b: &Self) -> Self;
    /// The lanes of `other` where `mask` has a bit, else those of `self`.
    fn blend(&self, other: &Self, mask: u8) -> Self;
    /// The lanes of a stored value that are zero modulo p.
    fn is_zero(&self) -> u8;
    /// The inverse of a product, none of whose lanes is zero.
    fn invert(&self, token: Ifma) -> Self;

    /// An x of blst's curve.
    fn import_x(token: Ifma, from: [Self::Base; LANES]) -> Self;
    /// A y of blst's curve.
    fn import_y(token: Ifma, from: [Self::Base; LANES]) -> Self;
    /// The bytes of a coordinate as it is encoded: big-endian, canonical.
    type Encoded: Pod;
    /// An x of blst's curve from encodings; `None` if one is not reduced.
    fn decode_x(token: Ifma, from: [&Self::Encoded; LANES]) -> Option<Self>;
    /// A y of blst's curve from encodings; `None` if one is not reduced.
    fn decode_y(token: Ifma, from: [&Self::Encoded; LANES]) -> Option<Self>;
    /// −b, where y² = x³ + b is the isomorphic curve; fit to be stored.
    fn minus_b(token: Ifma) -> Self;

    /// An x for blst.
    fn export_x(&self, token: Ifma) -> [Self::Base; LANES];
    /// A y for blst.
    fn export_y(&self, token: Ifma) -> [Self::Base; LANES];

    /// The x that marks infinity.
    fn infinity() -> Self::Stored;
    /// Returns true if a stored x marks infinity.
    fn is_infinity(x: &Self::Stored) -> bool;
    /// The lanes of an x that mark infinity.
    fn infinite(&self) -> u8;
    /// Returns true if two stored values are equal modulo p.
    fn equal(a: &Self::Stored, b: &Self::Stored) -> bool;
    /// The negative of a stored value.
    fn negative(a: &Self::Stored) -> Self::Stored;
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::lanes::each_lane;
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// The property every coordinate has: operations agree with blst's field.
    ///
    /// An imported value stands for itself times 2^-416, so a product of two
    /// comes back times 2^-416, and the inverse of a product times 2^1248.
    pub(crate) fn check_coordinate<C: Coordinate>() {
        let Some(token) = crate::testing::token() else {
            return;
        };
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let shift = (0..416).fold(C::Base::ONE, |power, _| power.double());
        for _ in 0..20 {
            let mut random = || -> [C::Base; LANES] {
                each_lane(|lane| match lane {
                    0 => -C::Base::ONE,
                    _ => C::Base::random(&mut rng),
                })
            };
            let (a, b) = (random(), random());
            let (x, y) = (C::import_x(token, a), C::import_x(token, b));
            let check = |result: C, expected: &dyn Fn(usize) -> C::Base| {
                assert_eq!(result.export_x(token), std::array::from_fn(expected));
            };
            check(x, &|i| a[i]);
            check(x.mul(&y).mul(&C::one(token)), &|i| {
                a[i] * b[i] * inverse(shift)
            });
            check(x.square(), &|i| a[i].square() * inverse(shift));
            check(x.add(&y), &|i| a[i] + b[i]);
            check(x.sub(&y), &|i| a[i] - b[i]);
            check(x.signed_sub(&y, 0x55), &|i| match i % 2 {
                0 => -a[i] - b[i],
                _ => a[i] - b[i],
            });
            check(x.mul(&y).sub_both_reduced(&x, &y), &|i| {
                a[i] * b[i] * inverse(shift) - a[i] - b[i]
            });
            check(x.square().sub_reduced(&y), &|i| {
                a[i].square() * inverse(shift) - b[i]
            });
            check(x.mul(&y).invert(token), &|i| {
                inverse(a[i] * b[i]) * shift * shift * shift
            });
        }
    }

    fn inverse<F: Field>(value: F) -> F {
        value.invert().unwrap()
    }
}
