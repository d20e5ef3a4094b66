//! A device in host memory, for tests. Its kernels are plain C++, its streams are
//! threads, and its memory is as large as asked. Each of its calls can be made to fail.
//!
//! Compiled only with the feature `test-hooks`; other crates may use it in their tests
//! only.
#![allow(missing_docs, clippy::missing_errors_doc)]

use std::sync::Arc;

use cuzk_memory::NEVER_STOP;

use crate::bindings as sys;
use crate::device::{DeviceOptions, DeviceProver, RanProof, StagedProof};
use crate::hooks;
use crate::resources::GpuResources;
use crate::status::Status;

/// The effect that a call of the device's interface has instead of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    OutOfMemory,
    Error,
    /// All calls from this one on fail.
    Sticky,
    /// From this call on the device does nothing.
    Stall,
    /// The work that the call enqueues fails when the device comes to it, permanently.
    Kernel,
    Exception,
    Int,
}

/// The counts of a double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub calls: u64,
    /// All allocations of device and pinned memory that were ever made.
    pub allocations: u64,
    pub live_allocations: u64,
    /// Device memory.
    pub bytes: u64,
    pub bytes_max: u64,
    pub uploaded_bytes: u64,
    /// Waits for the whole device.
    pub drains: u64,
    /// True if the making of a circuit stands still.
    pub making_is_held: bool,
    /// The longest limit of a wait for the device while it stood still.
    pub stalled_wait_ms_max: u64,
    /// Streams of the double that was opened last.
    pub streams: u64,
    /// Operations that its streams were given and have not passed: copies, launches,
    /// records, waits.
    pub under_way: u64,
}

/// The controls of one double. They outlive it.
#[derive(Debug)]
pub struct Controls(Arc<hooks::Controls>);

impl Controls {
    pub fn new() -> Result<Arc<Self>, Status> {
        Ok(Arc::new(Self(Arc::new(hooks::Controls::new()?))))
    }

    /// Makes call number `call` from now on fail: 1 is the next one, 0 is none.
    pub fn fail(&self, call: u64, fault: Fault) {
        let kind = match fault {
            Fault::Nothing => sys::CUZK_TEST_FAULT_NOTHING,
            Fault::OutOfMemory => sys::CUZK_TEST_FAULT_OUT_OF_MEMORY,
            Fault::Error => sys::CUZK_TEST_FAULT_ERROR,
            Fault::Sticky => sys::CUZK_TEST_FAULT_STICKY,
            Fault::Stall => sys::CUZK_TEST_FAULT_STALL,
            Fault::Kernel => sys::CUZK_TEST_FAULT_KERNEL,
            Fault::Exception => sys::CUZK_TEST_FAULT_EXCEPTION,
            Fault::Int => sys::CUZK_TEST_FAULT_INT,
        };
        self.0.fail(call, kind);
    }

    /// Sets the memory that the stacks of kernels take together, on doubles that are
    /// opened afterwards.
    pub fn take_stacks(&self, bytes: u64) {
        self.0.take_stacks(bytes);
    }

    /// Makes a stream as slow as possible, on doubles that are opened afterwards. Its
    /// work begins only when the host waits and no other stream can go on. Streams have
    /// numbers from 1 in the order of their making; 0 means none.
    pub fn slow_stream(&self, number: u64) {
        self.0.slow_stream(number);
    }

    /// Makes the next circuit of the double stand still while it is made, until this is
    /// dropped.
    #[must_use]
    pub fn hold_making(&self) -> HeldMaking<'_> {
        self.0.hold_making();
        HeldMaking(self)
    }

    pub fn seen(&self) -> Seen {
        let seen = self.0.seen();
        Seen {
            calls: seen.calls,
            allocations: seen.allocations,
            live_allocations: seen.live_allocations,
            bytes: seen.bytes,
            bytes_max: seen.bytes_max,
            uploaded_bytes: seen.uploaded_bytes,
            drains: seen.drains,
            making_is_held: seen.held_makings > 0,
            stalled_wait_ms_max: seen.stalled_wait_ms_max,
            streams: seen.streams,
            under_way: seen.under_way,
        }
    }
}

/// Holds the making of a circuit; see [`Controls::hold_making`].
#[derive(Debug)]
pub struct HeldMaking<'a>(&'a Controls);

impl Drop for HeldMaking<'_> {
    fn drop(&mut self) {
        self.0.0.release_making();
    }
}

