//! Memory that nobody uses, of which parts are given out, and joined when they are back.
//!
//! A vector has room for the blocks of several sums, and what two circuits' sums have
//! mapped has room for a third's: so what is mapped follows what is in use together, and
//! not how often each size was in use at once. Not of memory only: what a pool will map
//! can be told without mapping it. The invariants: nothing is given out twice; what lies
//! side by side is one; nothing stays that was of no use for long.

use std::cmp::Reverse;
use std::{io, mem};

use cuzk_kernels::memory::{Block, PART_BYTES};

/// What can be divided, and joined again.
pub(super) trait Extent: Sized {
    fn bytes(&self) -> usize;

    /// Keeps the first `bytes` bytes, a multiple of [`PART_BYTES`], and gives the rest.
    fn split_off(&mut self, bytes: usize) -> Option<Self>;

    /// Takes in `other`, if it begins where this one ends.
    fn join(&mut self, other: Self) -> Result<(), Self>;
}

/// Extents, those kept longest in front.
#[derive(Debug)]
pub(super) struct FreeList<E> {
    free: Vec<Free<E>>,
    /// How many were given back in all.
    returns: u64,
}

/// An extent, and how many had been given back when it, or the last of it, was.
#[derive(Debug)]
struct Free<E> {
    extent: E,
    since: u64,
}

/// An extent that is not taken while so many others are given back, by some fifty
/// partitions, was of use for what met by chance and may not meet again.
const RETURNS_MAX: u64 = 1024;

/// Nothing is cut out of what is more times as large, so that what is small is never in
/// the way of the vectors of a large circuit.
const TIMES_MAX: usize = 16;

/// As much as a huge page is mapped at least.
const MAPPED_BYTES_MIN: usize = 2 << 20;

impl<E> Default for FreeList<E> {
    fn default() -> Self {
        Self {
            free: Vec::new(),
            returns: 0,
        }
    }
}

