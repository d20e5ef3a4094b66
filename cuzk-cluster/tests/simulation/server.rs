//! A server with a work queue and a queue of results, as JetStream has them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use cuzk_cluster::leases::LEASE;
use cuzk_cluster::ledger::{Position, StreamId, Survey};
use cuzk_cluster::message::WorkId;
use cuzk_cluster::subject::Subject;
use cuzk_cluster::worker::PullId;

use crate::net::{Bytes, Event, Lease, Life, Net, Request, ToNode, ToOwner, Topic};

/// A client reports a request that nobody answers after this time.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// A second publication of the same attempt within this time is dropped.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

#[derive(Default)]
struct Consumer {
    ready: BTreeSet<u64>,
    /// The delivered messages, with the times at which their leases run out.
    pending: BTreeMap<u64, Duration>,
    last_delivered: u64,
    pulls: VecDeque<Pull>,
}

struct Pull {
    from: (usize, Life),
    pull: PullId,
    expires: Duration,
}

struct Message {
    topic: Topic,
    bytes: Bytes,
}

pub(crate) struct Server {
    pub(crate) is_up: bool,
    stream: Option<StreamId>,
    last_sequence: u64,
    messages: BTreeMap<u64, Message>,
    copies: HashMap<(WorkId, u32), (u64, Duration)>,
    consumers: HashMap<Topic, Consumer>,
    /// The results that the owner has not acknowledged, with the times of redelivery.
    results: BTreeMap<u64, (Bytes, Duration)>,
    last_result: u64,
    pub(crate) owner: Option<Life>,
    pub(crate) nodes: Vec<Option<Life>>,
    next_stream: i128,
}

