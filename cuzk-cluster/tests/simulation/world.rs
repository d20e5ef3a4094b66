//! A run: the machines, the faults, and what was seen.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use cuzk_cluster::message::{Work, WorkId};
use rand::Rng;

use crate::costs::Costs;
use crate::faults::{Fault, Rates};
use crate::load::{alike, partitions};
use crate::net::{Event, Life, Net, Request, ToOwner};
use crate::node::{Kind, Node};
use crate::owner::Owner;
use crate::server::Server;

const SAMPLE_PERIOD: Duration = Duration::from_millis(1700);

/// The jobs arrive over this part of the time that the workers need for them.
const ARRIVAL_PART: f64 = 0.5;

/// The mean time of a partition on a worker, for the span of the run only.
const MEAN: Duration = Duration::from_secs(36);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) partitions: usize,
    pub(crate) rates: Rates,
    pub(crate) costs: Costs,
    /// The owner also proves whatever waits.
    pub(crate) is_local: bool,
    pub(crate) plant: Option<Plant>,
    /// A partition that has not ended by then is lost.
    pub(crate) limit: Duration,
}

/// A fault of the machines themselves, which the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    AcceptAll,
    NoSurveys,
    NoJournal,
    LazyWorkers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The end is not the right one. The proof was not verified, for example.
    WrongEnd(WorkId),
    EndedTwice(WorkId),
    /// So many partitions did not end.
    Lost(usize),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) partitions: usize,
    pub(crate) took: Duration,
    pub(crate) events: u64,
    pub(crate) proved_again: u64,
    pub(crate) publications: u64,
    pub(crate) faults: u64,
    /// The time from a fifth of the ends to four fifths.
    pub(crate) middle: Duration,
    samples: u64,
    idle_samples: u64,
}

impl Report {
    /// Returns the part of the workers' time in which they were idle while work for them waited.
    pub(crate) fn idle_percent(&self) -> f64 {
        100.0 * self.idle_samples as f64 / self.samples.max(1) as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} partitions in {} s of simulated time, {} faults, {} proofs more than needed, \
             {} publications, idle while work waited {:.2} %, {} events",
            self.partitions,
            self.took.as_secs(),
            self.faults,
            self.proved_again,
            self.publications,
            self.idle_percent(),
            self.events
        )
    }
}

thread_local! {
    static FALSE: RefCell<HashSet<WorkId>> = RefCell::default();
}

/// Returns true if the statement of a partition is false. Workers find it out by proving it.
pub(crate) fn is_false(work: &Work) -> bool {
    FALSE.with_borrow(|ids| ids.contains(&work.id()))
}

struct World {
    net: Net,
    server: Server,
    owner: Owner,
    nodes: Vec<Node>,
    report: Report,
    rates: Rates,
    faults_end: Duration,
    is_down_for: Duration,
}

/// Runs the cluster until each partition has ended.
pub(crate) fn run(config: &Config) -> Result<Report, Violation> {
    let mut world = World::new(config);
    while let Some(event) = world.net.next() {
        world.handle(event);
        if let Some(violation) = world.owner.violation {
            return Err(violation);
        }
        let missing = config.partitions - world.owner.ended();
        // A plant that ends partitions twice shows itself only after a restart.
        let is_over = missing == 0 && config.plant != Some(Plant::NoJournal);
        if is_over {
            break;
        }
        if world.net.now > config.limit {
            return Err(Violation::Lost(missing));
        }
    }
    Ok(world.end(config))
}

impl World {
    fn new(config: &Config) -> Self {
        let mut net = Net::new(config.seed, config.rates.disorder, config.costs);
        let workers = u32::try_from(config.workers).unwrap();
        let mean = config.costs.proving.unwrap_or(MEAN);
        let needed = mean * u32::try_from(config.partitions).unwrap() / workers;
        let arrival = needed.mul_f64(ARRIVAL_PART);
        let all = match config.costs.proving {
            None => partitions(config.partitions, arrival, &mut net.rng),
            Some(_) => alike(config.partitions, arrival),
        };
        let all_false = all.iter().filter(|p| p.is_false).map(|p| p.work.id());
        FALSE.set(all_false.collect());
        let accepted = all.iter().enumerate().map(|(number, partition)| {
            let accepted = Event::Owner(Life::MAX, ToOwner::Accepted(number));
            (partition.accepted, accepted)
        });
        net.know(accepted.collect());
        let bad = |place: usize| match place / config.rates.bad_in_20.max(1) {
            _ if config.rates.bad_in_20 == 0 => Kind::Honest,
            0 => Kind::Garbage,
            1 => Kind::Failing,
            2 => Kind::Foreign,
            _ => Kind::Honest,
        };
        let mut nodes: Vec<Node> = (0..config.workers)
            .map(|number| Node::new(number, bad(number % 20)))
            .collect();
        for node in &mut nodes {
            node.is_lazy = config.plant == Some(Plant::LazyWorkers);
        }
        let owner = Owner::new(Rc::new(all), config);
        config.rates.begin(&mut net);
        let mut world = Self {
            net,
            server: Server::new(config.workers),
            owner,
            nodes,
            report: Report::default(),
            rates: config.rates,
            faults_end: needed.mul_f64(2.0),
            is_down_for: Duration::ZERO,
        };
        world.server.make_stream();
        world.start_owner();
        (0..config.workers).for_each(|number| world.start_node(number));
        world.net.after(SAMPLE_PERIOD, Event::Sample);
        world
            .net
            .after(SAMPLE_PERIOD, Event::Server(Request::Sweep));
        world
    }

