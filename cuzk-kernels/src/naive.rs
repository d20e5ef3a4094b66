//! Slow twins: each function computes, in the plainest way, what a kernel of
//! this crate computes fast. They exist to be read and to be compared with;
//! they are quadratic or worse and panic on nothing.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;

/// `Σ scalars[i] · bases[i]` over the shorter of the two slices.
pub fn msm<A>(bases: &[A], scalars: &[Scalar]) -> A::Curve
where
    A: PrimeCurveAffine<Scalar = Scalar>,
{
    bases
        .iter()
        .zip(scalars)
        .fold(A::identity().to_curve(), |sum, (base, scalar)| {
            sum + *base * scalar
        })
}

/// For each column the sum of the bases whose bit is set: bit i of word i / 64 is base i.
/// Missing words are zero.
pub fn columns<A>(bases: &[A], columns: &[&[u64]]) -> Vec<A::Curve>
where
    A: PrimeCurveAffine<Scalar = Scalar>,
{
    let is_set = |column: &[u64], i: usize| {
        let word = column.get(i / 64).copied().unwrap_or(0);
        word >> (i % 64) & 1 == 1
    };
    let sum = |column: &&[u64]| {
        let bases = bases.iter().enumerate();
        let selected = bases.filter(|(i, _)| is_set(column, *i));
        selected.fold(A::identity().to_curve(), |sum, (_, base)| sum + base)
    };
    columns.iter().map(sum).collect()
}

/// `scalars[i] · base` for every `i`.
pub fn fixed_base<A>(base: A, scalars: &[Scalar]) -> Vec<A>
where
    A: PrimeCurveAffine<Scalar = Scalar> + From<A::Curve>,
{
    scalars
        .iter()
        .map(|scalar| A::from(base * scalar))
        .collect()
}

/// Values of the polynomial with these coefficients at `shift · root^i`, for
/// as many `i` as there are coefficients.
pub fn evaluate(coefficients: &[Scalar], root: Scalar, shift: Scalar) -> Vec<Scalar> {
    let mut point = shift;
    coefficients
        .iter()
        .map(|_| {
            let value = horner(coefficients, point);
            point *= root;
            value
        })
        .collect()
}

/// Returns the coefficients of the polynomial with these values at `root^i`, where `root`
/// has order `values.len()`. Returns `None` if that length or the root is zero in the
/// field.
pub fn interpolate(values: &[Scalar], root: Scalar) -> Option<Vec<Scalar>> {
    let size = u64::try_from(values.len()).ok()?;
    let size_inverse = Option::<Scalar>::from(Scalar::from(size).invert())?;
    let root_inverse = Option::<Scalar>::from(root.invert())?;
    let sums = evaluate(values, root_inverse, Scalar::ONE);
    Some(sums.into_iter().map(|sum| sum * size_inverse).collect())
}

/// Returns quotient and remainder of `(A·B − C) / (x^N − 1)`, by schoolbook multiplication
/// and long division. A, B and C interpolate `a`, `b` and `a ∘ b` over the N-th roots of
/// unity. Returns `None` unless N = `a.len()` is a power of two no larger than 2^32.
pub fn quotient(a: &[Scalar], b: &[Scalar]) -> Option<(Vec<Scalar>, Vec<Scalar>)> {
    let size = a.len();
    if !size.is_power_of_two() || size.trailing_zeros() > Scalar::S || b.len() != size {
        return None;
    }
    let root = (size.trailing_zeros()..Scalar::S).fold(Scalar::ROOT_OF_UNITY, |r, _| r.square());
    let c: Vec<Scalar> = a.iter().zip(b).map(|(a, b)| a * b).collect();

    let mut numerator = multiply(&interpolate(a, root)?, &interpolate(b, root)?);
    for (n, c) in numerator.iter_mut().zip(interpolate(&c, root)?) {
        *n -= c;
    }
    // Long division by x^N − 1: a coefficient at x^(N+i) moves down to x^i.
    let (remainder, quotient) = numerator.split_at_mut(size);
    for (r, q) in remainder.iter_mut().zip(quotient.iter()) {
        *r += q;
    }
    Some((quotient.to_vec(), remainder.to_vec()))
}

fn horner(coefficients: &[Scalar], point: Scalar) -> Scalar {
    coefficients
        .iter()
        .rev()
        .fold(Scalar::ZERO, |value, c| value * point + c)
}

/// Schoolbook product, as long as both factors together.
fn multiply(a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
    let mut product = vec![Scalar::ZERO; a.len() + b.len()];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            if let Some(p) = product.get_mut(i + j) {
                *p += a * b;
            }
        }
    }
    product
}
