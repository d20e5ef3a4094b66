//! A circuit's polynomials at one point: the quadratic arithmetic program of
//! its constraints (Groth, eprint 2016/260, section 2.4), evaluated at τ.
//!
//! Column j of a matrix gives the polynomial of degree below N that has the
//! column's values on the domain {ωⁱ}. Its value at τ is Σᵢ Lᵢ(τ)·mᵢⱼ with the
//! Lagrange polynomials Lᵢ, so no polynomial is ever written down. Not a
//! transform: nothing here needs one.

use blstrs::Scalar;
use cuzk_memory::{Checkpoint, Stopped};
use cuzk_pce::Program;
use ff::{BatchInvert, Field, PrimeField};
use rayon::prelude::*;

use super::error::GenerateError;

/// Elements that share one inversion.
const BATCH: usize = 1 << 12;

/// Rows between two looks at the checkpoint: about a millisecond of work.
const ROWS_PER_CHECK: usize = 1 << 12;

/// A circuit's polynomials at τ, one value a variable: `[inputs | aux]`.
#[derive(Debug)]
pub(super) struct Qap {
    /// Aⱼ(τ)
    pub(super) a: Vec<Scalar>,
    /// Bⱼ(τ)
    pub(super) b: Vec<Scalar>,
    /// Cⱼ(τ)
    pub(super) c: Vec<Scalar>,
    /// The domain's size N.
    pub(super) domain_len: usize,
    /// Z(τ) = τᴺ − 1.
    pub(super) vanishing: Scalar,
}

