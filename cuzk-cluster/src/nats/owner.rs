//! The daemon's side: a ledger whose actions go to the server and to the daemon.
//!
//! It decides nothing. One thread carries out the actions of the ledger in order, so an end is
//! recorded before its result is acknowledged. The invariant: no lock is held while the server
//! or the daemon is asked for something.

mod tasks;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_nats::Event;
use async_nats::jetstream::Message;
use cuzk_scheduler::priority::Priority;
use tokio::runtime::{Builder, Runtime};

use super::objects::{self, INPUT_BYTES_MAX};
use super::streams::Limits;
use super::{ClusterError, Connection, Settings, connect, lock};
use crate::ledger::{Action, End, Known, Ledger, Receipt, StreamId};
use crate::message::{Control, Input, Message as _, Work, WorkId};
use crate::name::Name;
use crate::subject::{Circuit, Subject};

/// The daemon, as the cluster sees it. The calls come from threads of the cluster.
pub trait Home: Send + Sync + 'static {
    /// Returns true if the bytes are a proof of the partition. May take its time.
    fn verify(&self, id: &WorkId, proof: &[u8]) -> bool;

    /// Begins to prove a partition, and returns at once. The daemon reports the end with
    /// [`Owner::proved_at_home`] or [`Owner::failed_at_home`].
    fn prove(&self, id: &WorkId);

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
    /// The input, which only the engines understand.
    pub input: Vec<u8>,
    /// True if the daemon begins to prove it at once, too.
    pub starts_at_home: bool,
}

/// The daemon's side of the cluster. It ends when it is dropped.
pub struct Owner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

struct Shared {
    name: Name,
    limits: Limits,
    connection: Connection,
    home: Box<dyn Home>,
    started: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    ledger: Ledger,
    works: HashMap<WorkId, Arc<Offered>>,
    /// The results that the server still has.
    receipts: HashMap<Receipt, Message>,
    next_receipt: u64,
    stream: Option<StreamId>,
    is_stopped: bool,
}

/// A partition of the ledger. The work is without its input.
struct Offered {
    work: Work,
    input: Vec<u8>,
}

impl Owner {
    /// Connects to the server and makes the streams that are missing. Nothing is taken from the
    /// results before [`Owner::open`].
    ///
    /// # Errors
    /// Any [`ClusterError`].
    pub fn start(
        settings: &Settings,
        limits: Limits,
        name: Name,
        ledger: crate::ledger::Settings,
        home: Box<dyn Home>,
    ) -> Result<Self, ClusterError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("cuzk-cluster")
            .enable_all()
            .build();
        let name_of = "cuzk-cluster";
        let failed = |source| ClusterError::Thread {
            name: name_of,
            source,
        };
        let runtime = runtime.map_err(failed)?;
        let (events, seen) = tokio::sync::mpsc::unbounded_channel::<Event>();
        let on_event = move |event| drop(events.send(event));
        let connection = runtime.block_on(connect(settings, name.as_str(), on_event))?;
        let shared = Arc::new(Shared {
            name,
            limits,
            connection,
            home,
            started: Instant::now(),
            state: Mutex::new(State {
                ledger: Ledger::new(ledger),
                works: HashMap::new(),
                receipts: HashMap::new(),
                next_receipt: 0,
                stream: None,
                is_stopped: false,
            }),
            changed: Condvar::new(),
        });
        runtime.block_on(tasks::ensure(&shared))?;
        runtime.spawn(tasks::watch_connection(Arc::clone(&shared), seen));
        runtime.spawn(tasks::tick(Arc::clone(&shared)));
        let (of_thread, handle) = (Arc::clone(&shared), runtime.handle().clone());
        let thread = std::thread::Builder::new()
            .name("cuzk-cluster-owner".to_owned())
            .spawn(move || of_thread.run(&handle))
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
        let input = Input::stored(&offer.input);
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
        let input = offer.input;
        let offered = Arc::new(Offered { work, input });
        let known = self.shared.with(|state, now| {
            state.ledger.offer(id, subject, offer.starts_at_home, now)?;
            state.works.insert(id, offered);
            Ok::<(), Known>(())
        });
        known?;
        Ok(id)
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
        self.shared.with(|state, now| {
            state.ledger.cancel(id, now);
            state.works.remove(id);
        });
    }

    /// Returns the number of partitions that have not ended.
    #[must_use]
    pub fn open_partitions(&self) -> usize {
        self.shared.with(|state, _| state.ledger.len())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        lock(&self.shared.state).is_stopped = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Calls `change` with the state and the time, and wakes the thread that acts.
    fn with<R>(&self, change: impl FnOnce(&mut State, Duration) -> R) -> R {
        let result = change(&mut lock(&self.state), self.now());
        self.changed.notify_all();
        result
    }

    fn next_action(&self) -> Option<Action> {
        let mut state = lock(&self.state);
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(action) = state.ledger.next_action() {
                return Some(action);
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(self: Arc<Self>, handle: &tokio::runtime::Handle) {
        while let Some(action) = self.next_action() {
            self.carry_out(action, handle);
        }
    }

    fn carry_out(self: &Arc<Self>, action: Action, handle: &tokio::runtime::Handle) {
        let shared = Arc::clone(self);
        match action {
            Action::Publish {
                id,
                attempt,
                excluded,
            } => drop(handle.spawn(tasks::publish(shared, id, attempt, excluded))),
            Action::Withdraw { position } => drop(handle.spawn(tasks::withdraw(shared, position))),
            Action::Cancel { id } => {
                drop(handle.spawn(tasks::order(shared, Control::Cancel(vec![id]))));
            }
            Action::Rest { node, rest } => {
                let rest_ms = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
                tracing::warn!(%node, rest_ms, "a node rests because its proofs were wrong");
                drop(handle.spawn(tasks::order(shared, Control::Rest { node, rest_ms })));
            }
            Action::Verify {
                id,
                check,
                node,
                proof,
            } => drop(handle.spawn_blocking(move || {
                let is_good = shared.home.verify(&id, &proof);
                if !is_good {
                    tracing::warn!(%id, %node, "the proof of a node does not verify");
                }
                shared.with(|state, now| state.ledger.verified(&id, check, is_good, now));
            })),
            Action::ProveAtHome { id } => self.home.prove(&id),
            Action::StopAtHome { id } => self.home.stop(&id),
            Action::End { id, end } => {
                self.home.ended(&id, end);
                let offered = lock(&self.state).works.remove(&id);
                if let Some(offered) = offered {
                    handle.spawn(tasks::forget_input(shared, offered));
                }
            }
            Action::Acknowledge { receipt } => {
                let message = lock(&self.state).receipts.remove(&receipt);
                if let Some(message) = message {
                    handle.spawn(async move { drop(message.ack().await) });
                }
            }
        }
    }

    /// Returns the message of a partition, with its input or the name of its object.
    async fn message(
        &self,
        offered: &Offered,
        attempt: u32,
        excluded: Vec<Name>,
    ) -> Result<Vec<u8>, ClusterError> {
        let work = Work {
            attempt,
            excluded,
            input: objects::send(&self.connection, &offered.input).await?,
            ..offered.work.clone()
        };
        Ok(work.encode()?)
    }
}
