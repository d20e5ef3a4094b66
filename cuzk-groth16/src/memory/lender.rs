//! A pool as an allocator: vectors whose elements are in its blocks.
//!
//! For large vectors only. The invariant: a block that was lent is kept here until its
//! address comes back.
#![allow(unsafe_code)] // Lends memory by its address.

use std::alloc::Layout;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allocator_api2::alloc::{AllocError, Allocator};
use cuzk_kernels::memory::{Block, Memory, PAGE_BYTES};

use super::buffer::BufferPool;

/// Lends the blocks of a pool.
pub(super) struct Lender {
    pool: Arc<BufferPool>,
    /// By address.
    lent: Mutex<HashMap<usize, Block>>,
}

impl Lender {
    pub(super) fn new(pool: Arc<BufferPool>) -> Self {
        let lent = Mutex::default();
        Self { pool, lent }
    }

    fn lent(&self) -> MutexGuard<'_, HashMap<usize, Block>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: a block stays mapped, where it is and nobody else's, until it is taken out of
// `lent`, or until that is dropped, which is after all clones of the `Arc` that this is
// shared by.
unsafe impl Allocator for Lender {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // Blocks begin at a page, and not at more than that.
        if layout.align() > PAGE_BYTES || layout.size() == 0 {
            return Err(AllocError);
        }
        let block = Memory::take(&*self.pool, layout.size());
        let mut block = block.map_err(|_| AllocError)?;
        let bytes = NonNull::from(block.values_mut::<u8>(layout.size()));
        self.lent().insert(bytes.cast::<u8>().addr().get(), block);
        Ok(bytes)
    }

    unsafe fn deallocate(&self, first: NonNull<u8>, _: Layout) {
        let block = self.lent().remove(&first.addr().get());
        if let Some(block) = block {
            self.pool.give_back(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::buffer::Dealloc;
    use super::*;
    use blstrs::Scalar;
    use cuzk_pce::PackedBuilder;
    use ff::Field;

    #[test]
    fn more_alignment_than_a_page_has_is_refused() {
        let lender = Lender::new(BufferPool::new(Dealloc::Recycle, u64::MAX));
        let layout = |align| Layout::from_size_align(1 << 20, align).unwrap();
        let page = lender.allocate(layout(PAGE_BYTES)).unwrap();
        assert!(page.cast::<u8>().addr().get().is_multiple_of(PAGE_BYTES));
        // SAFETY: it came from `allocate`, and is not used again.
        unsafe { lender.deallocate(page.cast(), layout(PAGE_BYTES)) };
        assert!(lender.allocate(layout(2 * PAGE_BYTES)).is_err());
    }

    #[test]
    fn a_witness_is_in_the_pools_blocks() {
        const VALUES: usize = 1 << 16;
        let pool = BufferPool::new(Dealloc::Recycle, u64::MAX);
        let memory = pool.witness_memory();
        let mut builder = PackedBuilder::with_capacity_in(&memory, VALUES, VALUES);
        let mapped = VALUES * size_of::<Scalar>();
        assert_eq!(pool.kept_bytes(), 0);
        builder.push_input(Scalar::ONE);
        for value in 0..VALUES as u64 {
            builder.push(Scalar::from(value));
        }
        let witness = builder.finish().unwrap();
        let values = witness.aux_slice().values;
        assert!(
            values
                .iter()
                .zip(2_u64..)
                .all(|(value, n)| *value == Scalar::from(n))
        );
        // The memory's user may be the last to have the pool.
        drop((memory, Arc::clone(&pool)));
        drop(witness);
        assert_eq!(pool.kept_bytes(), mapped as u64);
    }

    #[test]
    fn who_does_not_recycle_uses_the_heap() {
        let pool = BufferPool::new(Dealloc::Serial, u64::MAX);
        assert_eq!(
            format!("{:?}", pool.witness_memory()),
            "WitnessMemory(heap)"
        );
    }
}
