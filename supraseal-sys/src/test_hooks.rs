//! Access for tests to the inside of the C++ side: pools of a chosen size, and failures
//! on demand. Compiled only with the feature `test-hooks`; not for use by other crates.
#![allow(unsafe_code)] // Passes slices to C++.
#![allow(missing_docs, clippy::missing_errors_doc)]

use core::ffi::c_void;
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};

use blstrs::{G2Affine, G2Projective, Scalar};
use cuzk_memory::Checkpoint;
use group::Group;

use crate::bindings as sys;
use crate::call::{callback, made, written};
use crate::resources::GpuResources;
use crate::status::{Status, check};

/// The value that a worker throws before its first piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throw {
    Nothing,
    RuntimeError,
    BadAlloc,
    Int,
}

/// Computes [`b_g2_msm`](crate::b_g2_msm) on a pool of its own with `threads` threads.
pub fn b_g2_msm_on(
    threads: u32,
    throw: Throw,
    resources: &GpuResources,
    bases: &[G2Affine],
    scalars: &[Scalar],
) -> Result<G2Projective, Status> {
    let what = match throw {
        Throw::Nothing => sys::CUZK_TEST_THROW_NOTHING,
        Throw::RuntimeError => sys::CUZK_TEST_THROW_RUNTIME_ERROR,
        Throw::BadAlloc => sys::CUZK_TEST_THROW_BAD_ALLOC,
        Throw::Int => sys::CUZK_TEST_THROW_INT,
    };
    let mut sum = G2Projective::identity();
    // SAFETY: as in `b_g2_msm`; C++ takes the shorter of the two lengths.
    check(&unsafe {
        sys::cuzk_test_b_g2_msm(
            resources.raw(),
            threads,
            what,
            bases.as_ptr().cast(),
            bases.len(),
            scalars.as_ptr().cast(),
            scalars.len(),
            (&raw mut sum).cast(),
        )
    })?;
    Ok(sum)
}

/// Calls one pool of `threads` threads from `callers` threads at once, each `rounds`
/// times with `tasks` tasks. The first task of every third caller throws. Returns the
/// number of tasks of the other callers that ran.
pub fn pool(threads: u32, callers: u32, rounds: u32, tasks: u32) -> Result<u64, Status> {
    // SAFETY: it writes the number if its status is OK.
    unsafe { written(|out| sys::cuzk_test_pool(threads, callers, rounds, tasks, out)) }
}

/// Returns the number of `tasks` long tasks that end before a short one, on a pool of
/// one thread. The short task is called when the first long one begins.
pub fn pool_at_once(tasks: u32) -> Result<u32, Status> {
    // SAFETY: it writes the number if its status is OK.
    unsafe { written(|out| sys::cuzk_test_pool_at_once(tasks, out)) }
}

/// Copies `from` to `to`, which has the same length, in the way that points are copied
/// for a device.
pub fn copy(to: &mut [u8], from: &[u8], checkpoint: &Checkpoint<'_>) -> Result<(), Status> {
    assert_eq!(to.len(), from.len());
    crate::pool::start_default()?;
    let checkpoint = callback(checkpoint);
    // SAFETY: both slices have the length, and they and the checkpoint live as long as
    // the call.
    check(&unsafe { sys::cuzk_test_copy(to.as_mut_ptr(), from.as_ptr(), from.len(), checkpoint) })
}

/// Holds all threads of the process's pool until it is dropped.
#[derive(Debug)]
pub struct HeldPool(NonNull<sys::cuzk_test_held_pool>);

// SAFETY: the C++ object has no thread affinity.
unsafe impl Send for HeldPool {}

impl HeldPool {
    /// Waits until the threads have ended their present work, then holds them.
    pub fn new() -> Result<Self, Status> {
        crate::pool::start_default()?;
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

/// Gives a value to C++'s dealloc thread, which drops it under `dealloc_mtx`.
pub fn dealloc_in_cpp<T: Send + 'static>(value: T) -> Result<(), Status> {
    extern "C" fn drop_it(value: *mut c_void) {
        // SAFETY: made below, and given to this function once.
        let value = unsafe { Box::from_raw(value.cast::<Box<dyn Send>>()) };
        // A panic may not unwind into C++.
        drop(catch_unwind(AssertUnwindSafe(|| drop(value))));
    }
    let value: Box<dyn Send> = Box::new(value);
    let raw = Box::into_raw(Box::new(value)).cast();
    // SAFETY: the function accepts the value of `raw` on any thread.
    let given = check(&unsafe { sys::cuzk_test_dealloc_value(Some(drop_it), raw) });
    if given.is_err() {
        drop_it(raw);
    }
    given
}

/// The counts of C++ values that were given to the dealloc thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeallocSeen {
    /// The most values that were being freed at one time.
    pub concurrent_max: u32,
    /// The number of values that the giving thread freed itself.
    pub freed_by_givers: u32,
}

/// Gives C++ values to their dealloc thread, from four threads. Each value takes
/// `free_us` to free.
pub fn dealloc(values: u32, free_us: u32) -> Result<DeallocSeen, Status> {
    // SAFETY: it writes the counts if its status is OK.
    let seen = unsafe { written(|out| sys::cuzk_test_dealloc(values, free_us, out))? };
    Ok(DeallocSeen {
        concurrent_max: seen.concurrent_max,
        freed_by_givers: seen.freed_by_givers,
    })
}
