//! The memory that work needs, and the limits of all work.

use crate::priority::Patience;

const MIB: u64 = 1 << 20;

/// A need for more memory than there can ever be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} MiB of memory are needed and the budget leaves {} MiB; raise [memory] total_budget, or \
     use a machine with more memory",
    needed_bytes.div_ceil(MIB), available_bytes / MIB
)]
pub struct OverBudget {
    /// The bytes that are needed.
    pub needed_bytes: u64,
    /// The bytes that would be free if nothing else ran.
    pub available_bytes: u64,
}

/// The limits of the waiting work and of the used memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of pieces of work that may wait.
    pub capacity: usize,
    /// The bytes that all work together may use.
    pub total_bytes: u64,
    /// The part of them that only critical work may use.
    pub critical_reserve_bytes: u64,
    /// The times that work waits for more urgent work.
    pub patience: Patience,
}

/// The memory that a piece of work needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need<K> {
    /// The bytes that only this work uses.
    pub own_bytes: u64,
    /// The key and the size of a thing that it shares with all work of the same key.
    pub shared: Option<(K, u64)>,
}

impl<K> Need<K> {
    /// Returns a need for memory that is not shared.
    #[must_use]
    pub fn own(own_bytes: u64) -> Self {
        Self {
            own_bytes,
            shared: None,
        }
    }

    pub(super) fn total(&self) -> u64 {
        let shared = self.shared.as_ref().map_or(0, |(_, bytes)| *bytes);
        self.own_bytes.saturating_add(shared)
    }

    pub(super) fn shared_with(&self, key: &K) -> u64
    where
        K: Eq,
    {
        let shared = self.shared.as_ref();
        let shared = shared.filter(|(named, _)| named == key);
        shared.map_or(0, |(_, bytes)| *bytes)
    }

    /// Returns true if it shares the thing of this key.
    pub(super) fn shares(&self, key: &K) -> bool
    where
        K: Eq,
    {
        self.shared.as_ref().is_some_and(|(named, _)| named == key)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_need_is_rounded_up_and_what_there_is_down() {
        let over = OverBudget {
            needed_bytes: 5 * (1 << 20) + 1,
            available_bytes: 5 * (1 << 20) - 1,
        };
        let text = over.to_string();
        let start = "6 MiB of memory are needed and the budget leaves 4 MiB; ";
        assert!(text.starts_with(start), "{text}");
    }
}
