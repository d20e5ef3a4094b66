//! Openings of the last commitment keys, as polynomials in the SRS's secrets.
//!
//! A folded commitment key is `f(α) · H` with f(X) = Π (1 + x_j·X^(2^j)). Its opening at z is
//! the quotient (f(X) − f(z)) / (X − z) at α. Kate, Zaverucha and Goldberg: "Constant-Size
//! Commitments to Polynomials and Their Applications", Asiacrypt 2010; SnarkPack, section 5.

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::{Context, KernelError};
use ff::Field;

use super::key::AggregationKey;
use super::proof::{Last, Openings};
use super::recursion::{Challenge, Recursion};
use super::sums::{in_g1, in_g2};
use super::transcript::Transcript;
use super::version::AggregateVersion;

/// Returns the openings of both keys at a challenge. `shift` is 1/r, by whose powers the key
/// w is scaled.
pub(super) fn open(
    context: Context<'_>,
    version: AggregateVersion,
    key: &AggregationKey,
    recursion: &Recursion,
    shift: Scalar,
) -> Result<Openings, KernelError> {
    let z = point(version, recursion);
    let f_v = coefficients(&recursion.challenges, |c| c.inverse, Scalar::ONE);
    let mut f_w = vec![Scalar::ZERO; key.proofs()];
    f_w.extend(coefficients(&recursion.challenges, |c| c.x, shift));
    let (q_v, q_w) = (quotient(&f_v, z), quotient(&f_w, z));
    let in_g1 = |powers: &Vec<G1Affine>| in_g1(context, (&powers[..q_w.len()], &q_w));
    let in_g2 = |powers: &Vec<G2Affine>| in_g2(context, (&powers[..q_v.len()], &q_v));
    let [v_alpha, v_beta] = key.v();
    let [g_alpha, g_beta] = key.g();
    let (v, w) = rayon::join(
        || rayon::join(|| in_g2(v_alpha), || in_g2(v_beta)),
        || rayon::join(|| in_g1(g_alpha), || in_g1(g_beta)),
    );
    Ok(Openings {
        v: [v.0?, v.1?],
        w: [w.0?, w.1?],
    })
}

/// The challenge at which the polynomials are opened.
fn point(version: AggregateVersion, recursion: &Recursion) -> Scalar {
    let Last { a, b, c, v, w } = &recursion.last;
    let last = recursion
        .challenges
        .last()
        .map_or(Scalar::ONE, |challenge| challenge.x);
    let transcript = Transcript::new("random-z");
    match version {
        AggregateVersion::V1 => transcript.with(&last).with(v).with(w),
        AggregateVersion::V2 => transcript
            .with(&recursion.link)
            .with(v)
            .with(w)
            .with(a)
            .with(b)
            .with(c),
    }
    .challenge()
}

/// The coefficients of Π (1 + x_j·(shift·X)^(2^j)), j from 0 on, where x_0 is of the last
/// round.
fn coefficients(
    challenges: &[Challenge],
    x: impl Fn(&Challenge) -> Scalar,
    shift: Scalar,
) -> Vec<Scalar> {
    let mut coefficients = vec![Scalar::ONE];
    let mut power = shift;
    for challenge in challenges.iter().rev() {
        let factor = x(challenge) * power;
        coefficients.extend_from_within(..);
        let half = coefficients.len() / 2;
        coefficients[half..].iter_mut().for_each(|c| *c *= factor);
        power = power.square();
    }
    coefficients
}

/// The quotient of f(X) − f(z) by X − z, by Horner's rule.
fn quotient(f: &[Scalar], z: Scalar) -> Vec<Scalar> {
    let mut quotient = vec![Scalar::ZERO; f.len() - 1];
    let mut value = Scalar::ZERO;
    for (q, coefficient) in quotient.iter_mut().zip(&f[1..]).rev() {
        value = value * z + coefficient;
        *q = value;
    }
    quotient
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(f: &[Scalar], at: Scalar) -> Scalar {
        f.iter().rev().fold(Scalar::ZERO, |sum, c| sum * at + c)
    }

    #[test]
    fn the_quotient_times_its_divisor_is_the_difference() {
        let f = [3, 1, 4, 1, 5].map(Scalar::from);
        let (z, at) = (Scalar::from(7), Scalar::from(11));
        let product = value(&quotient(&f, z), at) * (at - z);
        assert_eq!(product, value(&f, at) - value(&f, z));
    }

    #[test]
    fn coefficients_are_those_of_the_product() {
        let challenges = [2, 3, 5].map(|x| Challenge {
            x: Scalar::from(x),
            inverse: Scalar::ZERO,
        });
        let (shift, at) = (Scalar::from(13), Scalar::from(17));
        let f = coefficients(&challenges, |c| c.x, shift);
        let power = |j: u64| (shift * at).pow_vartime([1 << j]);
        let factor = |x: u64, j: u64| Scalar::ONE + Scalar::from(x) * power(j);
        assert_eq!(value(&f, at), factor(5, 0) * factor(3, 1) * factor(2, 2));
    }
}
