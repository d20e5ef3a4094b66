//! Work that is shared without faults.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use cuzk_scheduler::priority::Priority;

use crate::machines::{Daemon, offer, until, worker, worker_with};
use crate::server::{Server, binary};

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn partitions_are_shared_between_two_workers() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_one, first) = worker(&server.settings(), "one", 2);
    let (_two, second) = worker(&server.settings(), "two", 2);
    // Each worker has room for two, so both have work before any has ended.
    first.holds.store(true, Relaxed);
    second.holds.store(true, Relaxed);
    let ids: Vec<_> = (0..50)
        .map(|number| daemon.offer(offer(number, Priority::Normal, vec![7; number])))
        .collect();
    until("both workers are busy", || {
        first.begun.load(Relaxed) == 2 && second.begun.load(Relaxed) == 2
    });
    first.holds.store(false, Relaxed);
    second.holds.store(false, Relaxed);
    ids.iter().for_each(|id| daemon.proved(id));
    assert_eq!(first.begun.load(Relaxed) + second.begun.load(Relaxed), 50);
    assert_eq!(daemon.owner.open_partitions(), 0);
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_long_input_goes_through_the_object_store() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_node, _) = worker(&server.settings(), "one", 1);
    // The server takes messages of 1 MiB.
    let long: Vec<u8> = (0..5 << 20)
        .map(|place: u32| place.to_le_bytes()[1])
        .collect();
    let id = daemon.offer(offer(1, Priority::Normal, long));
    daemon.proved(&id);
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn urgent_work_does_not_wait_behind_sealing() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_node, behaviour) = worker(&server.settings(), "one", 1);
    behaviour.holds.store(true, Relaxed);
    for number in 0..10 {
        daemon.offer(offer(
            number,
            Priority::Normal,
            number.to_le_bytes().to_vec(),
        ));
    }
    until("sealing runs", || behaviour.begun.load(Relaxed) == 1);
    daemon.offer(offer(10, Priority::High, vec![10]));
    until("the PoSt runs beside it", || {
        behaviour.begun.load(Relaxed) == 2
    });
    let order = behaviour.order.lock().unwrap().clone();
    assert_eq!(order, [Priority::Normal, Priority::High]);
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_cancelled_partition_stops_on_its_worker() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (node, behaviour) = worker(&server.settings(), "one", 1);
    behaviour.holds.store(true, Relaxed);
    let id = daemon.offer(offer(1, Priority::Normal, vec![1]));
    until("it runs", || behaviour.begun.load(Relaxed) == 1);
    // The owner knows that it runs only after the worker's first sign of life.
    until("it is stopped", || {
        daemon.owner.cancel(&id);
        behaviour.stopped.load(Relaxed) == 1
    });
    until("the worker is free", || node.running() == 0);
}

#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn a_drained_worker_finishes_and_leaves() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (node, behaviour) = worker(&server.settings(), "one", 1);
    behaviour.holds.store(true, Relaxed);
    let running = daemon.offer(offer(1, Priority::Normal, vec![1]));
    until("it runs", || behaviour.begun.load(Relaxed) == 1);
    let waiting = daemon.offer(offer(2, Priority::Normal, vec![2]));
    assert!(!node.drain(Duration::from_millis(50)), "it still proves");
    behaviour.holds.store(false, Relaxed);
    assert!(node.drain(Duration::from_secs(3600)));
    daemon.proved(&running);
    assert_eq!(behaviour.begun.load(Relaxed), 1);
    drop(node);
    let _other = worker_with(&server.settings(), "two", 1, &behaviour);
    daemon.proved(&waiting);
}

/// Prints the overhead of a partition. `.ci/run` does not judge it: a machine may be busy.
#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn the_overhead_of_a_partition_is_printed() {
    let binary = binary();
    let server = Server::start(&binary, "");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let (_node, _) = worker(&server.settings(), "one", 1);
    let first = daemon.offer(offer(1000, Priority::Normal, vec![0]));
    daemon.proved(&first);
    let mut times: Vec<Duration> = (0..100)
        .map(|number| {
            let offer = offer(number, Priority::Normal, vec![7; 100_000]);
            let started = Instant::now();
            let id = daemon.offer(offer);
            daemon.proved(&id);
            started.elapsed()
        })
        .collect();
    times.sort();
    println!(
        "from the offer to the recorded end, input of 100 kB: median {:.2} ms, worst of 100 {:.2} ms",
        times[50].as_secs_f64() * 1e3,
        times[99].as_secs_f64() * 1e3
    );
}

/// Prints how many partitions a second the daemon, the server and the workers share, all on this
/// machine, if proving takes no time. The inputs have the length of a 32 GiB PoRep's.
#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn the_rate_of_long_inputs_is_printed() {
    const PARTITIONS: usize = 200;
    const INPUT_BYTES: usize = 1_101_608;
    let binary = binary();
    let server = Server::start(&binary, "max_payload: 8388608");
    let daemon = Daemon::start(&server.settings());
    daemon.owner.open();
    let _workers = ["one", "two", "three", "four"].map(|name| worker(&server.settings(), name, 2));
    let input = |number: usize| {
        let mut input = vec![7; INPUT_BYTES];
        input[..8].copy_from_slice(&number.to_le_bytes());
        offer(number, Priority::Normal, input)
    };
    daemon.proved(&daemon.offer(input(PARTITIONS)));
    let offers: Vec<_> = (0..PARTITIONS).map(input).collect();
    let started = Instant::now();
    let ids: Vec<_> = offers.into_iter().map(|of| daemon.offer(of)).collect();
    ids.iter().for_each(|id| daemon.proved(id));
    let each = started.elapsed() / u32::try_from(PARTITIONS).unwrap();
    println!(
        "{PARTITIONS} partitions with inputs of {INPUT_BYTES} bytes: {:.2} ms each, {:.0} a second",
        each.as_secs_f64() * 1e3,
        1.0 / each.as_secs_f64()
    );
}
