//! The device code, compiled as plain C++ and run on the host: what the tests
//! of the kernels call. Compiled only with the feature `test-hooks`; not for
//! use by other crates, and not a backend: it is slow and allocates.
//!
//! The structs mirror those of `cuda/kernels.hpp`.
#![allow(unsafe_code)] // Passes slices to C++.
#![allow(missing_docs)]

use std::ptr;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Group;

/// A base that is not there.
pub const NO_BASE: u32 = u32::MAX;

/// The operations on field elements: the host's, and the plain twins of the
/// device's.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub enum Operation {
    Mul,
    PlainMul,
    Add,
    Sub,
    PlainAdd,
    PlainSub,
}

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
    fn cuzk_emulated_fr(operation: u32, a: *const Scalar, b: *const Scalar, out: *mut Scalar);
    fn cuzk_emulated_fp(operation: u32, a: *const Fp, b: *const Fp, out: *mut Fp);
    fn cuzk_emulated_fp_mul_add(
        a: *const Fp,
        b: *const Fp,
        c: *const Fp,
        d: *const Fp,
        out: *mut Fp,
    );
    fn cuzk_emulated_self_test(rounds: u32, failures: *mut u32) -> i32;
    fn cuzk_emulated_load_kernels() -> i32;
    fn cuzk_emulated_kernels_launched() -> u32;
    fn cuzk_emulated_blocks_run() -> u64;
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
    fn cuzk_emulated_scratch_grows(n: u32, bits: u32) -> bool;
    fn cuzk_emulated_window_bits(n: usize) -> u32;
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

/// The limbs of an element of the base field, as blst has them.
pub type Fp = [u64; 6];

fn length(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

pub fn fr(operation: Operation, a: Scalar, b: Scalar) -> Scalar {
    let mut out = a;
    // SAFETY: three elements of the same layout.
    unsafe { cuzk_emulated_fr(operation as u32, &raw const a, &raw const b, &raw mut out) };
    out
}

/// `a` and `b` are reduced.
pub fn fp(operation: Operation, a: Fp, b: Fp) -> Fp {
    let mut out = a;
    // SAFETY: three elements of the same layout.
    unsafe { cuzk_emulated_fp(operation as u32, &raw const a, &raw const b, &raw mut out) };
    out
}

/// a·b + c·d, by the plain twin of the device's. All are reduced.
pub fn fp_mul_add([a, b, c, d]: [Fp; 4]) -> Fp {
    let mut out = a;
    // SAFETY: five elements of the same layout.
    unsafe {
        cuzk_emulated_fp_mul_add(
            &raw const a,
            &raw const b,
            &raw const c,
            &raw const d,
            &raw mut out,
        );
    }
    out
}

/// The differences that the self-test finds.
pub fn self_test(rounds: u32) -> Option<u32> {
    let mut failures = 0;
    // SAFETY: `failures` is writable.
    let error = unsafe { cuzk_emulated_self_test(rounds, &raw mut failures) };
    (error == 0).then_some(failures)
}

/// Launches every kernel once, to no effect.
pub fn load_kernels() -> i32 {
    // SAFETY: it takes nothing.
    unsafe { cuzk_emulated_load_kernels() }
}

/// How many kernels, by their type, this process has launched so far.
pub fn kernels_launched() -> u32 {
    // SAFETY: it takes nothing.
    unsafe { cuzk_emulated_kernels_launched() }
}

/// How many blocks of kernels this process has run so far.
pub fn blocks_run() -> u64 {
    // SAFETY: it takes nothing.
    unsafe { cuzk_emulated_blocks_run() }
}

/// Replaces every word by the sum of those before it.
pub fn scan(words: &mut [u32]) -> i32 {
    // SAFETY: the words are writable.
    unsafe { cuzk_emulated_scan(words.as_mut_ptr(), length(words.len())) }
}

/// Whose roots of unity: those up to 2^`log`, as two factors of which the
/// first is 2^`low_log` long, or whole if they are equal.
#[derive(Debug, Clone, Copy)]
pub struct RootsShape {
    pub log: u32,
    pub low_log: u32,
}

/// In place; the length is a power of two.
pub fn transform(roots: RootsShape, values: &mut [Scalar], coset: bool, inverse: bool) -> i32 {
    assert!(values.len().is_power_of_two());
    let log = values.len().ilog2();
    // SAFETY: 2^log values are writable.
    unsafe {
        cuzk_emulated_transform(
            log,
            roots.log,
            roots.low_log,
            values.as_mut_ptr(),
            coset,
            inverse,
        )
    }
}

/// h comes into `b`.
pub fn quotient(roots: RootsShape, a: &mut [Scalar], b: &mut [Scalar], is_canonical: bool) -> i32 {
    assert!(a.len().is_power_of_two() && a.len() == b.len());
    // SAFETY: both have 2^log writable values.
    unsafe {
        cuzk_emulated_quotient(
            a.len().ilog2(),
            roots.log,
            roots.low_log,
            a.as_mut_ptr(),
            b.as_mut_ptr(),
            is_canonical,
        )
    }
}

/// A flat circuit, as `cuzk_pce` makes it.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    pub coefficients: &'a [Scalar],
    pub integers: &'a [i32],
    pub halves: &'a [Scalar],
    pub part_ends: &'a [u32],
    pub items: &'a [u32],
    pub shapes: &'a [u32],
    pub unit_rows: &'a [u32],
    pub references: &'a [u32],
    pub block_references: &'a [u32],
    pub rows: u32,
    pub num_inputs: u32,
}

