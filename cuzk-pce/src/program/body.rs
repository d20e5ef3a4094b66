//! The rows of a program, in one of two forms.

use super::folded::Folded;
use crate::r1cs::R1cs;

/// The rows.
#[derive(Debug)]
pub(super) enum Body<S> {
    Folded(Folded<S>),
    /// Of a circuit with so little repetition that folded rows are larger.
    Plain(R1cs<S>),
}
