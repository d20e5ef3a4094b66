//! Three servers, one of which is killed.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use async_nats::jetstream;
use cuzk_bounded::bounded;
use cuzk_cluster::nats::Settings;
use cuzk_scheduler::priority::Priority;

use crate::machines::{Daemon, offer, until, worker};
use crate::server::{Server, binary};

const PARTITIONS: usize = 100;

/// Returns the place of the server that leads the stream of work.
fn leader(servers: &[Server]) -> Option<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let name = async {
        let client = async_nats::connect(servers[0].url()).await.unwrap();
        let mut stream = jetstream::new(client).get_stream("CUZK_WORK").await.ok()?;
        let info = stream.info().await.ok()?;
        info.cluster.as_ref()?.leader.clone()
    };
    let name = bounded(|| runtime.block_on(name));
    name?.strip_prefix("nats-")?.parse().ok()
}

/// Prints the longest time without an end. The server that leads the streams is killed, so its
/// followers have to elect another leader meanwhile.
#[test]
#[ignore = "needs a nats-server, see .ci/nats-server"]
fn nothing_is_lost_when_one_of_three_servers_is_killed() {
    let binary = binary();
    let mut servers = Server::start_three(&binary);
    let settings = Settings {
        addresses: servers.iter().map(Server::url).collect(),
        ..Settings::default()
    };
    let daemon = Daemon::start_replicated(&settings, 3);
    daemon.owner.open();
    until("the servers have elected a leader", || {
        daemon.owner.report().is_connected
    });
    let workers = ["one", "two", "three", "four"].map(|name| worker(&settings, name, 1));
    for (_, behaviour) in &workers {
        behaviour.takes_ms.store(400, Relaxed);
    }
    let ids: Vec<_> = (0..PARTITIONS)
        .map(|number| daemon.offer(offer(number, Priority::Normal, vec![7; 1000 + number])))
        .collect();
    let ended = || daemon.seen.ended_at.lock().unwrap().len();
    until("a quarter has ended", || ended() >= PARTITIONS / 4);
    let leader = leader(&servers).unwrap_or(0);
    let before = ended();
    servers[leader].kill();
    ids.iter().for_each(|id| daemon.proved(id));
    let times = daemon.seen.ended_at.lock().unwrap().clone();
    assert_eq!(times.len(), PARTITIONS, "each ended once");
    let pauses = times.windows(2).map(|pair| pair[1] - pair[0]);
    let longest = pauses.max().unwrap_or(Duration::ZERO);
    let begun: usize = workers.iter().map(|(_, of)| of.begun.load(Relaxed)).sum();
    println!(
        "killed nats-{leader}, which led the stream of work, after {before} of {PARTITIONS} \
         ends; the longest time without an end was {:.1} s; {begun} partitions were begun",
        longest.as_secs_f64()
    );
}
