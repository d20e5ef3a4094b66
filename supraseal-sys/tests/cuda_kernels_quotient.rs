//! Transforms and the quotient of the device, run on the host, against those of
//! `cuzk-kernels` and its naive twins.

use blstrs::Scalar;
use cuzk_kernels::{naive, ntt, quotient as cpu};
use ff::{Field, PrimeField};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use supraseal_sys::emulated::{RootsShape, quotient, transform};

fn random(len: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| Scalar::random(&mut rng)).collect()
}

/// Returns whole tables, larger ones, and tables of two factors.
fn shapes(log: u32) -> impl Iterator<Item = RootsShape> {
    let with = |log, low_log| RootsShape { log, low_log };
    [
        with(log, log),
        with(log + 2, log + 2),
        with(log, log / 2),
        with(log + 1, log.saturating_sub(1)),
    ]
    .into_iter()
}

fn reversed(values: &[Scalar]) -> Vec<Scalar> {
    let log = values.len().ilog2();
    let place = |i: usize| match log {
        0 => i,
        _ => i.reverse_bits() >> (usize::BITS - log),
    };
    (0..values.len()).map(|i| values[place(i)]).collect()
}

fn root_of_order(log: u32) -> Scalar {
    (log..Scalar::S).fold(Scalar::ROOT_OF_UNITY, |root, _| root.square())
}

#[test]
fn transforms_agree_with_evaluation() {
    for log in 0..=7 {
        let coefficients = random(1 << log, u64::from(log));
        for shape in shapes(log) {
            for coset in [false, true] {
                let shift = match coset {
                    true => root_of_order(log + 1),
                    false => Scalar::ONE,
                };
                let expected = naive::evaluate(&coefficients, root_of_order(log), shift);
                let mut values = coefficients.clone();
                assert_eq!(transform(shape, &mut values, coset, false), 0);
                assert_eq!(values, reversed(&expected), "{shape:?} coset {coset}");
                assert_eq!(transform(shape, &mut values, coset, true), 0);
                let size = Scalar::from(1u64 << log);
                let scaled: Vec<_> = coefficients.iter().map(|c| *c * size).collect();
                assert_eq!(values, scaled, "{shape:?} coset {coset}");
            }
        }
    }
}

/// Covers all ways to cut a transform into passes, up to three.
#[test]
fn large_transforms_agree_with_the_cpu() {
    for log in (8..=14).chain([18, 19]) {
        let coefficients = random(1 << log, u64::from(log));
        let domain = ntt::Domain::new(log).unwrap();
        let mut expected = coefficients.clone();
        domain.ntt(&mut expected).unwrap();
        let shape = RootsShape { log, low_log: log };
        let mut values = coefficients.clone();
        assert_eq!(transform(shape, &mut values, false, false), 0);
        assert!(values == reversed(&expected), "2^{log}");
        assert_eq!(transform(shape, &mut values, false, true), 0);
        let size = Scalar::from(1u64 << log);
        assert!(
            values
                .iter()
                .zip(&coefficients)
                .all(|(v, c)| *v == *c * size),
            "2^{log}"
        );
    }
}

/// Returns h as the device computes it: its place, order and form.
fn device_quotient(shape: RootsShape, a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
    let (mut left, mut h) = (reversed(a), reversed(b));
    assert_eq!(quotient(shape, &mut left, &mut h, false), 0);
    let (mut left, mut canonical) = (reversed(a), reversed(b));
    assert_eq!(quotient(shape, &mut left, &mut canonical, true), 0);
    // A canonical x is the Montgomery form of x / 2^256.
    let factor = Scalar::from(2).pow_vartime([256]).invert().unwrap();
    assert!(h.iter().zip(&canonical).all(|(h, c)| *h * factor == *c));
    h
}

#[test]
fn quotients_agree_with_polynomial_division() {
    for log in 0..=7 {
        let (a, b) = (random(1 << log, 1), random(1 << log, 2));
        let (expected, _) = naive::quotient(&a, &b).unwrap();
        for shape in shapes(log) {
            assert_eq!(device_quotient(shape, &a, &b), expected, "{shape:?}");
        }
    }
}

#[test]
fn quotients_agree_with_the_cpu() {
    for log in (8..=14).chain([19]) {
        let (a, b) = (random(1 << log, 3), random(1 << log, 4));
        let (mut expected, mut scratch) = (a.clone(), b.clone());
        let domain = ntt::Domain::new(log).unwrap();
        cpu::quotient(&domain, &mut expected, &mut scratch).unwrap();
        let shape = RootsShape { log, low_log: log };
        let h = device_quotient(shape, &a, &b);
        assert!(h == expected, "2^{log}");
        assert_eq!(h.last(), Some(&Scalar::ZERO));
    }
}

#[test]
fn refuses_domains_without_roots() {
    let shape = RootsShape { log: 1, low_log: 1 };
    let mut values = random(4, 5);
    assert_eq!(transform(shape, &mut values, false, false), 1);
    assert_eq!(quotient(shape, &mut values.clone(), &mut values, false), 1);
}
