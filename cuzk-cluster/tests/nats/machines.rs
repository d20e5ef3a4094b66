//! A daemon and workers whose prover is a function.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use cuzk_cluster::ledger::{self, End, Others};
use cuzk_cluster::message::{Failure, Input, Work, WorkId};
use cuzk_cluster::name::Name;
use cuzk_cluster::nats::{
    ClusterError, Home, Limits, Node, Offer, Owner, OwnerSetup, Prover, Run, Settings,
};
use cuzk_cluster::subject::{Circuit, Fingerprint};
use cuzk_cluster::worker::{Ability, Capacity};
use cuzk_scheduler::priority::Priority;

/// No test waits longer for an end. It is an hour, so that no test depends on speed.
const LONGEST: Duration = Duration::from_secs(3600);

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn circuit(text: &str) -> Circuit {
    Circuit {
        name: name(text),
        fingerprint: Fingerprint(*blake3::hash(text.as_bytes()).as_bytes()),
    }
}

/// Returns the made-up proof of an input.
pub(crate) fn proof_of(input: &[u8]) -> Vec<u8> {
    blake3::hash(input).as_bytes().repeat(6)
}

/// Returns an offer with the bytes of its input.
pub(crate) fn offer(number: usize, priority: Priority, input: Vec<u8>) -> (Offer, Vec<u8>) {
    let offer = Offer {
        job: format!("job {number}"),
        partition: 0,
        circuit: circuit("porep-2KiB"),
        priority,
        input: Input::stored(&input),
        starts_at_home: false,
    };
    (offer, input)
}

/// The events that the daemon has seen.
#[derive(Default)]
pub(crate) struct Seen {
    inputs: Mutex<HashMap<WorkId, Vec<u8>>>,
    ends: Mutex<HashMap<WorkId, Vec<End>>>,
    at_home: Mutex<Vec<WorkId>>,
    /// The partitions that nodes have.
    pub(crate) taken: Mutex<Vec<WorkId>>,
    changed: Condvar,
    pub(crate) rejected: AtomicUsize,
    /// The times of all ends.
    pub(crate) ended_at: Mutex<Vec<Instant>>,
}

struct Recorder(Arc<Seen>);

impl Home for Recorder {
    fn input(&self, id: &WorkId) -> Option<Vec<u8>> {
        self.0.inputs.lock().unwrap().get(id).cloned()
    }

    fn verify(&self, id: &WorkId, proof: &[u8]) -> Option<bool> {
        let inputs = self.0.inputs.lock().unwrap();
        let is_good = inputs.get(id).is_some_and(|input| proof_of(input) == proof);
        self.0
            .rejected
            .fetch_add(usize::from(!is_good), Ordering::Relaxed);
        Some(is_good)
    }

    fn prove(&self, id: &WorkId, _: Others) {
        self.0.at_home.lock().unwrap().push(*id);
        self.0.changed.notify_all();
    }

    fn taken(&self, id: &WorkId) {
        self.0.taken.lock().unwrap().push(*id);
    }

    fn returned(&self, id: &WorkId) {
        self.0.taken.lock().unwrap().retain(|taken| taken != id);
    }

    fn stop(&self, _: &WorkId) {}

    fn ended(&self, id: &WorkId, end: End) {
        self.0
            .ends
            .lock()
            .unwrap()
            .entry(*id)
            .or_default()
            .push(end);
        self.0.ended_at.lock().unwrap().push(Instant::now());
        self.0.changed.notify_all();
    }
}

/// A way to start an owner.
type Start = fn(OwnerSetup) -> Result<Owner, ClusterError>;

pub(crate) struct Daemon {
    pub(crate) owner: Owner,
    pub(crate) seen: Arc<Seen>,
}

impl Daemon {
    pub(crate) fn start(settings: &Settings) -> Self {
        Self::start_with(settings, ledger::Settings::default())
    }

    /// Starts a daemon whose ledger has other times.
    pub(crate) fn start_with(settings: &Settings, ledger: ledger::Settings) -> Self {
        Self::start_by(Owner::start, settings, ledger, 1)
    }

    /// Starts a daemon whose server may not be there yet.
    pub(crate) fn start_unconnected(settings: &Settings) -> Self {
        Self::start_replicated(settings, 1)
    }

    /// Starts a daemon whose streams have copies on so many servers, which need not be there
    /// yet.
    pub(crate) fn start_replicated(settings: &Settings, replicas: usize) -> Self {
        let ledger = ledger::Settings::default();
        Self::start_by(Owner::start_unconnected, settings, ledger, replicas)
    }

    fn start_by(
        start: Start,
        settings: &Settings,
        ledger: ledger::Settings,
        replicas: usize,
    ) -> Self {
        let limits = Limits {
            work_bytes_max: 1 << 30,
            object_bytes_max: 1 << 30,
            replicas,
            ..Limits::default()
        };
        Self::start_as("daemon", limits, (start, settings, ledger))
    }

    /// Starts a daemon of another name with other limits, whose server need not be there yet.
    pub(crate) fn start_limited(settings: &Settings, text: &str, limits: Limits) -> Self {
        let ledger = ledger::Settings::default();
        Self::start_as(text, limits, (Owner::start_unconnected, settings, ledger))
    }

