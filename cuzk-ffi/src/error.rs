//! The result of a call, and the last error of each thread.
//!
//! Not the errors themselves, which are the engine's. The invariants:
//!
//! * Each function returns through [`enter`], so no panic leaves it.
//! * A failure leaves its code and its message with the thread that made the call.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuzk_core::Error;
use cuzk_core::error::ErrorCode;

/// The call succeeded.
pub const CUZK_OK: i32 = 0;

/// The job has not ended. This is not an error.
pub const CUZK_PENDING: i32 = -1;

/// An argument cannot be used.
pub const CUZK_ARGUMENT: i32 = 1;

/// The configuration cannot be used.
pub const CUZK_CONFIGURATION: i32 = 5;

/// The request cannot be proved.
pub const CUZK_REQUEST: i32 = 6;

/// Groth16 parameters are missing.
pub const CUZK_PARAMETERS_MISSING: i32 = 7;

/// The queue has no room. Submit again when a job has ended.
pub const CUZK_BUSY: i32 = 18;

/// The proof would come too late.
pub const CUZK_LATE: i32 = 24;

/// The job was cancelled, or its engine ended.
pub const CUZK_ENDED: i32 = 25;

/// A defect of the library. Please report it.
pub const CUZK_INTERNAL: i32 = 27;

/// An error of a call.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ErrorCode,
    message: CString,
}

thread_local! {
    /// The last error of this thread.
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

impl Failure {
    fn new(code: ErrorCode, message: &str) -> Self {
        // A message may quote bytes of the caller's.
        let text = code.after(message).replace('\0', "\u{fffd}");
        Self {
            code,
            message: CString::new(text).unwrap_or_default(),
        }
    }

    /// The error of an argument that cannot be used.
    pub(crate) fn argument(message: &str) -> Self {
        Self::new(ErrorCode::Argument, message)
    }

    fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::internal(text.unwrap_or("a panic without a message"))
    }

    /// The error of something that must not happen.
    pub(crate) fn internal(problem: &str) -> Self {
        let message = format!("internal error in the C ABI: {problem}; please report it");
        Self::new(ErrorCode::Internal, &message)
    }

    /// The error of a call that the system refused.
    pub(crate) fn system(message: &str) -> Self {
        Self::new(ErrorCode::Failed, message)
    }

    fn number(&self) -> i32 {
        i32::from(self.code.number())
    }

    /// Leaves the error with this thread.
    fn leave(self) {
        // A thread that ends has no place for it any more.
        let _ = LAST.try_with(|last| last.replace(Some(self)));
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self::new(ErrorCode::of(error), &error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// Runs the work of a call and returns its code. An error, or a panic, is left with the
/// thread.
pub(crate) fn enter(work: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(code)) => return code,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::of_panic(&*panic),
    };
    let number = failure.number();
    failure.leave();
    number
}

/// Returns the code of the last call on this thread that failed; 0 if none has. A call that
/// succeeds does not change it.
///
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn cuzk_error_code() -> i32 {
    let code = LAST.try_with(|last| last.borrow().as_ref().map_or(0, Failure::number));
    code.unwrap_or(0)
}

/// Returns the message of the last call on this thread that failed: what is wrong, where, and
/// what to do. It ends with its code in brackets, such as `[CUZK-0007]`. An empty text if no
/// call has failed. The text is UTF-8 and ends with a NUL.
///
/// The library owns the text. It is valid until the next call on this thread that fails, and
/// until the thread ends. Any thread may call the function at any time.
#[unsafe(no_mangle)]
pub extern "C" fn cuzk_lend_error() -> *const c_char {
    let none = c"".as_ptr();
    let text = LAST.try_with(|last| {
        let last = last.borrow();
        last.as_ref()
            .map_or(none, |failure| failure.message.as_ptr())
    });
    text.unwrap_or(none)
}

/// Returns the library's version, such as `0.1.0`. The text ends with a NUL.
///
/// The library owns the text, which is valid for ever. Any thread may call the function at any
/// time.
#[unsafe(no_mangle)]
pub extern "C" fn cuzk_lend_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "they test what becomes of a panic")]

    use std::ffi::CStr;

    use super::*;
    use cuzk_bounded::BoundedJoin;

    fn last() -> (i32, String) {
        // SAFETY: the text ends with a NUL, and no call fails meanwhile.
        let text = unsafe { CStr::from_ptr(cuzk_lend_error()) };
        (cuzk_error_code(), text.to_str().unwrap_or("").to_owned())
    }

    #[test]
    fn a_panic_is_an_error_of_the_thread_that_called() {
        let code = enter(|| panic!("why"));
        assert_eq!(code, CUZK_INTERNAL);
        let (code, text) = last();
        assert_eq!(code, CUZK_INTERNAL);
        assert!(
            text.contains("why") && text.ends_with("[CUZK-0027]"),
            "{text}"
        );
        assert_eq!(enter(|| std::panic::panic_any(7_u8)), CUZK_INTERNAL);
        assert!(last().1.contains("without a message"));
        assert_eq!(enter(|| Ok(CUZK_OK)), CUZK_OK);
        assert_eq!(last().0, CUZK_INTERNAL);
        let elsewhere = std::thread::spawn(last).join_bounded();
        assert!(matches!(elsewhere, Ok((0, text)) if text.is_empty()));
    }

    #[test]
    fn a_message_with_a_nul_is_whole() {
        assert_eq!(enter(|| Err(Failure::argument("a\0b"))), CUZK_ARGUMENT);
        let text = last().1;
        assert!(text.starts_with("a\u{fffd}b"), "{text}");
        assert!(text.ends_with(" [CUZK-0001]"), "{text}");
    }

    #[test]
    fn the_constants_are_the_codes() {
        for (constant, code) in [
            (CUZK_ARGUMENT, ErrorCode::Argument),
            (CUZK_CONFIGURATION, ErrorCode::Configuration),
            (CUZK_REQUEST, ErrorCode::Request),
            (CUZK_PARAMETERS_MISSING, ErrorCode::ParametersMissing),
            (CUZK_BUSY, ErrorCode::Busy),
            (CUZK_LATE, ErrorCode::Late),
            (CUZK_ENDED, ErrorCode::Ended),
            (CUZK_INTERNAL, ErrorCode::Internal),
        ] {
            assert_eq!(constant, i32::from(code.number()), "{code}");
        }
    }
}
