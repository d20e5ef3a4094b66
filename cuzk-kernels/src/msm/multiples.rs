//! Bases with precomputed multiples, for MSMs that use the same bases again and again.
//!
//! A scalar's digit for the window at bit b multiplies 2^b times the base. Where that
//! multiple is precomputed, windows share their buckets. This is the method of Brickell,
//! Gordon, McCurley and Wilson ("Fast exponentiation with precomputation", Eurocrypt 1992)
//! with Pippenger's buckets. There may be rows of multiples 2^(g·j) for a few j only. Then
//! there are as many sets of buckets as there are windows from one row to the next.
//!
//! Rows are in the form of an implementation's points, so that an MSM reads them where they
//! lie. Invariant: a row holds the multiples of its bases. Nothing checks that again: keep
//! a checksum with rows in a file.

use std::marker::PhantomData;

use blstrs::{G1Affine, G2Affine};
use rayon::prelude::*;

use super::import::import_selected;
use super::packed::SetBits;
use super::pieces::TASK;
use super::shape::Shape;
use crate::affine::{Addition, Kernel};
use crate::bases::Bases;
use crate::context::Context;
use crate::error::{KernelError, expect_len};
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};
use cuzk_memory::{Checkpoint, Lent, Stopped};

/// Some of an MSM's bases: those that have multiples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    len: usize,
    words: Vec<u64>,
    /// By word: chosen ones before it.
    ranks: Vec<u32>,
    count: usize,
}

impl Chosen {
    /// Chooses those of `len` bases for which `is_chosen` returns true. An MSM has at most
    /// 2^31 bases.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 bases")]
    pub fn new(len: usize, mut is_chosen: impl FnMut(usize) -> bool) -> Self {
        let mut words = vec![0_u64; len.div_ceil(64)];
        for index in 0..len {
            words[index / 64] |= u64::from(is_chosen(index)) << (index % 64);
        }
        let mut count = 0;
        let ranks = words
            .iter()
            .map(|word| {
                let before = count as u32;
                count += word.count_ones() as usize;
                before
            })
            .collect();
        Self {
            len,
            words,
            ranks,
            count,
        }
    }

    /// Returns the number of chosen bases.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of chosen bases before this one, if it is chosen.
    #[inline]
    pub(super) fn rank(&self, index: u32) -> Option<u32> {
        let (at, shift) = ((index / 64) as usize, index % 64);
        let word = *self.words.get(at)?;
        let before = word & ((1 << shift) - 1);
        (word >> shift & 1 == 1).then(|| self.ranks[at] + before.count_ones())
    }

    /// Returns true if all of these bases are chosen: bit i of word i / 64 is base i.
    pub(super) fn covers(&self, bases: &[u64]) -> bool {
        let absent = |(at, word): (usize, &u64)| word & !self.words.get(at).unwrap_or(&0);
        bases.iter().enumerate().all(|base| absent(base) == 0)
    }
}

/// Rows of multiples of an MSM's chosen bases, in memory.
pub struct Multiples<'a, P> {
    isa: Isa,
    shape: Shape,
    chosen: &'a Chosen,
    rows: &'a [u8],
    points: PhantomData<fn() -> P>,
}

impl<P> Clone for Multiples<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Multiples<'_, P> {}

impl<P> std::fmt::Debug for Multiples<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Multiples")
            .field("isa", &self.isa)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl<'a, P: WithMultiples> Multiples<'a, P> {
    /// Takes rows that [`WithMultiples::write_rows`] made for the same instructions, shape
    /// and chosen bases.
    ///
    /// # Errors
    /// [`KernelError::Multiples`] for instructions that have no such form, and for rows
    /// that are out of alignment. [`KernelError::LengthMismatch`] for rows of another
    /// length. [`KernelError::TooManyTerms`] for more than 2^31 points in all rows.
    pub fn new(
        isa: Isa,
        shape: Shape,
        chosen: &'a Chosen,
        rows: &'a [u8],
    ) -> Result<Self, KernelError> {
        let expected = P::row_bytes(isa, chosen.count)
            .and_then(|bytes| bytes.checked_mul(shape.rows()))
            .ok_or(KernelError::Multiples("no form for these instructions"))?;
        let points = chosen.count.saturating_mul(shape.rows());
        if points > Addition::SOURCE_MAX {
            return Err(KernelError::TooManyTerms {
                got: points,
                max: Addition::SOURCE_MAX,
            });
        }
        expect_len("rows of multiples", expected, rows.len())?;
        if !P::is_aligned(isa, rows) {
            return Err(KernelError::Multiples("out of alignment"));
        }
        Ok(Self {
            isa,
            shape,
            chosen,
            rows,
            points: PhantomData,
        })
    }
}

impl<P> Multiples<'_, P> {
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn chosen(&self) -> &Chosen {
        self.chosen
    }
}

impl<'a, P> Multiples<'a, P> {
    /// All rows, one after the other, if the kernel is the one they are for.
    pub(super) fn points<K: Kernel<Affine = P>>(&self, kernel: K) -> Option<&'a [K::Point]> {
        (kernel.isa() == self.isa)
            .then(|| kernel.points_of(self.rows))
            .flatten()
    }
}

/// A group whose points can have multiples.
pub trait WithMultiples: Sized {
    /// Bytes of a row of `points` points; `None` for instructions without a form
    /// of their own.
    fn row_bytes(isa: Isa, points: usize) -> Option<usize>;

