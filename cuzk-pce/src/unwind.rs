//! Ends that unwind, where code in between has no way to hand on an error.
//!
//! Not panics: nothing is printed and no hook runs. The invariant: what somebody else
//! unwinds with goes on as it came.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Whether unwinding does not end the process.
pub(crate) const CAN_UNWIND: bool = cfg!(panic = "unwind");

/// Unwinds to whoever catches an `E`.
pub(crate) fn unwind_with<E: Any + Send>(end: E) -> ! {
    resume_unwind(Box::new(end))
}

/// What `work` returns, or the `E` that it unwound with. What it had in hand is to be
/// dropped then.
pub(crate) fn catch<T, E: Any>(work: impl FnOnce() -> T) -> Result<T, E> {
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
