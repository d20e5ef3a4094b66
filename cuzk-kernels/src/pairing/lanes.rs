//! Products of pairings with eight Miller loops at a time on each thread.
//!
//! A [`Bundle`] has eight lanes, and each lane up to [`DEPTH`] pairs of each of its products.
//! The points that fill no eight lanes of a term share lanes with those of other terms that
//! have as many products. The invariant: each pair is in one lane, and a lane that has none
//! counts for nothing.

use blst::blst_fp12;
use blstrs::{Fp12, G1Affine, G2Affine, Gt};
use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

use super::PairingTerm;
use crate::context::Context;
use crate::error::KernelError;
use crate::ifma::Ifma;
use crate::ifma::miller::Bundle;

/// Lanes of a bundle.
const LANES: usize = 8;
/// The most pairs of a lane that share squarings. More would save less than they would keep
/// threads waiting.
const DEPTH: usize = 4;

/// A bundle, and the product of each factor in each lane.
struct Assigned {
    bundle: Bundle,
    /// By factor; none for a lane without a pair.
    products: Vec<[Option<usize>; LANES]>,
}

/// A point of a term that fills no eight lanes.
struct Loose<'a> {
    term: &'a PairingTerm<'a>,
    index: usize,
}

/// Returns true if a point is at infinity, which the lanes do not know.
pub(super) fn has_infinity(terms: &[PairingTerm<'_>]) -> bool {
    let is_infinite = |point: &G1Affine| bool::from(point.is_identity());
    terms.iter().any(|term| {
        let mut factors = term.factors.iter().flat_map(|(_, points)| *points);
        factors.any(is_infinite) || term.g2.iter().any(|point| point.is_identity().into())
    })
}

/// As [`super::products`], whose checks have passed, for points that are not at infinity.
pub(super) fn products(
    context: &Context<'_>,
    token: Ifma,
    count: usize,
    terms: &[PairingTerm<'_>],
) -> Result<Vec<Gt>, KernelError> {
    let bundles = assign(terms);
    let one = || vec![blst_fp12::default(); count];
    let loops = bundles
        .par_iter()
        .with_max_len(1)
        .try_fold(one, |mut products, assigned| {
            let loops = assigned.bundle.miller_loops(token, context.checkpoint)?;
            let lanes = assigned
                .products
                .iter()
                .flatten()
                .zip(loops.iter().flatten());
            for (product, value) in lanes {
                if let Some(product) = product {
                    products[*product] *= blst_fp12::from(*value);
                }
            }
            Ok::<_, KernelError>(products)
        })
        .try_reduce(one, |mut left, right| {
            for (left, right) in left.iter_mut().zip(right) {
                *left *= right;
            }
            Ok(left)
        })?;
    let exponentiated = loops.par_iter().with_max_len(1).map(|product| {
        context.check()?;
        Ok(Gt::from(Fp12::from(product.final_exp())))
    });
    exponentiated.collect()
}

/// Cuts terms into bundles.
fn assign(terms: &[PairingTerm<'_>]) -> Vec<Assigned> {
    let mut bundles = Vec::new();
    let mut loose: Vec<Loose<'_>> = Vec::new();
    for term in terms {
        let rows = term.g2.len() / LANES;
        for first in (0..rows).step_by(DEPTH) {
            bundles.push(whole_rows(term, first..rows.min(first + DEPTH)));
        }
        loose.extend((rows * LANES..term.g2.len()).map(|index| Loose { term, index }));
    }
    loose.sort_by_key(|loose| loose.term.factors.len());
    for group in loose.chunk_by(|a, b| a.term.factors.len() == b.term.factors.len()) {
        bundles.extend(group.chunks(LANES).map(shared_row));
    }
    bundles
}

/// Rows of a term that fill all lanes.
fn whole_rows(term: &PairingTerm<'_>, rows: std::ops::Range<usize>) -> Assigned {
    fn row<A: Copy>(points: &[A], row: usize) -> [A; LANES] {
        std::array::from_fn(|lane| points[row * LANES + lane])
    }
    let of_factor =
        |(_, points): &(usize, &[G1Affine])| rows.clone().map(|index| row(points, index)).collect();
    Assigned {
        bundle: Bundle {
            g2: rows.clone().map(|index| row(term.g2, index)).collect(),
            g1: term.factors.iter().map(of_factor).collect(),
        },
        products: term
            .factors
            .iter()
            .map(|(product, _)| [Some(*product); LANES])
            .collect(),
    }
}

/// A row of points of several terms with equally many factors. Lanes without a point repeat
/// the last one.
fn shared_row(group: &[Loose<'_>]) -> Assigned {
    let at = |lane: usize| &group[lane.min(group.len() - 1)];
    let factors = at(0).term.factors.len();
    let g2: [G2Affine; LANES] = std::array::from_fn(|lane| at(lane).term.g2[at(lane).index]);
    let of_factor = |factor: usize| {
        vec![std::array::from_fn(|lane| {
            at(lane).term.factors[factor].1[at(lane).index]
        })]
    };
    let product = |factor: usize| {
        std::array::from_fn(|lane| group.get(lane).map(|loose| loose.term.factors[factor].0))
    };
    Assigned {
        bundle: Bundle {
            g2: vec![g2],
            g1: (0..factors).map(of_factor).collect(),
        },
        products: (0..factors).map(product).collect(),
    }
}
