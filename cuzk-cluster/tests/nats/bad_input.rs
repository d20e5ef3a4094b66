//! Servers, streams and messages that cannot be used.

use std::sync::atomic::Ordering::Relaxed;

use async_nats::jetstream;
use cuzk_bounded::bounded;
use cuzk_cluster::ledger::{self, Others};
use cuzk_cluster::nats::{ClusterError, Home, Limits, Owner, OwnerSetup, Settings};
use cuzk_cluster::subject::Subject;
use cuzk_scheduler::priority::Priority;

use crate::machines::{Daemon, circuit, name, offer, worker};
use crate::server::{Server, binary};

/// Does something on a server as another client.
pub(crate) fn with_context(server: &Server, act: impl AsyncFnOnce(jetstream::Context)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let acted = async {
        let client = async_nats::connect(server.url()).await.unwrap();
        act(jetstream::new(client)).await;
    };
    bounded(|| runtime.block_on(acted));
}

struct Nobody;

impl Home for Nobody {
    fn verify(&self, _: &cuzk_cluster::message::WorkId, _: &[u8]) -> Option<bool> {
        Some(false)
    }
    fn input(&self, _: &cuzk_cluster::message::WorkId) -> Option<Vec<u8>> {
        None
    }
    fn prove(&self, _: &cuzk_cluster::message::WorkId, _: Others) {}
    fn taken(&self, _: &cuzk_cluster::message::WorkId) {}
    fn returned(&self, _: &cuzk_cluster::message::WorkId) {}
    fn stop(&self, _: &cuzk_cluster::message::WorkId) {}
    fn ended(&self, _: &cuzk_cluster::message::WorkId, _: ledger::End) {}
}

fn refused(settings: &Settings) -> ClusterError {
    let setup = OwnerSetup {
        transport: settings.clone(),
        limits: Limits::default(),
        name: name("daemon"),
        ledger: ledger::Settings::default(),
        home: Box::new(Nobody),
    };
    match Owner::start(setup) {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_server_that_refuses_the_credentials_is_named() {
    let binary = binary();
    let server = Server::start(&binary, "authorization { user: a, password: b }");
    let error = refused(&server.settings());
    assert!(matches!(error, ClusterError::Refused { .. }), "{error}");
    let missing = Settings {
        credentials: Some("no-such-file.creds".into()),
        ..server.settings()
    };
    let error = refused(&missing);
    assert!(matches!(error, ClusterError::Credentials { .. }), "{error}");
    assert!(error.to_string().contains("no-such-file.creds"), "{error}");
}

#[test]
fn an_address_without_a_server_is_named() {
    let nowhere = Settings {
        addresses: vec!["nats://127.0.0.1:1".to_owned()],
        ..Settings::default()
    };
    let error = refused(&nowhere);
    assert!(matches!(error, ClusterError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_stream_of_someone_else_is_named_and_not_changed() {
    let binary = binary();
    let server = Server::start(&binary, "");
    with_context(&server, async |context| {
        let config = jetstream::stream::Config {
            name: "CUZK_WORK".to_owned(),
            subjects: vec!["cuzk.work.>".to_owned()],
            ..Default::default()
        };
        context.create_stream(config).await.unwrap();
    });
    let error = refused(&server.settings());
    let ClusterError::ForeignStream {
        stream, setting, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((stream.as_str(), *setting), ("CUZK_WORK", "retention"));
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn foreign_messages_stop_neither_the_daemon_nor_a_worker() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.prepare(&[circuit("porep-2KiB")]);
    daemon.owner.open();
    let subject = Subject {
        circuit: circuit("porep-2KiB"),
        priority: Priority::Normal,
    };
    with_context(&server, async |context| {
        let client = context.client();
        for bytes in [&b"nothing"[..], b"CUZK\x09\x00\x01", b""] {
            for subject in [&subject.to_string(), "cuzk.result.1.daemon"] {
                let sent = context.publish(subject.to_owned(), bytes.into()).await;
                sent.unwrap().await.unwrap();
            }
            for subject in ["cuzk.sign.1.daemon", "cuzk.control.1"] {
                client.publish(subject, bytes.into()).await.unwrap();
            }
        }
        client.flush().await.unwrap();
    });
    let (_node, behaviour) = worker(&server.settings(), "one", 1);
    let id = daemon.offer(offer(1, Priority::Normal, vec![1]));
    daemon.proved(&id);
    assert_eq!(behaviour.begun.load(Relaxed), 1);
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn an_input_whose_object_is_wrong_is_not_proved() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    let long = vec![5; 3 << 20];
    let id = daemon.offer(offer(1, Priority::Normal, long.clone()));
    let object = blake3::hash(&long).to_hex().to_string();
    with_context(&server, async |context| {
        let store = context.get_object_store("cuzk-inputs").await.unwrap();
        while store.info(&object).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let wrong = vec![6; 3 << 20];
        store
            .put(object.as_str(), &mut wrong.as_slice())
            .await
            .unwrap();
    });
    daemon.owner.open();
    let (_one, first) = worker(&server.settings(), "one", 1);
    let (_two, second) = worker(&server.settings(), "two", 1);
    daemon.sent_home(&id);
    assert_eq!(
        (first.begun.load(Relaxed), second.begun.load(Relaxed)),
        (0, 0)
    );
}
