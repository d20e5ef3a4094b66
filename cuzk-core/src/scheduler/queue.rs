//! A bounded queue between two stages of the pipeline, ordered by priority.
//!
//! Not a channel: a consumer takes the most urgent item, not the oldest. The
//! invariants: every item has a sequence number of its own, so no two can take
//! each other's place; the queue never holds more than its capacity; once it is
//! closed nothing enters, and what is inside can still be taken out.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How urgent an item is. A smaller one goes first; among equals the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A block is lost if it is late: WinningPoSt.
    Critical,
    /// A penalty is due if it is late: WindowPoSt.
    High,
    /// Sealing.
    Normal,
    /// Whatever can wait.
    Low,
}

/// Why an item was not taken into a queue; it is given back.
#[derive(Debug, PartialEq, Eq)]
pub enum PushError<T> {
    /// The queue is at its capacity.
    Full(T),
    /// The queue is closed.
    Closed(T),
}

/// A bounded priority queue for any number of producers and consumers.
#[derive(Debug)]
pub struct Queue<T> {
    capacity: usize,
    state: Mutex<State<T>>,
    not_empty: Condvar,
    not_full: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: BTreeMap<(Priority, u64), T>,
    next_sequence: u64,
    closed: bool,
}

impl<T> State<T> {
    fn insert(&mut self, priority: Priority, item: T) {
        self.items.insert((priority, self.next_sequence), item);
        self.next_sequence += 1;
    }
}

impl<T> Queue<T> {
    /// An empty queue for at most `capacity` items, and at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            state: Mutex::new(State {
                items: BTreeMap::new(),
                next_sequence: 0,
                closed: false,
            }),
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
        }
    }

    /// How many items the queue can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many items wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts `items` in together, or none of them.
    ///
    /// # Errors
    /// [`PushError::Full`] when they do not all fit, [`PushError::Closed`].
    pub fn try_push_all(&self, priority: Priority, items: Vec<T>) -> Result<(), PushError<Vec<T>>> {
        let mut state = self.lock();
        if state.closed {
            return Err(PushError::Closed(items));
        }
        if items.len() > self.capacity - state.items.len() {
            return Err(PushError::Full(items));
        }
        for item in items {
            state.insert(priority, item);
        }
        drop(state);
        self.not_empty.notify_all();
        Ok(())
    }

    /// Puts `item` in, waiting for room.
    ///
    /// # Errors
    /// [`PushError::Closed`].
    pub fn push(&self, priority: Priority, item: T) -> Result<(), PushError<T>> {
        let mut state = self
            .not_full
            .wait_while(self.lock(), |state| {
                !state.closed && state.items.len() >= self.capacity
            })
            .unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Err(PushError::Closed(item));
        }
        state.insert(priority, item);
        drop(state);
        self.not_empty.notify_one();
        Ok(())
    }

    /// Takes the most urgent item, waiting for one; none once the queue is
    /// closed and empty.
    pub fn pop(&self) -> Option<T> {
        let mut state = self
            .not_empty
            .wait_while(self.lock(), |state| !state.closed && state.items.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let item = state.items.pop_first().map(|(_, item)| item);
        drop(state);
        self.not_full.notify_one();
        item
    }

    /// Lets nothing more in. Waiting producers get their items back, waiting
    /// consumers what is left and then none.
    pub fn close(&self) {
        self.lock().closed = true;
        self.not_empty.notify_all();
        self.not_full.notify_all();
    }

    /// Takes everything out at once, most urgent first.
    pub fn drain(&self) -> Vec<T> {
        let items = std::mem::take(&mut self.lock().items);
        self.not_full.notify_all();
        items.into_values().collect()
    }

    // Every change under the lock is one step of the map, so a panic elsewhere
    // cannot leave it half done.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn urgent_first_and_the_older_among_equals() {
        let queue = Queue::new(8);
        for (priority, item) in [
            (Priority::Low, "low"),
            (Priority::Normal, "first"),
            (Priority::Normal, "second"),
            (Priority::Critical, "winning"),
        ] {
            queue.push(priority, item).unwrap();
        }
        queue.close();
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["winning", "first", "second", "low"]);
    }

    #[test]
    fn all_or_none_of_a_job_fits() {
        let queue = Queue::new(3);
        queue.try_push_all(Priority::Normal, vec![1, 2]).unwrap();
        assert_eq!(
            queue.try_push_all(Priority::Normal, vec![3, 4]),
            Err(PushError::Full(vec![3, 4]))
        );
        assert_eq!(queue.len(), 2);
        queue.try_push_all(Priority::Normal, vec![3]).unwrap();
    }

    #[test]
    fn closing_wakes_a_waiting_producer_and_consumer() {
        let full = Arc::new(Queue::new(1));
        full.push(Priority::Normal, 1).unwrap();
        let empty = Arc::new(Queue::<u8>::new(1));
        let producer = thread::spawn({
            let full = Arc::clone(&full);
            move || full.push(Priority::Normal, 2)
        });
        let consumer = thread::spawn({
            let empty = Arc::clone(&empty);
            move || empty.pop()
        });
        full.close();
        empty.close();
        assert_eq!(producer.join().unwrap(), Err(PushError::Closed(2)));
        assert_eq!(consumer.join().unwrap(), None);
        assert_eq!(full.pop(), Some(1));
        assert_eq!(full.pop(), None);
    }

    #[test]
    fn many_producers_and_consumers_lose_nothing() {
        let queue = Arc::new(Queue::new(4));
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || std::iter::from_fn(|| queue.pop()).collect::<Vec<u32>>())
            })
            .collect();
        let producers: Vec<_> = (0..4)
            .map(|producer| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    for item in 0..250 {
                        queue.push(Priority::Normal, producer * 250 + item).unwrap();
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().unwrap();
        }
        queue.close();
        let mut taken: Vec<_> = consumers
            .into_iter()
            .flat_map(|consumer| consumer.join().unwrap())
            .collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
    }
}
