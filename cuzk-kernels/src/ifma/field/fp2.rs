//! The quadratic extension of the base field, c0 + c1·i with i² = −1, eight
//! elements at a time: coordinates in G2.

use blst::blst_fp2;
use blstrs::{Fp as BlstFp, Fp2 as BlstFp2};

use super::Ifma;
use super::coordinate::Coordinate;
use super::element::{Modulus, add, carry, splat, sub};
use super::fp::{Fp, P};
use super::lanes::{LANES, Row, each_lane};
use super::wide::{reduce_wide, wide_product};
use super::words::BYTES;

/// Eight elements of the extension.
#[derive(Clone, Copy)]
pub(crate) struct Fp2 {
    pub(in crate::ifma) c0: Fp,
    pub(in crate::ifma) c1: Fp,
}

impl Fp2 {
    /// Montgomery form of blst's elements, below 1.2 p.
    #[inline(always)]
    pub(in crate::ifma) fn import(token: Ifma, from: [BlstFp2; LANES]) -> Fp2 {
        let [c0, c1] = components(from).map(|c| Fp::import(token, c));
        Fp2 { c0, c1 }
    }

    /// The inverse of [`Fp2::import`].
    pub(in crate::ifma) fn export(&self, token: Ifma) -> [BlstFp2; LANES] {
        join(self.c0.export(token), self.c1.export(token))
    }

    /// `self − other`, where `other` is below K·p. The result is below K·p more than `self`.
    #[inline(always)]
    pub(in crate::ifma) fn minus<const K: u64>(&self, other: &Fp2) -> Fp2 {
        self.zip(other, |a, b| a.sub_multiple::<K>(b))
    }

    /// The p-th power of a value below K·p.
    #[inline(always)]
    pub(in crate::ifma) fn conjugate<const K: u64>(&self) -> Fp2 {
        let zero = self.c1.sub_multiple::<K>(&self.c1);
        Fp2 {
            c0: self.c0,
            c1: zero.sub_multiple::<K>(&self.c1),
        }
    }

    /// Twice the value.
    #[inline(always)]
    pub(in crate::ifma) fn twice(&self) -> Fp2 {
        Coordinate::add(self, self)
    }

    /// The product with 1 + i of a value below K·p.
    #[inline(always)]
    pub(in crate::ifma) fn times_nonresidue<const K: u64>(&self) -> Fp2 {
        Fp2 {
            c0: self.c0.sub_multiple::<K>(&self.c1),
            c1: self.c0.add(&self.c1),
        }
    }

    /// The product with an element of the base field: below 1.1 p.
    #[inline(always)]
    pub(in crate::ifma) fn times_base(&self, factor: &Fp) -> Fp2 {
        Fp2 {
            c0: self.c0.mul(factor),
            c1: self.c1.mul(factor),
        }
    }

    /// The square of a value below K·p: below 2.2 p.
    #[inline(always)]
    pub(in crate::ifma) fn square_below<const K: u64>(&self) -> Fp2 {
        let sum = self.c0.add(&self.c1);
        let difference = self.c0.sub_multiple::<K>(&self.c1);
        let product = self.c0.mul(&self.c1);
        Fp2 {
            c0: sum.mul(&difference),
            c1: product.add(&product),
        }
    }

    /// Applies a function to both components of two elements.
    #[inline(always)]
    fn zip(&self, other: &Fp2, f: impl Fn(&Fp, &Fp) -> Fp) -> Fp2 {
        Fp2 {
            c0: f(&self.c0, &other.c0),
            c1: f(&self.c1, &other.c1),
        }
    }
}

