//! A piece of a query, without its encoding.
//!
//! Not a query: it decodes nothing. The invariant: a piece reads only bases of its range.

use cuzk_kernels::msm::{Bases, BasesError};

/// Terms of a random combination in memory at a time. The tests within the sources have several chunks.
pub(super) const CHUNK: usize = if cfg!(test) { 1 << 5 } else { 1 << 18 };

/// Consecutive bases of others. Their encodings are not shown, so a kernel has them decoded by
/// [`Bases::read`].
pub(super) struct Part<'a, B: ?Sized> {
    all: &'a B,
    start: usize,
    len: usize,
}

impl<'a, B: ?Sized> Part<'a, B> {
    pub(super) fn new(all: &'a B, start: usize, len: usize) -> Self {
        Self { all, start, len }
    }

    pub(super) fn all<P>(all: &'a B) -> Self
    where
        B: Bases<P>,
    {
        Self::new(all, 0, all.len())
    }
}

impl<P, B: Bases<P> + ?Sized> Bases<P> for Part<'_, B> {
    fn len(&self) -> usize {
        self.len
    }

    fn read(&self, start: usize, out: &mut [P]) -> Result<(), BasesError> {
        self.all.read(self.start + start, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_reads_its_own_bases() {
        let points = [1, 2, 3, 4, 5];
        let part = Part::new(&points[..], 2, 2);
        let mut out = [0; 2];
        assert_eq!(Bases::<i32>::len(&part), 2);
        part.read(0, &mut out).unwrap();
        assert_eq!(out, [3, 4]);
    }
}
