//! A worker: the real pull policy and leases, with a prover that only takes time.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use cuzk_cluster::leases::Leases;
use cuzk_cluster::message::{
    Control, Failure, Message, Outcome, SCHEMA, Sign, Work, WorkId, WorkResult,
};
use cuzk_cluster::name::Name;
use cuzk_cluster::subject::Subject;
use cuzk_cluster::worker::{Ability, Capacity, Command, Delivery, RunEnd, Worker};
use cuzk_scheduler::priority::Priority;

use crate::load::{circuits, loading_time, name, proving_time, right_proof};
use crate::net::{Event, Lease, Life, Net, Request, ToNode, Topic};

/// A prover that does not advance is given up after this time, as the engine's watchdog does.
const WATCHDOG: Duration = Duration::from_secs(300);

/// The circuits whose parameters fit into a worker's memory at a time.
const LOADED_MAX: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Honest,
    /// Returns a wrong proof, soon.
    Garbage,
    /// Returns a failure, soon.
    Failing,
    /// Speaks another schema.
    Foreign,
}

#[derive(Clone, Debug)]
struct Offered {
    lease: Lease,
    work: Rc<Work>,
}

struct Run {
    number: u64,
    started: Duration,
    work: Rc<Work>,
    hangs: bool,
}

pub(crate) struct Node {
    number: usize,
    name: Name,
    pub(crate) kind: Kind,
    pub(crate) life: Life,
    pub(crate) is_alive: bool,
    pub(crate) is_frozen: bool,
    deferred: Vec<ToNode>,
    core: Worker<Offered>,
    leases: Leases<Lease>,
    runs: BTreeMap<WorkId, Run>,
    results: BTreeMap<WorkId, (Vec<u8>, Vec<Lease>)>,
    abilities: Vec<Ability>,
    next_run: u64,
    /// A planted fault: it asks for work again only at its next tick.
    pub(crate) is_lazy: bool,
    ended: Vec<(WorkId, RunEnd)>,
    pub(crate) proofs: u64,
}

impl Node {
    pub(crate) fn new(number: usize, kind: Kind) -> Self {
        Self {
            number,
            name: name(&format!("node-{number}")),
            kind,
            life: 0,
            is_alive: false,
            is_frozen: false,
            deferred: Vec::new(),
            core: Worker::default(),
            leases: Leases::default(),
            runs: BTreeMap::new(),
            results: BTreeMap::new(),
            abilities: Vec::new(),
            next_run: 0,
            is_lazy: false,
            ended: Vec::new(),
            proofs: 0,
        }
    }

    /// Starts the process anew, with nothing loaded. A third of the workers lack one circuit.
    pub(crate) fn start(&mut self, net: &mut Net) {
        let (number, proofs, is_lazy) = (self.number, self.proofs, self.is_lazy);
        let life = self.life + 1;
        let mut circuits = circuits();
        if number % 3 == 0 {
            circuits.remove(number / 3 % circuits.len());
        }
        let ability = |circuit| Ability {
            circuit,
            is_loaded: false,
        };
        *self = Self {
            life,
            proofs,
            is_lazy,
            is_alive: true,
            abilities: circuits.into_iter().map(ability).collect(),
            ..Self::new(number, self.kind)
        };
        self.core.set_abilities(&self.abilities, net.now);
        let capacity = Capacity {
            common: 1,
            urgent: 1,
        };
        self.core.set_capacity(capacity, net.now);
        self.handle(ToNode::Tick, net);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.is_alive && !self.is_frozen && self.kind == Kind::Honest && self.runs.is_empty()
    }

    /// Returns the topics of all work that it could prove.
    pub(crate) fn topics(&self) -> Vec<Topic> {
        let topic = |priority, ability: &Ability| {
            let circuit = ability.circuit.clone();
            (self.schema(), Subject { circuit, priority })
        };
        let priorities = Priority::ALL.into_iter();
        priorities
            .flat_map(|priority| self.abilities.iter().map(move |a| topic(priority, a)))
            .collect()
    }

    fn schema(&self) -> u16 {
        SCHEMA + u16::from(self.kind == Kind::Foreign)
    }

    pub(crate) fn wake(&mut self, net: &mut Net) {
        self.is_frozen = false;
        if !self.is_alive {
            return;
        }
        for message in std::mem::take(&mut self.deferred) {
            self.handle(message, net);
        }
    }

    pub(crate) fn drain(&mut self, net: &mut Net) {
        self.core.drain();
        self.carry_out(net);
    }

    /// Makes its running partitions hang.
    pub(crate) fn hang(&mut self, net: &mut Net) {
        for (id, run) in &mut self.runs {
            run.hangs = true;
            run.number += 1_000_000;
            let ended = ToNode::RunEnded(*id, run.number);
            net.after(WATCHDOG, Event::Node(self.number, self.life, ended));
        }
    }

    pub(crate) fn handle(&mut self, message: ToNode, net: &mut Net) {
        if self.is_frozen {
            self.deferred.push(message);
            return;
        }
        match message {
            ToNode::Delivered(pull, bytes, lease) => {
                if let Ok(work) = Work::decode(&bytes) {
                    let delivery = Delivery {
                        id: work.id(),
                        subject: work.subject(),
                        is_excluded: work.excluded.contains(&self.name),
                        lease: Offered {
                            lease,
                            work: Rc::new(work),
                        },
                    };
                    self.core.delivered(pull, delivery, net.now);
                }
            }
            ToNode::PullEnded(pull) => self.core.pull_ended(pull, net.now),
            ToNode::RunEnded(id, number) => self.run_ended(id, number, net),
            ToNode::ResultStored(id) => {
                let stored = self.results.remove(&id);
                for lease in stored.into_iter().flat_map(|(_, leases)| leases) {
                    net.send_to_server(Request::Acknowledge(lease));
                }
            }
            ToNode::ResultFailed(id) => self.send_result(id, net),
            ToNode::Control(bytes) => match Control::decode(&bytes) {
                Ok(Control::Cancel(ids)) => self.core.cancel(&ids),
                Ok(Control::Rest { node, rest_ms }) if node == self.name => {
                    self.core.rest(net.now + Duration::from_millis(rest_ms));
                }
                _ => {}
            },
            ToNode::Tick => self.tick(net),
        }
        self.carry_out(net);
    }

