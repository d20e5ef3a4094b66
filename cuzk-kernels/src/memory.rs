//! Working memory of a kernel, lent by whoever starts it.
//!
//! A sum's buckets are megabytes, and a proof makes several sums. Mapping them
//! anew each time costs page faults now, and stalls every core when they are
//! unmapped; a caller that keeps [`Block`]s for the next sum ([`Memory`]) spares
//! both. Not an allocator: what is small lives on the heap.
//!
//! The invariants: a block's bytes are initialised, whatever they are, and belong
//! to one owner.
#![allow(unsafe_code)] // Views mapped bytes as values.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;

use blstrs::{G1Affine, G2Affine, Scalar};
use memmap2::MmapMut;

use crate::digits::Recoded;
use crate::error::KernelError;

/// Where kernels get their working memory from.
pub trait Memory: Sync {
    /// At least `bytes` bytes of unspecified values.
    ///
    /// # Errors
    /// When there is no memory to be had.
    fn take(&self, bytes: usize) -> io::Result<Block>;

    /// Takes back what [`Memory::take`] gave out.
    fn give_back(&self, block: Block);
}

/// Memory that is mapped when it is needed and unmapped right afterwards.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mapped;

impl Memory for Mapped {
    fn take(&self, bytes: usize) -> io::Result<Block> {
        Block::map(bytes)
    }

    fn give_back(&self, block: Block) {
        drop(block);
    }
}

/// Mapped bytes, in huge pages where the system grants them.
#[derive(Debug)]
pub struct Block(MmapMut);

impl Block {
    /// `bytes` zeros, at least one.
    ///
    /// # Errors
    /// When the system has no memory to map.
    pub fn map(bytes: usize) -> io::Result<Self> {
        let map = MmapMut::map_anon(bytes.max(1))?;
        // Advice only: without huge pages everything works the same.
        #[cfg(target_os = "linux")]
        map.advise(memmap2::Advice::HugePage).ok();
        Ok(Self(map))
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The first `len` values, or as many as there is room for.
    #[must_use]
    pub fn values<T: Plain>(&self, len: usize) -> &[T] {
        let len = self.room_for::<T>(len);
        // SAFETY: the mapping is private, at least `len` values long, and
        // borrowed as long as the slice is. It begins at a page, which is enough
        // for T's alignment. Its bytes are initialised: zero when mapped, and
        // later what was written as plain values, which have no padding; and any
        // bytes are plain values.
        unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), len) }
    }

    /// The same, to be written.
    #[must_use]
    pub fn values_mut<T: Plain>(&mut self, len: usize) -> &mut [T] {
        let len = self.room_for::<T>(len);
        // SAFETY: as above, and `self`, which alone owns the mapping, is
        // borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }

    fn room_for<T: Plain>(&self, len: usize) -> usize {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE_BYTES) };
        debug_assert!(len <= self.0.len() / size_of::<T>());
        len.min(self.0.len() / size_of::<T>())
    }
}

/// No system's pages are smaller.
const PAGE_BYTES: usize = 4096;

/// Values that any bytes are, and whose bytes are all theirs.
///
/// # Safety
/// Every pattern of bytes is a value of the type, and there is no padding.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl Plain for u64 {}
// SAFETY: four words of which all values are valid, and nothing else.
unsafe impl Plain for Scalar {}
// SAFETY: four words.
unsafe impl Plain for Recoded {}
// SAFETY: two coordinates of six words each of which all values are valid, and
// nothing else.
unsafe impl Plain for G1Affine {}
// SAFETY: the same with two coordinates of twelve words.
unsafe impl Plain for G2Affine {}

const _: () = assert!(size_of::<Scalar>() == 32);
const _: () = assert!(size_of::<G1Affine>() == 96 && size_of::<G2Affine>() == 192);

/// Values in a block that goes back to where it came from.
pub(crate) struct Lent<'m, T> {
    memory: &'m dyn Memory,
    /// Taken out when this is dropped, and then only.
    block: Option<Block>,
    len: usize,
    values: PhantomData<T>,
}

impl<'m, T: Plain> Lent<'m, T> {
    /// `len` values, unspecified.
    ///
    /// # Errors
    /// [`KernelError::Memory`].
    pub(crate) fn take(memory: &'m dyn Memory, len: usize) -> Result<Self, KernelError> {
        let bytes = len.checked_mul(size_of::<T>());
        let block = bytes
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
            .and_then(|bytes| match bytes {
                0 => Ok(None),
                _ => memory.take(bytes).map(Some),
            })
            .map_err(KernelError::Memory)?;
        Ok(Self {
            memory,
            block,
            len,
            values: PhantomData,
        })
    }
}

impl<T: Plain> Deref for Lent<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.block
            .as_ref()
            .map_or(&[], |block| block.values(self.len))
    }
}

impl<T: Plain> DerefMut for Lent<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let len = self.len;
        self.block
            .as_mut()
            .map_or(&mut [], |block| block.values_mut(len))
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.memory.give_back(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Keeps what comes back, and gives it out again.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Block>>);

    impl Memory for Kept {
        fn take(&self, bytes: usize) -> io::Result<Block> {
            let kept = self.0.lock().unwrap().pop();
            kept.map_or_else(|| Block::map(bytes), Ok)
        }

        fn give_back(&self, block: Block) {
            self.0.lock().unwrap().push(block);
        }
    }

    #[test]
    fn what_is_lent_goes_back() {
        let memory = Kept::default();
        let mut first = Lent::<u64>::take(&memory, 100).unwrap();
        assert!(first.iter().all(|value| *value == 0));
        first.fill(u64::MAX);
        drop(first);
        let again = Lent::<u32>::take(&memory, 200).unwrap();
        assert_eq!(*again, [u32::MAX; 200]);
        assert!(memory.0.lock().unwrap().is_empty());
    }

    #[test]
    fn nothing_and_too_much() {
        let nothing = Lent::<Scalar>::take(&Mapped, 0).unwrap();
        assert!(nothing.is_empty());
        for len in [usize::MAX, usize::MAX / 32 - 1] {
            let error = Lent::<Scalar>::take(&Mapped, len).err();
            assert!(matches!(error, Some(KernelError::Memory(_))), "{len}");
        }
    }
}
