//! The inputs of the partitions that were offered last, until they are sent.
//!
//! An input is made for its digest when it is offered, and is mostly sent right afterwards. The
//! invariant: they take at most [`BYTES_MAX`] bytes. One that is not here is made again.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuzk_core::engine::PartitionId;

/// The room for inputs. A partition of a 32 GiB PoRep has 1.1 MB.
const BYTES_MAX: usize = 32 << 20;

/// The inputs that were made last.
#[derive(Debug, Default)]
pub(super) struct Inputs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The oldest first.
    kept: VecDeque<(PartitionId, Vec<u8>)>,
    bytes: usize,
}

impl Inputs {
    /// Keeps an input, and drops the oldest ones that have no room then.
    pub(super) fn keep(&self, id: PartitionId, input: Vec<u8>) {
        if input.len() > BYTES_MAX {
            return;
        }
        let mut state = self.lock();
        state.bytes += input.len();
        state.kept.push_back((id, input));
        while state.bytes > BYTES_MAX {
            let Some((_, oldest)) = state.kept.pop_front() else {
                return;
            };
            state.bytes -= oldest.len();
        }
    }

    /// Returns an input, which is not kept any more.
    pub(super) fn take(&self, id: PartitionId) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let place = state.kept.iter().position(|(known, _)| *known == id)?;
        let (_, input) = state.kept.remove(place)?;
        state.bytes -= input.len();
        Some(input)
    }

    // Every change is whole before anything that can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(partition: usize) -> PartitionId {
        PartitionId { job: 1, partition }
    }

    #[test]
    fn an_input_is_given_once() {
        let inputs = Inputs::default();
        inputs.keep(id(1), vec![1]);
        inputs.keep(id(2), vec![2; 2]);
        assert_eq!(inputs.take(id(1)), Some(vec![1]));
        assert_eq!(inputs.take(id(1)), None);
        assert_eq!(inputs.lock().bytes, 2);
    }

    #[test]
    fn the_oldest_make_room() {
        let inputs = Inputs::default();
        for number in 0..9 {
            inputs.keep(id(number), vec![0; BYTES_MAX / 4]);
        }
        assert!((0..5).all(|number| inputs.take(id(number)).is_none()));
        assert!((5..9).all(|number| inputs.take(id(number)).is_some()));
        assert_eq!(inputs.lock().bytes, 0);
        inputs.keep(id(10), vec![0; BYTES_MAX + 1]);
        assert_eq!(inputs.take(id(10)), None, "it is too long");
    }
}
