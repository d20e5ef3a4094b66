//! The calls of the C ABI that are for tests.
//!
//! Not what they are for: `double.rs` and `test_hooks.rs` say that. The invariants are those of
//! `abi.rs`.
#![allow(unsafe_code)] // Calls C++.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use blstrs::{G2Affine, G2Projective, Scalar};
use cuzk_memory::Checkpoint;
use group::Group;

use crate::abi::{callback, made, written};
use crate::bindings as sys;
use crate::device::DeviceOptions;
use crate::device::objects::Device;
use crate::resources::GpuResources;
use crate::status::{Status, check};

/// The controls of a double.
#[derive(Debug)]
pub(crate) struct Controls(NonNull<sys::cuzk_test_controls>);

// SAFETY: the C++ object is made of atomics and a monitor.
unsafe impl Send for Controls {}
// SAFETY: likewise.
unsafe impl Sync for Controls {}

impl Controls {
    pub(crate) fn new() -> Result<Self, Status> {
        // SAFETY: it makes controls if its status is OK.
        unsafe { made(|out| sys::cuzk_test_controls_create(out)).map(Self) }
    }

    pub(crate) fn fail(&self, call: u64, kind: i32) {
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_fault(self.0.as_ptr(), call, kind) }
    }

    pub(crate) fn take_stacks(&self, bytes: u64) {
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_stacks(self.0.as_ptr(), bytes) }
    }

    pub(crate) fn slow_stream(&self, number: u64) {
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_slow_stream(self.0.as_ptr(), number) }
    }

    pub(crate) fn hold_making(&self) {
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_hold_making(self.0.as_ptr()) }
    }

    pub(crate) fn release_making(&self) {
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_release_making(self.0.as_ptr()) }
    }

    pub(crate) fn seen(&self) -> sys::cuzk_test_device_seen {
        // SAFETY: the object lives.
        unsafe { sys::cuzk_test_device_get_seen(self.0.as_ptr()) }
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        // SAFETY: devices keep the controls alive, so none of them is left.
        unsafe { sys::cuzk_test_controls_destroy(self.0.as_ptr()) }
    }
}

/// Opens a double.
pub(crate) fn open_double(
    memory_bytes: u64,
    options: &sys::cuzk_device_options,
    resources: Arc<GpuResources>,
    controls: &Arc<Controls>,
) -> Result<Device, Status> {
    let raw_controls = controls.0.as_ptr();
    let keep = Arc::clone(controls) as Arc<dyn Send + Sync>;
    // SAFETY: the function opens a device, which keeps the controls.
    unsafe {
        Device::open_with(resources, Some(keep), |resources, out| {
            sys::cuzk_test_device_open(memory_bytes, options, resources, raw_controls, out)
        })
    }
}

/// Opens a device of CUDA's runtime, with another runtime in its place.
pub(crate) fn open_cuda(
    ordinal: u32,
    options: &DeviceOptions,
    resources: Arc<GpuResources>,
) -> Result<Device, Status> {
    // SAFETY: the function opens a device with these arguments.
    unsafe {
        Device::open_with(resources, None, |resources, out| {
            sys::cuzk_test_cuda_open(ordinal, &options.raw(), resources, out)
        })
    }
}

/// Returns the number of devices of that runtime.
pub(crate) fn cuda_count() -> Result<u32, Status> {
    // SAFETY: it writes the number if its status is OK.
    unsafe { written(|out| sys::cuzk_test_cuda_count(out)) }
}

/// Makes a call of that runtime fail.
pub(crate) fn fail_cuda(call: u64, error: i32) {
    // SAFETY: it sets atomics.
    unsafe { sys::cuzk_test_cuda_fail(call, error) }
}

/// Returns the counts of that runtime.
pub(crate) fn cuda_seen() -> sys::cuzk_test_cuda_seen {
    // SAFETY: it reads atomics.
    unsafe { sys::cuzk_test_cuda_get_seen() }
}

/// Computes an MSM in G2 on a pool of its own.
pub(crate) fn b_g2_msm_on(
    (threads, throw): (u32, i32),
    resources: &GpuResources,
    bases: &[G2Affine],
    scalars: &[Scalar],
) -> Result<G2Projective, Status> {
    let mut sum = G2Projective::identity();
    // SAFETY: as in `b_g2_msm`; C++ takes the shorter of the two lengths.
    check(&unsafe {
        sys::cuzk_test_b_g2_msm(
            resources.raw(),
            threads,
            throw,
            bases.as_ptr().cast(),
            bases.len(),
            scalars.as_ptr().cast(),
            scalars.len(),
            (&raw mut sum).cast(),
        )
    })?;
    Ok(sum)
}

/// Calls a pool from several threads, and returns the number of tasks that ran.
pub(crate) fn pool(threads: u32, callers: u32, rounds: u32, tasks: u32) -> Result<u64, Status> {
    // SAFETY: it writes the number if its status is OK.
    unsafe { written(|out| sys::cuzk_test_pool(threads, callers, rounds, tasks, out)) }
}

/// Returns the number of long tasks that end before a short one.
pub(crate) fn pool_at_once(tasks: u32) -> Result<u32, Status> {
    // SAFETY: it writes the number if its status is OK.
    unsafe { written(|out| sys::cuzk_test_pool_at_once(tasks, out)) }
}

/// Copies `from` to `to`, which has the same length.
pub(crate) fn copy(to: &mut [u8], from: &[u8], checkpoint: &Checkpoint<'_>) -> Result<(), Status> {
    assert_eq!(to.len(), from.len());
    let checkpoint = callback(checkpoint);
    // SAFETY: both slices have the length, and they and the checkpoint live as long as
    // the call.
    check(&unsafe { sys::cuzk_test_copy(to.as_mut_ptr(), from.as_ptr(), from.len(), checkpoint) })
}

/// Holds all threads of the process's pool until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldPool(NonNull<sys::cuzk_test_held_pool>);

// SAFETY: the C++ object has no thread affinity.
unsafe impl Send for HeldPool {}

impl HeldPool {
    pub(crate) fn new() -> Result<Self, Status> {
        // SAFETY: it makes the object that holds the pool if its status is OK.
        unsafe { made(|out| sys::cuzk_test_pool_hold(out)).map(Self) }
    }
}

impl Drop for HeldPool {
    fn drop(&mut self) {
        // SAFETY: created by `new`, released once.
        unsafe { sys::cuzk_test_pool_release(self.0.as_ptr()) }
    }
}

/// Gives a value to C++'s dealloc thread, or drops it here if the thread takes none.
pub(crate) fn dealloc_in_cpp(value: Box<dyn Send>) -> Result<(), Status> {
    extern "C" fn drop_it(value: *mut c_void) {
        // SAFETY: made below, and given to this function once.
        let value = unsafe { Box::from_raw(value.cast::<Box<dyn Send>>()) };
        // A panic may not unwind into C++.
        drop(catch_unwind(AssertUnwindSafe(|| drop(value))));
    }
    let raw = Box::into_raw(Box::new(value)).cast();
    // SAFETY: the function accepts the value of `raw` on any thread.
    let given = check(&unsafe { sys::cuzk_test_dealloc_value(Some(drop_it), raw) });
    if given.is_err() {
        drop_it(raw);
    }
    given
}

/// Gives C++ values to their dealloc thread, and returns its counts.
pub(crate) fn dealloc(values: u32, free_us: u32) -> Result<sys::cuzk_test_dealloc_seen, Status> {
    // SAFETY: it writes the counts if its status is OK.
    unsafe { written(|out| sys::cuzk_test_dealloc(values, free_us, out)) }
}
