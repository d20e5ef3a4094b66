//! Number-theoretic transforms over the scalar field.
//!
//! The public transforms take and give natural order and agree with bellperson's
//! `EvaluationDomain`, coset included. Inside the crate there are transforms that reorder
//! nothing: from natural order to bit-reversed, and back. The quotient combines these. It
//! needs no pass of its own for reversing bits, for shifts to the coset, or for products.

mod direction;
mod domain;
mod engine;
mod pass;
mod pieces;
mod pointwise;
mod root;
mod serial;
mod twiddles;

pub(crate) use direction::Direction;
pub use domain::Domain;
pub(crate) use root::root_of_unity;
