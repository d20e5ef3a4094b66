//! The quotient polynomial of a satisfied constraint system.
//!
//! For a satisfied system C = A·B row by row, so C is neither needed nor
//! moved. Write A·B = L + x^N·U with L and U of degree below N. On the domain
//! (x^N = 1) the products a∘b are the values of L + U; on the coset of g with
//! g^N = −1 they are the values of L − U. The quotient (A·B − C) / (x^N − 1)
//! is U, half the difference: six transforms of size N instead of seven, two
//! input vectors instead of three.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use crate::checkpoint::{Checkpoint, Unhindered};
use crate::error::{KernelError, expect_len};
use crate::ntt::{Direction, Domain, reverse_bits_in_place, root_of_unity};

/// Scalars that one task copies.
const TASK: usize = 1 << 14;

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
    quotient_with(domain, a, b, &mut vec![Scalar::ZERO; a.len()], &Unhindered)
}

/// [`quotient`] that allocates nothing and can be stopped: `scratch` is N
/// scalars, whatever they are.
///
/// # Errors
/// As [`quotient`], and [`KernelError::Stopped`].
pub fn quotient_with(
    domain: &Domain,
    a: &mut [Scalar],
    b: &mut [Scalar],
    scratch: &mut [Scalar],
    checkpoint: &dyn Checkpoint,
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
    let coset = Coset::new(domain);
    let engine = domain.engine();

    let sum = scratch;
    sum.par_chunks_mut(TASK)
        .zip(a.par_chunks(TASK))
        .try_for_each(|(sum, a)| {
            sum.copy_from_slice(a);
            checkpoint.check()
        })?;
    engine.multiply(sum, b, checkpoint)?;
    domain.scatter(sum, Direction::Inverse, checkpoint)?;
    for factor in [&mut *a, &mut *b] {
        domain.scatter(factor, Direction::Inverse, checkpoint)?;
        coset.shift(factor, checkpoint)?;
        domain.gather(factor, Direction::Forward, checkpoint)?;
    }
    engine.multiply(a, b, checkpoint)?;
    domain.scatter(a, Direction::Inverse, checkpoint)?;
    coset.halve_difference(sum, a, checkpoint)?;
    reverse_bits_in_place(a, checkpoint)
}

/// The coset of g, the root of order 2N whose square is the domain's root.
///
/// With rev over the whole domain, g^rev(i) for i in the lower half of the
/// indices is entry i of the table of twiddles, and an index of the upper half
/// has one more factor g. That is how values in bit-reversed order are moved
/// to the coset and back without a table of their own.
struct Coset<'a> {
    domain: &'a Domain,
    generator: Scalar,
}

impl<'a> Coset<'a> {
    /// Needs a domain of at most half the largest size.
    fn new(domain: &'a Domain) -> Coset<'a> {
        Coset {
            domain,
            generator: root_of_unity(domain.log_size() + 1),
        }
    }

    /// `values[i] *= g^rev(i)`.
    fn shift(&self, values: &mut [Scalar], checkpoint: &dyn Checkpoint) -> Result<(), KernelError> {
        let (low, high) = values.split_at_mut(values.len().div_ceil(2));
        let engine = self.domain.engine();
        engine.shift(low, Scalar::ONE, checkpoint)?;
        engine.shift(high, self.generator, checkpoint)
    }

    /// From N·(L + U) and N^3·g^i·(L − U), both in bit-reversed order, makes
    /// U, in place of the latter. (Three unscaled transforms lie behind it.)
    fn halve_difference(
        &self,
        sums: &[Scalar],
        differences: &mut [Scalar],
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), KernelError> {
        let inverse = self.domain.size_inverse();
        let sum_scale = inverse * Scalar::TWO_INV;
        let scale = sum_scale * inverse.square();
        let high_scale = scale * self.generator.invert().unwrap_or(Scalar::ZERO);

        let middle = differences.len().div_ceil(2);
        let (low, high) = differences.split_at_mut(middle);
        let (low_sums, high_sums) = sums.split_at(middle);
        let engine = self.domain.engine();
        engine.unshift_from((low_sums, sum_scale), low, scale, checkpoint)?;
        engine.unshift_from((high_sums, sum_scale), high, high_scale, checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, naive};
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
