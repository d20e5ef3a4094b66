//! The device code, compiled as plain C++ and run on the host, for the tests of the
//! kernels.
//!
//! Compiled only with the feature `test-hooks`, and not for use by other crates. It is no
//! backend: it is slow and allocates. This file has the C interface, whose structs mirror those
//! of `cuda/kernels.hpp`. Invariant: C++ gets slices with their own lengths. Functions of C++ that
//! take no slice are declared safe: they use what is borrowed, and keep nothing.
#![allow(unsafe_code)] // Passes slices to C++.
#![allow(missing_docs)]

mod evaluate;
mod field;
mod launch;
mod msm;
mod transform;

use core::ptr;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Group;

pub use evaluate::{Program, Witness, evaluate};
pub use field::{Operation, fp, fp_mul_add, fr};
pub use launch::{blocks_run, kernels_launched, load_kernels, scan, self_test};
pub use msm::{Kernels, NO_BASE, Query, Scalars, scratch_grows, wide_bases, window_bits};
pub use transform::{RootsShape, quotient, transform};

/// The limbs of an element of the base field, as blst has them.
pub type Fp = [u64; 6];

#[repr(C)]
struct RawProgram {
    coefficients: *const Scalar,
    integers: *const i32,
    halves: *const Scalar,
    part_ends: *const u32,
    items: *const u32,
    shapes: *const u32,
    unit_rows: *const u32,
    references: *const u32,
    block_references: *const u32,
    rows: u32,
    num_inputs: u32,
}

#[repr(C)]
struct RawWitness {
    inputs: *const Scalar,
    bits: *const u64,
    wide: *const u64,
    ranks: *const u32,
    wide_values: *const Scalar,
}

#[repr(C)]
struct RawQuery {
    mask: *const u64,
    ranks: *const u32,
    before: u32,
    first_base: u32,
    num_bases: u32,
}

#[repr(C)]
struct RawScalars {
    values: *const Scalar,
    places: *const u32,
    n: u32,
    form: u32,
}

unsafe extern "C" {
    safe fn cuzk_emulated_fr(operation: u32, a: &Scalar, b: &Scalar, out: &mut Scalar);
    safe fn cuzk_emulated_fp(operation: u32, a: &Fp, b: &Fp, out: &mut Fp);
    safe fn cuzk_emulated_fp_mul_add(a: &Fp, b: &Fp, c: &Fp, d: &Fp, out: &mut Fp);
    safe fn cuzk_emulated_self_test(rounds: u32, failures: &mut u32) -> i32;
    safe fn cuzk_emulated_load_kernels() -> i32;
    safe fn cuzk_emulated_kernels_launched() -> u32;
    safe fn cuzk_emulated_blocks_run() -> u64;
    fn cuzk_emulated_scan(words: *mut u32, length: u32) -> i32;
    fn cuzk_emulated_transform(
        log: u32,
        roots_log: u32,
        low_log: u32,
        values: *mut Scalar,
        coset: bool,
        inverse: bool,
    ) -> i32;
    fn cuzk_emulated_quotient(
        log: u32,
        roots_log: u32,
        low_log: u32,
        a: *mut Scalar,
        b: *mut Scalar,
        is_canonical: bool,
    ) -> i32;
    fn cuzk_emulated_evaluate(
        program: *const RawProgram,
        witness: *const RawWitness,
        log: u32,
        is_reversed: bool,
        a: *mut Scalar,
        b: *mut Scalar,
    ) -> i32;
    fn cuzk_emulated_wide_bases(
        query: *const RawQuery,
        wide: *const u64,
        ranks: *const u32,
        words: u32,
        places: *mut u32,
    ) -> i32;
    fn cuzk_emulated_sum_g1(
        bases: *const G1Affine,
        query: *const RawQuery,
        bits: *const u64,
        words: u32,
        out: *mut G1Projective,
    ) -> i32;
    fn cuzk_emulated_sum_g2(
        bases: *const G2Affine,
        query: *const RawQuery,
        bits: *const u64,
        words: u32,
        out: *mut G2Projective,
    ) -> i32;
    safe fn cuzk_emulated_scratch_grows(n: u32, bits: u32) -> bool;
    safe fn cuzk_emulated_window_bits(n: usize) -> u32;
    fn cuzk_emulated_msm_g1(
        bases: *const G1Affine,
        scalars: *const RawScalars,
        bits: u32,
        out: *mut G1Projective,
    ) -> i32;
    fn cuzk_emulated_msm_g2(
        bases: *const G2Affine,
        scalars: *const RawScalars,
        bits: u32,
        out: *mut G2Projective,
    ) -> i32;
    fn cuzk_emulated_decode_g1(
        bytes: *const u8,
        n: u32,
        points: *mut G1Affine,
        bad: *mut u32,
    ) -> i32;
    fn cuzk_emulated_decode_g2(
        bytes: *const u8,
        n: u32,
        points: *mut G2Affine,
        bad: *mut u32,
    ) -> i32;
}

