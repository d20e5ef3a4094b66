//! The base field of BLS12-381, eight elements at a time: coordinates in G1.

use std::arch::x86_64::*;

use blst::blst_fp;
use blstrs::Fp as BlstFp;
use ff::Field;

use super::Ifma;
use super::assembly::Constants;
use super::coordinate::Coordinate;
use super::element::{Element, Modulus, carry, multiple, splat, sub};
use super::lanes::{LANES, Row, load, load_difference, read, rows, store, to_limbs, to_words};
use super::powers::{negated, power_of_two, reduce_once, words_of_inverse_power_of_two};
use super::words::BYTES;
use crate::arithmetic::CHARACTERISTIC;

/// Marks infinity in the last limb of x, where no coordinate reaches.
const INFINITY: u64 = 1 << 40;

/// The base field.
#[derive(Clone, Copy)]
pub(crate) struct P;

impl Modulus<8> for P {
    const LIMBS: [u64; 8] = to_limbs(&CHARACTERISTIC);
    const NEGATIVE_INVERSE: u64 = 0x3_fffc_fffc_fffd;
}

/// The constants of the modulus that products read.
pub(in crate::ifma) static CONSTANTS: Constants = Constants::new(P::LIMBS, P::NEGATIVE_INVERSE);

/// Eight elements of the base field.
pub(crate) type Fp = Element<P, 8>;

/// Montgomery form of 1.
const ONE: [u64; 8] = power_of_two(416);
/// Factor that takes our x, a number, to blst's Montgomery form: 2^384.
const EXPORT_X: [u64; 8] = power_of_two(384 + 416);
/// Factor that takes our y, a number over 2^208, to blst's Montgomery form: 2^592.
const EXPORT_Y: [u64; 8] = power_of_two(384 + 208 + 416);
/// Factor that takes a Montgomery form to blst's: 2^384.
const EXPORT: [u64; 8] = power_of_two(384);
/// Factor that takes blst's inverse of a Montgomery form to the Montgomery
/// form of the inverse: 2^64.
const INVERSE: [u64; 8] = power_of_two(480);
/// Minus Montgomery form of 4u⁶ with u = 2^-208, the constant of the curve in
/// G1 and each component of that in G2.
const MINUS_B: [u64; 8] = to_limbs(&negated(&words_of_inverse_power_of_two(6 * 208 - 416 - 2)));

/// The corrections that [`Fp::reduce`] adds, by the quotient of the last limb by 2^17,
/// modulo eight. Row j holds limb j of the multiples 1, −1, −2, −3, 5, 4, 3 and 2 of p.
const CORRECTIONS: [[i64; 8]; 8] = {
    let factors = [1i64, -1, -2, -3, 5, 4, 3, 2];
    let mut table = [[0; 8]; 8];
    let mut i = 0;
    while i < 8 {
        let limbs = multiple(&P::LIMBS, factors[i].unsigned_abs());
        let mut j = 0;
        while j < 8 {
            table[j][i] = limbs[j].cast_signed() * factors[i].signum();
            j += 1;
        }
        i += 1;
    }
    table
};

impl Fp {
    /// Montgomery product: below p + ab / 2^416.
    #[inline(always)]
    pub(in crate::ifma) fn mul(&self, other: &Fp) -> Fp {
        self.with(super::base_product(self.token(), &self.limbs, &other.limbs))
    }

    /// Montgomery square: below p + a² / 2^416.
    #[inline(always)]
    pub(in crate::ifma) fn square(&self) -> Fp {
        self.with(super::base_square(self.token(), &self.limbs))
    }

    /// Adds the multiple of p that brings a value in (−4.9 p, 4.9 p), with
    /// limbs not carried, to (0, 2.25 p).
    #[inline(always)]
    fn reduce(&self) -> Fp {
        self.with(super::base_reduce(self.token(), self.limbs))
    }

    /// The difference, with limbs not carried.
    #[inline(always)]
    fn sub_lazy(&self, other: &Fp) -> Fp {
        self.with(super::sub(self.token(), &self.limbs, &other.limbs))
    }

    /// Montgomery form of blst's elements, below 1.2 p.
    #[inline(always)]
    pub(in crate::ifma) fn import(token: Ifma, from: [BlstFp; LANES]) -> Fp {
        Fp::from_blst::<32>(token, from).mul(&Fp::splat(token, ONE))
    }

