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
use std::sync::Arc;
use std::{mem, slice};

use blstrs::{Fp, Fp2, G1Affine, G2Affine, Scalar};
use memmap2::{MmapMut, MmapRaw};

use crate::affine::Step;
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

/// Mapped bytes, in huge pages where the system grants them: all of a mapping, or a part
/// of one. Those that are dropped go back to the system.
#[derive(Debug)]
pub struct Block {
    mapping: Arc<MmapRaw>,
    /// Where it begins in the mapping, a multiple of [`PART_BYTES`].
    start: usize,
    bytes: usize,
}

impl Block {
    /// `bytes` zeros, at least one.
    ///
    /// # Errors
    /// When the system has no memory to map.
    pub fn map(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1);
        let map = MmapMut::map_anon(bytes)?;
        // Advice only: without huge pages everything works the same.
        #[cfg(target_os = "linux")]
        map.advise(memmap2::Advice::HugePage).ok();
        Ok(Self {
            mapping: Arc::new(map.into()),
            start: 0,
            bytes,
        })
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps `bytes` bytes and what is left of the last [`PART_BYTES`] of them, and gives
    /// the rest, if there is any.
    #[must_use]
    pub fn split_off(&mut self, bytes: usize) -> Option<Self> {
        let bytes = bytes.checked_next_multiple_of(PART_BYTES)?;
        let rest = self.bytes.checked_sub(bytes).filter(|rest| *rest > 0)?;
        self.bytes = bytes;
        Some(Self {
            mapping: Arc::clone(&self.mapping),
            start: self.start + bytes,
            bytes: rest,
        })
    }

    /// Takes in `other`, if it begins where this one ends.
    ///
    /// # Errors
    /// `other`, if it does not.
    pub fn join(&mut self, mut other: Self) -> Result<(), Self> {
        let is_next =
            Arc::ptr_eq(&self.mapping, &other.mapping) && self.start + self.bytes == other.start;
        if !is_next {
            return Err(other);
        }
        self.bytes += mem::take(&mut other.bytes);
        Ok(())
    }

    /// The first `len` values, or as many as there is room for.
    #[must_use]
    pub fn values<T: Plain>(&self, len: usize) -> &[T] {
        let len = self.room_for::<T>(len);
        // SAFETY: the bytes are this block's alone, at least `len` values long, and
        // borrowed as long as the slice is. They begin at a page, which is enough
        // for T's alignment, and are initialised: zero when mapped, and
        // later what was written as plain values, which have no padding; and any
        // bytes are plain values.
        unsafe { slice::from_raw_parts(self.first().cast(), len) }
    }

    /// The same, to be written.
    #[must_use]
    pub fn values_mut<T: Plain>(&mut self, len: usize) -> &mut [T] {
        let len = self.room_for::<T>(len);
        // SAFETY: as above, and `self`, which alone owns the bytes, is
        // borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.first().cast(), len) }
    }

    fn first(&self) -> *mut u8 {
        // SAFETY: a block's bytes are in its mapping.
        unsafe { self.mapping.as_mut_ptr().add(self.start) }
    }

    fn room_for<T: Plain>(&self, len: usize) -> usize {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE_BYTES) };
        debug_assert!(len <= self.bytes / size_of::<T>());
        len.min(self.bytes / size_of::<T>())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // The last one unmaps the mapping with all its pages.
        #[cfg(target_os = "linux")]
        if Arc::strong_count(&self.mapping) > 1 && self.bytes > 0 {
            let discard = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the pages are this block's alone, nothing borrows it, and
            // nobody is given them again. Where the system does not take the
            // advice, they go with the mapping.
            unsafe {
                self.mapping
                    .unchecked_advise_range(discard, self.start, self.bytes)
            }
            .ok();
            // Or the system would sooner or later make huge pages of what lies beside
            // it, and fill it up with that.
            let alone = memmap2::Advice::NoHugePage;
            self.mapping
                .advise_range(alone, self.start, self.bytes)
                .ok();
        }
    }
}

/// No system's pages are smaller. Blocks are aligned to it, and to no more.
pub const PAGE_BYTES: usize = 4096;

/// Parts of a mapping are so many bytes, or a multiple. No system's pages are larger, so
/// that none is in two parts.
pub const PART_BYTES: usize = 64 << 10;

