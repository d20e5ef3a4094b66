//! Elements of both fields and of the extension, eight at a time, and their operations.
//!
//! Not kernels. Elements are operated on by `inline(always)` functions, which cannot enable the
//! instructions. They call functions of this file with a token. Those are inlined into them, and
//! with them into a kernel. Invariant: the functions that are called here require the
//! instructions and nothing else, so that the token alone makes their calls safe.

#![allow(unsafe_code)] // calls functions that enable the instructions

mod assembly;
pub(super) mod coordinate;
mod element;
pub(super) mod fp;
pub(super) mod fp2;
pub(super) mod fr;
pub(super) mod lanes;
mod powers;
mod product;
mod wide;
mod words;

use std::arch::x86_64::*;

use crate::token::Ifma;
use element::Modulus;
use fp::{CONSTANTS, P};
use fp2::Fp2;
use fr::{Fr, R, Words};
use lanes::LANES;
use words::{BYTES, Columns, WORDS};

/// The limbs of eight elements.
type Limbs<const N: usize> = [__m512i; N];

/// See [`element::splat`].
#[inline(always)]
fn splat<const N: usize>(_: Ifma, limbs: &[u64; N]) -> Limbs<N> {
    // SAFETY: the token proves the instructions.
    unsafe { element::splat(limbs) }
}

/// See [`element::add`].
#[inline(always)]
fn add<const N: usize>(_: Ifma, a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
    // SAFETY: the token proves the instructions.
    unsafe { element::add(a, b) }
}

/// See [`element::sub`].
#[inline(always)]
fn sub<const N: usize>(_: Ifma, a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
    // SAFETY: the token proves the instructions.
    unsafe { element::sub(a, b) }
}

/// See [`element::carry`].
#[inline(always)]
fn carry<const N: usize>(_: Ifma, limbs: Limbs<N>) -> Limbs<N> {
    // SAFETY: the token proves the instructions.
    unsafe { element::carry(limbs) }
}

/// `a + b`, carried.
#[inline(always)]
fn add_carried<const N: usize>(_: Ifma, a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
    // SAFETY: the token proves the instructions.
    unsafe { element::carry(element::add(a, b)) }
}

/// `a + b` of the same `b` in all lanes, carried.
#[inline(always)]
fn add_splat_carried<const N: usize>(_: Ifma, a: &Limbs<N>, b: &[u64; N]) -> Limbs<N> {
    // SAFETY: the token proves the instructions.
    unsafe { element::carry(element::add(a, &element::splat(b))) }
}

/// `±a − b + c` of the same `c` in all lanes, carried; negated in the lanes of `negative`.
#[inline(always)]
fn signed_sub_carried<const N: usize>(
    _: Ifma,
    (a, negative): (&Limbs<N>, u8),
    b: &Limbs<N>,
    c: &[u64; N],
) -> Limbs<N> {
    // SAFETY: the token proves the instructions.
    unsafe {
        let base = element::sub(&element::splat(c), b);
        element::carry(element::add_signed(&base, a, negative))
    }
}

/// The limbs of `b` in the lanes of `mask`, else those of `a`.
#[inline(always)]
fn blend<const N: usize>(_: Ifma, a: &Limbs<N>, b: &Limbs<N>, mask: u8) -> Limbs<N> {
    let mut limbs = *a;
    for (limb, other) in limbs.iter_mut().zip(b) {
        // SAFETY: the token proves the instructions.
        *limb = unsafe { _mm512_mask_mov_epi64(*limb, mask, *other) };
    }
    limbs
}

/// The limbs times 2^`BITS`, carried.
#[inline(always)]
fn shift_carried<const BITS: u32, const N: usize>(_: Ifma, limbs: Limbs<N>) -> Limbs<N> {
    // SAFETY: the token proves the instructions.
    unsafe { element::carry(limbs.map(|limb| _mm512_slli_epi64::<BITS>(limb))) }
}

/// See [`element::perhaps_multiple`].
#[inline(always)]
fn perhaps_multiple<M: Modulus<N>, const N: usize>(_: Ifma, limb: __m512i) -> u8 {
    // SAFETY: the token proves the instructions.
    unsafe { element::perhaps_multiple::<M, N>(limb) }
}

/// See [`element::is_multiple`].
#[inline(always)]
fn is_multiple<M: Modulus<N>, const N: usize>(
    _: Ifma,
    limbs: &Limbs<N>,
    multiples: &[[u64; 8]; N],
) -> u8 {
    // SAFETY: the token proves the instructions.
    unsafe { element::is_multiple::<M, N>(limbs, multiples) }
}

/// The lanes of a limb that are this word.
#[inline(always)]
fn lanes_equal(_: Ifma, limb: __m512i, word: u64) -> u8 {
    // SAFETY: the token proves the instructions.
    unsafe { _mm512_cmpeq_epi64_mask(limb, _mm512_set1_epi64(word.cast_signed())) }
}

