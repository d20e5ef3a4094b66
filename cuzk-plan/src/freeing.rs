//! The memory of ended partitions, which is freed after them.
//!
//! The invariant: if freeing is serial, one partition's memory is freed at a time.

use std::collections::VecDeque;

use crate::machine::Dealloc;
use crate::recipe::Stage;

/// The memory that waits to be freed.
#[derive(Debug)]
pub(crate) struct Freeing {
    is_serial: bool,
    running: usize,
    waiting: VecDeque<Stage>,
}

impl Freeing {
    /// Returns nothing to free.
    pub(crate) fn new(dealloc: Dealloc) -> Self {
        Self {
            is_serial: dealloc == Dealloc::Serial,
            running: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Adds the memory of a partition. Its freeing is this stage.
    pub(crate) fn add(&mut self, stage: Stage) {
        if stage.alone_s > 0.0 {
            self.waiting.push_back(stage);
        }
    }

    /// Returns the next freeing that may begin now.
    pub(crate) fn begin_next(&mut self) -> Option<Stage> {
        if self.is_serial && self.running > 0 {
            return None;
        }
        let stage = self.waiting.pop_front()?;
        self.running += 1;
        Some(stage)
    }

    /// Records that a freeing has ended.
    pub(crate) fn end(&mut self) {
        self.running -= 1;
    }
}
