//! C++ frees its buffers without a bound, if the process wants it so.
//!
//! Not beside other tests of deallocation: the choice is the whole process's.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use cuzk_bounded::BoundedReceiver;
use supraseal_sys::dealloc::{flush, set_cpp_unbounded, stats};
use supraseal_sys::test_hooks;

/// Its drop says that it has begun, and ends when it is told to.
struct Held {
    begun: Sender<()>,
    end: Receiver<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.begun.send(());
        let _ = self.end.recv_bounded();
    }
}

/// Long enough for a thread to start on any machine.
const LONG: Duration = Duration::from_secs(60);

/// Gives two values to C++. Returns true if both are being freed at the same time.
fn two_are_freed_at_once(within: Duration) -> bool {
    let (begun, begins) = channel();
    let ends = [(); 2].map(|()| {
        let (end, ended) = channel();
        let begun = begun.clone();
        test_hooks::dealloc_in_cpp(Held { begun, end: ended }).unwrap();
        end
    });
    begins.recv_timeout(LONG).unwrap();
    let both = begins.recv_timeout(within).is_ok();
    drop(ends);
    flush();
    both
}

#[test]
fn unbounded_values_are_freed_at_once_and_others_in_turn() {
    assert!(!two_are_freed_at_once(Duration::from_millis(50)));
    set_cpp_unbounded(true);
    let freed = stats().cpp.freed;
    assert!(two_are_freed_at_once(LONG));
    let after = stats().cpp;
    assert_eq!((after.freed, after.freeing), (freed + 2, 0));
    set_cpp_unbounded(false);
    assert!(!two_are_freed_at_once(Duration::from_millis(50)));
}
