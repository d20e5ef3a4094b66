//! Stores that pass the caches by.
//!
//! Results far larger than a cache need not be in one, and an ordinary store reads the line
//! it writes to first. Every x86-64 processor has stores that do not. They are used where
//! places are aligned for them. Elsewhere the copy is an ordinary one. The values are the
//! same.
//!
//! Invariant: what was copied is visible, to this thread and every other, once
//! the [`Stream`] is dropped; until then it is borrowed.
#![allow(unsafe_code)] // Stores past the caches are intrinsics.

use ff::PrimeField;
use std::marker::PhantomData;

/// Copies values past the caches, or not. Must not be leaked.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    past_caches: bool,
    borrowed: PhantomData<&'a mut ()>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(past_caches: bool) -> Self {
        Stream {
            past_caches: past_caches && cfg!(target_arch = "x86_64"),
            borrowed: PhantomData,
        }
    }

    /// Copies as many values as `from` has; `to` has as many places.
    #[inline]
    pub(crate) fn copy<S: PrimeField>(&mut self, from: &[S], to: &'a mut [S]) {
        // No byte of a value is padding: with one less it could not hold the
        // whole field.
        let is_dense = 8 * size_of::<S>() < S::NUM_BITS as usize + 8;
        let fits = size_of::<S>().is_multiple_of(BLOCK_BYTES)
            && to.as_ptr().addr().is_multiple_of(BLOCK_BYTES)
            && from.len() == to.len();
        if self.past_caches && is_dense && fits {
            copy_past_caches(from, to);
        } else {
            to.copy_from_slice(from);
        }
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if self.past_caches {
            // SAFETY: every x86-64 has this instruction.
            unsafe { std::arch::x86_64::_mm_sfence() };
        }
    }
}

/// The bytes that are stored at a time, and their alignment.
const BLOCK_BYTES: usize = 16;

/// `S` has no padding and is a whole number of blocks; `to` is aligned to
/// blocks and as long as `from`.
#[cfg(target_arch = "x86_64")]
#[inline]
fn copy_past_caches<S: PrimeField>(from: &[S], to: &mut [S]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    let blocks = size_of_val(from).min(size_of_val(to)) / BLOCK_BYTES;
    let from = from.as_ptr().cast::<__m128i>();
    let to = to.as_mut_ptr().cast::<__m128i>();
    for block in 0..blocks {
        // SAFETY: both slices have so many blocks; those of `to` are aligned,
        // and no byte of `from` is padding: the caller has seen to both. The
        // caller keeps `to` borrowed until its fence.
        unsafe { _mm_stream_si128(to.add(block), _mm_loadu_si128(from.add(block))) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn copy_past_caches<S: PrimeField>(from: &[S], to: &mut [S]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use proptest::prelude::*;

    proptest! {
        /// Wherever the places are: a `Scalar` is aligned to 8 bytes, so half
        /// of these are not aligned for the wide stores.
        #[test]
        fn copies_what_an_ordinary_copy_does(
            values in prop::collection::vec(any::<u64>(), 0..40),
            offset in 0..2usize,
            past_caches in any::<bool>(),
        ) {
            let from: Vec<_> = values.into_iter().map(Scalar::from).collect();
            let mut words = vec![0u64; 4 * from.len() + 1];
            let (_, to, _) = {
                // SAFETY: any canonical words are a scalar, and zeros are.
                unsafe { words[offset..].align_to_mut::<Scalar>() }
            };
            let (head, tail) = to[..from.len()].split_at_mut(from.len() / 2);
            let mut stream = Stream::new(past_caches);
            stream.copy(&from[..from.len() / 2], head);
            stream.copy(&from[from.len() / 2..], tail);
            drop(stream);
            prop_assert_eq!(&to[..from.len()], &from[..]);
        }
    }
}
