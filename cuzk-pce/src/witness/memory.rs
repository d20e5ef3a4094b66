//! Where the vectors of witnesses are.
//!
//! Not an allocator: it chooses one. Invariants: what is large comes from whoever recycles
//! it, if somebody does; what is small, and everything else, is on the heap; a vector for
//! which there is no memory unwinds with [`NoMemory`], where others end the process.
#![allow(unsafe_code)] // Hands on to another allocator, and fills a vector out of order.

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::vec::Vec;
use rayon::prelude::*;

use crate::unwind::{self, unwind_with};

/// A vector of a witness.
pub(crate) type Array<T> = Vec<T, WitnessMemory>;

/// Appends parts in order, each of them copied by a thread of the current pool, which asks
/// `pass` before; where that refuses, nothing is appended.
pub(super) fn extend_in_parallel<T: Copy + Send + Sync, E: Send>(
    array: &mut Array<T>,
    parts: &[&[T]],
    pass: impl Fn() -> Result<(), E> + Sync,
) -> Result<(), E> {
    let added: usize = parts.iter().map(|part| part.len()).sum();
    array.reserve(added);
    let mut rest = array.spare_capacity_mut();
    let mut rooms = std::vec::Vec::with_capacity(parts.len());
    for part in parts {
        let (room, after) = rest.split_at_mut(part.len());
        rooms.push(room);
        rest = after;
    }
    let copies = rooms.into_par_iter().zip(parts).with_max_len(1);
    copies.try_for_each(|(room, part)| {
        pass()?;
        for (to, from) in room.iter_mut().zip(*part) {
            to.write(*from);
        }
        Ok(())
    })?;
    let len = array.len() + added;
    // SAFETY: there is room for it, and every room was filled, as it is as long as its
    // part and none was refused.
    unsafe { array.set_len(len) };
    Ok(())
}

/// Where witnesses have their memory from: the heap, or whoever recycles theirs.
#[derive(Clone, Default)]
pub struct WitnessMemory(Option<Arc<dyn Allocator + Send + Sync>>);

impl WitnessMemory {
    /// Everything is on the heap.
    pub const HEAP: Self = Self(None);

    /// Smaller vectors are on the heap in any case.
    pub const LARGE_BYTES: usize = 64 << 10;

    /// What is large comes from `allocator`.
    pub fn of(allocator: Arc<dyn Allocator + Send + Sync>) -> Self {
        Self(Some(allocator))
    }

    fn of_size(&self, bytes: usize) -> &dyn Allocator {
        match &self.0 {
            Some(allocator) if bytes >= Self::LARGE_BYTES => &**allocator,
            _ => &Global,
        }
    }
}

// SAFETY: memory is its allocator's, which lives at least as long as this or a clone does,
// and which of the two it is follows from the layout alone. A layout that fits a block
// is the one it was asked for with, since no block is given out as longer than asked for.
unsafe impl Allocator for WitnessMemory {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let Ok(block) = self.of_size(layout.size()).allocate(layout) else {
            return no_memory(layout.size());
        };
        Ok(NonNull::slice_from_raw_parts(block.cast(), layout.size()))
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's, as the allocator is that which gave the block.
        unsafe { self.of_size(layout.size()).deallocate(block, layout) }
    }
}

/// A vector that is told so ends the process, with everybody's jobs in it; one that unwinds
/// here is as it was, because it asks before it changes anything. Of little memory there may
/// not be enough to unwind.
fn no_memory(bytes: usize) -> Result<NonNull<[u8]>, AllocError> {
    if bytes < WitnessMemory::LARGE_BYTES {
        return Err(AllocError);
    }
    unwind_with(NoMemory { bytes })
}

/// A large vector of a witness got no memory. Whoever makes one, or chooses a query from
/// one, unwinds with this where there is none: a panic that prints nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no memory for {bytes} bytes of a witness")]
pub struct NoMemory {
    /// What the vector asked for.
    pub bytes: usize,
}

impl NoMemory {
    /// Has it be an error where `work` unwinds with it. Panics go on.
    ///
    /// # Errors
    /// If it does; what `work` was about is to be dropped.
    pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Self> {
        unwind::catch(work)
    }
}

impl fmt::Debug for WitnessMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "WitnessMemory(recycled)",
            None => "WitnessMemory(heap)",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LARGE_BYTES: usize = WitnessMemory::LARGE_BYTES;

    /// The heap, counting what is out.
    #[derive(Default)]
    struct Counting {
        out_bytes: AtomicUsize,
        taken: AtomicUsize,
    }

    // SAFETY: all of it is the heap's.
    unsafe impl Allocator for Counting {
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            self.out_bytes.fetch_add(layout.size(), Ordering::Relaxed);
            self.taken.fetch_add(1, Ordering::Relaxed);
            Global.allocate(layout)
        }

        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            self.out_bytes.fetch_sub(layout.size(), Ordering::Relaxed);
            // SAFETY: the caller's.
            unsafe { Global.deallocate(block, layout) }
        }
    }

    #[test]
    fn what_is_large_comes_from_the_lender_and_goes_back() {
        let lender = Arc::new(Counting::default());
        let memory = WitnessMemory::of(Arc::<Counting>::clone(&lender));
        let small = Array::<u64>::with_capacity_in(LARGE_BYTES / 8 - 1, memory.clone());
        assert_eq!(lender.taken.load(Ordering::Relaxed), 0);
        let mut large = Array::<u64>::with_capacity_in(LARGE_BYTES / 8, memory);
        assert_eq!(lender.out_bytes.load(Ordering::Relaxed), LARGE_BYTES);
        large.extend(0..LARGE_BYTES as u64);
        assert!(large.iter().copied().eq(0..LARGE_BYTES as u64));
        drop((small, large));
        assert_eq!(lender.out_bytes.load(Ordering::Relaxed), 0);
    }

    /// Gives out one block and no other.
    #[derive(Default)]
    struct Once(AtomicUsize);

    // SAFETY: all of it is the heap's.
    unsafe impl Allocator for Once {
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Global.allocate(layout),
                _ => Err(AllocError),
            }
        }

        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            // SAFETY: the caller's.
            unsafe { Global.deallocate(block, layout) }
        }
    }

    #[test]
    fn a_vector_without_memory_unwinds_and_is_as_it_was() {
        const LEN: u64 = LARGE_BYTES as u64 / 8;
        let memory = WitnessMemory::of(Arc::new(Once::default()));
        let mut array = Array::<u64>::with_capacity_in(LARGE_BYTES / 8, memory.clone());
        array.extend(0..LEN);
        let grown = NoMemory::catch(|| array.push(LEN)).unwrap_err();
        assert!(grown.bytes > LARGE_BYTES, "{grown}");
        assert!(array.iter().copied().eq(0..LEN));
        let made = || Array::<u64>::with_capacity_in(LARGE_BYTES / 8, memory.clone());
        let bytes = LARGE_BYTES;
        assert_eq!(NoMemory::catch(made), Err(NoMemory { bytes }));
    }
}
