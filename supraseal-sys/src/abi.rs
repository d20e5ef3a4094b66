//! The calls of the C ABI, as safe functions.
//!
//! Not what they are for: that is said where they are used. This file has the values that calls
//! write, the checkpoints that they ask, and the calls without objects. `resources.rs` and
//! `device/objects.rs` own objects of C++, and have their calls; `hooks.rs` has those for tests.
//!
//! Invariant: C++ writes a result if its status is OK, and keeps no pointer that is lent to a
//! call of this file.
#![allow(unsafe_code)] // Calls C++.

use core::ffi::c_void;
use core::mem::{self, MaybeUninit};
use core::ptr::{self, NonNull};
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuzk_memory::Checkpoint;

use crate::bindings as sys;
use crate::status::{Status, check};

/// Returns the value that `call` writes.
///
/// # Safety
///
/// `call` writes a value if its status is OK.
pub(crate) unsafe fn written<T>(
    call: impl FnOnce(*mut T) -> sys::cuzk_status,
) -> Result<T, Status> {
    let mut out = MaybeUninit::uninit();
    check(&call(out.as_mut_ptr()))?;
    // SAFETY: the status is OK, and the caller promises that a value is written then.
    Ok(unsafe { out.assume_init() })
}

/// Returns the object that `call` makes.
///
/// # Safety
///
/// `call` writes the address of an object if its status is OK; C++'s `new` returns no
/// null.
pub(crate) unsafe fn made<T>(
    call: impl FnOnce(*mut *mut T) -> sys::cuzk_status,
) -> Result<NonNull<T>, Status> {
    // SAFETY: the caller promises that the pointer is written and is not null.
    unsafe { written(call).map(|raw| NonNull::new_unchecked(raw)) }
}

/// Returns a callback with which C++ asks if a call goes on. It is valid as long as the
/// reference lives. C++ asks on threads that wait or that others wait for, so the callback
/// answers at once and never pauses.
pub(crate) fn callback(checkpoint: &Checkpoint<'_>) -> sys::cuzk_checkpoint {
    /// # Safety
    ///
    /// `context` points to a checkpoint that lives.
    unsafe extern "C" fn ask(context: *mut c_void) -> i32 {
        // SAFETY: the caller promises it.
        let checkpoint = unsafe { &*context.cast::<Checkpoint<'_>>() };
        let goes_on = || !checkpoint.is_cancelled();
        // A panic counts as "stop". It must not unwind through C++. Dropping its
        // payload could panic again, so the payload is leaked.
        let answer = catch_unwind(AssertUnwindSafe(goes_on)).map_err(mem::forget);
        answer.unwrap_or(false).into()
    }
    sys::cuzk_checkpoint {
        pass: Some(ask),
        context: ptr::from_ref(checkpoint).cast_mut().cast(),
    }
}

/// Starts the pool with `threads` threads.
pub(crate) fn set_gpu_threads(threads: u32) -> Result<(), Status> {
    // SAFETY: no pointers are involved.
    check(&unsafe { sys::cuzk_gpu_threads_set(threads) })
}

/// Returns the number of threads of the pool; 0 before it is started.
pub(crate) fn gpu_threads() -> u32 {
    // SAFETY: no pointers are involved.
    unsafe { sys::cuzk_gpu_threads() }
}

/// Returns the most that an MSM in G2 allocates.
pub(crate) fn b_g2_msm_scratch(num_scalars: usize, threads: u32) -> sys::cuzk_msm_scratch {
    // SAFETY: no pointers are involved.
    unsafe { sys::cuzk_b_g2_msm_scratch(num_scalars, threads) }
}

/// Returns the number of CUDA devices.
pub(crate) fn device_count() -> Result<u32, Status> {
    // SAFETY: it writes the number if its status is OK.
    unsafe { written(|out| sys::cuzk_device_count(out)) }
}

/// Plans the memory of a device for a circuit.
pub(crate) fn device_plan(
    shape: &sys::cuzk_circuit_shape,
    options: &sys::cuzk_device_options,
) -> Result<sys::cuzk_device_plan, Status> {
    // SAFETY: both live as long as the call; the plan is written if the status is OK.
    unsafe { written(|out| sys::cuzk_device_make_plan(shape, options, out)) }
}

/// Returns the time of C++'s clock, in nanoseconds.
pub(crate) fn clock_ns() -> u64 {
    // SAFETY: no pointers are involved.
    unsafe { sys::cuzk_clock_ns() }
}

/// Decides how C++ frees its buffers.
pub(crate) fn set_dealloc_unbounded(unbounded: bool) {
    // SAFETY: no pointers are involved.
    unsafe { sys::cuzk_dealloc_set_unbounded(unbounded) }
}

/// Waits until C++ has freed its buffers.
pub(crate) fn flush_dealloc() {
    // SAFETY: no pointers are involved.
    unsafe { sys::cuzk_dealloc_flush() }
}

/// Makes the system's allocator give back unused pages.
pub(crate) fn trim_heap() {
    // SAFETY: no pointers are involved.
    unsafe { sys::cuzk_dealloc_trim_heap() }
}

/// Returns the counts of C++'s buffers.
pub(crate) fn dealloc_stats() -> sys::cuzk_dealloc_stats {
    // SAFETY: no pointers are involved.
    unsafe { sys::cuzk_dealloc_get_stats() }
}

/// Lets this thread give way to others.
pub(crate) fn give_way(nice: i32) {
    // SAFETY: no pointers are involved.
    unsafe { sys::cuzk_dealloc_give_way(nice) }
}

#[cfg(test)]
mod tests {
    use cuzk_memory::NEVER_STOP;

    use super::*;

    fn ask(is_cancelled: &Checkpoint<'_>) -> i32 {
        let checkpoint = callback(is_cancelled);
        // SAFETY: the context is the checkpoint, which lives.
        unsafe { (checkpoint.pass.unwrap())(checkpoint.context) }
    }

    #[test]
    fn an_answer_is_passed_on() {
        let cancelled = Checkpoint::asking(|| true);
        assert_eq!([ask(&NEVER_STOP), ask(&cancelled)], [1, 0]);
    }

    /// Unwinding into C++ would end the process.
    #[test]
    fn what_panics_twice_stops_and_does_not_unwind() {
        struct Again;
        impl Drop for Again {
            fn drop(&mut self) {
                panic!("as a test asks");
            }
        }
        let panics = Checkpoint::asking(|| std::panic::panic_any(Again));
        assert_eq!(ask(&panics), 0);
    }
}
