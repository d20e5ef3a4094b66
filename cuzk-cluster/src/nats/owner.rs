//! The daemon's side: a ledger whose actions go to the server and to the daemon.
//!
//! It decides nothing. One thread carries out the actions of the ledger in order, so an end is
//! recorded before its result is acknowledged. The invariant: a partition that waits takes no
//! memory for its input.

mod acting;
mod link;
mod shared;
mod tasks;

use std::sync::Arc;
use std::thread::{JoinHandle, current};

use cuzk_scheduler::priority::Priority;
use tokio::runtime::Runtime;

use super::objects::INPUT_BYTES_MAX;
use super::streams::Limits;
use super::{ClusterError, Settings, lock};
use crate::ledger::{self, End, Known, NodeReport, Others};
use crate::message::{Input, Message as _, Work, WorkId};
use crate::name::Name;
use crate::runtime;
use crate::subject::{Circuit, Subject};
use shared::Shared;

/// The daemon, as the cluster sees it. The calls come from threads of the cluster.
pub trait Home: Send + Sync + 'static {
    /// Returns the bytes of a partition's input, the same each time; none if the partition is
    /// not needed any more. They are asked for when they are sent, so that the inputs of
    /// waiting partitions take no memory.
    fn input(&self, id: &WorkId) -> Option<Vec<u8>>;

    /// Returns true if the bytes are a proof of the partition; none if the daemon cannot say,
    /// for example because it ends. The result stays with the server then, and counts against
    /// nobody. May take its time.
    fn verify(&self, id: &WorkId, proof: &[u8]) -> Option<bool>;

    /// Begins to prove a partition, and returns at once. The daemon reports the end with
    /// [`Owner::proved_at_home`] or [`Owner::failed_at_home`]. If others have failed to prove
    /// it, its witness is to be checked against the constraints.
    fn prove(&self, id: &WorkId, others: Others);

    /// Notes that nodes have begun a partition. The daemon need not begin it.
    fn taken(&self, id: &WorkId);

    /// Notes that no node has a partition any more. It waits for another one, and the daemon
    /// may begin it.
    fn returned(&self, id: &WorkId);

    /// Stops a partition that it proves, if it still does.
    fn stop(&self, id: &WorkId);

    /// Records the end of a partition. The end is durable when the call returns.
    fn ended(&self, id: &WorkId, end: End);
}

/// A partition that the daemon offers.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The job, by the daemon's id, in at most [`JOB_BYTES_MAX`](crate::message::JOB_BYTES_MAX)
    /// bytes.
    pub job: String,
    /// The number of the partition.
    pub partition: u32,
    /// The circuit.
    pub circuit: Circuit,
    /// The urgency.
    pub priority: Priority,
    /// The digest and the length of the input, of which [`Home::input`] returns the bytes.
    pub input: Input,
    /// True if the daemon begins to prove it at once, too.
    pub starts_at_home: bool,
}

/// The parts that an owner is started with.
pub struct OwnerSetup {
    /// The way to the server.
    pub transport: Settings,
    /// The limits of what the server keeps.
    pub limits: Limits,
    /// The name of the daemon in the cluster.
    pub name: Name,
    /// The limits and times of the ledger.
    pub ledger: ledger::Settings,
    /// The daemon.
    pub home: Box<dyn Home>,
}

impl std::fmt::Debug for OwnerSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnerSetup")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The daemon's side of the cluster. It ends when it is dropped.
pub struct Owner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// The state of a cluster, as its owner sees it.
#[derive(Clone, Debug)]
pub struct Report {
    /// The addresses of the server.
    pub servers: Vec<String>,
    /// True if work can be sent to the server now.
    pub is_connected: bool,
    /// The reason for which the server cannot be used, or the last request failed.
    pub problem: Option<String>,
    /// The partitions that have not ended.
    pub open_partitions: usize,
    /// The nodes that it has heard of, by name.
    pub nodes: Vec<NodeReport>,
}

impl Owner {
    /// Connects to the server and makes the streams that are missing. Nothing is taken from the
    /// results before [`Owner::open`].
    ///
    /// # Errors
    /// Any [`ClusterError`].
    pub fn start(setup: OwnerSetup) -> Result<Self, ClusterError> {
        let owner = Self::begin(setup)?;
        if let Some(runtime) = &owner.runtime {
            runtime.block_on(tasks::establish(&owner.shared))?;
            runtime.spawn(tasks::keep_connection(Arc::clone(&owner.shared)));
        }
        Ok(owner)
    }

    /// Starts before there is a server, and connects as soon as there is one that can be used.
    /// [`Owner::report`] says why there is none.
    ///
    /// # Errors
    /// [`ClusterError::Thread`].
    pub fn start_unconnected(setup: OwnerSetup) -> Result<Self, ClusterError> {
        let owner = Self::begin(setup)?;
        if let Some(runtime) = &owner.runtime {
            runtime.spawn(tasks::keep_connection(Arc::clone(&owner.shared)));
        }
        Ok(owner)
    }

