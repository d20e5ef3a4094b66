//! The memory of an MSM, computed from the sizes of its terms.
//!
//! A caller reserves this memory before it starts an MSM. Nothing is allocated here.

use blstrs::{G1Affine, G2Affine};

use super::columns;
use super::import::DECODED;
use super::pieces::chunk_len;
use super::shape::{Shape, same_shapes};
use super::window::{Plan, plan, with_multiples};
use super::workspace::{self, Area};
use crate::affine::{Kernel, Serial};
use crate::arithmetic::{Blst, Portable};
#[cfg(target_arch = "x86_64")]
use crate::avx2;
use crate::digits::Recoded;
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};

/// The size of a term of an MSM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsmTermSize {
    /// The number of scalars that are neither 0 nor ±1.
    pub wide: usize,
    /// True if the scalars are plain, so that the MSM has to sort them first.
    pub is_plain: bool,
    /// The shape of the multiples, if all of these scalars have multiples of their bases
    /// that are used.
    pub multiples: Option<Shape>,
}

/// The memory of an MSM, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MsmMemory {
    /// The size of each block that the MSM takes from its [`Memory`](cuzk_memory::Memory),
    /// in order. If all terms have multiples of one shape, or none has multiples, it holds
    /// all blocks until it ends. Otherwise it holds those of one shape after those of
    /// another.
    pub blocks: Vec<usize>,
    /// The most bytes on the heap, except for a few kilobytes.
    pub heap_bytes: usize,
}

impl MsmMemory {
    /// Returns the memory of an MSM in G1 over terms of these sizes, on `threads` threads.
    #[must_use]
    pub fn of_g1(isa: Isa, parts: &[MsmTermSize], threads: usize) -> Self {
        match isa.implementation() {
            Implementation::Portable => Self::of::<Serial<G1Affine, Portable>>(parts, threads),
            Implementation::Scalar => Self::of::<Serial<G1Affine, Blst>>(parts, threads),
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(_) => Self::of::<avx2::G1>(parts, threads),
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) => Self::of::<ifma::G1>(parts, threads),
        }
    }

    /// Returns the memory of an MSM in G2 over terms of these sizes, on `threads` threads.
    #[must_use]
    pub fn of_g2(isa: Isa, parts: &[MsmTermSize], threads: usize) -> Self {
        match isa.implementation() {
            Implementation::Portable => Self::of::<Serial<G2Affine, Portable>>(parts, threads),
            Implementation::Scalar => Self::of::<Serial<G2Affine, Blst>>(parts, threads),
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(_) => Self::of::<avx2::G2>(parts, threads),
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) => Self::of::<ifma::G2>(parts, threads),
        }
    }

    /// Returns the memory of [`g1_columns`](super::g1_columns) over so many columns and bases,
    /// on `threads` threads. It holds the blocks of a pass of at most 16 columns, which are
    /// two, after those of another.
    #[must_use]
    pub fn of_g1_columns(isa: Isa, columns: usize, bases: usize, threads: usize) -> Self {
        match isa.implementation() {
            Implementation::Portable => {
                Self::of_columns::<Serial<G1Affine, Portable>>(columns, bases, threads)
            }
            Implementation::Scalar => {
                Self::of_columns::<Serial<G1Affine, Blst>>(columns, bases, threads)
            }
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(_) => Self::of_columns::<avx2::G1>(columns, bases, threads),
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) => Self::of_columns::<ifma::G1>(columns, bases, threads),
        }
    }

    /// Returns the memory of [`g2_columns`](super::g2_columns), as [`Self::of_g1_columns`].
    #[must_use]
    pub fn of_g2_columns(isa: Isa, columns: usize, bases: usize, threads: usize) -> Self {
        match isa.implementation() {
            Implementation::Portable => {
                Self::of_columns::<Serial<G2Affine, Portable>>(columns, bases, threads)
            }
            Implementation::Scalar => {
                Self::of_columns::<Serial<G2Affine, Blst>>(columns, bases, threads)
            }
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(_) => Self::of_columns::<avx2::G2>(columns, bases, threads),
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) => Self::of_columns::<ifma::G2>(columns, bases, threads),
        }
    }

    fn of_columns<K: Kernel>(columns: usize, bases: usize, threads: usize) -> Self {
        let (blocks, heap_bytes) = columns::memory::<K>(columns, bases, threads);
        Self { blocks, heap_bytes }
    }

    fn of<K: Kernel>(parts: &[MsmTermSize], threads: usize) -> Self {
        let threads = threads.max(1);
        let marks = plans(parts, threads).map(|plan| marks_bytes(&plan, threads));
        let of_thread = workspace::HEAP_BYTES + DECODED * size_of::<K::Affine>();
        Self {
            blocks: sum_blocks::<K>(parts, threads),
            heap_bytes: threads * of_thread + marks.max().unwrap_or(0),
        }
    }
}