impl Server {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            is_up: true,
            stream: None,
            last_sequence: 0,
            messages: BTreeMap::new(),
            copies: HashMap::new(),
            consumers: HashMap::new(),
            results: BTreeMap::new(),
            last_result: 0,
            owner: None,
            nodes: vec![None; workers],
            next_stream: 1,
        }
    }

    /// Returns true if a message waits for a worker of one of these topics.
    pub(crate) fn has_ready(&self, topics: &[Topic]) -> bool {
        let consumers = topics.iter().filter_map(|topic| self.consumers.get(topic));
        self.is_up
            && consumers
                .into_iter()
                .any(|consumer| !consumer.ready.is_empty())
    }

    /// The owner makes the stream when it connects, if there is none.
    pub(crate) fn make_stream(&mut self) {
        if self.stream.is_none() {
            self.stream = Some(StreamId(self.next_stream));
            self.next_stream += 1;
            self.last_sequence = 0;
        }
    }

    pub(crate) fn delete_streams(&mut self, net: &mut Net) {
        self.drop_pulls(net);
        self.stream = None;
        self.messages.clear();
        self.copies.clear();
        self.consumers.clear();
        self.results.clear();
    }

    /// Stops. A crash forgets the last `lost` messages of each queue.
    pub(crate) fn stop(&mut self, lost: usize, net: &mut Net) {
        self.is_up = false;
        self.drop_pulls(net);
        for _ in 0..lost {
            let Some((sequence, message)) = self.messages.pop_last() else {
                break;
            };
            self.last_sequence = sequence - 1;
            if let Some(consumer) = self.consumers.get_mut(&message.topic) {
                consumer.ready.remove(&sequence);
                consumer.pending.remove(&sequence);
                consumer.last_delivered = consumer.last_delivered.min(sequence - 1);
            }
            self.copies.retain(|_, (copy, _)| *copy != sequence);
            self.results.pop_last();
        }
    }

    /// Drops the requests of a process that was killed.
    pub(crate) fn forget(&mut self, node: usize) {
        self.nodes[node] = None;
        for consumer in self.consumers.values_mut() {
            consumer.pulls.retain(|pull| pull.from.0 != node);
        }
    }

    fn drop_pulls(&mut self, net: &mut Net) {
        let mut all: Vec<_> = self.consumers.iter_mut().collect();
        all.sort_by_key(|(topic, _)| (*topic).clone());
        for pull in all
            .into_iter()
            .flat_map(|(_, consumer)| consumer.pulls.drain(..))
        {
            end_pull(pull.from, pull.pull, ERROR_PAUSE, net);
        }
    }

    pub(crate) fn handle(&mut self, request: Request, net: &mut Net) {
        if !self.is_up || self.stream.is_none() {
            return self.refuse(request, net);
        }
        match request {
            Request::Publish {
                life,
                id,
                attempt,
                topic,
                bytes,
            } => {
                let position = self.publish((id, attempt), topic, bytes, net);
                net.send_to_owner(life, ToOwner::Published(id, attempt, position));
            }
            Request::Withdraw(position) => self.remove(position),
            Request::Survey {
                life,
                asked_at,
                subjects,
            } => self.survey(life, asked_at, subjects, net),
            Request::Pull {
                from,
                pull,
                topic,
                wait,
            } => self.pull(from, pull, topic, wait, net),
            Request::Acknowledge(lease) => self.remove(lease.position),
            Request::Progress(lease) => self.extend(lease, net.now),
            Request::Return(lease, delay) => self.give_back(lease, delay, net),
            Request::Result { from, id, bytes } => {
                self.last_result += 1;
                self.results.insert(self.last_result, (bytes, net.now));
                if let Some(id) = id {
                    net.send_to_node(from, ToNode::ResultStored(id));
                }
                self.redeliver_results(net);
            }
            Request::AcknowledgeResult(number) => drop(self.results.remove(&number)),
            Request::Sign(bytes) => {
                if let Some(life) = self.owner {
                    net.send_to_owner(life, ToOwner::Sign(bytes));
                }
            }
            Request::Control(bytes) => {
                for (node, life) in self.nodes.iter().enumerate() {
                    if let Some(life) = life {
                        net.send_to_node((node, *life), ToNode::Control(Bytes::clone(&bytes)));
                    }
                }
            }
            Request::Ready(position, topic) => self.make_ready(position, &topic, net),
            Request::Sweep => self.sweep(net),
        }
    }

    fn refuse(&mut self, request: Request, net: &mut Net) {
        match request {
            Request::Publish {
                life, id, attempt, ..
            } => {
                let failed = ToOwner::PublishFailed(id, attempt);
                net.after(ERROR_PAUSE, Event::Owner(life, failed));
            }
            Request::Survey { .. } if self.is_up => self.make_stream(),
            Request::Pull { from, pull, .. } => end_pull(from, pull, ERROR_PAUSE, net),
            Request::Result {
                from: (node, life),
                id: Some(id),
                ..
            } => net.after(
                ERROR_PAUSE,
                Event::Node(node, life, ToNode::ResultFailed(id)),
            ),
            _ => {}
        }
    }

    fn publish(
        &mut self,
        copy: (WorkId, u32),
        topic: Topic,
        bytes: Bytes,
        net: &mut Net,
    ) -> Position {
        let stream = self.stream.unwrap();
        if let Some((sequence, at)) = self.copies.get(&copy)
            && *at + DUPLICATE_WINDOW > net.now
        {
            let sequence = *sequence;
            return Position { stream, sequence };
        }
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        self.copies.insert(copy, (sequence, net.now));
        let consumer = self.consumers.entry(topic.clone()).or_default();
        consumer.ready.insert(sequence);
        self.messages.insert(
            sequence,
            Message {
                topic: topic.clone(),
                bytes,
            },
        );
        self.deliver(&topic, net);
        Position { stream, sequence }
    }

    fn consumer_of(&mut self, position: Position) -> Option<&mut Consumer> {
        if Some(position.stream) != self.stream {
            return None;
        }
        let message = self.messages.get(&position.sequence)?;
        self.consumers.get_mut(&message.topic)
    }

    fn remove(&mut self, position: Position) {
        if let Some(consumer) = self.consumer_of(position) {
            consumer.ready.remove(&position.sequence);
            consumer.pending.remove(&position.sequence);
            self.messages.remove(&position.sequence);
        }
    }

    fn extend(&mut self, lease: Lease, now: Duration) {
        let sequence = lease.position.sequence;
        if let Some(consumer) = self.consumer_of(lease.position)
            && let Some(until) = consumer.pending.get_mut(&sequence)
        {
            *until = now + LEASE;
        }
    }

    fn give_back(&mut self, lease: Lease, delay: Duration, net: &mut Net) {
        let Some(message) = self.messages.get(&lease.position.sequence) else {
            return;
        };
        let topic = message.topic.clone();
        if delay.is_zero() {
            self.make_ready(lease.position, &topic, net);
        } else {
            self.extend(lease, net.now + delay);
            net.after(delay, Event::Server(Request::Ready(lease.position, topic)));
        }
    }

    fn make_ready(&mut self, position: Position, topic: &Topic, net: &mut Net) {
        if let Some(consumer) = self.consumer_of(position)
            && consumer.pending.remove(&position.sequence).is_some()
        {
            consumer.ready.insert(position.sequence);
        }
        self.deliver(topic, net);
    }

    fn pull(
        &mut self,
        from: (usize, Life),
        pull: PullId,
        topic: Topic,
        wait: Duration,
        net: &mut Net,
    ) {
        if self.nodes[from.0] != Some(from.1) {
            return;
        }
        let expires = net.now + wait;
        let request = Pull {
            from,
            pull,
            expires,
        };
        let consumer = self.consumers.entry(topic.clone()).or_default();
        if wait.is_zero() && consumer.ready.is_empty() {
            return end_pull(from, pull, Duration::ZERO, net);
        }
        consumer.pulls.push_back(request);
        self.deliver(&topic, net);
    }

    fn deliver(&mut self, topic: &Topic, net: &mut Net) {
        let Some(consumer) = self.consumers.get_mut(topic) else {
            return;
        };
        while !consumer.ready.is_empty() {
            let Some(request) = consumer.pulls.pop_front() else {
                return;
            };
            let Pull { from, pull, .. } = request;
            let Some(sequence) = consumer.ready.pop_first() else {
                return;
            };
            consumer.pending.insert(sequence, net.now + LEASE);
            consumer.last_delivered = consumer.last_delivered.max(sequence);
            let stream = self.stream.unwrap();
            let position = Position { stream, sequence };
            let bytes = Bytes::clone(&self.messages[&sequence].bytes);
            let transfer = net.send_input(from, ToNode::Delivered(pull, bytes, Lease { position }));
            end_pull(from, pull, transfer + Duration::from_millis(5), net);
        }
    }

    fn sweep(&mut self, net: &mut Net) {
        let now = net.now;
        let mut topics: Vec<Topic> = self.consumers.keys().cloned().collect();
        topics.sort();
        for topic in topics {
            let consumer = self.consumers.get_mut(&topic).unwrap();
            let is_over =
                |(sequence, until): (&u64, &Duration)| (*until <= now).then_some(*sequence);
            let over: Vec<u64> = consumer.pending.iter().filter_map(is_over).collect();
            for sequence in over {
                consumer.pending.remove(&sequence);
                consumer.ready.insert(sequence);
            }
            let mut kept = VecDeque::new();
            for pull in consumer.pulls.drain(..) {
                if pull.expires > now {
                    kept.push_back(pull);
                } else {
                    end_pull(pull.from, pull.pull, Duration::ZERO, net);
                }
            }
            consumer.pulls = kept;
            self.deliver(&topic, net);
        }
        self.copies
            .retain(|_, (_, at)| *at + DUPLICATE_WINDOW > now);
        self.redeliver_results(net);
    }

    pub(crate) fn redeliver_results(&mut self, net: &mut Net) {
        let Some(life) = self.owner else { return };
        let now = net.now;
        for (number, (bytes, due)) in &mut self.results {
            if *due <= now {
                *due = now + LEASE;
                net.send_to_owner(life, ToOwner::Result(*number, Bytes::clone(bytes)));
            }
        }
    }

    fn survey(&self, life: Life, asked_at: Duration, subjects: Vec<Subject>, net: &mut Net) {
        let floor = |subject: Subject| {
            let topic = (cuzk_cluster::message::SCHEMA, subject);
            let consumer = self.consumers.get(&topic)?;
            let open = consumer
                .pending
                .first_key_value()
                .map(|(sequence, _)| *sequence);
            let again = consumer.ready.first().copied();
            let again = again.filter(|sequence| *sequence <= consumer.last_delivered);
            let first = open.into_iter().chain(again).min();
            Some((
                topic.1,
                first.map_or(consumer.last_delivered, |first| first - 1),
            ))
        };
        let survey = Survey {
            asked_at,
            stream: self.stream.unwrap(),
            last_sequence: self.last_sequence,
            floors: subjects.into_iter().filter_map(floor).collect(),
        };
        net.send_to_owner(life, ToOwner::Survey(survey));
    }
}

fn end_pull((node, life): (usize, Life), pull: PullId, delay: Duration, net: &mut Net) {
    let delay = delay + Duration::from_micros(300);
    net.after(delay, Event::Node(node, life, ToNode::PullEnded(pull)));
}
