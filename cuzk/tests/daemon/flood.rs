//! A flood of senders: the daemon stays within its memory.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use cuzk_server::wire::v1;

use crate::fixture::{Daemon, prove, request, verify};

/// `memory.total_budget`.
const BUDGET_MIB: u64 = 4096;

/// Resident memory beside the budget.
const BESIDE_MIB: u64 = 64;

/// The senders of `cuzk bench server --flood`. Dropped, they end.
struct Senders(Child);

impl Senders {
    fn start(daemon: &Daemon) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cuzk"))
            .args(["bench", "server", "--flood", "--child"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.as_mut().unwrap();
        writeln!(input, "{}", daemon.socket().display()).unwrap();
        Self(child)
    }
}

impl Drop for Senders {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test]
async fn a_flood_leaves_proofs_and_the_budget_alone() {
    let config = format!(
        "[memory]\ntotal_budget = \"{BUDGET_MIB}MiB\"\n[server]\nrequest_memory = \"512MiB\"\n"
    );
    let mut daemon = Daemon::start(&config);
    let mut client = daemon.client().await;
    let senders = Senders::start(&daemon);
    for number in 0..10 {
        let input = v1::SubmitProofRequest {
            request_id: format!("winning-{number}"),
            ..request("winning-post")
        };
        let response = prove(&mut client, input).await.unwrap();
        verify("winning-post", &response);
    }
    let response = prove(&mut client, request("porep")).await.unwrap();
    verify("porep", &response);
    drop(senders);
    let peak_mib = daemon.peak_kib() >> 10;
    assert!(peak_mib <= BUDGET_MIB + BESIDE_MIB, "{peak_mib} MiB");
}
