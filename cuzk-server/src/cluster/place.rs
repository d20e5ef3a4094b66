//! The other machines as a place where the engine's partitions are proved.
//!
//! It decides nothing. The engine knows what is to be proved, and the ledger knows who proves
//! it. Both meet at one table of ids. The invariants:
//!
//! * The engine and the ledger are called with the lock of the table only if the call returns
//!   at once.
//! * A partition that cannot be offered is given back to the engine.
//! * A proof is with the engine, and in its journal, before its message is acknowledged.

use std::collections::HashSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_cluster::ledger;
use cuzk_cluster::message::{Input, JOB_BYTES_MAX};
use cuzk_cluster::nats::{ClusterError, Offer, Owner, OwnerSetup};
use cuzk_cluster::subject::Circuit;
use cuzk_core::engine::{
    Decoder, Elsewhere, GiveBack, PartitionId, QueuedPartition, Remote, devices,
};
use cuzk_core::error::ErrorCode;
use cuzk_core::{Config, Engine, Priority};
use rayon::ThreadPool;

use super::home::Home;
use super::identity::Identities;
use super::inputs::Inputs;
use super::settings::ClusterSettings;
use super::status::ClusterStatus;
use super::table::{Lane, Table, starts_here};

/// The time between two looks at whether the jobs of the journal were offered.
const OPENING_POLL: Duration = Duration::from_millis(20);

/// The other machines, as the daemon's engine uses them.
pub struct Place {
    is_local: bool,
    remote: Remote,
    table: Arc<Table>,
    inputs: Arc<Inputs>,
    identities: Identities,
    owner: Owner,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place")
            .field("is_local", &self.is_local)
            .finish_non_exhaustive()
    }
}

impl Place {
    /// Starts an engine whose partitions other machines prove, too. The server of the cluster
    /// need not be there yet. The other arguments are those of [`Engine::start_with`].
    ///
    /// # Errors
    /// As [`Engine::start_with`].
    pub fn start_engine(
        settings: &ClusterSettings,
        config: Config,
        pool: Arc<ThreadPool>,
        decoder: Decoder,
    ) -> cuzk_core::Result<(Engine, Arc<Self>)> {
        let devices = devices(&config, &pool)?;
        let identities = Identities::new(&config.srs.param_cache);
        let mut started = None;
        let engine = Remote::start_engine(config, pool, devices, decoder, |remote| {
            let place = Self::start(settings, identities, remote).map_err(no_place)?;
            Ok(Arc::clone(started.insert(place)) as Arc<dyn Elsewhere>)
        })?;
        let missing = || cannot_start("the cluster has no place");
        Ok((engine, started.ok_or_else(missing)?))
    }

    /// Starts to connect to the server of the cluster, and returns at once.
    fn start(
        settings: &ClusterSettings,
        identities: Identities,
        remote: Remote,
    ) -> Result<Arc<Self>, ClusterError> {
        let table = Arc::new(Table::default());
        let inputs = Arc::new(Inputs::default());
        let home = Home::new(
            settings.is_local,
            remote.clone(),
            Arc::clone(&table),
            Arc::clone(&inputs),
        );
        let owner = Owner::start_unconnected(OwnerSetup {
            transport: settings.transport.clone(),
            limits: settings.limits,
            name: settings.name.clone(),
            ledger: ledger::Settings::default(),
            home: Box::new(home),
        })?;
        let place = Arc::new(Self {
            is_local: settings.is_local,
            remote,
            table,
            inputs,
            identities,
            owner,
        });
        for (name, lane) in [
            ("cuzk-offer-urgent", Lane::Urgent),
            ("cuzk-offer", Lane::Common),
        ] {
            let (table, of_thread) = (Arc::clone(&place.table), Arc::downgrade(&place));
            spawn(name, move || offer_all(&table, &of_thread, lane))?;
        }
        let of_thread = Arc::downgrade(&place);
        spawn("cuzk-cluster-open", move || open(&of_thread))?;
        Ok(place)
    }

    /// Returns the state of the cluster.
    #[must_use]
    pub fn status(&self) -> ClusterStatus {
        ClusterStatus::of(self.owner.report(), self.is_local)
    }

    /// Offers a partition to the other machines, if it still waits for somebody.
    fn offer(&self, id: PartitionId, prepared: &mut HashSet<Circuit>) {
        let Some(queued) = self.table.wanted(id) else {
            return;
        };
        match self.try_offer(&queued) {
            Ok(Some(circuit)) => {
                if prepared.insert(circuit.clone()) {
                    self.owner.prepare(&[circuit]);
                }
            }
            Ok(None) => {}
            Err(error) => {
                let (circuit, partition) = (queued.circuit, id.partition);
                tracing::warn!(%circuit, partition, error, "a partition is proved here only");
                self.prove_alone(id);
            }
        }
    }