/// Values that any bytes are, and whose bytes are all theirs.
///
/// # Safety
/// Every pattern of bytes is a value of the type, and there is no padding.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: integers.
unsafe impl Plain for u8 {}
// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl Plain for u64 {}
// SAFETY: four words of which all values are valid, and nothing else.
unsafe impl Plain for Scalar {}
// SAFETY: four words.
unsafe impl Plain for Recoded {}
// SAFETY: six words of which all values are valid, and nothing else.
unsafe impl Plain for Fp {}
// SAFETY: the same, of twelve words.
unsafe impl Plain for Fp2 {}
// SAFETY: `repr(C)`, and all fields are plain and of whole words.
unsafe impl<F: Plain> Plain for Step<F> {}
// SAFETY: two coordinates of six words each of which all values are valid, and
// nothing else.
unsafe impl Plain for G1Affine {}
// SAFETY: the same with two coordinates of twelve words.
unsafe impl Plain for G2Affine {}

const _: () = assert!(size_of::<Scalar>() == 32);
const _: () = assert!(size_of::<Fp>() == 48 && size_of::<Fp2>() == 96);
const _: () = assert!(size_of::<Step<Fp>>() == 112 && size_of::<Step<Fp2>>() == 208);
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
    fn parts_are_apart_and_join_in_order() {
        const WORDS: usize = PART_BYTES / 8;
        let mut first = Block::map(3 * PART_BYTES + 8).unwrap();
        let mut second = first.split_off(PART_BYTES - 1).unwrap();
        let third = second.split_off(PART_BYTES).unwrap();
        let lengths = [&first, &second, &third].map(Block::bytes);
        assert_eq!(lengths, [PART_BYTES, PART_BYTES, PART_BYTES + 8]);
        first.values_mut::<u64>(WORDS).fill(1);
        second.values_mut::<u64>(WORDS).fill(2);
        assert!(first.values::<u64>(WORDS).iter().all(|value| *value == 1));

        let third = first.join(third).unwrap_err();
        let first_again = second.join(first).unwrap_err();
        second.join(third).unwrap();
        let mut first = first_again;
        first.join(second).unwrap();
        assert_eq!(first.bytes(), 3 * PART_BYTES + 8);
        assert_eq!(first.values::<u64>(2 * WORDS)[WORDS - 1..=WORDS], [1, 2]);
        assert!(first.split_off(3 * PART_BYTES + 1).is_none());
        assert!(first.split_off(usize::MAX).is_none());
        assert!(first.join(Block::map(8).unwrap()).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn pages_of_a_part_go_back_to_the_system() {
        use std::os::unix::fs::FileExt;

        let is_resident = |address: usize| {
            let pages = std::fs::File::open("/proc/self/pagemap").unwrap();
            let mut entry = [0; 8];
            let at = address / PAGE_BYTES * entry.len();
            pages.read_exact_at(&mut entry, at as u64).unwrap();
            // The highest bit of a page's entry.
            u64::from_ne_bytes(entry) >> 63 == 1
        };
        let mut first = Block::map(64 * PART_BYTES).unwrap();
        let mut second = first.split_off(32 * PART_BYTES).unwrap();
        let places = [&mut first, &mut second].map(|block| {
            block.values_mut::<u64>(1).fill(1);
            block.first() as usize
        });
        assert_eq!(places.map(is_resident), [true, true]);
        drop(second);
        assert_eq!(places.map(is_resident), [true, false]);
        assert_eq!(first.values::<u64>(1), [1]);
    }

    /// Whether the system may make huge pages of where an address is.
    #[cfg(target_os = "linux")]
    fn may_be_huge(address: usize) -> Option<bool> {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let holds = |line: &&str| {
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let ends = range.map(|(start, end)| {
                [start, end].map(|end| usize::from_str_radix(end, 16).unwrap_or(0))
            });
            ends.is_some_and(|[start, end]| (start..end).contains(&address))
        };
        let mut lines = maps.lines().skip_while(|line| !holds(line));
        let flags = lines.find_map(|line| line.strip_prefix("VmFlags:"))?;
        let has = |flag| flags.split_whitespace().any(|other| other == flag);
        // A system without huge pages has neither flag.
        (has("hg") || has("nh")).then(|| has("hg"))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn nothing_fills_up_what_a_part_has_left() {
        let mut first = Block::map(64 * PART_BYTES).unwrap();
        let mut second = first.split_off(40 * PART_BYTES).unwrap();
        let third = second.split_off(8 * PART_BYTES).unwrap();
        let places = [&first, &second, &third].map(|block| block.first() as usize);
        let before = places.map(may_be_huge);
        drop(second);
        let after = places.map(may_be_huge);
        if before[0].is_some() {
            assert_eq!(before, [Some(true); 3]);
            assert_eq!(after, [Some(true), Some(false), Some(true)]);
        }
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