    fn begin(setup: OwnerSetup) -> Result<Self, ClusterError> {
        let name_of = "cuzk-cluster";
        let failed = |source| ClusterError::Thread {
            name: name_of,
            source,
        };
        let runtime = runtime::start(name_of, 2).map_err(failed)?;
        let shared = Arc::new(Shared::new(setup));
        runtime.spawn(tasks::tick(Arc::clone(&shared)));
        let (of_thread, handle) = (Arc::clone(&shared), runtime.handle().clone());
        let thread = std::thread::Builder::new()
            .name("cuzk-cluster-owner".to_owned())
            .spawn(move || acting::run(&of_thread, &handle))
            .map_err(failed)?;
        Ok(Self {
            shared,
            thread: Some(thread),
            runtime: Some(runtime),
        })
    }

    /// Begins to take results and signs of life. To be called after the unfinished partitions
    /// of the journal were offered.
    pub fn open(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(tasks::take_results(Arc::clone(&self.shared)));
            runtime.spawn(tasks::take_signs(Arc::clone(&self.shared)));
            runtime.spawn(tasks::take_presences(Arc::clone(&self.shared)));
        }
    }

    /// Prepares the server for circuits, so that their first partitions need not wait for it.
    pub fn prepare(&self, circuits: &[Circuit]) {
        let subject = |circuit: &Circuit, priority| Subject {
            circuit: circuit.clone(),
            priority,
        };
        let subjects = circuits.iter().flat_map(|circuit| {
            let all = Priority::ALL.into_iter();
            all.map(move |priority| subject(circuit, priority))
        });
        if let Some(runtime) = &self.runtime {
            let shared = Arc::clone(&self.shared);
            runtime.spawn(tasks::prepare(shared, subjects.collect()));
        }
    }

    /// Offers a partition to the cluster.
    ///
    /// # Errors
    /// [`ClusterError::InputTooLong`], [`ClusterError::Message`], [`ClusterError::Known`].
    pub fn offer(&self, offer: Offer) -> Result<WorkId, ClusterError> {
        let inline = None;
        let input = Input {
            inline,
            ..offer.input
        };
        if input.bytes_len > INPUT_BYTES_MAX {
            let (bytes, bytes_max) = (input.bytes_len, INPUT_BYTES_MAX);
            return Err(ClusterError::InputTooLong { bytes, bytes_max });
        }
        let work = Work {
            owner: self.shared.name.clone(),
            job: offer.job,
            partition: offer.partition,
            circuit: offer.circuit,
            priority: offer.priority,
            attempt: 0,
            excluded: Vec::new(),
            input,
        };
        work.check()?;
        let (id, subject) = (work.id(), work.subject());
        let work = Arc::new(work);
        let known = self.shared.with(|state, now| {
            state.ledger.offer(id, subject, offer.starts_at_home, now)?;
            state.works.insert(id, work);
            Ok::<(), Known>(())
        });
        known?;
        Ok(id)
    }

    /// Reports that the daemon has begun a partition. Nodes that have not begun it need not.
    pub fn begun_at_home(&self, id: &WorkId) {
        self.shared
            .with(|state, now| state.ledger.begun_at_home(id, now));
    }

    /// Takes the most urgent partition that no node runs, if there is one. The daemon proves
    /// it, and reports the end.
    #[must_use]
    pub fn take_home(&self) -> Option<WorkId> {
        self.shared.with(|state, now| state.ledger.take_home(now))
    }

    /// Reports the daemon's own proof, which is verified.
    pub fn proved_at_home(&self, id: &WorkId, proof: Vec<u8>) {
        self.shared
            .with(|state, now| state.ledger.proved_at_home(id, proof, now));
    }

    /// Reports that the daemon could not prove a partition.
    pub fn failed_at_home(&self, id: &WorkId, reason: String) {
        self.shared
            .with(|state, now| state.ledger.failed_at_home(id, reason, now));
    }

    /// Removes a partition that is not needed any more. Nodes that run it stop.
    pub fn cancel(&self, id: &WorkId) {
        let work = self.shared.with(|state, now| {
            state.ledger.cancel(id, now);
            state.works.remove(id)
        });
        if let (Some(work), Some(runtime)) = (work, &self.runtime) {
            runtime.spawn(tasks::forget_input(Arc::clone(&self.shared), work));
        }
    }

    /// Returns the number of partitions that have not ended.
    #[must_use]
    pub fn open_partitions(&self) -> usize {
        lock(&self.shared.state).ledger.len()
    }

    /// Returns the state of the cluster.
    #[must_use]
    pub fn report(&self) -> Report {
        let (link, now) = (&self.shared.link, self.shared.now());
        let state = lock(&self.shared.state);
        Report {
            servers: link.addresses().to_vec(),
            is_connected: state.is_usable,
            problem: link.problem(),
            open_partitions: state.ledger.len(),
            nodes: state.ledger.nodes(now),
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.stop();
        // The last handle of the daemon can be dropped in a call of this thread.
        let is_other = |thread: &JoinHandle<()>| thread.thread().id() != current().id();
        if let Some(thread) = self.thread.take().filter(is_other) {
            let _ = thread.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
