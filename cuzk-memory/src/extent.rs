//! Memory by its length: a block, or the addresses that one would have.

use crate::block::Block;

/// Memory that can be divided, and joined again.
pub trait Extent: Sized {
    /// Returns the length, in bytes.
    fn bytes(&self) -> usize;

    /// Keeps the first `bytes` bytes, a multiple of [`PART_BYTES`](crate::PART_BYTES), and
    /// returns the rest, if there is any.
    fn split_off(&mut self, bytes: usize) -> Option<Self>;

    /// Joins `other` to this extent, if it begins where this extent ends.
    ///
    /// # Errors
    /// Returns `other` if it begins elsewhere.
    fn join(&mut self, other: Self) -> Result<(), Self>;
}

impl Extent for Block {
    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn split_off(&mut self, bytes: usize) -> Option<Self> {
        self.split_off(bytes)
    }

    fn join(&mut self, other: Self) -> Result<(), Self> {
        self.join(other)
    }
}

/// An extent without memory: the addresses that a block would have. Tells what a pool
/// will map, without mapping it.
#[derive(Debug, PartialEq, Eq)]
pub struct VirtualExtent {
    pub(crate) mapping: usize,
    pub(crate) start: usize,
    pub(crate) bytes: usize,
}

impl VirtualExtent {
    /// Returns the number of the mapping that it is in.
    #[must_use]
    pub fn mapping(&self) -> usize {
        self.mapping
    }

    /// Returns a whole mapping.
    #[must_use]
    pub fn whole(mapping: usize, bytes: usize) -> Self {
        Self {
            mapping,
            start: 0,
            bytes,
        }
    }
}

impl Extent for VirtualExtent {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn split_off(&mut self, bytes: usize) -> Option<Self> {
        let rest = self.bytes.checked_sub(bytes).filter(|rest| *rest > 0)?;
        self.bytes = bytes;
        Some(Self {
            mapping: self.mapping,
            start: self.start + bytes,
            bytes: rest,
        })
    }

    fn join(&mut self, other: Self) -> Result<(), Self> {
        if self.mapping != other.mapping || self.start + self.bytes != other.start {
            return Err(other);
        }
        self.bytes += other.bytes;
        Ok(())
    }
}
