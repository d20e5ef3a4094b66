//! Products of pairings with blst, one Miller loop after the other on each thread.
//!
//! The slow twin of eight loops at a time. The invariant is that of the parent module.

use blstrs::{Bls12, G2Prepared, Gt, MillerLoopResult};
use pairing::{MillerLoopResult as _, MultiMillerLoop};
use rayon::prelude::*;

use super::PairingTerm;
use crate::context::Context;
use crate::error::KernelError;

/// As [`super::products`], whose checks have passed.
pub(super) fn products(
    context: &Context<'_>,
    count: usize,
    terms: &[PairingTerm<'_>],
) -> Result<Vec<Gt>, KernelError> {
    let points: Vec<(&PairingTerm<'_>, usize)> = terms
        .iter()
        .flat_map(|term| (0..term.g2.len()).map(move |i| (term, i)))
        .collect();
    let ones = || vec![MillerLoopResult::default(); count];
    let loops = points
        .into_par_iter()
        .try_fold(ones, |mut products, (term, i)| {
            context.check()?;
            let lines = G2Prepared::from(term.g2[i]);
            for (product, points) in &term.factors {
                products[*product] += Bls12::multi_miller_loop(&[(&points[i], &lines)]);
            }
            Ok::<_, KernelError>(products)
        })
        .try_reduce(ones, |mut left, right| {
            for (left, right) in left.iter_mut().zip(&right) {
                *left += right;
            }
            Ok(left)
        })?;
    Ok(loops
        .par_iter()
        .map(|product| product.final_exponentiation())
        .collect())
}
