//! Launches of the emulated kernels, and their counts.
#![allow(unsafe_code)] // Passes slices to C++.

use super::ffi::{
    cuzk_emulated_blocks_run, cuzk_emulated_kernels_launched, cuzk_emulated_load_kernels,
    cuzk_emulated_scan, cuzk_emulated_self_test, length,
};

/// Returns the number of differences that the self-test finds.
pub fn self_test(rounds: u32) -> Option<u32> {
    let mut failures = 0;
    // SAFETY: `failures` is writable.
    let error = unsafe { cuzk_emulated_self_test(rounds, &raw mut failures) };
    (error == 0).then_some(failures)
}

/// Launches each kernel once, without an effect.
pub fn load_kernels() -> i32 {
    // SAFETY: it takes nothing.
    unsafe { cuzk_emulated_load_kernels() }
}

/// Returns the number of kernels, by their type, that this process has launched so far.
pub fn kernels_launched() -> u32 {
    // SAFETY: it takes nothing.
    unsafe { cuzk_emulated_kernels_launched() }
}

/// Returns the number of blocks of kernels that this process has run so far.
pub fn blocks_run() -> u64 {
    // SAFETY: it takes nothing.
    unsafe { cuzk_emulated_blocks_run() }
}

/// Replaces each word by the sum of the words before it.
pub fn scan(words: &mut [u32]) -> i32 {
    // SAFETY: the words are writable.
    unsafe { cuzk_emulated_scan(words.as_mut_ptr(), length(words.len())) }
}