/// Opens a double with this much memory.
pub fn open(
    memory_bytes: u64,
    options: &DeviceOptions,
    resources: Arc<GpuResources>,
    controls: &Arc<Controls>,
) -> Result<DeviceProver, Status> {
    open_in_pieces(memory_bytes, options, 0, resources, controls)
}

/// Opens a double like [`open`], in which no piece of points is longer than two to the
/// power of `log_piece_max`. So a small circuit has as many pieces as a large one. 0
/// means no limit.
pub fn open_in_pieces(
    memory_bytes: u64,
    options: &DeviceOptions,
    log_piece_max: u32,
    resources: Arc<GpuResources>,
    controls: &Arc<Controls>,
) -> Result<DeviceProver, Status> {
    let raw_options = sys::cuzk_device_options {
        log_piece_max,
        ..options.raw()
    };
    let device = hooks::open_double(memory_bytes, &raw_options, resources, &controls.0)?;
    Ok(DeviceProver::of(device))
}

/// Runs the device region of a proof that has run already.
pub fn run_again(ran: &RanProof) -> Result<(), Status> {
    ran.proof().run(true, None, &NEVER_STOP).map(drop)
}

/// Finishes a proof that has not run yet.
pub fn finish_early(staged: &StagedProof) -> Result<(), Status> {
    staged.proof().finish(&NEVER_STOP).map(drop)
}

/// Finishes a proof twice.
pub fn finish_twice(ran: &RanProof) -> [Result<(), Status>; 2] {
    [(); 2].map(|()| ran.proof().finish(&NEVER_STOP).map(drop))
}

/// A device of CUDA's runtime, with another runtime in its place.
pub mod cuda {
    use std::sync::Arc;

    use crate::bindings as sys;
    use crate::device::{DeviceOptions, DeviceProver};
    use crate::hooks;
    use crate::resources::GpuResources;
    use crate::status::Status;

    /// The failure of a call of that runtime.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Failure {
        NoMemory,
        /// A permanent failure: all later calls fail, too.
        Context,
        NoDevice,
        NoDriver,
        OldDriver,
        OtherDriver,
        NotCompatible,
        NoImage,
        NewPtx,
        BadPtx,
        Other,
        /// No event passes from that call on. The memory that a device keeps because of
        /// it is not counted.
        Stall,
    }

    /// The counts of that runtime in this process.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Seen {
        pub calls: u64,
        /// Allocations, streams and events.
        pub live: u64,
        /// The last error of this thread; 0 means none.
        pub last_error_of_this_thread: i32,
    }

    /// Opens one of its two devices.
    pub fn open(
        ordinal: u32,
        options: &DeviceOptions,
        resources: Arc<GpuResources>,
    ) -> Result<DeviceProver, Status> {
        hooks::open_cuda(ordinal, options, resources).map(DeviceProver::of)
    }

    /// Returns the number of devices that it shows.
    pub fn device_count() -> Result<u32, Status> {
        hooks::cuda_count()
    }

    /// Makes call number `call` from now on fail: 1 is the next one, 0 is none.
    pub fn fail(call: u64, failure: Failure) {
        let error = match failure {
            Failure::NoMemory => sys::CUZK_TEST_CUDA_NO_MEMORY,
            Failure::Context => sys::CUZK_TEST_CUDA_CONTEXT,
            Failure::NoDevice => sys::CUZK_TEST_CUDA_NO_DEVICE,
            Failure::NoDriver => sys::CUZK_TEST_CUDA_NO_DRIVER,
            Failure::OldDriver => sys::CUZK_TEST_CUDA_OLD_DRIVER,
            Failure::OtherDriver => sys::CUZK_TEST_CUDA_OTHER_DRIVER,
            Failure::NotCompatible => sys::CUZK_TEST_CUDA_NOT_COMPATIBLE,
            Failure::NoImage => sys::CUZK_TEST_CUDA_NO_IMAGE,
            Failure::NewPtx => sys::CUZK_TEST_CUDA_NEW_PTX,
            Failure::BadPtx => sys::CUZK_TEST_CUDA_BAD_PTX,
            Failure::Other => sys::CUZK_TEST_CUDA_OTHER,
            Failure::Stall => sys::CUZK_TEST_CUDA_STALL,
        };
        hooks::fail_cuda(call, error);
    }

    pub fn seen() -> Seen {
        let seen = hooks::cuda_seen();
        Seen {
            calls: seen.calls,
            live: seen.live,
            last_error_of_this_thread: seen.last_error_of_this_thread,
        }
    }
}
