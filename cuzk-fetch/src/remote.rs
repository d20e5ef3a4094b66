//! Opened sources: the length of a file, and a stream of its bytes from a position on.
//!
//! A source may lie, so answers are checked here. The invariant: a stream that is returned
//! begins at the position that was asked for, as far as the source's headers tell.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::Body;
use ureq::config::Config;
use ureq::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, RANGE, RETRY_AFTER,
};
use ureq::http::{HeaderMap, HeaderName, Response, StatusCode};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use crate::{ListedFile, Source};

/// The bytes that one read of a connection may return.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// The largest file that is fetched, in bytes. The largest parameters have 60 GiB.
const LENGTH_BYTES_MAX: u64 = 1 << 40;

/// The longest wait that a busy server can ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The most letters of a server's reason that are shown.
const REASON_MAX: usize = 200;

/// The most bytes of a refusal that are read.
const BODY_BYTES_MAX: u64 = 4096;

/// The reason for which a source gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It may answer later: the connection failed, or the server is busy. The server may
    /// say when.
    Later(String, Option<Duration>),
    /// It does not have the file, or answers with other bytes than those asked for.
    Never(String),
}

/// A stream of a file's bytes.
pub(crate) struct Stream {
    /// The bytes.
    pub(crate) reader: Box<dyn Read + Send>,
    /// The bytes that the source says to send.
    pub(crate) range: Range<u64>,
    /// The source sends whole files only.
    pub(crate) is_whole: bool,
}

/// The client of all sources of a run.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    agent: Agent,
}

impl Client {
    /// Makes a client. `patience` is the longest time without a byte.
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            agent: Self::config(patience).new_agent(),
        }
    }

    fn config(patience: Duration) -> Config {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(provider)
            .build();
        Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(tls)
            .user_agent(concat!("cuzk/", env!("CARGO_PKG_VERSION")))
            .input_buffer_size(BUFFER_BYTES)
            .timeout_connect(Some(patience))
            .timeout_recv_response(Some(patience))
            .timeout_per_read(Some(patience))
            .build()
    }

    /// Ends all requests under way, and fails all later ones.
    pub(crate) fn shut_down(&self) {
        self.agent.clone().shutdown();
    }

    /// Returns the length of a file in bytes. A source may have a file and not tell its
    /// length.
    pub(crate) fn length(
        &self,
        source: &Source,
        file: &ListedFile,
    ) -> Result<Option<u64>, Refusal> {
        let length = self.told_length(source, file)?;
        match length {
            Some(length) if length > LENGTH_BYTES_MAX => Err(Refusal::Never(format!(
                "it says that the file has {length} bytes; no file has more than {LENGTH_BYTES_MAX}"
            ))),
            length => Ok(length),
        }
    }

    fn told_length(&self, source: &Source, file: &ListedFile) -> Result<Option<u64>, Refusal> {
        let Some(url) = source.url(file) else {
            return local(source, file).map(|(_, length)| Some(length));
        };
        let head = self.agent.head(&url).header(ACCEPT_ENCODING, "identity");
        let answer = head.call().map_err(|error| later(&error))?;
        if answer.status().is_success()
            && let Some(length) = number(answer.headers(), CONTENT_LENGTH)
        {
            check_encoding(answer.headers())?;
            return Ok(Some(length));
        }
        // Some servers do not answer HEAD. One byte tells the length, too.
        let answer = self.get(&url, 0..1)?;
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => Ok(content_range(answer.headers())?.1),
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(Some(0)),
            _ => Ok(number(answer.headers(), CONTENT_LENGTH)),
        }
    }

    /// Opens a stream of the bytes of `range`. `length` is the length of the file in bytes.
    pub(crate) fn stream(
        &self,
        source: &Source,
        file: &ListedFile,
        range: Range<u64>,
        length: u64,
    ) -> Result<Stream, Refusal> {
        let Some(url) = source.url(file) else {
            return local_stream(source, file, range, length);
        };
        let answer = self.get(&url, range.clone())?;
        check_encoding(answer.headers())?;
        if answer.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            return Err(Refusal::Never(answer.status().to_string()));
        }
        if answer.status() != StatusCode::PARTIAL_CONTENT {
            let told = number(answer.headers(), CONTENT_LENGTH);
            check_length(told, length)?;
            return Ok(stream_of(answer, 0..length, true));
        }
        let (sent, told) = content_range(answer.headers())?;
        check_length(told, length)?;
        if sent.start != range.start || sent.end > range.end {
            return Err(Refusal::Never(format!(
                "bytes {}-{} were asked for, and it sends {}-{}",
                range.start,
                range.end.saturating_sub(1),
                sent.start,
                sent.end.saturating_sub(1)
            )));
        }
        Ok(stream_of(answer, sent, false))
    }

    /// Asks for bytes. Returns an answer of success, or to a range that is behind the end.
    fn get(&self, url: &str, range: Range<u64>) -> Result<Response<Body>, Refusal> {
        let last = range.end.saturating_sub(1);
        let request = self.agent.get(url);
        let request = request.header(ACCEPT_ENCODING, "identity");
        let request = request.header(RANGE, format!("bytes={}-{last}", range.start));
        let answer = request.call().map_err(|error| later(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        if status == StatusCode::RANGE_NOT_SATISFIABLE && range.start == 0 {
            return Ok(answer);
        }
        let is_busy = status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT;
        if is_busy {
            let seconds = number(answer.headers(), RETRY_AFTER);
            let wait = seconds.map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
            return Err(Refusal::Later(status.to_string(), wait));
        }
        Err(Refusal::Never(told(answer)))
    }
}

fn stream_of(answer: Response<Body>, range: Range<u64>, is_whole: bool) -> Stream {
    // The limit of the body is the caller's: it reads no more than the range.
    let reader = answer
        .into_body()
        .into_with_config()
        .limit(u64::MAX)
        .reader();
    Stream {
        reader: Box::new(reader),
        range,
        is_whole,
    }
}

fn later(error: &ureq::Error) -> Refusal {
    // It may quote a header of the server's.
    let text = printable(&error.to_string()).collect();
    match error {
        ureq::Error::BadUri(_) | ureq::Error::TooManyRedirects | ureq::Error::RedirectFailed => {
            Refusal::Never(text)
        }
        ureq::Error::Io(io) if is_of_certificate(io) => Refusal::Never(text),
        _ => Refusal::Later(text, None),
    }
}

/// Returns the letters of a text without control characters, which could change what a terminal shows.
fn printable(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|letter| !letter.is_control())
}

