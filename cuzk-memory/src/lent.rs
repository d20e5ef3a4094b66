//! Working memory on loan.
//!
//! The MSMs of a proof need megabytes of buckets each. Mapping them anew for each MSM costs
//! page faults, and unmapping them stalls every core. A caller avoids both if its
//! [`Memory`] keeps the [`Block`]s for the next MSM. A [`Memory`] is not an allocator:
//! small values live on the heap.
//!
//! Invariant: a loan goes back to the memory that it came from.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::block::Block;
use crate::plain::Plain;

/// A source of working memory.
pub trait Memory: Sync {
    /// Lends at least `bytes` bytes of unspecified values.
    ///
    /// # Errors
    /// There is no memory.
    fn take(&self, bytes: usize) -> io::Result<Block>;

    /// Takes back a block that [`Memory::take`] lent.
    fn give_back(&self, block: Block);
}

/// A source that maps memory when it is needed, and unmaps it right afterwards.
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

/// Values in a block on loan. The block goes back when this is dropped.
pub struct Lent<'m, T> {
    memory: &'m dyn Memory,
    /// Taken out when this is dropped, and then only.
    block: Option<Block>,
    len: usize,
    values: PhantomData<T>,
}

impl<'m, T: Plain> Lent<'m, T> {
    /// Borrows room for `len` values, which are unspecified.
    ///
    /// # Errors
    /// There is no memory for them, or `len` values have more bytes than a process can
    /// address.
    pub fn take(memory: &'m dyn Memory, len: usize) -> io::Result<Self> {
        let bytes = len.checked_mul(size_of::<T>());
        let block = bytes
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
            .and_then(|bytes| match bytes {
                0 => Ok(None),
                _ => memory.take(bytes).map(Some),
            })?;
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
    use blstrs::Scalar;
    use std::sync::Mutex;

    /// Lends again the blocks that came back.
    #[derive(Default)]
    struct Recycled(Mutex<Vec<Block>>);

    impl Memory for Recycled {
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
        let memory = Recycled::default();
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
            assert!(error.is_some(), "{len}");
        }
    }
}
