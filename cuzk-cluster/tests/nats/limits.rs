//! The limits of a daemon and its name, as the server has them.
//!
//! The daemon's configuration sets them: each is a key of `[cluster]`. They are not how a full stream
//! behaves, which is tested with the faults.

use std::cell::Cell;
use std::time::Duration;

use async_nats::jetstream;
use cuzk_bounded::bounded;
use cuzk_cluster::nats::{Limits, Settings};

use crate::machines::{Daemon, until};
use crate::server::{Server, binary};

/// The streams of work, of results, and of the store of inputs.
const STREAMS: [&str; 3] = ["CUZK_WORK", "CUZK_RESULTS", "OBJ_cuzk-inputs"];

/// The bytes of the results that a server keeps. No key changes them.
const RESULT_BYTES_MAX: i64 = 1 << 30;

/// The settings of a stream.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    bytes_max: i64,
    age_max: Duration,
    replicas: usize,
}

/// Returns the settings of each stream, and the names of the consumers of results. Returns none while a
/// stream or a consumer is missing, which the daemon makes one after the other.
fn found(url: &str) -> Option<([Found; 3], Vec<String>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let asked = async {
        let client = async_nats::connect(url).await.unwrap();
        let context = jetstream::new(client);
        let mut all = Vec::new();
        for name in STREAMS {
            let stream = context.get_stream(name).await.ok()?;
            let config = &stream.cached_info().config;
            all.push(Found {
                bytes_max: config.max_bytes,
                age_max: config.max_age,
                replicas: config.num_replicas,
            });
        }
        let results = context.get_stream(STREAMS[1]).await.ok()?;
        let mut names = results.consumer_names();
        let mut consumers = Vec::new();
        while let Some(name) = tokio_stream::StreamExt::next(&mut names).await {
            consumers.push(name.unwrap());
        }
        (!consumers.is_empty()).then(|| (all.try_into().unwrap(), consumers))
    };
    bounded(|| runtime.block_on(asked))
}

/// Checks that the server has the limits of a daemon and its name.
fn check(settings: &Settings, url: &str, name: &str, limits: Limits) {
    let daemon = Daemon::start_limited(settings, name, limits);
    daemon.owner.open();
    let made = Cell::new(None);
    until("the streams and the consumer are made", || {
        let is_connected = daemon.owner.report().is_connected;
        let now = is_connected.then(|| found(url)).flatten();
        let is_made = now.is_some();
        made.set(now);
        is_made
    });
    let (streams, consumers) = made.take().unwrap();
    let expected = |bytes_max| Found {
        bytes_max,
        age_max: limits.age_max,
        replicas: limits.replicas,
    };
    let [work, objects] = [limits.work_bytes_max, limits.object_bytes_max]
        .map(|bytes_max| expected(i64::try_from(bytes_max).unwrap()));
    assert_eq!(streams, [work, expected(RESULT_BYTES_MAX), objects]);
    let is_named = |consumer: &String| consumer.ends_with(&format!("-{name}"));
    assert!(consumers.iter().all(is_named), "{consumers:?}");
    assert_eq!(consumers.len(), 1, "{consumers:?}");
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn the_server_has_the_limits_and_the_name_of_the_daemon() {
    let server = Server::start(&binary(), "");
    let limits = Limits {
        work_bytes_max: 1 << 20,
        object_bytes_max: 3 << 20,
        age_max: Duration::from_secs(60),
        replicas: 1,
    };
    check(&server.settings(), &server.url(), "first", limits);
}

/// Only several servers can keep more than one copy.
#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn three_servers_have_other_limits_and_keep_three_copies() {
    let servers = Server::start_three(&binary());
    let settings = Settings {
        addresses: servers.iter().map(Server::url).collect(),
        ..Settings::default()
    };
    let limits = Limits {
        work_bytes_max: 5 << 20,
        object_bytes_max: 7 << 20,
        age_max: Duration::from_secs(3600),
        replicas: 3,
    };
    check(&settings, &servers[0].url(), "second", limits);
}
