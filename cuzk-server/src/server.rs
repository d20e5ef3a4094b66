//! A daemon from its start to its end.
//!
//! Not what it answers, which is the services'. The invariants:
//!
//! * No call is accepted before the engine runs. Clients that connect before it wait.
//! * The engine ends before the last call has its reply, so that every call has one.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use cuzk_core::config::{Address, ConfigError};
use cuzk_core::engine::{check_address_space, devices};
use cuzk_core::error::ErrorCode;
use cuzk_core::{Config, Engine};
use tokio::sync::watch;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_reflection::server::Builder as Reflection;

use crate::access::{Access, AccessError};
use crate::blocking::blocking;
use crate::cluster::Place;
use crate::cluster::settings::{ClusterSettings, SettingsError};
use crate::daemon::{Daemon, Parts, SetLogLevel};
use crate::http::metrics::{InstallError, Metrics};
use crate::http::{self, EngineSources, LateRouter, Phase, Readiness};
use crate::intake::{
    CONNECTION_WINDOW_BYTES, Intake, IntakeLayer, STREAM_WINDOW_BYTES, STREAMS_MAX,
};
use crate::life::reload::Reloader;
use crate::life::signals::{Request, Signals};
use crate::life::watchdog::Watchdog;
use crate::life::{notify, reload, stopping};
use crate::listen::{ListenError, Listeners};
use crate::operator::OperatorService;
use crate::service::Service;
use crate::state::{StateError, with_journal};
use crate::wire::operator::operator_server::OperatorServer;
use crate::wire::v1::proving_engine_server::ProvingEngineServer;
use crate::wire::{DESCRIPTORS, MESSAGE_BYTES_MAX, SERVICE};

/// The time between two questions whether a client is still there.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(60);

