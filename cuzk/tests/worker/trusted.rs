//! Several machines with TLS and NKEYs: a worker can do its work, and nothing else.

use std::time::Duration;

use async_nats::jetstream::{self, Context, consumer::pull};
use cuzk_bounded::bounded;
use cuzk_filecoin::ProofKind;

use crate::fixture::{Daemon, Worker};
use crate::keys::Trusted;

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_worker_with_its_key_proves_over_tls() {
    let trusted = Trusted::start();
    let daemon = Daemon::start(&trusted.settings("daemon"));
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(folder.path(), &trusted.config("worker"), &[]);
    assert!(
        daemon
            .proved(&daemon.offer(ProofKind::WindowPost))
            .contains("hands")
    );
    // A long input is read from the store. This one is no partition.
    daemon.offer_bytes(ProofKind::WindowPost, vec![7; 9 << 20]);
    let failed = worker.event("failed");
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("no partition of a statement"), "{reason}");
    // A cancellation reaches the worker.
    let id = daemon.offer(ProofKind::Porep);
    worker.event("begun");
    daemon.owner.cancel(&id);
    worker.event("stopped");
    worker.signal("TERM");
    assert_eq!(worker.code(), Some(0), "{}", worker.log());
    let violations = |log: String| log.lines().filter(|l| l.contains("iolation")).count();
    assert_eq!(violations(worker.log()), 0, "{}", worker.log());
    assert_eq!(
        violations(trusted.server.log()),
        0,
        "{}",
        trusted.server.log()
    );
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_wrong_key_or_authority_is_told() {
    let trusted = Trusted::start();
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start(folder.path(), &trusted.config("stranger"), &[]);
    assert_eq!(worker.code(), Some(2), "{}", worker.log());
    let log = worker.log();
    assert!(log.contains("it refused the credentials"), "{log}");
    // Without the authority the server's certificate is one of a stranger.
    let config = trusted.config("worker").replace("server_ca", "# server_ca");
    let mut worker = Worker::start(folder.path(), &config, &[]);
    worker.logged("tries again after a pause");
    assert!(worker.log().contains("cannot connect"), "{}", worker.log());
}

/// The requests of another client with the worker's key. Each waits for an answer that the
/// server does not give to those who may not ask.
async fn forbidden(context: &Context) -> Vec<(&'static str, bool)> {
    let work = "CUZK_WORK";
    let config = |name: &str, subject: &str| jetstream::stream::Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        ..Default::default()
    };
    let consumer = || pull::Config {
        durable_name: Some("mine".to_owned()),
        ..Default::default()
    };
    let published = async {
        let sent = context.publish("cuzk.work.1.a.b.c", "work".into()).await;
        sent.unwrap().await.is_ok()
    };
    let deleted = async {
        let stream = context.get_stream_no_info(work).await.unwrap();
        stream.delete_message(1).await.is_ok()
    };
    let purged = async {
        let stream = context.get_stream_no_info(work).await.unwrap();
        stream.purge().await.is_ok()
    };
    let object = async {
        let store = context.get_object_store("cuzk-inputs").await.unwrap();
        store.delete("anything").await.is_ok()
    };
    let results = async {
        let made = context.create_consumer_on_stream(consumer(), "CUZK_RESULTS");
        made.await.is_ok()
    };
    let taken = async {
        context
            .create_consumer_on_stream(consumer(), work)
            .await
            .is_ok()
    };
    vec![
        (
            "make a stream",
            context
                .create_stream(config("MINE", "mine.>"))
                .await
                .is_ok(),
        ),
        (
            "change the stream",
            context
                .update_stream(config(work, "cuzk.work.>"))
                .await
                .is_ok(),
        ),
        (
            "remove the stream",
            context.delete_stream(work).await.is_ok(),
        ),
        ("publish work", published.await),
        ("remove work", deleted.await),
        ("remove all work", purged.await),
        ("remove an input", object.await),
        ("read results", results.await),
        ("make a consumer of work", taken.await),
    ]
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_worker_cannot_touch_streams() {
    let trusted = Trusted::start();
    let daemon = Daemon::start(&trusted.settings("daemon"));
    let id = daemon.offer(ProofKind::WindowPost);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let answers = async {
        let seed = std::fs::read_to_string(trusted.path("worker.nkey")).unwrap();
        let client = async_nats::ConnectOptions::with_nkey(seed)
            .add_root_certificates(trusted.path("ca.pem"))
            .connect(trusted.url())
            .await
            .unwrap();
        let mut context = jetstream::new(client);
        context.set_timeout(Duration::from_secs(1));
        assert!(context.get_stream("CUZK_WORK").await.is_ok(), "it may look");
        forbidden(&context).await
    };
    let answers = bounded(|| runtime.block_on(answers));
    for (what, is_done) in answers {
        assert!(!is_done, "a worker could {what}");
    }
    let folder = tempfile::tempdir().unwrap();
    let _worker = Worker::start(folder.path(), &trusted.config("worker"), &[]);
    daemon.proved(&id);
}
