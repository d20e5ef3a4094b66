//! An engine that proves the partitions of other machines.
//!
//! Not the transport, which delivers partitions and results. The invariants:
//!
//! * A partition is proved only if its input has the circuit and the number that its message
//!   names. The circuit has the identity that it has on this machine.
//! * A lease is kept only while the engine passes checkpoints.
//! * The engine has at most one partition that waits, apart from urgent ones.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cuzk_cluster::message::{Failure, Work};
use cuzk_cluster::nats::{Prover, Run};
use cuzk_cluster::subject::is_urgent;
use cuzk_cluster::worker::{Ability, Capacity};
use cuzk_core::error::ErrorCode;
use cuzk_core::job::{JobHandle, JobOptions};
use cuzk_core::{Engine, Error};
use cuzk_filecoin::{CircuitId, PartitionHeader};
use serde::Serialize;

use super::identity::Identities;

/// The time between two looks at a partition that runs. A cancellation takes effect within it.
const POLL: Duration = Duration::from_millis(50);

/// The urgent partitions that a worker takes beside others. The engine pauses others for them.
const URGENT_BESIDE: usize = 2;

/// A circuit that this machine cannot prove is not asked for again for so long. The parameters
/// or the memory may be mended meanwhile.
const REST: Duration = Duration::from_secs(600);

/// The stages of a partition on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Its proof is begun.
    Begun,
    /// It is proved, and the proof was verified here.
    Proved,
    /// It has no proof.
    Failed,
    /// Its owner does not need it any more.
    Stopped,
}

/// One event of a partition on a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionEvent {
    /// The stage that it has reached.
    pub stage: Stage,
    /// The daemon that owns the partition.
    pub owner: String,
    /// The owner's job.
    pub job: String,
    /// The number of the partition in its job.
    pub partition: u32,
    /// The name of the circuit.
    pub circuit: String,
    /// The number of earlier tries on any machine.
    pub attempt: u32,
    /// The time since it was begun here, in milliseconds.
    pub elapsed_ms: u64,
    /// The reason for which there is no proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Is told each event of each partition.
pub type OnEvent = Arc<dyn Fn(&PartitionEvent) + Send + Sync>;

/// An engine with the circuits that it can prove for others.
#[derive(Clone)]
pub struct EngineProver {
    engine: Arc<Engine>,
    identities: Arc<Identities>,
    on_event: OnEvent,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    urgent_runs: AtomicUsize,
    /// Circuits that this machine could not prove, with the end of their rest.
    resting: Mutex<HashMap<CircuitId, Instant>>,
}

/// The reason for which there is no proof.
enum NoProof {
    /// The owner does not need it.
    Stopped,
    /// The message and the input do not agree, or are of another machine's circuit.
    Unfit(String),
    /// The engine could not prove it.
    Engine(Arc<Error>),
}

impl fmt::Display for NoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("its owner does not need it any more"),
            Self::Unfit(problem) => f.write_str(problem),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for EngineProver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineProver").finish_non_exhaustive()
    }
}

/// Counts an urgent partition while it runs.
struct Counted<'a>(Option<&'a AtomicUsize>);

