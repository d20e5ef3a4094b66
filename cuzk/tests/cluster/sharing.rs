//! Proofs that workers make for a daemon.

use crate::fixture::{prove, request, verify};
use crate::hands::{Worker, cluster, daemon, proved_by, proved_here, status, until};
use crate::server::{Server, free_port};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn two_workers_prove_for_a_daemon_that_leaves_all_to_them() {
    let server = Server::start();
    let mut daemon = daemon(&server.url(), &["--no-local"]);
    let _workers = ["one", "two"].map(|name| Worker::start(&server.url(), name));
    let mut client = daemon.client().await;
    for kind in ["porep", "snap-deals"] {
        let response = prove(&mut client, request(kind)).await.unwrap();
        verify(kind, &response);
    }
    assert_eq!(proved_here(&daemon), 0);
    let by = |name| proved_by(&daemon, name);
    assert_eq!(by("one") + by("two"), 2, "{}", cluster(&daemon));
    until("both workers said what they are", || {
        let nodes = cluster(&daemon)["nodes"].clone();
        let nodes = nodes.as_array().unwrap();
        nodes.len() == 2 && nodes.iter().all(|node| node["version"].is_string())
    });
    let prover = if by("one") > 0 { "one" } else { "two" };
    let shown = [
        daemon.command(&["status"]),
        daemon.command(&["top", "--fleet", "--count", "1"]),
    ];
    for shown in shown {
        let text = String::from_utf8(shown.stdout).unwrap();
        assert!(text.contains("connected to nats://"), "{text}");
        assert!(text.contains("one") && text.contains("two"), "{text}");
    }
    let (_, metrics) = daemon.page("/metrics");
    let sample = format!("cuzk_node_proved_total{{node=\"{prover}\"}} ");
    assert!(metrics.contains(&sample), "{metrics}");
    let (_, timeline) = daemon.page("/timeline.json");
    assert!(timeline.contains(prover), "the waterfall names the node");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn a_daemon_proves_itself_beside_its_workers() {
    let server = Server::start();
    let mut daemon = daemon(&server.url(), &[]);
    let mut client = daemon.client().await;
    until("it is connected", || cluster(&daemon)["connected"] == true);
    for kind in ["winning-post", "window-post", "snap-deals"] {
        let response = prove(&mut client, request(kind)).await.unwrap();
        verify(kind, &response);
    }
    assert_eq!(proved_here(&daemon), 3, "there is no worker");
    until("nothing is open", || {
        cluster(&daemon)["open_partitions"] == 0
    });
    let (line, _) = daemon.page("/readyz");
    assert!(line.contains("200"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_without_its_server_serves_and_says_so() {
    let url = format!("nats://127.0.0.1:{}", free_port());
    let mut daemon = daemon(&url, &[]);
    let mut client = daemon.client().await;
    let response = prove(&mut client, request("window-post")).await.unwrap();
    verify("window-post", &response);
    until("the reason is known", || {
        cluster(&daemon)["problem"].is_string()
    });
    let problem = cluster(&daemon)["problem"].as_str().unwrap().to_owned();
    assert!(
        problem.contains(&url) && problem.contains("cannot connect"),
        "{problem}"
    );
    let (line, _) = daemon.page("/readyz");
    assert!(line.contains("200"), "{line}");
    let log = daemon.log();
    assert_eq!(log.matches("cannot connect").count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn posts_are_proved_here_if_there_is_no_worker_and_sealing_waits_for_one() {
    let server = Server::start();
    let mut daemon = daemon(&server.url(), &["--no-local"]);
    let mut client = daemon.client().await;
    for kind in ["winning-post", "window-post"] {
        let response = prove(&mut client, request(kind)).await.unwrap();
        verify(kind, &response);
    }
    assert_eq!(proved_here(&daemon), 2);
    let mut other = client.clone();
    let update = tokio::spawn(async move { prove(&mut other, request("snap-deals")).await });
    until("it waits for others", || {
        let jobs = status(&daemon)["engine"]["jobs"].clone();
        let waits_for = jobs[0]["waits_for"].as_str().unwrap_or_default();
        waits_for.contains("other machines")
    });
    let _worker = Worker::start(&server.url(), "late");
    verify("snap-deals", &update.await.unwrap().unwrap());
    assert_eq!((proved_here(&daemon), proved_by(&daemon, "late")), (2, 1));
}
