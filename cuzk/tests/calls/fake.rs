//! A daemon for tests: it speaks the wire and proves nothing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use cuzk_core::Error;
use cuzk_core::error::ErrorCode;
use cuzk_server::wire::operator as ops;
use cuzk_server::wire::operator::operator_server::{Operator, OperatorServer};
use cuzk_server::wire::v1::await_proof_response::Status as End;
use cuzk_server::wire::v1::proving_engine_server::{ProvingEngine, ProvingEngineServer};
use cuzk_server::wire::{MESSAGE_BYTES_MAX, v1};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Code, Request, Response, Status};

/// The document of GetReport.
pub(crate) const REPORT: &str = r#"{"uptime_secs":61,"pipelines":[{"job_id":"porep-1-2","proof_kind":"porep-c2","total_partitions":2,"partitions_done":1,"partitions":[{"state":"done"},{"state":"gpu"}]}],"engine":{"kept":true}}"#;

/// Jobs that the daemon does not know.
const STRANGERS: [&str; 2] = ["nobody", "no-one"];

/// The calls that came, and the answers to the next ones.
#[derive(Default)]
pub(crate) struct Script {
    /// The ends of the next jobs that are waited for. After them jobs are proved.
    pub(crate) ends: VecDeque<Result<v1::AwaitProofResponse, Code>>,
    pub(crate) requests: Vec<v1::SubmitProofRequest>,
    /// The other calls, in order.
    pub(crate) calls: Vec<String>,
    /// The jobs that run, as the next calls of Drain say it.
    pub(crate) running: VecDeque<u32>,
    /// The calls of GetReport before which no job ends.
    pub(crate) reports_before_an_end: usize,
}

#[derive(Clone, Default)]
struct Service(Arc<Mutex<Script>>);

/// A running daemon. It ends when it is dropped.
pub(crate) struct Fake {
    folder: TempDir,
    service: Service,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Fake {
    /// Starts a daemon, with the service for operators or without it.
    pub(crate) fn start(has_operator: bool) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), has_operator)
    }

    /// Starts a daemon whose socket is in `folder`.
    pub(crate) fn start_in(folder: TempDir, has_operator: bool) -> Self {
        let service = Service::default();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let guard = runtime.enter();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        drop(guard);
        let served = service.clone();
        let thread = thread::spawn(move || {
            runtime.block_on(serve(listener, served, has_operator, stopped));
        });
        Self {
            folder,
            service,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.path("socket").display())
    }

    /// Returns a path in a folder of the daemon's own.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    pub(crate) fn script<T>(&self, look: impl FnOnce(&mut Script) -> T) -> T {
        look(&mut self.service.0.lock().unwrap())
    }

    /// Adds the end of the next job that is waited for.
    pub(crate) fn then(&self, end: End, reason: &str) {
        let end = v1::AwaitProofResponse {
            job_id: "the-job".to_owned(),
            error_message: reason.to_owned(),
            ..ended(end)
        };
        self.script(|script| script.ends.push_back(Ok(end)));
    }

    pub(crate) fn then_refuse(&self, code: Code) {
        self.script(|script| script.ends.push_back(Err(code)));
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        self.thread.take().map(thread::JoinHandle::join);
    }
}

