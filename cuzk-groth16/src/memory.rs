//! The pool that the memory of partitions comes from.

use std::sync::Arc;

use cuzk_memory::{BufferPool, Dealloc};
use supraseal_sys::dealloc::dealloc_async;

/// Returns an empty pool that keeps at most `kept_bytes_max` bytes. Where `dealloc` is
/// [`Dealloc::Serial`], the process's one thread for that frees the buffers.
#[must_use]
pub fn buffer_pool(dealloc: Dealloc, kept_bytes_max: u64) -> Arc<BufferPool> {
    BufferPool::new(dealloc, kept_bytes_max, dealloc_async)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use super::*;
    use cuzk_bounded::BoundedReceiver;

    /// Sends the name of the thread on which it is dropped.
    struct Tells(Sender<Option<String>>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let thread = thread::current();
            drop(self.0.send(thread.name().map(str::to_owned)));
        }
    }

    #[test]
    fn serial_buffers_are_freed_on_the_dealloc_thread() {
        let (tells, told) = channel();
        buffer_pool(Dealloc::Serial, 0).drop_later(Tells(tells), 0);
        assert_eq!(
            told.recv_bounded().unwrap().as_deref(),
            Some("cuzk-dealloc")
        );
    }
}
