//! A commitment to vectors of points: two products of pairings with the keys of α and β.
//!
//! Not a way to make one: products are made several at a time, by
//! [`products`](cuzk_kernels::pairing::products).

use blstrs::Gt;

/// The products with the keys of α and of β.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Commitment(pub(super) [Gt; 2]);
