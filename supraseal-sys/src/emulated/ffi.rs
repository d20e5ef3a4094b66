//! The C interface of the emulated device code. The structs mirror those of
//! `cuda/kernels.hpp`.
#![allow(unsafe_code)] // Passes slices to C++.

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};

/// The limbs of an element of the base field, as blst has them.
pub type Fp = [u64; 6];

#[repr(C)]
pub(super) struct RawProgram {
    pub(super) coefficients: *const Scalar,
    pub(super) integers: *const i32,
    pub(super) halves: *const Scalar,
    pub(super) part_ends: *const u32,
    pub(super) items: *const u32,
    pub(super) shapes: *const u32,
    pub(super) unit_rows: *const u32,
    pub(super) references: *const u32,
    pub(super) block_references: *const u32,
    pub(super) rows: u32,
    pub(super) num_inputs: u32,
}

#[repr(C)]
pub(super) struct RawWitness {
    pub(super) inputs: *const Scalar,
    pub(super) bits: *const u64,
    pub(super) wide: *const u64,
    pub(super) ranks: *const u32,
    pub(super) wide_values: *const Scalar,
}

#[repr(C)]
pub(super) struct RawQuery {
    pub(super) mask: *const u64,
    pub(super) ranks: *const u32,
    pub(super) before: u32,
    pub(super) first_base: u32,
    pub(super) num_bases: u32,
}

#[repr(C)]
pub(super) struct RawScalars {
    pub(super) values: *const Scalar,
    pub(super) places: *const u32,
    pub(super) n: u32,
    pub(super) form: u32,
}

unsafe extern "C" {
    pub(super) fn cuzk_emulated_fr(
        operation: u32,
        a: *const Scalar,
        b: *const Scalar,
        out: *mut Scalar,
    );
    pub(super) fn cuzk_emulated_fp(operation: u32, a: *const Fp, b: *const Fp, out: *mut Fp);
    pub(super) fn cuzk_emulated_fp_mul_add(
        a: *const Fp,
        b: *const Fp,
        c: *const Fp,
        d: *const Fp,
        out: *mut Fp,
    );
    pub(super) fn cuzk_emulated_self_test(rounds: u32, failures: *mut u32) -> i32;
    pub(super) fn cuzk_emulated_load_kernels() -> i32;
    pub(super) fn cuzk_emulated_kernels_launched() -> u32;
    pub(super) fn cuzk_emulated_blocks_run() -> u64;
    pub(super) fn cuzk_emulated_scan(words: *mut u32, length: u32) -> i32;
    pub(super) fn cuzk_emulated_transform(
        log: u32,
        roots_log: u32,
        low_log: u32,
        values: *mut Scalar,
        coset: bool,
        inverse: bool,
    ) -> i32;
    pub(super) fn cuzk_emulated_quotient(
        log: u32,
        roots_log: u32,
        low_log: u32,
        a: *mut Scalar,
        b: *mut Scalar,
        is_canonical: bool,
    ) -> i32;
    pub(super) fn cuzk_emulated_evaluate(
        program: *const RawProgram,
        witness: *const RawWitness,
        log: u32,
        is_reversed: bool,
        a: *mut Scalar,
        b: *mut Scalar,
    ) -> i32;
    pub(super) fn cuzk_emulated_wide_bases(
        query: *const RawQuery,
        wide: *const u64,
        ranks: *const u32,
        words: u32,
        places: *mut u32,
    ) -> i32;
    pub(super) fn cuzk_emulated_sum_g1(
        bases: *const G1Affine,
        query: *const RawQuery,
        bits: *const u64,
        words: u32,
        out: *mut G1Projective,
    ) -> i32;
    pub(super) fn cuzk_emulated_sum_g2(
        bases: *const G2Affine,
        query: *const RawQuery,
        bits: *const u64,
        words: u32,
        out: *mut G2Projective,
    ) -> i32;
    pub(super) fn cuzk_emulated_scratch_grows(n: u32, bits: u32) -> bool;
    pub(super) fn cuzk_emulated_window_bits(n: usize) -> u32;
    pub(super) fn cuzk_emulated_msm_g1(
        bases: *const G1Affine,
        scalars: *const RawScalars,
        bits: u32,
        out: *mut G1Projective,
    ) -> i32;
    pub(super) fn cuzk_emulated_msm_g2(
        bases: *const G2Affine,
        scalars: *const RawScalars,
        bits: u32,
        out: *mut G2Projective,
    ) -> i32;
    pub(super) fn cuzk_emulated_decode_g1(
        bytes: *const u8,
        n: u32,
        points: *mut G1Affine,
        bad: *mut u32,
    ) -> i32;
    pub(super) fn cuzk_emulated_decode_g2(
        bytes: *const u8,
        n: u32,
        points: *mut G2Affine,
        bad: *mut u32,
    ) -> i32;
}

/// Returns the length of a slice as C++ takes it. A longer slice than C++ can take gives a
/// length that it refuses.
pub(super) fn length(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
