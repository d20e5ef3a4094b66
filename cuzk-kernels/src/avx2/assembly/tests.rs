//! The assembly beside a twin in plain Rust, bit for bit.

use std::arch::x86_64::__m256d;

use proptest::prelude::*;

use super::super::field::{Column, Constants, Field as _};
use super::super::limbs::{Base, COLUMNS, CONSTANTS, LIMBS, Work};
use super::super::scalar_limbs::{LIMBS as SCALAR_LIMBS, SCALAR_CONSTANTS, ScalarWork};
use super::super::{GROUPS, LANES};
use super::*;

/// The limbs of one number.
pub(in crate::avx2) type Number = [f64; LIMBS];

/// The limbs of one scalar.
pub(in crate::avx2) type Scalar = [f64; SCALAR_LIMBS];

/// The high and the low parts of the columns of one product.
type Columns<const C: usize> = [[f64; 2]; C];

/// A field's constants.
struct Field<const L: usize> {
    modulus: [f64; L],
    negative_inverse: f64,
    start: f64,
    radix: f64,
}

/// Those that the assembly reads, of one lane.
fn field<const L: usize>(constants: &Constants) -> Field<L> {
    Field {
        modulus: std::array::from_fn(|i| constants.modulus[i][0]),
        negative_inverse: constants.negative_inverse[0],
        start: constants.start[0],
        radix: 1.0 / constants.radix_inverse[0],
    }
}

fn add(column: &mut [f64; 2], a: f64, b: f64) {
    let high = a.mul_add(b, column[0]);
    column[1] += a.mul_add(b, column[0] - high);
    column[0] = high;
}

/// Adds a product to columns, in the order of the first factor's limbs.
fn twin_product<const L: usize, const C: usize>(
    a: &[f64; L],
    b: &[f64; L],
    columns: &mut Columns<C>,
) {
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            add(&mut columns[i + j], *a, *b);
        }
    }
}

/// The limbs of a product after its reduction, before they are carried.
fn twin_reduction<const L: usize, const C: usize>(
    mut columns: Columns<C>,
    field: &Field<L>,
) -> [f64; L] {
    let mut carry = 0.0_f64;
    let mut multiples = [0.0; L];
    for k in 0..L {
        for (i, multiple) in multiples[..k].iter().enumerate() {
            add(&mut columns[k], *multiple, field.modulus[k - i]);
        }
        let [high, low] = columns[k];
        let low = low + carry / field.radix;
        let rounded = low.mul_add(field.negative_inverse, field.start) - field.start;
        multiples[k] = low.mul_add(field.negative_inverse, -rounded);
        carry = (high - field.start) + multiples[k].mul_add(field.modulus[0], low);
    }
    let mut limbs = [0.0; L];
    for k in L..C {
        for (i, multiple) in multiples.iter().enumerate().skip(k - L + 1) {
            add(&mut columns[k], *multiple, field.modulus[k - i]);
        }
        limbs[k - L] = columns[k][1] + carry / field.radix;
        carry = columns[k][0] - field.start;
    }
    limbs[L - 1] = carry / field.radix;
    limbs
}

fn lanes<const L: usize>(numbers: &[[f64; L]; LANES]) -> [__m256d; L] {
    std::array::from_fn(|i| bytemuck::cast::<[f64; LANES], _>(numbers.map(|limbs| limbs[i])))
}

fn numbers<const L: usize>(limbs: &[__m256d; L]) -> [[f64; L]; LANES] {
    let rows = limbs.map(bytemuck::cast::<_, [f64; LANES]>);
    std::array::from_fn(|lane| rows.map(|row| row[lane]))
}

fn columns_of<const C: usize>(wide: &[Column; C], lane: usize) -> Columns<C> {
    let part = |register| bytemuck::cast::<_, [f64; LANES]>(register)[lane];
    wide.map(|Column { high, low }| [part(high), part(low)])
}

