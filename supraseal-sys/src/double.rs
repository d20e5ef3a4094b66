//! A device in host memory, for tests. Its kernels are plain C++, its streams are
//! threads, and its memory is as large as asked. Each of its calls can be made to fail.
//!
//! Compiled only with the feature `test-hooks`; other crates may use it in their tests
//! only.
#![allow(unsafe_code)] // Owns a C++ object.
#![allow(missing_docs, clippy::missing_errors_doc)]

use core::ptr::NonNull;
use std::sync::Arc;

use cuzk_memory::NEVER_STOP;

use crate::bindings as sys;
use crate::call::made;
use crate::device::{DeviceOptions, DeviceProver, RanProof, StagedProof};
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
pub struct Controls(NonNull<sys::cuzk_test_controls>);

// SAFETY: the C++ object is made of atomics and a monitor.
unsafe impl Send for Controls {}
// SAFETY: likewise.
unsafe impl Sync for Controls {}

impl Controls {
    pub fn new() -> Result<Arc<Self>, Status> {
        // SAFETY: it makes controls if its status is OK.
        let raw = unsafe { made(|out| sys::cuzk_test_controls_create(out))? };
        Ok(Arc::new(Self(raw)))
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
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_fault(self.0.as_ptr(), call, kind) }
    }

    /// Sets the memory that the stacks of kernels take together, on doubles that are
    /// opened afterwards.
    pub fn take_stacks(&self, bytes: u64) {
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_stacks(self.0.as_ptr(), bytes) }
    }

    /// Makes a stream as slow as possible, on doubles that are opened afterwards. Its
    /// work begins only when the host waits and no other stream can go on. Streams have
    /// numbers from 1 in the order of their making; 0 means none.
    pub fn slow_stream(&self, number: u64) {
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_slow_stream(self.0.as_ptr(), number) }
    }

    /// Makes the next circuit of the double stand still while it is made, until this is
    /// dropped.
    #[must_use]
    pub fn hold_making(&self) -> HeldMaking<'_> {
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_hold_making(self.0.as_ptr()) }
        HeldMaking(self)
    }

    pub fn seen(&self) -> Seen {
        // SAFETY: the object lives.
        let seen = unsafe { sys::cuzk_test_device_get_seen(self.0.as_ptr()) };
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

impl Drop for Controls {
    fn drop(&mut self) {
        // SAFETY: devices keep the controls alive, so none of them is left.
        unsafe { sys::cuzk_test_controls_destroy(self.0.as_ptr()) }
    }
}

/// Holds the making of a circuit; see [`Controls::hold_making`].
#[derive(Debug)]
pub struct HeldMaking<'a>(&'a Controls);

impl Drop for HeldMaking<'_> {
    fn drop(&mut self) {
        // SAFETY: the object lives as long as the borrow.
        unsafe { sys::cuzk_test_release_making(self.0.0.as_ptr()) }
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
    let raw_controls = controls.0.as_ptr();
    // SAFETY: the function opens a device, which keeps the controls.
    unsafe {
        DeviceProver::open_with(
            resources,
            Some(Arc::clone(controls) as Arc<dyn Send + Sync>),
            |resources, out| {
                sys::cuzk_test_device_open(
                    memory_bytes,
                    &raw const raw_options,
                    resources,
                    raw_controls,
                    out,
                )
            },
        )
    }
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
    use crate::call::written;
    use crate::device::{DeviceOptions, DeviceProver};
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
        // SAFETY: the function opens a device with these arguments.
        unsafe {
            DeviceProver::open_with(resources, None, |resources, out| {
                sys::cuzk_test_cuda_open(ordinal, &options.raw(), resources, out)
            })
        }
    }

    /// Returns the number of devices that it shows.
    pub fn device_count() -> Result<u32, Status> {
        // SAFETY: it writes the number if its status is OK.
        unsafe { written(|out| sys::cuzk_test_cuda_count(out)) }
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
        // SAFETY: it sets atomics.
        unsafe { sys::cuzk_test_cuda_fail(call, error) }
    }

    pub fn seen() -> Seen {
        // SAFETY: it reads atomics.
        let seen = unsafe { sys::cuzk_test_cuda_get_seen() };
        Seen {
            calls: seen.calls,
            live: seen.live,
            last_error_of_this_thread: seen.last_error_of_this_thread,
        }
    }
}
