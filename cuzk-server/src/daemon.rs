//! The parts that the services of a daemon share, and the steps of its life.
//!
//! Not a service and not a listener. The invariant: nothing here is replaced while the
//! daemon lives, except what a reload changes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cuzk_core::config::LogLevel;
use cuzk_core::error::ErrorCode;
use cuzk_core::{Config, Engine, ProofKind};
use tokio::sync::watch;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::access::Access;
use crate::http::{EngineSources, Phase, Readiness};
use crate::intake::Way;
use crate::jobs::Jobs;
use crate::life::reload::{ReloadError, Reloadable, Reloaded, Reloader};
use crate::life::stopping::Stoppable;
use crate::life::watchdog::Pulse;
use crate::listen::Listeners;
use crate::wire::SERVICE;

/// Changes the least severity that the log has.
pub type SetLogLevel = Box<dyn Fn(LogLevel) -> Result<(), String> + Send + Sync>;

/// The engine, the jobs that calls wait for, and what can change.
pub(crate) struct Daemon {
    pub(crate) engine: Arc<Engine>,
    pub(crate) jobs: Arc<Jobs>,
    /// Taken while the engine has critical work.
    pub(crate) way: Way,
    pub(crate) sources: Arc<EngineSources>,
    pub(crate) access: Arc<Access>,
    pub(crate) health: HealthReporter,
    /// True once calls are refused.
    pub(crate) refused: watch::Sender<bool>,
    /// True once the last call has its reply.
    pub(crate) replied: watch::Sender<bool>,
    reloader: Reloader,
    set_log_level: SetLogLevel,
    drain_max: Mutex<Duration>,
}

/// The parts of a daemon that its caller makes.
pub(crate) struct Parts {
    pub(crate) sources: EngineSources,
    pub(crate) access: Access,
    pub(crate) health: HealthReporter,
    pub(crate) replied: watch::Sender<bool>,
    pub(crate) reloader: Reloader,
    pub(crate) set_log_level: SetLogLevel,
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon").finish_non_exhaustive()
    }
}

impl Daemon {
    /// `drain_max` is how long work goes on after the daemon was told to stop.
    pub(crate) fn new(parts: Parts, drain_max: Duration) -> Self {
        let engine = Arc::clone(&parts.sources.engine);
        let urgent = Arc::clone(&engine);
        let way = Way::new(move || urgent.is_urgent());
        Self {
            jobs: Arc::new(Jobs::new(Arc::clone(&engine), way.clone())),
            engine,
            way,
            sources: Arc::new(parts.sources),
            access: Arc::new(parts.access),
            health: parts.health,
            refused: watch::Sender::new(false),
            replied: parts.replied,
            reloader: parts.reloader,
            set_log_level: parts.set_log_level,
            drain_max: Mutex::new(drain_max),
        }
    }

    pub(crate) fn drain_max(&self) -> Duration {
        *self
            .drain_max
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the configuration again. It reads files, so async code calls it where it may
    /// block.
    ///
    /// # Errors
    /// Everything that is wrong with the configuration; then nothing has changed.
    pub(crate) fn reload(&self) -> Result<Reloaded, ReloadError> {
        self.reloader.reload(self)
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.sources.readiness
    }
}

impl Reloadable for Daemon {
    type Prepared = Config;

    /// The files of access are the only part that can fail. They are in effect at once, and
    /// after them nothing fails.
    fn prepare(&self, config: &Config) -> Result<Config, String> {
        Listeners::check(&config.server).map_err(|error| error.to_string())?;
        let read = self.access.reload(&config.server);
        read.map_err(|error| error.to_string())?;
        Ok(config.clone())
    }

    fn apply(&self, config: Config) {
        if let Err(problem) = (self.set_log_level)(config.logging.level) {
            tracing::error!(code = %ErrorCode::Internal, "{problem}");
        }
        *self
            .drain_max
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = config.server.drain;
    }
}

impl Pulse for Daemon {
    fn is_idle(&self) -> bool {
        self.engine.is_idle()
    }

    fn checkpoints(&self) -> u64 {
        self.engine.checkpoints()
    }
}

impl Stoppable for Daemon {
    fn end_readiness(&self) {
        self.readiness().set(Phase::Stopping);
        let health = self.health.clone();
        tokio::spawn(async move {
            for service in ["", SERVICE] {
                health
                    .set_service_status(service, ServingStatus::NotServing)
                    .await;
            }
        });
    }

    fn drain(&self) {
        self.engine.drain();
    }

    fn is_drained(&self) -> bool {
        let status = self.engine.status();
        let posts = [ProofKind::WindowPost.name(), ProofKind::WinningPost.name()];
        let has_post = status.jobs.iter().any(|job| posts.contains(&job.kind));
        !has_post && status.partitions_running == 0
    }

    fn refuse_calls(&self) {
        self.refused.send_replace(true);
    }

    fn shut_down(&self) {
        let has_journal = self.engine.config().jobs.journal.is_some();
        for job in self.engine.shutdown_within(Duration::ZERO) {
            let (number, id) = (job.number(), job.id());
            if has_journal && id.is_some() {
                tracing::info!(job = number, id, "the job goes on at the next start");
            } else {
                tracing::info!(
                    job = number,
                    id,
                    "the job ends unproved, and nothing of it is kept"
                );
            }
        }
    }

    async fn replied(&self) {
        let mut replied = self.replied.subscribe();
        // The sender is this daemon's own, so there is no error.
        replied.wait_for(|replied| *replied).await.ok();
    }
}
