use std::time::Instant;

use axum::routing::get;
use cuzk_bounded::Bound;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::*;

async fn started(
    router: Router,
) -> (
    std::net::SocketAddr,
    oneshot::Sender<()>,
    tokio::task::JoinHandle<()>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    let limits = Limits {
        head: Duration::from_millis(200),
        ..LIMITS
    };
    let server = tokio::spawn(serve_within(limits, listener, router, shutdown));
    (address, stop, server)
}

#[tokio::test]
async fn a_reply_comes_and_the_server_ends() {
    let _bound = Bound::default();
    let router = Router::new().route("/", get(|| async { "hello" }));
    let (address, stop, server) = started(router).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let mut reply = vec![0; 4096];
    let read = stream.read(&mut reply).await.unwrap();
    assert!(reply[..read].ends_with(b"hello"));
    // The connection is kept and idle: it does not keep the server.
    stop.send(()).unwrap();
    server.await.unwrap();
    assert_eq!(stream.read(&mut reply).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_reply_without_an_end_does_not_keep_the_server() {
    let _bound = Bound::default();
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<String, io::Error>>(1);
    let receiver = Arc::new(std::sync::Mutex::new(Some(receiver)));
    let endless = move || {
        let receiver = receiver.lock().unwrap().take().unwrap();
        let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
        async { axum::body::Body::from_stream(stream) }
    };
    let router = Router::new().route("/", get(endless));
    let (address, stop, server) = started(router).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    sender.send(Ok("first".to_owned())).await.unwrap();
    let mut reply = vec![0; 4096];
    assert!(stream.read(&mut reply).await.unwrap() > 0);
    stop.send(()).unwrap();
    server.await.unwrap();
}

#[tokio::test]
async fn a_client_that_sends_no_head_is_cut() {
    let _bound = Bound::default();
    let (address, _stop, _server) = started(Router::new()).await;
    for sent in [&b""[..], b"GET / HTTP/1.1\r\nhost:"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply).await;
        assert!(!reply.starts_with(b"HTTP/1.1 200"));
    }
}

/// The kernel takes some megabytes; after them a write waits for the reader.
#[tokio::test]
async fn a_write_fails_if_the_other_side_reads_nothing() {
    let _bound = Bound::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let reader = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let mut timed = Timed::new(stream, Duration::from_millis(50));
    let chunk = vec![0; 1 << 20];
    let begun = Instant::now();
    let problem = loop {
        if let Err(problem) = timed.write_all(&chunk).await {
            break problem;
        }
    };
    assert_eq!(problem.kind(), io::ErrorKind::TimedOut);
    assert!(begun.elapsed() >= Duration::from_millis(50));
    drop(reader);
}
