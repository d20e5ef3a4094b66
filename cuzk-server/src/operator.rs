//! The interface for operators: each call of `cuzk.operator.v1.Operator`.
//!
//! Not the work. The invariant: who may call the interface for clients may call this one.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use crate::blocking::blocking;
use crate::daemon::Daemon;
use crate::http::report_json;
use crate::reply;
use crate::wire::operator::{self as wire, operator_server::Operator};

/// The service. Clones are the same service.
#[derive(Clone, Debug)]
pub(crate) struct OperatorService {
    daemon: Arc<Daemon>,
}

impl OperatorService {
    pub(crate) fn new(daemon: Arc<Daemon>) -> Self {
        Self { daemon }
    }

    /// Runs `work` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Daemon) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let daemon = Arc::clone(&self.daemon);
        let done = blocking(move || work(&daemon)).await;
        done.map_err(|error| reply::refused(&error))
    }
}

#[tonic::async_trait]
impl Operator for OperatorService {
    async fn get_report(
        &self,
        _: Request<wire::GetReportRequest>,
    ) -> Result<Response<wire::GetReportResponse>, Status> {
        let json = self
            .blocking(|daemon| report_json(daemon.sources.as_ref()))
            .await?;
        Ok(Response::new(wire::GetReportResponse { json }))
    }

    async fn drain(
        &self,
        _: Request<wire::DrainRequest>,
    ) -> Result<Response<wire::DrainResponse>, Status> {
        let status = self
            .blocking(|daemon| {
                // An operator who waits asks every second.
                if !daemon.engine.is_draining() {
                    tracing::info!("the engine drains, because an operator asked for it");
                }
                daemon.engine.drain();
                daemon.engine.status()
            })
            .await?;
        let running = status.jobs.iter().filter(|job| job.state == "running");
        let jobs_running = u32::try_from(running.count()).unwrap_or(u32::MAX);
        let jobs = u32::try_from(status.jobs.len()).unwrap_or(u32::MAX);
        Ok(Response::new(wire::DrainResponse {
            jobs_running,
            jobs_kept: jobs - jobs_running,
        }))
    }

    async fn resume(
        &self,
        _: Request<wire::ResumeRequest>,
    ) -> Result<Response<wire::ResumeResponse>, Status> {
        let was_draining = self.daemon.engine.is_draining();
        self.blocking(|daemon| daemon.engine.resume()).await?;
        Ok(Response::new(wire::ResumeResponse { was_draining }))
    }

    async fn reload(
        &self,
        _: Request<wire::ReloadRequest>,
    ) -> Result<Response<wire::ReloadResponse>, Status> {
        let reloaded = self.blocking(Daemon::reload).await?;
        let reloaded = reloaded.map_err(|error| Status::failed_precondition(error.to_string()))?;
        Ok(Response::new(wire::ReloadResponse {
            changed: reloaded.changed,
            need_restart: reloaded.need_restart,
        }))
    }
}
