//! The machines of a run, and what is done to them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cuzk_bounded::bounded;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tokio::runtime::Handle;

use super::noise::delete_streams;
use crate::fixture::Daemon;
use crate::hands::{Worker, signal};
use crate::server::Server;

/// The mean time between two faults.
const GAP_MS: u64 = 2500;

/// A machine by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Machine {
    Worker(usize),
    Daemon,
    Server,
}

/// How a machine goes on.
#[derive(Clone, Copy, Debug)]
enum Cure {
    Start,
    Wake,
}

pub(crate) struct Machines {
    pub(crate) server: Server,
    pub(crate) daemon: Daemon,
    workers: Vec<Worker>,
    /// The machines that are dead or frozen, and the time at which they go on.
    ill: Vec<(Instant, Machine, Cure)>,
    /// The number of faults of each kind.
    pub(crate) faults: BTreeMap<&'static str, usize>,
}

impl Machines {
    pub(crate) fn new(server: Server, daemon: Daemon, workers: Vec<Worker>) -> Self {
        Self {
            server,
            daemon,
            workers,
            ill: Vec::new(),
            faults: BTreeMap::new(),
        }
    }

    /// Returns the number of partitions that the workers have begun.
    pub(crate) fn begun(&self) -> usize {
        self.workers.iter().map(Worker::begun).sum()
    }

    /// Does things to machines until `is_over`. Then all machines are well.
    pub(crate) fn storm(mut self, mut rng: ChaCha8Rng, is_over: &AtomicBool, on: &Handle) -> Self {
        let mut next = Instant::now();
        while !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
            self.cure(Instant::now());
            if Instant::now() >= next {
                self.fault(&mut rng, on);
                next = Instant::now() + Duration::from_millis(rng.gen_range(0..2 * GAP_MS));
            }
        }
        let last = self.ill.iter().map(|(at, ..)| *at).max();
        self.cure(last.unwrap_or_else(Instant::now));
        self
    }

    /// Lets the machines go on whose time has come.
    fn cure(&mut self, now: Instant) {
        let (due, rest) = std::mem::take(&mut self.ill)
            .into_iter()
            .partition(|(at, ..)| *at <= now);
        self.ill = rest;
        for (_, machine, cure) in due {
            match (cure, machine) {
                (Cure::Wake, machine) => signal(self.process(machine), "CONT"),
                (Cure::Start, Machine::Worker(place)) => self.workers[place].start_again(),
                (Cure::Start, Machine::Daemon) => self.daemon.start_again(),
                (Cure::Start, Machine::Server) => self.server.restart(),
            }
        }
    }

    fn process(&self, machine: Machine) -> u32 {
        match machine {
            Machine::Worker(place) => self.workers[place].process().unwrap(),
            Machine::Daemon => self.daemon.process_id().unwrap(),
            Machine::Server => self.server.process_id(),
        }
    }

    fn fault(&mut self, rng: &mut ChaCha8Rng, on: &Handle) {
        let worker = Machine::Worker(rng.gen_range(0..self.workers.len()));
        // Beyond 30 s the server gives the partitions of a frozen worker to others.
        match rng.gen_range(0..100) {
            0..30 => self.kill("kill -9 of a worker", worker, rng.gen_range(1..8)),
            30..50 => self.freeze("SIGSTOP of a worker", worker, rng.gen_range(1..45)),
            50..60 => self.kill(
                "kill -9 of the daemon",
                Machine::Daemon,
                rng.gen_range(0..3),
            ),
            60..70 => self.freeze(
                "SIGSTOP of the daemon",
                Machine::Daemon,
                rng.gen_range(1..6),
            ),
            70..80 => self.kill(
                "kill -9 of the server",
                Machine::Server,
                rng.gen_range(1..6),
            ),
            80..90 => self.freeze(
                "SIGSTOP of the server",
                Machine::Server,
                rng.gen_range(1..6),
            ),
            _ if self.is_ill(Machine::Server) => {}
            _ => {
                self.count("deleted streams");
                bounded(|| on.block_on(delete_streams(&self.server.url())));
            }
        }
    }

    fn kill(&mut self, what: &'static str, machine: Machine, for_s: u64) {
        if self.is_ill(machine) {
            return;
        }
        self.count(what);
        match machine {
            Machine::Worker(place) => self.workers[place].kill(),
            Machine::Daemon => self.daemon.kill(),
            Machine::Server => self.server.kill(),
        }
        let at = Instant::now() + Duration::from_secs(for_s);
        self.ill.push((at, machine, Cure::Start));
    }

    fn freeze(&mut self, what: &'static str, machine: Machine, for_s: u64) {
        if self.is_ill(machine) {
            return;
        }
        self.count(what);
        signal(self.process(machine), "STOP");
        let at = Instant::now() + Duration::from_secs(for_s);
        self.ill.push((at, machine, Cure::Wake));
    }

    fn is_ill(&self, machine: Machine) -> bool {
        self.ill.iter().any(|(_, ill, _)| *ill == machine)
    }

    fn count(&mut self, what: &'static str) {
        *self.faults.entry(what).or_default() += 1;
    }
}
