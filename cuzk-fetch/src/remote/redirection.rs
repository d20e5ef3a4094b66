//! Redirections: a request is sent again to where an answer points.
//!
//! ureq follows none here. Its version 3.5.2 panics if a connection ends before the last line of a
//! redirection's chunked body. The invariant: a request is sent [`REDIRECTIONS_MAX`] + 1 times at most.

use std::io::{self, Read as _};

use ureq::Body;
use ureq::http::header::LOCATION;
use ureq::http::{HeaderMap, Response, StatusCode};
use url::Url;

use super::refusal::{BODY_BYTES_MAX, Refusal, later};

/// The most redirections of a request that are followed.
const REDIRECTIONS_MAX: usize = 10;

/// Sends a request to `url`, and to where its answers point. Returns the first answer that is no
/// redirection.
///
/// # Errors
/// The error of ureq, a redirection to nowhere, or too many of them.
pub(super) fn follow(
    url: &str,
    send: impl Fn(&str) -> Result<Response<Body>, ureq::Error>,
) -> Result<Response<Body>, Refusal> {
    let mut url = url.to_owned();
    for _ in 0..=REDIRECTIONS_MAX {
        let answer = send(&url).map_err(|error| later(&error))?;
        if !is_redirection(answer.status()) {
            return Ok(answer);
        }
        url = target(&url, answer.headers())?;
        read_rest(answer);
    }
    Err(Refusal::Never(format!(
        "it redirects more than {REDIRECTIONS_MAX} times"
    )))
}

fn is_redirection(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

/// Returns where an answer from `url` points. It may be relative to `url`.
fn target(url: &str, headers: &HeaderMap) -> Result<String, Refusal> {
    let Some(location) = headers.get(LOCATION) else {
        return Err(Refusal::Never("it redirects to nowhere".to_owned()));
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let target = Url::parse(url).and_then(|url| url.join(&location));
    match target {
        Ok(target) if matches!(target.scheme(), "http" | "https") => Ok(target.into()),
        _ => Err(Refusal::Never(format!(
            "it redirects to {location:?}, which is no address of a file"
        ))),
    }
}

/// Reads a short body to its end, so that the connection serves the next request, too.
fn read_rest(answer: Response<Body>) {
    let mut rest = answer.into_body().into_reader().take(BODY_BYTES_MAX);
    // A connection that fails here is not used again.
    let _ = io::copy(&mut rest, &mut io::sink());
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::HeaderValue;

    fn to(location: &str) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, HeaderValue::from_str(location).unwrap());
        target("http://a:80/params/x.vk?y", &headers).map_err(|refusal| match refusal {
            Refusal::Never(text) | Refusal::Later(text, _) => text,
        })
    }

    #[test]
    fn a_redirection_is_relative_to_its_request() {
        for (location, expected) in [
            ("https://b/c", "https://b/c"),
            ("/c", "http://a/c"),
            ("c", "http://a/params/c"),
            ("//b/c", "http://b/c"),
            ("?z", "http://a/params/x.vk?z"),
        ] {
            assert_eq!(to(location).as_deref(), Ok(expected), "{location}");
        }
    }

    #[test]
    fn a_redirection_to_no_server_is_refused() {
        for location in [
            "file:///etc/passwd",
            "http://",
            "ftp://b/c",
            "http://[/",
            "data:,\t",
        ] {
            let text = to(location).unwrap_err();
            assert!(text.contains("no address of a file"), "{text}");
            assert!(!text.contains(char::is_control), "{text:?}");
        }
        let Err(Refusal::Never(text)) = target("http://a/", &HeaderMap::new()) else {
            panic!("it is followed");
        };
        assert_eq!(text, "it redirects to nowhere");
    }
}
