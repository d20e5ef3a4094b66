//! Calls into the embedded store, which can panic.
//!
//! The invariant: a panic of the store is an error of the journal. The process's panic
//! hook does not hear of it, so nothing is printed beside that error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::thread;

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

thread_local! {
    /// True while this thread is in a call into the store.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Has the panic hook leave out panics of guarded calls.
fn quiet_hook() {
    static ONCE: Once = Once::new();
    // A hook cannot be set by a thread that panics.
    if thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                others(panic);
            }
        }));
    });
}

/// Marks the thread as guarded until it is dropped.
struct Guarded {
    before: bool,
}

impl Guarded {
    fn begin() -> Self {
        Self {
            before: IS_GUARDED.replace(true),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        IS_GUARDED.set(self.before);
    }
}

/// Runs a call into the store, and turns a panic into an error. The store asserts
/// properties of its pages. The pages are input, and a damaged page can make it panic.
pub(crate) fn guard<T>(call: impl FnOnce() -> Result<T, JournalError>) -> Result<T, JournalError> {
    quiet_hook();
    let guarded = Guarded::begin();
    let called = catch_unwind(AssertUnwindSafe(call));
    drop(guarded);
    called.unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned());
        Err(JournalError::store_says(format!(
            "the store panicked: {}",
            message.as_deref().unwrap_or("without a message")
        )))
    })
}
