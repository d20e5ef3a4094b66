use cuzk_core::config::{Config, Host};
use tonic::Code;

use super::*;
use crate::tls::tests::Authority;

pub(crate) fn server(text: &str) -> Server {
    let text = format!("[server]\n{text}");
    Config::parse(&text, "test", &Host::detect())
        .unwrap()
        .server
}

/// The text of a configuration with TLS and tokens.
pub(crate) fn with_tls(authority: &Authority) -> String {
    let path = |name, extension| authority.path(name, extension).display().to_string();
    format!(
        "tls_certificate = \"{}\"\ntls_key = \"{}\"\nclient_ca = \"{}\"\ntokens = \"{}\"\n",
        path("server", "pem"),
        path("server", "key"),
        path("ca", "pem"),
        path("tokens", "txt"),
    )
}

pub(crate) fn authority() -> Authority {
    let authority = Authority::new();
    authority.sign("server", 2999);
    fs::write(authority.path("tokens", "txt"), "0123456789abcdef\n").unwrap();
    authority
}

fn peer(address: &str, channel: Channel) -> Peer {
    let address = address.parse().unwrap();
    Peer::Tcp { address, channel }
}

const GOOD: Option<&[u8]> = Some(b"Bearer 0123456789abcdef");
const WRONG: Option<&[u8]> = Some(b"Bearer 0123456789abcdeX");

#[test]
fn who_may_call_is_a_table() {
    let authority = authority();
    let text = with_tls(&authority) + "plaintext_from = [\"10.1.0.0/16\"]";
    let access = Access::load(&server(&text)).unwrap();
    let process = Peer::Unix {
        uid: 1,
        gid: 1,
        pid: None,
    };
    for (peer, token, expected) in [
        (process, None, None),
        (process, WRONG, None),
        (peer("127.0.0.1:1", Channel::Plain), None, None),
        (peer("[::1]:1", Channel::Plain), None, None),
        (peer("[::ffff:127.0.0.1]:1", Channel::Plain), None, None),
        (
            peer("127.0.0.1:1", Channel::Plain),
            WRONG,
            Some("the token is wrong"),
        ),
        (peer("10.1.2.3:1", Channel::Plain), None, None),
        (peer("[::ffff:10.1.2.3]:1", Channel::Plain), None, None),
        (
            peer("10.2.0.1:1", Channel::Plain),
            None,
            Some("server.plaintext_from"),
        ),
        (peer("10.2.0.1:1", Channel::Plain), GOOD, Some("need TLS")),
        (
            peer("10.2.0.1:1", Channel::Encrypted),
            None,
            Some("server.client_ca"),
        ),
        (peer("10.2.0.1:1", Channel::Encrypted), GOOD, None),
        (
            peer("10.2.0.1:1", Channel::Encrypted),
            WRONG,
            Some("server.tokens"),
        ),
        (peer("10.2.0.1:1", Channel::Certified), None, None),
    ] {
        let verdict = access.permit(&peer, token);
        let message = verdict.as_ref().err().map(Status::message);
        assert_eq!(message.is_some(), expected.is_some(), "{peer}: {message:?}");
        if let (Err(status), Some(expected)) = (&verdict, expected) {
            assert_eq!(status.code(), Code::Unauthenticated);
            assert!(status.message().contains(expected), "{status}");
            assert!(!status.message().contains("abcde"), "{status}");
        }
    }
}

#[test]
fn a_listener_is_protected_by_credentials_or_by_networks() {
    let tls = "tls_certificate = \"a\"\ntls_key = \"b\"\n".to_owned();
    for (text, expected) in [
        (String::new(), false),
        (tls.clone(), false),
        (tls.clone() + "client_ca = \"c\"", true),
        (tls + "tokens = \"t\"", true),
        ("plaintext_from = [\"10.0.0.0/8\"]".to_owned(), true),
    ] {
        assert_eq!(is_protected(&server(&text)), expected, "{text}");
    }
}

#[test]
fn files_are_read_again_and_a_bad_one_changes_nothing() {
    let authority = authority();
    let access = Access::load(&server(&with_tls(&authority))).unwrap();
    let remote = peer("10.2.0.1:1", Channel::Encrypted);
    assert!(!access.reload_if_changed());
    let tokens = authority.path("tokens", "txt");
    fs::write(&tokens, "short").unwrap();
    assert!(!access.reload_if_changed());
    assert!(access.permit(&remote, GOOD).is_ok());
    fs::write(&tokens, "# none of the old\nfedcba9876543210\n").unwrap();
    assert!(access.reload_if_changed());
    assert!(access.permit(&remote, GOOD).is_err());
    assert!(
        access
            .permit(&remote, Some(b"Bearer fedcba9876543210"))
            .is_ok()
    );
    assert!(!access.reload_if_changed());
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let authority = authority();
    fs::remove_file(authority.path("tokens", "txt")).unwrap();
    let error = Access::load(&server(&with_tls(&authority)))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("server.tokens: "), "{error}");
}