/// A packed witness.
#[derive(Debug, Clone, Copy)]
pub struct Witness<'a> {
    pub inputs: &'a [Scalar],
    pub bits: &'a [u64],
    pub wide: &'a [u64],
    pub ranks: &'a [u32],
    pub wide_values: &'a [Scalar],
}

/// A and B over 2^`log` places. The tables must be of one circuit and the
/// witness of its dimensions: nothing is checked.
pub fn evaluate(
    program: &Program<'_>,
    witness: &Witness<'_>,
    log: u32,
    is_reversed: bool,
) -> Option<[Vec<Scalar>; 2]> {
    let mut out = [(); 2].map(|()| vec![Scalar::default(); 1 << log]);
    let [a, b] = &mut out;
    let raw = RawProgram {
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
    let raw_witness = RawWitness {
        inputs: witness.inputs.as_ptr(),
        bits: witness.bits.as_ptr(),
        wide: witness.wide.as_ptr(),
        ranks: witness.ranks.as_ptr(),
        wide_values: witness.wide_values.as_ptr(),
    };
    // SAFETY: the tables are those of a checked circuit and the witness is of
    // its dimensions, as the caller warrants; a and b have 2^log places.
    let error = unsafe {
        cuzk_emulated_evaluate(
            &raw const raw,
            &raw const raw_witness,
            log,
            is_reversed,
            a.as_mut_ptr(),
            b.as_mut_ptr(),
        )
    };
    (error == 0).then_some(out)
}

/// Which bases aux variables have, and which of these are in memory.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// A bitmap of the variables in the query, and the bits before each word.
    pub mask: Option<(&'a [u64], &'a [u32])>,
    pub before: u32,
    pub first_base: u32,
    pub num_bases: u32,
}

impl Query<'_> {
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

/// The places of the bases of `wide`'s bits.
pub fn wide_bases(query: &Query<'_>, wide: &[u64], ranks: &[u32]) -> Option<Vec<u32>> {
    assert!(ranks.len() >= wide.len());
    let count = wide.iter().map(|word| word.count_ones() as usize).sum();
    let mut places = vec![0; count];
    let raw = query.raw(wide.len());
    // SAFETY: a place for every bit of `wide`; the rest is as long as it.
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

/// Scalars, and which bases they go with.
#[derive(Debug, Clone, Copy)]
pub struct Scalars<'a> {
    pub values: &'a [Scalar],
    pub places: Option<&'a [u32]>,
    /// Whether the values are not in Montgomery form.
    pub is_canonical: bool,
}

impl Scalars<'_> {
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

/// Whether the scratch of a multiplication in G1 never shrinks as scalars are
/// added, up to `n` of them.
pub fn scratch_grows(n: u32, window_bits: u32) -> bool {
    // SAFETY: a pure function.
    unsafe { cuzk_emulated_scratch_grows(n, window_bits) }
}

/// What the device would choose for `n` scalars.
pub fn window_bits(n: usize) -> u32 {
    // SAFETY: a pure function.
    unsafe { cuzk_emulated_window_bits(n) }
}

/// The kernels of one group.
pub trait Kernels: Sized {
    type Sum: Group;
    const ENCODED_BYTES: usize;

    fn sum(bases: &[Self], query: &Query<'_>, bits: &[u64]) -> Option<Self::Sum>;
    fn msm(bases: &[Self], scalars: &Scalars<'_>, window_bits: u32) -> Option<Self::Sum>;
    /// The points, and the first that is bad.
    fn decode(bytes: &[u8]) -> Option<(Vec<Self>, Option<u32>)>;
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
                // SAFETY: the query has no more bases than there are, and its
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
                // SAFETY: every scalar has a base, or none.
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
