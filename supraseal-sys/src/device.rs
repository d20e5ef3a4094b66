//! The five MSMs of a proof on a device. Circuits and their points are uploaded once,
//! then one witness after the other. The assembly of the proof and the choice of a
//! device happen elsewhere.
//!
//! A proof has three steps:
//!
//! 1. It is staged: its witness is uploaded, outside the device's lock.
//! 2. It is run: the device region, under the lock, while b_g2_msm runs on its pool.
//! 3. It is finished: b_g2_msm is waited for.
//!
//! It may be dropped after any of them.
//!
//! The C++ objects and their calls are in `device/objects.rs`. The invariant: a step of a proof
//! takes the proof of the step before.

mod arrays;
mod circuit;
mod intermediates;
pub(crate) mod objects;
mod plan;
mod proof;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::abi;
use crate::bindings as sys;
use crate::resources::GpuResources;
#[cfg(doc)]
use crate::status::Code;
use crate::status::Status;
use crate::text::text;

pub use arrays::{CircuitArrays, WitnessArrays, WitnessSource};
pub use circuit::DeviceCircuit;
pub use intermediates::Intermediates;
pub use objects::CircuitSource;
use objects::Device;
pub use plan::{CircuitShape, DevicePlan, Queries};
pub use proof::{DeviceSums, ProofFigures, RanProof, StagedProof};

/// Returns the number of devices that CUDA shows. CUDA applies `CUDA_VISIBLE_DEVICES`
/// and its order.
///
/// # Errors
///
/// [`Code::NoCuda`] in a build without the feature `cuda`; [`Code::DriverTooOld`].
pub fn device_count() -> Result<u32, Status> {
    abi::device_count()
}

/// The properties of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The card's name.
    pub name: String,
    /// Its memory.
    pub memory_bytes: u64,
    /// The part of its memory that is free now.
    pub free_bytes: u64,
    /// Compute capability, major and minor.
    pub compute: (u32, u32),
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// Their clock, kHz.
    pub clock_khz: u32,
    /// The highest bandwidth of its memory, in bytes per second; 0 if it is not known.
    pub memory_bandwidth: u64,
}

/// The place where the MSM over B in G2 runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BG2 {
    /// On the CPU, beside the device.
    Cpu,
    /// On the device.
    Device,
    /// On the device for circuits all of whose points stay there, including those in
    /// G2. On the CPU for all others.
    #[default]
    Auto,
}

impl BG2 {
    /// All places.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Device, Self::Auto];

    /// Returns the name as a configuration spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Device => "device",
            Self::Auto => "auto",
        }
    }
}

/// The way a device is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOptions {
    /// The most device memory to take, all of it at once. `None` means no limit. Less
    /// is taken if less is free after a reserve. The reserve is 256 MiB for the driver,
    /// and a stack for each thread that the card can run. By computation these stacks
    /// take 1 GiB on an H100.
    pub memory_bytes: Option<u64>,
    /// The number of proofs that may be between staging and the end of their device
    /// region.
    pub workers: u32,
    /// The place of the MSM in G2.
    pub b_g2: BG2,
    /// The time after which a device that does not end its work is given up.
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

/// A device that proves, with all the memory that it will ever use.
pub struct DeviceProver(Arc<Device>);

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
    /// [`Code::NoKernelImage`], [`Code::DeviceOutOfMemory`], or another failure of a
    /// device.
    pub fn open(
        ordinal: u32,
        options: &DeviceOptions,
        resources: Arc<GpuResources>,
    ) -> Result<Self, Status> {
        Device::open(ordinal, options, resources).map(Self::of)
    }

    pub(crate) fn of(device: Device) -> Self {
        Self(Arc::new(device))
    }

    /// Returns the properties of the device, and the memory that is free now.
    ///
    /// # Errors
    ///
    /// A failure of the device.
    pub fn info(&self) -> Result<DeviceInfo, Status> {
        let info = self.0.info()?;
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

    /// Returns the device's lock and throttle.
    #[must_use]
    pub fn resources(&self) -> &Arc<GpuResources> {
        self.0.resources()
    }
}