async fn serve(
    listener: UnixListener,
    service: Service,
    has_operator: bool,
    stopped: oneshot::Receiver<()>,
) {
    let engine = ProvingEngineServer::new(service.clone());
    let operator = has_operator.then(|| OperatorServer::new(service));
    let server = tonic::transport::Server::builder()
        .add_service(engine.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_optional_service(operator)
        .serve_with_incoming(UnixListenerStream::new(listener));
    tokio::select! {
        served = server => served.unwrap(),
        _ = stopped => {}
    }
}

fn ended(status: End) -> v1::AwaitProofResponse {
    v1::AwaitProofResponse {
        status: status.into(),
        total_ms: 7,
        ..v1::AwaitProofResponse::default()
    }
}

impl Service {
    fn call<T>(&self, call: String, reply: T) -> Result<Response<T>, Status> {
        self.0.lock().unwrap().calls.push(call);
        Ok(Response::new(reply))
    }

    fn end(&self, job_id: String) -> Result<v1::AwaitProofResponse, Status> {
        let mut script = self.0.lock().unwrap();
        let reports = script.calls.iter().filter(|call| *call == "report");
        if reports.count() < script.reports_before_an_end {
            return Ok(ended(End::Timeout));
        }
        match script.ends.pop_front() {
            Some(Ok(end)) => Ok(end),
            Some(Err(code)) => Err(Status::new(code, "said the daemon")),
            None => Ok(v1::AwaitProofResponse {
                job_id,
                proof: vec![7; 192],
                ..ended(End::Completed)
            }),
        }
    }

    fn keep(&self, request: v1::SubmitProofRequest) -> String {
        let job_id = format!("{}-job", request.request_id);
        self.0.lock().unwrap().requests.push(request);
        job_id
    }
}

#[tonic::async_trait]
impl ProvingEngine for Service {
    async fn submit_proof(
        &self,
        request: Request<v1::SubmitProofRequest>,
    ) -> Result<Response<v1::SubmitProofResponse>, Status> {
        Ok(Response::new(v1::SubmitProofResponse {
            job_id: self.keep(request.into_inner()),
            queue_position: 3,
            assigned_gpu: String::new(),
        }))
    }

    async fn await_proof(
        &self,
        request: Request<v1::AwaitProofRequest>,
    ) -> Result<Response<v1::AwaitProofResponse>, Status> {
        let request = request.into_inner();
        let call = format!("await {} {}", request.job_id, request.timeout_ms > 0);
        self.0.lock().unwrap().calls.push(call);
        if STRANGERS.contains(&request.job_id.as_str()) {
            return Ok(Response::new(ended(End::Unknown)));
        }
        self.end(request.job_id).map(Response::new)
    }

    async fn prove(
        &self,
        request: Request<v1::ProveRequest>,
    ) -> Result<Response<v1::ProveResponse>, Status> {
        let job_id = self.keep(request.into_inner().submit.unwrap_or_default());
        let result = Some(self.end(job_id)?);
        Ok(Response::new(v1::ProveResponse { result }))
    }

    async fn cancel_proof(
        &self,
        request: Request<v1::CancelProofRequest>,
    ) -> Result<Response<v1::CancelProofResponse>, Status> {
        let job_id = request.into_inner().job_id;
        let has_ended = job_id == "ended" || STRANGERS.contains(&job_id.as_str());
        self.call(
            format!("cancel {job_id}"),
            v1::CancelProofResponse {
                was_running: !has_ended,
            },
        )
    }

    async fn get_status(
        &self,
        _: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        let queue = v1::QueueStatus {
            proof_kind: "porep-c2".to_owned(),
            pending: 4,
            in_progress: 5,
        };
        let gpu = v1::GpuStatus {
            name: "cpu".to_owned(),
            current_job_id: "porep-1-2".to_owned(),
            ..v1::GpuStatus::default()
        };
        let srs = v1::SrsStatus {
            circuit_id: "porep-32g".to_owned(),
            ..v1::SrsStatus::default()
        };
        let status = v1::GetStatusResponse {
            gpus: vec![gpu],
            loaded_srs: vec![srs],
            queues: vec![queue],
            uptime_seconds: 61,
            total_proofs_completed: 9,
            ..v1::GetStatusResponse::default()
        };
        self.call("status".to_owned(), status)
    }

    async fn get_metrics(
        &self,
        _: Request<v1::GetMetricsRequest>,
    ) -> Result<Response<v1::GetMetricsResponse>, Status> {
        self.call("metrics".to_owned(), v1::GetMetricsResponse::default())
    }

    async fn preload_srs(
        &self,
        request: Request<v1::PreloadSrsRequest>,
    ) -> Result<Response<v1::PreloadSrsResponse>, Status> {
        let circuit = request.into_inner().circuit_id;
        if circuit == "nothing" {
            let problem = "circuit_id: no circuit is called \"nothing\"; name porep-32g";
            return Err(Status::invalid_argument(problem));
        }
        let reply = v1::PreloadSrsResponse {
            already_loaded: false,
            load_time_ms: 8,
        };
        self.call(format!("preload {circuit}"), reply)
    }

    async fn evict_srs(
        &self,
        request: Request<v1::EvictSrsRequest>,
    ) -> Result<Response<v1::EvictSrsResponse>, Status> {
        let circuit = request.into_inner().circuit_id;
        if circuit == "snap-32g" {
            let refused = Error::InUse {
                circuit: "snap-deals-32GiB".to_owned(),
                partitions: 0,
                makes_multiples: true,
            };
            let problem = ErrorCode::of(&refused).after(&refused);
            return Err(Status::resource_exhausted(problem));
        }
        let reply = v1::EvictSrsResponse {
            was_loaded: true,
            freed_bytes: 1024,
        };
        self.call(format!("evict {circuit}"), reply)
    }
}

#[tonic::async_trait]
impl Operator for Service {
    async fn get_report(
        &self,
        _: Request<ops::GetReportRequest>,
    ) -> Result<Response<ops::GetReportResponse>, Status> {
        let json = REPORT.to_owned();
        self.call("report".to_owned(), ops::GetReportResponse { json })
    }

    async fn drain(
        &self,
        _: Request<ops::DrainRequest>,
    ) -> Result<Response<ops::DrainResponse>, Status> {
        let running = self.0.lock().unwrap().running.pop_front();
        let reply = ops::DrainResponse {
            jobs_running: running.unwrap_or_default(),
            jobs_kept: 2,
        };
        self.call("drain".to_owned(), reply)
    }

    async fn resume(
        &self,
        _: Request<ops::ResumeRequest>,
    ) -> Result<Response<ops::ResumeResponse>, Status> {
        let reply = ops::ResumeResponse { was_draining: true };
        self.call("resume".to_owned(), reply)
    }

    async fn reload(
        &self,
        _: Request<ops::ReloadRequest>,
    ) -> Result<Response<ops::ReloadResponse>, Status> {
        let reply = ops::ReloadResponse {
            changed: vec!["logging.level".to_owned()],
            need_restart: vec!["server.listen".to_owned()],
        };
        self.call("reload".to_owned(), reply)
    }
}