/// Karatsuba's three products, and one reduction for each component.
///
/// The operand of the reduction is far below the radix times p, so the first component is
/// above −p even where the difference is negative.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in crate::ifma) fn product(a: &Fp2, b: &Fp2) -> Fp2 {
    let low = wide_product(&a.c0.limbs, &b.c0.limbs);
    let high = wide_product(&a.c1.limbs, &b.c1.limbs);
    let (a_sum, b_sum) = (a.c0.add(&a.c1), b.c0.add(&b.c1));
    let mut mixed = wide_product(&a_sum.limbs, &b_sum.limbs);
    let mut difference = low;
    for half in 0..2 {
        difference[half] = sub(&low[half], &high[half]);
        mixed[half] = sub(&sub(&mixed[half], &low[half]), &high[half]);
    }
    let difference = reduce_wide::<P, 8>(difference);
    Fp2 {
        c0: a.c0.with(carry(add(&difference, &splat(&P::LIMBS)))),
        c1: a.c0.with(carry(reduce_wide::<P, 8>(mixed))),
    }
}

fn components(values: [BlstFp2; LANES]) -> [[BlstFp; LANES]; 2] {
    let component = |c: usize| values.map(|value| BlstFp::from(blst_fp2::from(value).fp[c]));
    [component(0), component(1)]
}

/// c0 and c1, of which c1 is encoded first.
#[inline(always)]
fn encoded_components(from: [&[[u8; BYTES]; 2]; LANES]) -> [[&[u8; BYTES]; LANES]; 2] {
    [
        each_lane(|lane| &from[lane][1]),
        each_lane(|lane| &from[lane][0]),
    ]
}

fn join(c0: [BlstFp; LANES], c1: [BlstFp; LANES]) -> [BlstFp2; LANES] {
    std::array::from_fn(|lane| {
        let fp = [c0[lane].into(), c1[lane].into()];
        BlstFp2::from(blst_fp2 { fp })
    })
}

impl Coordinate for Fp2 {
    type Stored = [Row; 2];
    type Rows = [<Fp as Coordinate>::Rows; 2];
    type Base = BlstFp2;

    #[inline(always)]
    fn one(token: Ifma) -> Fp2 {
        let one = Fp::one(token);
        let zero = Fp::splat(token, [0; 8]);
        Fp2 { c0: one, c1: zero }
    }

    #[inline(always)]
    fn load(token: Ifma, from: [&[Row; 2]; LANES]) -> Fp2 {
        Fp2 {
            c0: Coordinate::load(token, each_lane(|i| &from[i][0])),
            c1: Coordinate::load(token, each_lane(|i| &from[i][1])),
        }
    }

    #[inline(always)]
    fn difference(token: Ifma, a: [&[Row; 2]; LANES], b: [&[Row; 2]; LANES]) -> (Fp2, u8) {
        let first = (each_lane(|i| &a[i][0]), each_lane(|i| &b[i][0]));
        let second = (each_lane(|i| &a[i][1]), each_lane(|i| &b[i][1]));
        let (c0, unusual0) = Fp::difference(token, first.0, first.1);
        let (c1, unusual1) = Fp::difference(token, second.0, second.1);
        (Fp2 { c0, c1 }, unusual0 & unusual1)
    }

    #[inline(always)]
    fn rows(&self, token: Ifma) -> Self::Rows {
        [self.c0.rows(token), self.c1.rows(token)]
    }

    #[inline(always)]
    fn store(rows: &Self::Rows, lane: usize, to: &mut [Row; 2]) {
        Fp::store(&rows[0], lane, &mut to[0]);
        Fp::store(&rows[1], lane, &mut to[1]);
    }

    #[inline(always)]
    fn mul(&self, other: &Fp2) -> Fp2 {
        super::extension_product(self.c0.token(), self, other)
    }

    /// Complex squaring: two products.
    #[inline(always)]
    fn square(&self) -> Fp2 {
        self.square_below::<32>()
    }

    #[inline(always)]
    fn add(&self, other: &Fp2) -> Fp2 {
        self.zip(other, Fp::add)
    }

    #[inline(always)]
    fn sub(&self, other: &Fp2) -> Fp2 {
        self.zip(other, Coordinate::sub)
    }