/// How the parts' buckets are filled, one set of parts after the other.
fn plans(parts: &[MsmTermSize], threads: usize) -> impl Iterator<Item = Plan> {
    let shapes = parts.iter().filter_map(|part| part.multiples);
    let others = parts.iter().filter(|part| part.multiples.is_none());
    let wide: usize = others.map(|part| part.wide).sum();
    shapes
        .map(move |shape| with_multiples(shape.bits(), shape.rows(), threads))
        .chain((wide > 0).then(|| plan(wide, threads)))
}

/// Returns the bytes of the marks of buckets: those that are filled, in all sets, and on
/// each thread those of a batch.
fn marks_bytes(plan: &Plan, threads: usize) -> usize {
    (plan.sets() + threads) * plan.set_len().div_ceil(64) * size_of::<u64>()
}

/// Returns the bytes of the buckets of an MSM in G2 with `wide` scalars that are neither 0
/// nor ±1, on `threads` threads.
pub fn g2_bucket_bytes(isa: Isa, wide: usize, threads: usize) -> usize {
    if wide == 0 {
        return 0;
    }
    let point_bytes = match isa.implementation() {
        Implementation::Portable | Implementation::Scalar => size_of::<G2Affine>(),
        #[cfg(target_arch = "x86_64")]
        Implementation::Avx2(_) => size_of::<G2Affine>(),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(_) => size_of::<<ifma::G2 as Kernel>::Point>(),
    };
    plan(wide, threads.max(1)).buckets() * point_bytes
}

fn sum_blocks<K: Kernel>(parts: &[MsmTermSize], threads: usize) -> Vec<usize> {
    let plain = parts.iter().filter(|part| part.is_plain);
    // One bit for each scalar.
    let plain = plain
        .map(|part| part.wide.div_ceil(64) * size_of::<u64>())
        .filter(|bytes| *bytes > 0);
    let mut blocks: Vec<_> = Area::<K>::blocks(threads)
        .into_iter()
        .chain(plain)
        .collect();
    let (in_rows, others): (Vec<_>, Vec<_>) =
        parts.iter().partition(|part| part.multiples.is_some());
    for same_shape in same_shapes(&in_rows, |part: &&MsmTermSize| part.multiples) {
        if let Some(shape) = same_shape.first().and_then(|part| part.multiples) {
            blocks.push(
                with_multiples(shape.bits(), shape.rows(), threads).buckets()
                    * size_of::<K::Point>(),
            );
            blocks.extend(chunk_blocks(longest(same_shape)));
        }
    }
    let wide: usize = others.iter().map(|part| part.wide).sum();
    if wide > 0 {
        let longest = longest(&others);
        blocks.push(plan(wide, threads).buckets() * size_of::<K::Point>());
        blocks.push(longest * size_of::<K::Point>());
        blocks.extend(chunk_blocks(longest));
    }
    blocks
}

/// Terms of the longest chunk.
fn longest(parts: &[&MsmTermSize]) -> usize {
    chunk_len(parts.iter().map(|part| part.wide).max().unwrap_or(0))
}

/// Which terms a chunk has, and their scalars.
fn chunk_blocks(terms: usize) -> impl Iterator<Item = usize> {
    let blocks = [terms * size_of::<u32>(), terms * size_of::<Recoded>()];
    blocks.into_iter().filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests;