impl<'a> Counted<'a> {
    fn new(work: &Work, runs: &'a AtomicUsize) -> Self {
        let counted = is_urgent(work.priority).then_some(runs);
        if let Some(runs) = counted {
            runs.fetch_add(1, Ordering::Relaxed);
        }
        Self(counted)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if let Some(runs) = self.0 {
            runs.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl EngineProver {
    /// Returns a prover on an engine whose decoder reads partitions, such as
    /// [`decode_partition`](cuzk_filecoin::decode_partition).
    #[must_use]
    pub fn new(engine: Arc<Engine>, identities: Arc<Identities>, on_event: OnEvent) -> Self {
        Self {
            engine,
            identities,
            on_event,
            state: Arc::default(),
        }
    }

    fn prove_here(&self, work: &Work, input: &[u8], run: &Run) -> Result<Vec<u8>, NoProof> {
        let id = self.check(work, input).map_err(NoProof::Unfit)?;
        let options = JobOptions {
            priority: Some(work.priority),
            ..JobOptions::default()
        };
        // The engine here numbers the job itself. Within this span its lines have the owner's id.
        let span = tracing::error_span!("work", id = work.job, partition = work.partition);
        let submitted = span.in_scope(|| self.engine.submit_bytes(input, options));
        let proved = match submitted.map_err(Arc::new) {
            Ok(job) => self.wait(&job, run)?,
            Err(error) => Err(error),
        };
        proved.map_err(|error| {
            self.rest_after(id, &error);
            NoProof::Engine(error)
        })
    }

    /// Checks that the input is what the message says, and that this machine proves it.
    fn check(&self, work: &Work, input: &[u8]) -> Result<CircuitId, String> {
        let header = PartitionHeader::read(input).map_err(|error| error.to_string())?;
        let PartitionHeader {
            circuit, partition, ..
        } = header;
        if circuit.to_string() != work.circuit.name.as_str() || partition != work.partition {
            return Err(format!(
                "the input is partition {partition} of {circuit}, and its message says partition \
                 {} of {}; run the same version of cuzk on all machines",
                work.partition, work.circuit.name
            ));
        }
        match self.identities.known(circuit) {
            Some(known) if known == work.circuit => Ok(circuit),
            _ => Err(format!(
                "{circuit}: this machine has no parameters of this fingerprint any more"
            )),
        }
    }

    /// Waits for the end of a job. Each look notes progress, if the engine made any.
    fn wait(&self, job: &JobHandle, run: &Run) -> Result<Result<Vec<u8>, Arc<Error>>, NoProof> {
        let mut checkpoints = self.engine.checkpoints();
        loop {
            if run.is_stopped() {
                job.cancel();
                return Err(NoProof::Stopped);
            }
            if let Some(outcome) = job.wait_for(POLL) {
                return Ok(outcome.map(|proof| proof.as_bytes().to_vec()));
            }
            let now = self.engine.checkpoints();
            if now != checkpoints {
                checkpoints = now;
                run.pass();
            }
        }
    }

    /// Lets a circuit rest if the error will come again for each of its partitions.
    fn rest_after(&self, id: CircuitId, error: &Error) {
        if !matches!(
            error,
            Error::OverBudget(_) | Error::Params(_) | Error::Groth16(_)
        ) {
            return;
        }
        let rest_s = REST.as_secs();
        let code = ErrorCode::of(error);
        tracing::warn!(
            circuit = %id, %code, %error, rest_s,
            "this machine cannot prove the circuit"
        );
        let until = Instant::now() + REST;
        let resting = self.state.resting.lock();
        let mut resting = resting.unwrap_or_else(PoisonError::into_inner);
        resting.insert(id, until);
    }

    fn rests(&self, id: CircuitId) -> bool {
        let resting = self.state.resting.lock();
        let mut resting = resting.unwrap_or_else(PoisonError::into_inner);
        resting.retain(|_, until| *until > Instant::now());
        resting.contains_key(&id)
    }

    /// Logs an event, and tells the caller of it.
    fn tell(&self, work: &Work, stage: Stage, since: Instant, reason: Option<String>) {
        let event = PartitionEvent {
            stage,
            owner: work.owner.to_string(),
            job: work.job.clone(),
            partition: work.partition,
            circuit: work.circuit.name.to_string(),
            attempt: work.attempt,
            elapsed_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
            reason,
        };
        let PartitionEvent {
            owner,
            job,
            partition,
            circuit,
            attempt,
            elapsed_ms,
            ..
        } = &event;
        match &event.reason {
            None if stage == Stage::Begun => {
                tracing::info!(circuit, owner, job, partition, attempt, "begun");
            }
            None => tracing::info!(circuit, owner, job, partition, elapsed_ms, "proved"),
            Some(reason) if stage == Stage::Stopped => {
                tracing::info!(
                    circuit,
                    owner,
                    job,
                    partition,
                    elapsed_ms,
                    "stopped: {reason}"
                );
            }
            Some(reason) => {
                tracing::warn!(
                    circuit,
                    owner,
                    job,
                    partition,
                    elapsed_ms,
                    "failed: {reason}"
                );
            }
        }
        (self.on_event)(&event);
    }
}

impl Prover for EngineProver {
    fn abilities(&self) -> Vec<Ability> {
        let assets = self.engine.status().assets.into_iter();
        let loaded: HashSet<String> = assets.map(|asset| asset.circuit).collect();
        let ids = self.identities.made().into_iter();
        let ids = ids.filter(|(id, _)| !self.rests(*id));
        ids.map(|(_, circuit)| Ability {
            is_loaded: loaded.contains(circuit.name.as_str()),
            circuit,
        })
        .collect()
    }

    /// One partition more than the engine has begun. So the next one waits here for its
    /// memory and its turn, and all others wait at the server.
    fn capacity(&self) -> Capacity {
        let running = self.engine.status().partitions_running;
        let urgent = self.state.urgent_runs.load(Ordering::Relaxed);
        Capacity {
            common: running.saturating_sub(urgent) + 1,
            urgent: URGENT_BESIDE,
        }
    }

    fn prove(&self, work: &Work, input: &[u8], run: &Run) -> Result<Vec<u8>, Failure> {
        let _counted = Counted::new(work, &self.state.urgent_runs);
        let started = Instant::now();
        self.tell(work, Stage::Begun, started, None);
        let proved = self.prove_here(work, input, run);
        let (stage, reason) = match &proved {
            Ok(_) => (Stage::Proved, None),
            Err(reason @ NoProof::Stopped) => (Stage::Stopped, Some(reason.to_string())),
            Err(reason) => (Stage::Failed, Some(reason.to_string())),
        };
        self.tell(work, stage, started, reason);
        proved.map_err(|reason| Failure::new(&reason.to_string()))
    }
}
