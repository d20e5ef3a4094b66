//! A circuit on a device.
//!
//! Not its arrays. Invariant: a circuit keeps its device.

use core::fmt;
use std::sync::Arc;

use super::objects::{Circuit, CircuitSource};
use super::{DevicePlan, DeviceProver};
#[cfg(doc)]
use crate::status::Code;
use crate::status::Status;

/// A circuit on a device, shared by its proofs.
pub struct DeviceCircuit {
    pub(super) circuit: Arc<Circuit>,
    device: Arc<DeviceProver>,
}

impl fmt::Debug for DeviceCircuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceCircuit")
            .field("plan", &self.plan())
            .finish_non_exhaustive()
    }
}

impl DeviceCircuit {
    /// Plans the memory for a circuit. Its arrays are uploaded with its first proof.
    /// They are uploaded again if they had to make room for another circuit since.
    ///
    /// # Errors
    ///
    /// [`Code::CircuitTooLarge`], [`Code::LengthMismatch`], [`Code::InvalidArgument`],
    /// or an earlier failure of the device.
    pub fn new(device: Arc<DeviceProver>, source: Arc<dyn CircuitSource>) -> Result<Self, Status> {
        let circuit = Circuit::new(Arc::clone(&device.0), source)?;
        Ok(Self {
            circuit: Arc::new(circuit),
            device,
        })
    }

    /// Returns the plan of the device's memory.
    #[must_use]
    pub fn plan(&self) -> DevicePlan {
        DevicePlan::of(&self.circuit.plan())
    }

    /// Returns its device.
    #[must_use]
    pub fn device(&self) -> &Arc<DeviceProver> {
        &self.device
    }
}
