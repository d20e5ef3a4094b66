//! A bounded queue between two stages of the pipeline, ordered by rank.
//!
//! Unlike a channel, it gives a consumer the most urgent item, not the oldest. The
//! invariants:
//!
//! * Each item has a sequence number of its own, so no item can overwrite another.
//! * The queue never holds more than its capacity, apart from items that are put in at
//!   once.
//! * After closing nothing enters, and the items inside can still be taken out.

use std::collections::BTreeMap;
use std::fmt;

use crate::priority::Rank;
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

/// The error of a closed queue, with the item that did not enter.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed<T>(pub T);

/// A bounded queue for any number of producers and consumers.
pub struct Queue<T> {
    capacity: usize,
    state: Mutex<State<T>>,
    not_empty: Condvar,
    not_full: Condvar,
}

struct State<T> {
    items: BTreeMap<(Rank, u64), T>,
    next_sequence: u64,
    closed: bool,
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl<T> Queue<T> {
    /// Returns an empty queue for at most `capacity` items, and at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let state = State {
            items: BTreeMap::new(),
            next_sequence: 0,
            closed: false,
        };
        Self {
            capacity: capacity.max(1),
            state: Mutex::new(state),
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
        }
    }

    /// Returns the number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Returns true if there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for room and puts `item` in.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn push(&self, rank: Rank, item: T) -> Result<(), Closed<T>> {
        let mut state = self.lock();
        while !state.closed && state.items.len() >= self.capacity {
            state = wait(&self.not_full, state);
        }
        self.insert(state, rank, item)
    }

    /// Puts `item` in, whether or not there is room. For items that must not wait
    /// behind less urgent ones, and whose number is bounded elsewhere.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn push_at_once(&self, rank: Rank, item: T) -> Result<(), Closed<T>> {
        self.insert(self.lock(), rank, item)
    }

    fn insert(
        &self,
        mut state: MutexGuard<'_, State<T>>,
        rank: Rank,
        item: T,
    ) -> Result<(), Closed<T>> {
        if state.closed {
            return Err(Closed(item));
        }
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        state.items.insert((rank, sequence), item);
        drop(state);
        // Wakes all consumers: a single one might not take this item.
        self.not_empty.notify_all();
        Ok(())
    }

    /// Waits for an item and takes the most urgent one. Returns none once the queue is
    /// closed and empty.
    pub fn pop(&self) -> Option<T> {
        self.pop_if(|_| true)
    }

    /// Takes an item like [`Queue::pop`], but only one for which `takes` returns true.
    /// The first such item is taken. A caller that changes the answers of `takes` must
    /// call [`Queue::wake`] afterwards.
    pub fn pop_if(&self, mut takes: impl FnMut(&T) -> bool) -> Option<T> {
        let mut state = self.lock();
        loop {
            let taken = self.take(&mut state, &mut takes);
            if taken.is_some() {
                return taken;
            }
            if state.closed && state.items.is_empty() {
                return None;
            }
            state = wait(&self.not_empty, state);
        }
    }

    /// Takes an item like [`Queue::pop_if`], or returns none if no item is taken now. A
    /// simulation calls it, which has one thread and must not wait.
    pub fn try_pop_if(&self, takes: impl FnMut(&T) -> bool) -> Option<T> {
        self.take(&mut self.lock(), takes)
    }

    fn take(&self, state: &mut State<T>, mut takes: impl FnMut(&T) -> bool) -> Option<T> {
        let mut items = state.items.iter();
        let (&place, _) = items.find(|(_, item)| takes(item))?;
        let item = state.items.remove(&place)?;
        self.not_full.notify_one();
        self.wake_if_over(state);
        Some(item)
    }

    /// Calls `visit` with each item, the most urgent first. It is called under the lock.
    pub fn visit(&self, visit: impl FnMut(&T)) {
        self.lock().items.values().for_each(visit);
    }

    /// Returns true if a producer would not wait for room.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.len() < self.capacity
    }

    /// Makes each waiting consumer examine the items again.
    pub fn wake(&self) {
        drop(self.lock());
        self.not_empty.notify_all();
    }

    /// Removes the items for which `keep` returns false, and returns them.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut state = self.lock();
        let items = std::mem::take(&mut state.items);
        let (kept, out): (BTreeMap<_, _>, BTreeMap<_, _>) =
            items.into_iter().partition(|(_, item)| keep(item));
        state.items = kept;
        self.not_full.notify_all();
        self.wake_if_over(&state);
        drop(state);
        out.into_values().collect()
    }

    /// Gives each item the rank that `rank_of` returns for it; none leaves it where it is.
    /// Items of one rank keep their order.
    pub fn rerank(&self, mut rank_of: impl FnMut(&mut T) -> Option<Rank>) {
        let mut state = self.lock();
        let items = std::mem::take(&mut state.items);
        let ranked = items.into_iter().map(|((rank, number), mut item)| {
            let rank = rank_of(&mut item).unwrap_or(rank);
            ((rank, number), item)
        });
        state.items = ranked.collect();
        drop(state);
        self.not_empty.notify_all();
    }

    /// Wakes all consumers if the queue is closed and empty. A consumer that takes none
    /// of the remaining items waits until they are gone.
    fn wake_if_over(&self, state: &State<T>) {
        if state.closed && state.items.is_empty() {
            self.not_empty.notify_all();
        }
    }

    /// Refuses new items. Waiting producers get their items back. Waiting consumers get
    /// the remaining items, and then none.
    pub fn close(&self) {
        self.lock().closed = true;
        self.not_empty.notify_all();
        self.not_full.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::priority::{Patience, Priority};
    use cuzk_bounded::BoundedJoin;

    const MOMENTS: Duration = Duration::from_secs(60);

    fn rank(priority: Priority) -> Rank {
        let patience = Patience {
            normal: Duration::from_secs(60),
            low: Duration::from_secs(600),
        };
        Rank::new(priority, Instant::now(), 0, patience)
    }

    #[test]
    fn urgent_first_and_the_older_among_equals() {
        let queue = Queue::new(8);
        let normal = rank(Priority::Normal);
        for (rank, item) in [
            (rank(Priority::Low), "low"),
            (normal, "first"),
            (normal, "second"),
            (rank(Priority::Critical), "winning"),
        ] {
            queue.push(rank, item).unwrap();
        }
        queue.close();
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["winning", "first", "second", "low"]);
    }

    #[test]
    fn what_cannot_wait_goes_in_at_once() {
        let queue = Queue::new(1);
        assert!(queue.is_empty());
        queue.push(rank(Priority::Low), "first").unwrap();
        assert!(!queue.is_empty());
        queue
            .push_at_once(rank(Priority::Critical), "second")
            .unwrap();
        assert_eq!((queue.pop(), queue.len()), (Some("second"), 1));
        queue.close();
        let late = queue.push_at_once(rank(Priority::Critical), "third");
        assert_eq!(late, Err(Closed("third")));
        assert_eq!((queue.pop(), queue.pop()), (Some("first"), None));
    }

    #[test]
    fn closing_wakes_a_waiting_producer_and_consumer() {
        let full = Arc::new(Queue::new(1));
        full.push(rank(Priority::Normal), 1).unwrap();
        let empty = Arc::new(Queue::<u8>::new(1));
        let producer = thread::spawn({
            let full = Arc::clone(&full);
            move || full.push(rank(Priority::Normal), 2)
        });
        let consumer = thread::spawn({
            let empty = Arc::clone(&empty);
            move || empty.pop()
        });
        full.close();
        empty.close();
        assert_eq!(producer.join_bounded().unwrap(), Err(Closed(2)));
        assert_eq!(consumer.join_bounded().unwrap(), None);
        assert_eq!(full.pop(), Some(1));
        assert_eq!(full.pop(), None);
    }

    #[test]
    fn what_is_not_kept_makes_room() {
        let queue = Queue::new(2);
        for item in 0..2 {
            queue.push(rank(Priority::Normal), item).unwrap();
        }
        assert_eq!(queue.retain(|item| *item != 0), [0]);
        queue.push(rank(Priority::Normal), 2).unwrap();
        assert_eq!((queue.pop(), queue.pop()), (Some(1), Some(2)));
    }

    #[test]
    fn a_consumer_takes_the_most_urgent_of_what_it_takes() {
        let queue = Queue::new(4);
        for item in 1..=4 {
            queue.push(rank(Priority::Normal), item).unwrap();
        }
        let even = |item: &u32| item.is_multiple_of(2);
        assert_eq!(queue.pop_if(even), Some(2));
        assert_eq!(queue.pop_if(even), Some(4));
        assert_eq!(queue.try_pop_if(even), None);
        assert_eq!(queue.try_pop_if(|item| *item > 1), Some(3));
        queue.close();
        assert_eq!(queue.pop(), Some(1));
    }

    #[test]
    fn what_is_there_is_seen_in_order() {
        let queue = Queue::new(2);
        let seen = |queue: &Queue<u32>| {
            let mut seen = Vec::new();
            queue.visit(|item| seen.push(*item));
            (seen, queue.has_room())
        };
        queue.push(rank(Priority::Low), 1).unwrap();
        assert_eq!(seen(&queue), (vec![1], true));
        queue.push(rank(Priority::High), 2).unwrap();
        assert_eq!(seen(&queue), (vec![2, 1], false));
    }

    #[test]
    fn items_are_ranked_anew() {
        let queue = Queue::new(4);
        for item in 1..=3 {
            queue.push(rank(Priority::Low), item).unwrap();
        }
        queue.rerank(|item| (*item == 2).then(|| rank(Priority::High)));
        assert_eq!([(); 3].map(|()| queue.pop()), [Some(2), Some(1), Some(3)]);
    }

    /// The consumer has looked at the item once, and waits.
    #[test]
    fn a_consumer_that_changed_its_mind_is_woken() {
        let queue = Arc::new(Queue::new(1));
        let [wants, looked] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (took, taken) = mpsc::channel();
        queue.push(rank(Priority::Normal), 1).unwrap();
        thread::spawn({
            let queue = Arc::clone(&queue);
            let (wants, looked) = (Arc::clone(&wants), Arc::clone(&looked));
            move || {
                took.send(queue.pop_if(|_| {
                    looked.store(true, Ordering::SeqCst);
                    wants.load(Ordering::SeqCst)
                }))
            }
        });
        while !looked.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        // It examines the item under the lock, which it releases by waiting.
        assert_eq!(queue.len(), 1);
        wants.store(true, Ordering::SeqCst);
        queue.wake();
        assert_eq!(taken.recv_timeout(MOMENTS), Ok(Some(1)));
    }

    /// The consumer waits until another one took the last item, or the item was
    /// removed.
    #[test]
    fn a_consumer_that_takes_nothing_ends_with_the_queue() {
        let ends: [fn(&Queue<u32>); 2] = [
            |queue| assert_eq!(queue.pop(), Some(1)),
            |queue| assert_eq!(queue.retain(|_| false), [1]),
        ];
        for end in ends {
            let queue = Arc::new(Queue::new(1));
            queue.push(rank(Priority::Normal), 1).unwrap();
            queue.close();
            let looked = Arc::new(AtomicBool::new(false));
            let (ended, end_of_it) = mpsc::channel();
            thread::spawn({
                let (queue, looked) = (Arc::clone(&queue), Arc::clone(&looked));
                move || {
                    let takes_none = |_: &u32| {
                        looked.store(true, Ordering::SeqCst);
                        false
                    };
                    ended.send(queue.pop_if(takes_none))
                }
            });
            while !looked.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            // It examines the items under the lock, which it releases by waiting.
            end(&queue);
            assert_eq!(end_of_it.recv_timeout(MOMENTS), Ok(None));
        }
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
                let rank = rank(Priority::Normal);
                thread::spawn(move || {
                    for item in 0..250 {
                        queue.push(rank, producer * 250 + item).unwrap();
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join_bounded().unwrap();
        }
        queue.close();
        let mut taken: Vec<_> = consumers
            .into_iter()
            .flat_map(|consumer| consumer.join_bounded().unwrap())
            .collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
    }
}
