//! A subgroup of roots of unity, and the transforms over it.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::direction::Direction;
use super::engine::Engine;
use super::pieces::TASK;
use super::root::root_of_unity;
use crate::context::Context;
use crate::error::{KernelError, expect_len};
use crate::isa::Isa;
use crate::matrix::reverse::reverse_bits_in_place;
use cuzk_memory::NEVER_STOP;

/// The subgroup of 2^k-th roots of unity, ready to transform over.
///
/// Holds a table of 2^(k − 1) scalars.
pub struct Domain {
    isa: Isa,
    log_size: u32,
    root: Scalar,
    size_inverse: Scalar,
    engine: Engine,
}

impl Domain {
    /// The domain of 2^`log_size` points.
    ///
    /// # Errors
    /// [`KernelError::DomainTooLarge`] when the field has no such subgroup,
    /// [`KernelError::Memory`] when there is none for the table.
    pub fn new(log_size: u32) -> Result<Domain, KernelError> {
        Domain::with(Isa::best(), log_size)
    }

    /// [`Domain::new`] with chosen instructions.
    ///
    /// # Errors
    /// As [`Domain::new`].
    pub fn with(isa: Isa, log_size: u32) -> Result<Domain, KernelError> {
        if log_size > Scalar::S {
            return Err(KernelError::DomainTooLarge {
                log_size,
                log_size_max: Scalar::S,
            });
        }
        let root = root_of_unity(log_size);
        Ok(Domain {
            isa,
            log_size,
            root,
            size_inverse: Scalar::TWO_INV.pow_vartime([u64::from(log_size)]),
            engine: Engine::new(isa, root, log_size)?,
        })
    }

    /// The smallest domain of at least `len_min` points.
    ///
    /// # Errors
    /// As [`Domain::new`].
    pub fn for_len(len_min: usize) -> Result<Domain, KernelError> {
        let log_size = usize::BITS - len_min.saturating_sub(1).leading_zeros();
        Domain::new(log_size)
    }

    /// Number of points.
    pub fn size(&self) -> usize {
        1 << self.log_size
    }

    /// Logarithm of the number of points.
    pub fn log_size(&self) -> u32 {
        self.log_size
    }

    /// The generator of the subgroup.
    pub fn root(&self) -> Scalar {
        self.root
    }

    /// 1 / [`Domain::size`].
    pub(crate) fn size_inverse(&self) -> Scalar {
        self.size_inverse
    }

