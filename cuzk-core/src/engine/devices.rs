//! Opening the devices that the configuration names.
//!
//! Not a backend, which gets all that it needs by value. The invariant: the devices of an
//! engine were opened beside each other, so that they share one throttle.

use std::sync::Arc;

use cuzk_groth16::backend::{CpuBackend, CudaBackend, Device, HostBG2};
use rayon::ThreadPool;
use supraseal_sys::device::{BG2, DeviceOptions, DeviceProver, device_count};
use supraseal_sys::{GpuResources, Status};

use super::start::no_device_side;
use crate::config::{Config, Devices, device_queues_problem};
use crate::error::ErrorCode;
use crate::{Error, Result};

/// The devices that the configuration names: the CPU, whose device region runs
/// on `pool`; the GPUs with these ordinals; or all that CUDA shows and this
/// build runs on, and the CPU if there is none.
///
/// None of them proves elsewhere what it failed to: that is the engine's, which
/// counts the fault.
///
/// # Errors
/// The C++ side's error of a GPU that was asked for, or the operating system's error of a
/// thread.
pub fn devices(config: &Config, pool: &Arc<ThreadPool>) -> Result<Vec<Device>> {
    let gpus = match &config.gpus.devices {
        Devices::Cpu => Vec::new(),
        Devices::Ordinals(ordinals) => named_gpus(config, ordinals)?,
        Devices::Auto => all_gpus(config)?,
    };
    if gpus.is_empty() {
        return Ok(vec![cpu_device(config, pool)?]);
    }
    warn_of_few_queues();
    Ok(gpus)
}

/// Warns of an environment in which CUDA keeps a device's streams waiting for each other.
pub fn warn_of_few_queues() {
    if let Some(problem) = device_queues_problem() {
        tracing::warn!("{problem}");
    }
}

fn resources() -> Result<GpuResources> {
    GpuResources::new().map_err(|error| no_device_side(&error))
}

fn cpu_device(config: &Config, pool: &Arc<ThreadPool>) -> Result<Device> {
    let resources = Arc::new(resources()?);
    let backend = CpuBackend::new(Arc::clone(&resources), Arc::clone(pool))
        .with_b_g2_pool(Arc::new(config.gpus.pool()?))
        .with_isa(config.cpu.isa);
    let backend = Arc::new(backend);
    Ok(Device { resources, backend })
}

/// The parts that all GPUs of a machine share.
struct Machine {
    /// The resources that those of all its GPUs are beside.
    resources: GpuResources,
    host_b_g2: HostBG2,
}

impl Machine {
    fn new(config: &Config) -> Result<Self> {
        Ok(Self {
            resources: resources()?,
            host_b_g2: host_b_g2(config)?,
        })
    }
}

/// Returns the place of an MSM in G2 that a GPU leaves to the host. It is made by the
/// kernel of a CPU's proofs, on `gpu_threads` threads for all GPUs together.
///
/// # Errors
/// If the operating system has no threads left.
pub fn host_b_g2(config: &Config) -> Result<HostBG2> {
    Ok(match config.gpus.b_g2 {
        BG2::Device => HostBG2::Absent,
        BG2::Cpu | BG2::Auto => HostBG2::Kernel {
            pool: Arc::new(config.gpus.pool()?),
            isa: config.cpu.isa,
        },
    })
}

fn named_gpus(config: &Config, ordinals: &[u32]) -> Result<Vec<Device>> {
    let machine = Machine::new(config)?;
    let gpu = |&ordinal: &u32| {
        open_gpu(config, ordinal, &machine).map_err(|error| Error::Start {
            problem: format!("GPU {ordinal}: {error}"),
        })
    };
    ordinals.iter().map(gpu).collect()
}

/// Every GPU that CUDA shows and that can be opened.
fn all_gpus(config: &Config) -> Result<Vec<Device>> {
    let count = device_count().unwrap_or_else(|error| {
        tracing::warn!(code = %ErrorCode::Device, %error, "no GPU is used");
        0
    });
    if count == 0 {
        return Ok(Vec::new());
    }
    let machine = Machine::new(config)?;
    let gpu = |ordinal| match open_gpu(config, ordinal, &machine) {
        Ok(device) => Some(device),
        Err(error) => {
            tracing::warn!(ordinal, code = %ErrorCode::Device, %error, "a GPU is not used");
            None
        }
    };
    Ok((0..count).filter_map(gpu).collect())
}

/// Returns the way in which the configuration has each GPU used.
#[must_use]
pub fn device_options(config: &Config) -> DeviceOptions {
    let workers = config.gpus.gpu_workers_per_device;
    DeviceOptions {
        memory_bytes: config.gpus.memory_limit_bytes,
        workers: u32::try_from(workers).unwrap_or(u32::MAX),
        b_g2: config.gpus.b_g2,
        stall_limit: config.gpus.stall,
    }
}

/// A GPU of the machine.
fn open_gpu(
    config: &Config,
    ordinal: u32,
    machine: &Machine,
) -> std::result::Result<Device, Status> {
    let options = device_options(config);
    let resources = Arc::new(machine.resources.beside()?);
    let device = DeviceProver::open(ordinal, &options, Arc::clone(&resources))?;
    if let Ok(info) = device.info() {
        tracing::info!(ordinal, ?info, "a GPU");
    }
    let backend =
        CudaBackend::new(Arc::new(device), machine.host_b_g2.clone()).with_workers(options.workers);
    let backend = Arc::new(backend);
    Ok(Device { resources, backend })
}