/// Returns the length of a slice as C++ takes it. A longer slice than C++ can take gives a
/// length that it refuses.
fn length(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// See [`launch::scan`](launch::scan).
fn call_scan(words: &mut [u32]) -> i32 {
    // SAFETY: so many words are writable.
    unsafe { cuzk_emulated_scan(words.as_mut_ptr(), length(words.len())) }
}

/// See [`transform::transform`](transform::transform).
fn call_transform(roots: RootsShape, values: &mut [Scalar], coset: bool, inverse: bool) -> i32 {
    assert!(values.len().is_power_of_two());
    let log = values.len().ilog2();
    let RootsShape {
        log: roots,
        low_log,
    } = roots;
    // SAFETY: 2^log values are writable.
    unsafe { cuzk_emulated_transform(log, roots, low_log, values.as_mut_ptr(), coset, inverse) }
}

/// See [`transform::quotient`](transform::quotient).
fn call_quotient(roots: RootsShape, [a, b]: [&mut [Scalar]; 2], is_canonical: bool) -> i32 {
    assert!(a.len().is_power_of_two() && a.len() == b.len());
    let log = a.len().ilog2();
    let RootsShape {
        log: roots,
        low_log,
    } = roots;
    let [a, b] = [a, b].map(<[Scalar]>::as_mut_ptr);
    // SAFETY: both have 2^log writable values.
    unsafe { cuzk_emulated_quotient(log, roots, low_log, a, b, is_canonical) }
}

/// See [`evaluate::evaluate`](evaluate::evaluate).
fn call_evaluate(
    program: &Program<'_>,
    witness: &Witness<'_>,
    is_reversed: bool,
    [a, b]: [&mut [Scalar]; 2],
) -> i32 {
    assert!(a.len().is_power_of_two() && a.len() == b.len());
    let log = a.len().ilog2();
    let program = RawProgram {
        coefficients: program.coefficients.as_ptr(),
        integers: program.integers.as_ptr(),
        halves: program.halves.as_ptr(),
        part_ends: program.part_ends.as_ptr(),
        items: program.items.as_ptr(),
        shapes: program.shapes.as_ptr(),
        unit_rows: program.unit_rows.as_ptr(),
        references: program.references.as_ptr(),
        block_references: program.block_references.as_ptr(),
        rows: program.rows,
        num_inputs: program.num_inputs,
    };
    let witness = RawWitness {
        inputs: witness.inputs.as_ptr(),
        bits: witness.bits.as_ptr(),
        wide: witness.wide.as_ptr(),
        ranks: witness.ranks.as_ptr(),
        wide_values: witness.wide_values.as_ptr(),
    };
    let (program, witness) = (&raw const program, &raw const witness);
    let [a, b] = [a, b].map(<[Scalar]>::as_mut_ptr);
    // SAFETY: the tables are those of a checked circuit, and the witness has its
    // dimensions, as the caller warrants. a and b have 2^log places.
    unsafe { cuzk_emulated_evaluate(program, witness, log, is_reversed, a, b) }
}

impl Query<'_> {
    /// The query over as many bits as `words` have.
    fn raw(&self, words: usize) -> RawQuery {
        let (mask, ranks) = match self.mask {
            Some((mask, ranks)) => {
                assert!(mask.len() >= words && ranks.len() >= words);
                (mask.as_ptr(), ranks.as_ptr())
            }
            None => (ptr::null(), ptr::null()),
        };
        RawQuery {
            mask,
            ranks,
            before: self.before,
            first_base: self.first_base,
            num_bases: self.num_bases,
        }
    }
}

