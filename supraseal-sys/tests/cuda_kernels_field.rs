//! The device's field arithmetic, as far as it runs without a device: the plain chains
//! and the host's products against blst. The self-test on the device compares the
//! assembly with the plain chains.

use std::ops::{Add, Mul, Sub};

use blst::blst_fp;
use blstrs::{Fp as Element, Scalar};
use ff::Field;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use supraseal_sys::emulated::{Fp, Operation, fp, fp_mul_add, fr, self_test};

#[test]
fn fr_agrees_with_blst() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let edges = [
        Scalar::ZERO,
        Scalar::ONE,
        -Scalar::ONE,
        Scalar::from(2),
        -Scalar::from(2),
        Scalar::from(u64::MAX),
        Scalar::from(u64::MAX).invert().unwrap(),
    ];
    let mut pairs: Vec<_> = edges.iter().flat_map(|a| edges.map(|b| (*a, b))).collect();
    pairs.extend((0..2000).map(|_| (Scalar::random(&mut rng), Scalar::random(&mut rng))));
    for (a, b) in pairs {
        assert_eq!(fr(Operation::Mul, a, b), a * b);
        assert_eq!(fr(Operation::PlainMul, a, b), a * b);
        for operation in [Operation::Add, Operation::PlainAdd] {
            assert_eq!(fr(operation, a, b), a + b);
        }
        for operation in [Operation::Sub, Operation::PlainSub] {
            assert_eq!(fr(operation, a, b), a - b);
        }
    }
}

/// Computes an operation of blst on elements in Montgomery form.
fn blst(operation: fn(Element, Element) -> Element, a: Fp, b: Fp) -> Fp {
    let [a, b] = [a, b].map(|l| Element::from(blst_fp { l }));
    blst_fp::from(operation(a, b)).l
}

/// Returns an integer in Montgomery form.
fn integer(limbs: Fp) -> Fp {
    blst_fp::from(Element::from_u64s_le(&limbs).unwrap()).l
}

#[test]
fn fp_agrees_with_blst() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let zero = [0; 6];
    let one = integer([1, 0, 0, 0, 0, 0]);
    let minus_one = blst(Sub::sub, zero, one);
    let largest_limbs = integer([u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, 1]);
    // The raw limbs 1, and the greatest ones: the modulus less one.
    let raw = [1, 0, 0, 0, 0, 0];
    let greatest = blst(Sub::sub, zero, raw);
    let edges = [zero, one, minus_one, largest_limbs, raw, greatest];
    let mut pairs: Vec<_> = edges.iter().flat_map(|a| edges.map(|b| (*a, b))).collect();
    let mut random = || {
        let mut limbs: Fp = rng.r#gen();
        limbs[5] >>= 4;
        integer(limbs)
    };
    pairs.extend((0..2000).map(|_| (random(), random())));
    // Each pair together with the one before it; the first one together with the
    // greatest pair.
    let mut before = (greatest, greatest);
    for &(a, b) in [before].iter().chain(&pairs) {
        let products = [(a, b), before].map(|(a, b)| blst(Mul::mul, a, b));
        let sum = blst(Add::add, products[0], products[1]);
        assert_eq!(fp_mul_add([a, b, before.0, before.1]), sum);
        before = (a, b);
    }
    for (a, b) in pairs {
        let product = blst(Mul::mul, a, b);
        assert_eq!(fp(Operation::Mul, a, b), product);
        assert_eq!(fp(Operation::PlainMul, a, b), product);
        for operation in [Operation::Add, Operation::PlainAdd] {
            assert_eq!(fp(operation, a, b), blst(Add::add, a, b));
        }
        for operation in [Operation::Sub, Operation::PlainSub] {
            assert_eq!(fp(operation, a, b), blst(Sub::sub, a, b));
        }
    }
}

#[test]
fn self_test_finds_nothing() {
    assert_eq!(self_test(2), Some(0));
}
