//! Arithmetic with AVX-512 IFMA: eight field elements at a time.
//!
//! An element is cut into limbs of 52 bits, the width of `vpmadd52luq` and
//! `vpmadd52huq`; a vector register holds the same limb of eight elements.
//! Montgomery's radix is 2^(52·limbs).
//!
//! How near the bound it is, on a processor that starts one multiply-add a
//! cycle (Zen 4): a product in the base field takes 278 cycles for 264 of
//! them, a square 236 for 208, a product in the scalar field 111 for 105.
//!
//! How safety is kept: a value of [`Ifma`] exists only where the processor
//! has the instructions, every constructor of a vector type asks for one, and
//! so every operation on vectors may use them. Operations are
//! `inline(always)` around functions that enable the instructions, and meet
//! again inside the kernels' entry points, which enable them too.

mod affine;
mod coordinate;
pub(crate) mod coset;
mod element;
mod fp;
mod fp2;
mod fr;
mod lanes;
pub(crate) mod ntt;
pub(crate) mod poseidon;
mod product;
mod wide;

pub(crate) use affine::{G1, G2};
pub(crate) use fr::{word, words, words_mut};

/// Proof that this processor has the instructions this module uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ifma(());

impl Ifma {
    /// The proof, if there is one.
    pub(crate) fn detect() -> Option<Ifma> {
        let detected = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512ifma")
            && is_x86_feature_detected!("avx512vbmi2");
        detected.then_some(Ifma(()))
    }
}
