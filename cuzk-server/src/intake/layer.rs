//! The budget as a layer of the service.
//!
//! The invariant: no more than the first bytes of a large message are read before it has
//! its part of the budget.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::SMALL_BYTES_MAX;
use super::body::{Limits, MeteredBody, too_large};
use super::framing::{PREFIX_BYTES, message_bytes};
use super::guard::{Intake, IntakeGuard};
use super::peek;
use crate::wire::MESSAGE_BYTES_MAX;

/// The calls with large messages, and whether these are a `ProveRequest`.
const LARGE_CALLS: [(&str, bool); 2] = [
    ("/cuzk.v1.ProvingEngine/SubmitProof", false),
    ("/cuzk.v1.ProvingEngine/Prove", true),
];

/// The beginning of the paths of our own calls, each of which has one message.
const OWN_CALLS: &str = "/cuzk.";

/// The bytes in which the kind of a proof is looked for. The name of the request is before
/// it.
const PEEK_BYTES: usize = 4 << 10;

/// Reserves the bytes of each request before they are read.
#[derive(Debug, Clone)]
pub struct IntakeLayer {
    intake: Intake,
}

impl IntakeLayer {
    /// Returns a layer that reserves from `intake`.
    #[must_use]
    pub fn new(intake: Intake) -> Self {
        Self { intake }
    }
}

impl<S> Layer<S> for IntakeLayer {
    type Service = IntakeService<S>;

    fn layer(&self, inner: S) -> IntakeService<S> {
        let intake = self.intake.clone();
        IntakeService { intake, inner }
    }
}

/// A service behind an [`IntakeLayer`].
#[derive(Debug, Clone)]
pub struct IntakeService<S> {
    intake: Intake,
    inner: S,
}

impl<S, R> Service<Request<Body>> for IntakeService<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The one that is ready is called; its clone takes its place.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let intake = self.intake.clone();
        Box::pin(async move {
            match admit(&intake, request).await {
                Ok(request) => inner.call(request).await,
                Err(status) => Ok(status.into_http()),
            }
        })
    }
}

/// Returns the request with its part of the budget, as soon as it has one.
async fn admit(intake: &Intake, request: Request<Body>) -> Result<Request<Body>, Status> {
    let path = request.uri().path();
    let large = LARGE_CALLS.iter().find(|(name, _)| *name == path);
    let Some(&(_, is_nested)) = large else {
        let limits = if path.starts_with(OWN_CALLS) {
            Limits::one(SMALL_BYTES_MAX)
        } else {
            Limits::each(SMALL_BYTES_MAX)
        };
        return Ok(request.map(|body| metered(body, VecDeque::new(), limits, None)));
    };
    let (mut parts, mut body) = request.into_parts();
    let (read, guard) = reserve(intake, &mut body, is_nested).await?;
    if let Some(guard) = &guard {
        parts.extensions.insert(guard.clone());
    }
    let limits = Limits::one(MESSAGE_BYTES_MAX as u64);
    Ok(Request::from_parts(
        parts,
        metered(body, read, limits, guard),
    ))
}

fn metered(
    body: Body,
    read: VecDeque<Frame<Bytes>>,
    limits: Limits,
    guard: Option<IntakeGuard>,
) -> Body {
    Body::new(MeteredBody::new(body, read, limits, guard))
}

/// Reads the first bytes of a message, and waits for its part of the budget. Returns the
/// frames that were read. A small message holds nothing.
async fn reserve(
    intake: &Intake,
    body: &mut Body,
    is_nested: bool,
) -> Result<(VecDeque<Frame<Bytes>>, Option<IntakeGuard>), Status> {
    let mut frames = VecDeque::new();
    let mut start = Vec::new();
    while start.len() < PREFIX_BYTES + PEEK_BYTES {
        // Only a message of a permitted length that needs a part of the budget is read on.
        if declared(&start)?.is_some_and(|bytes| bytes <= SMALL_BYTES_MAX) {
            break;
        }
        let Some(frame) = body.frame().await.transpose()? else {
            break;
        };
        if let Some(bytes) = frame.data_ref() {
            // Frames without bytes would fill the memory, since no limit counts them.
            if bytes.is_empty() {
                continue;
            }
            let room = (PREFIX_BYTES + PEEK_BYTES).saturating_sub(start.len());
            start.extend(bytes.iter().take(room));
        }
        frames.push_back(frame);
    }
    match declared(&start)? {
        Some(bytes) if bytes > SMALL_BYTES_MAX => {
            let class = peek::class(start.get(PREFIX_BYTES..).unwrap_or_default(), is_nested);
            let guard = intake.reserve(class, bytes).await?;
            Ok((frames, Some(guard)))
        }
        // It is small, or its prefix is cut off, which the service notices.
        _ => Ok((frames, None)),
    }
}

/// Returns the length that the first bytes of a call announce, if it is there.
fn declared(start: &[u8]) -> Result<Option<u64>, Status> {
    let limit = MESSAGE_BYTES_MAX as u64;
    match start.first_chunk().map(|&prefix| message_bytes(prefix)) {
        Some(bytes) if bytes > limit => Err(too_large(bytes, limit)),
        bytes => Ok(bytes),
    }
}