    /// The inverse of [`Fp::import`], of a value below 2^16 p.
    pub(in crate::ifma) fn export(&self, token: Ifma) -> [BlstFp; LANES] {
        self.to_blst(token, &EXPORT)
    }

    /// The product with a constant, as blst's limbs.
    fn to_blst(self, token: Ifma, factor: &[u64; 8]) -> [BlstFp; LANES] {
        let scaled = self.mul(&Fp::splat(token, *factor));
        let rows = scaled.rows(token);
        std::array::from_fn(|lane| {
            let mut limbs = Row([0; 8]);
            store(rows[lane], &mut limbs);
            let l = reduce_once(&to_words(&limbs.0));
            BlstFp::from(blst_fp { l })
        })
    }

    /// Big-endian numbers, as they are; `None` if one is not below p.
    #[inline(always)]
    fn decode(token: Ifma, from: [&[u8; BYTES]; LANES]) -> Option<Fp> {
        let numbers = super::limbs::<0>(token, &super::load_encoded(token, from));
        let reduced = super::below_modulus(token, &numbers);
        (reduced == u8::MAX).then(|| Fp::from_limbs(token, numbers))
    }

    /// blst's words as they are, times 2^`SHIFT`.
    #[inline(always)]
    fn from_blst<const SHIFT: usize>(token: Ifma, from: [BlstFp; LANES]) -> Fp {
        let words = from.map(|value| blst_fp::from(value).l);
        let columns = super::load_words(token, words.each_ref());
        Fp::from_limbs(token, super::limbs::<SHIFT>(token, &columns))
    }

    /// The value over 2^(52·`LOW`): below p more than that.
    #[inline(always)]
    fn reduce_low<const LOW: usize>(&self) -> Fp {
        self.with(super::base_reduce_low::<LOW>(self.token(), &self.limbs))
    }
}

/// The last limb of p has 17 bits, so its quotient by 2^17 says within which
/// multiples of p a value lies.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn reduce(mut limbs: [__m512i; 8]) -> [__m512i; 8] {
    let quotient = _mm512_srli_epi64::<17>(limbs[7]);
    for (limb, table) in limbs.iter_mut().zip(&CORRECTIONS) {
        let table = read(bytemuck::cast_ref(table));
        *limb = _mm512_add_epi64(*limb, _mm512_permutexvar_epi64(quotient, table));
    }
    carry(limbs)
}

/// The lanes of carried limbs whose value is below p.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::ifma) fn below_modulus(limbs: &[__m512i; 8]) -> u8 {
    let difference = carry(sub(limbs, &splat(&P::LIMBS)));
    _mm512_movepi64_mask(difference[7])
}

/// The lanes of a difference's last limb of which one side, and not the other,
/// is marked as infinite.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::ifma) fn far(limb: __m512i) -> u8 {
    // Coordinates have 19 bits there at most, and infinity is a bit far above.
    let middle = _mm512_set1_epi64((INFINITY / 2).cast_signed());
    let end = _mm512_set1_epi64(INFINITY.cast_signed());
    _mm512_cmpge_epu64_mask(_mm512_add_epi64(limb, middle), end)
}

/// The value of stored limbs, fully reduced.
fn canonical(row: &Row) -> [u64; 6] {
    let words = to_words(&row.0);
    reduce_once(&reduce_once(&words))
}

impl Coordinate for Fp {
    type Stored = Row;
    type Rows = [__m512i; LANES];
    type Base = BlstFp;

    #[inline(always)]
    fn one(token: Ifma) -> Fp {
        Fp::splat(token, ONE)
    }

    #[inline(always)]
    fn load(token: Ifma, from: [&Row; LANES]) -> Fp {
        Fp::from_limbs(token, load(token, from))
    }

    #[inline(always)]
    fn difference(token: Ifma, a: [&Row; LANES], b: [&Row; LANES]) -> (Fp, u8) {
        let difference = Fp::from_limbs(token, load_difference(token, a, b));
        let far = super::far(token, difference.limbs[7]);
        let factor = difference.add_multiple::<3>();
        (factor, far | Element::perhaps_zero(&factor))
    }

    #[inline(always)]
    fn rows(&self, token: Ifma) -> [__m512i; LANES] {
        rows(token, self.limbs)
    }

