//! Bases that are read piece by piece.
//!
//! A parameter file is far larger than the part of it that an MSM needs at a time. So bases
//! are a trait with one method that decodes a run of them. A slice of points is the
//! simplest implementation.

/// Bases could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BasesError {
    /// A range outside the bases.
    #[error(
        "bases {start}..{end} are out of range, there are {len}: the parameters are shorter than the circuit needs"
    )]
    OutOfRange {
        /// First base asked for.
        start: usize,
        /// One past the last base asked for.
        end: usize,
        /// Number of bases.
        len: usize,
    },
    /// A base that is no point.
    #[error(
        "base {index} is not a valid point ({reason}): the parameters are damaged, fetch or generate them again"
    )]
    Invalid {
        /// Index of the base.
        index: usize,
        /// The reason.
        reason: String,
    },
}

/// A sequence of points that can be read from anywhere.
pub trait Bases<P>: Sync {
    /// Number of bases.
    fn len(&self) -> usize;

    /// Returns true if there are no bases.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all the bases, if they are kept as uncompressed encodings in ZCash's format.
    /// Kernels that can read encodings do so. They refuse a point that is not on the curve,
    /// and do not look at its subgroup.
    fn encoded(&self) -> Option<&[u8]> {
        None
    }

    /// Decodes the bases from `start` on into `out`, which is filled.
    ///
    /// # Errors
    /// When the range is outside the bases, or a base is no point.
    fn read(&self, start: usize, out: &mut [P]) -> Result<(), BasesError>;
}

impl<P: Copy + Sync> Bases<P> for [P] {
    fn len(&self) -> usize {
        <[P]>::len(self)
    }

    fn read(&self, start: usize, out: &mut [P]) -> Result<(), BasesError> {
        let end = start.saturating_add(out.len());
        let bases = self.get(start..end).ok_or(BasesError::OutOfRange {
            start,
            end,
            len: <[P]>::len(self),
        })?;
        out.copy_from_slice(bases);
        Ok(())
    }
}

impl<P, B: Bases<P> + ?Sized> Bases<P> for &B {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn encoded(&self) -> Option<&[u8]> {
        (**self).encoded()
    }

    fn read(&self, start: usize, out: &mut [P]) -> Result<(), BasesError> {
        (**self).read(start, out)
    }
}

/// Reads the bases with these increasing indices, a run of consecutive
/// indices at a time, so that no other base is decoded.
pub(crate) fn read_selected<P, B: Bases<P> + ?Sized>(
    bases: &B,
    indices: &[u32],
    mut out: &mut [P],
) -> Result<(), BasesError> {
    for run in indices.chunk_by(|a, b| a + 1 == *b) {
        let (head, tail) = out.split_at_mut(run.len());
        bases.read(run[0] as usize, head)?;
        out = tail;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_bases_are_read_in_order() {
        let bases: Vec<u32> = (100..200).collect();
        let indices = [0, 1, 2, 7, 9, 10, 99];
        let mut out = [0; 7];
        read_selected(bases.as_slice(), &indices, &mut out).unwrap();
        assert_eq!(out, [100, 101, 102, 107, 109, 110, 199]);
    }

    #[test]
    fn a_range_outside_is_an_error() {
        let bases = [1, 2, 3];
        assert!(matches!(
            bases.read(2, &mut [0; 2]),
            Err(BasesError::OutOfRange {
                start: 2,
                end: 4,
                len: 3
            })
        ));
    }
}
