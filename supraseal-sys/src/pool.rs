//! The size of the C++ thread pool, which all devices share. The pool itself is in
//! `csrc/pool.cpp`, and is not rayon's.
//!
//! Invariant: the size is decided once per process, by [`set_gpu_threads`] or by the
//! first use, whichever comes first.

use core::num::NonZeroU32;
use std::thread::available_parallelism;

use crate::abi;
use crate::bindings as sys;
use crate::status::{Code, Status};

/// Starts the process-wide pool of [`b_g2_msm`](crate::b_g2_msm) with `threads`
/// threads; 0 means one for each core. A second call with the same number does nothing.
///
/// # Errors
///
/// [`Code::PoolSizeFixed`] if the pool already runs with another number,
/// [`Code::InvalidArgument`] above 4096, [`Code::Exception`] if the system cannot start
/// so many threads.
pub fn set_gpu_threads(threads: u32) -> Result<(), Status> {
    let threads = if threads == 0 { all_cores()? } else { threads };
    abi::set_gpu_threads(threads)
}

/// Returns the number of threads of the pool; `None` before it is started.
#[must_use]
pub fn gpu_threads() -> Option<NonZeroU32> {
    NonZeroU32::new(abi::gpu_threads())
}

/// Starts the pool with its default size if it does not run yet.
pub(crate) fn start_default() -> Result<(), Status> {
    if gpu_threads().is_some() {
        return Ok(());
    }
    match set_gpu_threads(0) {
        // Another thread was first, and its number stays.
        Err(error) if error.code() == Code::PoolSizeFixed => Ok(()),
        result => result,
    }
}

/// Returns the number of cores. It is counted here and not in C++, because Rust's
/// standard library knows the control group's quota and the affinity mask.
fn all_cores() -> Result<u32, Status> {
    let cores = available_parallelism().map_err(|error| {
        Status::new(
            Code::InvalidArgument,
            format!(
                "gpu_threads: 0 means all cores, but their number is unknown ({error}); \
                 set it to a number"
            ),
        )
    })?;
    let threads_max = sys::CUZK_THREADS_MAX.unsigned_abs();
    Ok(u32::try_from(cores.get()).map_or(threads_max, |cores| cores.min(threads_max)))
}
