//! Multi-scalar multiplication `Σ scalars[i] · bases[i]` in G1 and G2.
//!
//! Scalars of 0 cost nothing, and their bases are not even read. Scalars of
//! ±1, most of a Groth16 witness, are sums of points. The others go through
//! Pippenger's bucket method with signed digits and affine buckets (Bernstein,
//! Doumen, Lange, Oosterwijk: "Faster batch forgery identification", eprint
//! 2012/549). Bases are decoded in chunks of 2^17, so memory is bounded
//! however many there are.

mod buckets;
mod packed;
mod stream;
pub mod subgroup;
mod window;

use std::ops::Range;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::Field;
use group::{Group, prime::PrimeCurveAffine};
use rayon::prelude::*;

use crate::affine::{self, Addition, BATCH, CurveOf, Kernel, Portable};
use crate::checkpoint::{Checkpoint, Context};
use crate::digits::{Recoded, Window, Windows};
use crate::error::{KernelError, expect_len};
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};
use buckets::Buckets;
use window::{Plan, plan};

pub use packed::PackedScalars;
use packed::push_indices;
use stream::read_selected;
pub use stream::{Bases, BasesError};

/// Bases in memory at a time.
const CHUNK: usize = 1 << 17;

/// Bases that one task decodes, or sums, at a time.
const TASK: usize = 1 << 12;

/// Words of packed scalars that one task sums: some 4096 ones.
const TASK_WORDS: usize = 128;

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
    let Context { isa, checkpoint } = context.into();
    match isa.implementation() {
        Implementation::Portable => msm(Portable::<G1Affine>::new(), bases, scalars, checkpoint),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => msm(ifma::G1::new(token), bases, scalars, checkpoint),
    }
}

/// [`g2_stream`] with chosen instructions, and in a way that can be stopped.
///
/// # Errors
/// As [`g1_stream`], and [`KernelError::Stopped`].
pub fn g2_with<'a, B>(
    context: impl Into<Context<'a>>,
    bases: &B,
    scalars: &[Scalar],
) -> Result<G2Projective, KernelError>
where
    B: Bases<G2Affine> + ?Sized,
{
    let Context { isa, checkpoint } = context.into();
    match isa.implementation() {
        Implementation::Portable => msm(Portable::<G2Affine>::new(), bases, scalars, checkpoint),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => msm(ifma::G2::new(token), bases, scalars, checkpoint),
    }
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
    let Context { isa, checkpoint } = context.into();
    match isa.implementation() {
        Implementation::Portable => {
            msm_packed(Portable::<G1Affine>::new(), bases, scalars, checkpoint)
        }
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => msm_packed(ifma::G1::new(token), bases, scalars, checkpoint),
    }
}

/// [`g2_with`] over packed scalars.
///
/// # Errors
/// As [`g2_with`].
pub fn g2_packed<'a, B>(
    context: impl Into<Context<'a>>,
    bases: &B,
    scalars: &PackedScalars<'_>,
) -> Result<G2Projective, KernelError>
where
    B: Bases<G2Affine> + ?Sized,
{
    let Context { isa, checkpoint } = context.into();
    match isa.implementation() {
        Implementation::Portable => {
            msm_packed(Portable::<G2Affine>::new(), bases, scalars, checkpoint)
        }
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => msm_packed(ifma::G2::new(token), bases, scalars, checkpoint),
    }
}

/// Bytes of the buckets of a sum in G2 with `wide` scalars that are neither 0
/// nor ±1, on `threads` threads.
pub fn g2_bucket_bytes(isa: Isa, wide: usize, threads: usize) -> usize {
    if wide == 0 {
        return 0;
    }
    let point_bytes = match isa.implementation() {
        Implementation::Portable => size_of::<<Portable<G2Affine> as Kernel>::Point>(),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(_) => size_of::<<ifma::G2 as Kernel>::Point>(),
    };
    plan(wide, threads.max(1)).buckets() * point_bytes
}

