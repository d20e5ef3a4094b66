//! Opened sources: the length of a file, and a stream of its bytes from a position on.
//!
//! A source may lie, so answers are checked here. The invariant: a stream that is returned
//! begins at the position that was asked for, as far as the source's headers tell.

mod redirection;
mod refusal;

use std::fs::File;
use std::io::{Read, Seek as _, SeekFrom};
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

use self::redirection::follow;
pub(crate) use self::refusal::Refusal;
use self::refusal::{refused, told};
use crate::{ListedFile, Source};

/// The bytes that one read of a connection may return.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// The largest file that is fetched, in bytes. The largest parameters have 60 GiB.
const LENGTH_BYTES_MAX: u64 = 1 << 40;

/// The longest wait that a busy server can ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

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
            // `follow` does it.
            .max_redirects(0)
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
        let head = |url: &str| {
            self.agent
                .head(url)
                .header(ACCEPT_ENCODING, "identity")
                .call()
        };
        let answer = follow(&url, head)?;
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
        let answer = follow(url, |url| {
            let request = self.agent.get(url).header(ACCEPT_ENCODING, "identity");
            let range = format!("bytes={}-{last}", range.start);
            request.header(RANGE, range).call()
        })?;
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

#[cfg(test)]
mod mutated;

#[cfg(test)]
mod tests {
    use super::*;

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
