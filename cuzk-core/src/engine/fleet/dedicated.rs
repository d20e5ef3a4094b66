//! The CPU as one worker's own device.
//!
//! Not the worker's thread. The invariant: work here neither waits for other work
//! nor pauses with it, because lock, throttle and threads are the worker's own.

use std::sync::Arc;
use std::time::Duration;

use cuzk_groth16::backend::{CpuBackend, Device};
use cuzk_scheduler::health::Health;
use rayon::ThreadPool;
use supraseal_sys::GpuResources;

use super::slot::DeviceSlot;
use crate::Result;
use crate::config::Config;
use crate::engine::cannot_start;

pub(in crate::engine) struct DedicatedWorker {
    pub(in crate::engine) slot: DeviceSlot,
    pub(in crate::engine) pool: Arc<ThreadPool>,
}

impl DedicatedWorker {
    /// # Errors
    /// When the system has no more threads.
    pub(super) fn new(config: &Config) -> Result<Self> {
        let pool = Arc::new(config.synthesis.pool()?);
        let resources = Arc::new(GpuResources::new().map_err(cannot_start)?);
        let backend = CpuBackend::new(Arc::clone(&resources), Arc::clone(&pool));
        let device = Device {
            resources,
            backend: Arc::new(backend.with_isa(config.cpu.isa)),
        };
        Ok(Self::on(device, &pool))
    }

    /// Returns a worker that proves on this device and synthesizes on this pool.
    pub(super) fn on(device: Device, pool: &Arc<ThreadPool>) -> Self {
        // It is the last resort: its faults are counted and have no consequence.
        let health = Arc::new(Health::new(u32::MAX, Duration::ZERO));
        let slot = DeviceSlot::new(device, health);
        let pool = Arc::clone(pool);
        Self { slot, pool }
    }
}
