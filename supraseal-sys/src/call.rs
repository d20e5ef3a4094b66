//! Calls of the C ABI: what they write, what they make, and what they ask.
#![allow(unsafe_code)] // Takes C++'s word for what it has written.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bindings as sys;
use crate::status::{Status, check};

/// What `call` writes.
///
/// # Safety
///
/// `call` writes a value if its status is OK.
pub(crate) unsafe fn written<T>(
    call: impl FnOnce(*mut T) -> sys::cuzk_status,
) -> Result<T, Status> {
    let mut out = MaybeUninit::uninit();
    check(&call(out.as_mut_ptr()))?;
    // SAFETY: the status is OK, and then the caller promises it.
    Ok(unsafe { out.assume_init() })
}

/// The object that `call` makes.
///
/// # Safety
///
/// `call` writes the address of an object if its status is OK; C++'s `new` returns
/// no other.
pub(crate) unsafe fn made<T>(
    call: impl FnOnce(*mut *mut T) -> sys::cuzk_status,
) -> Result<NonNull<T>, Status> {
    // SAFETY: the caller promises both: that it is written, and that it is not null.
    unsafe { written(call).map(|raw| NonNull::new_unchecked(raw)) }
}

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
