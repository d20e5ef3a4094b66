//! The devices, as a status shows them.
//!
//! Not their health, which the fleet keeps. The invariant: a device is shown with the
//! partition that has been on it longest.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use crate::engine::fleet::{DeviceSlot, Fleet};
use crate::job::JobState;

/// The state of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceStatus {
    /// Its index in the timeline.
    pub device: usize,
    /// The backend that proves on it.
    pub backend: &'static str,
    /// Its role: `device`, `critical` or `retry`.
    pub role: &'static str,
    /// True if it gets no work, because it failed too often.
    pub quarantined: bool,
    /// Partitions it proved.
    pub proved: u64,
    /// Partitions it failed to prove.
    pub faults: u64,
    /// Its last fault.
    pub last_fault: Option<String>,
    /// The id of the job that it proves a partition of, or the job's number if it has none.
    pub job: Option<String>,
    /// The partition that it proves.
    pub partition: Option<usize>,
    /// The time since that partition came under its lock, in seconds.
    pub busy_s: Option<f64>,
}

/// A partition on a device.
struct OnDevice {
    job: String,
    partition: usize,
    since: Instant,
}

pub(super) fn all(fleet: &Fleet, live: &[Arc<JobState>]) -> Vec<DeviceStatus> {
    let mut busy = busy(live);
    let of = |(device, role, slot): (usize, &'static str, &DeviceSlot)| {
        let report = slot.health.report();
        let on_device = busy.remove(&device);
        let since = on_device.as_ref().map(|on| on.since);
        DeviceStatus {
            device,
            backend: slot.device.backend.name(),
            role,
            quarantined: report.quarantined,
            proved: report.good,
            faults: report.faults,
            last_fault: report.last_fault,
            partition: on_device.as_ref().map(|on| on.partition),
            busy_s: since.map(|since| since.elapsed().as_secs_f64()),
            job: on_device.map(|on| on.job),
        }
    };
    fleet.slots().map(of).collect()
}

/// Returns the partition that has been on each device longest.
fn busy(live: &[Arc<JobState>]) -> HashMap<usize, OnDevice> {
    let mut busy: HashMap<usize, OnDevice> = HashMap::new();
    for job in live {
        for (partition, now) in job.live().partitions().into_iter().enumerate() {
            let Some((device, since)) = now.on_device else {
                continue;
            };
            if busy.get(&device).is_none_or(|other| since < other.since) {
                let name = job.id().map(str::to_owned);
                let job = name.unwrap_or_else(|| job.number().to_string());
                let on_device = OnDevice {
                    job,
                    partition,
                    since,
                };
                busy.insert(device, on_device);
            }
        }
    }
    busy
}
