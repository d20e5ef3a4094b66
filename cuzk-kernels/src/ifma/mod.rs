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
//! instructions, and meet again inside the kernels' entry points, which enable them too.

mod affine;
mod assembly;
mod butterflies;
mod coordinate;
pub(crate) mod coset;
mod doubles;
mod element;
mod fp;
mod fp2;
mod fr;
mod group;
mod jacobian;
mod lanes;
mod line;
pub(crate) mod miller;
pub(crate) mod ntt;
mod passes;
mod points;
pub(crate) mod poseidon;
mod powers;
mod product;
pub(crate) mod scaled;
mod tower;
pub(crate) mod twiddles;
mod wide;
mod words;

pub(crate) use crate::token::Ifma;
pub(crate) use affine::{G1, G2};
pub(crate) use fr::{word, words, words_mut};
