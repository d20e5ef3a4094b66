use proptest::prelude::*;

use super::*;

fn unix(path: &str) -> Address {
    Address::Unix(path.into())
}

fn tcp(host: &str, port: u16) -> Address {
    let host = host.to_owned();
    Address::Tcp { host, port }
}

#[test]
fn every_form_of_an_address_is_read() {
    for (text, address, printed) in [
        (
            "unix:///run/a.sock",
            unix("/run/a.sock"),
            "unix:///run/a.sock",
        ),
        (
            "unix:/run/a.sock",
            unix("/run/a.sock"),
            "unix:///run/a.sock",
        ),
        (
            "tcp://127.0.0.1:9820",
            tcp("127.0.0.1", 9820),
            "tcp://127.0.0.1:9820",
        ),
        (
            "prover-1.lan:9820",
            tcp("prover-1.lan", 9820),
            "tcp://prover-1.lan:9820",
        ),
        ("[::1]:9820", tcp("::1", 9820), "tcp://[::1]:9820"),
        ("tcp://[fe80::1]:0", tcp("fe80::1", 0), "tcp://[fe80::1]:0"),
    ] {
        assert_eq!(text.parse::<Address>().as_ref(), Ok(&address), "{text}");
        assert_eq!(address.to_string(), printed);
    }
}

#[test]
fn every_error_says_what_to_write() {
    let long = format!("unix:///{}", "x".repeat(107));
    for (text, problem) in [
        ("", "the port is missing"),
        ("localhost", "the port is missing"),
        ("/run/a.sock", "the port is missing"),
        ("unix://run/a.sock", "must be absolute"),
        ("unix:a.sock", "must be absolute"),
        ("unix:///run/", "must name a file"),
        ("unix:///a\0b", "no control characters"),
        (long.as_str(), "at most 107 bytes"),
        ("http://localhost:80", "the scheme is unknown"),
        (":9820", "the host is missing"),
        ("::1:9820", "in brackets"),
        ("[localhost]:1", "an IPv6 address is expected"),
        ("a b:1", "neither a name nor"),
        ("tcp://user@host:1", "neither a name nor"),
        ("host:65536", "from 0 to 65535"),
        ("host:+1", "from 0 to 65535"),
        ("host:", "from 0 to 65535"),
    ] {
        let error = text.parse::<Address>().unwrap_err().to_string();
        assert!(error.contains(problem), "{text:?}: {error}");
        assert!(error.contains("unix:///PATH"), "{text:?}: {error}");
    }
}

proptest! {
    #[test]
    fn an_address_that_is_read_is_printed_and_read_again(text in "(unix:|tcp:)?[/a\\[\\]:0-9.-]{0,20}") {
        if let Ok(address) = text.parse::<Address>() {
            prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
        }
    }
}
