//! The memory that is charged for work.
//!
//! All methods run under the monitor's lock. An invariant of this module: the charged
//! bytes stay within the limits as long as callers charge only after [`Memory::room`].

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::time::Instant;

use super::need::{Limits, Need, OverBudget};
use super::reservation::{Charged, Class};
use super::survey::{SharedThing, Users};
use crate::clock;

#[derive(Clone)]
pub(super) struct Memory<K> {
    critical_bytes: u64,
    other_bytes: u64,
    /// The parts of both that belong to abandoned work.
    abandoned_critical_bytes: u64,
    abandoned_other_bytes: u64,
    /// Those that were not abandoned.
    users: Users,
    shared: HashMap<K, Shared>,
    /// Things that were evicted and are not freed yet.
    unfreed: HashSet<K>,
    /// Counts the ends of uses, to order them.
    clock: u64,
}

#[derive(Clone)]
struct Shared {
    bytes: u64,
    users: Users,
    /// True if a present or past user is critical.
    critical: bool,
    /// The number of users that were abandoned. With one of them it is never idle
    /// again.
    abandoned: usize,
    last_used: u64,
    /// The end of the last use; none before the first one ended.
    used_at: Option<Instant>,
}

/// The answer to a need for memory.
pub(super) enum Room<K> {
    /// There is room once these things are evicted.
    Now(Vec<K>),
    Later,
}

impl<K> Default for Memory<K> {
    fn default() -> Self {
        Self {
            critical_bytes: 0,
            other_bytes: 0,
            abandoned_critical_bytes: 0,
            abandoned_other_bytes: 0,
            users: Users::default(),
            shared: HashMap::new(),
            unfreed: HashSet::new(),
            clock: 0,
        }
    }
}

impl<K: Eq + Hash + Clone> Memory<K> {
    /// Returns the numbers of reservations that were not abandoned.
    pub(super) fn users(&self) -> Users {
        self.users
    }

    fn shared_bytes(&self) -> u64 {
        self.shared.values().map(|shared| shared.bytes).sum()
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.critical_bytes + self.other_bytes + self.shared_bytes()
    }

    pub(super) fn idle_bytes(&self) -> u64 {
        let idle = self.shared.values().filter(|shared| shared.is_unused());
        idle.map(|shared| shared.bytes).sum()
    }

    /// Returns the things that are shared.
    pub(super) fn shared_things(&self) -> Vec<SharedThing<K>> {
        let thing = |(key, shared): (&K, &Shared)| SharedThing {
            key: key.clone(),
            bytes: shared.bytes,
            users: shared.users.all(),
            idle: shared
                .is_unused()
                .then(|| shared.used_at.map(clock::since))
                .flatten(),
        };
        self.shared.iter().map(thing).collect()
    }

    /// Returns the bytes that a charge of this need would add.
    pub(super) fn missing_bytes(&self, need: &Need<K>) -> u64 {
        self.used_with(need).saturating_sub(self.used_bytes())
    }

    /// Evicts a thing that nobody uses. Returns its bytes, or the numbers of its users; none
    /// if it is not charged.
    pub(super) fn let_go(&mut self, key: &K) -> Option<Result<u64, Users>> {
        let shared = self.shared.get(key)?;
        if !shared.is_unused() {
            return Some(Err(shared.users));
        }
        let bytes = shared.bytes;
        self.shared.remove(key);
        self.unfreed.insert(key.clone());
        Some(Ok(bytes))
    }

    /// Returns the shared bytes of abandoned work that work of this need cannot use.
    fn abandoned_bytes_beside(&self, need: &Need<K>) -> u64 {
        let abandoned = self
            .shared
            .iter()
            .filter(|(_, shared)| shared.abandoned > 0);
        let abandoned =
            abandoned.map(|(key, shared)| shared.bytes.saturating_sub(need.shared_with(key)));
        abandoned.sum()
    }

    /// Returns the charged bytes after a charge of this need without evictions.
    fn used_with(&self, need: &Need<K>) -> u64 {
        let used = self.used_bytes() + need.own_bytes;
        let Some((key, bytes)) = &need.shared else {
            return used;
        };
        match self.shared.get(key) {
            Some(shared) => used - shared.bytes + shared.charged_for(*bytes),
            None => used + bytes,
        }
    }

    /// Fails if there can be no room even after all running work has ended.
    pub(super) fn check(
        &self,
        need: &Need<K>,
        critical: bool,
        limits: &Limits,
    ) -> Result<(), OverBudget> {
        // As in `room`: abandoned critical work is within the reserve.
        let reserve_bytes = if critical {
            self.abandoned_critical_bytes
        } else {
            limits
                .critical_reserve_bytes
                .max(self.abandoned_critical_bytes)
        };
        let kept_bytes = reserve_bytes
            .saturating_add(self.abandoned_other_bytes)
            .saturating_add(self.abandoned_bytes_beside(need));
        let over = OverBudget {
            needed_bytes: need.total(),
            available_bytes: limits.total_bytes.saturating_sub(kept_bytes),
        };
        if over.needed_bytes > over.available_bytes {
            return Err(over);
        }
        Ok(())
    }