    fn tick(&mut self, net: &mut Net) {
        let now = net.now;
        for (id, run) in self.runs.iter().filter(|(_, run)| !run.hangs) {
            let elapsed_ms = (now - run.started).as_millis();
            self.leases.advance(id, u64::try_from(elapsed_ms).unwrap());
        }
        self.report(net);
        for (id, end) in std::mem::take(&mut self.ended) {
            self.core.ended(&id, end, now);
        }
        self.core.tick(now);
        let period_ms = match (self.is_lazy, self.runs.is_empty()) {
            (true, _) => 5000,
            (false, true) => 500,
            (false, false) => 2500,
        };
        let tick = Event::Node(self.number, self.life, ToNode::Tick);
        net.after(Duration::from_millis(period_ms), tick);
    }

    fn report(&mut self, net: &mut Net) {
        let due = self.leases.due(net.now);
        if due.is_empty() {
            return;
        }
        let sign = Sign {
            node: self.name.clone(),
            running: due.iter().map(|(id, _)| *id).collect(),
        };
        net.send_to_server(Request::Sign(sign.encode().unwrap().into()));
        for lease in due.into_iter().flat_map(|(_, leases)| leases) {
            net.send_to_server(Request::Progress(lease));
        }
    }

    fn run_ended(&mut self, id: WorkId, number: u64, net: &mut Net) {
        if self.runs.get(&id).is_none_or(|run| run.number != number) {
            return;
        }
        let run = self.runs.remove(&id).unwrap();
        let is_false = crate::world::is_false(&run.work);
        let result = match self.kind {
            Kind::Garbage => WorkResult::Proof(vec![7; 192]),
            Kind::Honest | Kind::Foreign if !run.hangs && !is_false => {
                self.proofs += 1;
                WorkResult::Proof(right_proof(&id))
            }
            _ => WorkResult::Failure(Failure::new("it cannot be proved here")),
        };
        let end = match &result {
            WorkResult::Proof(_) => RunEnd::Proved,
            WorkResult::Failure(_) => RunEnd::Failed,
        };
        let outcome = Outcome {
            id,
            node: self.name.clone(),
            attempt: run.work.attempt,
            elapsed_ms: 1,
            result,
        };
        let leases = self.leases.end(&id);
        self.results.insert(id, (outcome.encode().unwrap(), leases));
        self.send_result(id, net);
        self.ended_or_later(id, end, net);
    }

    fn ended_or_later(&mut self, id: WorkId, end: RunEnd, net: &Net) {
        if self.is_lazy {
            self.ended.push((id, end));
        } else {
            self.core.ended(&id, end, net.now);
        }
    }

    fn send_result(&mut self, id: WorkId, net: &mut Net) {
        if let Some((bytes, _)) = self.results.get(&id) {
            net.send_to_server(Request::Result {
                from: (self.number, self.life),
                id: Some(id),
                bytes: bytes.as_slice().into(),
            });
        }
    }

    fn carry_out(&mut self, net: &mut Net) {
        while let Some(command) = self.core.next_command() {
            match command {
                Command::Pull {
                    pull,
                    subject,
                    wait,
                } => net.send_to_server(Request::Pull {
                    from: (self.number, self.life),
                    pull,
                    topic: (self.schema(), subject),
                    wait,
                }),
                Command::Start { id, lease } => self.start_run(id, lease, net),
                Command::Join { id, lease } => self.leases.add(id, lease.lease),
                Command::Return { lease, delay } => {
                    net.send_to_server(Request::Return(lease.lease, delay));
                }
                Command::Stop { id } => {
                    self.runs.remove(&id);
                    for lease in self.leases.end(&id) {
                        net.send_to_server(Request::Acknowledge(lease));
                    }
                    self.core.ended(&id, RunEnd::Stopped, net.now);
                }
                Command::Leave => {
                    self.is_alive = false;
                    let start = crate::faults::Fault::StartNode(self.number);
                    net.after(Duration::from_secs(30), Event::Fault(start));
                }
            }
        }
    }

    fn start_run(&mut self, id: WorkId, Offered { lease, work }: Offered, net: &mut Net) {
        let mut takes = match self.kind {
            Kind::Honest | Kind::Foreign => proving_time(&work.circuit, net),
            Kind::Garbage | Kind::Failing => Duration::from_secs(2),
        };
        let place = self
            .abilities
            .iter()
            .position(|a| a.circuit == work.circuit);
        if let Some(place) = place.filter(|place| !self.abilities[*place].is_loaded) {
            takes += loading_time(&work.circuit);
            let mut used = self.abilities.remove(place);
            used.is_loaded = true;
            self.abilities.insert(0, used);
            for evicted in self.abilities.iter_mut().skip(LOADED_MAX) {
                evicted.is_loaded = false;
            }
            self.core.set_abilities(&self.abilities, net.now);
        }
        self.next_run += 1;
        let run = Run {
            number: self.next_run,
            started: net.now,
            work,
            hangs: false,
        };
        let ended = ToNode::RunEnded(id, run.number);
        self.runs.insert(id, run);
        net.after(takes, Event::Node(self.number, self.life, ended));
        self.leases.add(id, lease);
        self.report(net);
    }
}