    /// Returns true if points can be read where these bytes lie.
    fn is_aligned(isa: Isa, bytes: &[u8]) -> bool;

    /// Computes the rows, and hands each over as bytes, first to last.
    ///
    /// # Errors
    /// [`KernelError::Bases`] when a base cannot be read,
    /// [`KernelError::Multiples`] for instructions without a form,
    /// [`KernelError::Memory`], [`KernelError::Stopped`], and what `sink` returns.
    fn write_rows<E: From<KernelError>>(
        context: Context<'_>,
        shape: Shape,
        chosen: &Chosen,
        bases: &dyn Bases<Self>,
        sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E>;
}

/// Takes a row as bytes. An error ends the computation.
type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Stopped>;

macro_rules! group {
    ($affine:ty, $ifma:ident, $rows:ident) => {
        impl WithMultiples for $affine {
            fn row_bytes(isa: Isa, points: usize) -> Option<usize> {
                match isa.implementation() {
                    Implementation::Portable | Implementation::Scalar => None,
                    #[cfg(target_arch = "x86_64")]
                    Implementation::Avx2(_) => None,
                    #[cfg(target_arch = "x86_64")]
                    Implementation::Ifma(_) => {
                        points.checked_mul(size_of::<<ifma::$ifma as Kernel>::Point>())
                    }
                }
            }

            fn is_aligned(isa: Isa, bytes: &[u8]) -> bool {
                match isa.implementation() {
                    Implementation::Portable | Implementation::Scalar => false,
                    #[cfg(target_arch = "x86_64")]
                    Implementation::Avx2(_) => false,
                    #[cfg(target_arch = "x86_64")]
                    Implementation::Ifma(token) => {
                        ifma::$ifma::new(token).points_of(bytes).is_some()
                    }
                }
            }

            fn write_rows<E: From<KernelError>>(
                context: Context<'_>,
                shape: Shape,
                chosen: &Chosen,
                bases: &dyn Bases<Self>,
                mut sink: impl FnMut(&[u8]) -> Result<(), E>,
            ) -> Result<(), E> {
                // So the kernels are compiled here, and not for each sink in each crate.
                let mut refused = None;
                let written = $rows(context, shape, chosen, bases, &mut |row| {
                    sink(row).map_err(|error| {
                        refused = Some(error);
                        Stopped
                    })
                });
                match refused {
                    Some(error) => Err(error),
                    None => Ok(written?),
                }
            }
        }

        fn $rows(
            context: Context<'_>,
            shape: Shape,
            chosen: &Chosen,
            bases: &dyn Bases<$affine>,
            sink: Sink<'_>,
        ) -> Result<(), KernelError> {
            expect_len("bases", chosen.len, bases.len())?;
            let no_form = KernelError::Multiples("no form for these instructions");
            match context.isa.implementation() {
                Implementation::Portable | Implementation::Scalar => Err(no_form),
                #[cfg(target_arch = "x86_64")]
                Implementation::Avx2(_) => Err(no_form),
                #[cfg(target_arch = "x86_64")]
                Implementation::Ifma(token) => {
                    let kernel = ifma::$ifma::new(token);
                    write_rows(kernel, shape, chosen, bases, context, sink)
                }
            }
        }
    };
}

group!(G1Affine, G1, g1_rows);
group!(G2Affine, G2, g2_rows);

fn write_rows<K: Kernel>(
    kernel: K,
    shape: Shape,
    chosen: &Chosen,
    bases: &dyn Bases<K::Affine>,
    context: Context<'_>,
    sink: Sink<'_>,
) -> Result<(), KernelError> {
    let mut indices = Lent::take(context.memory, chosen.count)?;
    for (index, chosen) in indices.iter_mut().zip(SetBits::new(&chosen.words, 0)) {
        *index = chosen;
    }
    let mut row = Lent::<K::Point>::take(context.memory, chosen.count)?;
    row.par_chunks_mut(TASK)
        .zip(indices.par_chunks(TASK))
        .try_for_each(|(points, indices)| import_selected(kernel, bases, indices, points))?;
    let doublings = shape.positions() * shape.bits() as usize;
    for j in 0..shape.rows() {
        if j > 0 {
            double_all(kernel, &mut row, doublings, context.checkpoint)?;
        }
        sink(kernel.bytes_of(&row))?;
    }
    Ok(())
}

/// Multiplies all points by 2^`times`.
fn double_all<K: Kernel>(
    kernel: K,
    points: &mut [K::Point],
    times: usize,
    checkpoint: &Checkpoint<'_>,
) -> Result<(), KernelError> {
    points.par_chunks_mut(TASK).try_for_each_init(
        || kernel.steps(),
        |steps, points| {
            for _ in 0..times {
                checkpoint.check()?;
                kernel.double(points, steps);
            }
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_what_is_before() {
        let chosen = Chosen::new(200, |index| index % 3 == 1);
        assert_eq!(chosen.count(), 67);
        for index in 0..200 {
            let expected = (index % 3 == 1).then_some(index / 3);
            assert_eq!(chosen.rank(index), expected);
        }
        assert_eq!(chosen.rank(100_000), None);
        assert!(chosen.covers(&[]) && chosen.covers(&[0b10010, 0, 0, 0, 0]));
        assert!(!chosen.covers(&[0b1]) && !chosen.covers(&[0, 0, 0, 0, 1]));
    }
}
