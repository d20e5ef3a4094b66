//! A panic as an error.
//!
//! Not a way to ignore defects: the error asks its reader to report it. The
//! invariant: the work of one job never ends a thread that others need.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Error, Result};

/// Runs `work`. A panic becomes [`Error::Internal`] of `stage`; a vector of the
/// witness that got no memory unwinds, too, and becomes [`Error::NoMemory`].
pub(crate) fn catch_panic<T>(stage: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match panic.downcast_ref() {
        Some(no_memory) => Err(Error::NoMemory(*no_memory)),
        None => Err(Error::Internal {
            stage,
            problem: message(&*panic),
        }),
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        let message = |work: fn() -> Result<()>| match catch_panic("test", work) {
            Err(Error::Internal { stage, problem }) => (stage, problem),
            other => panic!("{other:?}"),
        };
        assert_eq!(message(|| panic!("why")), ("test", "why".to_owned()));
        let formatted = message(|| panic!("{} and {}", 1, 2));
        assert_eq!(formatted.1, "1 and 2");
        let other = message(|| std::panic::panic_any(7_u8));
        assert_eq!(other.1, "a panic without a message");
        assert!(catch_panic("test", || Ok(())).is_ok());
    }
}
