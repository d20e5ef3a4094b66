//! Circuits whose parameters are compared with the network's digests in the background, and
//! what was found.
//!
//! Not the work: that is a thread of its own. The invariants: parameters are compared once,
//! until they are replaced; only those of sector sizes that networks use.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use cuzk_filecoin::CircuitId;
use cuzk_memory::Cancellation;

/// The knowledge about the digests of a circuit's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum DigestState {
    /// They are not compared: test parameters, or the configuration says so.
    Off,
    /// They are to be compared.
    Waits,
    /// They are being compared.
    Checking,
    /// They are the network's.
    Right,
    /// A file has another digest than the network's.
    Wrong,
    /// The list of the network does not have them.
    NotListed,
    /// A file could not be read to its end.
    Unreadable,
}

impl DigestState {
    /// Returns the state as a status has it.
    pub(in crate::engine) fn name(self) -> &'static str {
        match self {
            Self::Off => "not_compared",
            Self::Waits => "waits",
            Self::Checking => "comparing",
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::NotListed => "not_listed",
            Self::Unreadable => "unreadable",
        }
    }
}

#[derive(Debug)]
pub(in crate::engine) struct DigestChecks {
    states: Mutex<BTreeMap<CircuitId, DigestState>>,
    changed: Condvar,
    closed: Cancellation,
    is_on: bool,
}

impl DigestChecks {
    pub(in crate::engine) fn new(is_on: bool) -> Self {
        Self {
            states: Mutex::default(),
            changed: Condvar::new(),
            closed: Cancellation::default(),
            is_on,
        }
    }

    /// Has the parameters of a circuit compared, unless they were, or need not be.
    pub(in crate::engine) fn ask(&self, id: CircuitId) {
        if !self.is_on || !id.sector_size.is_for_networks() {
            return;
        }
        let mut states = self.lock();
        if !states.contains_key(&id) && !self.is_closed() {
            states.insert(id, DigestState::Waits);
            self.changed.notify_all();
        }
    }

    /// Forgets what was found, because other files are there.
    pub(in crate::engine) fn forget(&self, id: CircuitId) {
        self.lock().remove(&id);
    }

    /// Waits for a circuit, and returns it as one that is being compared; none once this is
    /// closed.
    pub(in crate::engine) fn next(&self) -> Option<CircuitId> {
        let mut states = self.lock();
        loop {
            if self.is_closed() {
                return None;
            }
            let waiting = states
                .iter_mut()
                .find(|(_, state)| **state == DigestState::Waits);
            if let Some((id, state)) = waiting {
                *state = DigestState::Checking;
                return Some(*id);
            }
            let woken = self.changed.wait(states);
            states = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes what was found, unless the files were replaced meanwhile.
    pub(in crate::engine) fn found(&self, id: CircuitId, found: DigestState) {
        if let Some(state) = self.lock().get_mut(&id)
            && *state == DigestState::Checking
        {
            *state = found;
        }
    }

    /// Returns what is known of a circuit's parameters.
    pub(in crate::engine) fn state(&self, id: CircuitId) -> DigestState {
        let state = self.lock().get(&id).copied();
        state.unwrap_or(DigestState::Off)
    }

    /// Returns the flag that is raised when this is closed.
    pub(in crate::engine) fn cancellation(&self) -> &Cancellation {
        &self.closed
    }

    pub(in crate::engine) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    // Set under the lock, so that no thread begins to wait after the last wake-up.
    pub(in crate::engine) fn close(&self) {
        let states = self.lock();
        self.closed.cancel();
        drop(states);
        self.changed.notify_all();
    }

    // Every change under the lock leaves a map.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<CircuitId, DigestState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_filecoin::{ProofKind, SectorSize};

    fn id(sector_size: SectorSize) -> CircuitId {
        let kind = ProofKind::WinningPost;
        CircuitId { kind, sector_size }
    }

    #[test]
    fn parameters_are_compared_once_until_they_are_replaced() {
        let checks = DigestChecks::new(true);
        let id = id(SectorSize::GiB32);
        assert_eq!(checks.state(id), DigestState::Off);
        checks.ask(id);
        assert_eq!(checks.state(id), DigestState::Waits);
        assert_eq!(checks.next(), Some(id));
        assert_eq!(checks.state(id), DigestState::Checking);
        checks.found(id, DigestState::Right);
        checks.ask(id);
        assert_eq!(checks.state(id), DigestState::Right);
        checks.forget(id);
        checks.found(id, DigestState::Wrong);
        assert_eq!(checks.state(id), DigestState::Off);
        checks.ask(id);
        assert_eq!(checks.state(id), DigestState::Waits);
        checks.close();
        assert_eq!(checks.next(), None);
    }

    #[test]
    fn test_parameters_are_not_compared_and_neither_is_anything_where_that_is_off() {
        let checks = DigestChecks::new(true);
        checks.ask(id(SectorSize::KiB2));
        assert_eq!(checks.state(id(SectorSize::KiB2)), DigestState::Off);
        let off = DigestChecks::new(false);
        off.ask(id(SectorSize::GiB32));
        assert_eq!(off.state(id(SectorSize::GiB32)), DigestState::Off);
    }
}
