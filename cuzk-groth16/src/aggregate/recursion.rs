//! The recursion that halves the vectors: the inner-product arguments TIPP and MIPP at once.
//!
//! SnarkPack, section 4, after Bünz, Maller, Mishra, Tyagi and Vesely: "Proofs for Inner
//! Pairing Products and Applications", eprint 2019/1177. The invariant: the challenges are
//! one a round, and the transcript of a round has all its cross terms.

use blstrs::{Gt, Scalar};
use cuzk_kernels::{Context, KernelError, pairing};
use ff::Field;

use super::commitment::Commitment;
use super::error::AggregateError;
use super::proof::{Last, Round, Statement};
use super::sums::two_in_g1;
use super::transcript::Transcript;
use super::vectors::{Vectors, places};
use super::version::AggregateVersion;

/// The challenge of a round, and its inverse.
#[derive(Clone, Copy)]
pub(super) struct Challenge {
    pub(super) x: Scalar,
    pub(super) inverse: Scalar,
}

impl Challenge {
    /// The transcript gives the inverse, because the verifier's scalings by it are the dear
    /// ones. It is never zero.
    fn of_inverse(inverse: Scalar) -> Self {
        let x = inverse.invert().unwrap_or(Scalar::ZERO);
        Self { x, inverse }
    }
}

/// The end of the recursion.
pub(super) struct Recursion {
    pub(super) rounds: Vec<Round>,
    pub(super) challenges: Vec<Challenge>,
    pub(super) last: Last,
    /// Binds the openings to the last round.
    pub(super) link: Scalar,
}

/// A round's cross terms, and the product of A and B themselves if it was asked for.
pub(super) fn cross_terms(
    context: Context<'_>,
    vectors: &Vectors,
    with_whole: bool,
) -> Result<(Round, Gt), KernelError> {
    let terms = vectors.terms(with_whole);
    let (products, sums) = rayon::join(
        || pairing::products(context, places::COUNT, &terms),
        || two_in_g1(context, vectors.sums()),
    );
    let products = products?;
    let commitment = |places: [usize; 2]| Commitment(places.map(|place| products[place]));
    let round = Round {
        com_ab: places::COM_AB.map(commitment),
        com_c: places::COM_C.map(commitment),
        z_ab: places::Z_AB.map(|place| products[place]),
        z_c: sums?,
    };
    Ok((round, products[places::WHOLE]))
}

/// Runs the recursion from the first round, whose cross terms are known, to the last.
pub(super) fn recurse(
    context: Context<'_>,
    version: AggregateVersion,
    statement: &Statement,
    hcom: Scalar,
    mut vectors: Vectors,
    first: Round,
) -> Result<Recursion, AggregateError> {
    let shift = vectors.r.get(1).copied().unwrap_or(Scalar::ONE);
    let start = Transcript::new("gipa-0")
        .with(&hcom)
        .with(&statement.ip_ab)
        .with(&statement.agg_c)
        .with(&shift)
        .challenge();
    let mut rounds = vec![first];
    let mut challenges: Vec<Challenge> = Vec::new();
    loop {
        let (index, round) = (challenges.len(), &rounds[challenges.len()]);
        let inverse = match (challenges.last(), version) {
            (None, AggregateVersion::V1) => start,
            (None, AggregateVersion::V2) => next(index, start, round),
            (Some(before), _) => next(index, before.inverse, round),
        };
        let challenge = Challenge::of_inverse(inverse);
        challenges.push(challenge);
        vectors = vectors.fold(context, challenge.x, challenge.inverse)?;
        if vectors.len() == 1 {
            let last = last(&vectors);
            let link = link(challenge.x, &last, &rounds[index]);
            return Ok(Recursion {
                rounds,
                challenges,
                last,
                link,
            });
        }
        rounds.push(cross_terms(context, &vectors, false)?.0);
    }
}

/// The inverse of a round's challenge.
fn next(index: usize, before: Scalar, round: &Round) -> Scalar {
    let transcript = Transcript::new(&format!("gipa-{index}")).with(&before);
    with_cross_terms(transcript, round).challenge()
}

fn with_cross_terms(transcript: Transcript, round: &Round) -> Transcript {
    transcript
        .with(&round.z_ab)
        .with(&round.z_c)
        .with(&round.com_ab)
        .with(&round.com_c)
}

fn link(x: Scalar, last: &Last, round: &Round) -> Scalar {
    let transcript = Transcript::new("gipa-extra-link")
        .with(&x)
        .with(&last.a)
        .with(&last.b)
        .with(&last.c);
    with_cross_terms(transcript, round).challenge()
}

/// The only elements of vectors of length 1.
fn last(vectors: &Vectors) -> Last {
    Last {
        a: vectors.a[0],
        b: vectors.b[0],
        c: vectors.c[0],
        v: vectors.v.each_ref().map(|key| key[0]),
        w: vectors.w.each_ref().map(|key| key[0]),
    }
}
