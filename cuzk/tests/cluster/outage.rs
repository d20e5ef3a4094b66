//! A server that is gone for a while.
//!
//! `CUZK_TEST_OUTAGE_S` is its time in seconds. The figures are printed.

use std::time::{Duration, Instant};

use cuzk_server::wire::v1::SubmitProofRequest;

use crate::fixture::{Client, Daemon, prove, request, verify};
use crate::hands::{Worker, cluster, daemon, proved_by, proved_here, until};
use crate::server::Server;

/// The updates of sectors that are accepted before the server goes. A PoRep takes twice the time.
const UPDATES: usize = 4;

fn outage() -> Duration {
    let seconds = std::env::var("CUZK_TEST_OUTAGE_S").ok();
    Duration::from_secs(seconds.map_or(3, |seconds| seconds.parse().unwrap()))
}

fn named(kind: &str, number: usize) -> SubmitProofRequest {
    SubmitProofRequest {
        request_id: format!("{kind}-{number}"),
        ..request(kind)
    }
}

/// Proves PoSts one after the other while the server is gone. Returns the longest time of each
/// kind, in seconds, with their number.
async fn prove_posts(client: &mut Client, began: Instant) -> (usize, f64, f64) {
    let (mut number, mut longest) = (0, [0.0_f64; 2]);
    loop {
        for (kind, longest) in ["window-post", "winning-post"].iter().zip(&mut longest) {
            let started = Instant::now();
            let response = prove(client, named(kind, number)).await.unwrap();
            *longest = longest.max(started.elapsed().as_secs_f64());
            verify(kind, &response);
        }
        number += 1;
        if began.elapsed() >= outage() {
            return (number, longest[0], longest[1]);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn counts(daemon: &Daemon) -> (u64, u64) {
    (proved_here(daemon), proved_by(daemon, "one"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn posts_and_updates_go_on_while_the_server_is_gone_and_all_catches_up() {
    let mut server = Server::start();
    let mut daemon = daemon(&server.url(), &[]);
    let worker = Worker::start(&server.url(), "one");
    let mut client = daemon.client().await;
    until("it is connected", || cluster(&daemon)["connected"] == true);
    let update = |number: usize| {
        let mut client = client.clone();
        tokio::spawn(async move {
            prove(&mut client, named("snap-deals", number))
                .await
                .unwrap()
        })
    };
    let mut updates: Vec<_> = (0..UPDATES).map(&update).collect();
    worker.await_log("begun");
    let (here, there) = counts(&daemon);
    server.kill();
    let gone = Instant::now();
    until("the loss is known", || {
        cluster(&daemon)["connected"] == false
    });
    updates.push(update(UPDATES));
    let (posts, window_s, winning_s) = prove_posts(&mut client, gone).await;
    let (here_then, _) = counts(&daemon);
    let gone_s = gone.elapsed().as_secs_f64();
    server.restart();
    let back = Instant::now();
    until("it is connected again", || {
        cluster(&daemon)["connected"] == true
    });
    let connected_s = back.elapsed().as_secs_f64();
    for update in updates {
        verify("snap-deals", &update.await.unwrap());
    }
    until("nothing is open", || {
        cluster(&daemon)["open_partitions"] == 0
    });
    let caught_up_s = back.elapsed().as_secs_f64();
    let (here_now, there_now) = counts(&daemon);
    println!(
        "the server was gone for {gone_s:.1} s; meanwhile {posts} WindowPoSts (the longest \
         {window_s:.2} s), {posts} WinningPoSts (the longest {winning_s:.2} s) and {} partitions in \
         all were proved here; after its return the daemon was connected in {connected_s:.1} s; all \
         was proved in {caught_up_s:.1} s, {} by the daemon and {} by the worker since the loss",
        here_then - here,
        here_now - here,
        there_now - there
    );
    assert!(cluster(&daemon)["problem"].is_null());
}
