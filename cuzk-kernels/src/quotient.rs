//! The quotient polynomial of a satisfied constraint system.
//!
//! For a satisfied system C = A·B row by row, so C is neither needed nor moved. Write A·B =
//! L + x^N·U with L and U of degree below N. On the domain, where x^N = 1, the products a∘b
//! are the values of L + U. On the coset of g with g^N = −1 they are the values of L − U.
//! The quotient (A·B − C) / (x^N − 1) is U, half the difference. That takes six transforms
//! of size N instead of seven, and two input vectors instead of three.

use blstrs::Scalar;
use ff::{Field, PrimeField};

use crate::context::Context;
use crate::error::{KernelError, expect_len};
use crate::isa::Isa;
use crate::ntt::{Direction, Domain, root_of_unity};

/// Computes the quotient h from `a` and `b`, the values of A·w and B·w on
/// `domain`, padded with zeros to its size N.
///
/// `a` is overwritten with the coefficients of h, the last of which is 0, and
/// `b` with values of no use. One more vector of N scalars is allocated; see
/// [`quotient_with`].
///
/// # Errors
/// [`KernelError::LengthMismatch`] when a slice is not N long,
/// [`KernelError::DomainTooLarge`] when there is no root of order 2N.
pub fn quotient(domain: &Domain, a: &mut [Scalar], b: &mut [Scalar]) -> Result<(), KernelError> {
    let scratch = &mut vec![Scalar::ZERO; a.len()];
    quotient_with(domain, a, b, scratch, Isa::best().into())
}

/// Computes the quotient, as [`quotient`], in the caller's memory, and can be stopped.
/// `scratch` has N scalars, which are overwritten. The threads' working memory comes from
/// the context ([`Domain::rows_bytes`]). The instructions are those of the domain, and not
/// of the context.
///
/// # Errors
/// As [`quotient`], and [`KernelError::Stopped`].
pub fn quotient_with(
    domain: &Domain,
    a: &mut [Scalar],
    b: &mut [Scalar],
    scratch: &mut [Scalar],
    context: Context<'_>,
) -> Result<(), KernelError> {
    expect_len("a", domain.size(), a.len())?;
    expect_len("b", domain.size(), b.len())?;
    expect_len("scratch", domain.size(), scratch.len())?;
    let log_size_max = Scalar::S - 1;
    if domain.log_size() > log_size_max {
        return Err(KernelError::DomainTooLarge {
            log_size: domain.log_size(),
            log_size_max,
        });
    }
    let engine = domain.engine();
    let sum = scratch;
    engine.multiply_to(sum, [a, b], context)?;
    domain.scatter(sum, Direction::Inverse, context)?;
    // The coset's, the root of order 2N whose square is the domain's root.
    let generator = root_of_unity(domain.log_size() + 1);
    for factor in [&mut *a, &mut *b] {
        engine.move_to_coset(factor, generator, context)?;
    }
    // The sum is N·(L + U), and what it is compared with N^3·(L − U), because three
    // unscaled transforms lie behind that.
    let inverse = domain.size_inverse();
    let sum_factor = inverse * Scalar::TWO_INV;
    let factor = sum_factor * inverse.square();
    engine.multiply(b, a, context)?;
    engine.interpolate_difference([b, a], (sum, sum_factor), (factor, generator), context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;
    use bellperson::domain::EvaluationDomain;
    use ec_gpu_gen::threadpool::Worker;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn random(len: usize, seed: u64) -> Vec<Scalar> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..len).map(|_| Scalar::random(&mut rng)).collect()
    }

    /// h as bellperson's prover computes it, from a, b and c = a∘b.
    fn bellperson_quotient(a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
        let worker = Worker::new();
        let [mut a, mut b, mut c] = [
            a.to_vec(),
            b.to_vec(),
            a.iter().zip(b).map(|(a, b)| a * b).collect(),
        ]
        .map(|values| EvaluationDomain::from_coeffs(values).unwrap());
        for domain in [&mut a, &mut b, &mut c] {
            domain.ifft(&worker, &mut None).unwrap();
            domain.coset_fft(&worker, &mut None).unwrap();
        }
        a.mul_assign(&worker, &b);
        a.sub_assign(&worker, &c);
        a.divide_by_z_on_coset(&worker);
        a.icoset_fft(&worker, &mut None).unwrap();
        a.into_coeffs()
    }

    fn check(a: &[Scalar], b: &[Scalar], expected: &[Scalar]) {
        for isa in Isa::all() {
            let domain = Domain::with(isa, a.len().ilog2()).unwrap();
            let (mut h, mut scratch) = (a.to_vec(), b.to_vec());
            quotient(&domain, &mut h, &mut scratch).unwrap();
            assert_eq!(h, expected, "{isa} size {}", a.len());
            assert_eq!(h.last(), Some(&Scalar::ZERO));
        }
    }

    #[test]
    fn quotient_agrees_with_polynomial_division() {
        for log_size in 0..=8 {
            let (a, b) = (random(1 << log_size, 1), random(1 << log_size, 2));
            let (expected, remainder) = naive::quotient(&a, &b).unwrap();
            assert!(remainder.iter().all(|r| *r == Scalar::ZERO));
            check(&a, &b, &expected);
        }
    }

    #[test]
    fn quotient_agrees_with_bellperson() {
        for log_size in 1..=15 {
            let (a, b) = (random(1 << log_size, 3), random(1 << log_size, 4));
            check(&a, &b, &bellperson_quotient(&a, &b));
        }
    }

    #[test]
    fn special_vectors() {
        let ones = vec![Scalar::ONE; 64];
        let zeros = vec![Scalar::ZERO; 64];
        check(&ones, &ones, &zeros);
        check(&zeros, &random(64, 5), &zeros);
    }

    #[test]
    fn extreme_values() {
        for log_size in [6, 7, 10, 13] {
            let minus_ones = vec![-Scalar::ONE; 1 << log_size];
            let alternating: Vec<_> = (0..1 << log_size)
                .map(|i| {
                    if i % 2 == 0 {
                        Scalar::ZERO
                    } else {
                        -Scalar::ONE
                    }
                })
                .collect();
            let single: Vec<_> = (0..1 << log_size)
                .map(|i| if i == 1 { -Scalar::ONE } else { Scalar::ZERO })
                .collect();
            let vectors = [minus_ones, alternating, single];
            for a in &vectors {
                for b in &vectors {
                    check(a, b, &bellperson_quotient(a, b));
                }
            }
        }
    }

    #[test]
    fn lengths_are_checked() {
        let domain = Domain::new(2).unwrap();
        let result = quotient(&domain, &mut [Scalar::ONE; 4], &mut [Scalar::ONE; 3]);
        assert!(matches!(
            result,
            Err(KernelError::LengthMismatch {
                what: "b",
                expected: 4,
                got: 3
            })
        ));
    }
}
