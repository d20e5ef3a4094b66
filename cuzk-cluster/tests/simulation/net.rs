//! The clock, the queue of events, and the network, which delays and duplicates.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use cuzk_cluster::ledger::{CheckId, Position, Survey};
use cuzk_cluster::message::WorkId;
use cuzk_cluster::subject::Subject;
use cuzk_cluster::worker::PullId;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::costs::{Costs, Resource};
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

pub(crate) struct Net {
    pub(crate) now: Duration,
    pub(crate) rng: ChaCha8Rng,
    /// The part of the messages that arrive twice, and of the notices that are lost.
    pub(crate) disorder: f64,
    pub(crate) costs: Costs,
    /// The network of the server, in the direction of the workers.
    out: Resource,
    /// The events to come, by time and then by number, with their places in `waiting`.
    queue: BinaryHeap<Reverse<(Duration, u64, usize)>>,
    waiting: Vec<Option<Event>>,
    free: Vec<usize>,
    /// The events that were known from the start, in order. They would make the queue slow.
    known: VecDeque<(Duration, Event)>,
    next_number: u64,
    pub(crate) events: u64,
}

impl Net {
    pub(crate) fn new(seed: u64, disorder: f64, costs: Costs) -> Self {
        Self {
            now: Duration::ZERO,
            rng: ChaCha8Rng::seed_from_u64(seed),
            disorder,
            costs,
            out: Resource::new(Some(1)),
            queue: BinaryHeap::new(),
            waiting: Vec::new(),
            free: Vec::new(),
            known: VecDeque::new(),
            next_number: 0,
            events: 0,
        }
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        self.events += 1;
        let queued = self.queue.peek().map(|Reverse((at, ..))| *at);
        let known = self.known.front().map(|(at, _)| *at);
        if let Some(at) = known
            && queued.is_none_or(|queued| at <= queued)
        {
            let (at, event) = self.known.pop_front()?;
            self.now = at;
            return Some(event);
        }
        let Reverse((at, _, place)) = self.queue.pop()?;
        self.now = at;
        self.free.push(place);
        self.waiting[place].take()
    }

    /// Adds events that are known from the start.
    pub(crate) fn know(&mut self, mut events: Vec<(Duration, Event)>) {
        events.sort_by_key(|(at, _)| *at);
        self.known = events.into();
    }

    pub(crate) fn after(&mut self, delay: Duration, event: Event) {
        let number = self.next_number;
        self.next_number += 1;
        let place = self.free.pop().unwrap_or(self.waiting.len());
        if place == self.waiting.len() {
            self.waiting.push(None);
        }
        self.waiting[place] = Some(event);
        self.queue.push(Reverse((self.now + delay, number, place)));
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
        self.send_after(Duration::ZERO, event);
    }

    fn send_after(&mut self, delay: Duration, event: Event) {
        if self.chance(self.disorder) {
            let latency = self.latency();
            self.after(delay + latency, event.clone());
        }
        let latency = self.latency();
        self.after(delay + latency, event);
    }

    /// Sends a request to the server once its input is made and sent.
    pub(crate) fn publish_after(&mut self, delay: Duration, request: Request) {
        self.send_after(delay, Event::Server(request));
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

    /// Sends an input to a node, when the network has carried those before it. Returns the
    /// time that this takes.
    pub(crate) fn send_input(&mut self, (node, life): (usize, Life), message: ToNode) -> Duration {
        let transfer = self.out.take(self.costs.transfer, self.now);
        self.send_after(transfer, Event::Node(node, life, message));
        transfer
    }

    pub(crate) fn send_to_node(&mut self, (node, life): (usize, Life), message: ToNode) {
        self.send(Event::Node(node, life, message));
    }

    pub(crate) fn send_to_owner(&mut self, life: Life, message: ToOwner) {
        self.send(Event::Owner(life, message));
    }
}
