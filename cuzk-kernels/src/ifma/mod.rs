//! Arithmetic with AVX-512 IFMA: eight field elements at a time.
//!
//! An element is cut into limbs of 52 bits, the width of `vpmadd52luq` and
//! `vpmadd52huq`; a vector register holds the same limb of eight elements.
//! Montgomery's radix is 2^(52·limbs).
//!
//! # How near the bound it is
//!
//! The bound is the number of multiply-adds of eight lanes, of which a Zen 4
//! starts one a cycle. Arithmetic alone, operands in the first-level cache:
//!
//! | eight of | multiply-adds | cycles |
//! |---|---|---|
//! | product in the scalar field | 100 | 106 |
//! | product in the base field | 256 | 256 |
//! | square in the base field | 200 | 204 |
//! | product in its extension | 640 | 770 |
//! | square in its extension | 512 | 561 |
//!
//! A transform of 2^k points has k·2^(k − 1) butterflies of one product, of which the first
//! pass saves those of 1.75 layers. An affine addition is five products and a square: 1480
//! multiply-adds for eight in G1, 3712 in G2. The other costs of kernels are loading,
//! transposing, carrying and storing, choosing buckets, and waiting for memory:
//!
//! | one of | bound, cycles | cycles |
//! |---|---|---|
//! | butterfly of a transform of 2^22 points | 12.5 | 19 |
//! | addition in G1, points in the second-level cache | 185 | 240 |
//! | addition of an MSM in G1, 2^20 random scalars | 185 | 300 |
//! | addition of an MSM in G2, 2^17 random scalars | 464 | 765 |
//!
//! A Xeon (family 6, model 207) starts two multiply-adds a cycle, and every other instruction
//! on 512 bits takes one of the same two ports. So its bound is the number of all of them.
//! Eight additions in G1 have 2171, of which 1480 are multiply-adds: 136 cycles an addition.
//! It takes 140 to 170 cycles if the points are in the second-level cache, and about 290 in an
//! MSM. `benches/README.md` says what the difference is, and what did not make it less.
//!
//! The other kernels and instruction sets are in `benches/README.md`, measured by
//! `cargo bench -p benches --bench bounds`.
//!
//! Safety: a value of [`Ifma`] exists only where the processor has the instructions. Every
//! constructor of a vector type takes such a value, so every operation on vectors may use
//! the instructions. Operations are `inline(always)` around functions that enable the
//! instructions, and meet again inside the kernels, which enable them too. All calls of
//! operations are in `field/mod.rs`, and all calls of kernels from other code are in this file,
//! each with such a value. Invariant: functions of kernels require the instructions and nothing
//! else.

#![allow(unsafe_code)] // calls functions that enable the instructions

mod affine;
mod butterflies;
pub(crate) mod coset;
mod doubles;
mod field;
mod group;
mod jacobian;
mod line;
pub(crate) mod miller;
pub(crate) mod ntt;
mod passes;
mod points;
pub(crate) mod poseidon;
pub(crate) mod scaled;
mod tower;
pub(crate) mod twiddles;

use blstrs::{Fp12, Scalar};
use cuzk_memory::{Checkpoint, Stopped};

use crate::affine::{Addition, Coordinates};
pub(crate) use crate::token::Ifma;
use affine::Affine;
pub(crate) use affine::{G1, G2};
pub(crate) use field::coordinate::Coordinate;
use field::fr::{Fr, Words};
pub(crate) use field::fr::{word, words, words_mut};
use field::lanes::LANES;
use group::Early;
pub(crate) use group::Group;
use miller::Bundle;
pub(crate) use ntt::LentValues;
use ntt::{Cells, Reversed};
use passes::{Lanes, Pass};
pub(crate) use points::Point;
use poseidon::{Tables, Trace};
use scaled::Scaled;
use twiddles::Table;

/// See [`points::import_group`].
#[inline(always)]
fn import_group<A, C>(token: Ifma, from: &[A; LANES], to: &mut [Point<C::Stored>])
where
    A: Coordinates<Base = C::Base>,
    C: Coordinate,
{
    // SAFETY: the token proves the instructions.
    unsafe { points::import_group::<A, C>(token, from, to) }
}

/// See [`points::decode`].
#[inline(always)]
fn decode<C: Coordinate>(
    token: Ifma,
    encoded: &[[C::Encoded; 2]],
    indices: &[u32],
    to: &mut [Point<C::Stored>],
) -> bool {
    // SAFETY: the token proves the instructions.
    unsafe { points::decode::<C>(token, encoded, indices, to) }
}

/// See [`points::export_group`].
#[inline(always)]
fn export_group<A, C>(token: Ifma, from: &[Point<C::Stored>], to: &mut [A])
where
    A: Coordinates<Base = C::Base>,
    C: Coordinate,
{
    // SAFETY: the token proves the instructions.
    unsafe { points::export_group::<A, C>(token, from, to) }
}

