//! A client of any daemon that speaks the wire, ours or another.
//!
//! Not the daemon, and not the output of commands. The invariant: a repeated call sends the
//! same request, so the daemon attaches it to the job that it has.

mod connect;
mod credentials;
mod error;
mod message_size;
mod patience;
mod refusal;
mod request_file;

use std::fmt;
use std::time::Duration;

use cuzk_core::config::Address;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

pub use self::credentials::Credentials;
pub use self::error::ClientError;
pub use self::message_size::check_size;
pub use self::patience::Patience;
pub use self::request_file::read_request;

use self::refusal::Refusal;
use crate::wire::operator as ops;
use crate::wire::operator::operator_client::OperatorClient;
use crate::wire::v1::proving_engine_client::ProvingEngineClient;
use crate::wire::{MESSAGE_BYTES_MAX, v1};

type Calls = InterceptedService<Channel, Token>;

/// A connection to a daemon. It connects again by itself when the connection is lost. A
/// clone shares the connection.
#[derive(Clone, Debug)]
pub struct Client {
    address: Address,
    engine: ProvingEngineClient<Calls>,
    operator: OperatorClient<Calls>,
    refusal: Refusal,
}

impl Client {
    /// Connects to the daemon at `address`.
    ///
    /// # Errors
    /// Credentials that cannot be read or may not be sent, or an address at which nothing
    /// answers.
    pub async fn connect(
        address: &Address,
        credentials: &Credentials,
    ) -> Result<Self, ClientError> {
        let token = Token(credentials.token(address)?);
        let refusal = Refusal::default();
        let channel = connect::connect(address, credentials, &refusal).await?;
        let engine = ProvingEngineClient::with_interceptor(channel.clone(), token.clone());
        let operator = OperatorClient::with_interceptor(channel, token);
        Ok(Self {
            address: address.clone(),
            engine: engine
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX),
            operator: operator.max_decoding_message_size(MESSAGE_BYTES_MAX),
            refusal,
        })
    }

    /// Returns the address of the daemon.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Queues a proof and returns at once.
    ///
    /// # Errors
    /// A request that is too large for a message, the refusal of the daemon, or a lost
    /// connection.
    pub async fn submit(
        &self,
        request: v1::SubmitProofRequest,
    ) -> Result<v1::SubmitProofResponse, ClientError> {
        check_size(&request).map_err(invalid)?;
        let reply = self.engine.clone().submit_proof(request).await;
        self.result("SubmitProof", reply)
    }

    /// Queues a proof and waits for its end.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub async fn prove(
        &self,
        request: v1::SubmitProofRequest,
    ) -> Result<v1::AwaitProofResponse, ClientError> {
        check_size(&request).map_err(invalid)?;
        let request = v1::ProveRequest {
            submit: Some(request),
        };
        let reply = self.engine.clone().prove(request).await;
        let reply = self.result("Prove", reply)?;
        reply.result.ok_or_else(|| self.malformed("Prove"))
    }

    /// Waits for the end of a job, at most for `limit`.
    ///
    /// # Errors
    /// The refusal of the daemon, or a lost connection.
    pub async fn await_proof(
        &self,
        job_id: &str,
        limit: Option<Duration>,
    ) -> Result<v1::AwaitProofResponse, ClientError> {
        // 0 would mean no limit.
        let limit_ms = limit.map_or(0, |limit| limit.as_millis().max(1));
        let request = v1::AwaitProofRequest {
            job_id: job_id.to_owned(),
            timeout_ms: u64::try_from(limit_ms).unwrap_or(u64::MAX),
        };
        let reply = self.engine.clone().await_proof(request).await;
        self.result("AwaitProof", reply)
    }

    /// Ends a job, for every client that waits for it. Returns true if it had not ended.
    ///
    /// # Errors
    /// The refusal of the daemon, or a lost connection.
    pub async fn cancel(&self, job_id: &str) -> Result<bool, ClientError> {
        let job_id = job_id.to_owned();
        let request = v1::CancelProofRequest { job_id };
        let reply = self.engine.clone().cancel_proof(request).await;
        Ok(self.result("CancelProof", reply)?.was_running)
    }

    /// Returns the state of the daemon.
    ///
    /// # Errors
    /// The refusal of the daemon, or a lost connection.
    pub async fn status(&self) -> Result<v1::GetStatusResponse, ClientError> {
        let reply = self
            .engine
            .clone()
            .get_status(v1::GetStatusRequest {})
            .await;
        self.result("GetStatus", reply)
    }

    /// Returns the metrics of the daemon as Prometheus reads them.
    ///
    /// # Errors
    /// The refusal of the daemon, or a lost connection.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let mut engine = self.engine.clone();
        let reply = engine.get_metrics(v1::GetMetricsRequest {}).await;
        Ok(self.result("GetMetrics", reply)?.prometheus_text)
    }

    /// Loads a circuit and its parameters.
    ///
    /// # Errors
    /// The refusal of the daemon, or a lost connection.
    pub async fn preload(&self, circuit_id: &str) -> Result<v1::PreloadSrsResponse, ClientError> {
        let circuit_id = circuit_id.to_owned();
        let request = v1::PreloadSrsRequest { circuit_id };
        let reply = self.engine.clone().preload_srs(request).await;
        self.result("PreloadSRS", reply)
    }

    /// Lets go of a circuit and its parameters.
    ///
    /// # Errors
    /// The refusal of the daemon, or a lost connection.
    pub async fn evict(&self, circuit_id: &str) -> Result<v1::EvictSrsResponse, ClientError> {
        let circuit_id = circuit_id.to_owned();
        let request = v1::EvictSrsRequest { circuit_id };
        let reply = self.engine.clone().evict_srs(request).await;
        self.result("EvictSRS", reply)
    }

    /// Returns the whole state of a cuzk daemon as JSON.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`] for another daemon, its refusal, or a lost connection.
    pub async fn report(&self) -> Result<String, ClientError> {
        let reply = self
            .operator
            .clone()
            .get_report(ops::GetReportRequest {})
            .await;
        Ok(self.result("GetReport", reply)?.json)
    }

    /// Makes the daemon finish what runs, and keep new PoRep and SnapDeals for later.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`] for another daemon, its refusal, or a lost connection.
    pub async fn drain(&self) -> Result<ops::DrainResponse, ClientError> {
        let reply = self.operator.clone().drain(ops::DrainRequest {}).await;
        self.result("Drain", reply)
    }

    /// Ends a drain. Returns true if the daemon was draining.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`] for another daemon, its refusal, or a lost connection.
    pub async fn resume(&self) -> Result<bool, ClientError> {
        let reply = self.operator.clone().resume(ops::ResumeRequest {}).await;
        Ok(self.result("Resume", reply)?.was_draining)
    }

    /// Makes the daemon read its configuration again.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`] for another daemon, its refusal, or a lost connection.
    pub async fn reload(&self) -> Result<ops::ReloadResponse, ClientError> {
        let reply = self.operator.clone().reload(ops::ReloadRequest {}).await;
        self.result("Reload", reply)
    }

    fn result<T>(
        &self,
        call: &'static str,
        reply: Result<tonic::Response<T>, Status>,
    ) -> Result<T, ClientError> {
        let reply = reply.map(tonic::Response::into_inner);
        reply.map_err(|status| {
            let error = ClientError::of_call(&self.address, call, &status);
            match self.refusal.take() {
                Some(reason) if error.is_temporary() => ClientError::Untrusted {
                    address: self.address.clone(),
                    reason,
                },
                _ => error,
            }
        })
    }

    fn malformed(&self, call: &'static str) -> ClientError {
        let status = Status::internal("the reply is empty");
        ClientError::of_call(&self.address, call, &status)
    }
}

/// Returns the error of a request that no daemon would take.
fn invalid(error: cuzk_filecoin::Error) -> ClientError {
    ClientError::InvalidInput(error.to_string())
}

/// Adds the token, if there is one, to each call.
#[derive(Clone)]
struct Token(Option<MetadataValue<Ascii>>);

impl Interceptor for Token {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", token.clone());
        }
        Ok(request)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "a token" } else { "none" })
    }
}
