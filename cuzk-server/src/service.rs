//! The interface for clients: each call of `cuzk.v1.ProvingEngine`.
//!
//! Not the work: a call is taken apart here, given on, and answered. The invariant: a call
//! that is dropped half-way leaves its job in one of the states that [`crate::jobs`] names.

use std::sync::Arc;
use std::time::Duration;

use cuzk_core::Engine;
use cuzk_core::engine::AssetStatus;
use cuzk_core::error::ErrorCode;
use cuzk_filecoin::CircuitId;
use tonic::{Request, Response, Status};

use crate::blocking::blocking;
use crate::circuit_name::{self, translated};
use crate::daemon::Daemon;
use crate::http::metrics_text;
use crate::jobs::{Manner, Waiting};
use crate::reply;
use crate::request::Submission;
use crate::status;
use crate::wire::v1::{self, proving_engine_server::ProvingEngine};

/// The service. Clones are the same service.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    daemon: Arc<Daemon>,
}

impl Service {
    pub(crate) fn new(daemon: Arc<Daemon>) -> Self {
        Self { daemon }
    }

    /// Takes a request on. `extensions` hold what the call has reserved.
    async fn submit(
        &self,
        request: Option<v1::SubmitProofRequest>,
        manner: Manner,
        held: impl Send + 'static,
    ) -> Result<Waiting, Status> {
        let request = request.ok_or_else(|| {
            let problem = "submit: missing; send the request in this field";
            Status::invalid_argument(ErrorCode::Request.after(problem))
        })?;
        let submission = Submission::new(request)
            .map_err(|error| Status::invalid_argument(ErrorCode::Request.after(error)))?;
        let jobs = &self.daemon.jobs;
        let submitted = jobs.submit(submission, manner, held).await;
        submitted.map_err(|error| reply::refused(&error))
    }

    /// Returns the metrics, which are made on a thread that may block.
    async fn metrics_text(&self) -> Result<String, Status> {
        let sources = Arc::clone(&self.daemon.sources);
        let text = blocking(move || metrics_text(sources.as_ref())).await;
        text.map_err(|error| reply::refused(&error))
    }

    /// Runs `work` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> cuzk_core::Result<T> + Send + 'static,
    ) -> Result<T, Status> {
        let engine = Arc::clone(&self.daemon.engine);
        let done = blocking(move || work(&engine)).await.flatten();
        done.map_err(|error| reply::refused(&error))
    }
}

#[tonic::async_trait]
impl ProvingEngine for Service {
    async fn submit_proof(
        &self,
        request: Request<v1::SubmitProofRequest>,
    ) -> Result<Response<v1::SubmitProofResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let waiting = self
            .submit(Some(request), Manner::Leave, extensions)
            .await?;
        let job = waiting.job();
        Ok(Response::new(v1::SubmitProofResponse {
            job_id: job.id().unwrap_or_default().to_owned(),
            queue_position: status::jobs_ahead(&self.daemon.engine, job),
            assigned_gpu: String::new(),
        }))
    }

    async fn await_proof(
        &self,
        request: Request<v1::AwaitProofRequest>,
    ) -> Result<Response<v1::AwaitProofResponse>, Status> {
        let v1::AwaitProofRequest { job_id, timeout_ms } = request.into_inner();
        let Some(waiting) = self.daemon.jobs.find(&job_id) else {
            return Ok(Response::new(reply::unknown(job_id)));
        };
        let job = waiting.job();
        let end = job.clone().into_future();
        let outcome = match timeout_ms {
            0 => end.await,
            ms => match tokio::time::timeout(Duration::from_millis(ms), end).await {
                Ok(outcome) => outcome,
                Err(_) => return Ok(Response::new(reply::timed_out(job))),
            },
        };
        Ok(Response::new(reply::ended(job, &outcome)?))
    }

    async fn prove(
        &self,
        request: Request<v1::ProveRequest>,
    ) -> Result<Response<v1::ProveResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let waiting = self
            .submit(request.submit, Manner::Wait, extensions)
            .await?;
        let outcome = waiting.job().clone().await;
        let result = Some(reply::ended(waiting.job(), &outcome)?);
        Ok(Response::new(v1::ProveResponse { result }))
    }

    async fn cancel_proof(
        &self,
        request: Request<v1::CancelProofRequest>,
    ) -> Result<Response<v1::CancelProofResponse>, Status> {
        let was_running = self.daemon.jobs.cancel(&request.into_inner().job_id);
        Ok(Response::new(v1::CancelProofResponse { was_running }))
    }

    async fn get_status(
        &self,
        _: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        Ok(Response::new(status::of(&self.daemon.engine.status())))
    }

    async fn get_metrics(
        &self,
        _: Request<v1::GetMetricsRequest>,
    ) -> Result<Response<v1::GetMetricsResponse>, Status> {
        let prometheus_text = self.metrics_text().await?;
        Ok(Response::new(v1::GetMetricsResponse { prometheus_text }))
    }

    async fn preload_srs(
        &self,
        request: Request<v1::PreloadSrsRequest>,
    ) -> Result<Response<v1::PreloadSrsResponse>, Status> {
        let circuit = circuit_of(&request.into_inner().circuit_id, circuit_name::form)?;
        let loaded = self.blocking(move |engine| engine.preload(circuit)).await?;
        Ok(Response::new(v1::PreloadSrsResponse {
            already_loaded: loaded.already_loaded,
            load_time_ms: u64::try_from(loaded.duration.as_millis()).unwrap_or(u64::MAX),
        }))
    }

    async fn evict_srs(
        &self,
        request: Request<v1::EvictSrsRequest>,
    ) -> Result<Response<v1::EvictSrsResponse>, Status> {
        let advice = || loaded(&self.daemon.engine.status().assets);
        let circuit = circuit_of(&request.into_inner().circuit_id, advice)?;
        let evicted = self.blocking(move |engine| engine.evict(circuit)).await?;
        Ok(Response::new(v1::EvictSrsResponse {
            was_loaded: evicted.was_loaded,
            freed_bytes: evicted.freed_bytes,
        }))
    }
}

/// Reads the name of a circuit. For another text the error has the `advice`.
fn circuit_of(name: &str, advice: impl FnOnce() -> String) -> Result<CircuitId, Status> {
    circuit_name::parse(name).ok_or_else(|| {
        let advice = advice();
        let problem = format!("circuit_id: there is no circuit {name:?}; {advice}");
        Status::invalid_argument(ErrorCode::Argument.after(problem))
    })
}

/// Returns the names of the circuits that can be evicted, for an error.
fn loaded(assets: &[AssetStatus]) -> String {
    let names = assets.iter().map(|asset| translated(&asset.circuit));
    let names: Vec<_> = names.collect();
    match names.is_empty() {
        true => "no circuit is loaded".to_owned(),
        false => format!("loaded are: {}", names.join(", ")),
    }
}
