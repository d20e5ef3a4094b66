//! The thread that reports progress.
//!
//! It has a runtime and a connection of its own, so that neither a busy runtime nor a long
//! input costs a lease. The invariant: it reports a partition only while its checkpoints
//! advance.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_nats::Subject as NatsSubject;
use async_nats::jetstream::message::AckKind;
use tokio::sync::Notify;

use super::run::Run;
use super::{Connection, ERROR_PAUSE, Settings, connect, lock, streams};
use crate::leases::Leases;
use crate::message::{IDS_MAX, Message as _, Sign, WorkId};
use crate::name::Name;
use crate::runtime;

/// The time between two looks at the checkpoints.
const PERIOD: Duration = Duration::from_secs(1);

/// The running partitions, as the reporting thread sees them.
pub(super) struct Reports {
    node: Name,
    started: Instant,
    state: Mutex<State>,
    wake: Notify,
    is_stopped: AtomicBool,
}

struct State {
    leases: Leases<NatsSubject>,
    runs: HashMap<WorkId, Arc<Run>>,
}

impl Reports {
    pub(super) fn new(node: Name) -> Self {
        Self {
            node,
            started: Instant::now(),
            state: Mutex::new(State {
                leases: Leases::default(),
                runs: HashMap::new(),
            }),
            wake: Notify::new(),
            is_stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn begin(&self, id: WorkId, reply: NatsSubject, run: Arc<Run>) {
        let mut state = lock(&self.state);
        state.leases.add(id, reply);
        state.runs.insert(id, run);
        drop(state);
        // The owner hears of it at once.
        self.wake.notify_one();
    }

    pub(super) fn join(&self, id: WorkId, reply: NatsSubject) {
        lock(&self.state).leases.add(id, reply);
    }

    pub(super) fn run(&self, id: &WorkId) -> Option<Arc<Run>> {
        lock(&self.state).runs.get(id).cloned()
    }

    /// Removes a partition, and returns the addresses of its acknowledgements.
    pub(super) fn end(&self, id: &WorkId) -> Vec<NatsSubject> {
        let mut state = lock(&self.state);
        state.runs.remove(id);
        state.leases.end(id)
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Returns the addresses of the acknowledgements that are due, and the signs by owner.
    fn due(&self) -> (Vec<NatsSubject>, Vec<(Name, Sign)>) {
        let mut state = lock(&self.state);
        let State { leases, runs } = &mut *state;
        for (id, run) in runs.iter() {
            leases.advance(id, run.checkpoints());
        }
        let mut replies = Vec::new();
        let mut by_owner: BTreeMap<Name, Vec<WorkId>> = BTreeMap::new();
        for (id, of_run) in leases.due(self.started.elapsed()) {
            replies.extend(of_run);
            if let Some(run) = runs.get(&id) {
                by_owner.entry(run.owner.clone()).or_default().push(id);
            }
        }
        let sign = |(owner, mut running): (Name, Vec<WorkId>)| {
            running.truncate(IDS_MAX);
            let node = self.node.clone();
            (owner, Sign { node, running })
        };
        (replies, by_owner.into_iter().map(sign).collect())
    }
}

/// Starts the thread.
pub(super) fn start(
    settings: Settings,
    reports: Arc<Reports>,
) -> Result<JoinHandle<()>, std::io::Error> {
    let runtime = runtime::without_threads()?;
    std::thread::Builder::new()
        .name("cuzk-cluster-reporter".to_owned())
        .spawn(move || runtime.block_on(report(&settings, &reports)))
}

async fn report(settings: &Settings, reports: &Reports) {
    let name = format!("{}-reporter", reports.node);
    let mut connection: Option<Connection> = None;
    while !reports.is_stopped.load(Ordering::Relaxed) {
        let Some(connected) = &connection else {
            match connect(settings, &name, |_| {}).await {
                Ok(connected) => connection = Some(connected),
                Err(error) => {
                    tracing::warn!(%error, "progress cannot be reported");
                    tokio::time::sleep(ERROR_PAUSE).await;
                }
            }
            continue;
        };
        let (replies, signs) = reports.due();
        send(connected, replies, signs).await;
        let _ = tokio::time::timeout(PERIOD, reports.wake.notified()).await;
    }
}

/// Sends reports. One that is lost is repeated, because the next one is due soon.
async fn send(connection: &Connection, replies: Vec<NatsSubject>, signs: Vec<(Name, Sign)>) {
    let client = &connection.client;
    for reply in replies {
        let _ = client.publish(reply, AckKind::Progress.into()).await;
    }
    for (owner, sign) in signs {
        if let Ok(bytes) = sign.encode() {
            let _ = client
                .publish(streams::sign_subject(&owner), bytes.into())
                .await;
        }
    }
}
