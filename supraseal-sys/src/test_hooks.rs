//! Access for tests to the inside of the C++ side: pools of a chosen size, and failures
//! on demand. Compiled only with the feature `test-hooks`; not for use by other crates.
#![allow(missing_docs, clippy::missing_errors_doc)]

use blstrs::{G2Affine, G2Projective, Scalar};
use cuzk_memory::Checkpoint;

use crate::bindings as sys;
use crate::hooks;
use crate::resources::GpuResources;
use crate::status::Status;

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
    hooks::b_g2_msm_on((threads, what), resources, bases, scalars)
}

/// Calls one pool of `threads` threads from `callers` threads at once, each `rounds`
/// times with `tasks` tasks. The first task of every third caller throws. Returns the
/// number of tasks of the other callers that ran.
pub fn pool(threads: u32, callers: u32, rounds: u32, tasks: u32) -> Result<u64, Status> {
    hooks::pool(threads, callers, rounds, tasks)
}

/// Returns the number of `tasks` long tasks that end before a short one, on a pool of
/// one thread. The short task is called when the first long one begins.
pub fn pool_at_once(tasks: u32) -> Result<u32, Status> {
    hooks::pool_at_once(tasks)
}

/// Copies `from` to `to`, which has the same length, in the way that points are copied
/// for a device.
pub fn copy(to: &mut [u8], from: &[u8], checkpoint: &Checkpoint<'_>) -> Result<(), Status> {
    crate::pool::start_default()?;
    hooks::copy(to, from, checkpoint)
}

/// Holds all threads of the process's pool until it is dropped.
#[derive(Debug)]
pub struct HeldPool {
    _held: hooks::HeldPool,
}

impl HeldPool {
    /// Waits until the threads have ended their present work, then holds them.
    pub fn new() -> Result<Self, Status> {
        crate::pool::start_default()?;
        let held = hooks::HeldPool::new()?;
        Ok(Self { _held: held })
    }
}

/// Gives a value to C++'s dealloc thread, which drops it under `dealloc_mtx`.
pub fn dealloc_in_cpp<T: Send + 'static>(value: T) -> Result<(), Status> {
    hooks::dealloc_in_cpp(Box::new(value))
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
    let seen = hooks::dealloc(values, free_us)?;
    Ok(DeallocSeen {
        concurrent_max: seen.concurrent_max,
        freed_by_givers: seen.freed_by_givers,
    })
}
