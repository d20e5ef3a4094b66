//! Sums of selected bases: the terms whose scalars are ±1.

use blstrs::Scalar;
use ff::Field;
use group::{Group, prime::PrimeCurveAffine};
use rayon::prelude::*;

use super::packed::SetBits;
use super::part::{Part, Scalars, Wide};
use super::stream::read_selected;
use super::{Bases, BasesError, TASK};
use crate::affine::{self, CurveOf, Kernel};
use crate::checkpoint::Context;
use crate::error::KernelError;
use crate::memory::Lent;
use crate::spares::Spares;

/// Words of packed scalars that one task sums: some 4096 ones.
const TASK_WORDS: usize = 128;

/// The sum over a part's scalars that are ±1, and the terms that take a
/// multiplication.
///
/// # Errors
/// [`KernelError::Bases`], [`KernelError::Memory`], [`KernelError::Stopped`].
pub(super) fn sum_ones<'a, K: Kernel>(
    kernel: K,
    part: &Part<'a, K::Affine>,
    context: Context<'a>,
) -> Result<(CurveOf<K>, Wide<'a, K::Affine>), KernelError> {
    match part.scalars {
        Scalars::Plain(scalars) => {
            let mut marks = Lent::take(context.memory, scalars.len().div_ceil(64))?;
            let (sum, count) = sum_plain(kernel, part.bases, scalars, &mut marks, context)?;
            Ok((sum, Wide::of_plain(part, scalars, marks, count)))
        }
        Scalars::Packed(scalars) => {
            let sum = sum_bits(kernel, part.bases, scalars.ones(), context)?;
            Ok((sum, Wide::of_packed(part, &scalars)))
        }
    }
}

/// The sum over the scalars that are ±1, and how many are neither that nor 0,
/// which `marks` gets the bits of.
fn sum_plain<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    scalars: &[Scalar],
    marks: &mut [u64],
    context: Context<'_>,
) -> Result<(CurveOf<K>, usize), KernelError> {
    let spares = Spares::<(Adder<K>, Sorted)>::default();
    scalars
        .par_chunks(TASK)
        .zip(marks.par_chunks_mut(TASK / 64))
        .enumerate()
        .map(|(task, (scalars, marks))| {
            spares.with(|(adder, sorted)| {
                sorted.sort(task * TASK, scalars, marks);
                let plus = adder.sum(kernel, bases, &sorted.plus, context)?;
                let minus = adder.sum(kernel, bases, &sorted.minus, context)?;
                Ok((plus - minus, sorted.wide))
            })
        })
        .try_reduce(
            || (CurveOf::<K>::identity(), 0),
            |(a, m), (b, n)| Ok((a + b, m + n)),
        )
}

/// The sum of the bases whose bit is set.
fn sum_bits<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    words: &[u64],
    context: Context<'_>,
) -> Result<CurveOf<K>, KernelError> {
    let spares = Spares::<(Adder<K>, Vec<u32>)>::default();
    words
        .par_chunks(TASK_WORDS)
        .enumerate()
        .map(|(task, words)| {
            spares.with(|(adder, indices)| {
                indices.clear();
                indices.extend(SetBits::new(words, task * TASK_WORDS * 64));
                adder.sum(kernel, bases, indices, context)
            })
        })
        .try_reduce(CurveOf::<K>::identity, |a, b| Ok(a + b))
}

/// Some plain scalars, by what has to be done.
#[derive(Default)]
struct Sorted {
    /// Indices of those that are 1.
    plus: Vec<u32>,
    /// Indices of those that are −1.
    minus: Vec<u32>,
    /// How many take a multiplication.
    wide: usize,
}

impl Sorted {
    /// Sorts scalars, the first of which has index `start`. `marks` gets a bit for
    /// each that takes a multiplication.
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 scalars")]
    fn sort(&mut self, start: usize, scalars: &[Scalar], marks: &mut [u64]) {
        let minus_one = -Scalar::ONE;
        self.plus.clear();
        self.minus.clear();
        self.wide = 0;
        for (word, (scalars, mark)) in scalars.chunks(64).zip(marks).enumerate() {
            *mark = 0;
            for (bit, scalar) in scalars.iter().enumerate() {
                let index = (start + word * 64 + bit) as u32;
                if *scalar == Scalar::ZERO {
                } else if *scalar == Scalar::ONE {
                    self.plus.push(index);
                } else if *scalar == minus_one {
                    self.minus.push(index);
                } else {
                    *mark |= 1 << bit;
                }
            }
            self.wide += mark.count_ones() as usize;
        }
    }
}

/// What it takes to sum some bases.
struct Adder<K: Kernel> {
    scratch: K::Scratch,
    points: Vec<K::Point>,
}

impl<K: Kernel> Default for Adder<K> {
    fn default() -> Self {
        Self {
            scratch: K::Scratch::default(),
            points: Vec::new(),
        }
    }
}

impl<K: Kernel> Adder<K> {
    /// The sum of the bases with these indices.
    fn sum(
        &mut self,
        kernel: K,
        bases: &dyn Bases<K::Affine>,
        indices: &[u32],
        context: Context<'_>,
    ) -> Result<CurveOf<K>, KernelError> {
        self.points.resize(indices.len(), kernel.infinity());
        import_selected(kernel, bases, indices, &mut self.points)?;
        context.check()?;
        let Self { scratch, points } = self;
        affine::sum(kernel, points, scratch, context.checkpoint)
    }
}

/// Reads the bases with these indices into the kernel's form.
///
/// # Errors
/// When a base is no point.
pub(super) fn import_selected<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    indices: &[u32],
    points: &mut [K::Point],
) -> Result<(), BasesError> {
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
