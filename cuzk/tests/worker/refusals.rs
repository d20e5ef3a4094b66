//! Servers that a worker cannot use, and configurations that name none: each is told by name,
//! with the exit code of bad input.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use async_nats::jetstream;

use crate::fixture::Worker;
use crate::server::Server;

/// Starts a worker that cannot begin, and returns its log.
fn refused(config: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(folder.path(), config, arguments);
    assert_eq!(worker.code(), Some(2), "{}", worker.log());
    worker.log()
}

#[test]
fn a_worker_without_a_server_says_how_to_name_one() {
    let log = refused("", &[]);
    assert!(log.contains("give --cluster nats://HOST:PORT"), "{log}");
}

#[test]
fn a_bad_address_or_name_is_told() {
    let log = refused("", &["--cluster", "127.0.0.1:4222"]);
    assert!(log.contains("the scheme is missing"), "{log}");
    let named = ["--cluster", "nats://127.0.0.1:4222", "--name", "a.b"];
    let log = refused("", &named);
    assert!(log.contains("cluster.name") && log.contains("a.b"), "{log}");
}

#[test]
fn a_file_that_is_not_there_is_told_with_its_key() {
    let config = "[cluster]\nservers = [\"nats://127.0.0.1:4222\"]\ncredentials = \"/no/creds\"\n";
    let log = refused(config, &[]);
    assert!(log.contains("cluster.credentials: /no/creds"), "{log}");
}

/// Answers as a server of this version until the client leaves.
fn old_server(version: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let info = format!(
                "INFO {{\"server_id\":\"A\",\"server_name\":\"a\",\"version\":\"{version}\",\
                 \"proto\":1,\"host\":\"127.0.0.1\",\"port\":{},\"max_payload\":1048576,\
                 \"headers\":true,\"jetstream\":true}}\r\n",
                address.port()
            );
            if stream.write_all(info.as_bytes()).is_err() {
                continue;
            }
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while let Some(Ok(line)) = lines.next() {
                if line.starts_with("PING") && stream.write_all(b"PONG\r\n").is_err() {
                    break;
                }
            }
        }
    });
    format!("nats://{address}")
}

#[test]
fn a_server_that_is_too_old_is_told() {
    let log = refused("", &["--cluster", &old_server("2.9.10")]);
    assert!(log.contains("version 2.9.10 is too old"), "{log}");
    assert!(log.contains("install nats-server 2.14 or later"), "{log}");
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_stream_of_someone_else_is_told() {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = async_nats::connect(server.url()).await.unwrap();
        let config = jetstream::stream::Config {
            name: "CUZK_WORK".to_owned(),
            subjects: vec!["cuzk.work.>".to_owned()],
            ..Default::default()
        };
        jetstream::new(client).create_stream(config).await.unwrap();
    });
    let log = refused("", &["--cluster", &server.url()]);
    assert!(log.contains("stream CUZK_WORK: retention"), "{log}");
}
