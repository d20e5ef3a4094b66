//! Restarts of a daemon whose socket is somebody else's, as systemd's is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuzk_server::wire::v1::{self, await_proof_response::Status as JobStatus};

use crate::fixture::{Client, Daemon, PATIENCE, connect, prove, request};

/// Clients that call without an end. The first has WindowPoSts proved.
const CLIENTS: u64 = 100;

/// The pause of a client after a call. A daemon that stops still accepts PoSts, and ends once it has
/// none. It has none in a pause of the only client that asks for them. A hundred clients without a
/// pause would take both cores of a small machine.
const PAUSE: Duration = Duration::from_millis(200);

/// The most connections on which a call is begun.
const TRIES: usize = 5;

/// The state that all clients share.
#[derive(Default)]
struct Calls {
    answered: AtomicU64,
    is_over: AtomicBool,
}

/// The number of restarts. The nightly run has more.
fn restarts() -> u32 {
    let restarts = std::env::var("CUZK_TEST_RESTARTS").ok();
    restarts.map_or(1, |restarts| restarts.parse().unwrap())
}

async fn call(client: &mut Client, name: String, is_prover: bool) -> Result<(), tonic::Status> {
    if !is_prover {
        client.get_status(v1::GetStatusRequest {}).await?;
        return Ok(());
    }
    let input = v1::SubmitProofRequest {
        request_id: name,
        ..request("window-post")
    };
    let response = prove(client, input).await?;
    assert_eq!(response.status(), JobStatus::Completed, "{response:?}");
    Ok(())
}

/// Returns true if a status is no reply: the connection ended before the call began. Tonic
/// tells its caller, and grpc-go begins such a call on the next connection by itself.
fn is_unbegun(status: &tonic::Status) -> bool {
    let source = std::error::Error::source(status);
    source.is_some_and(|source| source.is::<tonic::transport::Error>())
}

/// Calls until it is over. A call that the daemon fails is not repeated.
async fn call_on(address: String, number: u64, calls: Arc<Calls>) -> Result<u64, tonic::Status> {
    let mut client = connect(&address).await.unwrap();
    let mut made = 0;
    while !calls.is_over.load(Ordering::Relaxed) {
        let name = format!("post-{number}-{made}");
        let is_prover = number == 0;
        let mut called = call(&mut client, name.clone(), is_prover).await;
        // A new connection can be the old daemon's last one, so once is not always enough.
        for _ in 1..TRIES {
            if !called.as_ref().is_err_and(is_unbegun) {
                break;
            }
            called = call(&mut client, name.clone(), is_prover).await;
        }
        called?;
        calls.answered.fetch_add(1, Ordering::Relaxed);
        made += 1;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(made)
}

/// Waits until so many more calls were answered.
async fn until_answered(calls: &Calls, more: u64) {
    let enough = calls.answered.load(Ordering::Relaxed) + more;
    let until = Instant::now() + PATIENCE;
    while calls.answered.load(Ordering::Relaxed) < enough {
        assert!(Instant::now() < until, "calls are not answered");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_the_daemon_restarts() {
    let mut daemon = Daemon::start_handed("[server]\ndrain_s = 1000\n");
    daemon.client().await;
    let calls = Arc::new(Calls::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(call_on(daemon.address(), number, Arc::clone(&calls))))
        .collect();
    for _ in 0..restarts() {
        until_answered(&calls, 2 * CLIENTS).await;
        daemon.signal("TERM");
        assert_eq!(daemon.wait_bounded(), Some(0), "{}", daemon.log());
        daemon.start_again();
    }
    until_answered(&calls, 2 * CLIENTS).await;
    calls.is_over.store(true, Ordering::Relaxed);
    let mut failed = Vec::new();
    for client in clients {
        match client.await.unwrap() {
            Ok(made) => assert!(made > 0),
            Err(status) => failed.push(status),
        }
    }
    assert!(failed.is_empty(), "{} failed: {failed:?}", failed.len());
    // Every call that had begun got its reply.
    assert!(
        !daemon.log().contains("without a reply"),
        "{}",
        daemon.log()
    );
}
