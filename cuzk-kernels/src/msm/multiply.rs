//! The MSM itself, from the terms to the result, in each form that callers ask for.

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Group;

use super::packed::PackedScalars;
use super::selected::sum_ones;
use super::shape::same_shapes;
use super::term::MsmTerm;
use super::wide::{InRows, multiply_in_rows, multiply_wide};
use super::window::{Choose, in_windows, plan};
use super::workspace::Area;
use crate::affine::{CurveOf, Kernel, Serial};
use crate::arithmetic::{Blst, Portable};
#[cfg(target_arch = "x86_64")]
use crate::avx2;
use crate::bases::Bases;
use crate::context::Context;
use crate::error::KernelError;
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};

/// `Σ scalars[i] · bases[i]` in G1.
///
/// # Errors
/// [`KernelError::LengthMismatch`] when the slices differ in length,
/// [`KernelError::TooManyTerms`] above 2^31 terms.
pub fn g1(bases: &[G1Affine], scalars: &[Scalar]) -> Result<G1Projective, KernelError> {
    g1_stream(bases, scalars)
}

/// `Σ scalars[i] · bases[i]` in G2.
///
/// # Errors
/// As [`g1`].
pub fn g2(bases: &[G2Affine], scalars: &[Scalar]) -> Result<G2Projective, KernelError> {
    g2_stream(bases, scalars)
}

/// `Σ scalars[i] · bases[i]` in G1, reading the bases in bounded pieces.
///
/// # Errors
/// As [`g1`], and [`KernelError::Bases`] when a base cannot be read.
pub fn g1_stream<B>(bases: &B, scalars: &[Scalar]) -> Result<G1Projective, KernelError>
where
    B: Bases<G1Affine> + ?Sized,
{
    g1_with(Isa::best(), bases, scalars)
}

/// `Σ scalars[i] · bases[i]` in G2, reading the bases in bounded pieces.
///
/// # Errors
/// As [`g1_stream`].
pub fn g2_stream<B>(bases: &B, scalars: &[Scalar]) -> Result<G2Projective, KernelError>
where
    B: Bases<G2Affine> + ?Sized,
{
    g2_with(Isa::best(), bases, scalars)
}

/// [`g1_stream`] with chosen instructions, and in a way that can be stopped.
///
/// # Errors
/// As [`g1_stream`], and [`KernelError::Stopped`].
pub fn g1_with<'a, B>(
    context: impl Into<Context<'a>>,
    bases: &B,
    scalars: &[Scalar],
) -> Result<G1Projective, KernelError>
where
    B: Bases<G1Affine> + ?Sized,
{
    g1_of_terms(context, &[MsmTerm::new(&bases, scalars)])
}

/// [`g2_stream`] with chosen instructions, and in a way that can be stopped.
///
/// # Errors
/// As [`g1_with`].
pub fn g2_with<'a, B>(
    context: impl Into<Context<'a>>,
    bases: &B,
    scalars: &[Scalar],
) -> Result<G2Projective, KernelError>
where
    B: Bases<G2Affine> + ?Sized,
{
    g2_of_terms(context, &[MsmTerm::new(&bases, scalars)])
}

/// [`g1_with`] over packed scalars.
///
/// # Errors
/// As [`g1_with`].
pub fn g1_packed<'a, B>(
    context: impl Into<Context<'a>>,
    bases: &B,
    scalars: &PackedScalars<'_>,
) -> Result<G1Projective, KernelError>
where
    B: Bases<G1Affine> + ?Sized,
{
    g1_of_terms(context, &[MsmTerm::new(&bases, *scalars)])
}

/// [`g2_with`] over packed scalars.
///
/// # Errors
/// As [`g1_with`].
pub fn g2_packed<'a, B>(
    context: impl Into<Context<'a>>,
    bases: &B,
    scalars: &PackedScalars<'_>,
) -> Result<G2Projective, KernelError>
where
    B: Bases<G2Affine> + ?Sized,
{
    g2_of_terms(context, &[MsmTerm::new(&bases, *scalars)])
}

/// Computes the sum of the MSMs of all terms, in G1. It takes less time than the MSMs one
/// by one, because all terms fill the same buckets.
///
/// # Errors
/// As [`g1_with`].
pub fn g1_of_terms<'a>(
    context: impl Into<Context<'a>>,
    parts: &[MsmTerm<'_, G1Affine>],
) -> Result<G1Projective, KernelError> {
    g1_planned(context.into(), parts, &plan)
}