    #[inline(always)]
    fn store(rows: &[__m512i; LANES], lane: usize, to: &mut Row) {
        store(rows[lane], to);
    }

    #[inline(always)]
    fn mul(&self, other: &Fp) -> Fp {
        Fp::mul(self, other)
    }

    #[inline(always)]
    fn square(&self) -> Fp {
        Fp::square(self)
    }

    #[inline(always)]
    fn add(&self, other: &Fp) -> Fp {
        Element::add(self, other)
    }

    #[inline(always)]
    fn sub(&self, other: &Fp) -> Fp {
        self.sub_multiple::<3>(other)
    }

    #[inline(always)]
    fn signed_sub(&self, other: &Fp, negative: u8) -> Fp {
        self.signed_sub_multiple::<6>(other, negative)
    }

    #[inline(always)]
    fn sub_reduced(&self, a: &Fp) -> Fp {
        self.sub_lazy(a).reduce()
    }

    #[inline(always)]
    fn sub_both_reduced(&self, a: &Fp, b: &Fp) -> Fp {
        self.sub_lazy(a).sub_lazy(b).reduce()
    }

    #[inline(always)]
    fn blend(&self, other: &Fp, mask: u8) -> Fp {
        Element::blend(self, other, mask)
    }

    #[inline(always)]
    fn is_zero(&self) -> u8 {
        Element::is_zero(self)
    }

    fn invert(&self, token: Ifma) -> Fp {
        let mut values = self.to_blst(token, &ONE);
        invert_all(&mut values);
        Fp::from_blst::<0>(token, values).mul(&Fp::splat(token, INVERSE))
    }

    /// 2^384 in 416 bits, less 32.
    #[inline(always)]
    fn import_x(token: Ifma, from: [BlstFp; LANES]) -> Fp {
        Fp::from_blst::<32>(token, from).reduce_low::<8>()
    }

    #[inline(always)]
    fn import_y(token: Ifma, from: [BlstFp; LANES]) -> Fp {
        Fp::import_x(token, from).reduce_low::<4>()
    }

    type Encoded = [u8; BYTES];

    #[inline(always)]
    fn decode_x(token: Ifma, from: [&[u8; BYTES]; LANES]) -> Option<Fp> {
        Fp::decode(token, from)
    }

    #[inline(always)]
    fn decode_y(token: Ifma, from: [&[u8; BYTES]; LANES]) -> Option<Fp> {
        Some(Fp::decode(token, from)?.reduce_low::<4>())
    }

    fn minus_b(token: Ifma) -> Fp {
        Fp::splat(token, MINUS_B)
    }

    fn export_x(&self, token: Ifma) -> [BlstFp; LANES] {
        self.to_blst(token, &EXPORT_X)
    }

    fn export_y(&self, token: Ifma) -> [BlstFp; LANES] {
        self.to_blst(token, &EXPORT_Y)
    }

    fn infinity() -> Row {
        Row([0, 0, 0, 0, 0, 0, 0, INFINITY])
    }

    #[inline(always)]
    fn is_infinity(x: &Row) -> bool {
        x.0[7] == INFINITY
    }

    #[inline(always)]
    fn infinite(&self) -> u8 {
        super::lanes_equal(self.token(), self.limbs[7], INFINITY)
    }

    fn equal(a: &Row, b: &Row) -> bool {
        canonical(a) == canonical(b)
    }

    fn negative(a: &Row) -> Row {
        let l = canonical(a);
        let negative = -BlstFp::from(blst_fp { l });
        Row(to_limbs(&blst_fp::from(negative).l))
    }
}

/// Replaces values, none of which is zero, by their inverses.
fn invert_all(values: &mut [BlstFp; LANES]) {
    let mut prefixes = [BlstFp::ONE; LANES];
    let mut product = BlstFp::ONE;
    for (prefix, value) in prefixes.iter_mut().zip(values.iter()) {
        *prefix = product;
        product *= value;
    }
    let mut inverse = product.invert().unwrap_or(BlstFp::ZERO);
    for (value, prefix) in values.iter_mut().zip(&prefixes).rev() {
        let this = inverse * prefix;
        inverse *= *value;
        *value = this;
    }
}

#[cfg(test)]
mod tests {
    use super::super::coordinate::tests::check_coordinate;
    use super::*;

    #[test]
    fn operations_agree_with_blst() {
        check_coordinate::<Fp>();
    }
}
