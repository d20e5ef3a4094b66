//! Multi-scalar multiplication `Σ scalars[i] · bases[i]` in G1 and G2.
//!
//! Scalars of 0 cost nothing, and their bases are not even read. Scalars of
//! ±1, most of a Groth16 witness, are sums of points. The others go through
//! Pippenger's bucket method with signed digits and affine buckets (Bernstein,
//! Doumen, Lange, Oosterwijk: "Faster batch forgery identification", eprint
//! 2012/549). Bases are decoded in chunks of 2^17, so memory is bounded
//! however many there are.
//!
//! Several MSMs over the same bases, as those of a circuit's partitions, read them
//! once for all scalars that are 1: [`g1_columns`], [`g2_columns`].

mod batch;
mod bit_set;
mod buckets;
mod collapse;
mod columns;
mod footprint;
mod import;
mod multiples;
mod multiply;
mod packed;
mod pieces;
mod selected;
mod shape;
mod sorted;
pub mod subgroup;
mod term;
mod wide;
mod window;
mod workspace;

pub use crate::bases::{Bases, BasesError};
pub use columns::{g1_column_sets, g1_columns, g1_columns_in_sets, g2_columns, g2_columns_in_sets};
pub use footprint::{MsmMemory, MsmTermSize, g2_bucket_bytes};
pub use multiples::{Chosen, Multiples, WithMultiples};
pub use multiply::{
    g1, g1_in_windows, g1_of_terms, g1_packed, g1_stream, g1_with, g2, g2_in_windows, g2_of_terms,
    g2_packed, g2_stream, g2_with, window_bits,
};
pub use packed::{Bits, PackedScalars};
pub use shape::Shape;
pub use term::{MsmTerm, Scalars};
