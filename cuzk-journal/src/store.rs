//! Calls into the embedded store, which can panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::Database;

use crate::change::Totals;
use crate::{JournalError, Usage};

/// A store that was checked, with its totals.
pub(crate) struct Opened {
    pub(crate) database: Database,
    pub(crate) totals: Totals,
    pub(crate) usage: Usage,
}

/// Closes a store.
pub(crate) fn close(database: Option<Database>) {
    // An error is found and reported when the store is opened again.
    let _ = guard(|| {
        drop(database);
        Ok(())
    });
}

/// Runs a call into the store, and turns a panic into an error. The store asserts
/// properties of its pages. The pages are input, and a damaged page can make it panic.
pub(crate) fn guard<T>(call: impl FnOnce() -> Result<T, JournalError>) -> Result<T, JournalError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned());
        Err(JournalError::Store {
            what: format!(
                "the store panicked: {}",
                message.as_deref().unwrap_or("without a message")
            ),
        })
    })
}
