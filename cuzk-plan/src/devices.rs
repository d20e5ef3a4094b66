//! The devices of a machine: their workers and their locks.
//!
//! Not the stages on them. The invariant: a lock has at most one holder.

use std::collections::VecDeque;

use crate::outcome::Busy;

#[derive(Debug)]
struct Device {
    idle_workers: usize,
    holder: Option<usize>,
    waiting: VecDeque<usize>,
}

/// The devices. A partition on its way is a number.
#[derive(Debug)]
pub(crate) struct Devices {
    workers: usize,
    devices: Vec<Device>,
}

impl Devices {
    /// Returns `count` devices with so many workers each.
    pub(crate) fn new(count: usize, workers: usize) -> Self {
        let device = || Device {
            idle_workers: workers,
            holder: None,
            waiting: VecDeque::new(),
        };
        let devices = (0..count.max(1)).map(|_| device()).collect();
        Self { workers, devices }
    }

    /// Takes an idle worker, of the device with the most of them.
    pub(crate) fn take_worker(&mut self) -> Option<usize> {
        let devices = self.devices.iter_mut().enumerate();
        let (at, device) = devices.max_by_key(|(at, d)| (d.idle_workers, usize::MAX - at))?;
        device.idle_workers = device.idle_workers.checked_sub(1)?;
        Some(at)
    }

    /// Gives a worker of device `at` back.
    pub(crate) fn return_worker(&mut self, at: usize) {
        self.devices[at].idle_workers += 1;
    }

    /// Returns the device whose lock is taken soonest.
    pub(crate) fn least_busy(&self) -> usize {
        let queued = |device: &Device| (device.waiting.len(), device.holder.is_some());
        let devices = self.devices.iter().enumerate();
        devices
            .min_by_key(|(_, device)| queued(device))
            .map_or(0, |(at, _)| at)
    }

    /// Queues a partition for the lock of device `at`, before all others if it is urgent.
    pub(crate) fn queue(&mut self, at: usize, partition: usize, is_urgent: bool) {
        let waiting = &mut self.devices[at].waiting;
        if is_urgent {
            waiting.push_front(partition);
        } else {
            waiting.push_back(partition);
        }
    }

    /// Gives a free lock to the next partition, and returns it.
    pub(crate) fn lock_next(&mut self) -> Option<usize> {
        let mut free = self.devices.iter_mut().filter(|d| d.holder.is_none());
        let device = free.find(|device| !device.waiting.is_empty())?;
        device.holder = device.waiting.pop_front();
        device.holder
    }

    /// Releases the lock of device `at`.
    pub(crate) fn unlock(&mut self, at: usize) {
        self.devices[at].holder = None;
    }

    /// Counts the busy times of the next `seconds`.
    pub(crate) fn count(&self, seconds: f64, busy: &mut Busy) {
        for device in &self.devices {
            let at_work = self.workers - device.idle_workers;
            busy.device_workers_s += at_work as f64 * seconds;
            busy.devices_s += f64::from(u8::from(at_work > 0)) * seconds;
            busy.locked_s += f64::from(u8::from(device.holder.is_some())) * seconds;
        }
    }
}