/// Returns true if a server's certificate is not accepted. It is the same at the next try.
fn is_of_certificate(error: &io::Error) -> bool {
    let inner = error.get_ref();
    let inner = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// Returns the reason that a daemon gives for a refusal, in a form that can be shown.
fn reason(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let told = body.get("error")?.as_str()?;
    Some(printable(told).take(REASON_MAX).collect())
}

/// Returns the text of a refusal: its status, and the reason if the server gives one.
fn told(answer: Response<Body>) -> String {
    let status = answer.status().to_string();
    let mut body = Vec::new();
    let mut reader = answer.into_body().into_reader().take(BODY_BYTES_MAX);
    let read = reader.read_to_end(&mut body);
    match read.ok().and_then(|_| reason(&body)) {
        Some(reason) => format!("{status}: {reason}"),
        None => status,
    }
}

fn number(headers: &HeaderMap, name: HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// Checks that the body has the bytes of the file and not a compressed form of them.
fn check_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            // A header that is printed for debugging keeps its tabs. A string escapes them.
            let encoding = String::from_utf8_lossy(encoding.as_bytes());
            Err(Refusal::Never(format!(
                "it sends the encoding {encoding:?}, and none was asked for"
            )))
        }
        _ => Ok(()),
    }
}

fn check_length(told: Option<u64>, length: u64) -> Result<(), Refusal> {
    match told {
        Some(told) if told != length => Err(Refusal::Never(format!(
            "its file has {told} bytes; expected {length}"
        ))),
        _ => Ok(()),
    }
}

