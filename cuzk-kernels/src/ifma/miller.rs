//! Miller loops, eight at a time: each lane has pairs of its own.
//!
//! Several products share their points of G2: the multiples of a point and their lines are
//! computed once for all. Pairs of one product in one lane share the squarings.
//!
//! Not whole pairings: the final exponentiation is the caller's. The invariant: no point is
//! at infinity.

use blst::{blst_fp6, blst_fp12};
use blstrs::{Fp12 as BlstFp12, G1Affine, G2Affine};
use cuzk_memory::{Checkpoint, Stopped};

use super::Ifma;
use super::field::fp2::Fp2;
use super::field::lanes::LANES;
use super::line::{Evaluation, Multiple};
use super::tower::Fp12;

/// The curve's parameter but for its sign, which is negative.
const PARAMETER: u64 = 0xd201_0000_0001_0000;

/// Pairs in eight lanes.
pub(crate) struct Bundle {
    /// Points of G2, by their place in a lane.
    pub(crate) g2: Vec<[G2Affine; LANES]>,
    /// For each product as many points of G1.
    pub(crate) g1: Vec<Vec<[G1Affine; LANES]>>,
}

impl Bundle {
    /// Returns each product's Miller loops, lane by lane.
    ///
    /// # Errors
    /// [`Stopped`], as the checkpoint says.
    pub(crate) fn miller_loops(
        &self,
        token: Ifma,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Vec<[BlstFp12; LANES]>, Stopped> {
        super::miller_loops(token, self, checkpoint)
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2")]
pub(super) fn miller_loops(
    token: Ifma,
    bundle: &Bundle,
    checkpoint: &Checkpoint<'_>,
) -> Result<Vec<[BlstFp12; LANES]>, Stopped> {
    let mut multiples = Vec::with_capacity(bundle.g2.len());
    for points in &bundle.g2 {
        multiples.push(Multiple::new(token, points));
    }
    let mut products = Vec::with_capacity(bundle.g1.len());
    for points in &bundle.g1 {
        let mut evaluations = Vec::with_capacity(points.len());
        for points in points {
            evaluations.push(Evaluation::new(token, points));
        }
        products.push((Fp12::one(token), evaluations));
    }
    for bit in (0..PARAMETER.ilog2()).rev() {
        checkpoint.check()?;
        for (product, _) in &mut products {
            *product = product.square();
        }
        for (place, multiple) in multiples.iter_mut().enumerate() {
            let line = multiple.double();
            for (product, evaluations) in &mut products {
                *product = product.mul_line(&line.at(&evaluations[place]));
            }
            if PARAMETER >> bit & 1 == 1 {
                let line = multiple.add_base();
                for (product, evaluations) in &mut products {
                    *product = product.mul_line(&line.at(&evaluations[place]));
                }
            }
        }
    }
    let mut exported = Vec::with_capacity(products.len());
    for (product, _) in &products {
        exported.push(export(token, product));
    }
    Ok(exported)
}

/// Each lane's value for the parameter itself: the conjugate of that for its opposite.
fn export(token: Ifma, value: &Fp12) -> [BlstFp12; LANES] {
    let halves = value
        .0
        .map(|half| half.0.map(|part| Fp2::export(&part, token)));
    std::array::from_fn(|lane| {
        let half = |half: usize| blst_fp6 {
            fp2: std::array::from_fn(|part| halves[half][part][lane].into()),
        };
        let mut value = BlstFp12::from(blst_fp12 {
            fp6: [half(0), half(1)],
        });
        value.conjugate();
        value
    })
}
