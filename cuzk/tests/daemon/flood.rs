//! A flood of senders: the daemon stays within its memory.

use std::io::Write;
use std::process::{Command, Stdio};

use cuzk_bounded::Killed;
use cuzk_server::wire::v1;

use crate::fixture::{Daemon, prove, request, verify};

/// `memory.total_budget`.
const BUDGET_MIB: u64 = 4096;

/// Resident memory beside the budget.
const BESIDE_MIB: u64 = 64;

/// The number of urgent proofs during the flood, and the kind of the proof after them. The nightly
/// run has more, and a PoRep: the senders take the processor from other tests.
fn proofs() -> (u32, &'static str) {
    match std::env::var("CUZK_TEST_FLOOD") {
        Ok(proofs) => (proofs.parse().unwrap(), "porep"),
        Err(_) => (1, "snap-deals"),
    }
}

/// Starts the senders of `cuzk bench server --flood`.
fn start_senders(daemon: &Daemon) -> Killed {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(["bench", "server", "--flood", "--child"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let input = child.stdin.as_mut().unwrap();
    writeln!(input, "{}", daemon.socket().display()).unwrap();
    Killed(child)
}

#[tokio::test]
async fn a_flood_leaves_proofs_and_the_budget_alone() {
    let config = format!(
        "[memory]\ntotal_budget = \"{BUDGET_MIB}MiB\"\n[server]\nrequest_memory = \"512MiB\"\n"
    );
    let mut daemon = Daemon::start(&config);
    let mut client = daemon.client().await;
    let senders = start_senders(&daemon);
    let mut proved = Vec::new();
    let (urgent, large) = proofs();
    for number in 0..urgent {
        let input = v1::SubmitProofRequest {
            request_id: format!("winning-{number}"),
            ..request("winning-post")
        };
        let response = prove(&mut client, input).await.unwrap();
        proved.push(("winning-post", response));
    }
    let response = prove(&mut client, request(large)).await.unwrap();
    proved.push((large, response));
    // The flood need not last until the proofs are verified.
    drop(senders);
    for (kind, response) in &proved {
        verify(kind, response);
    }
    let peak_mib = daemon.peak_kib() >> 10;
    assert!(peak_mib <= BUDGET_MIB + BESIDE_MIB, "{peak_mib} MiB");
}
