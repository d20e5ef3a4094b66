use std::sync::Arc;

use cuzk_bounded::Bound;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_stream::StreamExt;

use super::*;
use crate::access::tests::{authority, server, with_tls};
use crate::access::{Access, Channel, Peer};
use crate::listen::Listeners;
use crate::tls::tests::Authority;

fn options(authority: &Authority, port: u16) -> ProxyOptions {
    ProxyOptions {
        listen: authority.path("proxy", "sock"),
        mode: 0o600,
        group: None,
        host: "127.0.0.1".to_owned(),
        port,
        certificate: authority.path("client", "pem"),
        key: authority.path("client", "key"),
        ca: authority.path("ca", "pem"),
        server_name: Some("localhost".to_owned()),
    }
}

#[tokio::test]
async fn bytes_go_both_ways_and_the_daemon_sees_a_certificate() {
    let _bound = Bound::default();
    let authority = authority();
    authority.sign("client", 2999);
    let text = "listen = [\"127.0.0.1:0\"]\nhttp = \"\"\n".to_owned() + &with_tls(&authority);
    let server = server(&text);
    let listeners = Listeners::bind(&server).unwrap();
    let address = listeners.addresses().pop().unwrap();
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    let access = Arc::new(Access::load(&server).unwrap());
    let mut incoming = listeners.accept(&access).unwrap();
    let options = options(&authority, port);
    let path = options.listen.clone();
    let running = tokio::spawn(Proxy::bind(options).unwrap().run());
    let mut client = UnixStream::connect(&path).await.unwrap();
    let sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nping";
    client.write_all(sent).await.unwrap();
    let mut connection = incoming.next().await.unwrap().unwrap();
    assert!(matches!(
        connection.peer(),
        Peer::Tcp {
            channel: Channel::Certified,
            ..
        }
    ));
    let mut read = [0; 28];
    connection.read_exact(&mut read).await.unwrap();
    connection.write_all(b"pong").await.unwrap();
    connection.shutdown().await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert_eq!((&read, answer.as_slice()), (sent, &b"pong"[..]));
    running.abort();
}

#[tokio::test]
async fn a_daemon_that_is_not_there_costs_a_connection_and_not_the_proxy() {
    let _bound = Bound::default();
    let authority = Authority::new();
    authority.sign("client", 2999);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let options = options(&authority, port);
    let path = options.listen.clone();
    let running = tokio::spawn(Proxy::bind(options).unwrap().run());
    for _ in 0..2 {
        let mut client = UnixStream::connect(&path).await.unwrap();
        let mut nothing = Vec::new();
        client.read_to_end(&mut nothing).await.unwrap();
        assert!(nothing.is_empty());
    }
    running.abort();
}

#[test]
fn a_problem_is_told_once_until_there_was_a_connection() {
    let told = Told::default();
    let problems = ["refused", "refused", "no route", "no route", "refused"];
    assert_eq!(
        problems.map(|problem| told.is_new(problem)),
        [true, false, true, false, true]
    );
    told.forget();
    assert!(told.is_new("refused"));
}

#[tokio::test]
async fn options_that_cannot_be_used_are_named() {
    let _bound = Bound::default();
    let authority = Authority::new();
    authority.sign("client", 2999);
    let error = |options| Proxy::bind(options).unwrap_err().to_string();
    let good = options(&authority, 1);
    let bad_name = ProxyOptions {
        server_name: Some("a b".to_owned()),
        ..good.clone()
    };
    assert!(error(bad_name).starts_with("--server-name: \"a b\""));
    let no_key = ProxyOptions {
        key: authority.path("none", "key"),
        ..good.clone()
    };
    assert!(error(no_key).starts_with("--key: "));
    std::fs::write(&good.listen, "").unwrap();
    assert!(error(good).starts_with("--listen: "));
}
