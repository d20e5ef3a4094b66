//! The daemon's view of the server and of the workers.

use std::sync::atomic::Ordering::Relaxed;

use cuzk_scheduler::priority::Priority;

use crate::machines::{Daemon, offer, until, worker};
use crate::server::{Server, binary};

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_daemon_that_starts_before_its_server_says_so_and_goes_on_when_it_is_there() {
    let binary = binary();
    let mut server = Server::start(&binary, "");
    server.kill();
    let daemon = Daemon::start_unconnected(&server.settings());
    daemon.owner.open();
    until("the reason is known", || {
        daemon.owner.report().problem.is_some()
    });
    let report = daemon.owner.report();
    let problem = report.problem.unwrap();
    assert!(problem.contains("cannot connect"), "{problem}");
    assert!(!report.is_connected);
    let urgent = daemon.offer(offer(1, Priority::High, vec![1]));
    let common = daemon.offer(offer(2, Priority::Normal, vec![2]));
    daemon.sent_home(&urgent);
    server.restart();
    let (_node, _) = worker(&server.settings(), "one", 1);
    daemon.proved(&common);
    let report = daemon.owner.report();
    assert_eq!((report.is_connected, report.problem), (true, None));
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_daemon_that_started_alone_names_what_is_wrong_with_its_server() {
    let binary = binary();
    let server = Server::start(&binary, "authorization { user: a, password: b }");
    let daemon = Daemon::start_unconnected(&server.settings());
    until("the reason is known", || {
        daemon.owner.report().problem.is_some()
    });
    let problem = daemon.owner.report().problem.unwrap();
    assert!(problem.contains("refused the credentials"), "{problem}");
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn workers_are_seen_with_what_they_run_and_what_they_proved() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_node, behaviour) = worker(&server.settings(), "one", 1);
    until("it has said what it can prove", || {
        let nodes = daemon.owner.report().nodes;
        nodes.iter().any(|node| node.version.is_some())
    });
    behaviour.holds.store(true, Relaxed);
    let id = daemon.offer(offer(1, Priority::Normal, vec![1]));
    until("it is known to run", || {
        let is_taken = daemon.seen.taken.lock().unwrap().contains(&id);
        is_taken && daemon.owner.report().nodes[0].running == 1
    });
    behaviour.holds.store(false, Relaxed);
    daemon.proved(&id);
    let nodes = daemon.owner.report().nodes;
    let [node] = &nodes[..] else {
        panic!("{nodes:?}")
    };
    assert_eq!(
        (node.name.as_str(), node.proved, node.faults),
        ("one", 1, 0)
    );
    assert_eq!(node.loaded[0].name.as_str(), "porep-2KiB");
    assert!(node.progress_ago.is_some());
}