impl Qap {
    /// Evaluates the polynomials of `circuit`, completed by a row
    /// `inputᵢ · 0 = 0` for each public input, at `tau`.
    ///
    /// # Errors
    ///
    /// [`GenerateError::TooLarge`] for more rows than the field has roots of
    /// unity, [`GenerateError::DegenerateWaste`] for a τ of the domain, and
    /// [`GenerateError::Stopped`].
    pub(super) fn evaluate(
        circuit: &Program<Scalar>,
        tau: Scalar,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Self, GenerateError> {
        let rows = circuit.rows() + circuit.num_inputs();
        let log_domain_len = rows.next_power_of_two().trailing_zeros();
        if log_domain_len > Scalar::S {
            return Err(GenerateError::TooLarge {
                what: "rows",
                max: 1 << Scalar::S,
                got: rows as u64,
            });
        }
        let (lagrange, vanishing) = lagrange_at(tau, log_domain_len, rows, checkpoint)?;
        if vanishing.is_zero_vartime() {
            return Err(GenerateError::DegenerateWaste { what: "tau" });
        }
        let [mut a, b, c] = columns(circuit, &lagrange, checkpoint)?;
        for (value, weight) in a.iter_mut().zip(lagrange.iter().skip(circuit.rows())) {
            *value += weight;
        }
        Ok(Self {
            a,
            b,
            c,
            domain_len: 1 << log_domain_len,
            vanishing,
        })
    }
}

/// Σᵢ weightsᵢ·mᵢⱼ for every column j of A, B and C.
fn columns(
    circuit: &Program<Scalar>,
    weights: &[Scalar],
    checkpoint: &Checkpoint<'_>,
) -> Result<[Vec<Scalar>; 3], Stopped> {
    let mut sums = [(); 3].map(|()| vec![Scalar::ZERO; circuit.num_variables()]);
    for (index, (row, weight)) in circuit.unfold().zip(weights).enumerate() {
        if index % ROWS_PER_CHECK == 0 {
            checkpoint.check()?;
        }
        for (sums, terms) in sums.iter_mut().zip(row) {
            for (col, value) in terms {
                sums[col as usize] += weight * value;
            }
        }
    }
    Ok(sums)
}

/// The first `len` of the N = 2^`log_domain_len` Lagrange polynomials at τ, and
/// Z(τ) = τᴺ − 1. Lᵢ(τ) = Z(τ)/N · ωⁱ/(τ − ωⁱ); for a τ of the domain the values
/// mean nothing and Z(τ) is zero.
fn lagrange_at(
    tau: Scalar,
    log_domain_len: u32,
    len: usize,
    checkpoint: &Checkpoint<'_>,
) -> Result<(Vec<Scalar>, Scalar), Stopped> {
    let doublings = Scalar::S - log_domain_len;
    let omega = (0..doublings).fold(Scalar::ROOT_OF_UNITY, |root, _| root.square());
    let power = (0..log_domain_len).fold(tau, |power, _| power.square());
    let vanishing = power - Scalar::ONE;
    let scale = (0..log_domain_len).fold(vanishing, |scale, _| scale * Scalar::TWO_INV);
    let mut weights = vec![Scalar::ZERO; len];
    weights
        .par_chunks_mut(BATCH)
        .enumerate()
        .try_for_each(|(batch, weights)| {
            checkpoint.check()?;
            let mut point = omega.pow_vartime([(batch * BATCH) as u64]);
            let mut numerators = Vec::with_capacity(weights.len());
            for weight in weights.iter_mut() {
                *weight = tau - point;
                numerators.push(point * scale);
                point *= omega;
            }
            weights.iter_mut().batch_invert();
            for (weight, numerator) in weights.iter_mut().zip(numerators) {
                *weight *= numerator;
            }
            Ok(())
        })?;
    Ok((weights, vanishing))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use cuzk_memory::{Cancellation, NEVER_STOP};
    use cuzk_testing::circuits::Mimc;

    use super::*;

    /// Lᵢ(τ) from its definition: Πⱼ≠ᵢ (τ − ωʲ)/(ωⁱ − ωʲ).
    fn lagrange_by_definition(tau: Scalar, points: &[Scalar], i: usize) -> Scalar {
        let others = points.iter().enumerate().filter(|(j, _)| *j != i);
        others.fold(Scalar::ONE, |product, (_, point)| {
            product * (tau - point) * (points[i] - point).invert().unwrap()
        })
    }

    #[test]
    fn lagrange_polynomials_are_those_of_the_definition() {
        let tau = Scalar::from(0x1234_5678_9abc_def1).square();
        for log_domain_len in 0..6 {
            let domain_len = 1usize << log_domain_len;
            let root = Scalar::ROOT_OF_UNITY.pow_vartime([1u64 << (Scalar::S - log_domain_len)]);
            let points: Vec<_> = (0..domain_len as u64)
                .map(|i| root.pow_vartime([i]))
                .collect();
            let (weights, vanishing) =
                lagrange_at(tau, log_domain_len, domain_len, &NEVER_STOP).unwrap();
            for (i, weight) in weights.iter().enumerate() {
                assert_eq!(*weight, lagrange_by_definition(tau, &points, i));
            }
            let product = points
                .iter()
                .fold(Scalar::ONE, |product, point| product * (tau - point));
            assert_eq!(vanishing, product);
        }
    }

    #[test]
    fn lagrange_polynomials_sum_to_one_over_many_batches() {
        let tau = Scalar::from(77);
        let (weights, _) = lagrange_at(tau, 14, 1 << 14, &NEVER_STOP).unwrap();
        assert_eq!(weights.iter().sum::<Scalar>(), Scalar::ONE);
        let (first, _) = lagrange_at(tau, 14, 5000, &NEVER_STOP).unwrap();
        assert_eq!(first, weights[..5000]);
    }

    #[test]
    fn a_cancelled_evaluation_stops_before_its_first_row() {
        let stop = Cancellation::default();
        let checkpoint = Checkpoint::new(&stop);
        assert!(lagrange_at(Scalar::from(77), 3, 8, &checkpoint).is_ok());
        stop.cancel();
        assert_eq!(
            lagrange_at(Scalar::from(77), 3, 8, &checkpoint),
            Err(Stopped)
        );
    }

    #[test]
    fn the_columns_look_at_the_checkpoint_every_few_thousand_rows() {
        let looks = AtomicUsize::new(0);
        let checkpoint = Checkpoint::asking(|| {
            looks.fetch_add(1, Ordering::Relaxed);
            false
        });
        // A round has two rows.
        let circuit = cuzk_pce::compile(Mimc::blank(5 * ROWS_PER_CHECK / 4)).unwrap();
        let weights = vec![Scalar::ONE; circuit.rows()];
        columns(&circuit, &weights, &checkpoint).unwrap();
        assert_eq!(looks.load(Ordering::Relaxed), 3);
    }
}
