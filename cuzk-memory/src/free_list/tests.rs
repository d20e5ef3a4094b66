use super::*;
use crate::extent::VirtualExtent;
use proptest::prelude::*;

const MB: usize = 1 << 20;

/// A list of places, those that were taken from it, and those that it gave up.
#[derive(Default)]
struct Model {
    list: FreeList<VirtualExtent>,
    taken: Vec<VirtualExtent>,
    given_up: Vec<VirtualExtent>,
    mapped: Vec<usize>,
    /// The most that was taken at once.
    most: usize,
}

fn bytes_of(places: &[VirtualExtent]) -> usize {
    places.iter().map(Extent::bytes).sum()
}

impl Model {
    fn take(&mut self, bytes: usize) {
        let mapped = &mut self.mapped;
        let map = |bytes| {
            mapped.push(bytes);
            Ok(VirtualExtent::whole(mapped.len(), bytes))
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

    /// Checks that the mapped memory is at most twice the most that was taken at once, and
    /// the rest of the smallest mapping.
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
        list.give(VirtualExtent::whole(mapping, 8 * MB));
    }
    let given_up = list.give_up_beyond((13 * MB + 1) as u64);
    let [first, part] = &given_up[..] else {
        panic!("{given_up:?}")
    };
    assert_eq!(first, &VirtualExtent::whole(1, 8 * MB));
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
            list.give_back(VirtualExtent::whole(mapping, megabytes * MB))
                .is_empty()
        );
    }
    let given_up = list.give_up_largest_beyond(11 * MB as u64);
    let given_up = given_up.iter().map(|place| (place.mapping, place.bytes));
    assert_eq!(given_up.collect::<Vec<_>>(), [(2, 16 * MB), (4, 3 * MB)]);
    // The extents kept longest are in front again.
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
    list.give(VirtualExtent::whole(1, 64 * MB));
    let mut use_often = |times| {
        let used = || VirtualExtent::whole(2, MB);
        let left = (0..times).flat_map(|_| {
            let left = list.give_back(used());
            assert_eq!(list.take(MB), Some(used()));
            left
        });
        left.collect::<Vec<_>>()
    };
    assert_eq!(use_often(RETURNS_MAX), []);
    assert_eq!(use_often(1), [VirtualExtent::whole(1, 64 * MB)]);
    assert_eq!(use_often(2 * RETURNS_MAX), []);
}

#[test]
fn more_than_there_can_be_is_an_error() {
    let mut list = FreeList::<VirtualExtent>::default();
    assert!(list.take(usize::MAX).is_none());
    let never = |_| panic!("it is not mapped");
    assert!(list.take_or_map(usize::MAX - 1, never).is_err());
}
