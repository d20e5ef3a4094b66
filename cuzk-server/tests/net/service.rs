//! A service that answers nothing but what came, behind everything that this crate puts
//! before one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cuzk_bounded::Bound;
use cuzk_core::config::{Config, Host};
use cuzk_server::access::Access;
use cuzk_server::intake::{
    CONNECTION_WINDOW_BYTES, Intake, IntakeGuard, IntakeLayer, STREAM_WINDOW_BYTES, STREAMS_MAX,
    Way,
};
use cuzk_server::listen::Listeners;
use cuzk_server::wire::MESSAGE_BYTES_MAX;
use cuzk_server::wire::v1::proving_engine_client::ProvingEngineClient;
use cuzk_server::wire::v1::proving_engine_server::{ProvingEngine, ProvingEngineServer};
use cuzk_server::wire::v1::*;
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};

const MIB: usize = 1 << 20;

/// Says how many bytes a request holds, and what its payload has.
struct Echo {
    intake: Intake,
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ProvingEngine for Echo {
    async fn submit_proof(
        &self,
        request: Request<SubmitProofRequest>,
    ) -> Answer<SubmitProofResponse> {
        let is_guarded = request.extensions().get::<IntakeGuard>().is_some();
        let payload = request.get_ref().vanilla_proof.len();
        Ok(Response::new(SubmitProofResponse {
            job_id: format!(
                "{payload} {is_guarded} {}",
                self.intake.held_bytes() > payload as u64
            ),
            ..SubmitProofResponse::default()
        }))
    }
    async fn await_proof(&self, _: Request<AwaitProofRequest>) -> Answer<AwaitProofResponse> {
        Err(Status::unimplemented(""))
    }
    async fn prove(&self, _: Request<ProveRequest>) -> Answer<ProveResponse> {
        Err(Status::unimplemented(""))
    }
    async fn cancel_proof(&self, _: Request<CancelProofRequest>) -> Answer<CancelProofResponse> {
        Err(Status::unimplemented(""))
    }
    async fn get_status(&self, _: Request<GetStatusRequest>) -> Answer<GetStatusResponse> {
        Ok(Response::new(GetStatusResponse::default()))
    }
    async fn get_metrics(&self, _: Request<GetMetricsRequest>) -> Answer<GetMetricsResponse> {
        Err(Status::unimplemented(""))
    }
    async fn preload_srs(&self, _: Request<PreloadSrsRequest>) -> Answer<PreloadSrsResponse> {
        Err(Status::unimplemented(""))
    }
    async fn evict_srs(&self, _: Request<EvictSrsRequest>) -> Answer<EvictSrsResponse> {
        Err(Status::unimplemented(""))
    }
}

/// A service on a unix socket and on a TCP port of the loopback.
pub(crate) struct Running {
    folder: TempDir,
    port: u16,
    intake: Intake,
    _server: JoinHandle<()>,
}

impl Running {
    /// Starts a service with more lines of `[server]`.
    pub(crate) fn start(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let text = format!(
            "[server]\nhttp = \"\"\nlisten = [\"unix://{}\", \"127.0.0.1:0\"]\n{more}",
            path.display()
        );
        let config = Config::parse(&text, "test", &Host::detect())
            .unwrap()
            .server;
        let listeners = Listeners::bind(&config).unwrap();
        let address = listeners.addresses().pop().unwrap();
        let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
        let access = Arc::new(Access::load(&config).unwrap());
        let incoming = listeners.accept(&access).unwrap();
        let intake = Intake::configured(&config, Way::default());
        let echo = Echo {
            intake: intake.clone(),
        };
        let service = ProvingEngineServer::new(echo).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let server = Server::builder()
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_concurrent_streams(STREAMS_MAX)
            .layer(access.layer())
            .layer(IntakeLayer::new(intake.clone()))
            .add_service(service)
            .serve_with_incoming(incoming);
        let server = tokio::spawn(async move { server.await.unwrap() });
        Self {
            folder,
            port,
            intake,
            _server: server,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    async fn unix(&self) -> ProvingEngineClient<Channel> {
        let path: PathBuf = self.folder.path().join("a");
        let connect = tower::service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = endpoint.connect_with_connector(connect).await.unwrap();
        ProvingEngineClient::new(channel).max_encoding_message_size(1 << 30)
    }

    async fn tcp(&self) -> ProvingEngineClient<Channel> {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{}", self.port)).unwrap();
        ProvingEngineClient::new(endpoint.connect().await.unwrap())
    }
}

fn submit(payload: usize, kind: ProofKind) -> SubmitProofRequest {
    SubmitProofRequest {
        proof_kind: kind.into(),
        vanilla_proof: vec![0; payload].into(),
        ..SubmitProofRequest::default()
    }
}

async fn settled(intake: &Intake) {
    while intake.held_bytes() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_requests_hold_their_bytes_until_they_are_answered() {
    let _bound = Bound::default();
    let running = Running::start("request_memory = \"320MiB\"\n");
    let mut client = running.unix().await;
    let mut echo = async |payload, kind| {
        client
            .submit_proof(submit(payload, kind))
            .await
            .map(|answer| answer.into_inner().job_id)
    };
    assert_eq!(
        echo(10, ProofKind::WinningPost).await.unwrap(),
        "10 false false"
    );
    let porep = echo(60 * MIB, ProofKind::PorepSealCommit).await.unwrap();
    assert_eq!(porep, format!("{} true true", 60 * MIB));
    settled(&running.intake).await;
    let refused = echo(257 * MIB, ProofKind::PorepSealCommit)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    // The connection goes on.
    assert_eq!(
        echo(1, ProofKind::WinningPost).await.unwrap(),
        "1 false false"
    );
    settled(&running.intake).await;
}

/// Six calls of 60 MiB do not fit together. Small calls do not wait for them.
#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_budget_wait_and_all_are_answered() {
    let _bound = Bound::default();
    let running = Running::start("request_memory = \"320MiB\"\n");
    let client = running.unix().await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let mut client = client.clone();
        calls.spawn(async move {
            client
                .submit_proof(submit(60 * MIB, ProofKind::PorepSealCommit))
                .await
        });
    }
    let mut small = client.clone();
    small
        .submit_proof(submit(100, ProofKind::WinningPost))
        .await
        .unwrap();
    while let Some(answer) = calls.join_next().await {
        answer.unwrap().unwrap();
    }
    settled(&running.intake).await;
    assert_eq!(running.intake.waiting(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_unauthenticated() {
    let _bound = Bound::default();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(path("c"), params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(path("k"), key.serialize_pem()).unwrap();
    std::fs::write(path("t"), "0123456789abcdef0123456789abcdef\n").unwrap();
    let running = Running::start(&format!(
        "tls_certificate = \"{}\"\ntls_key = \"{}\"\ntokens = \"{}\"\n",
        path("c").display(),
        path("k").display(),
        path("t").display()
    ));
    let status = async |client: &mut ProvingEngineClient<Channel>, token: Option<&str>| {
        let mut request = Request::new(GetStatusRequest::default());
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().insert("authorization", value);
        }
        client
            .get_status(request)
            .await
            .map_or_else(|status| status.code(), |_| Code::Ok)
    };
    let (mut tcp, mut unix) = (running.tcp().await, running.unix().await);
    assert_eq!(
        status(&mut tcp, None).await,
        Code::Ok,
        "the loopback is plain"
    );
    assert_eq!(
        status(&mut tcp, Some("0123456789abcdef0123456789abcdef")).await,
        Code::Ok
    );
    assert_eq!(status(&mut tcp, Some("wrong")).await, Code::Unauthenticated);
    assert_eq!(status(&mut unix, Some("wrong")).await, Code::Ok);
}
