//! The terms of an MSM: bases, and as many scalars.

use blstrs::Scalar;

use super::multiples::Multiples;
use super::packed::PackedScalars;
use crate::affine::Addition;
use crate::bases::Bases;
use crate::error::{KernelError, expect_len};
use cuzk_memory::Lent;

/// A term of an MSM: bases, and as many scalars. The MSM is the sum over all its terms.
#[derive(Clone, Copy)]
pub struct MsmTerm<'a, P> {
    pub(super) bases: &'a dyn Bases<P>,
    pub(super) scalars: Scalars<'a>,
    multiples: Option<Multiples<'a, P>>,
}

impl<'a, P> MsmTerm<'a, P> {
    /// `Σ scalars[i] · bases[i]`.
    pub fn new(bases: &'a dyn Bases<P>, scalars: impl Into<Scalars<'a>>) -> Self {
        Self {
            bases,
            scalars: scalars.into(),
            multiples: None,
        }
    }

    /// Adds multiples of some of the bases, or none. The MSM uses them if they are for its
    /// instructions, and if they cover the base of every scalar that takes a
    /// multiplication.
    #[must_use]
    pub fn with_multiples(self, multiples: impl Into<Option<Multiples<'a, P>>>) -> Self {
        Self {
            multiples: multiples.into(),
            ..self
        }
    }

    /// # Errors
    /// As those of the MSM.
    pub(super) fn check(&self) -> Result<(), KernelError> {
        check_terms(self.bases.len(), self.scalars.len())
    }
}

/// # Errors
/// [`KernelError::LengthMismatch`], [`KernelError::TooManyTerms`].
pub(super) fn check_terms(bases: usize, scalars: usize) -> Result<(), KernelError> {
    expect_len("scalars", bases, scalars)?;
    if scalars > Addition::SOURCE_MAX {
        return Err(KernelError::TooManyTerms {
            got: scalars,
            max: Addition::SOURCE_MAX,
        });
    }
    Ok(())
}

impl<P> std::fmt::Debug for MsmTerm<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MsmTerm")
            .field("terms", &self.scalars.len())
            .finish_non_exhaustive()
    }
}

/// The scalars of a term.
#[derive(Clone, Copy, Debug)]
pub enum Scalars<'a> {
    /// One after the other.
    Plain(&'a [Scalar]),
    /// Mostly bits.
    Packed(PackedScalars<'a>),
}

impl Scalars<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Plain(scalars) => scalars.len(),
            Self::Packed(scalars) => scalars.len(),
        }
    }
}

impl<'a> From<&'a [Scalar]> for Scalars<'a> {
    fn from(scalars: &'a [Scalar]) -> Self {
        Self::Plain(scalars)
    }
}

impl<'a> From<PackedScalars<'a>> for Scalars<'a> {
    fn from(scalars: PackedScalars<'a>) -> Self {
        Self::Packed(scalars)
    }
}

/// A term's scalars that take a multiplication, with their bases.
pub(super) struct Wide<'a, P> {
    pub(super) bases: &'a dyn Bases<P>,
    pub(super) multiples: Option<Multiples<'a, P>>,
    /// How many there are.
    pub(super) count: usize,
    marks: Marks<'a>,
    values: Values<'a>,
}

/// Bit i of word i / 64: scalar i takes a multiplication.
enum Marks<'a> {
    Given(&'a [u64]),
    Made(Lent<'a, u64>),
}

enum Values<'a> {
    /// Every scalar of the part.
    OfAll(&'a [Scalar]),
    /// Those that take a multiplication.
    OfWide(&'a [Scalar]),
}

impl<'a, P> Wide<'a, P> {
    pub(super) fn of_packed(part: &MsmTerm<'a, P>, scalars: &PackedScalars<'a>) -> Self {
        Self {
            bases: part.bases,
            multiples: part.multiples,
            count: scalars.values().len(),
            marks: Marks::Given(scalars.wide()),
            values: Values::OfWide(scalars.values()),
        }
    }

    /// `marks` has `count` bits, of those of the scalars that take a
    /// multiplication.
    pub(super) fn of_plain(
        part: &MsmTerm<'a, P>,
        scalars: &'a [Scalar],
        marks: Lent<'a, u64>,
        count: usize,
    ) -> Self {
        Self {
            bases: part.bases,
            multiples: part.multiples,
            count,
            marks: Marks::Made(marks),
            values: Values::OfAll(scalars),
        }
    }

    /// Which scalars they are: bit i of word i / 64 is scalar i.
    pub(super) fn marks(&self) -> &[u64] {
        match &self.marks {
            Marks::Given(words) => words,
            Marks::Made(words) => words,
        }
    }

    /// The scalar of a term by its place among the terms, or by its index.
    pub(super) fn scalar(&self, place: usize, index: u32) -> &Scalar {
        match self.values {
            Values::OfAll(scalars) => &scalars[index as usize],
            Values::OfWide(scalars) => &scalars[place],
        }
    }
}
