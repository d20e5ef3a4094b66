//! Mapped memory that is divided and joined again.
//!
//! A [`Block`] is not zeroed when it is used again. Invariants: its bytes are initialised,
//! with any values; they belong to one owner.
#![allow(unsafe_code)] // Views mapped bytes as values.

use std::sync::Arc;
use std::{io, mem, slice};

use memmap2::{MmapMut, MmapRaw};

use crate::plain::Plain;

/// Mapped bytes, in huge pages where the system grants them: a whole mapping, or a part of
/// one. The pages of a dropped block go back to the system.
#[derive(Debug)]
pub struct Block {
    mapping: Arc<MmapRaw>,
    /// Where it begins in the mapping, a multiple of [`PART_BYTES`].
    start: usize,
    bytes: usize,
}

impl Block {
    /// Maps `bytes` bytes of zeros, at least one.
    ///
    /// # Errors
    /// The system has no memory to map.
    pub fn map(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1);
        #[cfg_attr(any(not(target_os = "linux"), miri), allow(unused_mut))]
        let mut map = MmapMut::map_anon(bytes)?;
        // Advice only: without huge pages everything works the same.
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            map.advise(memmap2::Advice::HugePage).ok();
            crate::numa::spread(&mut map);
        }
        Ok(Self {
            mapping: Arc::new(map.into()),
            start: 0,
            bytes,
        })
    }

    /// Returns the length, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the first `bytes` bytes, rounded up to a multiple of [`PART_BYTES`], and
    /// returns the rest, if there is any.
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

    /// Joins `other` to this block, if it begins where this block ends.
    ///
    /// # Errors
    /// Returns `other` if it begins elsewhere.
    pub fn join(&mut self, mut other: Self) -> Result<(), Self> {
        let is_next =
            Arc::ptr_eq(&self.mapping, &other.mapping) && self.start + self.bytes == other.start;
        if !is_next {
            return Err(other);
        }
        self.bytes += mem::take(&mut other.bytes);
        Ok(())
    }

    /// Returns the first `len` values, or as many as there is room for.
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

    /// Returns the first `len` values for writing, or as many as there is room for.
    #[must_use]
    pub fn values_mut<T: Plain>(&mut self, len: usize) -> &mut [T] {
        let len = self.room_for::<T>(len);
        // SAFETY: as above, and `self`, which alone owns the bytes, is
        // borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.first().cast(), len) }
    }

    #[inline]
    fn first(&self) -> *mut u8 {
        // SAFETY: a block's bytes are in its mapping.
        unsafe { self.mapping.as_mut_ptr().add(self.start) }
    }

    #[inline]
    fn room_for<T: Plain>(&self, len: usize) -> usize {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE_BYTES) };
        debug_assert!(len <= self.bytes / size_of::<T>());
        len.min(self.bytes / size_of::<T>())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // The last one unmaps the mapping with all its pages.
        #[cfg(all(target_os = "linux", not(miri)))]
        if Arc::strong_count(&self.mapping) > 1 && self.bytes > 0 {
            let discard = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the pages belong to this block alone, nothing borrows it, and
            // no other block is given them. Where the system ignores the advice, they
            // go with the mapping.
            unsafe {
                self.mapping
                    .unchecked_advise_range(discard, self.start, self.bytes)
            }
            .ok();
            // Otherwise the system would sooner or later make huge pages of the parts
            // beside it, and fill these pages again.
            let alone = memmap2::Advice::NoHugePage;
            self.mapping
                .advise_range(alone, self.start, self.bytes)
                .ok();
        }
    }
}

/// The smallest page of any system, in bytes. Blocks are aligned to it, and to no more.
pub const PAGE_BYTES: usize = 4096;

/// The unit in which a mapping is divided, in bytes. No system has larger pages, so that
/// no page is in two parts.
pub const PART_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

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
    #[cfg_attr(miri, ignore = "asks the system about its pages")]
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

    /// Returns true if the system may make huge pages at an address.
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
    #[cfg_attr(miri, ignore = "asks the system about its pages")]
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
}
