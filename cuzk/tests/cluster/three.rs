//! Three servers as the documents say: TLS with an authority of their own, NKEYs with the shipped
//! permissions, and `replicas = 3`.
//!
//! The servers' configuration is that of `configs/nats`, and the section of the daemon and of the
//! worker is the one in `docs/cluster.md`. Only hosts, ports and folders are others.

use std::path::Path;
use std::time::Instant;

use cuzk_server::wire::v1::SubmitProofRequest;

use crate::fixture::{Client, Daemon, PATIENCE, prove, request, verify};
use crate::hands::{Worker, cluster, proved_by, until};
use crate::keys::Secrets;
use crate::server::{Server, free_port, shipped};

/// Returns the example of `local.conf` with the section of three servers, which is a comment
/// there.
fn local_conf_of_three() -> String {
    let mut is_section = false;
    let lines = shipped("local.conf.example");
    let lines = lines.lines().map(|line| {
        is_section |= line == "# cluster {";
        match is_section {
            true => line.strip_prefix("# ").unwrap(),
            false => line,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the section of the document that names three servers.
fn documented_section() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cluster.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```toml\n").skip(1);
    let mut blocks = blocks.map(|block| block.split("```").next().unwrap());
    let block = blocks.find(|block| block.contains("replicas = 3"));
    block.unwrap().to_owned()
}

/// Replaces a text that must be there.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not in {text}");
    text.replace(from, to)
}

/// The servers, each with a folder of its own.
struct Three {
    servers: Vec<Server>,
}

impl Three {
    fn start() -> Self {
        let secrets = Secrets::new();
        let routes = [(); 3].map(|()| free_port());
        let example = local_conf_of_three();
        let servers = (0..3).map(|number: usize| {
            let others = [(number + 1) % 3, (number + 2) % 3];
            let mut local = replaced(&example, "\"nats-1\"", &format!("\"nats-{number}\""));
            let listen = format!("127.0.0.1:{}", routes[number]);
            local = replaced(&local, "0.0.0.0:6222", &listen);
            for (host, other) in ["nats-2", "nats-3"].iter().zip(others) {
                let there = format!("127.0.0.1:{}", routes[other]);
                local = replaced(&local, &format!("{host}.example.com:6222"), &there);
            }
            let folder = tempfile::tempdir().unwrap();
            secrets.write(folder.path(), &local);
            Server::start_in(folder, free_port())
        });
        Self {
            servers: servers.collect(),
        }
    }

    /// Returns the documented section for a user.
    fn section(&self, user: &str) -> String {
        let mut section = documented_section();
        for (number, server) in (1..).zip(&self.servers) {
            let there = format!("127.0.0.1:{}", server.port);
            section = replaced(&section, &format!("prover-{number}:4222"), &there);
        }
        let folder = self.servers[0].folder.path();
        let file = |name: &str| format!("{:?}", folder.join(name));
        section = replaced(&section, "\"ca.pem\"", &file("ca.pem"));
        replaced(&section, "\"daemon.nkey\"", &file(&format!("{user}.nkey")))
    }

    /// Returns the lines of all logs about what a user may not do.
    fn violations(&self) -> Vec<String> {
        let logs = self.servers.iter().map(Server::log).collect::<String>();
        let lines = logs.lines().filter(|line| line.contains("iolation"));
        lines.map(str::to_owned).collect()
    }
}

/// Proves WindowPoSts until the worker has proved one. The daemon proves one itself that no
/// worker begins in time.
async fn prove_until_by_worker(client: &mut Client, daemon: &Daemon, of: &str) {
    let before = proved_by(daemon, "hands");
    let until = Instant::now() + PATIENCE;
    for number in 0.. {
        let request = SubmitProofRequest {
            request_id: format!("{of}-{number}"),
            ..request("window-post")
        };
        let response = prove(client, request).await.unwrap();
        verify("window-post", &response);
        if proved_by(daemon, "hands") > before {
            return;
        }
        assert!(
            Instant::now() < until,
            "no proof of the worker: {}",
            daemon.log()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn three_servers_with_tls_carry_the_work_and_one_of_them_may_fail() {
    let mut three = Three::start();
    let section = three.section("daemon");
    let mut daemon = Daemon::start_with(Some(&section), &["--no-local"], None);
    let worker = Worker::start_configured(&three.section("worker"), &["--name", "hands"]);
    let mut client = daemon.client().await;
    until("it is connected", || cluster(&daemon)["connected"] == true);
    prove_until_by_worker(&mut client, &daemon, "three").await;
    three.servers[0].kill();
    prove_until_by_worker(&mut client, &daemon, "two").await;
    assert!(worker.begun() >= 2, "{}", worker.log());
    assert_eq!(three.violations(), [""; 0], "of the permissions");
}
