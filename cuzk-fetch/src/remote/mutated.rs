//! Mutants of a server's answers: each is a stream of the bytes that were asked for, or a refusal.
//!
//! No socket is opened: the client reads what a connection would have. The invariant: each
//! connection of a client has the same answer, also after a redirection.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use cuzk_fuzz::Corpus;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

use super::*;
use crate::Digest;

/// The bytes that a read of a connection returns, so that an answer comes in several pieces.
const PIECE_BYTES: usize = 48;

/// The length of the file, and the bytes of it that are asked for.
const LENGTH_BYTES: u64 = 100;
const RANGE: Range<u64> = 10..20;

/// Makes connections that have this answer.
#[derive(Debug)]
struct Answers(Arc<[u8]>);

impl Connector for Answers {
    type Out = Answer;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Answer>, ureq::Error> {
        Ok(Some(Answer {
            bytes: Arc::clone(&self.0),
            at: 0,
            buffers: LazyBuffers::new(16 << 10, 16 << 10),
        }))
    }
}

/// A connection.
#[derive(Debug)]
struct Answer {
    bytes: Arc<[u8]>,
    /// The bytes before it were read.
    at: usize,
    buffers: LazyBuffers,
}

impl Transport for Answer {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, _: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        let rest = &self.bytes[self.at..];
        let room = self.buffers.input_append_buf();
        let length = rest.len().min(room.len()).min(PIECE_BYTES);
        room[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        self.buffers.input_appended(length);
        Ok(length > 0)
    }

    fn is_open(&mut self) -> bool {
        false
    }
}

/// Knows no address, and needs none.
#[derive(Debug)]
struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 9)));
        Ok(addresses)
    }
}

/// Checks that a refusal can be printed and waited for.
fn check_refusal(refusal: Refusal) -> String {
    let text = match refusal {
        Refusal::Never(text) | Refusal::Later(text, None) => text,
        Refusal::Later(text, Some(wait)) => {
            assert!(wait <= RETRY_AFTER_MAX, "{wait:?}");
            text
        }
    };
    assert!(
        !text.is_empty() && !text.contains(char::is_control),
        "{text:?}"
    );
    text
}

/// Asks for the length of the file and for a range of it.
fn ask(answer: &[u8]) -> Result<(), String> {
    let config = Client::config(Duration::from_secs(3600));
    let client = Client {
        agent: Agent::with_parts(config, Answers(answer.into()), Nowhere),
    };
    let source = Source::Daemon("server:9".to_owned());
    let file = ListedFile {
        name: "v28-a.params".to_owned(),
        cid: "Qma5".to_owned(),
        digest: Digest::of_bytes(b""),
        sector_size_bytes: 2048,
    };
    match client.length(&source, &file) {
        Ok(length) => assert!(length.is_none_or(|length| length <= LENGTH_BYTES_MAX)),
        Err(refusal) => drop(check_refusal(refusal)),
    }
    let stream = client.stream(&source, &file, RANGE, LENGTH_BYTES);
    let mut stream = stream.map_err(check_refusal)?;
    if stream.is_whole {
        assert_eq!(stream.range, 0..LENGTH_BYTES);
    } else {
        let Range { start, end } = stream.range;
        assert!(
            start == RANGE.start && start < end && end <= RANGE.end,
            "{start}-{end}"
        );
    }
    // The bytes are compared with the file's digest elsewhere. An error of the connection is none
    // of the answer.
    let mut taken = Vec::new();
    let _ = stream
        .reader
        .by_ref()
        .take(LENGTH_BYTES)
        .read_to_end(&mut taken);
    Ok(())
}

#[test]
fn mutated_answers_are_streams_of_the_range_or_refusals() {
    const WORDS: [&[u8]; 12] = [
        b"\r\n",
        b"\r\n\r\n",
        b"Content-Range: bytes 10-19/100\r\n",
        b"Content-Length: 18446744073709551615\r\n",
        b"Content-Encoding: gzip\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Location: /other\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"18446744073709551616",
        b"-1",
        b"\\u001b",
        b"\xff",
    ];
    let whole = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {LENGTH_BYTES}\r\n\r\n{}",
        "x".repeat(100)
    );
    let answers = [
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 10-19/100\r\n\
         Content-Length: 10\r\n\r\n0123456789",
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 10-14/*\r\n\
         Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n0\r\n\r\n",
        &whole,
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: htt095516\t5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gz\t: 100\r\n\r\nx",
        // It ends before the last line of its chunks.
        "HTTP/1.1 306 Unused\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n0\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /other\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        // Longer than any wait, and than any file.
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 18446744073709551615\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 34\r\n\r\n\
         {\"error\":\"it \\u001bserves\\n none\"}",
        "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */100\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: http://other/file\r\nContent-Length: 0\r\n\r\n",
    ];
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/answers");
    let corpus = answers
        .into_iter()
        .fold(Corpus::read(corpus), Corpus::with)
        .with_words(&WORDS);
    corpus.fuzz_decoder("answers", 3_000, ask, |_| true);
}