/// A daemon that cannot start, or that ended with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The engine cannot start.
    #[error(transparent)]
    Engine(#[from] cuzk_core::Error),
    /// A listener cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A certificate or the tokens cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The section of the cluster cannot be used.
    #[error(transparent)]
    Cluster(#[from] SettingsError),
    /// The metrics cannot be recorded.
    #[error(transparent)]
    Metrics(#[from] InstallError),
    /// The folder of the daemon's state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refused threads, sockets or signals.
    #[error("the daemon cannot run: {0}")]
    System(#[from] std::io::Error),
    /// The gRPC side ended.
    #[error("the gRPC side ended: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// The descriptors of the protocols are damaged.
    #[error("reflection cannot be served: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

impl ServeError {
    /// Returns true if the operator can mend it by changing the configuration.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Engine(error) => error.is_input(),
            Self::Listen(_) | Self::Access(_) | Self::State(_) | Self::Cluster(_) => true,
            _ => false,
        }
    }

    /// Returns true if the system gave no thread.
    #[must_use]
    pub fn is_of_threads(&self) -> bool {
        match self {
            Self::Metrics(InstallError::Thread(error)) | Self::System(error) => {
                error.kind() == ErrorKind::WouldBlock
            }
            _ => false,
        }
    }
}

/// How a daemon gets its configuration again, and changes the log's level.
pub struct Hooks {
    /// Returns the configuration as it should be now.
    pub load: Box<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>,
    /// Changes the least severity that the log has.
    pub set_log_level: SetLogLevel,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

/// Runs a daemon until a signal ends it.
///
/// # Errors
/// A configuration that asks for what this machine does not have, and listeners that cannot
/// be had.
pub fn serve(config: Config, hooks: Hooks) -> Result<(), ServeError> {
    check_address_space(&config)?;
    let config = with_journal(config)?;
    // It removes variables from the environment, so it comes before all threads.
    let mut listeners = Listeners::bind(&config.server)?;
    let access = Access::load(&config.server)?;
    let metrics = Metrics::install()?;
    reload::describe();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = cuzk_cluster::runtime::start("cuzk-serve", workers)?;
    let replied = watch::Sender::new(false);
    let pages = LateRouter::default();
    if let Some(listener) = listeners.take_http() {
        let _runtime = runtime.enter();
        serve_http(&pages, listener, &replied)?;
    }
    let (health, health_service) = tonic_health::server::health_reporter();
    let (engine, cluster) = engine(&config)?;
    let parts = Parts {
        sources: EngineSources {
            engine: Arc::new(engine),
            cluster,
            readiness: Readiness::default(),
            metrics,
        },
        access,
        health,
        replied,
        reloader: Reloader::new(&config, move || {
            let config = (hooks.load)()?;
            // The journal's place is not in the file.
            Ok(with_journal(config.clone()).unwrap_or(config))
        }),
        set_log_level: hooks.set_log_level,
    };
    let daemon = Arc::new(Daemon::new(parts, config.server.drain));
    let sources = Arc::clone(&daemon.sources) as Arc<dyn http::Sources>;
    pages.set(http::router(sources));
    let intake = Intake::configured(&config.server, daemon.way.clone());
    let ended = runtime.block_on(run(&daemon, listeners, intake, health_service));
    runtime.shutdown_background();
    ended
}

/// Starts the engine, and the daemon's side of the cluster if one is configured.
fn engine(config: &Config) -> Result<(Engine, Option<Arc<Place>>), ServeError> {
    let cluster = ClusterSettings::of(&config.cluster)?;
    let config = config.beside_requests().map_err(cuzk_core::Error::from)?;
    let pool = config.synthesis.pool().map_err(cuzk_core::Error::from)?;
    let pool = Arc::new(pool);
    let decoder = crate::request::decoder();
    let Some(cluster) = cluster else {
        let devices = devices(&config, &pool)?;
        let engine = Engine::start_with(config, pool, devices, decoder)?;
        return Ok((engine, None));
    };
    let (engine, place) = Place::start_engine(&cluster, config, pool, decoder)?;
    Ok((engine, Some(place)))
}

/// Serves until a signal, and stops in order.
async fn run(
    daemon: &Arc<Daemon>,
    listeners: Listeners,
    intake: Intake,
    health: HealthServer<impl Health>,
) -> Result<(), ServeError> {
    let mut signals = Signals::listen()?;
    let _watchdog = Watchdog::start(Arc::clone(daemon))?;
    let addresses = listeners.addresses();
    let access = Arc::clone(&daemon.access);
    tokio::spawn(async move { access.watch().await });
    let mut grpc = tokio::spawn(grpc(Arc::clone(daemon), listeners, intake, health));
    for service in ["", SERVICE] {
        let serving = ServingStatus::Serving;
        daemon.health.set_service_status(service, serving).await;
    }
    daemon.readiness().set(Phase::Serving);
    for address in &addresses {
        tracing::info!("serves clients on {address}");
    }
    notify::ready(&format!("serves clients on {}", addresses.join(", ")));
    loop {
        let request = tokio::select! {
            request = signals.next() => request,
            ended = &mut grpc => {
                return ended.unwrap_or_else(|panic| Err(std::io::Error::other(panic).into()));
            }
        };
        match request {
            Request::Reload => {
                let daemon = Arc::clone(daemon);
                tokio::spawn(reload_apart(daemon));
            }
            Request::StopNow(signal) => std::process::exit(i32::from(signal.exit_code())),
            Request::Stop(signal) => {
                tracing::info!("{}: finishes what runs, then stops", signal.name());
                break;
            }
        }
    }
    stop(daemon, &mut signals).await;
    Ok(())
}

/// Reads the configuration again. The log says how it went.
async fn reload_apart(daemon: Arc<Daemon>) {
    if let Err(error) = blocking(move || daemon.reload().ok()).await {
        tracing::error!(code = %ErrorCode::of(&error), "the configuration was not read again: {error}");
    }
}

/// Stops in order. A second signal ends the process at once.
async fn stop(daemon: &Arc<Daemon>, signals: &mut Signals) {
    let stopped = stopping::stop(Arc::clone(daemon), daemon.drain_max());
    tokio::pin!(stopped);
    loop {
        tokio::select! {
            stopped = &mut stopped => {
                if !stopped.is_replied {
                    tracing::warn!("ends without a reply to calls whose clients do not read");
                }
                return;
            }
            request = signals.next() => {
                if let Request::StopNow(signal) = request {
                    std::process::exit(i32::from(signal.exit_code()));
                }
            }
        }
    }
}

/// Serves HTTP until the last call has its reply.
fn serve_http(
    pages: &LateRouter,
    listener: std::net::TcpListener,
    replied: &watch::Sender<bool>,
) -> Result<(), ServeError> {
    let address = Address::Tcp {
        host: listener.local_addr()?.ip().to_string(),
        port: listener.local_addr()?.port(),
    };
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut replied = replied.subscribe();
    let ended = async move {
        replied.wait_for(|replied| *replied).await.ok();
    };
    tokio::spawn(http::serve(listener, pages.router(), ended));
    tracing::info!("serves HTTP on {address}");
    Ok(())
}

/// Serves gRPC until calls are refused and the last one has its reply.
async fn grpc(
    daemon: Arc<Daemon>,
    listeners: Listeners,
    intake: Intake,
    health: HealthServer<impl Health>,
) -> Result<(), ServeError> {
    let incoming = listeners.accept(&daemon.access)?;
    let services = services(&daemon, health)?;
    let mut refused = daemon.refused.subscribe();
    let refused = async move {
        refused.wait_for(|refused| *refused).await.ok();
    };
    let served = tonic::transport::Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        // A client whose machine is gone says nothing any more.
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .layer(daemon.access.layer())
        .layer(IntakeLayer::new(intake))
        .add_routes(services)
        .serve_with_incoming_shutdown(incoming, refused)
        .await;
    daemon.replied.send_replace(true);
    Ok(served?)
}

/// Returns the services of all protocols.
fn services(
    daemon: &Arc<Daemon>,
    health: HealthServer<impl Health>,
) -> Result<Routes, tonic_reflection::server::Error> {
    let service = ProvingEngineServer::new(Service::new(Arc::clone(daemon)))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let operator = OperatorServer::new(OperatorService::new(Arc::clone(daemon)));
    let reflection = Reflection::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let routes = Routes::new(health).add_service(reflection);
    Ok(routes.add_service(operator).add_service(service))
}

#[cfg(test)]
mod tests;
