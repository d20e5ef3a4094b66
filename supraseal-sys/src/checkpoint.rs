//! A closure as the question that C++ asks while it waits.
#![allow(unsafe_code)] // C++ calls it.

use core::ffi::c_void;
use core::ptr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bindings as sys;

/// A question for C++ to ask as long as the reference lives.
pub(crate) fn checkpoint(pass: &&dyn Fn() -> bool) -> sys::cuzk_checkpoint {
    /// # Safety
    ///
    /// `context` points to such a reference, which lives.
    unsafe extern "C" fn ask(context: *mut c_void) -> i32 {
        // SAFETY: the caller promises it.
        let pass = unsafe { &*context.cast::<&dyn Fn() -> bool>() };
        // What panics does not go on; nor does it unwind through C++.
        catch_unwind(AssertUnwindSafe(pass)).unwrap_or(false).into()
    }
    sys::cuzk_checkpoint {
        pass: Some(ask),
        context: ptr::from_ref(pass).cast_mut().cast(),
    }
}