impl<E: Extent> FreeList<E> {
    /// At least `bytes` bytes, cut out of the smallest extent that suits; or out of what
    /// `map` gives, which is asked for as much as is to be mapped.
    pub(super) fn take_or_map(
        &mut self,
        bytes: usize,
        map: impl FnOnce(usize) -> io::Result<E>,
    ) -> io::Result<E> {
        let bytes = in_parts(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        if let Some(extent) = self.take(bytes) {
            return Ok(extent);
        }
        let mut extent = map(bytes.max(MAPPED_BYTES_MIN))?;
        if let Some(rest) = extent.split_off(bytes) {
            self.give(rest);
        }
        Ok(extent)
    }

    /// At least `bytes` bytes, if an extent suits: the least that is large enough, unless
    /// it is far too large; of equal ones the last, so that one too many is not taken.
    pub(super) fn take(&mut self, bytes: usize) -> Option<E> {
        let bytes = in_parts(bytes)?;
        let suits = bytes..=bytes.saturating_mul(TIMES_MAX).max(MAPPED_BYTES_MIN);
        let extents = self.free.iter().map(|free| free.extent.bytes()).enumerate();
        let suit = extents.filter(|(_, bytes)| suits.contains(bytes));
        let (index, _) = suit.min_by_key(|(index, bytes)| (*bytes, Reverse(*index)))?;
        let free = self.free.get_mut(index)?;
        Some(match free.extent.split_off(bytes) {
            Some(rest) => mem::replace(&mut free.extent, rest),
            None => self.free.remove(index).extent,
        })
    }

    /// Keeps an extent that was in use, and gives those that nobody took for long.
    pub(super) fn give_back(&mut self, extent: E) -> Vec<E> {
        self.returns += 1;
        self.give(extent);
        let returns = self.returns;
        self.give_up_while(|free| returns - free.since > RETURNS_MAX)
    }

    /// Keeps an extent, as one with what lies beside it.
    pub(super) fn give(&mut self, mut extent: E) {
        // There are at most two of those, as what is kept was joined.
        for free in mem::take(&mut self.free) {
            let Free {
                extent: mut other,
                since,
            } = free;
            if let Err(apart) = other.join(extent) {
                extent = apart;
                if let Err(other) = extent.join(other) {
                    self.free.push(Free {
                        extent: other,
                        since,
                    });
                }
            } else {
                extent = other;
            }
        }
        let since = self.returns;
        self.free.push(Free { extent, since });
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> u64 {
        self.free.iter().map(Free::bytes).sum()
    }

    /// Takes out extents, those kept longest first, until at most `bytes` are kept.
    pub(super) fn give_up_beyond(&mut self, bytes: u64) -> Vec<E> {
        let mut left = self.bytes();
        self.give_up_while(|free| {
            let goes = left > bytes;
            left -= if goes { free.bytes() } else { 0 };
            goes
        })
    }

    /// Takes out those in front of which `goes` is true.
    fn give_up_while(&mut self, mut goes: impl FnMut(&Free<E>) -> bool) -> Vec<E> {
        let count = self.free.iter().take_while(|free| goes(free)).count();
        self.free.drain(..count).map(|free| free.extent).collect()
    }
}

impl<E: Extent> Free<E> {
    fn bytes(&self) -> u64 {
        self.extent.bytes() as u64
    }
}

/// As many bytes as are cut out for so many.
fn in_parts(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(PART_BYTES)
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

/// Where a block would be that is not there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which mapping it is in.
    mapping: usize,
    start: usize,
    bytes: usize,
}

impl Place {
    /// All of a mapping.
    pub(super) fn whole(mapping: usize, bytes: usize) -> Self {
        Self {
            mapping,
            start: 0,
            bytes,
        }
    }
}

impl Extent for Place {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MB: usize = 1 << 20;

    /// A list of places, and those that were taken from it.
    #[derive(Default)]
    struct Model {
        list: FreeList<Place>,
        taken: Vec<Place>,
        mapped: Vec<usize>,
    }

    impl Model {
        fn take(&mut self, bytes: usize) {
            let mapped = &mut self.mapped;
            let map = |bytes| {
                mapped.push(bytes);
                Ok(Place::whole(mapped.len(), bytes))
            };
            let place = self.list.take_or_map(bytes, map).unwrap();
            assert!(place.bytes >= bytes);
            self.taken.push(place);
        }

        fn give_back(&mut self, index: usize) {
            let place = self.taken.swap_remove(index);
            assert!(self.list.give_back(place).is_empty());
        }

        /// Everything that was mapped is taken or free, once.
        fn check(&self) {
            let free = self.list.free.iter().map(|free| &free.extent);
            let mut places: Vec<_> = self.taken.iter().chain(free).collect();
            places.sort_by_key(|place| (place.mapping, place.start));
            let (mut mapping, mut end) = (0, 0);
            for place in places {
                if place.mapping != mapping {
                    assert_eq!((place.mapping, place.start), (mapping + 1, 0));
                    assert!(mapping == 0 || end == self.mapped[mapping - 1]);
                    (mapping, end) = (place.mapping, 0);
                }
                assert_eq!(place.start, end);
                assert!(place.bytes > 0);
                end += place.bytes;
            }
            assert!(mapping == 0 || end == self.mapped[mapping - 1]);
            assert_eq!(mapping, self.mapped.len());
        }
    }

    proptest! {
        #[test]
        fn what_is_mapped_is_taken_or_free_once(
            steps in prop::collection::vec((any::<bool>(), 0..40 * MB, any::<prop::sample::Index>()), 1..200)
        ) {
            let mut model = Model::default();
            for (takes, bytes, which) in steps {
                if takes || model.taken.is_empty() {
                    model.take(bytes);
                } else {
                    model.give_back(which.index(model.taken.len()));
                }
                model.check();
            }
            // When all of it is back, every mapping is one again.
            while !model.taken.is_empty() {
                model.give_back(0);
            }
            prop_assert_eq!(model.list.free.len(), model.mapped.len());
        }
    }

    #[test]
    fn the_smallest_that_suits_is_cut() {
        let mut model = Model::default();
        for megabytes in [64, 8, 16] {
            model.take(megabytes * MB);
        }
        (0..3).for_each(|_| model.give_back(0));
        for megabytes in [5, 3, 6, 40] {
            model.take(megabytes * MB);
        }
        let places: Vec<_> = model
            .taken
            .iter()
            .map(|place| (place.mapping, place.start))
            .collect();
        assert_eq!(places, [(2, 0), (2, 5 * MB), (3, 0), (1, 0)]);
        assert_eq!(model.mapped.len(), 3);
        // Not out of what is far too large.
        model.give_back(3);
        model.take(10 * MB);
        model.take(10 * MB);
        assert_eq!(model.mapped.len(), 3);
        model.list = FreeList::default();
        model.list.give(Place::whole(9, 1024 * MB));
        model.take(63 * MB);
        assert_eq!(model.mapped.len(), 4);
        model.take(64 * MB);
        assert_eq!(model.mapped.len(), 4);
    }

    #[test]
    fn small_ones_share_a_mapping() {
        let mut model = Model::default();
        for bytes in [1, PART_BYTES, PART_BYTES + 1, MB, 0] {
            model.take(bytes);
        }
        assert_eq!(model.mapped, [2 * MB]);
    }

    #[test]
    fn what_nobody_takes_for_long_is_given_up() {
        let mut list = FreeList::default();
        list.give(Place::whole(1, 64 * MB));
        let mut use_often = |times| {
            let used = || Place::whole(2, MB);
            let left = (0..times).flat_map(|_| {
                let left = list.give_back(used());
                assert_eq!(list.take(MB), Some(used()));
                left
            });
            left.collect::<Vec<_>>()
        };
        assert_eq!(use_often(RETURNS_MAX), []);
        assert_eq!(use_often(1), [Place::whole(1, 64 * MB)]);
        assert_eq!(use_often(2 * RETURNS_MAX), []);
    }

    #[test]
    fn more_than_there_can_be_is_an_error() {
        let mut list = FreeList::<Place>::default();
        assert!(list.take(usize::MAX).is_none());
        let never = |_| panic!("it is not mapped");
        assert!(list.take_or_map(usize::MAX - 1, never).is_err());
    }
}
