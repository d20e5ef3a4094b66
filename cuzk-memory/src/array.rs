//! Vectors whose memory is recycled.
//!
//! [`ArrayMemory`] is not an allocator: it chooses one. Invariants:
//!
//! * A large vector is in the memory of the allocator that recycles it, if there is one.
//! * A small vector is on the heap.
//! * A vector for which there is no memory unwinds with [`NoMemory`]. A vector of the
//!   standard library would end the process.
//! * Values that several threads append are there when all of them are.
#![allow(unsafe_code)] // Hands on to another allocator.

use std::alloc::Layout;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::vec::Vec;

use crate::unwind::{self, unwind_with};

/// A vector in the memory that an [`ArrayMemory`] chooses.
pub type Array<T> = Vec<T, ArrayMemory>;

/// The memory of arrays: the heap, or an allocator that recycles large blocks.
#[derive(Clone, Default)]
pub struct ArrayMemory(Option<Arc<dyn Allocator + Send + Sync>>);

impl ArrayMemory {
    /// All arrays are on the heap.
    pub const HEAP: Self = Self(None);

    /// Arrays of fewer bytes are on the heap in any case.
    pub const LARGE_BYTES: usize = 64 << 10;

    /// Returns a memory whose large arrays come from `allocator`.
    #[must_use]
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

// SAFETY: a block belongs to its allocator, which lives at least as long as this or a clone
// does. The layout alone decides which of the two allocators it is. A layout that fits a
// block is the one that the block was asked for with, since no block is longer than that.
unsafe impl Allocator for ArrayMemory {
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

/// Unwinds with [`NoMemory`]. A vector that gets an error from its allocator ends the
/// process, with all jobs in it. A vector that unwinds here is unchanged, because it asks for
/// memory before it changes anything. A small array gets the error: there may not be enough
/// memory to unwind.
fn no_memory(bytes: usize) -> Result<NonNull<[u8]>, AllocError> {
    if bytes < ArrayMemory::LARGE_BYTES {
        return Err(AllocError);
    }
    unwind_with(NoMemory { bytes })
}

/// A large array got no memory. The thread that grows the array unwinds with this value: a
/// panic that prints nothing. See [`NoMemory::catch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no memory for an array of {bytes} bytes")]
pub struct NoMemory {
    /// The bytes that the array asked for.
    pub bytes: usize,
}

impl NoMemory {
    /// Runs `work`, and returns its value. Panics go on.
    ///
    /// # Errors
    /// `work` unwound with this value. Drop everything that it changed.
    pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Self> {
        unwind::catch(work)
    }
}

/// Room for values that one thread appends to an array, beside other threads.
pub struct Room<'a, T> {
    places: &'a mut [MaybeUninit<T>],
    /// The values that were written, in all rooms.
    filled: &'a AtomicUsize,
}

impl<T: Default> Room<'_, T> {
    /// Writes the first of `values`. If they are fewer than there is room for, the others are the
    /// default.
    pub fn fill(self, mut values: impl Iterator<Item = T>) {
        let len = self.places.len();
        for place in self.places {
            place.write(values.next().unwrap_or_default());
        }
        self.filled.fetch_add(len, Ordering::Release);
    }
}

/// Appends parts with these lengths, in order. `fill` gets a room for each, and fills all of
/// them, also on several threads. If it does not, nothing is appended.
///
/// # Errors
/// Those of `fill`; nothing is appended then.
pub fn append_in_parts<T, E>(
    array: &mut Array<T>,
    lens: &[usize],
    fill: impl FnOnce(std::vec::Vec<Room<'_, T>>) -> Result<(), E>,
) -> Result<(), E> {
    let added: usize = lens.iter().sum();
    array.reserve(added);
    let filled = AtomicUsize::new(0);
    let mut rest = array.spare_capacity_mut();
    let mut rooms = std::vec::Vec::with_capacity(lens.len());
    for len in lens {
        let (places, after) = rest.split_at_mut(*len);
        let filled = &filled;
        rooms.push(Room { places, filled });
        rest = after;
    }
    fill(rooms)?;
    if filled.load(Ordering::Acquire) == added {
        // SAFETY: the array has room for so many more values. All of them were written: a room is
        // filled once, and counts when all of it is.
        unsafe { array.set_len(array.len() + added) };
    }
    Ok(())
}

impl fmt::Debug for ArrayMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "ArrayMemory(recycled)",
            None => "ArrayMemory(heap)",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LARGE_BYTES: usize = ArrayMemory::LARGE_BYTES;

    /// The heap, which counts the bytes that are in use.
    #[derive(Default)]
    struct Counting {
        out_bytes: AtomicUsize,
        taken: AtomicUsize,
    }

    // SAFETY: every block belongs to the heap.
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
        let memory = ArrayMemory::of(Arc::<Counting>::clone(&lender));
        let small = Array::<u64>::with_capacity_in(LARGE_BYTES / 8 - 1, memory.clone());
        assert_eq!(lender.taken.load(Ordering::Relaxed), 0);
        let mut large = Array::<u64>::with_capacity_in(LARGE_BYTES / 8, memory);
        assert_eq!(lender.out_bytes.load(Ordering::Relaxed), LARGE_BYTES);
        large.extend(0..LARGE_BYTES as u64);
        assert!(large.iter().copied().eq(0..LARGE_BYTES as u64));
        drop((small, large));
        assert_eq!(lender.out_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn parts_are_appended_when_all_rooms_are_filled() {
        let mut array = Array::<u32>::new_in(ArrayMemory::HEAP);
        array.push(7);
        let append = |array: &mut _, fill: fn(std::vec::Vec<Room<'_, u32>>) -> Result<(), ()>| {
            append_in_parts(array, &[2, 0, 3], fill)
        };
        append(&mut array, |rooms| {
            rooms.into_iter().for_each(|room| room.fill(1..3));
            Ok(())
        })
        .unwrap();
        assert_eq!(array[..], [7, 1, 2, 1, 2, 0]);
        append(&mut array, |rooms| {
            rooms.into_iter().skip(1).for_each(|room| room.fill(1..));
            Ok(())
        })
        .unwrap();
        assert!(append(&mut array, |_| Err(())).is_err());
        assert_eq!(array.len(), 6);
    }

    /// The heap, for one block only.
    #[derive(Default)]
    struct Once(AtomicUsize);

    // SAFETY: every block belongs to the heap.
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
        let memory = ArrayMemory::of(Arc::new(Once::default()));
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
