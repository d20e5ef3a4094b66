//! Errors that unwind, through code that cannot return an error.
//!
//! They are no panics: nothing is printed and no hook runs. Invariant: a payload of another
//! type goes on as it came.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// True if the program was built to unwind. Otherwise unwinding ends the process.
pub const CAN_UNWIND: bool = cfg!(panic = "unwind");

/// Unwinds to the innermost [`catch`] of an `E`.
pub fn unwind_with<E: Any + Send>(end: E) -> ! {
    resume_unwind(Box::new(end))
}

/// Runs `work`, and returns its value.
///
/// # Errors
/// The `E` with which `work` unwound. Drop everything that it changed.
pub fn catch<T, E: Any>(work: impl FnOnce() -> T) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|end| match end.downcast::<E>() {
        Ok(end) => *end,
        Err(other) => resume_unwind(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Expected(u8);

    #[test]
    fn what_is_expected_is_caught_and_everything_else_goes_on() {
        assert_eq!(catch::<_, Expected>(|| 7), Ok(7));
        assert_eq!(
            catch::<(), _>(|| unwind_with(Expected(7))),
            Err(Expected(7))
        );
        let other = || catch::<(), Expected>(|| unwind_with("another's"));
        let went_on = catch_unwind(other).unwrap_err();
        assert_eq!(went_on.downcast_ref(), Some(&"another's"));
    }
}
