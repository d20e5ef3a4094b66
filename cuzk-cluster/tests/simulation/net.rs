//! The clock, the queue of events, and the network, which delays and duplicates.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::time::Duration;

use cuzk_cluster::ledger::{CheckId, Position, Survey};
use cuzk_cluster::message::WorkId;
use cuzk_cluster::subject::Subject;
use cuzk_cluster::worker::PullId;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::faults::Fault;

pub(crate) type Bytes = Rc<[u8]>;

/// A process: killed and started again, it has another life.
pub(crate) type Life = u32;

/// A delivery of the message at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) position: Position,
}

/// The schema and the subject that a consumer is for.
pub(crate) type Topic = (u16, Subject);

#[derive(Clone, Debug)]
pub(crate) enum Request {
    Publish {
        life: Life,
        id: WorkId,
        attempt: u32,
        topic: Topic,
        bytes: Bytes,
    },
    Withdraw(Position),
    Survey {
        life: Life,
        asked_at: Duration,
        subjects: Vec<Subject>,
    },
    Pull {
        from: (usize, Life),
        pull: PullId,
        topic: Topic,
        wait: Duration,
    },
    Acknowledge(Lease),
    Progress(Lease),
    Return(Lease, Duration),
    Result {
        from: (usize, Life),
        id: Option<WorkId>,
        bytes: Bytes,
    },
    AcknowledgeResult(u64),
    Sign(Bytes),
    Control(Bytes),
    /// A message that was returned can be delivered again.
    Ready(Position, Topic),
    /// Looks for leases that have run out.
    Sweep,
}

#[derive(Clone, Debug)]
pub(crate) enum ToNode {
    Delivered(PullId, Bytes, Lease),
    PullEnded(PullId),
    ResultStored(WorkId),
    ResultFailed(WorkId),
    Control(Bytes),
    RunEnded(WorkId, u64),
    Tick,
}

#[derive(Clone, Debug)]
pub(crate) enum ToOwner {
    Accepted(usize),
    Published(WorkId, u32, Position),
    PublishFailed(WorkId, u32),
    Survey(Survey),
    Result(u64, Bytes),
    Sign(Bytes),
    Verified(WorkId, CheckId, bool),
    HomeDone(WorkId, u64),
    Connected(bool),
    Tick,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Server(Request),
    Node(usize, Life, ToNode),
    Owner(Life, ToOwner),
    Fault(Fault),
    Sample,
}

struct Queued {
    at: Duration,
    number: u64,
    event: Event,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    // The heap gives the greatest first, which has to be the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

pub(crate) struct Net {
    pub(crate) now: Duration,
    pub(crate) rng: ChaCha8Rng,
    /// The part of the messages that arrive twice, and of the notices that are lost.
    pub(crate) disorder: f64,
    queue: BinaryHeap<Queued>,
    next_number: u64,
    pub(crate) events: u64,
}

impl Net {
    pub(crate) fn new(seed: u64, disorder: f64) -> Self {
        Self {
            now: Duration::ZERO,
            rng: ChaCha8Rng::seed_from_u64(seed),
            disorder,
            queue: BinaryHeap::new(),
            next_number: 0,
            events: 0,
        }
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        let Queued { at, event, .. } = self.queue.pop()?;
        self.now = at;
        self.events += 1;
        Some(event)
    }

    pub(crate) fn after(&mut self, delay: Duration, event: Event) {
        let (at, number) = (self.now + delay, self.next_number);
        self.next_number += 1;
        self.queue.push(Queued { at, number, event });
    }

    pub(crate) fn chance(&mut self, part: f64) -> bool {
        part > 0.0 && self.rng.gen_bool(part)
    }

    /// Most messages take a millisecond. Some take seconds, so later ones overtake them.
    fn latency(&mut self) -> Duration {
        let slow = self.chance(self.disorder);
        let most_us = if slow { 3_000_000 } else { 1_000 };
        Duration::from_micros(self.rng.gen_range(100..most_us))
    }

    fn send(&mut self, event: Event) {
        if self.chance(self.disorder) {
            let latency = self.latency();
            self.after(latency, event.clone());
        }
        let latency = self.latency();
        self.after(latency, event);
    }

    pub(crate) fn send_to_server(&mut self, request: Request) {
        let is_notice = matches!(request, Request::Sign(_) | Request::Control(_));
        if is_notice && self.chance(self.disorder) {
            return;
        }
        // A request for work has one answer, and a client library gives it once.
        if matches!(request, Request::Pull { .. }) {
            let latency = self.latency();
            self.after(latency, Event::Server(request));
        } else {
            self.send(Event::Server(request));
        }
    }

    pub(crate) fn send_to_node(&mut self, (node, life): (usize, Life), message: ToNode) {
        self.send(Event::Node(node, life, message));
    }

    pub(crate) fn send_to_owner(&mut self, life: Life, message: ToOwner) {
        self.send(Event::Owner(life, message));
    }
}
