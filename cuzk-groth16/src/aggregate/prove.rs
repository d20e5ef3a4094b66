//! From proofs to their aggregate, in the order of the protocol.

use bellperson::groth16::Proof;
use blstrs::{Bls12, G1Affine, G2Affine, Scalar};
use cuzk_kernels::pairing::{PairingTerm, products};
use cuzk_kernels::{Context, KernelError, multiply_add};
use ff::Field;
use group::prime::PrimeCurveAffine;

use super::commitment::Commitment;
use super::error::AggregateError;
use super::key::{AggregationKey, check_number};
use super::opening::open;
use super::proof::{AggregateProof, Statement};
use super::recursion::{cross_terms, recurse};
use super::srs::powers;
use super::sums::in_g1;
use super::transcript::Transcript;
use super::vectors::Vectors;
use super::version::AggregateVersion;

/// The proofs' points.
struct Points {
    a: Vec<G1Affine>,
    b: Vec<G2Affine>,
    c: Vec<G1Affine>,
}

/// Aggregates proofs of one circuit. The result is bellperson's, byte for byte.
///
/// `included` enters the first challenge: it must bind the public inputs of all proofs.
/// Filecoin takes a hash of seeds and commitments. The proofs are not verified here: an
/// aggregate of a false proof does not verify.
///
/// # Errors
/// [`AggregateError::TooFew`], [`AggregateError::NotPowerOfTwo`],
/// [`AggregateError::OtherNumber`], and [`AggregateError::Kernel`] if a kernel is stopped.
pub fn aggregate<'a>(
    context: impl Into<Context<'a>>,
    key: &AggregationKey,
    version: AggregateVersion,
    included: &[u8],
    proofs: &[Proof<Bls12>],
) -> Result<AggregateProof, AggregateError> {
    let context = context.into();
    check_number(proofs.len())?;
    if proofs.len() != key.proofs() {
        return Err(AggregateError::OtherNumber {
            expected: key.proofs(),
            got: proofs.len(),
        });
    }
    let points = Points {
        a: proofs.iter().map(|proof| proof.a).collect(),
        b: proofs.iter().map(|proof| proof.b).collect(),
        c: proofs.iter().map(|proof| proof.c).collect(),
    };
    let [com_ab, com_c] = commit(context, key, &points)?;
    let hcom = Transcript::new("hcom")
        .with(&com_ab)
        .with(&com_c)
        .challenge();
    let r = Transcript::new("random-r")
        .with(&hcom)
        .with(included)
        .challenge();
    // A challenge is never zero.
    let r_inverse = r.invert().unwrap_or(Scalar::ZERO);

    let vectors = scaled(context, key, points, r, r_inverse)?;
    let agg_c = in_g1(context, (&vectors.c, &vectors.r))?;
    let (first, ip_ab) = cross_terms(context, &vectors, true)?;
    let statement = Statement {
        com_ab,
        com_c,
        ip_ab,
        agg_c,
    };
    let recursion = recurse(context, version, &statement, hcom, vectors, first)?;
    let openings = open(context, version, key, &recursion, r_inverse)?;
    Ok(AggregateProof {
        statement,
        proofs: u32::try_from(proofs.len()).unwrap_or(u32::MAX),
        rounds: recursion.rounds,
        last: recursion.last,
        openings,
    })
}

/// The commitments to A and B, and to C.
fn commit(
    context: Context<'_>,
    key: &AggregationKey,
    points: &Points,
) -> Result<[Commitment; 2], KernelError> {
    let ([v_alpha, v_beta], [w_alpha, w_beta]) = (key.v(), key.w());
    let terms = [
        PairingTerm {
            g2: v_alpha,
            factors: vec![(0, &points.a), (2, &points.c)],
        },
        PairingTerm {
            g2: v_beta,
            factors: vec![(1, &points.a), (3, &points.c)],
        },
        PairingTerm {
            g2: &points.b,
            factors: vec![(0, w_alpha), (1, w_beta)],
        },
    ];
    let products = products(context, 4, &terms)?;
    Ok([
        Commitment([products[0], products[1]]),
        Commitment([products[2], products[3]]),
    ])
}

/// The vectors of the first round: B scaled by the powers of r, and w by those of 1/r.
fn scaled(
    context: Context<'_>,
    key: &AggregationKey,
    points: Points,
    r: Scalar,
    r_inverse: Scalar,
) -> Result<Vectors, KernelError> {
    let proofs = key.proofs();
    let r: Vec<Scalar> = powers(r, proofs).collect();
    let inverses: Vec<Scalar> = powers(r_inverse, proofs).collect();
    let [w_alpha, w_beta] = key.w();
    let (b, w) = rayon::join(
        || multiply_add::g2(context, &vec![G2Affine::identity(); proofs], &points.b, &r),
        || {
            let twice = [inverses.as_slice(), &inverses].concat();
            let none = vec![G1Affine::identity(); twice.len()];
            multiply_add::g1(context, &none, &[w_alpha, w_beta].concat(), &twice)
        },
    );
    let mut w_alpha = w?;
    let w_beta = w_alpha.split_off(proofs);
    Ok(Vectors {
        a: points.a,
        b: b?,
        c: points.c,
        r,
        v: key.v().clone(),
        w: [w_alpha, w_beta],
    })
}
