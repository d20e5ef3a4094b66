//! What a sum is over: parts, each of them bases and as many scalars.

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::multiples::Multiples;
use super::{Bases, CHUNK, PackedScalars};
use crate::affine::Addition;
use crate::checkpoint::Checkpoint;
use crate::error::{KernelError, expect_len};

/// Bases and scalars of a sum, or of a part of it.
#[derive(Clone, Copy)]
pub struct Part<'a, P> {
    pub(super) bases: &'a dyn Bases<P>,
    pub(super) scalars: Scalars<'a>,
    multiples: Option<Multiples<'a, P>>,
}

impl<'a, P> Part<'a, P> {
    /// `Σ scalars[i] · bases[i]`.
    pub fn new(bases: &'a dyn Bases<P>, scalars: impl Into<Scalars<'a>>) -> Self {
        Self {
            bases,
            scalars: scalars.into(),
            multiples: None,
        }
    }

    /// The same with multiples of some of the bases, or none: used if they are for the
    /// sum's instructions, and if every scalar that takes a multiplication is
    /// one of theirs.
    #[must_use]
    pub fn with_multiples(self, multiples: impl Into<Option<Multiples<'a, P>>>) -> Self {
        Self {
            multiples: multiples.into(),
            ..self
        }
    }

    /// # Errors
    /// As the sum's.
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

impl<P> std::fmt::Debug for Part<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part")
            .field("terms", &self.scalars.len())
            .finish_non_exhaustive()
    }
}

/// The scalars of a part.
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

/// A part's terms that are not zero, by what has to be done.
pub(super) struct Terms<'a, P> {
    pub(super) ones: Ones<'a>,
    pub(super) wide: Wide<'a, P>,
    pub(super) multiples: Option<Multiples<'a, P>>,
}

/// The scalars that are ±1.
pub(super) enum Ones<'a> {
    /// Indices of those that are 1, and of those that are −1.
    Listed { plus: Vec<u32>, minus: Vec<u32> },
    /// Bit i of word i / 64: scalar i is 1.
    Bits(&'a [u64]),
}

/// The scalars that take a multiplication.
pub(super) struct Wide<'a, P> {
    pub(super) bases: &'a dyn Bases<P>,
    /// Ascending.
    pub(super) indices: Vec<u32>,
    values: Values<'a>,
}

enum Values<'a> {
    /// Every scalar of the part.
    OfAll(&'a [Scalar]),
    /// Those at the indices only.
    OfWide(&'a [Scalar]),
}

impl<P> Wide<'_, P> {
    /// The scalar at this place among the indices.
    pub(super) fn scalar(&self, place: usize) -> &Scalar {
        match self.values {
            Values::OfAll(scalars) => &scalars[self.indices[place] as usize],
            Values::OfWide(scalars) => &scalars[place],
        }
    }
}

impl<'a, P> Terms<'a, P> {
    /// # Errors
    /// [`KernelError::Stopped`].
    pub(super) fn of(part: &Part<'a, P>, checkpoint: &dyn Checkpoint) -> Result<Self, KernelError> {
        let (ones, indices, values) = match part.scalars {
            Scalars::Plain(scalars) => {
                let Sorted { plus, minus, wide } = Sorted::new(scalars, checkpoint)?;
                let ones = Ones::Listed { plus, minus };
                (ones, wide, Values::OfAll(scalars))
            }
            Scalars::Packed(scalars) => (
                Ones::Bits(scalars.ones()),
                scalars.wide_indices(),
                Values::OfWide(scalars.values()),
            ),
        };
        let bases = part.bases;
        Ok(Self {
            multiples: part.multiples,
            ones,
            wide: Wide {
                bases,
                indices,
                values,
            },
        })
    }
}

/// Indices of plain scalars.
#[derive(Default)]
struct Sorted {
    plus: Vec<u32>,
    minus: Vec<u32>,
    wide: Vec<u32>,
}

impl Sorted {
    /// Sorts the scalars, of which there are at most 2^31.
    fn new(scalars: &[Scalar], checkpoint: &dyn Checkpoint) -> Result<Self, KernelError> {
        let parts: Vec<Self> = scalars
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(i, chunk)| {
                checkpoint.check()?;
                Ok(Self::of_chunk(i * CHUNK, chunk))
            })
            .collect::<Result<_, KernelError>>()?;
        let mut sorted = Self::default();
        for part in parts {
            sorted.plus.extend(part.plus);
            sorted.minus.extend(part.minus);
            sorted.wide.extend(part.wide);
        }
        Ok(sorted)
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 scalars")]
    fn of_chunk(start: usize, chunk: &[Scalar]) -> Self {
        let minus_one = -Scalar::ONE;
        let mut sorted = Self::default();
        for (i, scalar) in chunk.iter().enumerate() {
            let index = (start + i) as u32;
            if *scalar == Scalar::ZERO {
            } else if *scalar == Scalar::ONE {
                sorted.plus.push(index);
            } else if *scalar == minus_one {
                sorted.minus.push(index);
            } else {
                sorted.wide.push(index);
            }
        }
        sorted
    }
}
