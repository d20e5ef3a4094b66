//! The fleet at one moment, as far as it decides where a partition can be proved.
//!
//! Not the fleet: a snapshot, so that decisions are pure functions of it. The
//! invariants: no device is given a partition again that it failed to prove; a device
//! on probation is never given a critical one.

use cuzk_scheduler::admission::Lane;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct FleetView {
    /// The devices, by index. The critical and the retry worker's slots follow them.
    pub(in crate::engine) devices: Vec<DeviceView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct DeviceView {
    /// It gets work like any other.
    pub(in crate::engine) is_trusted: bool,
    /// It is quarantined, and may prove one partition on probation.
    pub(in crate::engine) is_rested: bool,
    /// Its work runs on the cores of this machine.
    pub(in crate::engine) is_this_cpu: bool,
}

impl FleetView {
    /// Returns true if a device is left that may prove a partition.
    pub(in crate::engine) fn has_device(&self, critical: bool, excluded: &[usize]) -> bool {
        let mut devices = self.devices.iter().enumerate();
        devices.any(|(index, device)| {
            let accepts = device.is_trusted || !critical && device.is_rested;
            accepts && !excluded.contains(&index)
        })
    }

    /// Returns true if the critical worker brings its partition to a device. It proves the
    /// partition itself where the devices are the cores, whose other work can be paused.
    pub(in crate::engine) fn takes_critical(&self, excluded: &[usize]) -> bool {
        self.has_device(true, excluded) && !self.devices.iter().all(|device| device.is_this_cpu)
    }

    /// Returns the slot of a lane's dedicated worker.
    pub(in crate::engine) fn dedicated(&self, lane: Lane) -> usize {
        match lane {
            Lane::Critical => self.devices.len(),
            Lane::Retry | Lane::Common => self.devices.len() + 1,
        }
    }

    /// Returns the lane of the workers that are to take a partition; none if every place
    /// has failed it. Critical work has a worker of its own, which brings it to a device,
    /// or proves it where the devices are the cores or all in quarantine.
    pub(in crate::engine) fn lane(&self, critical: bool, excluded: &[usize]) -> Option<Lane> {
        let is_left = |lane| !excluded.contains(&self.dedicated(lane));
        if critical && (self.takes_critical(excluded) || is_left(Lane::Critical)) {
            Some(Lane::Critical)
        } else if self.has_device(critical, excluded) {
            Some(Lane::Common)
        } else {
            is_left(Lane::Retry).then_some(Lane::Retry)
        }
    }
}
