//! The rules of who may send next.
//!
//! Plain data under somebody else's lock: no clock, no thread, no task. The invariants:
//!
//! * All held bytes are within the budget, and PoReps and SnapDeals hold only their part.
//! * Calls of one class are admitted in the order in which they came.
//! * No PoRep is admitted while a PoSt waits.
//! * A call that leaves, at any point, takes nothing with it.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::SMALL_BYTES_MAX;
use crate::wire::MESSAGE_BYTES_MAX;

/// The most calls that wait.
const WAITING_MAX: usize = 1024;

/// A sender that others wait for has to send this much in this time.
const PACE_BYTES: u64 = 5 << 20;
const PACE_TIME: Duration = Duration::from_secs(5);

/// The urgency of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A WinningPoSt or a WindowPoSt.
    Post,
    /// A PoRep, a SnapDeals update, or a kind that is not known yet.
    Sealing,
}

/// The number of a call.
pub(super) type Ticket = u64;

/// Why a call may not even wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Too many calls wait.
    TooMany,
    /// The message can never fit.
    TooLarge,
}

/// The budget, who holds a part of it, and who waits for one.
#[derive(Debug)]
pub(super) struct Policy {
    total_bytes: u64,
    /// The most that messages of [`Class::Sealing`] hold.
    sealing_max_bytes: u64,
    held_bytes: u64,
    sealing_held_bytes: u64,
    held: HashMap<Ticket, Held>,
    posts: VecDeque<Waiting>,
    sealing: VecDeque<Waiting>,
    next: Ticket,
    /// Since when somebody waits without a pause.
    waited_since: Option<Duration>,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    bytes: u64,
}

/// A message that was admitted.
#[derive(Debug)]
struct Held {
    class: Class,
    bytes: u64,
    received_bytes: u64,
    /// The pace is measured since this time, from this many bytes.
    paced_since: Duration,
    paced_from_bytes: u64,
}

impl Policy {
    /// Returns a policy that admits `total_bytes` at a time. A quarter is for PoSts only,
    /// or less, if the largest message would not fit into the rest.
    pub(super) fn new(total_bytes: u64) -> Self {
        let largest = MESSAGE_BYTES_MAX as u64 + SMALL_BYTES_MAX;
        let posts_only_bytes = (total_bytes / 4).min(total_bytes.saturating_sub(largest));
        Self {
            total_bytes,
            sealing_max_bytes: total_bytes - posts_only_bytes,
            held_bytes: 0,
            sealing_held_bytes: 0,
            held: HashMap::new(),
            posts: VecDeque::new(),
            sealing: VecDeque::new(),
            next: 0,
            waited_since: None,
        }
    }

    /// Puts a call at the end of its queue. It is admitted by a later [`Policy::admit`].
    ///
    /// # Errors
    ///
    /// Too many calls wait, or the message is larger than its part of the budget.
    pub(super) fn enter(&mut self, class: Class, bytes: u64) -> Result<Ticket, Refusal> {
        let (queue, max_bytes) = match class {
            Class::Post => (&mut self.posts, self.total_bytes),
            Class::Sealing => (&mut self.sealing, self.sealing_max_bytes),
        };
        if bytes > max_bytes {
            return Err(Refusal::TooLarge);
        }
        // Each queue has its bound, so that PoReps do not keep PoSts out.
        if queue.len() >= WAITING_MAX / 2 {
            return Err(Refusal::TooMany);
        }
        let ticket = self.next;
        self.next += 1;
        queue.push_back(Waiting { ticket, bytes });
        Ok(ticket)
    }

    /// Admits the calls that fit at `now`, and returns them in order.
    pub(super) fn admit(&mut self, now: Duration) -> Vec<Ticket> {
        let mut admitted = Vec::new();
        while let Some((class, waiting)) = self.next_that_fits() {
            self.held_bytes += waiting.bytes;
            if class == Class::Sealing {
                self.sealing_held_bytes += waiting.bytes;
            }
            let held = Held {
                class,
                bytes: waiting.bytes,
                received_bytes: 0,
                paced_since: now,
                paced_from_bytes: 0,
            };
            self.held.insert(waiting.ticket, held);
            admitted.push(waiting.ticket);
        }
        if self.posts.is_empty() && self.sealing.is_empty() {
            self.waited_since = None;
        } else if self.waited_since.is_none() {
            self.waited_since = Some(now);
        }
        admitted
    }

    /// Takes the next call out of its queue, if it fits.
    fn next_that_fits(&mut self) -> Option<(Class, Waiting)> {
        let free_bytes = self.total_bytes - self.held_bytes;
        let sealing_free_bytes = self.sealing_max_bytes - self.sealing_held_bytes;
        let (class, queue, free_bytes) = if self.posts.is_empty() {
            let free_bytes = free_bytes.min(sealing_free_bytes);
            (Class::Sealing, &mut self.sealing, free_bytes)
        } else {
            (Class::Post, &mut self.posts, free_bytes)
        };
        if queue.front()?.bytes > free_bytes {
            return None;
        }
        Some((class, queue.pop_front()?))
    }

    /// Ends a call, wherever it is. Nothing happens if it has ended before.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        if let Some(held) = self.held.remove(&ticket) {
            self.held_bytes -= held.bytes;
            if held.class == Class::Sealing {
                self.sealing_held_bytes -= held.bytes;
            }
            return;
        }
        for queue in [&mut self.posts, &mut self.sealing] {
            queue.retain(|waiting| waiting.ticket != ticket);
        }
    }

    /// Notes bytes of an admitted message.
    pub(super) fn receive(&mut self, ticket: Ticket, bytes: u64) {
        if let Some(held) = self.held.get_mut(&ticket) {
            held.received_bytes += bytes;
        }
    }

    /// Begins to measure the pace of an admitted message at `now`.
    pub(super) fn restart_pace(&mut self, ticket: Ticket, now: Duration) {
        if let Some(held) = self.held.get_mut(&ticket) {
            held.paced_since = now;
            held.paced_from_bytes = held.received_bytes;
        }
    }

    /// Returns true if the sender of an admitted message was too slow for those who wait.
    /// A message that is whole has no sender any more. Asked about once a second.
    pub(super) fn is_slow(&mut self, ticket: Ticket, now: Duration) -> bool {
        let Some(held) = self.held.get_mut(&ticket) else {
            return false;
        };
        // The time in which nobody waited does not count.
        let waited = self
            .waited_since
            .is_some_and(|since| since <= held.paced_since);
        let time = now.saturating_sub(held.paced_since);
        let bytes = held.received_bytes - held.paced_from_bytes;
        if waited && time < PACE_TIME {
            return false;
        }
        held.paced_since = now;
        held.paced_from_bytes = held.received_bytes;
        let is_whole = held.received_bytes >= held.bytes;
        // More than the time itself may have passed since the last question.
        waited
            && !is_whole
            && u128::from(bytes) * PACE_TIME.as_millis() < u128::from(PACE_BYTES) * time.as_millis()
    }

    /// Returns the bytes that are held.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the number of calls that wait.
    pub(super) fn waiting(&self) -> usize {
        self.posts.len() + self.sealing.len()
    }
}

#[cfg(test)]
mod tests;
