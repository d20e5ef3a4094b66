//! Memory that was granted to work, and things that were evicted for it.
//!
//! Both know their monitor only by a trait, so that their types do not depend on the
//! type of the work.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The place to which a reservation is given back, without the type of the work.
pub(super) trait Charges<K>: Send + Sync {
    /// Frees some of a reservation's own memory.
    fn release(&self, class: Class, own_bytes: u64);
    /// Stops counting a reservation as running work.
    fn abandon(&self, given_up: Charged<'_, K>);
    /// Frees the rest of a reservation, and its use of the shared thing.
    fn end(&self, ended: Charged<'_, K>);
    /// Allows evicted things to be charged again.
    fn freed(&self, keys: &[K]);
}

/// The sort of work that memory is charged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Critical,
    Common,
    /// Common work that nobody waits for.
    Background,
}

impl Class {
    /// Returns the class of work that had its turn.
    pub(super) fn of_work(critical: bool) -> Self {
        match critical {
            true => Self::Critical,
            false => Self::Common,
        }
    }

    pub(super) fn is_critical(self) -> bool {
        self == Self::Critical
    }
}

/// The charge of a reservation.
pub(super) struct Charged<'a, K> {
    pub(super) own_bytes: u64,
    pub(super) shared: Option<&'a K>,
    pub(super) class: Class,
    pub(super) abandoned: bool,
}

/// The things that must be freed for work that was admitted. They are not charged any
/// more. None of them is charged anew until this is dropped, so that a thing never
/// exists twice. Drop it after freeing them.
pub struct Evicted<K> {
    charges: Arc<dyn Charges<K>>,
    keys: Vec<K>,
}

impl<K> Evicted<K> {
    pub(super) fn new(charges: Arc<dyn Charges<K>>, keys: Vec<K>) -> Self {
        Self { charges, keys }
    }
}

impl<K> Deref for Evicted<K> {
    type Target = [K];

    fn deref(&self) -> &[K] {
        &self.keys
    }
}

impl<K> Drop for Evicted<K> {
    fn drop(&mut self) {
        if !self.keys.is_empty() {
            self.charges.freed(&self.keys);
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Evicted<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Evicted").field(&self.keys).finish()
    }
}

/// Memory that may be used until this is dropped.
pub struct Reservation<K> {
    charges: Arc<dyn Charges<K>>,
    own_bytes: u64,
    shared: Option<K>,
    class: Class,
    abandoned: bool,
}

impl<K> Reservation<K> {
    pub(super) fn new(
        charges: Arc<dyn Charges<K>>,
        own_bytes: u64,
        shared: Option<K>,
        class: Class,
    ) -> Self {
        Self {
            charges,
            own_bytes,
            shared,
            class,
            abandoned: false,
        }
    }

    fn charged(&self) -> Charged<'_, K> {
        Charged {
            own_bytes: self.own_bytes,
            shared: self.shared.as_ref(),
            class: self.class,
            abandoned: self.abandoned,
        }
    }

    /// Returns its bytes, without those of the shared thing.
    #[must_use]
    pub fn own_bytes(&self) -> u64 {
        self.own_bytes
    }

    /// Gives back all but `own_bytes` of it. Call it after the others were freed.
    pub fn shrink_to(&mut self, own_bytes: u64) {
        debug_assert!(!self.abandoned);
        let surplus = self.own_bytes.saturating_sub(own_bytes);
        self.own_bytes -= surplus;
        self.charges.release(self.class, surplus);
    }

    /// Marks its work as given up while its memory is still in use. The memory stays
    /// charged until this is dropped, but nobody waits for that. If the work is put
    /// back, put it back first.
    pub fn abandon(&mut self) {
        if !std::mem::replace(&mut self.abandoned, true) {
            self.charges.abandon(self.charged());
        }
    }
}

impl<K> Drop for Reservation<K> {
    fn drop(&mut self) {
        self.charges.end(self.charged());
    }
}

impl<K> fmt::Debug for Reservation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("own_bytes", &self.own_bytes)
            .finish_non_exhaustive()
    }
}
