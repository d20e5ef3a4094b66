//! Quotients over domains as large as those of sectors, which no bundled circuit has:
//! transforms of three passes, where smaller ones take two.

#![allow(clippy::unwrap_used)] // the helpers of tests may panic

use blstrs::Scalar;
use cuzk_kernels::Isa;
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::quotient::quotient;
use ff::Field;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// The smallest domain that takes three passes.
const LOG_LEN: u32 = 23;

/// Coefficients of a polynomial that a thread takes at once.
const CHUNK: usize = 1 << 14;

/// The value of a polynomial at `x`.
fn value_at(coefficients: &[Scalar], x: Scalar) -> Scalar {
    let horner = |sum: Scalar, (x, coefficient): (Scalar, &Scalar)| sum * x + coefficient;
    let of_chunk = |chunk: &[Scalar]| {
        let highest_first = chunk.iter().rev();
        highest_first.fold(Scalar::ZERO, |sum, coefficient| {
            horner(sum, (x, coefficient))
        })
    };
    let chunks: Vec<Scalar> = coefficients.par_chunks(CHUNK).map(of_chunk).collect();
    let step = x.pow_vartime([CHUNK as u64]);
    let highest_first = chunks.iter().rev();
    highest_first.fold(Scalar::ZERO, |sum, chunk| horner(sum, (step, chunk)))
}

/// Asserts that h · Z = A · B − C, of polynomials, at a random point: of others it holds
/// with a chance of 2^-230.
fn assert_divides(domain: &Domain, a: Vec<Scalar>, b: Vec<Scalar>) {
    let x = Scalar::random(ChaCha8Rng::seed_from_u64(77));
    let at_x = |values: &[Scalar]| {
        let mut coefficients = values.to_vec();
        domain.intt(&mut coefficients).unwrap();
        value_at(&coefficients, x)
    };
    let c: Vec<Scalar> = a.par_iter().zip(&b).map(|(a, b)| a * b).collect();
    let expected = at_x(&a) * at_x(&b) - at_x(&c);
    let (mut h, mut scratch) = (a, b);
    quotient(domain, &mut h, &mut scratch).unwrap();
    let vanishing = x.pow_vartime([h.len() as u64]) - Scalar::ONE;
    assert_eq!(value_at(&h, x) * vanishing, expected);
    assert_eq!(h.last(), Some(&Scalar::ZERO), "its degree is n - 2");
}

#[test]
fn quotients_of_three_passes_divide() {
    let domain = Domain::with(Isa::best(), LOG_LEN).unwrap();
    let values = |value: fn(usize) -> Scalar| (0..1 << LOG_LEN).into_par_iter().map(value);
    let random = |seed: u64| -> Vec<Scalar> {
        let chunks = (0..(1 << LOG_LEN) / CHUNK as u64).into_par_iter();
        let of_chunk = |chunk| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed << 32 | chunk);
            (0..CHUNK).map(move |_| Scalar::random(&mut rng))
        };
        chunks.flat_map_iter(of_chunk).collect()
    };
    assert_divides(&domain, random(1), random(2));
    // The largest elements there are, and zeros.
    let a = values(|i| largest_if_odd(3 * i)).collect();
    let b = values(|i| largest_if_odd(5 * i)).collect();
    assert_divides(&domain, a, b);
}

/// r − 1 for numbers with an odd count of ones, else 0.
fn largest_if_odd(i: usize) -> Scalar {
    if i.count_ones() % 2 == 1 {
        -Scalar::ONE
    } else {
        Scalar::ZERO
    }
}