    /// Has a partition proved here that cannot be offered.
    fn prove_alone(&self, id: PartitionId) {
        self.table.keep_alone(id);
        self.remote.give_back(id, GiveBack::Free);
    }

    /// Returns the circuit of the partition, if it was offered.
    fn try_offer(&self, queued: &QueuedPartition) -> Result<Option<Circuit>, String> {
        let id = queued.id;
        let Some(statement) = self.remote.statement(id) else {
            return Ok(None);
        };
        let bytes = statement.partition_request(id.partition);
        let bytes = bytes.map_err(|error| error.to_string())?;
        let input = Input::stored(&bytes);
        let circuit = self.identities.of(queued.circuit);
        let circuit = circuit.map_err(|error| error.to_string())?;
        let offer = Offer {
            job: job_name(queued),
            partition: u32::try_from(id.partition).map_err(|error| error.to_string())?,
            circuit: circuit.clone(),
            priority: queued.priority,
            input,
            starts_at_home: starts_here(queued.priority),
        };
        // It is sent soon, unless the server is gone or has enough work.
        self.inputs.keep(id, bytes);
        let offered = self.table.offer(id, || self.owner.offer(offer));
        match offered.transpose() {
            Ok(offered) => Ok(offered.map(|_| circuit)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Elsewhere for Place {
    fn is_left_to_others(&self, priority: Priority) -> bool {
        !self.is_local && !starts_here(priority)
    }

    fn has(&self, partition: PartitionId) -> bool {
        self.table.has(partition)
    }

    fn queued(&self, partition: QueuedPartition) {
        self.table.add(partition);
    }

    fn begun(&self, partition: PartitionId) {
        if let Some(work) = self.table.begin(partition) {
            self.owner.begun_at_home(&work);
        }
    }

    fn ended(&self, partition: PartitionId) {
        drop(self.inputs.take(partition));
        if let Some(work) = self.table.remove(partition) {
            self.owner.cancel(&work);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.stop();
    }
}

/// Offers partitions until the place ends. A panic costs its partition the other machines.
fn offer_all(table: &Table, place: &Weak<Place>, lane: Lane) {
    let mut prepared = HashSet::new();
    while let Some(id) = table.next(lane) {
        if let Some(place) = place.upgrade() {
            let offer = || place.offer(id, &mut prepared);
            if catch_unwind(AssertUnwindSafe(offer)).is_err() {
                let code = ErrorCode::Internal;
                tracing::error!(%code, "a partition could not be offered; please report it");
                place.prove_alone(id);
            }
        }
        table.done();
    }
}

/// Takes results as soon as the partitions of the journal were offered. Results of an earlier
/// life then find their partitions.
fn open(place: &Weak<Place>) {
    let started = Instant::now();
    while let Some(place) = place.upgrade() {
        if place.remote.has_resumed() && place.table.has_offered_all() {
            place.owner.open();
            let waited_ms = started.elapsed().as_millis();
            tracing::debug!(%waited_ms, "the results of other machines are taken");
            return;
        }
        drop(place);
        thread::sleep(OPENING_POLL);
    }
}

fn cannot_start(problem: impl std::fmt::Display) -> cuzk_core::Error {
    cuzk_core::Error::Start {
        problem: problem.to_string(),
    }
}

/// The error of a place that cannot be had.
fn no_place(error: ClusterError) -> cuzk_core::Error {
    match error {
        ClusterError::Thread { source, .. } if source.kind() == io::ErrorKind::WouldBlock => {
            cuzk_core::Error::no_thread(source)
        }
        error => cannot_start(error),
    }
}

/// Returns the name of a job for other machines. It is the same after a restart.
fn job_name(queued: &QueuedPartition) -> String {
    match &queued.job_id {
        Some(id) if id.len() <= JOB_BYTES_MAX => id.clone(),
        Some(id) => blake3::hash(id.as_bytes()).to_hex().to_string(),
        None => format!("job-{}", queued.id.job),
    }
}

fn spawn(name: &'static str, work: impl FnOnce() + Send + 'static) -> Result<(), ClusterError> {
    let builder = thread::Builder::new().name(name.to_owned());
    let started = builder.spawn(work);
    started
        .map(drop)
        .map_err(|source| ClusterError::Thread { name, source })
}
