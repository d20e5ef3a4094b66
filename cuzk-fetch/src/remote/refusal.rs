//! Refusals: why a source gave nothing, in words that can be shown, and if it may give it later.
//!
//! Nothing is asked for here. The invariant: a text has no control character of the source's.

use std::io::{self, Read as _};
use std::time::Duration;

use ureq::Body;
use ureq::http::Response;

/// The most letters of a server's reason that are shown.
const REASON_MAX: usize = 200;

/// The most bytes of a refusal that are read.
pub(super) const BODY_BYTES_MAX: u64 = 4096;

/// The reason for which a source gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It may answer later: the connection failed, or the server is busy. The server may
    /// say when.
    Later(String, Option<Duration>),
    /// It does not have the file, or answers with other bytes than those asked for.
    Never(String),
}

/// Returns the refusal of a request that ureq fails with.
pub(super) fn later(error: &ureq::Error) -> Refusal {
    // It may quote a header of the server's.
    let text = printable(&error.to_string()).collect();
    match error {
        ureq::Error::BadUri(_) => Refusal::Never(text),
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
pub(super) fn told(answer: Response<Body>) -> String {
    let status = answer.status().to_string();
    let mut body = Vec::new();
    let mut reader = answer.into_body().into_reader().take(BODY_BYTES_MAX);
    let read = reader.read_to_end(&mut body);
    match read.ok().and_then(|_| reason(&body)) {
        Some(reason) => format!("{status}: {reason}"),
        None => status,
    }
}

/// Returns the refusal of a folder whose file cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
pub(super) fn refused(error: io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::NotFound => Refusal::Never("it does not have the file".to_owned()),
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
            Refusal::Never(error.to_string())
        }
        _ => Refusal::Later(error.to_string(), None),
    }
}

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
}
