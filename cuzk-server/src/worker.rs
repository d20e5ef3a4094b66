//! A worker from its start to its end.
//!
//! Not the prover. The invariants:
//!
//! * A worker opens no port, unless it is to serve HTTP. Nothing there changes it.
//! * It begins nothing after the first signal to stop.
//! * It leaves when the server has the results of all that it had begun.

use std::collections::HashSet;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cuzk_cluster::nats::{ClusterError, Node};
use cuzk_cluster::runtime;
use cuzk_core::config::Address;
use cuzk_core::engine::{check_address_space, devices};
use cuzk_core::{Config, Engine};
use cuzk_filecoin::{Statement, decode_partition};

use crate::cluster::identity::Identities;
use crate::cluster::prover::{EngineProver, OnEvent};
use crate::cluster::settings::{ClusterSettings, SettingsError};
use crate::http::metrics::{InstallError, Metrics};
use crate::http::{self, EngineSources, Phase, Readiness};
use crate::life::notify;
use crate::life::signals::{Request, Signals, StopSignal};
use crate::listen::{ListenError, bind_http};

/// The time between two looks at the parameter cache. Circuits whose parameters came
/// meanwhile are proved from then on.
const LOOK: Duration = Duration::from_secs(5);

/// The longest pause between two tries to reach the server at the start.
const CONNECT_PAUSE_MAX: Duration = Duration::from_secs(5);

/// The time in which systemd must hear of a drain that goes on.
const DRAIN_LOOK: Duration = Duration::from_secs(5);

/// A worker that cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The configuration names no server.
    #[error(
        "no server of the cluster is configured; give --cluster nats://HOST:PORT, \
         or set [cluster] servers"
    )]
    NoServer,
    /// The settings of the cluster cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The engine cannot start.
    #[error(transparent)]
    Engine(#[from] cuzk_core::Error),
    /// The server cannot be used.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// HTTP cannot be served at the address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The metrics cannot be recorded.
    #[error(transparent)]
    Metrics(#[from] InstallError),
    /// The system refused threads or signals.
    #[error("the worker cannot run: {0}")]
    System(#[from] io::Error),
}

impl WorkerError {
    /// Returns true if the operator can mend it by changing the configuration or the server.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::NoServer | Self::Settings(_) | Self::Listen(_) => true,
            Self::Engine(error) => error.is_input(),
            Self::Cluster(error) => !matches!(error, ClusterError::Thread { .. }),
            Self::Metrics(_) | Self::System(_) => false,
        }
    }

    /// Returns true if the system gave no thread.
    #[must_use]
    pub fn is_of_threads(&self) -> bool {
        match self {
            Self::Metrics(InstallError::Thread(source))
            | Self::Cluster(ClusterError::Thread { source, .. })
            | Self::System(source) => source.kind() == io::ErrorKind::WouldBlock,
            _ => false,
        }
    }
}

/// Runs a worker until a signal ends it. A server that cannot be reached is asked again until
/// it answers. With an address, it serves its status and its metrics there.
///
/// # Errors
/// A configuration that asks for what this machine does not have. An address that cannot be had.
/// A server that refuses this machine or does not fit.
pub fn run(config: Config, page: Option<&Address>, on_event: OnEvent) -> Result<(), WorkerError> {
    let settings = ClusterSettings::of(&config.cluster)?.ok_or(WorkerError::NoServer)?;
    check_address_space(&config)?;
    let identities = Arc::new(Identities::new(&config.srs.param_cache));
    if identities.present().is_empty() {
        tracing::warn!(
            "{} has no parameters, so nothing can be proved yet; fetch them with \
             `cuzk params fetch`",
            config.srs.param_cache.display()
        );
    }
    // Before the engine: it describes its metrics to the recorder.
    let page = page.map(Pages::bind).transpose()?;
    let engine = Arc::new(engine(config)?);
    watch_parameters(&identities)?;
    let prover = EngineProver::new(Arc::clone(&engine), identities, on_event);
    let runtime = runtime::without_threads()?;
    let readiness = Readiness::default();
    if let Some(page) = page {
        let _runtime = runtime.enter();
        page.serve(Arc::clone(&engine), readiness.clone())?;
    }
    let ended = runtime.block_on(live(&settings, &prover, &readiness));
    runtime.shutdown_background();
    drop(engine.shutdown_within(Duration::ZERO));
    ended
}

/// Starts an engine that reads partitions. Its owners keep the journals, so it has none.
fn engine(mut config: Config) -> Result<Engine, WorkerError> {
    config.jobs.journal = None;
    let pool = Arc::new(config.synthesis.pool().map_err(cuzk_core::Error::from)?);
    let devices = devices(&config, &pool)?;
    Ok(Engine::start_with(config, pool, devices, Arc::new(decode))?)
}

