//! Sums of bases that columns of bits select, with each base read once for all columns.
//!
//! A column has a bit for each base, such as the ones of one partition's witness.
//! Partitions of one circuit have the same bases. The bits of a base in all columns are its
//! label. Each base is added to the bucket of its label. The sum of a column is that of the
//! buckets whose label has its bit. So a base takes one addition, and not one for each
//! column that has it. It is read, checked and decoded once.
//!
//! * `labels` transposes the columns.
//! * `split` cuts columns into passes over the bases, and into sets that share buckets.
//! * `chains` and `slots` have the buckets of one thread.
//! * `combine` makes sums of buckets, with the additions of `in_place`.
//!
//! Labels need not be uniform. Bits that agree in all columns give one bucket most bases.
//! That takes no longer than other labels do.
//!
//! # Measured
//!
//! `cargo bench -p benches --bench columns` adds up the ones of k partitions one after the
//! other, and in one pass. Nearly half of the bits are set, each by chance. The points are
//! encoded as in a parameter file. The figures are the time of the first by that of the
//! second. The machine has 2 cores of an Intel Xeon (family 6, model 207) with 2 MiB of L2
//! each. It did no other work. `benches/README.md` has more figures.
//!
//! | 2^20 points in G1 | k = 1 | 2 | 4 | 5 | 8 | 10 |
//! |---|---|---|---|---|---|---|
//! | IFMA | 0.94 | 1.46 | 2.53 | 3.00 | 4.85 | 5.66 |
//! | scalar | 0.98 | 1.34 | 2.16 | 2.60 | 4.04 | 5.02 |
//! | portable | 1.01 | 1.31 | 2.16 | 2.60 | 4.13 | – |
//!
//! The cost model (`split`) takes one set for 5 and 10 columns, and two for 16, whose
//! buckets would fill 8 MiB. The time of a pass in several sets, by that in one set. The
//! machine did other work meanwhile, and sums of buckets were combined in another way:
//!
//! | IFMA | columns | 1 set | 2 sets | 3 sets | 5 sets |
//! |---|---|---|---|---|---|
//! | G1, 2^20 points | 5 | 1 | 1.48 | 1.75 | 2.27 |
//! | | 10 | 1 | 1.49 | 1.88 | 2.59 |
//! | | 16 | 1 | 1.19 | 1.60 | 2.29 |
//! | G1, 2^18 points | 16 | 1 | 0.95 | 1.27 | 1.80 |
//! | G2, 2^18 points | 16 | 1 | 0.80 | 1.03 | 1.38 |
//!
//! So on this processor one set of 2^16 buckets is worth its memory for 2^20 points. It is
//! not chosen, because each thread would need it.
//!
//! Not here: scalars other than 0 and 1. [`PackedScalars::without_ones`] are those, for an
//! MSM of each partition.
//!
//! [`PackedScalars::without_ones`]: super::PackedScalars::without_ones

mod chains;
mod combine;
mod in_place;
mod labels;
mod slots;
mod split;

use std::sync::atomic::{AtomicUsize, Ordering};

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::Group;
use rayon::prelude::*;

use super::packed::Bits;
use super::term::check_terms;
use crate::affine::{CurveOf, Kernel, Serial};
use crate::arithmetic::{Blst, Portable};
#[cfg(target_arch = "x86_64")]
use crate::avx2;
use crate::bases::Bases;
use crate::context::Context;
use crate::error::{KernelError, expect_len};
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};
use cuzk_memory::Lent;
use labels::for_each_label;
use slots::{Input, SlotCounts, Slots};
use split::{PASS_MAX, PIECE_WORDS, Work, in_sets, passes};

/// Chooses the number of sets for so many columns of a pass.
type Choose<'a> = &'a dyn Fn(usize, Work) -> usize;