    /// Returns the bytes of the block that a transform or a quotient over 2^`log_size`
    /// points works in, on `threads` threads. It takes one block at a time, and gives it
    /// back when it ends. It has some 64 KiB a thread on the heap.
    #[must_use]
    pub fn rows_bytes(isa: Isa, log_size: u32, threads: usize) -> usize {
        threads.max(1) * Engine::rows_bytes(isa, 1 << log_size)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Coefficients to values, in place: `values[i] = f(root^i)`.
    ///
    /// # Errors
    /// [`KernelError::LengthMismatch`] when there are not [`Domain::size`]
    /// values.
    pub fn ntt(&self, values: &mut [Scalar]) -> Result<(), KernelError> {
        expect_len("values", self.size(), values.len())?;
        self.scatter(values, Direction::Forward, self.isa.into())?;
        reverse_bits_in_place(values, &NEVER_STOP)
    }

    /// Values to coefficients, in place: the inverse of [`Domain::ntt`].
    ///
    /// # Errors
    /// As [`Domain::ntt`].
    pub fn intt(&self, values: &mut [Scalar]) -> Result<(), KernelError> {
        expect_len("values", self.size(), values.len())?;
        self.scatter(values, Direction::Inverse, self.isa.into())?;
        reverse_bits_in_place(values, &NEVER_STOP)?;
        values
            .par_iter_mut()
            .with_min_len(TASK)
            .for_each(|value| *value *= self.size_inverse);
        Ok(())
    }

    /// Coefficients to values on the coset: `values[i] = f(g · root^i)`, where
    /// g is the field's multiplicative generator.
    ///
    /// # Errors
    /// As [`Domain::ntt`].
    pub fn coset_ntt(&self, values: &mut [Scalar]) -> Result<(), KernelError> {
        expect_len("values", self.size(), values.len())?;
        multiply_by_powers(values, Scalar::ONE, Scalar::MULTIPLICATIVE_GENERATOR);
        self.ntt(values)
    }

    /// Values on the coset to coefficients: the inverse of
    /// [`Domain::coset_ntt`].
    ///
    /// # Errors
    /// As [`Domain::ntt`].
    pub fn coset_intt(&self, values: &mut [Scalar]) -> Result<(), KernelError> {
        expect_len("values", self.size(), values.len())?;
        self.scatter(values, Direction::Inverse, self.isa.into())?;
        reverse_bits_in_place(values, &NEVER_STOP)?;
        multiply_by_powers(values, self.size_inverse, generator_inverse());
        Ok(())
    }

    /// The transform without scaling, natural order to bit-reversed.
    pub(crate) fn scatter(
        &self,
        values: &mut [Scalar],
        direction: Direction,
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        self.engine.scatter(values, direction, context)
    }
}

fn generator_inverse() -> Scalar {
    Scalar::MULTIPLICATIVE_GENERATOR
        .invert()
        .unwrap_or(Scalar::ZERO)
}

/// `values[i] *= first · ratio^i`.
fn multiply_by_powers(values: &mut [Scalar], first: Scalar, ratio: Scalar) {
    values
        .par_chunks_mut(TASK)
        .enumerate()
        .for_each(|(task, values)| {
            let mut factor = first * ratio.pow_vartime([(task * TASK) as u64]);
            for value in values {
                *value *= factor;
                factor *= ratio;
            }
        });
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

    fn each_isa(
        log_sizes: impl IntoIterator<Item = u32> + Clone,
    ) -> impl Iterator<Item = (Isa, u32)> {
        Isa::all()
            .into_iter()
            .flat_map(move |isa| log_sizes.clone().into_iter().map(move |log| (isa, log)))
    }

    #[test]
    fn transforms_agree_with_evaluation() {
        let generator = Scalar::MULTIPLICATIVE_GENERATOR;
        for (isa, log_size) in each_isa(0..=11) {
            let domain = Domain::with(isa, log_size).unwrap();
            let coefficients = random(domain.size(), u64::from(log_size));
            let mut values = coefficients.clone();
            domain.ntt(&mut values).unwrap();
            let expected = naive::evaluate(&coefficients, domain.root(), Scalar::ONE);
            assert_eq!(values, expected, "{isa} ntt 2^{log_size}");
            domain.intt(&mut values).unwrap();
            assert_eq!(values, coefficients, "{isa} intt 2^{log_size}");

            domain.coset_ntt(&mut values).unwrap();
            let expected = naive::evaluate(&coefficients, domain.root(), generator);
            assert_eq!(values, expected, "{isa} coset_ntt 2^{log_size}");
            domain.coset_intt(&mut values).unwrap();
            assert_eq!(values, coefficients, "{isa} coset_intt 2^{log_size}");
        }
    }

    /// The values of a polynomial at a few of the domain's points.
    fn check_some(isa: Isa, log_size: u32, coefficients: &[Scalar]) {
        let domain = Domain::with(isa, log_size).unwrap();
        let mut values = coefficients.to_vec();
        domain.ntt(&mut values).unwrap();
        let size = domain.size();
        for i in [0, 1, 2, size / 2, size / 3, size - 2, size - 1] {
            let point = domain.root().pow_vartime([i as u64]);
            let expected = coefficients
                .iter()
                .rev()
                .fold(Scalar::ZERO, |value, c| value * point + c);
            assert_eq!(values[i], expected, "{isa} 2^{log_size} at {i}");
        }
        domain.intt(&mut values).unwrap();
        assert!(values == coefficients, "{isa} 2^{log_size} and back");
    }

    /// Sizes at which passes have most layers, and there is one more pass.
    #[test]
    fn large_transforms_agree_with_evaluation() {
        for (isa, log_size) in each_isa(20..=21).chain(Isa::ifma().map(|isa| (isa, 23))) {
            check_some(isa, log_size, &random(1 << log_size, 7));
        }
    }

    /// Inputs that lead to the largest values that lazy reductions meet.
    #[test]
    fn extreme_values_are_reduced() {
        let minus_one = -Scalar::ONE;
        let extremes: [fn(usize, Scalar) -> Scalar; 4] = [
            |_, minus_one| minus_one,
            |i, minus_one| if i % 2 == 0 { Scalar::ZERO } else { minus_one },
            |i, minus_one| if i == 0 { minus_one } else { Scalar::ZERO },
            |i, minus_one| {
                if i.count_ones() % 2 == 0 {
                    minus_one
                } else {
                    Scalar::ONE
                }
            },
        ];
        for (isa, log_size) in each_isa([6, 7, 9, 11, 12, 14]) {
            for extreme in extremes {
                let coefficients: Vec<_> =
                    (0..1 << log_size).map(|i| extreme(i, minus_one)).collect();
                check_some(isa, log_size, &coefficients);
            }
        }
    }

    #[test]
    fn transforms_agree_with_bellperson() {
        let worker = Worker::new();
        for (isa, log_size) in each_isa([1, 8, 12, 13, 15, 16, 17]) {
            let domain = Domain::with(isa, log_size).unwrap();
            let mut ours = random(domain.size(), u64::from(log_size));
            let mut theirs = EvaluationDomain::from_coeffs(ours.clone()).unwrap();
            domain.ntt(&mut ours).unwrap();
            theirs.fft(&worker, &mut None).unwrap();
            assert_eq!(ours, theirs.as_ref(), "{isa} ntt 2^{log_size}");
            domain.coset_intt(&mut ours).unwrap();
            theirs.icoset_fft(&worker, &mut None).unwrap();
            assert_eq!(ours, theirs.as_ref(), "{isa} coset_intt 2^{log_size}");
            domain.coset_ntt(&mut ours).unwrap();
            theirs.coset_fft(&worker, &mut None).unwrap();
            assert_eq!(ours, theirs.as_ref(), "{isa} coset_ntt 2^{log_size}");
            domain.intt(&mut ours).unwrap();
            theirs.ifft(&worker, &mut None).unwrap();
            assert_eq!(ours, theirs.as_ref(), "{isa} intt 2^{log_size}");
        }
    }

    #[test]
    fn values_move_to_the_coset() {
        for (isa, log_size) in each_isa((1..=11).chain([13])) {
            let domain = Domain::with(isa, log_size).unwrap();
            let coefficients = random(domain.size(), 3);
            let generator = root_of_unity(log_size + 1);
            let mut values = coefficients.clone();
            domain.ntt(&mut values).unwrap();
            domain
                .engine
                .move_to_coset(&mut values, generator, isa.into())
                .unwrap();
            let expected = naive::evaluate(&coefficients, domain.root(), generator);
            let scale = Scalar::from(domain.size() as u64);
            let scaled: Vec<_> = expected.iter().map(|value| value * scale).collect();
            assert_eq!(values, scaled, "{isa} 2^{log_size}");
        }
    }

    #[test]
    fn sizes_are_checked() {
        assert!(matches!(
            Domain::new(33),
            Err(KernelError::DomainTooLarge {
                log_size: 33,
                log_size_max: 32
            })
        ));
        let domain = Domain::new(3).unwrap();
        assert!(matches!(
            domain.ntt(&mut [Scalar::ONE; 7]),
            Err(KernelError::LengthMismatch {
                expected: 8,
                got: 7,
                ..
            })
        ));
    }

    #[test]
    fn the_smallest_sufficient_domain_is_chosen() {
        for (len, size) in [(0, 1), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (1025, 2048)] {
            assert_eq!(Domain::for_len(len).unwrap().size(), size);
        }
    }
}
