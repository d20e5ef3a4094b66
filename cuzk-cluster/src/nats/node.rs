//! The worker's side: the pull policy, whose commands go to the server and to the prover.
//!
//! It decides nothing. Each partition has a thread. The invariants: a result is stored by the
//! server before its work is acknowledged; a delivery that cannot be decoded is never proved.

mod tasks;

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_nats::{Event, Subject as NatsSubject};
use tokio::runtime::{Handle, Runtime};

use super::reporter::{self, Reports};
use super::run::Run;
use super::{ClusterError, Connection, Settings, connect, lock, streams};
use crate::message::{Failure, Work, WorkId};
use crate::name::Name;
use crate::runtime;
use crate::worker::{Ability, Capacity, Command, RunEnd, Worker};

/// The prover of a worker. The calls come from threads of the cluster.
pub trait Prover: Send + Sync + 'static {
    /// Returns the circuits that it can prove.
    fn abilities(&self) -> Vec<Ability>;

    /// Returns the number of partitions that it can have at a time.
    fn capacity(&self) -> Capacity;

    /// Proves a partition. It is to call [`Run::pass`] at each checkpoint, and to return soon
    /// after [`Run::is_stopped`].
    ///
    /// # Errors
    /// The reason for which there is no proof.
    fn prove(&self, work: &Work, input: &[u8], run: &Run) -> Result<Vec<u8>, Failure>;
}

/// A worker of the cluster. It ends when it is dropped, and leaves its partitions to others.
pub struct Node {
    shared: Arc<Shared>,
    reporter: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

struct Shared {
    name: Name,
    connection: Connection,
    prover: Box<dyn Prover>,
    started: Instant,
    core: Mutex<Worker<Offered>>,
    reports: Arc<Reports>,
    leaving: Mutex<Leaving>,
    left: Condvar,
}

/// The work that a worker has to do before it leaves.
#[derive(Default)]
struct Leaving {
    /// Nothing runs, and nothing is asked for.
    is_idle: bool,
    /// The results that the server does not have yet.
    unsent: usize,
}

/// A partition that the server delivered.
#[derive(Clone, Debug)]
struct Offered {
    work: Arc<Work>,
    /// The address of the acknowledgement.
    reply: NatsSubject,
}

impl Node {
    /// Connects to the server and begins to pull work.
    ///
    /// # Errors
    /// Any [`ClusterError`].
    pub fn start(
        settings: &Settings,
        name: Name,
        prover: Box<dyn Prover>,
    ) -> Result<Self, ClusterError> {
        let failed = |source| ClusterError::Thread {
            name: "cuzk-cluster",
            source,
        };
        let runtime = runtime::start("cuzk-cluster", 2).map_err(failed)?;
        let connection = runtime.block_on(async {
            let connection = connect(settings, name.as_str(), log).await?;
            streams::check_work(&connection.context).await?;
            Ok::<_, ClusterError>(connection)
        })?;
        let reports = Arc::new(Reports::new(name.clone()));
        let reporter = reporter::start(settings.clone(), Arc::clone(&reports)).map_err(failed)?;
        let shared = Arc::new(Shared {
            name,
            connection,
            prover,
            started: Instant::now(),
            core: Mutex::new(Worker::default()),
            reports,
            leaving: Mutex::default(),
            left: Condvar::new(),
        });
        runtime.spawn(tasks::tick(Arc::clone(&shared)));
        runtime.spawn(tasks::take_orders(Arc::clone(&shared)));
        runtime.spawn(tasks::announce(Arc::clone(&shared)));
        Ok(Self {
            shared,
            reporter: Some(reporter),
            runtime: Some(runtime),
        })
    }

    /// Finishes what runs, pulls nothing more, and returns when the worker can leave: the
    /// server has all its results. Returns false if that takes longer than `longest`.
    #[must_use]
    pub fn drain(&self, longest: Duration) -> bool {
        if let Some(runtime) = &self.runtime {
            self.shared.with(runtime.handle(), |core, _| core.drain());
        }
        let leaving = lock(&self.shared.leaving);
        let stays = |leaving: &mut Leaving| !leaving.is_idle || leaving.unsent > 0;
        let waited = self.shared.left.wait_timeout_while(leaving, longest, stays);
        let (_leaving, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }

    /// Returns the number of partitions that run.
    #[must_use]
    pub fn running(&self) -> usize {
        lock(&self.shared.core).running()
    }
}

/// Logs what happens to the connection.
fn log(event: Event) {
    match event {
        Event::Connected => tracing::info!("connected to the server of the cluster"),
        Event::Disconnected => {
            tracing::warn!("the server of the cluster is gone; what runs goes on");
        }
        Event::ServerError(error) => {
            tracing::warn!(%error, "the server of the cluster refused something");
        }
        Event::ClientError(error) => tracing::warn!(%error, "the connection to the cluster"),
        event => tracing::debug!(%event, "the connection to the cluster"),
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.shared.reports.stop();
        if let Some(reporter) = self.reporter.take() {
            let _ = reporter.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    /// Calls `change` with the pull policy and the time, and carries out its commands.
    fn with<R>(
        self: &Arc<Self>,
        handle: &Handle,
        change: impl FnOnce(&mut Worker<Offered>, Duration) -> R,
    ) -> R {
        let mut commands = Vec::new();
        let result = {
            let mut core = lock(&self.core);
            let result = change(&mut core, self.started.elapsed());
            commands.extend(std::iter::from_fn(|| core.next_command()));
            result
        };
        for command in commands {
            self.carry_out(command, handle);
        }
        result
    }

    fn carry_out(self: &Arc<Self>, command: Command<Offered>, handle: &Handle) {
        let shared = Arc::clone(self);
        match command {
            Command::Pull {
                pull,
                subject,
                wait,
            } => drop(handle.spawn(tasks::pull(shared, pull, subject, wait))),
            Command::Start { id, lease } => self.start_run(id, lease, handle),
            Command::Join { id, lease } => self.reports.join(id, lease.reply),
            Command::Return { lease, delay } => {
                drop(handle.spawn(tasks::give_back(shared, lease.reply, delay)));
            }
            Command::Stop { id } => {
                if let Some(run) = self.reports.run(&id) {
                    run.stop();
                }
            }
            Command::Leave => {
                lock(&self.leaving).is_idle = true;
                self.left.notify_all();
            }
        }
    }

    fn start_run(self: &Arc<Self>, id: WorkId, offered: Offered, handle: &Handle) {
        let run = Arc::new(Run::new(offered.work.owner.clone()));
        self.reports
            .begin(id, offered.reply.clone(), Arc::clone(&run));
        let (shared, on) = (Arc::clone(self), handle.clone());
        let (work, of_thread) = (offered.work, Arc::clone(&run));
        let started = std::thread::Builder::new()
            .name("cuzk-cluster-run".to_owned())
            .spawn(move || tasks::run(&shared, id, &work, &of_thread, &on));
        if let Err(error) = started {
            tracing::error!(%id, %error, "no thread for a partition; it goes to another worker");
            for reply in self.reports.end(&id) {
                let delay = super::ERROR_PAUSE;
                handle.spawn(tasks::give_back(Arc::clone(self), reply, delay));
            }
            let handle_of_task = handle.clone();
            let shared = Arc::clone(self);
            handle.spawn(async move {
                shared.with(&handle_of_task, |core, now| {
                    core.ended(&id, RunEnd::Failed, now)
                });
            });
        }
    }
}
