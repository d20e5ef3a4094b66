//! Memory that nobody uses, of which parts are given out, and joined when they are back.
//!
//! A vector has room for the blocks of several sums, and what two circuits' sums have
//! mapped has room for a third's: so what is mapped follows what is in use together, and
//! not how often each size was in use at once. Not of memory only: what a pool will map
//! can be told without mapping it. The invariants: nothing is given out twice; what lies
//! side by side is one; nothing stays that was of no use for long; what is mapped is never
//! more than twice the most that was in use together, however it was cut.

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
    in_use_bytes: u64,
    /// The most that there ever was.
    in_use_bytes_max: u64,
    /// How often something was mapped.
    mappings: u64,
}

/// What was taken, and what had to be given up for it.
#[derive(Debug)]
pub(super) struct Taken<E> {
    pub(super) extent: E,
    pub(super) given_up: Vec<E>,
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

/// No more is mapped than so many times the most that was in use together. The rest is what
/// lies between blocks where nothing fits: up to two fifths of all for one partition of a
/// small circuit. With less than that its partitions would have memory mapped and unmapped
/// again and again.
const MAPPED_TIMES_MAX: u64 = 2;

/// As much as a huge page is mapped at least.
const MAPPED_BYTES_MIN: usize = 2 << 20;

impl<E> Default for FreeList<E> {
    fn default() -> Self {
        Self {
            free: Vec::new(),
            returns: 0,
            in_use_bytes: 0,
            in_use_bytes_max: 0,
            mappings: 0,
        }
    }
}

impl<E: Extent> FreeList<E> {
    /// At least `bytes` bytes, cut out of the smallest extent that suits; or out of what
    /// `map` gives, which is asked for as much as is to be mapped. Then of what does not
    /// suit so much is given up as would be mapped beyond what there was use for.
    pub(super) fn take_or_map(
        &mut self,
        bytes: usize,
        map: impl FnOnce(usize) -> io::Result<E>,
    ) -> io::Result<Taken<E>> {
        let bytes = in_parts(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        let (extent, given_up) = match self.take(bytes) {
            Some(extent) => (extent, Vec::new()),
            None => self.map(bytes, map)?,
        };
        self.in_use_bytes += extent.bytes() as u64;
        self.in_use_bytes_max = self.in_use_bytes_max.max(self.in_use_bytes);
        Ok(Taken { extent, given_up })
    }

    fn map(
        &mut self,
        bytes: usize,
        map: impl FnOnce(usize) -> io::Result<E>,
    ) -> io::Result<(E, Vec<E>)> {
        let mapped = bytes.max(MAPPED_BYTES_MIN);
        let mut extent = map(mapped)?;
        self.mappings += 1;
        let used = self.in_use_bytes + mapped as u64;
        let most = self.in_use_bytes_max.max(used);
        let given_up = self.give_up_beyond(MAPPED_TIMES_MAX * most - used);
        if let Some(rest) = extent.split_off(bytes) {
            self.give(rest);
        }
        Ok((extent, given_up))
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
        self.in_use_bytes = self.in_use_bytes.saturating_sub(extent.bytes() as u64);
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

    /// Bytes that were taken and not given back.
    pub(super) fn in_use_bytes(&self) -> u64 {
        self.in_use_bytes
    }

    /// How many extents were given back in all.
    pub(super) fn returns(&self) -> u64 {
        self.returns
    }

    /// How often something was mapped.
    pub(super) fn mappings(&self) -> u64 {
        self.mappings
    }

    /// Takes out extents, those kept longest first, until at most `bytes` are kept; the
    /// last not whole, if a part is enough.
    pub(super) fn give_up_beyond(&mut self, bytes: u64) -> Vec<E> {
        let mut beyond = self.bytes().saturating_sub(bytes);
        let mut given_up = self.give_up_while(|free| {
            let goes = beyond > 0 && free.bytes() < beyond + PART_BYTES as u64;
            beyond = beyond.saturating_sub(if goes { free.bytes() } else { 0 });
            goes
        });
        let next = self.free.first_mut().filter(|_| beyond > 0);
        given_up.extend(next.and_then(|free| split_last(&mut free.extent, beyond)));
        given_up
    }

    /// The same, the largest first.
    pub(super) fn give_up_largest_beyond(&mut self, bytes: u64) -> Vec<E> {
        self.free.sort_by_key(|free| Reverse(free.bytes()));
        let given_up = self.give_up_beyond(bytes);
        self.free.sort_by_key(|free| free.since);
        given_up
    }

    /// Takes out those in front of which `goes` is true.
    fn give_up_while(&mut self, mut goes: impl FnMut(&Free<E>) -> bool) -> Vec<E> {
        let count = self.free.iter().take_while(|free| goes(free)).count();
        self.free.drain(..count).map(|free| free.extent).collect()
    }
}

/// Parts that `bytes` bytes are in, at the end of an extent that is longer.
fn split_last<E: Extent>(extent: &mut E, bytes: u64) -> Option<E> {
    let bytes = in_parts(usize::try_from(bytes).ok()?)?;
    extent.split_off(extent.bytes().checked_sub(bytes)?)
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
    mapping: usize,
    start: usize,
    bytes: usize,
}

impl Place {
    /// Which mapping it is in.
    pub(super) fn mapping(&self) -> usize {
        self.mapping
    }

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

    /// A list of places, those that were taken from it, and those that it gave up.
    #[derive(Default)]
    struct Model {
        list: FreeList<Place>,
        taken: Vec<Place>,
        given_up: Vec<Place>,
        mapped: Vec<usize>,
        /// The most that was taken at once.
        most: usize,
    }

    fn bytes_of(places: &[Place]) -> usize {
        places.iter().map(Extent::bytes).sum()
    }

    impl Model {
        fn take(&mut self, bytes: usize) {
            let mapped = &mut self.mapped;
            let map = |bytes| {
                mapped.push(bytes);
                Ok(Place::whole(mapped.len(), bytes))
            };
            let taken = self.list.take_or_map(bytes, map).unwrap();
            assert!(taken.extent.bytes >= bytes);
            self.taken.push(taken.extent);
            self.given_up.extend(taken.given_up);
            self.most = self.most.max(bytes_of(&self.taken));
        }

        fn give_back(&mut self, index: usize) {
            let place = self.taken.swap_remove(index);
            assert!(self.list.give_back(place).is_empty());
        }

        /// What is mapped is no more than twice the most that was taken at once, and what
        /// the smallest mapping has left.
        fn check_bound(&self) {
            let taken = bytes_of(&self.taken);
            assert_eq!(self.list.in_use_bytes(), taken as u64);
            let mapped = taken + usize::try_from(self.list.bytes()).unwrap();
            let bound = 2 * (self.most + MAPPED_BYTES_MIN);
            assert!(mapped <= bound, "{mapped} {}", self.most);
        }

        /// Everything that was mapped is taken, free or given up, once.
        fn check(&self) {
            let free = self.list.free.iter().map(|free| &free.extent);
            let gone = self.given_up.iter();
            let mut places: Vec<_> = self.taken.iter().chain(free).chain(gone).collect();
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
        fn what_is_mapped_is_somewhere_once_and_bounded(
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
                model.check_bound();
            }
            // When all of it is back, what lies side by side is one.
            while !model.taken.is_empty() {
                model.give_back(0);
            }
            let mut free: Vec<_> = model.list.free.iter().map(|free| &free.extent).collect();
            free.sort_by_key(|place| (place.mapping, place.start));
            let are_apart = free.windows(2).all(|pair| {
                pair[0].mapping != pair[1].mapping
                    || pair[0].start + pair[0].bytes < pair[1].start
            });
            prop_assert!(are_apart);
        }
    }

    /// A small block in each large one, so that no large one fits: what they leave of
    /// those goes before another is mapped.
    #[test]
    fn what_is_cut_up_does_not_add_up() {
        let mut model = Model::default();
        for _ in 0..20 {
            model.take(64 * MB);
            model.give_back(model.taken.len() - 1);
            model.take(4 * MB);
            model.check_bound();
        }
        model.check();
        // Without that, twenty times 64 MB.
        assert_eq!(model.most, 76 * MB + 64 * MB);
    }

    /// Partitions of one circuit, a few of which overlap in ways that repeat.
    #[test]
    fn work_that_repeats_maps_nothing_in_the_end() {
        const SIZES: [usize; 9] = [64, 7, 64, 3, 64, 1, 11, 5, 2];
        let mut model = Model::default();
        let mut mappings = Vec::new();
        for _ in 0..20 {
            for step in 0..4 * SIZES.len() {
                model.take(SIZES[step % SIZES.len()] * MB + step % SIZES.len());
                // The oldest two partitions' blocks go while the next are taken.
                if model.taken.len() > 2 * SIZES.len() {
                    model.give_back(step * 5 % SIZES.len());
                }
            }
            while !model.taken.is_empty() {
                model.give_back(0);
            }
            mappings.push(model.list.mappings());
        }
        let (_, late) = mappings.split_at(3);
        assert!(late.iter().all(|count| *count == late[0]), "{mappings:?}");
        assert_eq!(mappings[19], model.mapped.len() as u64);
    }

    #[test]
    fn no_more_is_given_up_than_has_to_be() {
        let mut list = FreeList::default();
        for mapping in 1..=3 {
            list.give(Place::whole(mapping, 8 * MB));
        }
        let given_up = list.give_up_beyond((13 * MB + 1) as u64);
        let [first, part] = &given_up[..] else {
            panic!("{given_up:?}")
        };
        assert_eq!(first, &Place::whole(1, 8 * MB));
        assert_eq!((part.mapping, part.bytes), (2, 3 * MB));
        assert_eq!(part.start, 5 * MB);
        assert_eq!(list.bytes(), 13 * MB as u64);
        assert!(list.give_up_beyond(13 * MB as u64).is_empty());
        assert_eq!(list.give_up_beyond(0).len(), 2);
    }

    #[test]
    fn the_largest_go_first_where_that_is_asked_for() {
        let mut list = FreeList::default();
        for (mapping, megabytes) in [(1, 4), (2, 16), (3, 2), (4, 8)] {
            assert!(
                list.give_back(Place::whole(mapping, megabytes * MB))
                    .is_empty()
            );
        }
        let given_up = list.give_up_largest_beyond(11 * MB as u64);
        let given_up = given_up.iter().map(|place| (place.mapping, place.bytes));
        assert_eq!(given_up.collect::<Vec<_>>(), [(2, 16 * MB), (4, 3 * MB)]);
        // What was kept longest is in front again.
        let front = list.free.iter().map(|free| free.extent.mapping);
        assert_eq!(front.collect::<Vec<_>>(), [1, 3, 4]);
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
        let mut model = Model::default();
        model.take(1024 * MB);
        model.give_back(0);
        model.take(63 * MB);
        assert_eq!(model.mapped.len(), 2);
        model.take(64 * MB);
        assert_eq!(model.mapped.len(), 2);
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