/// The product, carried.
#[inline(always)]
fn base_product(_: Ifma, a: &Limbs<8>, b: &Limbs<8>) -> Limbs<8> {
    // SAFETY: the token proves the instructions.
    unsafe { element::carry(assembly::product(a, b, &CONSTANTS)) }
}

/// The square, carried.
#[inline(always)]
fn base_square(_: Ifma, a: &Limbs<8>) -> Limbs<8> {
    // SAFETY: the token proves the instructions.
    unsafe { element::carry(assembly::square(a, &CONSTANTS)) }
}

/// See [`fp::reduce`].
#[inline(always)]
fn base_reduce(_: Ifma, limbs: Limbs<8>) -> Limbs<8> {
    // SAFETY: the token proves the instructions.
    unsafe { fp::reduce(limbs) }
}

/// See [`wide::reduce_low`]; carried.
#[inline(always)]
fn base_reduce_low<const LOW: usize>(_: Ifma, limbs: &Limbs<8>) -> Limbs<8> {
    // SAFETY: the token proves the instructions.
    unsafe { element::carry(wide::reduce_low::<P, LOW>(limbs)) }
}

/// See [`fp::below_modulus`].
#[inline(always)]
fn below_modulus(_: Ifma, limbs: &Limbs<8>) -> u8 {
    // SAFETY: the token proves the instructions.
    unsafe { fp::below_modulus(limbs) }
}

/// See [`fp::far`].
#[inline(always)]
fn far(_: Ifma, limb: __m512i) -> u8 {
    // SAFETY: the token proves the instructions.
    unsafe { fp::far(limb) }
}

/// See [`fp2::product`].
#[inline(always)]
fn extension_product(_: Ifma, a: &Fp2, b: &Fp2) -> Fp2 {
    // SAFETY: the token proves the instructions.
    unsafe { fp2::product(a, b) }
}

/// See [`fr::to_lanes`].
#[inline(always)]
fn gather(_: Ifma, from: [&Words; LANES]) -> Limbs<5> {
    // SAFETY: the token proves the instructions.
    unsafe { fr::to_lanes(from) }
}

/// See [`fr::from_lanes`]. If `ONCE`, the order is subtracted where that is not negative.
#[inline(always)]
fn scatter<const ONCE: bool>(_: Ifma, limbs: Limbs<5>, to: [&mut Words; LANES]) {
    // SAFETY: the token proves the instructions.
    unsafe {
        fr::from_lanes(
            if ONCE {
                fr::subtract_once(limbs)
            } else {
                limbs
            },
            to,
        )
    }
}

/// See [`product::product_columns`].
#[inline(always)]
fn scalar_product(_: Ifma, a: &Limbs<5>, b: &Limbs<5>) -> Limbs<5> {
    // SAFETY: the token proves the instructions.
    unsafe { product::product_columns::<R, 5>(a, b) }
}

/// See [`fr::square`].
#[inline(always)]
fn scalar_square(_: Ifma, a: &Limbs<5>) -> Limbs<5> {
    // SAFETY: the token proves the instructions.
    unsafe { fr::square(a) }
}

/// See [`fr::sub_plus_multiple`].
#[inline(always)]
fn sub_plus_multiple<const K: u64>(_: Ifma, a: &Limbs<5>, b: &Limbs<5>) -> Limbs<5> {
    // SAFETY: the token proves the instructions.
    unsafe { fr::sub_plus_multiple::<K>(a, b) }
}

/// See [`fr::reduce`]; of limbs that are not carried.
#[inline(always)]
fn scalar_reduce(_: Ifma, limbs: Limbs<5>) -> Limbs<5> {
    // SAFETY: the token proves the instructions.
    unsafe { fr::reduce(element::carry(limbs)) }
}

/// See [`fr::sum_of_products`].
#[inline(always)]
fn sum_of_products(_: Ifma, first: (&[Fr], &[[u64; 5]]), second: (&[Fr], &[[u64; 5]])) -> Limbs<5> {
    // SAFETY: the token proves the instructions.
    unsafe { fr::sum_of_products(first, second) }
}

/// See [`words::load_words`].
#[inline(always)]
fn load_words(_: Ifma, from: [&[u64; WORDS]; LANES]) -> Columns {
    // SAFETY: the token proves the instructions.
    unsafe { words::load_words(from) }
}

/// See [`words::load_encoded`].
#[inline(always)]
fn load_encoded(_: Ifma, from: [&[u8; BYTES]; LANES]) -> Columns {
    // SAFETY: the token proves the instructions.
    unsafe { words::load_encoded(from) }
}

/// See [`words::limbs`].
#[inline(always)]
fn limbs<const SHIFT: usize>(_: Ifma, words: &Columns) -> Limbs<8> {
    // SAFETY: the token proves the instructions.
    unsafe { words::limbs::<SHIFT>(words) }
}

#[cfg(test)]
mod tests {
    use super::assembly::tests;
    use super::{Ifma, Limbs};

    /// Enters the test of the assembly.
    pub(super) fn check_products(token: Ifma, a: &Limbs<8>, b: &Limbs<8>) {
        // SAFETY: the token proves the instructions.
        unsafe { tests::check(token, a, b) }
    }
}
