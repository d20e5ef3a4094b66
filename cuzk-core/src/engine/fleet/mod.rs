//! The devices of an engine, their health, and the CPU workers that stand in for
//! them.
//!
//! Not their threads. The invariants: a device keeps its index; a quarantined device is
//! given one partition at a time, after a rest, and never a critical one; no device is
//! given a partition again that it failed to prove.

mod dedicated;
mod slot;
pub(super) mod view;
pub(super) mod watchdog;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cuzk_filecoin::CircuitId;
use cuzk_groth16::backend::{Backend, Device, Footprint, SynthesisShare};
use cuzk_groth16::params::{MappedParams, Shapes};
use cuzk_groth16::{Circuit, CircuitForm};
use cuzk_scheduler::admission::Lane;
use cuzk_scheduler::health::{Health, Trial};
use supraseal_sys::GpuResources;

pub(super) use self::dedicated::DedicatedWorker;
pub(super) use self::slot::DeviceSlot;
use self::view::FleetView;
use self::watchdog::Watchdog;
use super::attempt::Attempt;
use crate::config::Config;
use crate::error::ErrorCode;
use crate::metrics;
#[cfg(test)]
use crate::planted::{Plant, is_planted};
use crate::timeline::Timeline;
use crate::{Error, Result};

const DEDICATED_ROLES: [&str; 2] = ["critical", "retry"];

/// The devices, then the critical and the retry worker, which are made when first
/// needed.
pub(super) struct Fleet {
    pub(super) watchdog: Watchdog,
    devices: Vec<DeviceSlot>,
    dedicated: [OnceLock<DedicatedWorker>; DEDICATED_ROLES.len()],
    /// Held while a dedicated worker is made.
    making: Mutex<()>,
    config: Config,
}

/// Whether a device takes a partition.
pub(super) enum Claim {
    No,
    Yes,
    /// The device is on probation, and this partition decides about it.
    Trial(Trial),
}

impl Fleet {
    pub(super) fn new(config: &Config, devices: Vec<Device>) -> Self {
        let gpus = &config.gpus;
        let health = || Arc::new(Health::new(gpus.faults_max, gpus.rest));
        let slot = |device| DeviceSlot::new(device, health());
        (0..devices.len()).for_each(metrics::device_added);
        Self {
            watchdog: Watchdog::new(gpus),
            devices: devices.into_iter().map(slot).collect(),
            dedicated: [const { OnceLock::new() }; DEDICATED_ROLES.len()],
            making: Mutex::default(),
            config: config.clone(),
        }
    }

    pub(super) fn devices(&self) -> &[DeviceSlot] {
        &self.devices
    }

    /// Returns the fleet as it is now.
    pub(super) fn view(&self) -> FleetView {
        FleetView {
            devices: self.devices.iter().map(DeviceSlot::view).collect(),
        }
    }

    /// Returns the resources whose throttle the engine looks at: the first device's,
    /// since all devices of a machine raise one count.
    pub(super) fn throttle(&self) -> Option<Arc<GpuResources>> {
        let first = self.devices.first()?;
        Some(Arc::clone(&first.device.resources))
    }

    /// Returns true if A and B are evaluated before a partition comes to a device. Where
    /// every device evaluates them by itself, that is true of plain rows only.
    pub(super) fn wants_evaluated(&self) -> bool {
        let evaluates = |slot: &DeviceSlot| slot.device.backend.evaluates();
        self.config.synthesis.circuit == CircuitForm::Plain || !self.devices.iter().all(evaluates)
    }

    /// Returns the memory on the host that a partition holds which any of the devices may
    /// prove.
    pub(super) fn footprint(&self, circuit: &Circuit, shapes: &Shapes) -> Footprint {
        let share = SynthesisShare {
            threads: self.config.synthesis.threads,
            evaluates: self.wants_evaluated(),
        };
        let backends = self.devices.iter().map(|slot| &slot.device.backend);
        let footprints = backends.map(|backend| backend.footprint(circuit, shapes, share));
        footprints
            .reduce(Footprint::max)
            .unwrap_or_else(|| share.footprint(&circuit.sizes()))
    }

    /// Returns the slot of a lane's dedicated worker.
    pub(super) fn dedicated_slot(&self, lane: Lane) -> usize {
        self.view().dedicated(lane)
    }

