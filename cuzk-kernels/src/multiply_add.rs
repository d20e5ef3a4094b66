//! Scaled points, added to others: `addends[i] + scalars[i] · points[i]`, one result for each
//! index.
//!
//! Not a sum over the indices: that is [`msm`](crate::msm). Not many multiples of one point:
//! that is [`fixed_base`](crate::fixed_base). The invariant: results are affine and exact,
//! also with points at infinity.

use blstrs::{G1Affine, G2Affine, Scalar};
use group::Curve;
use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

#[cfg(not(target_arch = "x86_64"))]
use crate::affine::Coordinates as Scaled;
use crate::context::Context;
use crate::error::{KernelError, expect_len};
#[cfg(target_arch = "x86_64")]
use crate::ifma::{
    Ifma,
    scaled::{self, Scaled},
};
#[cfg(target_arch = "x86_64")]
use crate::isa::Implementation;

/// Points that are scaled together.
#[cfg(target_arch = "x86_64")]
const LANES: usize = 8;

/// Returns `addends[i] + scalars[i] · points[i]` in G1.
///
/// # Errors
/// [`KernelError::LengthMismatch`] when the slices differ in length;
/// [`KernelError::Stopped`].
pub fn g1<'a>(
    context: impl Into<Context<'a>>,
    addends: &[G1Affine],
    points: &[G1Affine],
    scalars: &[Scalar],
) -> Result<Vec<G1Affine>, KernelError> {
    // So the kernels are compiled here, and not for each kind of context in each crate.
    in_g1(context.into(), addends, points, scalars)
}

fn in_g1(
    context: Context<'_>,
    addends: &[G1Affine],
    points: &[G1Affine],
    scalars: &[Scalar],
) -> Result<Vec<G1Affine>, KernelError> {
    in_any(context, addends, points, scalars)
}

/// Returns `addends[i] + scalars[i] · points[i]` in G2.
///
/// # Errors
/// As [`g1`].
pub fn g2<'a>(
    context: impl Into<Context<'a>>,
    addends: &[G2Affine],
    points: &[G2Affine],
    scalars: &[Scalar],
) -> Result<Vec<G2Affine>, KernelError> {
    in_g2(context.into(), addends, points, scalars)
}

fn in_g2(
    context: Context<'_>,
    addends: &[G2Affine],
    points: &[G2Affine],
    scalars: &[Scalar],
) -> Result<Vec<G2Affine>, KernelError> {
    in_any(context, addends, points, scalars)
}

/// Points of either curve.
fn in_any<A>(
    context: Context<'_>,
    addends: &[A],
    points: &[A],
    scalars: &[Scalar],
) -> Result<Vec<A>, KernelError>
where
    A: Scaled,
    A::Curve: Curve<AffineRepr = A>,
{
    expect_len("scalars", points.len(), scalars.len())?;
    expect_len("addends", points.len(), addends.len())?;
    #[cfg(target_arch = "x86_64")]
    if let Implementation::Ifma(token) = context.isa.implementation() {
        return in_lanes(&context, token, addends, points, scalars);
    }
    serial(&context, addends, points, scalars)
}

/// Eight points at a time on each thread. Groups of eight with an exception of the addition law
/// are left to [`serial`].
#[cfg(target_arch = "x86_64")]
fn in_lanes<A>(
    context: &Context<'_>,
    token: Ifma,
    addends: &[A],
    points: &[A],
    scalars: &[Scalar],
) -> Result<Vec<A>, KernelError>
where
    A: Scaled,
    A::Curve: Curve<AffineRepr = A>,
{
    let groups = points.par_chunks(LANES).zip(scalars.par_chunks(LANES));
    let groups = groups.zip(addends.par_chunks(LANES)).with_max_len(1);
    let group = |((points, scalars), addends): ((&[A], &[Scalar]), &[A])| {
        context.check()?;
        // A short group repeats its last point.
        let last = points.len() - 1;
        let lanes = scaled::multiply_add(
            token,
            &std::array::from_fn(|lane| addends[lane.min(last)]),
            &std::array::from_fn(|lane| points[lane.min(last)]),
            &std::array::from_fn(|lane| scalars[lane.min(last)]),
        );
        match lanes {
            Some(lanes) => Ok(lanes[..points.len()].to_vec()),
            None => serial(context, addends, points, scalars),
        }
    };
    let groups: Vec<Vec<A>> = groups.map(group).collect::<Result<_, KernelError>>()?;
    Ok(groups.concat())
}

/// One multiplication of blst's after the other on each thread.
fn serial<A>(
    context: &Context<'_>,
    addends: &[A],
    points: &[A],
    scalars: &[Scalar],
) -> Result<Vec<A>, KernelError>
where
    A: PrimeCurveAffine<Scalar = Scalar>,
    A::Curve: Curve<AffineRepr = A>,
{
    let terms = points.par_iter().zip(scalars).zip(addends);
    let one = |((point, scalar), addend): ((&A, &Scalar), &A)| {
        context.check()?;
        Ok((*point * scalar + addend).to_affine())
    };
    terms.map(one).collect()
}