/// Computes the sum of the MSMs of all terms, in G2.
///
/// # Errors
/// As [`g1_with`].
pub fn g2_of_terms<'a>(
    context: impl Into<Context<'a>>,
    parts: &[MsmTerm<'_, G2Affine>],
) -> Result<G2Projective, KernelError> {
    g2_planned(context.into(), parts, &plan)
}

/// Returns the width of the windows, in bits, into which an MSM cuts `wide` scalars that
/// are neither 0 nor ±1, on `threads` threads. The cost model chooses it.
pub fn window_bits(wide: usize, threads: usize) -> u32 {
    plan(wide, threads.max(1)).windows.bits()
}

/// [`g1_with`] with windows of at most `bits` bits, for measuring whether [`window_bits`] are
/// the best. `bits` is at least 3 and at most 20. There are as few windows as that allows, and
/// they are as equally wide as possible.
///
/// # Errors
/// As [`g1_with`].
pub fn g1_in_windows<'a>(
    context: impl Into<Context<'a>>,
    bits: u32,
    bases: &[G1Affine],
    scalars: &[Scalar],
) -> Result<G1Projective, KernelError> {
    let parts = [MsmTerm::new(&bases, scalars)];
    g1_planned(context.into(), &parts, &|_, threads| {
        in_windows(bits, threads)
    })
}

/// [`g2_with`] with windows of `bits` bits, as [`g1_in_windows`].
///
/// # Errors
/// As [`g2_with`].
pub fn g2_in_windows<'a>(
    context: impl Into<Context<'a>>,
    bits: u32,
    bases: &[G2Affine],
    scalars: &[Scalar],
) -> Result<G2Projective, KernelError> {
    let parts = [MsmTerm::new(&bases, scalars)];
    g2_planned(context.into(), &parts, &|_, threads| {
        in_windows(bits, threads)
    })
}

fn g1_planned(
    context: Context<'_>,
    parts: &[MsmTerm<'_, G1Affine>],
    choose: Choose<'_>,
) -> Result<G1Projective, KernelError> {
    match context.isa.implementation() {
        Implementation::Portable => {
            msm(Serial::<G1Affine, Portable>::new(), parts, choose, context)
        }
        Implementation::Scalar => msm(Serial::<G1Affine, Blst>::new(), parts, choose, context),
        #[cfg(target_arch = "x86_64")]
        Implementation::Avx2(token) => msm(avx2::G1::new(token), parts, choose, context),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => msm(ifma::G1::new(token), parts, choose, context),
    }
}

fn g2_planned(
    context: Context<'_>,
    parts: &[MsmTerm<'_, G2Affine>],
    choose: Choose<'_>,
) -> Result<G2Projective, KernelError> {
    match context.isa.implementation() {
        Implementation::Portable => {
            msm(Serial::<G2Affine, Portable>::new(), parts, choose, context)
        }
        Implementation::Scalar => msm(Serial::<G2Affine, Blst>::new(), parts, choose, context),
        #[cfg(target_arch = "x86_64")]
        Implementation::Avx2(token) => msm(avx2::G2::new(token), parts, choose, context),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => msm(ifma::G2::new(token), parts, choose, context),
    }
}

fn msm<'a, K: Kernel>(
    kernel: K,
    parts: &[MsmTerm<'a, K::Affine>],
    choose: Choose<'_>,
    context: Context<'a>,
) -> Result<CurveOf<K>, KernelError> {
    parts.iter().try_for_each(MsmTerm::check)?;
    let mut area = Area::take(context.memory, rayon::current_num_threads())?;
    let workspaces = area.workspaces();
    let mut sum = CurveOf::<K>::identity();
    let (mut wide, mut in_rows) = (Vec::new(), Vec::new());
    for part in parts {
        let (ones, terms) = sum_ones(kernel, part, &workspaces, context)?;
        sum += ones;
        match InRows::new(kernel, &terms) {
            Some(rows) => in_rows.push((rows, terms)),
            None => wide.push(terms),
        }
    }
    for same_shape in same_shapes(&in_rows, |(rows, _)| rows.shape()) {
        sum += multiply_in_rows(kernel, same_shape, &workspaces, context)?;
    }
    Ok(sum + multiply_wide(kernel, &wide, choose, &workspaces, context)?)
}