fn check_terms(bases: usize, scalars: usize) -> Result<(), KernelError> {
    expect_len("scalars", bases, scalars)?;
    if scalars > Addition::SOURCE_MAX {
        return Err(KernelError::TooManyTerms {
            got: scalars,
            max: Addition::SOURCE_MAX,
        });
    }
    Ok(())
}

fn msm<K, B>(
    kernel: K,
    bases: &B,
    scalars: &[Scalar],
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError>
where
    K: Kernel,
    B: Bases<K::Affine> + ?Sized,
{
    check_terms(bases.len(), scalars.len())?;
    let terms = Terms::new(scalars, checkpoint)?;
    let plus = sum_selected(kernel, bases, &terms.plus_one, checkpoint)?;
    let minus = sum_selected(kernel, bases, &terms.minus_one, checkpoint)?;
    let scalar = |_, index: u32| scalars[index as usize];
    let wide = multiply_wide(kernel, bases, scalar, &terms.wide, checkpoint)?;
    Ok(plus - minus + wide)
}

fn msm_packed<K, B>(
    kernel: K,
    bases: &B,
    scalars: &PackedScalars<'_>,
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError>
where
    K: Kernel,
    B: Bases<K::Affine> + ?Sized,
{
    check_terms(bases.len(), scalars.len())?;
    let ones = sum_ones(kernel, bases, scalars.ones(), checkpoint)?;
    let scalar = |place: usize, _| scalars.values()[place];
    let wide = multiply_wide(kernel, bases, scalar, &scalars.wide_indices(), checkpoint)?;
    Ok(ones + wide)
}

/// Indices of the scalars that are not zero, by what has to be done.
#[derive(Default)]
struct Terms {
    plus_one: Vec<u32>,
    minus_one: Vec<u32>,
    wide: Vec<u32>,
}

impl Terms {
    /// Sorts the scalars, of which there are at most 2^31.
    fn new(scalars: &[Scalar], checkpoint: &dyn Checkpoint) -> Result<Terms, KernelError> {
        let parts: Vec<Terms> = scalars
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(i, chunk)| {
                checkpoint.check()?;
                Ok(Terms::of_chunk(i * CHUNK, chunk))
            })
            .collect::<Result<_, KernelError>>()?;
        let mut terms = Terms::default();
        for part in parts {
            terms.plus_one.extend(part.plus_one);
            terms.minus_one.extend(part.minus_one);
            terms.wide.extend(part.wide);
        }
        Ok(terms)
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 scalars")]
    fn of_chunk(start: usize, chunk: &[Scalar]) -> Terms {
        let minus_one = -Scalar::ONE;
        let mut terms = Terms::default();
        for (i, scalar) in chunk.iter().enumerate() {
            let index = (start + i) as u32;
            if *scalar == Scalar::ZERO {
            } else if *scalar == Scalar::ONE {
                terms.plus_one.push(index);
            } else if *scalar == minus_one {
                terms.minus_one.push(index);
            } else {
                terms.wide.push(index);
            }
        }
        terms
    }
}

/// The sum of the bases with these indices.
fn sum_selected<K, B>(
    kernel: K,
    bases: &B,
    indices: &[u32],
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError>
where
    K: Kernel,
    B: Bases<K::Affine> + ?Sized,
{
    indices
        .par_chunks(TASK)
        .map_init(K::Scratch::default, |scratch, indices| {
            let mut points = vec![kernel.infinity(); indices.len()];
            import_selected(kernel, bases, indices, &mut points)?;
            checkpoint.check()?;
            affine::sum(kernel, &mut points, scratch, checkpoint)
        })
        .try_reduce(CurveOf::<K>::identity, |a, b| Ok(a + b))
}

/// The sum of the bases whose bit is set.
fn sum_ones<K, B>(
    kernel: K,
    bases: &B,
    words: &[u64],
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError>
where
    K: Kernel,
    B: Bases<K::Affine> + ?Sized,
{
    words
        .par_chunks(TASK_WORDS)
        .enumerate()
        .map_init(
            || (K::Scratch::default(), Vec::new()),
            |(scratch, indices), (task, words)| {
                indices.clear();
                push_indices(words, task * TASK_WORDS * 64, indices);
                let mut points = vec![kernel.infinity(); indices.len()];
                import_selected(kernel, bases, indices, &mut points)?;
                checkpoint.check()?;
                affine::sum(kernel, &mut points, scratch, checkpoint)
            },
        )
        .try_reduce(CurveOf::<K>::identity, |a, b| Ok(a + b))
}

/// Reads the bases with these indices into the kernel's form.
fn import_selected<K, B>(
    kernel: K,
    bases: &B,
    indices: &[u32],
    points: &mut [K::Point],
) -> Result<(), BasesError>
where
    K: Kernel,
    B: Bases<K::Affine> + ?Sized,
{
    if let Some(encoded) = bases.encoded()
        && kernel.import_encoded(encoded, indices, points)
    {
        return Ok(());
    }
    // Also if an encoding is bad: reading it again tells which, and why.
    let mut decoded = vec![K::Affine::identity(); indices.len()];
    read_selected(bases, indices, &mut decoded)?;
    kernel.import(&decoded, points);
    Ok(())
}

/// The sum over full-size scalars: Pippenger's method. `scalar` is told the
/// place of an index among `indices`, and the index.
fn multiply_wide<K, B, F>(
    kernel: K,
    bases: &B,
    scalar: F,
    indices: &[u32],
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError>
where
    K: Kernel,
    B: Bases<K::Affine> + ?Sized,
    F: Fn(usize, u32) -> Scalar + Sync,
{
    if indices.is_empty() {
        return Ok(CurveOf::<K>::identity());
    }
    let plan = plan(indices.len(), rayon::current_num_threads());
    let mut sets = bucket_sets(kernel, &plan);
    let chunk_len = indices.len().min(CHUNK);
    let mut points = first_touched_by_all(kernel.infinity(), chunk_len);
    let mut recoded = first_touched_by_all(Recoded::default(), chunk_len);

    for (chunk, indices) in indices.chunks(CHUNK).enumerate() {
        let scalar = |place, index| scalar(chunk * CHUNK + place, index);
        let points = &mut points[..indices.len()];
        let recoded = &mut recoded[..indices.len()];
        load(
            kernel,
            bases,
            scalar,
            indices,
            &plan.windows,
            (points, recoded),
            checkpoint,
        )?;
        sets.par_iter_mut()
            .with_max_len(1)
            .try_for_each(|set| set.add(&plan, points, recoded, checkpoint))?;
    }
    combine(sets, &plan, checkpoint)
}

/// A vector whose pages are mapped by all threads: one alone takes milliseconds,
/// in which the others wait and no checkpoint is asked.
fn first_touched_by_all<T: Copy + Send + Sync>(value: T, len: usize) -> Vec<T> {
    (0..len)
        .into_par_iter()
        .with_min_len(TASK)
        .map(|_| value)
        .collect()
}

/// The buckets of some windows, for one share of the terms.
struct BucketSet<K: Kernel> {
    windows: Range<usize>,
    split: usize,
    buckets: Buckets<K>,
}

impl<K: Kernel> BucketSet<K> {
    /// Adds this set's share of the terms.
    fn add(
        &mut self,
        plan: &Plan,
        points: &[K::Point],
        recoded: &[Recoded],
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), KernelError> {
        let share = points.len().div_ceil(plan.splits);
        let start = (self.split * share).min(points.len());
        let end = (start + share).min(points.len());
        let points = &points[start..end];
        let windows: Vec<Window> = self
            .windows
            .clone()
            .map(|w| plan.windows.window(w))
            .collect();
        let part_len = BATCH.div_ceil(windows.len());
        for (part, recoded) in recoded[start..end].chunks(part_len).enumerate() {
            checkpoint.check()?;
            for (source, recoded) in (part * part_len..).zip(recoded) {
                for (w, window) in windows.iter().enumerate() {
                    let (magnitude, negative) = window.digit(recoded);
                    if magnitude != 0 {
                        let bucket = w * plan.windows.digit_max() + magnitude - 1;
                        let addition = Addition::new(bucket, source, negative);
                        self.buckets.add(addition, points);
                    }
                }
            }
        }
        self.buckets.finish(points);
        Ok(())
    }
}

/// Empty buckets for all windows, those of the first windows first.
fn bucket_sets<K: Kernel>(kernel: K, plan: &Plan) -> Vec<BucketSet<K>> {
    let count = plan.windows.count();
    (0..count.div_ceil(plan.together) * plan.splits)
        .into_par_iter()
        .map(|i| {
            let first = i / plan.splits * plan.together;
            let windows = first..(first + plan.together).min(count);
            BucketSet {
                split: i % plan.splits,
                buckets: Buckets::new(kernel, windows.len() * plan.windows.digit_max()),
                windows,
            }
        })
        .collect()
}

/// Decodes bases and recodes scalars, in parallel.
fn load<K, B, F>(
    kernel: K,
    bases: &B,
    scalar: F,
    indices: &[u32],
    windows: &Windows,
    (points, recoded): (&mut [K::Point], &mut [Recoded]),
    checkpoint: &dyn Checkpoint,
) -> Result<(), KernelError>
where
    K: Kernel,
    B: Bases<K::Affine> + ?Sized,
    F: Fn(usize, u32) -> Scalar + Sync,
{
    points
        .par_chunks_mut(TASK)
        .zip(recoded.par_chunks_mut(TASK))
        .zip(indices.par_chunks(TASK))
        .enumerate()
        .try_for_each(|(task, ((points, recoded), indices))| {
            for (k, (recoded, &index)) in recoded.iter_mut().zip(indices).enumerate() {
                *recoded = windows.recode(&scalar(task * TASK + k, index));
            }
            import_selected(kernel, bases, indices, points)?;
            checkpoint.check()
        })
}

/// `Σ 2^(cw) · W_w`, where W_w is the weighted sum of window w's buckets.
fn combine<K: Kernel>(
    sets: Vec<BucketSet<K>>,
    plan: &Plan,
    checkpoint: &dyn Checkpoint,
) -> Result<CurveOf<K>, KernelError> {
    let sums: Vec<(usize, Vec<CurveOf<K>>)> = sets
        .into_par_iter()
        .with_max_len(1)
        .map(|set| {
            let digit_max = plan.windows.digit_max();
            let sums = set.buckets.weighted_sums(digit_max, checkpoint)?;
            Ok((set.windows.start, sums))
        })
        .collect::<Result<_, KernelError>>()?;
    let mut windows = vec![CurveOf::<K>::identity(); plan.windows.count()];
    for (start, sums) in sums {
        for (window, sum) in windows.iter_mut().skip(start).zip(sums) {
            *window += sum;
        }
    }
    let total = windows
        .iter()
        .rev()
        .fold(CurveOf::<K>::identity(), |total, window| {
            (0..plan.windows.bits()).fold(total, |t, _| t.double()) + window
        });
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_counted() {
        for (terms, threads) in [(1, 1), (1000, 2), (1 << 16, 96)] {
            let plan = plan(terms, threads);
            let sets = bucket_sets(Portable::<G2Affine>::new(), &plan);
            let windows: usize = sets.iter().map(|set| set.windows.len()).sum();
            assert_eq!(plan.buckets(), windows * plan.windows.digit_max());
            assert!(g2_bucket_bytes(Isa::PORTABLE, terms, threads) >= plan.buckets() * 192);
        }
        assert_eq!(g2_bucket_bytes(Isa::best(), 0, 4), 0);
    }
}
