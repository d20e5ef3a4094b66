//! Coordinates of sixteen points, and their operations.
//!
//! A coordinate has N components: one in G1, and two in G2, whose field is the extension by a
//! root of −1. The sixteen are four groups of four lanes. The multiples that clear a product's
//! columns wait for each other, and those of four groups do so side by side.
//!
//! Invariant: operations say how large their operands' limbs are. Values are less than eight
//! times the modulus away from zero.

use std::arch::x86_64::*;

use super::assembly::{add_product, clear_low, product, reduce_high, square as square_columns};
use super::limbs::{Limbs, Work, carried};
use super::words::{self, Words};
use super::{GROUPS, LANES};

/// Sixteen elements of the base field.
pub(super) type Elements = [Limbs; GROUPS];

/// A coordinate of sixteen points.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Coordinate<const N: usize>(pub(super) [Elements; N]);

impl<const N: usize> Coordinate<N> {
    /// Returns one coordinate for all points.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn splat(words: &[Words; N]) -> Self {
        let all = |words| {
            let limbs = carried(&words::limbs(&words::load([words; LANES])));
            [limbs; GROUPS]
        };
        Self(words.each_ref().map(all))
    }

    /// Carries all limbs, which are below 2^53.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn carry(&mut self) {
        for limbs in self.0.as_flattened_mut() {
            *limbs = carried(limbs);
        }
    }
}

/// `to = a · b`, carried. Factors are carried, but in G1 one may have limbs below 2^49.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) fn multiply<const N: usize>(
    a: &Coordinate<N>,
    b: &Coordinate<N>,
    work: &mut Work,
    to: &mut Coordinate<N>,
) {
    match (&a.0[..], &b.0[..], &mut to.0[..]) {
        ([a], [b], [to]) => multiply_elements(a, b, work, to),
        ([a0, a1], [b0, b1], [to0, to1]) => {
            for (g, columns) in work.0.iter_mut().enumerate() {
                product(&a0[g], &b0[g], columns);
                add_product(&negative(&a1[g]), &b1[g], columns);
            }
            reduce(work, to0);
            for (g, columns) in work.0.iter_mut().enumerate() {
                product(&a0[g], &b1[g], columns);
                add_product(&a1[g], &b0[g], columns);
            }
            reduce(work, to1);
        }
        _ => debug_assert!(false, "a coordinate has one component or two"),
    }
}

/// `to = a · b`, carried. One factor is carried, and the other has limbs below 2^49.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn multiply_elements(a: &Elements, b: &Elements, work: &mut Work, to: &mut Elements) {
    for ((a, b), columns) in a.iter().zip(b).zip(&mut work.0) {
        product(a, b, columns);
    }
    reduce(work, to);
}

/// `to = a²`, carried, of a carried factor. In the extension it is the product of the sum and
/// the difference of the components, and twice their product.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) fn square<const N: usize>(a: &Coordinate<N>, work: &mut Work, to: &mut Coordinate<N>) {
    match (&a.0[..], &mut to.0[..]) {
        ([a], [to]) => {
            for (a, columns) in a.iter().zip(&mut work.0) {
                square_columns(a, columns);
            }
            reduce(work, to);
        }
        ([a0, a1], [to0, to1]) => {
            for (g, columns) in work.0.iter_mut().enumerate() {
                let sum = carried(&zip(&a0[g], &a1[g], |a, b| _mm256_add_pd(a, b)));
                let difference = zip(&a0[g], &a1[g], |a, b| _mm256_sub_pd(a, b));
                product(&difference, &sum, columns);
            }
            reduce(work, to0);
            for (g, columns) in work.0.iter_mut().enumerate() {
                let twice = zip(&a0[g], &a0[g], |a, b| _mm256_add_pd(a, b));
                product(&twice, &a1[g], columns);
            }
            reduce(work, to1);
        }
        _ => debug_assert!(false, "a coordinate has one component or two"),
    }
}

/// Montgomery's reduction: the products over 2^384, carried.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn reduce(work: &mut Work, to: &mut Elements) {
    clear_low(&mut work.0);
    for (columns, to) in work.0.iter().zip(to) {
        reduce_high(columns, to);
        *to = carried(to);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn negative(a: &Limbs) -> Limbs {
    zip(a, a, |a, _| _mm256_xor_pd(a, _mm256_set1_pd(-0.0)))
}

/// Applies an operation to the limbs of two numbers.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn zip(a: &Limbs, b: &Limbs, f: impl Fn(__m256d, __m256d) -> __m256d) -> Limbs {
    std::array::from_fn(|i| f(a[i], b[i]))
}
