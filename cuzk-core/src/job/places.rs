//! Where each partition of a job may be proved: here, elsewhere, or nowhere any more.
//!
//! Not the queue, and not the way to other machines. The invariant: a partition that is over
//! stays over until it is queued anew.

use std::sync::atomic::{AtomicU8, Ordering};

/// Where a partition may be proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Place {
    /// Here, when it has its turn.
    Here,
    /// Here, after its statement was checked: others have failed to prove it.
    CheckedHere,
    /// Elsewhere. It has no turn here.
    Elsewhere,
    /// Nowhere: it is proved.
    Over,
}

/// The places of all partitions of a job. They are read without a lock.
#[derive(Debug)]
pub(crate) struct Places(Vec<AtomicU8>);

impl Places {
    pub(crate) fn new(partitions: usize) -> Self {
        let here = || AtomicU8::new(Place::Here as u8);
        Self(std::iter::repeat_with(here).take(partitions).collect())
    }

    /// Returns the place of a partition. One that does not exist is over.
    pub(crate) fn get(&self, partition: usize) -> Place {
        let place = self.0.get(partition);
        place.map_or(Place::Over, |place| Place::of(place.load(Ordering::SeqCst)))
    }

    pub(crate) fn set(&self, partition: usize, to: Place) {
        if let Some(place) = self.0.get(partition) {
            place.store(to as u8, Ordering::SeqCst);
        }
    }

    /// Moves a partition, if it is at one of the places `from`. Returns true if it was.
    pub(crate) fn change(&self, partition: usize, from: &[Place], to: Place) -> bool {
        let Some(place) = self.0.get(partition) else {
            return false;
        };
        let next = |now| from.contains(&Place::of(now)).then_some(to as u8);
        let changed = place.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        changed.is_ok()
    }
}

impl Place {
    fn of(number: u8) -> Self {
        let all = [Self::Here, Self::CheckedHere, Self::Elsewhere];
        let place = all.into_iter().find(|place| *place as u8 == number);
        place.unwrap_or(Self::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_moves_only_from_the_places_that_are_named() {
        let places = Places::new(2);
        assert_eq!(places.get(0), Place::Here);
        assert!(places.change(0, &[Place::Here], Place::Elsewhere));
        assert!(!places.change(0, &[Place::Here], Place::Elsewhere));
        assert_eq!(places.get(0), Place::Elsewhere);
        places.set(0, Place::Over);
        let any_other = [Place::Here, Place::Elsewhere, Place::CheckedHere];
        assert!(!places.change(0, &any_other, Place::CheckedHere));
        assert_eq!((places.get(0), places.get(1)), (Place::Over, Place::Here));
        places.set(1, Place::CheckedHere);
        assert_eq!(places.get(1), Place::CheckedHere);
    }

    #[test]
    fn a_partition_that_does_not_exist_is_over() {
        let places = Places::new(1);
        places.set(1, Place::Here);
        assert_eq!(places.get(1), Place::Over);
        assert!(!places.change(1, &[Place::Over], Place::Here));
    }
}
