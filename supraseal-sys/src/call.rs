//! Calls of the C ABI: the values that they write, the objects that they make, and the
//! checkpoints that they ask.
#![allow(unsafe_code)] // Takes C++'s word for what it has written.

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
