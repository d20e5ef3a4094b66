use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use cuzk_bounded::Bound;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_stream::StreamExt;

use super::connection::PREFACE;
use super::*;
use crate::access::tests::{authority, server, with_tls};
use crate::access::{Access, Channel, Peer};

fn listening(address: &str) -> Server {
    server(&format!("listen = [\"{address}\"]\nhttp = \"\"\n"))
}

fn refused(server: &Server, expected: &[&str]) {
    let error = Listeners::bind(server).unwrap_err().to_string();
    for expected in expected {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn an_address_that_cannot_be_had_names_the_key_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "kept").unwrap();
    let at = |path: &std::path::Path| listening(&format!("unix://{}", path.display()));
    refused(
        &at(&file),
        &["server.listen: ", "is not a socket; remove it"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    refused(&at(folder.path()), &["server.listen: ", "is not a socket"]);
    refused(
        &at(&folder.path().join("no/a")),
        &["server.listen: ", "make its folder"],
    );
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    refused(
        &listening(&format!("tcp://127.0.0.1:{port}")),
        &["server.listen: ", "is in use"],
    );
    let http = format!("listen = [\"127.0.0.1:0\"]\nhttp = \"127.0.0.1:{port}\"\n");
    refused(&server(&http), &["server.http: ", "is in use"]);
    refused(
        &server("listen = []\nhttp = \"\"\n"),
        &["server.listen: ", "no address"],
    );
    refused(
        &listening("tcp://0.0.0.0:0"),
        &[
            "server.listen: ",
            "server.client_ca or server.tokens",
            "server.plaintext_from",
        ],
    );
}

#[test]
fn a_group_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a").display().to_string();
    let text = format!("listen = [\"unix://{path}\"]\nsocket_group = \"no such group\"\n");
    refused(
        &server(&text),
        &["server.socket_group: ", "\"no such group\" does not exist"],
    );
    assert!(!folder.path().join("a").exists());
}

#[test]
fn a_unix_socket_has_its_mode_and_goes_with_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let text = format!(
        "listen = [\"unix://{}\"]\nhttp = \"\"\nsocket_mode = \"0642\"\n",
        path.display()
    );
    let first = Listeners::bind(&server(&text)).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o642
    );
    assert!(UnixStream::connect(&path).is_ok());
    refused(
        &server(&text),
        &["server.listen: ", "is in use by another process"],
    );
    assert!(
        UnixStream::connect(&path).is_ok(),
        "the socket of the first is untouched"
    );
    drop(first);
    assert!(!path.exists());
    // A socket whose process is gone.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let second = Listeners::bind(&server(&text)).unwrap();
    // Somebody else's socket is not removed.
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(second);
    assert!(path.exists());
    drop(other);
}

/// The listeners of a text, accepting, and their one TCP port.
fn accepting(text: &str) -> (Incoming, u16) {
    let server = server(text);
    let listeners = Listeners::bind(&server).unwrap();
    let address = listeners.addresses().pop().unwrap();
    let port = address
        .rsplit_once(':')
        .map_or(0, |(_, port)| port.parse().unwrap_or(0));
    let access = Arc::new(Access::load(&server).unwrap());
    (listeners.accept(&access).unwrap(), port)
}

#[tokio::test]
async fn a_unix_peer_is_known() {
    let _bound = Bound::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let (mut incoming, _) = accepting(&format!(
        "listen = [\"unix://{}\"]\nhttp = \"\"\n",
        path.display()
    ));
    let mut client = tokio::net::UnixStream::connect(&path).await.unwrap();
    let sent = [PREFACE, b"ping"].concat();
    client.write_all(&sent).await.unwrap();
    let mut connection = incoming.next().await.unwrap().unwrap();
    assert!(matches!(connection.peer(), Peer::Unix { pid: Some(pid), .. } if pid > 0));
    // The preface was read to judge the client, and is there once more.
    let mut read = vec![0; sent.len()];
    connection.read_exact(&mut read).await.unwrap();
    assert_eq!(read, sent);
    drop(incoming);
    assert!(!path.exists());
}

#[tokio::test]
async fn one_port_takes_plain_and_tls_and_a_silent_client_blocks_nobody() {
    let _bound = Bound::default();
    let authority = authority();
    authority.sign("client", 2999);
    authority.sign("expired", 2001);
    let text = "listen = [\"127.0.0.1:0\"]\nhttp = \"\"\n".to_owned() + &with_tls(&authority);
    let (mut incoming, port) = accepting(&text);
    let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let mut plain = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    plain.write_all(PREFACE).await.unwrap();
    let connection = incoming.next().await.unwrap().unwrap();
    assert!(matches!(
        connection.peer(),
        Peer::Tcp {
            channel: Channel::Plain,
            ..
        }
    ));
    let tls = async |config: ClientConfig| {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let mut stream = connector.connect(name, stream).await.unwrap();
        stream.write_all(PREFACE).await.unwrap();
        stream
    };
    let (_client, connection) = tokio::join!(tls(authority.client("client")), incoming.next());
    let peer = connection.unwrap().unwrap().peer();
    assert!(matches!(
        peer,
        Peer::Tcp {
            channel: Channel::Certified,
            ..
        }
    ));
    // The server's verdict on a certificate comes with its first bytes.
    let mut expired = tls(authority.client("expired")).await;
    let error = expired.read(&mut [0]).await.unwrap_err();
    assert!(
        format!("{error:?}").contains("CertificateExpired"),
        "{error:?}"
    );
}

/// The clock of this test jumps ahead whenever everything waits.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_begin_loses_its_place_after_ten_seconds() {
    let _bound = Bound::default();
    let authority = authority();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let listen = format!(
        "listen = [\"unix://{}\", \"127.0.0.1:0\"]\nhttp = \"\"\n",
        path.display()
    );
    let (mut incoming, port) = accepting(&(listen + &with_tls(&authority)));
    let hello: &[u8] = &[0x16, 3, 1, 2, 0, 1];
    for sent in [b"", &PREFACE[..1], &PREFACE[..23], hello] {
        let began = tokio::time::Instant::now();
        let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        client.write_all(sent).await.unwrap();
        // The end comes as an error if bytes were left unread.
        assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)));
        assert_eq!(began.elapsed().as_secs(), 10, "{sent:?}");
        if sent.starts_with(hello) {
            continue;
        }
        let began = tokio::time::Instant::now();
        let mut client = tokio::net::UnixStream::connect(&path).await.unwrap();
        client.write_all(sent).await.unwrap();
        assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)));
        assert_eq!(began.elapsed().as_secs(), 10, "{sent:?}");
    }
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    client.write_all(PREFACE).await.unwrap();
    assert!(incoming.next().await.unwrap().is_ok());
}
