//! Types whose values are views of plain bytes.
#![allow(unsafe_code)] // Vouches for the layout of types.

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
