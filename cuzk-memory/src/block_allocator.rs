//! An allocator for vectors whose elements are in the blocks of a [`Memory`].
//!
//! For large vectors only. Invariant: a block that was lent is kept here until its address
//! comes back.
#![allow(unsafe_code)] // Lends memory by its address.

use std::alloc::Layout;
use std::collections::HashMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allocator_api2::alloc::{AllocError, Allocator};

use crate::block::{Block, PAGE_BYTES};
use crate::lent::Memory;

/// Lends the blocks of a memory by their addresses.
pub struct BlockAllocator {
    memory: Arc<dyn Memory + Send>,
    /// By address.
    lent: Mutex<HashMap<usize, Block>>,
}

impl BlockAllocator {
    /// Returns an allocator that takes its blocks from `memory`.
    #[must_use]
    pub fn new(memory: Arc<dyn Memory + Send>) -> Self {
        let lent = Mutex::default();
        Self { memory, lent }
    }

    fn lent(&self) -> MutexGuard<'_, HashMap<usize, Block>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: a block stays mapped, at its address and in one owner's hands, until it is taken
// out of `lent`. `lent` itself is dropped only after all clones of the `Arc` that shares
// this allocator.
unsafe impl Allocator for BlockAllocator {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // Blocks are aligned to a page, and to no more.
        if layout.align() > PAGE_BYTES || layout.size() == 0 {
            return Err(AllocError);
        }
        let block = self.memory.take(layout.size());
        let mut block = block.map_err(|_| AllocError)?;
        let bytes = NonNull::from(block.values_mut::<u8>(layout.size()));
        self.lent().insert(bytes.cast::<u8>().addr().get(), block);
        Ok(bytes)
    }

    unsafe fn deallocate(&self, first: NonNull<u8>, _: Layout) {
        let block = self.lent().remove(&first.addr().get());
        if let Some(block) = block {
            self.memory.give_back(block);
        }
    }
}

impl fmt::Debug for BlockAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockAllocator").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lent::Mapped;

    #[test]
    fn more_alignment_than_a_page_has_is_refused() {
        let allocator = BlockAllocator::new(Arc::new(Mapped));
        let layout = |align| Layout::from_size_align(1 << 20, align).unwrap();
        let page = allocator.allocate(layout(PAGE_BYTES)).unwrap();
        assert!(page.cast::<u8>().addr().get().is_multiple_of(PAGE_BYTES));
        // SAFETY: it came from `allocate`, and is not used again.
        unsafe { allocator.deallocate(page.cast(), layout(PAGE_BYTES)) };
        assert!(allocator.allocate(layout(2 * PAGE_BYTES)).is_err());
    }
}