    fn end(self, config: &Config) -> Report {
        let proofs: u64 = self.nodes.iter().map(|node| node.proofs).sum();
        let is_false = FALSE.with_borrow(HashSet::len);
        let needed = u64::try_from(config.partitions - is_false).unwrap();
        Report {
            partitions: config.partitions,
            took: self.net.now,
            events: self.net.events,
            proved_again: (proofs + self.owner.proofs).saturating_sub(needed),
            publications: self.owner.publications,
            middle: self.owner.middle(),
            ..self.report
        }
    }

    fn handle(&mut self, event: Event) {
        let net = &mut self.net;
        match event {
            Event::Server(request) => {
                let is_sweep = matches!(request, Request::Sweep);
                self.server.handle(request, net);
                if is_sweep {
                    net.after(Duration::from_secs(1), Event::Server(Request::Sweep));
                }
            }
            Event::Node(number, life, message) => {
                let node = &mut self.nodes[number];
                if node.is_alive && node.life == life {
                    node.handle(message, net);
                }
            }
            Event::Owner(life, mut message) => {
                // A client that notices a change late sees the present state.
                if let ToOwner::Connected(is_connected) = &mut message {
                    *is_connected = self.server.is_up;
                }
                let owner = &mut self.owner;
                if owner.is_alive && (owner.life == life || life == Life::MAX) {
                    owner.handle(message, net);
                }
            }
            Event::Fault(fault) => self.fault(fault),
            Event::Sample => self.sample(),
        }
    }

    fn sample(&mut self) {
        for node in self.nodes.iter().filter(|node| node.is_alive) {
            self.report.samples += 1;
            let waits = node.is_idle() && self.server.has_ready(&node.topics());
            self.report.idle_samples += u64::from(waits);
        }
        self.net.after(SAMPLE_PERIOD, Event::Sample);
    }

    fn start_node(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        if !node.is_alive {
            self.server.nodes[number] = Some(node.life + 1);
            node.start(&mut self.net);
        }
    }

    fn start_owner(&mut self) {
        self.owner.start(&mut self.net);
        self.server.owner = Some(self.owner.life);
        self.tell_connection();
        self.server.redeliver_results(&mut self.net);
    }

    /// Tells the owner about its connection. A client notices it within two seconds.
    fn tell_connection(&mut self) {
        let delay = Duration::from_millis(self.net.rng.gen_range(10..2000));
        let connected = ToOwner::Connected(self.server.is_up);
        self.net
            .after(delay, Event::Owner(self.owner.life, connected));
    }

    /// Returns a time between 2 s and `most_s`.
    fn pause(&mut self, most_s: u64) -> Duration {
        Duration::from_secs(self.net.rng.gen_range(2..most_s))
    }

    fn fault(&mut self, fault: Fault) {
        let number = self.net.rng.gen_range(0..self.nodes.len());
        let is_over = self.net.now > self.faults_end;
        let is_cure = self.cure(fault);
        if is_cure || is_over {
            return;
        }
        self.report.faults += 1;
        self.rates.plan(fault, &mut self.net);
        match fault {
            Fault::KillNode => {
                self.nodes[number].is_alive = false;
                self.server.forget(number);
                let pause = self.pause(60);
                self.net
                    .after(pause, Event::Fault(Fault::StartNode(number)));
            }
            Fault::FreezeNode if self.nodes[number].is_alive => {
                self.nodes[number].is_frozen = true;
                let pause = self.pause(120);
                self.net.after(pause, Event::Fault(Fault::WakeNode(number)));
            }
            Fault::HangRun => self.nodes[number].hang(&mut self.net),
            Fault::DrainNode if self.nodes[number].is_alive && !self.nodes[number].is_frozen => {
                self.nodes[number].drain(&mut self.net);
            }
            Fault::KillOwner if self.owner.is_alive => {
                self.owner.is_alive = false;
                self.server.owner = None;
                let pause = self.pause(60);
                self.net.after(pause, Event::Fault(Fault::StartOwner));
            }
            Fault::FreezeOwner if self.owner.is_alive => {
                self.owner.is_frozen = true;
                let pause = self.pause(90);
                self.net.after(pause, Event::Fault(Fault::WakeOwner));
            }
            Fault::StopServer if self.server.is_up => {
                let lost = self.net.rng.gen_range(0..4);
                self.server.stop(lost, &mut self.net);
                self.tell_connection();
                self.is_down_for = self.pause(60);
                self.net
                    .after(self.is_down_for, Event::Fault(Fault::StartServer));
            }
            Fault::DeleteStreams => self.server.delete_streams(&mut self.net),
            Fault::Noise => self.noise(number),
            _ => {}
        }
    }

    /// Ends a fault. Returns false if it is none that ends another one.
    fn cure(&mut self, fault: Fault) -> bool {
        match fault {
            Fault::StartNode(number) => self.start_node(number),
            Fault::WakeNode(number) => self.nodes[number].wake(&mut self.net),
            Fault::StartOwner => self.start_owner(),
            Fault::WakeOwner => self.owner.wake(&mut self.net),
            Fault::StartServer => {
                self.server.is_up = true;
                self.tell_connection();
            }
            _ => return false,
        }
        true
    }

    /// Sends bytes that are no result of this version.
    fn noise(&mut self, number: usize) {
        let mut bytes: Vec<u8> = (0..64).map(|_| self.net.rng.r#gen()).collect();
        if self.net.chance(0.5) {
            bytes.splice(..6, *b"CUZK\x02\x00");
        }
        self.net.send_to_server(Request::Result {
            from: (number, 0),
            id: None,
            bytes: bytes.into(),
        });
    }
}
