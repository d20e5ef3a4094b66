//! A page of the daemon, over HTTP.
//!
//! Not a client for other servers: the daemon speaks plain HTTP, and the pages are small.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use cuzk_core::config::Address;

/// The longest wait for a connection, and for each part of an answer.
const TIME: Duration = Duration::from_secs(5);

/// The longest answer.
const ANSWER_MAX_BYTES: u64 = 64 << 20;

/// Returns the body of a page.
///
/// # Errors
/// Why there is none, in words.
pub(super) fn get(address: &Address, path: &str) -> Result<String, String> {
    let Address::Tcp { host, port } = address else {
        return Err(format!("{address}: HTTP is served over TCP only"));
    };
    let told = |error: std::io::Error| format!("{address}: {error}");
    let resolved = (host.as_str(), *port).to_socket_addrs().map_err(told)?;
    let mut last = format!("{address}: the host has no address");
    for at in resolved {
        match TcpStream::connect_timeout(&at, TIME) {
            Ok(stream) => return ask(stream, host, path).map_err(told)?,
            Err(error) => last = told(error),
        }
    }
    Err(last)
}

/// Returns the body, or the status that came instead.
fn ask(mut stream: TcpStream, host: &str, path: &str) -> std::io::Result<Result<String, String>> {
    stream.set_read_timeout(Some(TIME))?;
    stream.set_write_timeout(Some(TIME))?;
    // With this version the answer ends with the connection.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX_BYTES).read_to_end(&mut answer)?;
    Ok(body(&String::from_utf8_lossy(&answer), path))
}

fn body(answer: &str, path: &str) -> Result<String, String> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.lines().next().unwrap_or("no answer");
    match status.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => Err(format!("{path}: {status}")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use cuzk_bounded::BoundedJoin;

    fn answered(answer: &'static str) -> Result<String, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                asked.extend(byte);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        let host = "127.0.0.1".to_owned();
        let got = get(&Address::Tcp { host, port }, "/status");
        assert!(
            server
                .join_bounded()
                .unwrap()
                .starts_with("GET /status HTTP/1.0\r\n")
        );
        got
    }

    #[test]
    fn a_page_is_its_body_and_any_other_status_is_told() {
        let page = "HTTP/1.1 200 OK\r\nA: b\r\n\r\n{\"a\":1}";
        assert_eq!(answered(page).unwrap(), "{\"a\":1}");
        let refused = answered("HTTP/1.1 503 Service Unavailable\r\n\r\nno").unwrap_err();
        assert_eq!(refused, "/status: HTTP/1.1 503 Service Unavailable");
        assert!(answered("").is_err());
    }
}
