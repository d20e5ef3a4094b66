//! The assembly beside a twin in plain Rust, bit for bit.

#![allow(unsafe_code)] // enters functions that enable the instructions

use proptest::prelude::*;

use super::super::limbs::{
    COLUMNS, Column, LIMBS, Limbs, MODULUS, NEGATIVE_INVERSE, START, Wide, Work,
};
use super::super::{Avx2, GROUPS, LANES};
use super::*;

/// The limbs of one number.
type Number = [f64; LIMBS];

/// The high and the low parts of the columns of one product.
type Columns = [[f64; 2]; COLUMNS];

const RADIX: f64 = (1_u64 << 48) as f64;

fn add(column: &mut [f64; 2], a: f64, b: f64) {
    let high = a.mul_add(b, column[0]);
    column[1] += a.mul_add(b, column[0] - high);
    column[0] = high;
}

/// Adds a product to columns, in the order of the first factor's limbs.
fn twin_product(a: &Number, b: &Number, columns: &mut Columns) {
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            add(&mut columns[i + j], *a, *b);
        }
    }
}

/// The limbs of a product after its reduction, before they are carried.
fn twin_reduction(mut columns: Columns) -> Number {
    let mut carry = 0.0_f64;
    let mut multiples = [0.0; LIMBS];
    for k in 0..LIMBS {
        for i in 0..k {
            add(&mut columns[k], multiples[i], MODULUS[k - i]);
        }
        let [high, low] = columns[k];
        let low = low + carry / RADIX;
        let rounded = low.mul_add(NEGATIVE_INVERSE, START) - START;
        multiples[k] = low.mul_add(NEGATIVE_INVERSE, -rounded);
        carry = (high - START) + multiples[k].mul_add(MODULUS[0], low);
    }
    let mut limbs = [0.0; LIMBS];
    for k in LIMBS..COLUMNS {
        for i in k - LIMBS + 1..LIMBS {
            add(&mut columns[k], multiples[i], MODULUS[k - i]);
        }
        limbs[k - LIMBS] = columns[k][1] + carry / RADIX;
        carry = columns[k][0] - START;
    }
    limbs[LIMBS - 1] = carry / RADIX;
    limbs
}

fn lanes(numbers: &[Number; LANES]) -> Limbs {
    std::array::from_fn(|i| bytemuck::cast::<[f64; LANES], _>(numbers.map(|limbs| limbs[i])))
}

fn numbers(limbs: &Limbs) -> [Number; LANES] {
    let rows: [[f64; LANES]; LIMBS] = bytemuck::cast(*limbs);
    std::array::from_fn(|lane| rows.map(|row| row[lane]))
}

fn columns_of(wide: &Wide, lane: usize) -> Columns {
    let part = |register| bytemuck::cast::<_, [f64; LANES]>(register)[lane];
    wide.map(|Column { high, low }| [part(high), part(low)])
}

/// Limbs below 2^`bits` with a sign, many of them as large as can be.
fn number(bits: u32) -> impl Strategy<Value = Number> {
    let most = (1_i64 << bits) - 1;
    let limb = prop_oneof![Just(0), Just(1), Just(most), Just(-most), -most..=most];
    prop::array::uniform8(limb).prop_map(|limbs| limbs.map(|limb| limb as f64))
}

/// Numbers for every group, from those of one: each group has them rotated by a lane.
fn groups(one: &[Number; LANES]) -> [[Number; LANES]; GROUPS] {
    std::array::from_fn(|group| {
        let mut numbers = *one;
        numbers.rotate_left(group % LANES);
        numbers
    })
}

#[target_feature(enable = "avx2,fma")]
fn check(a: [Number; LANES], b: [Number; LANES], then: [Number; LANES]) {
    let mut work = Work::new();
    let mut expected = [[[[0.0; 2]; COLUMNS]; LANES]; GROUPS];
    let (a, b, then) = (groups(&a), groups(&b), groups(&then));
    for group in 0..GROUPS {
        let wide = &mut work.0[group];
        product(&lanes(&a[group]), &lanes(&b[group]), wide);
        for lane in 0..LANES {
            let columns = &mut expected[group][lane];
            *columns = [[START, 0.0]; COLUMNS];
            twin_product(&a[group][lane], &b[group][lane], columns);
            assert_eq!(columns_of(wide, lane), *columns);
        }
        if group % 2 == 1 {
            add_product(&lanes(&then[group]), &lanes(&then[group]), wide);
            for (lane, columns) in expected[group].iter_mut().enumerate() {
                twin_product(&then[group][lane], &then[group][lane], columns);
                assert_eq!(columns_of(wide, lane), *columns);
            }
        }
    }
    clear_low(&mut work.0);
    for (wide, expected) in work.0.iter().zip(expected) {
        let mut limbs = lanes(&a[0]);
        reduce_high(wide, &mut limbs);
        assert_eq!(numbers(&limbs), expected.map(twin_reduction));
    }
}

/// A square's columns are those of the product in another order of additions. Their values are
/// equal, and both parts too as long as no addition rounds.
#[target_feature(enable = "avx2,fma")]
fn check_square(a: [Number; LANES]) {
    let mut work = Work::new();
    let (a, [squares, products, ..]) = (lanes(&a), &mut work.0);
    square(&a, squares);
    product(&a, &a, products);
    for lane in 0..LANES {
        let (square, product) = (columns_of(squares, lane), columns_of(products, lane));
        for ([high, low], [high2, low2]) in square.into_iter().zip(product) {
            assert_eq!(high - high2, low2 - low);
        }
    }
}

proptest! {
    #[test]
    fn columns_and_reductions_are_those_of_the_twin(
        a in prop::array::uniform4(number(47)),
        b in prop::array::uniform4(number(47)),
        then in prop::array::uniform4(number(47)),
    ) {
        if Avx2::detect().is_some() {
            // SAFETY: the processor has the instructions.
            unsafe { check(a, b, then) }
        }
    }

    #[test]
    fn a_factor_may_have_limbs_of_a_bit_more(
        a in prop::array::uniform4(number(48)),
        b in prop::array::uniform4(number(47)),
    ) {
        if Avx2::detect().is_some() {
            // SAFETY: the processor has the instructions.
            unsafe { check(a, b, [[0.0; LIMBS]; LANES]) }
        }
    }

    #[test]
    fn squares_are_products(a in prop::array::uniform4(number(47))) {
        if Avx2::detect().is_some() {
            // SAFETY: the processor has the instructions.
            unsafe { check_square(a) }
        }
    }
}
