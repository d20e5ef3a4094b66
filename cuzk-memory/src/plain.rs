//! Types whose values are views of plain bytes.
//!
//! Not how many values there are. Invariant: a view has the bytes of what it is a view of, all of
//! them, and is aligned.
#![allow(unsafe_code)] // Vouches for the layout of types.

use std::{ptr, slice};

use blstrs::{Fp, Fp2, G1Affine, G2Affine, Scalar};

/// A type of which any bytes are a value, without padding.
///
/// # Safety
/// Every pattern of bytes is a value of the type, and there is no padding.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: integers.
unsafe impl Plain for u8 {}
// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl Plain for u64 {}
// SAFETY: plain values one after the other, without padding between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: four words of which all values are valid, and nothing else.
unsafe impl Plain for Scalar {}
// SAFETY: six words of which all values are valid, and nothing else.
unsafe impl Plain for Fp {}
// SAFETY: the same, of twelve words.
unsafe impl Plain for Fp2 {}
// SAFETY: two coordinates of six words each of which all values are valid, and
// nothing else.
unsafe impl Plain for G1Affine {}
// SAFETY: the same with two coordinates of twelve words.
unsafe impl Plain for G2Affine {}

const _: () = assert!(size_of::<Scalar>() == 32);
const _: () = assert!(size_of::<Fp>() == 48 && size_of::<Fp2>() == 96);
const _: () = assert!(size_of::<G1Affine>() == 96 && size_of::<G2Affine>() == 192);

/// Returns a value as one of another type, which has as many bytes and no stricter alignment.
#[inline(always)]
#[must_use]
pub fn view<A: Plain, B: Plain>(value: &A) -> &B {
    const { assert!(is_viewed::<A, B>()) }
    // SAFETY: as many bytes, aligned, none of which is padding, and any of which are a value.
    unsafe { &*ptr::from_ref(value).cast() }
}

/// Returns [`view`] for writing.
#[inline(always)]
#[must_use]
pub fn view_mut<A: Plain, B: Plain>(value: &mut A) -> &mut B {
    const { assert!(is_viewed::<A, B>()) }
    // SAFETY: as in `view`, both ways.
    unsafe { &mut *ptr::from_mut(value).cast() }
}

/// Returns values as as many of another type, of which [`view`] views each.
#[inline(always)]
#[must_use]
pub fn views<A: Plain, B: Plain>(values: &[A]) -> &[B] {
    const { assert!(is_viewed::<A, B>()) }
    // SAFETY: as in `view`, one after the other.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// Returns [`views`] for writing.
#[inline(always)]
#[must_use]
pub fn views_mut<A: Plain, B: Plain>(values: &mut [A]) -> &mut [B] {
    const { assert!(is_viewed::<A, B>()) }
    // SAFETY: as in `view`, one after the other, both ways.
    unsafe { slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}

/// Returns the values that bytes are. `None` if they are not aligned, or no whole number of values.
#[must_use]
pub fn values_of<T: Plain>(bytes: &[u8]) -> Option<&[T]> {
    const { assert!(size_of::<T>() > 0) }
    let is_whole = bytes.len().is_multiple_of(size_of::<T>());
    let start: *const T = bytes.as_ptr().cast();
    // SAFETY: so many aligned bytes, any of which are values.
    let values = || unsafe { slice::from_raw_parts(start, bytes.len() / size_of::<T>()) };
    (is_whole && start.is_aligned()).then(values)
}

/// Returns true if a value of `A` is also one of `B`.
const fn is_viewed<A, B>() -> bool {
    size_of::<A>() == size_of::<B>() && align_of::<A>() >= align_of::<B>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;

    #[test]
    fn views_have_the_words_of_values() {
        let mut value = Scalar::ONE;
        let words: [u64; 4] = *view(&value);
        view_mut::<_, [u64; 4]>(&mut value)[0] ^= 1;
        assert_eq!(view::<_, [u64; 4]>(&value)[0], words[0] ^ 1);
        assert_eq!(view::<_, [u64; 4]>(&value)[1..], words[1..]);
        let mut values = [Scalar::ONE, Scalar::ZERO, Scalar::ONE];
        assert_eq!(views::<_, [u64; 4]>(&values), [words, [0; 4], words]);
        views_mut::<_, [u64; 4]>(&mut values)[1] = words;
        assert_eq!(values, [Scalar::ONE; 3]);
    }

    #[test]
    fn only_aligned_whole_values_are_read_in_place() {
        let words = [1_u64, 2, 3];
        let bytes = views::<_, [u8; 8]>(&words).as_flattened();
        assert_eq!(values_of(bytes), Some(&words[..]));
        assert_eq!(values_of::<u64>(&bytes[8..]), Some(&words[1..]));
        assert_eq!(values_of::<u64>(&bytes[1..9]), None);
        assert_eq!(values_of::<u64>(&bytes[..9]), None);
        assert_eq!(values_of::<u64>(&bytes[24..]), Some(&[][..]));
    }
}