/// Returns for each column the sum of the bases in G1 whose bit is set.
///
/// Its memory is [`MsmMemory::of_g1_columns`](super::MsmMemory::of_g1_columns).
///
/// # Errors
/// [`KernelError::LengthMismatch`] if a column has not a bit for each base.
/// [`KernelError::TooManyTerms`] above 2^31 bases. [`KernelError::Bases`],
/// [`KernelError::Memory`], [`KernelError::Stopped`].
pub fn g1_columns<'a, B>(
    context: impl Into<Context<'a>>,
    bases: &B,
    columns: &[Bits<'_>],
) -> Result<Vec<G1Projective>, KernelError>
where
    B: Bases<G1Affine> + ?Sized,
{
    g1_sums(context.into(), &bases, columns, &chosen)
}

/// Returns for each column the sum of the bases in G2 whose bit is set.
///
/// Its memory is [`MsmMemory::of_g2_columns`](super::MsmMemory::of_g2_columns).
///
/// # Errors
/// As [`g1_columns`].
pub fn g2_columns<'a, B>(
    context: impl Into<Context<'a>>,
    bases: &B,
    columns: &[Bits<'_>],
) -> Result<Vec<G2Projective>, KernelError>
where
    B: Bases<G2Affine> + ?Sized,
{
    g2_sums(context.into(), &bases, columns, &chosen)
}

/// [`g1_columns`] with each pass cut into `sets` sets, at least 1, that have buckets of
/// their own. It is for measuring whether the cost model chooses the best number.
///
/// # Errors
/// As [`g1_columns`].
pub fn g1_columns_in_sets<'a>(
    context: impl Into<Context<'a>>,
    sets: usize,
    bases: &dyn Bases<G1Affine>,
    columns: &[Bits<'_>],
) -> Result<Vec<G1Projective>, KernelError> {
    g1_sums(context.into(), bases, columns, &|_, _| sets)
}

/// [`g2_columns`] with each pass cut into `sets` sets, as [`g1_columns_in_sets`].
///
/// # Errors
/// As [`g1_columns`].
pub fn g2_columns_in_sets<'a>(
    context: impl Into<Context<'a>>,
    sets: usize,
    bases: &dyn Bases<G2Affine>,
    columns: &[Bits<'_>],
) -> Result<Vec<G2Projective>, KernelError> {
    g2_sums(context.into(), bases, columns, &|_, _| sets)
}

/// Returns the number of sets into which [`g1_columns`] cuts the columns of a pass, at most
/// 16, over so many bases on so many threads.
pub fn g1_column_sets(isa: Isa, columns: usize, bases: usize, threads: usize) -> usize {
    let work = match isa.implementation() {
        Implementation::Portable => Work::of::<Serial<G1Affine, Portable>>(bases, threads),
        Implementation::Scalar => Work::of::<Serial<G1Affine, Blst>>(bases, threads),
        #[cfg(target_arch = "x86_64")]
        Implementation::Avx2(_) => Work::of::<avx2::G1>(bases, threads),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(_) => Work::of::<ifma::G1>(bases, threads),
    };
    work.sets(columns.min(PASS_MAX))
}

fn chosen(columns: usize, work: Work) -> usize {
    work.sets(columns)
}

