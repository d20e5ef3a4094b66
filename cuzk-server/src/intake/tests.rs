//! The layer, with bodies that a test sends piece by piece.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use cuzk_bounded::Bound;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, ServiceExt};

use super::*;
use crate::wire::v1::{ProofKind, SubmitProofRequest};

const MIB: usize = 1 << 20;
const SUBMIT: &str = "/cuzk.v1.ProvingEngine/SubmitProof";

/// The sending end of a call.
type Sender = mpsc::Sender<Bytes>;

fn prefix(length: usize) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).unwrap());
    bytes.freeze()
}

fn request(path: &str) -> (Sender, Request<Body>) {
    let (sender, receiver) = mpsc::channel(1000);
    let frames = ReceiverStream::new(receiver)
        .map(|bytes| Ok::<_, Infallible>(http_body::Frame::data(bytes)));
    let body = Body::new(StreamBody::new(frames));
    (sender, Request::post(path).body(body).unwrap())
}

/// A service that answers with the length of what it read, and with the status of a body
/// that breaks off. It keeps the guard until it answers.
async fn read(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let _guard = request.extensions().get::<IntakeGuard>().cloned();
    Ok(match request.into_body().collect().await {
        Ok(read) => Response::builder()
            .header("read", read.to_bytes().len())
            .body(Body::empty())
            .unwrap(),
        Err(status) => status.into_http(),
    })
}

/// Calls in a task, and returns the length that was read, or the status.
fn call(intake: &Intake, request: Request<Body>) -> tokio::task::JoinHandle<Result<usize, Status>> {
    let service = IntakeLayer::new(intake.clone()).layer(tower::service_fn(read));
    tokio::spawn(async move {
        let response = service.oneshot(request).await.unwrap();
        match response.headers().get("read") {
            Some(read) => Ok(read.to_str().unwrap().parse().unwrap()),
            None => Err(Status::from_header_map(response.headers()).unwrap()),
        }
    })
}

/// The front of a message of `length` bytes.
fn front(kind: ProofKind, length: usize) -> Bytes {
    let submit = SubmitProofRequest {
        request_id: "a".to_owned(),
        proof_kind: kind.into(),
        ..SubmitProofRequest::default()
    };
    [prefix(length), submit.encode_to_vec().into()]
        .concat()
        .into()
}