fn decode(bytes: &[u8]) -> cuzk_core::Result<Arc<dyn Statement>> {
    Ok(Arc::from(decode_partition(bytes)?))
}

/// Makes the identities of circuits, now and when parameters come, on a thread of its own.
/// The thread ends soon after the identities are dropped.
fn watch_parameters(identities: &Arc<Identities>) -> io::Result<()> {
    let identities = Arc::downgrade(identities);
    let watch = move || {
        let mut told = HashSet::new();
        while let Some(identities) = Weak::upgrade(&identities) {
            for error in identities.make_all() {
                let text = error.to_string();
                if told.insert(text.clone()) {
                    tracing::warn!("a circuit is not proved for the cluster: {text}");
                }
            }
            for (id, circuit) in identities.made() {
                let text = format!("{id} {}", circuit.fingerprint);
                if told.insert(text) {
                    let fingerprint = circuit.fingerprint.to_string();
                    tracing::info!(circuit = %id, fingerprint, "proves for the cluster");
                }
            }
            drop(identities);
            std::thread::sleep(LOOK);
        }
    };
    let builder = std::thread::Builder::new().name("cuzk-parameters".to_owned());
    builder.spawn(watch).map(drop)
}

/// The socket of a worker's HTTP pages, and the metrics that they show.
struct Pages {
    socket: TcpListener,
    metrics: Metrics,
}

impl Pages {
    fn bind(address: &Address) -> Result<Self, WorkerError> {
        let socket = bind_http(address)?;
        let metrics = Metrics::install()?;
        Ok(Self { socket, metrics })
    }

    /// Serves the pages until the runtime ends. To be called in it.
    fn serve(self, engine: Arc<Engine>, readiness: Readiness) -> io::Result<()> {
        let address = self.socket.local_addr()?;
        let listener = tokio::net::TcpListener::from_std(self.socket)?;
        let router = http::router(Arc::new(EngineSources {
            engine,
            cluster: None,
            readiness,
            metrics: self.metrics,
        }));
        tokio::spawn(http::serve(listener, router, std::future::pending()));
        tracing::info!("serves HTTP on tcp://{address}");
        Ok(())
    }
}

/// Connects, proves until a signal, and drains.
async fn live(
    settings: &ClusterSettings,
    prover: &EngineProver,
    readiness: &Readiness,
) -> Result<(), WorkerError> {
    let mut signals = Signals::listen()?;
    let (name, servers) = (&settings.name, settings.transport.addresses.join(", "));
    // A server that is not there yet is no reason to be started again.
    notify::ready(&format!("connects to the cluster at {servers}"));
    let node = tokio::select! {
        node = connect(settings, prover) => node?,
        signal = stop_signal(&mut signals) => {
            tracing::info!("{}: the worker had not begun", signal.name());
            return Ok(());
        }
    };
    readiness.set(Phase::Serving);
    tracing::info!("worker {name} of the cluster at {servers}");
    notify::status(&format!("worker {name} of the cluster at {servers}"));
    let signal = stop_signal(&mut signals).await;
    tracing::info!(
        "{}: finishes {} partition(s), then leaves",
        signal.name(),
        node.running()
    );
    readiness.set(Phase::Stopping);
    notify::status("finishes what runs, then leaves");
    let draining = runtime::apart("cuzk-drain", move || while !node.drain(DRAIN_LOOK) {});
    tokio::select! {
        ended = draining => ended?,
        signal = stop_signal(&mut signals) => {
            std::process::exit(i32::from(signal.exit_code()));
        }
    }
    tracing::info!("left the cluster");
    Ok(())
}

/// Waits for a signal to stop.
async fn stop_signal(signals: &mut Signals) -> StopSignal {
    loop {
        match signals.next().await {
            Request::Stop(signal) | Request::StopNow(signal) => return signal,
            Request::Reload => {
                tracing::info!("SIGHUP: a worker reads its configuration at its start only");
            }
        }
    }
}

/// Connects to the server. Tries again while it cannot be reached.
async fn connect(settings: &ClusterSettings, prover: &EngineProver) -> Result<Node, WorkerError> {
    let mut pause = Duration::from_secs(1);
    loop {
        let (transport, name) = (settings.transport.clone(), settings.name.clone());
        let prover = Box::new(prover.clone());
        let start = move || Node::start(&transport, name, prover);
        match runtime::apart("cuzk-connect", start).await? {
            Ok(node) => return Ok(node),
            Err(error @ ClusterError::Connect { .. }) => {
                let pause_s = pause.as_secs();
                tracing::warn!(%error, pause_s, "tries again after a pause");
                notify::status(&format!("tries to connect: {error}"));
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(CONNECT_PAUSE_MAX);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