fn g1_sums(
    context: Context<'_>,
    bases: &dyn Bases<G1Affine>,
    columns: &[Bits<'_>],
    choose: Choose<'_>,
) -> Result<Vec<G1Projective>, KernelError> {
    let input = (bases, columns);
    match context.isa.implementation() {
        Implementation::Portable => {
            sums(Serial::<G1Affine, Portable>::new(), input, choose, context)
        }
        Implementation::Scalar => sums(Serial::<G1Affine, Blst>::new(), input, choose, context),
        #[cfg(target_arch = "x86_64")]
        Implementation::Avx2(token) => sums(avx2::G1::new(token), input, choose, context),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => sums(ifma::G1::new(token), input, choose, context),
    }
}

fn g2_sums(
    context: Context<'_>,
    bases: &dyn Bases<G2Affine>,
    columns: &[Bits<'_>],
    choose: Choose<'_>,
) -> Result<Vec<G2Projective>, KernelError> {
    let input = (bases, columns);
    match context.isa.implementation() {
        Implementation::Portable => {
            sums(Serial::<G2Affine, Portable>::new(), input, choose, context)
        }
        Implementation::Scalar => sums(Serial::<G2Affine, Blst>::new(), input, choose, context),
        #[cfg(target_arch = "x86_64")]
        Implementation::Avx2(token) => sums(avx2::G2::new(token), input, choose, context),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => sums(ifma::G2::new(token), input, choose, context),
    }
}

fn sums<K: Kernel>(
    kernel: K,
    (bases, columns): (&dyn Bases<K::Affine>, &[Bits<'_>]),
    choose: Choose<'_>,
    context: Context<'_>,
) -> Result<Vec<CurveOf<K>>, KernelError> {
    for column in columns {
        expect_len("bits of a column", bases.len(), column.len())?;
        check_terms(bases.len(), column.len())?;
    }
    let work = Work::of::<K>(bases.len(), rayon::current_num_threads());
    let mut sums = Vec::with_capacity(columns.len());
    for pass in passes(columns.len()) {
        let sets = in_sets(pass.len(), choose(pass.len(), work));
        let input = Input {
            bases,
            sets: &sets,
            context,
        };
        sums.extend(sum_pass(kernel, input, &columns[pass], work)?);
    }
    Ok(sums)
}

/// Computes the sums of the columns of a pass.
fn sum_pass<K: Kernel>(
    kernel: K,
    input: Input<'_, K::Affine>,
    columns: &[Bits<'_>],
    work: Work,
) -> Result<Vec<CurveOf<K>>, KernelError> {
    let (memory, threads) = (input.context.memory, work.busy_threads());
    let counts = SlotCounts::of(input.sets);
    let mut steps = Lent::<K::Step>::take(memory, threads * K::STEPS)?;
    let mut points = Lent::<K::Point>::take(memory, threads * counts.points())?;
    let pieces = Pieces::new(&work);
    let filled = points
        .par_chunks_mut(counts.points())
        .zip(steps.par_chunks_mut(K::STEPS))
        .with_max_len(1)
        .map(|memory| {
            let mut slots = Slots::new(kernel, input, counts, memory);
            let result = pieces
                .try_for_each(|words| {
                    for_each_label(columns, words, |index, label| slots.add(index, label))
                })
                .and_then(|()| slots.finish());
            result.map(|()| slots)
        })
        .try_reduce_with(|mut slots, other| {
            slots.merge(&other)?;
            Ok(slots)
        });
    match filled {
        None => Ok(vec![CurveOf::<K>::identity(); columns.len()]),
        Some(slots) => slots?.sums(),
    }
}

/// The pieces of a pass that no thread has taken.
struct Pieces {
    next: AtomicUsize,
    count: usize,
}

impl Pieces {
    fn new(work: &Work) -> Self {
        Self {
            next: AtomicUsize::new(0),
            count: work.pieces(),
        }
    }

    /// Takes pieces until none is left, and calls `add` with the words of each.
    ///
    /// # Errors
    /// The first error of `add`. No thread then takes another piece.
    fn try_for_each<E>(
        &self,
        mut add: impl FnMut(std::ops::Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= self.count {
                return Ok(());
            }
            let start = piece * PIECE_WORDS;
            let result = add(start..start + PIECE_WORDS);
            if result.is_err() {
                self.next.store(self.count, Ordering::Relaxed);
                return result;
            }
        }
    }
}

/// Bytes of the blocks that columns of `bases` bases take, and the most bytes on the heap.
pub(super) fn memory<K: Kernel>(
    columns: usize,
    bases: usize,
    threads: usize,
) -> (Vec<usize>, usize) {
    let work = Work::of::<K>(bases, threads);
    let threads = work.busy_threads();
    let passes = passes(columns).map(|pass| in_sets(pass.len(), work.sets(pass.len())));
    let (mut blocks, mut heap_bytes) = (Vec::new(), 0);
    for sets in passes {
        let counts = SlotCounts::of(&sets);
        let of_pass = [
            threads * K::STEPS * size_of::<K::Step>(),
            threads * counts.points() * size_of::<K::Point>(),
        ];
        blocks.extend(of_pass.into_iter().filter(|bytes| *bytes > 0));
        let of_threads = threads * counts.heap_bytes::<K::Affine>();
        heap_bytes = heap_bytes.max(of_threads);
    }
    let sums_bytes = columns * size_of::<CurveOf<K>>();
    (blocks, heap_bytes + sums_bytes)
}