/// Limbs below 2^`bits` with a sign, many of them as large as can be.
fn number(bits: u32) -> impl Strategy<Value = Number> {
    prop::array::uniform8(limb(bits)).prop_map(|limbs| limbs.map(|limb| limb as f64))
}

fn scalar(bits: u32) -> impl Strategy<Value = Scalar> {
    prop::array::uniform6(limb(bits)).prop_map(|limbs| limbs.map(|limb| limb as f64))
}

fn limb(bits: u32) -> impl Strategy<Value = i64> {
    let most = (1_i64 << bits) - 1;
    prop_oneof![Just(0), Just(1), Just(most), Just(-most), -most..=most]
}

/// Numbers for every group, from those of one: each group has them rotated by a lane.
fn groups<const L: usize>(one: &[[f64; L]; LANES]) -> [[[f64; L]; LANES]; GROUPS] {
    std::array::from_fn(|group| {
        let mut numbers = *one;
        numbers.rotate_left(group % LANES);
        numbers
    })
}

#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn check([a, b, then]: [[Number; LANES]; 3]) {
    let mut work = Work::new();
    let mut expected: [[Columns<COLUMNS>; LANES]; GROUPS] =
        [[[[Base::START, 0.0]; COLUMNS]; LANES]; GROUPS];
    let (a, b, then) = (groups(&a), groups(&b), groups(&then));
    for group in 0..GROUPS {
        let wide = &mut work.0[group];
        product(&lanes(&a[group]), &lanes(&b[group]), wide);
        for lane in 0..LANES {
            let columns = &mut expected[group][lane];
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
        let expected = expected.map(|columns| twin_reduction(columns, &field(&CONSTANTS)));
        assert_eq!(numbers(&limbs), expected);
    }
}

#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn check_scalars([a, b]: [[Scalar; LANES]; 2]) {
    let mut work = ScalarWork::new();
    let field = field(&SCALAR_CONSTANTS);
    let (a, b) = (groups(&a), groups(&b));
    let mut expected = [[[[field.start, 0.0]; 2 * SCALAR_LIMBS - 1]; LANES]; GROUPS];
    for group in 0..GROUPS {
        let wide = &mut work.0[group];
        product_scalars(&lanes(&a[group]), &lanes(&b[group]), wide);
        for (lane, columns) in expected[group].iter_mut().enumerate() {
            twin_product(&a[group][lane], &b[group][lane], columns);
            assert_eq!(columns_of(wide, lane), *columns);
        }
    }
    clear_low_scalars(&mut work.0);
    for (wide, expected) in work.0.iter().zip(expected) {
        let mut limbs = lanes(&a[0]);
        reduce_high_scalars(wide, &mut limbs);
        let expected = expected.map(|columns| twin_reduction(columns, &field));
        assert_eq!(numbers(&limbs), expected);
    }
}

/// A square's columns are those of the product in another order of additions. Their values are
/// equal, and both parts too as long as no addition rounds.
#[target_feature(enable = "avx2,fma")]
pub(in crate::avx2) fn check_square(a: [Number; LANES]) {
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
        if let Some(token) = crate::testing::avx2() {
            crate::avx2::tests::check_product(token, [a, b, then]);
        }
    }

    #[test]
    fn a_factor_may_have_limbs_of_a_bit_more(
        a in prop::array::uniform4(number(48)),
        b in prop::array::uniform4(number(47)),
    ) {
        if let Some(token) = crate::testing::avx2() {
            crate::avx2::tests::check_product(token, [a, b, [[0.0; LIMBS]; LANES]]);
        }
    }

    #[test]
    fn scalars_are_those_of_the_twin(
        a in prop::array::uniform4(scalar(48)),
        b in prop::array::uniform4(scalar(42)),
    ) {
        if let Some(token) = crate::testing::avx2() {
            crate::avx2::tests::check_scalar_product(token, [a, b]);
        }
    }

    #[test]
    fn squares_are_products(a in prop::array::uniform4(number(47))) {
        if let Some(token) = crate::testing::avx2() {
            crate::avx2::tests::check_square(token, a);
        }
    }
}
