//! Machines that die, lie and come back.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use cuzk_cluster::ledger::{self, End};
use cuzk_scheduler::priority::Priority;

use crate::machines::{Behaviour, Daemon, offer, until, worker, worker_with};
use crate::server::{Server, binary};

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_wrong_proof_is_no_answer_and_another_worker_proves_it() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_liar, lies) = worker(&server.settings(), "liar", 1);
    lies.lies.store(true, Relaxed);
    let id = daemon.offer(offer(1, Priority::Normal, vec![1]));
    until("the lie was found", || {
        daemon.seen.rejected.load(Relaxed) == 1
    });
    let (_honest, _) = worker(&server.settings(), "honest", 1);
    daemon.proved(&id);
    assert_eq!(lies.begun.load(Relaxed), 1, "it was excluded");
}

/// The daemon would prove it after an hour. A cold worker has no request that waits, so it gets
/// the partition only if the warm one leaves it.
#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_cold_worker_gets_what_a_warm_one_has_failed_to_prove() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let ledger = ledger::Settings {
        retry: Duration::from_secs(3600),
        ..ledger::Settings::default()
    };
    let daemon = Daemon::start_with(&server.settings(), ledger);
    daemon.owner.open();
    let (_warm, fails) = worker(&server.settings(), "warm", 1);
    fails.fails.store(true, Relaxed);
    let cold = Arc::new(Behaviour::default());
    cold.is_cold.store(true, Relaxed);
    let _cold = worker_with(&server.settings(), "cold", 1, &cold);
    let ids: Vec<_> = (0..5)
        .map(|number| daemon.offer(offer(number, Priority::Normal, vec![1; number])))
        .collect();
    ids.iter().for_each(|id| daemon.proved(id));
    assert_eq!(cold.begun.load(Relaxed), 5);
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_partition_that_fails_on_two_workers_is_proved_by_the_daemon() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_one, fails) = worker(&server.settings(), "one", 1);
    let (_two, panics) = worker(&server.settings(), "two", 1);
    fails.fails.store(true, Relaxed);
    panics.panics.store(true, Relaxed);
    let id = daemon.offer(offer(1, Priority::Normal, vec![1]));
    daemon.sent_home(&id);
    assert_eq!(
        (fails.begun.load(Relaxed), panics.begun.load(Relaxed)),
        (1, 1)
    );
    let reason = "a constraint does not hold".to_owned();
    daemon.owner.failed_at_home(&id, reason.clone());
    assert_eq!(daemon.end(&id), End::Failed { reason });
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn work_of_a_worker_that_is_gone_goes_to_another() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (gone, holds) = worker(&server.settings(), "gone", 1);
    holds.holds.store(true, Relaxed);
    let id = daemon.offer(offer(1, Priority::Normal, vec![1]));
    until("it runs", || holds.begun.load(Relaxed) == 1);
    drop(gone);
    let (_other, other) = worker(&server.settings(), "other", 1);
    daemon.proved(&id);
    assert_eq!(other.begun.load(Relaxed), 1);
    holds.holds.store(false, Relaxed);
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn all_goes_on_after_the_server_was_killed() {
    let binary = binary();
    let mut server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_node, behaviour) = worker(&server.settings(), "one", 1);
    behaviour.holds.store(true, Relaxed);
    let running = daemon.offer(offer(1, Priority::Normal, vec![1]));
    let waiting = daemon.offer(offer(2, Priority::Normal, vec![2]));
    until("one runs", || behaviour.begun.load(Relaxed) == 1);
    server.kill();
    let urgent = daemon.offer(offer(3, Priority::High, vec![3]));
    let later = daemon.offer(offer(4, Priority::Normal, vec![4]));
    daemon.sent_home(&urgent);
    behaviour.holds.store(false, Relaxed);
    server.restart();
    for id in [&running, &waiting, &later] {
        daemon.proved(id);
    }
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn all_goes_on_after_the_streams_were_deleted() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_node, behaviour) = worker(&server.settings(), "one", 1);
    behaviour.holds.store(true, Relaxed);
    let ids: Vec<_> = (0..20)
        .map(|number| {
            daemon.offer(offer(
                number,
                Priority::Normal,
                number.to_le_bytes().to_vec(),
            ))
        })
        .collect();
    until("one runs", || behaviour.begun.load(Relaxed) == 1);
    crate::bad_input::with_context(&server, async |context| {
        context.delete_stream("CUZK_WORK").await.unwrap();
        context.delete_stream("CUZK_RESULTS").await.unwrap();
    });
    behaviour.holds.store(false, Relaxed);
    ids.iter().for_each(|id| daemon.proved(id));
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_daemon_that_starts_again_gets_the_results_of_its_earlier_life() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_node, behaviour) = worker(&server.settings(), "one", 1);
    behaviour.holds.store(true, Relaxed);
    daemon.offer(offer(1, Priority::Normal, vec![1]));
    until("it runs", || behaviour.begun.load(Relaxed) == 1);
    drop(daemon);
    behaviour.holds.store(false, Relaxed);
    let daemon = Daemon::start(&server.settings());
    let id = daemon.offer(offer(1, Priority::Normal, vec![1]));
    daemon.owner.open();
    daemon.proved(&id);
}