/// Returns the bytes that an answer says to have, and the length of the file if it tells
/// it.
fn content_range(headers: &HeaderMap) -> Result<(Range<u64>, Option<u64>), Refusal> {
    let value = headers.get(CONTENT_RANGE);
    let text = value.and_then(|value| value.to_str().ok());
    let text = text.ok_or_else(|| Refusal::Never("its answer has no Content-Range".to_owned()))?;
    let parsed = parse_content_range(text);
    parsed.ok_or_else(|| Refusal::Never(format!("its Content-Range is {text:?}")))
}

fn parse_content_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let first: u64 = first.trim().parse().ok()?;
    let end = last.trim().parse::<u64>().ok()?.checked_add(1)?;
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse::<u64>().ok()?),
    };
    let is_inside = first < end && total.is_none_or(|total| end <= total);
    is_inside.then_some((first..end, total))
}

/// Opens a file of a folder. Returns it with its length in bytes.
fn local(source: &Source, file: &ListedFile) -> Result<(File, u64), Refusal> {
    let Source::Folder(folder) = source else {
        return Err(Refusal::Never("it has no files".to_owned()));
    };
    let opened = File::open(folder.join(&file.name)).map_err(refused)?;
    let metadata = opened.metadata().map_err(refused)?;
    if !metadata.is_file() {
        return Err(Refusal::Never("it is no file there".to_owned()));
    }
    Ok((opened, metadata.len()))
}

fn local_stream(
    source: &Source,
    file: &ListedFile,
    range: Range<u64>,
    length: u64,
) -> Result<Stream, Refusal> {
    let (mut opened, told) = local(source, file)?;
    check_length(Some(told), length)?;
    opened.seek(SeekFrom::Start(range.start)).map_err(refused)?;
    Ok(Stream {
        reader: Box::new(opened.take(range.end - range.start)),
        range,
        is_whole: false,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn refused(error: io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::NotFound => Refusal::Never("it does not have the file".to_owned()),
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
            Refusal::Never(error.to_string())
        }
        _ => Refusal::Later(error.to_string(), None),
    }
}

#[cfg(test)]
mod mutated;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_that_which_may_change_is_tried_again() {
        let later_of = |error: io::Error| later(&ureq::Error::Io(error));
        let is_later = |refusal: Refusal| matches!(refusal, Refusal::Later(..));
        let certificate = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let certificate = io::Error::new(io::ErrorKind::InvalidData, certificate);
        assert!(!is_later(later_of(certificate)));
        assert!(is_later(later_of(io::ErrorKind::ConnectionRefused.into())));
        assert!(!is_later(refused(io::ErrorKind::NotADirectory.into())));
        assert!(is_later(refused(io::ErrorKind::Interrupted.into())));
    }

    #[test]
    fn a_reason_is_shown_without_control_characters() {
        let of = |text: &str| reason(text.as_bytes());
        assert_eq!(
            of(r#"{"error":"it \u001bserves\n none"}"#).unwrap(),
            "it serves none"
        );
        let long = format!(r#"{{"error":"{}"}}"#, "x".repeat(999));
        assert_eq!(of(&long).unwrap().len(), REASON_MAX);
        for other in ["", "<html>", "[]", "{}", r#"{"error":7}"#] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_range_is_read_as_servers_write_it_and_nothing_else() {
        assert_eq!(parse_content_range("bytes 0-9/10"), Some((0..10, Some(10))));
        assert_eq!(parse_content_range(" bytes 5-5/*"), Some((5..6, None)));
        let last = u64::MAX - 1;
        let largest = format!("bytes {last}-{last}/{}", u64::MAX);
        assert!(parse_content_range(&largest).is_some());
        for bad in [
            "",
            "bytes",
            "bytes 0-9",
            "bytes */10",
            "bytes 9-0/10",
            "bytes 0-10/10",
            "bytes -1-9/10",
            "items 0-9/10",
            "bytes 0-18446744073709551615/*",
            "bytes 0-9/ten",
        ] {
            assert_eq!(parse_content_range(bad), None, "{bad}");
        }
    }
}
