//! The clients of a flood, in a process of their own: slow ones and large ones.
//!
//! Not what they disturb. The invariant: they need little memory, whatever they send.

use std::convert::Infallible;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use cuzk_server::wire::v1::{ProofKind, SubmitProofRequest};
use http_body::Frame;
use prost::Message;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::{Sleep, sleep};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::transport::{Channel, Endpoint};

use super::daemon::runtime;
use crate::failure::{Failure, failed};

/// Connections that send the bytes with which a connection begins, one a second.
const SLOW_STARTS: u64 = 500;

/// Calls that send a request one byte a second. Each has a connection of its own.
const SLOW_CALLS: u64 = 400;

/// Calls that do so after more bytes than the daemon reads before it reserves the memory of
/// the request.
const SLOW_HOLDERS: u64 = 100;

/// The bytes that they send at once.
const HOLDER_BYTES: usize = 16 << 10;

/// Clients that send large requests, one after the other.
pub(super) const LARGE: u64 = 64;

/// The bytes of each of these requests.
const LARGE_BYTES: usize = 200 << 20;

/// The bytes that they send at a time.
const PIECE_BYTES: usize = 256 << 10;

/// The time between two bytes of a slow sender, and after a connection that ended.
const PAUSE: Duration = Duration::from_secs(1);

/// The path of the call.
const SUBMIT: &str = "/cuzk.v1.ProvingEngine/SubmitProof";

/// Sends until standard input ends. Its first line is the daemon's socket.
pub(super) fn run() -> Result<(), Failure> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(failed)?;
    let socket = PathBuf::from(line.trim_end());
    let runtime = runtime()?;
    runtime.block_on(async {
        for number in 0..SLOW_STARTS {
            tokio::spawn(start_slowly(socket.clone(), spread(number, SLOW_STARTS)));
        }
        let pieces = [(SLOW_CALLS, 0), (SLOW_HOLDERS, HOLDER_BYTES)];
        for (clients, at_once) in pieces {
            for number in 0..clients {
                let wait = spread(number, clients);
                tokio::spawn(send(socket.clone(), wait, Pace::Slow { at_once }));
            }
        }
        for number in 0..LARGE {
            tokio::spawn(send(socket.clone(), spread(number, LARGE), Pace::Fast));
        }
        let end = || std::io::stdin().lines().for_each(drop);
        let ended = cuzk_cluster::runtime::apart("cuzk-input", end).await;
        ended.map_err(failed)
    })?;
    // Nothing that is sent is waited for.
    std::process::exit(0)
}

/// Returns the moment of a client within the first second.
fn spread(number: u64, clients: u64) -> Duration {
    PAUSE.mul_f64(number as f64 / clients as f64)
}

/// Sends the beginning of a connection slowly, again and again.
async fn start_slowly(socket: PathBuf, wait: Duration) {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    sleep(wait).await;
    loop {
        if let Ok(mut stream) = UnixStream::connect(&socket).await {
            for byte in PREFACE {
                if stream.write_all(&[*byte]).await.is_err() {
                    break;
                }
                sleep(PAUSE).await;
            }
        }
        sleep(PAUSE).await;
    }
}

/// Sends large requests, again and again. The replies do not matter.
async fn send(socket: PathBuf, wait: Duration, pace: Pace) {
    sleep(wait).await;
    loop {
        if let Ok(mut channel) = connect(&socket).await {
            while call(&mut channel, pace).await.is_ok() {}
        }
        sleep(PAUSE).await;
    }
}

async fn connect(socket: &Path) -> Result<Channel, Failure> {
    let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display()));
    endpoint.map_err(failed)?.connect().await.map_err(failed)
}

async fn call(channel: &mut Channel, pace: Pace) -> Result<(), Failure> {
    std::future::poll_fn(|cx| GrpcService::<Body>::poll_ready(channel, cx))
        .await
        .map_err(failed)?;
    let request = http::Request::post(format!("http://localhost{SUBMIT}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Sending::new(pace)))
        .map_err(failed)?;
    GrpcService::<Body>::call(channel, request)
        .await
        .map_err(failed)?;
    Ok(())
}

/// The speed of a sender.
#[derive(Clone, Copy)]
enum Pace {
    /// As fast as the daemon reads.
    Fast,
    /// A byte a second, after so many at once.
    Slow { at_once: usize },
}

/// The body of a call with a request of [`LARGE_BYTES`]. The request is a PoRep's whose C1
/// output is empty, so it is refused after it was read.
struct Sending {
    front: Bytes,
    piece: Bytes,
    left_bytes: usize,
    pace: Pace,
    pause: Pin<Box<Sleep>>,
}

impl Sending {
    fn new(pace: Pace) -> Self {
        let request = SubmitProofRequest {
            request_id: "flood".to_owned(),
            proof_kind: ProofKind::PorepSealCommit.into(),
            sector_size: 2048,
            registered_proof: 5,
            ..SubmitProofRequest::default()
        };
        let mut message = request.encode_to_vec();
        // The field vanilla_proof.
        prost::encoding::encode_key(10, prost::encoding::WireType::LengthDelimited, &mut message);
        prost::encoding::encode_varint(LARGE_BYTES as u64, &mut message);
        let mut front = BytesMut::new();
        front.put_u8(0);
        front.put_u32(u32::try_from(message.len() + LARGE_BYTES).unwrap_or(u32::MAX));
        front.extend_from_slice(&message);
        Self {
            front: front.freeze(),
            piece: Bytes::from_static(&[b' '; PIECE_BYTES]),
            left_bytes: LARGE_BYTES,
            pace,
            pause: Box::pin(sleep(Duration::ZERO)),
        }
    }

    /// Returns the next bytes, of which there are at most `bytes`.
    fn take(&mut self, bytes: usize) -> Bytes {
        if !self.front.is_empty() {
            let bytes = bytes.min(self.front.len());
            return self.front.split_to(bytes);
        }
        let bytes = bytes.min(self.left_bytes).min(PIECE_BYTES);
        self.left_bytes -= bytes;
        self.piece.slice(..bytes)
    }
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.pace {
            Pace::Fast => PIECE_BYTES,
            Pace::Slow { at_once } if *at_once > 0 => std::mem::take(at_once),
            Pace::Slow { .. } => {
                ready!(self.pause.as_mut().poll(cx));
                let next = tokio::time::Instant::now() + PAUSE;
                self.pause.as_mut().reset(next);
                1
            }
        };
        let next = self.take(bytes);
        let more = (!next.is_empty()).then(|| Ok(Frame::data(next)));
        Poll::Ready(more)
    }
}