    #[inline(always)]
    fn signed_sub(&self, other: &Fp2, negative: u8) -> Fp2 {
        self.zip(other, |a, b| Coordinate::signed_sub(a, b, negative))
    }

    #[inline(always)]
    fn sub_reduced(&self, a: &Fp2) -> Fp2 {
        self.zip(a, Fp::sub_reduced)
    }

    #[inline(always)]
    fn sub_both_reduced(&self, a: &Fp2, b: &Fp2) -> Fp2 {
        Fp2 {
            c0: self.c0.sub_both_reduced(&a.c0, &b.c0),
            c1: self.c1.sub_both_reduced(&a.c1, &b.c1),
        }
    }

    #[inline(always)]
    fn blend(&self, other: &Fp2, mask: u8) -> Fp2 {
        self.zip(other, |a, b| Coordinate::blend(a, b, mask))
    }

    #[inline(always)]
    fn is_zero(&self) -> u8 {
        Coordinate::is_zero(&self.c0) & Coordinate::is_zero(&self.c1)
    }

    /// The conjugate over the norm.
    fn invert(&self, token: Ifma) -> Fp2 {
        let norm = self.c0.square().add(&self.c1.square());
        let inverse = norm.invert(token);
        let zero = Fp::splat(token, [0; 8]);
        Fp2 {
            c0: self.c0.mul(&inverse),
            c1: zero.sub_multiple::<2>(&self.c1.mul(&inverse)),
        }
    }

    #[inline(always)]
    fn import_x(token: Ifma, from: [BlstFp2; LANES]) -> Fp2 {
        let [c0, c1] = components(from).map(|c| Fp::import_x(token, c));
        Fp2 { c0, c1 }
    }

    #[inline(always)]
    fn import_y(token: Ifma, from: [BlstFp2; LANES]) -> Fp2 {
        let [c0, c1] = components(from).map(|c| Fp::import_y(token, c));
        Fp2 { c0, c1 }
    }

    type Encoded = [[u8; BYTES]; 2];

    #[inline(always)]
    fn decode_x(token: Ifma, from: [&Self::Encoded; LANES]) -> Option<Fp2> {
        let [c0, c1] = encoded_components(from).map(|c| Fp::decode_x(token, c));
        Some(Fp2 { c0: c0?, c1: c1? })
    }

    #[inline(always)]
    fn decode_y(token: Ifma, from: [&Self::Encoded; LANES]) -> Option<Fp2> {
        let [c0, c1] = encoded_components(from).map(|c| Fp::decode_y(token, c));
        Some(Fp2 { c0: c0?, c1: c1? })
    }

    fn minus_b(token: Ifma) -> Fp2 {
        let component = Fp::minus_b(token);
        Fp2 {
            c0: component,
            c1: component,
        }
    }

    fn export_x(&self, token: Ifma) -> [BlstFp2; LANES] {
        join(self.c0.export_x(token), self.c1.export_x(token))
    }

    fn export_y(&self, token: Ifma) -> [BlstFp2; LANES] {
        join(self.c0.export_y(token), self.c1.export_y(token))
    }

    fn infinity() -> [Row; 2] {
        [Fp::infinity(); 2]
    }

    #[inline(always)]
    fn is_infinity(x: &[Row; 2]) -> bool {
        Fp::is_infinity(&x[0])
    }

    #[inline(always)]
    fn infinite(&self) -> u8 {
        self.c0.infinite()
    }

    fn equal(a: &[Row; 2], b: &[Row; 2]) -> bool {
        Fp::equal(&a[0], &b[0]) && Fp::equal(&a[1], &b[1])
    }

    fn negative(a: &[Row; 2]) -> [Row; 2] {
        [Fp::negative(&a[0]), Fp::negative(&a[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::super::coordinate::tests::check_coordinate;
    use super::*;

    #[test]
    fn operations_agree_with_blst() {
        check_coordinate::<Fp2>();
    }
}
