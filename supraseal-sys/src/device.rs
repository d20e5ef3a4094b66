//! A proof's five sums on a device: circuits and their points go up once, then
//! a witness at a time. Not the assembly of the proof, and not the choice of a
//! device.
//!
//! A proof is staged (its witness goes up, outside the device's lock), run (the
//! device region, under the lock, while b_g2_msm runs on its pool) and finished
//! (b_g2_msm is waited for). It may be dropped after any of them.
//!
//! Invariants: what C++ is lent is kept alive by what holds C++'s object;
//! lengths are checked on this side, since C++ gets pointers.
#![allow(unsafe_code)] // Owns a C++ object.

mod circuit;
mod intermediates;
mod plan;
mod proof;

use core::fmt;
use core::ptr::NonNull;
use core::time::Duration;
use std::sync::Arc;

use crate::bindings as sys;
use crate::call::{made, text, written};
use crate::pool;
use crate::resources::GpuResources;
#[cfg(doc)]
use crate::status::Code;
use crate::status::Status;

pub use circuit::{CircuitArrays, CircuitSource, DeviceCircuit};
pub use intermediates::Intermediates;
pub use plan::{CircuitShape, DevicePlan, Queries};
pub use proof::{DeviceSums, ProofFigures, RanProof, StagedProof, WitnessArrays, WitnessSource};

/// How many devices CUDA shows, after `CUDA_VISIBLE_DEVICES` and in its order.
///
/// # Errors
///
/// [`Code::NoCuda`] in a build without the feature `cuda`;
/// [`Code::DriverTooOld`].
pub fn device_count() -> Result<u32, Status> {
    // SAFETY: it writes the number if its status is OK.
    unsafe { written(|out| sys::cuzk_device_count(out)) }
}

/// What a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The card's name.
    pub name: String,
    /// Its memory.
    pub memory_bytes: u64,
    /// What of it nobody uses now.
    pub free_bytes: u64,
    /// Compute capability, major and minor.
    pub compute: (u32, u32),
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// Their clock, kHz.
    pub clock_khz: u32,
    /// Bytes of its memory a second, at most; 0 where that is not known.
    pub memory_bandwidth: u64,
}

/// Where the sum over B in G2 runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BG2 {
    /// On the CPU, beside the device.
    Cpu,
    /// On the device.
    Device,
    /// On the device for circuits all of whose points stay there, those in G2
    /// too; on the CPU for others.
    #[default]
    Auto,
}

impl BG2 {
    /// Every place.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Device, Self::Auto];

    /// As a configuration spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Device => "device",
            Self::Auto => "auto",
        }
    }
}

/// How a device is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOptions {
    /// The most device memory to take, all of it at once: less where less is
    /// free, after a reserve of 256 MiB for the driver and a stack for each thread
    /// that the card can run, 1 GiB on an H100. `None` for no limit.
    pub memory_bytes: Option<u64>,
    /// Proofs that may be between staging and the end of their device region.
    pub workers: u32,
    /// Where the sum in G2 runs.
    pub b_g2: BG2,
    /// How long the device may take before it is given up.
    pub stall_limit: Duration,
}

impl DeviceOptions {
    pub(crate) fn raw(&self) -> sys::cuzk_device_options {
        sys::cuzk_device_options {
            memory_bytes: self.memory_bytes.unwrap_or(0),
            workers: self.workers,
            b_g2: match self.b_g2 {
                BG2::Cpu => sys::CUZK_B_G2_CPU,
                BG2::Device => sys::CUZK_B_G2_DEVICE,
                BG2::Auto => sys::CUZK_B_G2_AUTO,
            }
            .cast_unsigned(),
            stall_limit_ms: u32::try_from(self.stall_limit.as_millis()).unwrap_or(u32::MAX),
            log_piece_max: 0,
        }
    }
}

/// A device that proves, with all the memory it will ever use.
pub struct DeviceProver {
    raw: NonNull<sys::cuzk_device>,
    resources: Arc<GpuResources>,
    /// What else must outlive the device.
    _keep: Option<Arc<dyn Send + Sync>>,
}

// SAFETY: the C++ object has no thread affinity; its locks do, and none is held
// between calls.
unsafe impl Send for DeviceProver {}
// SAFETY: its shared state is behind mutexes and atomics.
unsafe impl Sync for DeviceProver {}

impl fmt::Debug for DeviceProver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceProver").finish_non_exhaustive()
    }
}

impl DeviceProver {
    /// Opens a device, takes its memory and checks that its arithmetic is right.
    ///
    /// # Errors
    ///
    /// [`Code::NoCuda`], [`Code::NoDevice`], [`Code::DriverTooOld`],
    /// [`Code::NoKernelImage`], [`Code::DeviceOutOfMemory`] or another of a
    /// device.
    pub fn open(
        ordinal: u32,
        options: &DeviceOptions,
        resources: Arc<GpuResources>,
    ) -> Result<Self, Status> {
        // SAFETY: the function opens a device with what it is given.
        unsafe {
            Self::open_with(resources, None, |resources, out| {
                sys::cuzk_device_open(ordinal, &options.raw(), resources, out)
            })
        }
    }

    /// # Safety
    ///
    /// `open` must write a device if its status is OK, which may use `keep` and
    /// the resources as long as it lives.
    pub(crate) unsafe fn open_with(
        resources: Arc<GpuResources>,
        keep: Option<Arc<dyn Send + Sync>>,
        open: impl FnOnce(*mut sys::gpu_resources, *mut *mut sys::cuzk_device) -> sys::cuzk_status,
    ) -> Result<Self, Status> {
        // Pieces of points are brought by the pool's threads.
        pool::start_default()?;
        // SAFETY: the caller promises that it makes a device.
        let raw = unsafe { made(|out| open(resources.raw(), out))? };
        Ok(Self {
            raw,
            resources,
            _keep: keep,
        })
    }

    /// What the device is, and how much of its memory is free now.
    ///
    /// # Errors
    ///
    /// A failing device.
    pub fn info(&self) -> Result<DeviceInfo, Status> {
        // SAFETY: the device lives; the info is written if the status is OK.
        let info = unsafe { written(|out| sys::cuzk_device_get_info(self.raw.as_ptr(), out))? };
        Ok(DeviceInfo {
            name: text(&info.name),
            memory_bytes: info.memory_bytes,
            free_bytes: info.free_bytes,
            compute: (info.compute_major, info.compute_minor),
            multiprocessors: info.multiprocessors,
            clock_khz: info.clock_khz,
            memory_bandwidth: info.memory_bandwidth,
        })
    }

    /// The device's lock and throttle.
    #[must_use]
    pub fn resources(&self) -> &Arc<GpuResources> {
        &self.resources
    }
}

impl Drop for DeviceProver {
    fn drop(&mut self) {
        // SAFETY: circuits and proofs keep the device, so none is left.
        unsafe { sys::cuzk_device_close(self.raw.as_ptr()) }
    }
}