    pub(super) fn room(&self, need: &Need<K>, critical: bool, limits: &Limits) -> Room<K> {
        if self.unfreed.iter().any(|key| need.shares(key)) {
            return Room::Later;
        }
        // Critical work may use all memory. Other work leaves the reserve alone,
        // whether or not critical work uses it now.
        let within = |freed: u64| {
            let used = self.used_with(need) - freed;
            let reserve = limits.critical_reserve_bytes.max(self.critical_bytes);
            let others = used - self.critical_bytes;
            used <= limits.total_bytes && (critical || others + reserve <= limits.total_bytes)
        };
        let mut idle: Vec<_> = self
            .shared
            .iter()
            .filter(|(key, shared)| shared.is_unused() && !need.shares(key))
            .collect();
        idle.sort_unstable_by_key(|(_, shared)| (shared.critical, shared.last_used));
        let mut evicted = Vec::new();
        let mut freed = 0;
        for (key, shared) in idle {
            if within(freed) {
                break;
            }
            freed += shared.bytes;
            evicted.push(key.clone());
        }
        if within(freed) {
            Room::Now(evicted)
        } else {
            Room::Later
        }
    }

    pub(super) fn charge(&mut self, need: &Need<K>, class: Class, evicted: &[K]) {
        for key in evicted {
            self.shared.remove(key);
            self.unfreed.insert(key.clone());
        }
        if let Some((key, bytes)) = &need.shared {
            let shared = self.shared.entry(key.clone()).or_insert(Shared {
                bytes: 0,
                users: Users::default(),
                critical: false,
                abandoned: 0,
                last_used: 0,
                used_at: None,
            });
            shared.bytes = shared.charged_for(*bytes);
            shared.critical |= class.is_critical();
            *of_class(&mut shared.users, class) += 1;
        }
        *self.own(class) += need.own_bytes;
        *of_class(&mut self.users, class) += 1;
    }

    /// Frees some of the own memory of a reservation.
    pub(super) fn release(&mut self, class: Class, own_bytes: u64) {
        *self.own(class) -= own_bytes;
    }

    /// Keeps the memory of a reservation charged, but counts its work as given up.
    pub(super) fn abandon(&mut self, given_up: &Charged<'_, K>) {
        *self.abandoned(given_up.class) += given_up.own_bytes;
        *of_class(&mut self.users, given_up.class) -= 1;
        if let Some(shared) = given_up.shared.and_then(|key| self.shared.get_mut(key)) {
            shared.abandoned += 1;
        }
    }

    /// Frees the memory of a reservation, and its use of the shared thing.
    pub(super) fn end(&mut self, ended: &Charged<'_, K>) {
        *self.own(ended.class) -= ended.own_bytes;
        if ended.abandoned {
            *self.abandoned(ended.class) -= ended.own_bytes;
        } else {
            *of_class(&mut self.users, ended.class) -= 1;
        }
        let Some(key) = ended.shared else {
            return;
        };
        self.clock += 1;
        if let Some(shared) = self.shared.get_mut(key) {
            *of_class(&mut shared.users, ended.class) -= 1;
            shared.abandoned -= usize::from(ended.abandoned);
            shared.last_used = self.clock;
            shared.used_at = Some(clock::now());
        }
    }

    /// Records that evicted things are freed, so that they may be charged again.
    pub(super) fn freed(&mut self, keys: &[K]) {
        for key in keys {
            self.unfreed.remove(key);
        }
    }

    fn own(&mut self, class: Class) -> &mut u64 {
        if class.is_critical() {
            &mut self.critical_bytes
        } else {
            &mut self.other_bytes
        }
    }

    fn abandoned(&mut self, class: Class) -> &mut u64 {
        if class.is_critical() {
            &mut self.abandoned_critical_bytes
        } else {
            &mut self.abandoned_other_bytes
        }
    }
}

/// Returns the number of those users that have this class.
fn of_class(users: &mut Users, class: Class) -> &mut usize {
    match class {
        Class::Critical | Class::Common => &mut users.work,
        Class::Background => &mut users.in_background,
    }
}

impl Shared {
    fn is_unused(&self) -> bool {
        self.users.all() == 0
    }

    /// Returns the bytes to charge for a new user that reports this size. The thing may
    /// have grown or shrunk on disk, but its present users continue with the old one.
    fn charged_for(&self, bytes: u64) -> u64 {
        if self.is_unused() {
            bytes
        } else {
            self.bytes.max(bytes)
        }
    }
}
