//! A device of the fleet, and what is known of it.
//!
//! Not its threads. The invariant: a circuit that did not fit is not tried again on
//! the device until an operator reinstates it, because all of its memory was taken
//! when it was opened.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuzk_filecoin::CircuitId;
use cuzk_groth16::backend::Device;
use cuzk_scheduler::health::Health;

use super::view::DeviceView;
use super::watchdog::{CallPart, DeviceCall};

pub(in crate::engine) struct DeviceSlot {
    pub(in crate::engine) device: Device,
    pub(in crate::engine) health: Arc<Health>,
    /// The circuits that do not fit.
    too_large: Mutex<HashSet<CircuitId>>,
}

impl DeviceSlot {
    pub(super) fn new(device: Device, health: Arc<Health>) -> Self {
        Self {
            device,
            health,
            too_large: Mutex::default(),
        }
    }

    pub(super) fn view(&self) -> DeviceView {
        DeviceView {
            is_trusted: self.health.is_trusted(),
            is_rested: self.health.is_rested(),
            is_this_cpu: self.device.backend.is_this_cpu(),
        }
    }

    /// Trusts the device as if it had never failed, unless it still owes an answer.
    /// Returns true if it is trusted now.
    pub(super) fn reinstate(&self) -> bool {
        let is_trusted = self.health.reinstate();
        if is_trusted {
            self.lock_too_large().clear();
        }
        is_trusted
    }

    /// Notes that a circuit does not fit. Returns true if that is new.
    pub(super) fn record_too_large(&self, id: CircuitId) -> bool {
        self.lock_too_large().insert(id)
    }

    /// Returns true if the circuit is known not to fit.
    pub(super) fn is_too_small_for(&self, id: CircuitId) -> bool {
        self.lock_too_large().contains(&id)
    }

    /// Returns a call of this device, whose index in the fleet is `device`. The watchdog
    /// does not watch the CPU: it does not stop answering alone, and may be paused for
    /// critical work.
    pub(in crate::engine) fn call(&self, device: usize, part: CallPart) -> DeviceCall {
        DeviceCall {
            device,
            part,
            is_watched: !self.device.backend.is_this_cpu(),
        }
    }

    // Every change is one step.
    fn lock_too_large(&self) -> MutexGuard<'_, HashSet<CircuitId>> {
        self.too_large
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
