//! The kernels' own types that live in borrowed memory.
#![allow(unsafe_code)] // Vouches for the layout of types.

use cuzk_memory::Plain;

use crate::affine::Step;
use crate::digits::Recoded;

// SAFETY: four words.
unsafe impl Plain for Recoded {}
// SAFETY: `repr(C)`, and all fields are plain and of whole words.
unsafe impl<F: Plain> Plain for Step<F> {}

const _: () = {
    use blstrs::{Fp, Fp2};
    assert!(size_of::<Step<Fp>>() == 112 && size_of::<Step<Fp2>>() == 208);
};