    fn start_as(
        text: &str,
        limits: Limits,
        (start, settings, ledger): (Start, &Settings, ledger::Settings),
    ) -> Self {
        let seen = Arc::new(Seen::default());
        let home = Box::new(Recorder(Arc::clone(&seen)));
        let setup = OwnerSetup {
            transport: settings.clone(),
            limits,
            name: name(text),
            ledger,
            home,
        };
        let owner = start(setup).unwrap();
        Self { owner, seen }
    }

    pub(crate) fn offer(&self, (offer, input): (Offer, Vec<u8>)) -> WorkId {
        // The daemon knows the input before a proof of it can come.
        let mut inputs = self.seen.inputs.lock().unwrap();
        let id = self.owner.offer(offer).unwrap();
        inputs.insert(id, input);
        id
    }

    /// Waits until a partition has ended, and returns its only end.
    pub(crate) fn end(&self, id: &WorkId) -> End {
        let ends = self.seen.ends.lock().unwrap();
        let is_open = |ends: &mut HashMap<WorkId, Vec<End>>| !ends.contains_key(id);
        let waited = self.seen.changed.wait_timeout_while(ends, LONGEST, is_open);
        let (ends, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "{id} has no end");
        assert_eq!(ends[id].len(), 1, "{id} ended more than once");
        ends[id][0].clone()
    }

    /// Waits until a partition has ended with the right proof.
    pub(crate) fn proved(&self, id: &WorkId) {
        let input = self.seen.inputs.lock().unwrap()[id].clone();
        match self.end(id) {
            End::Proved { proof, .. } => assert_eq!(proof, proof_of(&input)),
            failed @ End::Failed { .. } => panic!("{failed:?}"),
        }
    }

    /// Waits until a partition is to be proved here.
    pub(crate) fn sent_home(&self, id: &WorkId) {
        let at_home = self.seen.at_home.lock().unwrap();
        let is_away = |at_home: &mut Vec<WorkId>| !at_home.contains(id);
        let waited = self
            .seen
            .changed
            .wait_timeout_while(at_home, LONGEST, is_away);
        assert!(!waited.unwrap().1.timed_out(), "{id} is not proved at home");
    }
}

/// How a prover behaves.
#[derive(Default)]
pub(crate) struct Behaviour {
    /// The partitions that it has begun.
    pub(crate) begun: AtomicUsize,
    /// While it is true, partitions run on and pass checkpoints.
    pub(crate) holds: AtomicBool,
    /// The time that a partition takes, in milliseconds.
    pub(crate) takes_ms: AtomicU64,
    /// Its parameters are not in memory.
    pub(crate) is_cold: AtomicBool,
    /// It returns wrong proofs.
    pub(crate) lies: AtomicBool,
    /// It returns failures.
    pub(crate) fails: AtomicBool,
    /// It panics.
    pub(crate) panics: AtomicBool,
    /// The partitions that were stopped.
    pub(crate) stopped: AtomicUsize,
    /// The order in which partitions began, by priority.
    pub(crate) order: Mutex<Vec<Priority>>,
}

struct Function {
    behaviour: Arc<Behaviour>,
    capacity: Capacity,
}

impl Prover for Function {
    fn abilities(&self) -> Vec<Ability> {
        let circuit = circuit("porep-2KiB");
        let is_loaded = !self.behaviour.is_cold.load(Ordering::Relaxed);
        vec![Ability { circuit, is_loaded }]
    }

    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn prove(&self, work: &Work, input: &[u8], run: &Run) -> Result<Vec<u8>, Failure> {
        let behaviour = &self.behaviour;
        behaviour.begun.fetch_add(1, Ordering::Relaxed);
        behaviour.order.lock().unwrap().push(work.priority);
        while behaviour.holds.load(Ordering::Relaxed) {
            run.pass();
            if run.is_stopped() {
                behaviour.stopped.fetch_add(1, Ordering::Relaxed);
                return Err(Failure::new("stopped"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(
            behaviour.takes_ms.load(Ordering::Relaxed),
        ));
        if behaviour.panics.load(Ordering::Relaxed) {
            panic!("a made-up panic");
        }
        if behaviour.fails.load(Ordering::Relaxed) {
            return Err(Failure::new("no memory"));
        }
        if behaviour.lies.load(Ordering::Relaxed) {
            return Ok(vec![0; 192]);
        }
        Ok(proof_of(input))
    }
}

/// Starts a worker that can have `common` partitions and one urgent one at a time.
pub(crate) fn worker(settings: &Settings, text: &str, common: usize) -> (Node, Arc<Behaviour>) {
    let behaviour = Arc::new(Behaviour::default());
    let node = worker_with(settings, text, common, &behaviour);
    (node, behaviour)
}

pub(crate) fn worker_with(
    settings: &Settings,
    text: &str,
    common: usize,
    behaviour: &Arc<Behaviour>,
) -> Node {
    let prover = Function {
        behaviour: Arc::clone(behaviour),
        capacity: Capacity { common, urgent: 1 },
    };
    Node::start(settings, name(text), Box::new(prover)).unwrap()
}

/// Waits until `is_so` returns true.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LONGEST, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