async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_reserved_from_its_first_bytes_until_its_guard_is_dropped() {
    let _bound = Bound::default();
    let intake = Intake::new(400 << 20, Way::default());
    let (sender, request) = request(SUBMIT);
    let answer = call(&intake, request);
    sender
        .send(front(ProofKind::PorepSealCommit, MIB))
        .await
        .unwrap();
    sender.send(vec![0; 8 << 10].into()).await.unwrap();
    settle().await;
    assert_eq!(intake.held_bytes(), MIB as u64);
    let sent = front(ProofKind::PorepSealCommit, MIB).len() + (8 << 10);
    sender.send(vec![0; MIB + 5 - sent].into()).await.unwrap();
    drop(sender);
    assert_eq!(answer.await.unwrap().unwrap(), MIB + 5);
    assert_eq!(intake.held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn small_messages_are_free() {
    let _bound = Bound::default();
    let intake = Intake::new(320 << 20, Way::default());
    let (sender, request) = request(SUBMIT);
    let answer = call(&intake, request);
    sender.send(prefix(64 << 10)).await.unwrap();
    sender.send(vec![0; 64 << 10].into()).await.unwrap();
    settle().await;
    assert_eq!(intake.held_bytes(), 0);
    drop(sender);
    assert_eq!(answer.await.unwrap().unwrap(), (64 << 10) + 5);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_large_is_refused_by_its_length_alone() {
    let _bound = Bound::default();
    let intake = Intake::new(1 << 30, Way::default());
    let status = async |path: &str, length: usize| {
        let (sender, request) = request(path);
        sender.send(prefix(length)).await.unwrap();
        let status = call(&intake, request).await.unwrap().unwrap_err();
        drop(sender);
        status
    };
    let large = status(SUBMIT, 257 * MIB).await;
    assert_eq!(large.code(), Code::OutOfRange);
    assert!(large.message().contains("at most 268435456"), "{large}");
    assert!(large.message().contains("send the proofs"), "{large}");
    let other = status("/grpc.health.v1.Health/Check", 65 << 10).await;
    assert_eq!(other.code(), Code::OutOfRange);
    assert_eq!(intake.held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_message_is_not_read() {
    let _bound = Bound::default();
    let intake = Intake::new(1 << 30, Way::default());
    let (sender, request) = request(SUBMIT);
    let answer = call(&intake, request);
    sender.send(prefix(1)).await.unwrap();
    sender.send(Bytes::from_static(&[0])).await.unwrap();
    sender.send(prefix(MIB)).await.unwrap();
    let status = answer.await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}

/// Calls whose bytes are no call, with what the refusal says.
#[tokio::test]
async fn bytes_that_are_no_call_are_the_clients_fault() {
    let _bound = Bound::default();
    let other = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let status = "/cuzk.v1.ProvingEngine/GetStatus";
    let (bad, unknown) = (Code::InvalidArgument, Code::Unimplemented);
    let cases: [(&str, &[u8], Code, &str); 8] = [
        (SUBMIT, b"", bad, "has no message"),
        (status, b"", bad, "has no message"),
        (SUBMIT, &[0, 0, 0], bad, "cut off"),
        (other, &[0, 0, 0], bad, "cut off"),
        (SUBMIT, &[0, 0, 0, 0, 9, 1], bad, "cut off"),
        (SUBMIT, &[0, 0, 1, 0, 1, 1], bad, "cut off"),
        (status, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0], bad, "second"),
        (SUBMIT, &[1, 0, 0, 0, 0], unknown, "without compression"),
    ];
    let intake = Intake::new(400 << 20, Way::default());
    for (path, bytes, code, message) in cases {
        let (sender, request) = request(path);
        sender.send(Bytes::from_static(bytes)).await.unwrap();
        drop(sender);
        let status = call(&intake, request).await.unwrap().unwrap_err();
        assert_eq!(status.code(), code, "{path} {bytes:?}: {status}");
        assert!(status.message().contains(message), "{bytes:?}: {status}");
    }
    assert_eq!(intake.held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_silent_sender_is_ended_while_others_wait_and_a_post_does_not_wait() {
    let _bound = Bound::default();
    let intake = Intake::new(400 << 20, Way::default());
    let begin = async |kind: ProofKind| {
        let (sender, request) = request(SUBMIT);
        sender.send(front(kind, 200 * MIB)).await.unwrap();
        sender.send(vec![0; 8 << 10].into()).await.unwrap();
        let answer = call(&intake, request);
        settle().await;
        (sender, answer)
    };
    let silent = begin(ProofKind::PorepSealCommit).await;
    let next = begin(ProofKind::PorepSealCommit).await;
    assert_eq!(intake.waiting(), 1);
    let post = begin(ProofKind::WinningPost).await;
    assert_eq!((intake.held_bytes(), intake.waiting()), (400 << 20, 1));
    drop(post);
    let status = silent.1.await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    settle().await;
    assert_eq!(intake.waiting(), 0, "the next one has its place");
    drop(next);
}

/// A PoRep is not read while critical work runs, and its sender does not count as slow. The call
/// of a PoSt is read.
#[tokio::test(start_paused = true)]
async fn a_porep_gives_way_to_critical_work() {
    let _bound = Bound::default();
    let taken = Arc::new(AtomicBool::new(false));
    let is_taken = Arc::clone(&taken);
    let way = Way::new(move || is_taken.load(Ordering::SeqCst));
    let intake = Intake::new(400 << 20, way);
    let begin = async |kind: ProofKind, length: usize| {
        let (sender, request) = request(SUBMIT);
        let front = front(kind, length);
        let left = length + 5 - front.len();
        sender.send(front).await.unwrap();
        let answer = call(&intake, request);
        settle().await;
        (sender, answer, left)
    };
    let (porep, porep_answer, left) = begin(ProofKind::PorepSealCommit, 200 * MIB).await;
    porep.send(vec![0; 8 << 10].into()).await.unwrap();
    settle().await;
    taken.store(true, Ordering::SeqCst);
    // It waits for the room of the first one, so senders have a pace.
    let (_next, next_answer, _) = begin(ProofKind::PorepSealCommit, 200 * MIB).await;
    porep.send(vec![0; MIB].into()).await.unwrap();
    let (post, post_answer, rest) = begin(ProofKind::WinningPost, MIB).await;
    post.send(vec![0; rest].into()).await.unwrap();
    drop(post);
    assert_eq!(post_answer.await.unwrap().unwrap(), MIB + 5);
    // Longer than a sender may be slow.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(!porep_answer.is_finished());
    taken.store(false, Ordering::SeqCst);
    let sent = MIB + (8 << 10);
    porep.send(vec![0; left - sent].into()).await.unwrap();
    drop(porep);
    assert_eq!(porep_answer.await.unwrap().unwrap(), 200 * MIB + 5);
    next_answer.abort();
}
