//! Requests whose bytes were mutated: to the router, and to a real connection.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, Uri};
use cuzk_bounded::bounded;
use cuzk_server::http::{router, serve};
use cuzk_testing::fuzz::Corpus;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

use crate::made_up::MadeUp;

const WORDS: [&[u8]; 14] = [
    b"/status",
    b"/readyz?circuit=",
    b"/events",
    b"/timeline.svg",
    b"porep-32g",
    b"%2e%2e%2f",
    b"%00",
    b"%ff",
    b"&circuit=",
    b" HTTP/1.1\r\nhost: a\r\n\r\n",
    b"\r\ncontent-length: 99999999999999999999\r\n",
    b"\r\ntransfer-encoding: chunked\r\n",
    b"\r\n\r\nffffffffffffffff\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

fn corpus(folder: &str) -> Corpus {
    let corpora = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/");
    Corpus::read(format!("{corpora}{folder}")).with_words(&WORDS)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// An input is a method, a space and a path with its query.
#[test]
fn mutated_paths_and_queries_are_answered_or_refused() {
    let runtime = runtime();
    let router = router(Arc::new(MadeUp::default()));
    let count = corpus("http-paths").fuzz(5_000, |input| {
        let mut parts = input.splitn(2, |byte| *byte == b' ');
        let method = Method::from_bytes(parts.next().unwrap_or_default());
        let uri = Uri::try_from(parts.next().unwrap_or_default());
        // The server's own parser answers the others with 400.
        let (Ok(method), Ok(uri)) = (method, uri) else {
            return;
        };
        let is_get = method == Method::GET || method == Method::HEAD;
        let request = Request::builder().method(method).uri(uri.clone());
        let request = request.body(Body::empty()).unwrap();
        // The body of an event stream has no end, so it is not read.
        let response = runtime.block_on(router.clone().oneshot(request)).unwrap();
        let is_ready = ["/readyz", "/events"].contains(&uri.path());
        let is_expected = match response.status().as_u16() {
            200 => is_get,
            400 => uri.path() == "/readyz",
            503 => is_ready,
            404 | 405 => true,
            _ => false,
        };
        assert!(is_expected, "{uri}: {}", response.status());
    });
    println!("{count} paths");
}

/// An input is all that a client sends before it closes its side.
#[test]
fn mutated_connections_end_and_the_server_goes_on() {
    let runtime = runtime();
    let listener = bounded(|| runtime.block_on(TcpListener::bind("127.0.0.1:0"))).unwrap();
    let address = listener.local_addr().unwrap();
    let router = router(Arc::new(MadeUp::default()));
    let server = runtime.spawn(serve(listener, router, std::future::pending()));
    let talk = async |input: &[u8]| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may have closed the connection before it has read everything.
        stream.write_all(input).await.ok();
        stream.shutdown().await.ok();
        // An event stream has no end.
        let mut reply = vec![0; 12];
        match stream.read_exact(&mut reply).await {
            Ok(_) => reply,
            Err(_) => Vec::new(),
        }
    };
    let count = corpus("http-connections").fuzz(500, |input| {
        let reply = runtime.block_on(talk(input));
        let is_expected = reply.is_empty()
            || [
                "200", "400", "404", "405", "408", "413", "414", "431", "503",
            ]
            .iter()
            .any(|code| reply.ends_with(code.as_bytes()));
        let reply = String::from_utf8_lossy(&reply);
        assert!(is_expected, "{reply}");
    });
    println!("{count} connections");
    let live = talk(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n");
    let reply = bounded(|| runtime.block_on(live));
    assert_eq!(reply, b"HTTP/1.1 200");
    assert!(!server.is_finished());
}