/// Carries out the additions of a batch, while the points of `early` come.
#[inline(always)]
fn accumulate<A, C>(
    token: Ifma,
    kernel: Affine<A, C>,
    targets: &mut [Point<C::Stored>],
    sources: &[Point<C::Stored>],
    (batch, groups, early): (&[Addition], &mut [Group<C>], &mut Early<'_>),
) where
    A: Coordinates<Base = C::Base>,
    C: Coordinate,
{
    // SAFETY: the token proves the instructions.
    unsafe {
        let product = kernel.prepare(targets, sources, batch, groups);
        let inverse = product.invert(token);
        kernel.complete(targets, sources, (batch, groups, early), inverse);
    }
}

/// Doubles the points of a batch.
#[inline(always)]
fn double<C: Coordinate>(token: Ifma, points: &mut [Point<C::Stored>], groups: &mut [Group<C>]) {
    // SAFETY: the token proves the instructions.
    unsafe {
        let product = doubles::prepare_doubles(token, points, groups);
        doubles::complete_doubles(points, groups, product.invert(token), token);
    }
}

/// See [`scaled::multiply_add_lanes`].
#[inline(always)]
fn multiply_add_lanes<A: Scaled>(
    token: Ifma,
    addends: &[A; LANES],
    points: &[A; LANES],
    scalars: &[Scalar; LANES],
) -> Option<[A; LANES]> {
    // SAFETY: the token proves the instructions.
    unsafe { scaled::multiply_add_lanes(token, addends, points, scalars) }
}

/// See [`miller::miller_loops`].
#[inline(always)]
fn miller_loops(
    token: Ifma,
    bundle: &Bundle,
    checkpoint: &Checkpoint<'_>,
) -> Result<Vec<[Fp12; LANES]>, Stopped> {
    // SAFETY: the token proves the instructions.
    unsafe { miller::miller_loops(token, bundle, checkpoint) }
}

/// See [`poseidon::permute`].
#[inline(always)]
fn permute(token: Ifma, tables: &Tables, preimages: [&[Words]; LANES], trace: Trace<'_>) {
    // SAFETY: the token proves the instructions.
    unsafe { poseidon::permute(token, tables, preimages, trace) }
}

/// The values in memory that is lent.
#[inline(always)]
fn opened(_: Ifma, places: &mut [LentValues]) -> &mut [Fr] {
    // SAFETY: a place is a value and nothing else. The token proves that there are such registers.
    unsafe { std::slice::from_raw_parts_mut(places.as_mut_ptr().cast(), places.len()) }
}

/// See [`ntt::load`].
#[inline(always)]
fn load(token: Ifma, cells: &Cells<'_>, rows: &mut [Fr]) {
    // SAFETY: the token proves the instructions.
    unsafe { ntt::load(token, cells, rows) }
}

/// See [`ntt::store`].
#[inline(always)]
fn store<const REDUCED: bool>(_: Ifma, cells: &mut Cells<'_>, rows: &[Fr]) {
    // SAFETY: the token proves the instructions.
    unsafe { ntt::store::<REDUCED>(cells, rows) }
}

/// See [`butterflies::scatter_rows`].
#[inline(always)]
fn scatter_rows<const INVERSE: bool>(
    _: Ifma,
    rows: &mut [Fr],
    layers: u32,
    table: Table<'_>,
    lanes: &Lanes,
) {
    // SAFETY: the token proves the instructions.
    unsafe { butterflies::scatter_rows::<INVERSE>(rows, layers, table, lanes) }
}

/// See [`butterflies::gather_rows`].
#[inline(always)]
fn gather_rows<const INVERSE: bool>(
    _: Ifma,
    rows: &mut [Fr],
    layers: u32,
    table: Table<'_>,
    lanes: &Lanes,
) {
    // SAFETY: the token proves the instructions.
    unsafe { butterflies::gather_rows::<INVERSE>(rows, layers, table, lanes) }
}

/// See [`coset::product`].
#[inline(always)]
fn product(token: Ifma, factors: [&[Words; LANES]; 2], to: &mut [Words; LANES]) {
    // SAFETY: the token proves the instructions.
    unsafe { coset::product(token, factors, to) }
}

/// See [`coset::shift_of_lanes`].
#[inline(always)]
fn shift_of_lanes<const INVERSE: bool>(
    _: Ifma,
    pass: &Pass,
    lanes: &Lanes,
    table: Table<'_>,
    factors: [&Words; 2],
) -> Fr {
    // SAFETY: the token proves the instructions.
    unsafe { coset::shift_of_lanes::<INVERSE>(pass, lanes, table, factors) }
}

/// See [`coset::shift_rows`].
#[inline(always)]
fn shift_rows(_: Ifma, rows: &mut [Fr], table: Table<'_>, shift_of_lanes: &Fr) {
    // SAFETY: the token proves the instructions.
    unsafe { coset::shift_rows(rows, table, shift_of_lanes) }
}

/// See [`coset::store_differences`].
#[inline(always)]
fn store_differences(
    _: Ifma,
    (pass, lanes): (&Pass, &Lanes),
    rows: (&[Fr], &Fr),
    sums: (&[Words], &Words),
    to: (&mut Reversed<'_>, Table<'_>),
) {
    // SAFETY: the token proves the instructions.
    unsafe { coset::store_differences((pass, lanes), rows, sums, to) }
}