    /// Returns the dedicated worker of a slot; none if the system has no threads for it
    /// at this moment.
    pub(super) fn dedicated(&self, slot: usize) -> Option<&DedicatedWorker> {
        let place = self.dedicated.get(slot.checked_sub(self.devices.len())?)?;
        if let Some(made) = place.get() {
            return Some(made);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if place.get().is_none() {
            match DedicatedWorker::new(&self.config) {
                Ok(made) => drop(place.set(made)),
                Err(error) => {
                    let code = ErrorCode::of(&error);
                    tracing::error!(%code, %error, "no threads for a dedicated worker");
                }
            }
        }
        place.get()
    }

    /// Has the critical and the retry worker prove on devices of the caller's.
    #[cfg(test)]
    pub(super) fn dedicate(&self, devices: [Device; 2], pool: &Arc<rayon::ThreadPool>) {
        for (place, device) in self.dedicated.iter().zip(devices) {
            drop(place.set(DedicatedWorker::on(device, pool)));
        }
    }

    /// Returns the device, or the dedicated worker's, of a slot.
    pub(super) fn slot(&self, slot: usize) -> Option<&DeviceSlot> {
        match self.devices.get(slot) {
            Some(device) => Some(device),
            None => self.dedicated(slot).map(|worker| &worker.slot),
        }
    }

    /// Returns an empty timeline that knows the names of the devices and dedicated workers.
    pub(super) fn timeline(&self) -> Timeline {
        let timeline = Timeline::default();
        for (device, name) in self.names() {
            timeline.name_device(device, name);
        }
        timeline
    }

    /// Returns what pictures call each device, and each dedicated worker.
    fn names(&self) -> impl Iterator<Item = (usize, String)> {
        let devices = self.devices.iter().map(|slot| {
            let name = match slot.device.backend.is_this_cpu() {
                true => "CPU",
                false => "GPU",
            };
            name.to_owned()
        });
        let workers = DEDICATED_ROLES.map(|role| format!("CPU, {role} worker"));
        devices.chain(workers).enumerate()
    }

    /// Returns the slots there are, with the role of each.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, &'static str, &DeviceSlot)> {
        let devices = self.devices.iter().enumerate();
        let devices = devices.map(|(index, slot)| (index, "device", slot));
        let dedicated = DEDICATED_ROLES.into_iter().zip(&self.dedicated).enumerate();
        let dedicated = dedicated.filter_map(|(index, (role, worker))| {
            let worker = worker.get()?;
            Some((self.devices.len() + index, role, &worker.slot))
        });
        devices.chain(dedicated)
    }

    pub(super) fn num_trusted(&self) -> usize {
        let devices = self.view().devices.into_iter();
        devices.filter(|device| device.is_trusted).count()
    }

    /// Returns true if a quarantined device has rested.
    pub(super) fn any_is_rested(&self) -> bool {
        self.devices.iter().any(|slot| slot.health.is_rested())
    }

    /// Decides whether a device proves a partition.
    pub(super) fn claim(&self, device: usize, attempt: &Attempt) -> Claim {
        let Some(slot) = self.devices.get(device) else {
            return Claim::No;
        };
        #[cfg(test)]
        if is_planted(Plant::TrustsAll) && !attempt.excluded_devices.contains(&device) {
            return Claim::Yes;
        }
        if attempt.excluded_devices.contains(&device) {
            Claim::No
        } else if slot.health.is_trusted() {
            Claim::Yes
        } else if attempt.is_critical() {
            Claim::No
        } else {
            slot.health.try_it().map_or(Claim::No, Claim::Trial)
        }
    }

    /// Notes that a circuit does not fit on a device, so that no partition of it is made
    /// for that device again.
    pub(super) fn record_too_large(&self, device: usize, id: CircuitId) {
        let slot = self.devices.get(device);
        if slot.is_some_and(|slot| slot.record_too_large(id)) {
            tracing::warn!(
                device, circuit = %id,
                "the circuit does not fit on the device; its partitions are proved elsewhere"
            );
        }
    }

    /// Returns the devices on which a circuit is known not to fit.
    pub(super) fn too_small_for(&self, id: CircuitId) -> Vec<usize> {
        let devices = self.devices.iter().enumerate();
        let too_small = devices.filter(|(_, slot)| slot.is_too_small_for(id));
        too_small.map(|(index, _)| index).collect()
    }

    /// Trusts a device again because an operator says so. Returns true if it was in
    /// quarantine.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for no such device, and one that still owes an answer.
    pub(super) fn reinstate(&self, device: usize) -> Result<bool> {
        let refused = |problem: String| {
            let advice = "name a device of the engine's status that has answered";
            Error::request("device", problem, advice)
        };
        let Some(slot) = self.devices.get(device) else {
            let devices = self.devices.len();
            let problem = format!("expected an index below {devices}, got {device}");
            return Err(refused(problem));
        };
        let was_out = !slot.health.is_trusted();
        if !slot.reinstate() {
            return Err(refused(format!("device {device} still owes an answer")));
        }
        Ok(was_out)
    }

    /// Returns the backend that adds up the bits of several partitions, with its slot: the
    /// first trusted device's, if this CPU proves every partition.
    pub(super) fn sums_bits(&self) -> Option<(usize, &Arc<dyn Backend>)> {
        let all_are_cores = self.view().devices.iter().all(|device| device.is_this_cpu);
        let mut devices = self.devices.iter().enumerate();
        let (slot, device) = devices.find(|(_, slot)| slot.health.is_trusted())?;
        all_are_cores.then_some((slot, &device.device.backend))
    }

    /// Returns true if a device of the fleet is this machine's CPU.
    pub(super) fn any_is_this_cpu(&self) -> bool {
        let mut devices = self.devices.iter();
        devices.any(|slot| slot.device.backend.is_this_cpu())
    }

    /// Returns the bytes of host memory that the devices keep for a circuit.
    pub(super) fn kept_bytes(&self, circuit: &Circuit) -> u64 {
        let devices = self.devices.iter();
        let kept = devices.map(|slot| slot.device.backend.kept_bytes(circuit));
        kept.sum()
    }

    /// Has all devices let go of a circuit.
    pub(super) fn evict(&self, circuit: &Circuit) {
        for (_, _, slot) in self.slots() {
            slot.device.backend.evict(circuit);
        }
    }

    /// Has all devices let go of parameters in whose place are others.
    pub(super) fn evict_params(&self, params: &MappedParams) {
        for slot in &self.devices {
            slot.device.backend.evict_params(params);
        }
    }
}