impl Scalars<'_> {
    /// The scalars of so many bases.
    fn raw(&self, bases: usize) -> RawScalars {
        let places = match self.places {
            Some(places) => {
                assert!(places.len() == self.values.len());
                let is_place = |place: &u32| *place == NO_BASE || (*place as usize) < bases;
                assert!(places.iter().all(is_place));
                places.as_ptr()
            }
            None => {
                assert!(self.values.len() <= bases);
                ptr::null()
            }
        };
        RawScalars {
            values: self.values.as_ptr(),
            places,
            n: length(self.values.len()),
            form: u32::from(self.is_canonical),
        }
    }
}

/// See [`msm::wide_bases`](msm::wide_bases).
fn call_wide_bases(query: &Query<'_>, wide: &[u64], ranks: &[u32]) -> Option<Vec<u32>> {
    assert!(ranks.len() >= wide.len());
    let count = wide.iter().map(|word| word.count_ones() as usize).sum();
    let mut places = vec![0; count];
    let raw = query.raw(wide.len());
    // SAFETY: there is a place for each bit of `wide`; the other arrays are as long as
    // `wide`.
    let error = unsafe {
        cuzk_emulated_wide_bases(
            &raw const raw,
            wide.as_ptr(),
            ranks.as_ptr(),
            length(wide.len()),
            places.as_mut_ptr(),
        )
    };
    (error == 0).then_some(places)
}

macro_rules! kernels {
    ($affine:ty, $projective:ty, $bytes:literal, $sum:ident, $msm:ident, $decode:ident) => {
        impl Kernels for $affine {
            type Sum = $projective;
            const ENCODED_BYTES: usize = $bytes;

            fn sum(bases: &[Self], query: &Query<'_>, bits: &[u64]) -> Option<Self::Sum> {
                assert!(query.num_bases as usize <= bases.len());
                let mut out = Self::Sum::identity();
                let raw = query.raw(bits.len());
                let words = length(bits.len());
                // SAFETY: the query has at most as many bases as the slice, and its
                // bitmap is as long as `bits`.
                let error = unsafe {
                    $sum(
                        bases.as_ptr(),
                        &raw const raw,
                        bits.as_ptr(),
                        words,
                        &raw mut out,
                    )
                };
                (error == 0).then_some(out)
            }

            fn msm(bases: &[Self], scalars: &Scalars<'_>, window_bits: u32) -> Option<Self::Sum> {
                let mut out = Self::Sum::identity();
                let raw = scalars.raw(bases.len());
                // SAFETY: each scalar has a base, or none.
                let error = unsafe {
                    let scalars = &raw const raw;
                    $msm(bases.as_ptr(), scalars, window_bits, &raw mut out)
                };
                (error == 0).then_some(out)
            }

            fn decode(bytes: &[u8]) -> Option<(Vec<Self>, Option<u32>)> {
                let n = bytes.len() / $bytes;
                let mut points = vec![Self::default(); n];
                let mut bad = u32::MAX;
                // SAFETY: n encoded points and n places.
                let error = unsafe {
                    $decode(bytes.as_ptr(), length(n), points.as_mut_ptr(), &raw mut bad)
                };
                (error == 0).then(|| (points, (bad != u32::MAX).then_some(bad)))
            }
        }
    };
}

kernels!(
    G1Affine,
    G1Projective,
    96,
    cuzk_emulated_sum_g1,
    cuzk_emulated_msm_g1,
    cuzk_emulated_decode_g1
);
kernels!(
    G2Affine,
    G2Projective,
    192,
    cuzk_emulated_sum_g2,
    cuzk_emulated_msm_g2,
    cuzk_emulated_decode_g2
);
